//! Queries over points on the earth: `geo_distance` and `geo_bounding_box`.

use std::f64::consts::{FRAC_PI_2, PI};
use std::fmt;

use sparrow_mapping::GeoPoint;
use sparrow_mapping::geo::{Corner, EARTH_RADIUS, meters, meters_of_unit};

use super::dsl::{Common, Context, members, unknown_token, value};
use super::no_children;
use super::shape::{Named, Shape, any, common, flag, length, num, object, one, text};
use crate::{Clause, Query, QueryKind};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Member, Node};

/// A `geo_distance` or `geo_bounding_box` query.
#[derive(Debug, Clone, PartialEq)]
pub struct GeoQuery {
    /// Path of a `geo_point` field.
    pub field: String,
    /// Where a point of a document has to lie.
    pub area: GeoArea,
    /// Whether an index without the field has no such documents, instead of refusing the query.
    pub ignore_unmapped: bool,
}

/// A part of the earth's surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GeoArea {
    /// At most so far around a point.
    Circle(Circle),
    /// Between two latitudes and two longitudes, edges included. One whose left edge is east of its right one crosses the 180th meridian.
    Box { top: f64, left: f64, bottom: f64, right: f64 },
}

impl GeoArea {
    /// Whether a point lies in it.
    pub fn contains(&self, point: GeoPoint) -> bool {
        match *self {
            Self::Circle(circle) => circle.contains(point),
            Self::Box { top, left, bottom, right } => {
                let of_longitude = match left <= right {
                    true => (left..=right).contains(&point.lon),
                    false => point.lon >= left || point.lon <= right,
                };
                (bottom..=top).contains(&point.lat) && of_longitude
            }
        }
    }
}

/// The points that are at most so far from one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Circle {
    pub center: GeoPoint,
    pub meters: f64,
    /// Degrees to its northernmost and southernmost points, and to its easternmost and westernmost: most points are told apart by these.
    reach: (f64, f64),
}

impl Circle {
    /// So many meters around a point.
    pub fn new(center: GeoPoint, meters: f64) -> Self {
        let angle = (meters / EARTH_RADIUS).min(PI);
        let to_pole = FRAC_PI_2 - center.lat.to_radians().abs();
        // One with a pole in it reaches all longitudes.
        let of_longitude = match angle < to_pole {
            true => (angle.sin() / center.lat.to_radians().cos()).min(1.0).asin(),
            false => PI,
        };
        // Rounding takes nothing off.
        let wider = |angle: f64| angle.to_degrees() * (1.0 + 1e-12) + 1e-9;
        Self { center, meters, reach: (wider(angle), wider(of_longitude)) }
    }

    fn contains(&self, point: GeoPoint) -> bool {
        let (of_latitude, of_longitude) = self.reach;
        if (point.lat - self.center.lat).abs() > of_latitude {
            return false;
        }
        let apart = (point.lon - self.center.lon).abs();
        if apart.min(360.0 - apart) > of_longitude {
            return false;
        }
        self.center.meters_to(point) <= self.meters
    }
}

/// The parameter `validation_method` of geo queries: how latitudes beyond ±90° and longitudes beyond ±180° are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Validation {
    /// They are errors.
    #[default]
    Strict,
    /// They stand for the point that is reached by going on beyond a pole or round the earth.
    Coerce,
    /// They are taken as they are.
    IgnoreMalformed,
}

impl Validation {
    /// Reads `validation_method`.
    ///
    /// # Errors
    /// For another name.
    pub fn read(node: &Node) -> Result<Self, BodyError> {
        let name = value::text(node)?;
        match name.to_ascii_uppercase().as_str() {
            "STRICT" => Ok(Self::Strict),
            "COERCE" => Ok(Self::Coerce),
            "IGNORE_MALFORMED" => Ok(Self::IgnoreMalformed),
            _ => Err(BodyError::illegal(format!(
                "operator needs to be either STRICT, COERCE or IGNORE_MALFORMED, but not [{name}]"
            ))),
        }
    }

    /// The point that is meant, for `of`.
    ///
    /// # Errors
    /// When it does not lie on the earth and has to.
    pub fn checked(self, point: GeoPoint, of: &str) -> Result<GeoPoint, BodyError> {
        match (self, point.problem(of)) {
            (Self::Strict, Some(problem)) => Err(BodyError::illegal(problem)),
            (Self::Coerce, Some(_)) => Ok(point.normalized()),
            _ => Ok(point),
        }
    }
}

/// Reads a point in any form that [`GeoPoint::parse`] takes.
///
/// # Errors
/// A parsing error with the place of a value that is not a point.
pub fn point(node: &Node) -> Result<GeoPoint, BodyError> {
    GeoPoint::parse(&node.to_value()).map_err(|reason| BodyError::parsing(node.at, reason))
}

/// What the body of a `geo_distance` query holds.
pub(super) fn geo_distance_shape() -> Shape {
    object(
        [("distance", length()), ("unit", text()), ("distance_type", text())]
            .into_iter()
            .chain(geo_members()),
    )
    .by_field(point_shape())
    .needs(&["distance"])
}

/// Reads a `geo_distance` query.
pub(super) fn geo_distance(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "geo_distance";
    let (mut common, mut ignore_unmapped) = (Common::default(), false);
    let (mut center, mut distance, mut unit) = (None, None, "m".to_owned());
    let mut validation = Validation::default();
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "distance" => distance = Some(value::text(node)?),
            "unit" => {
                unit = value::text(node)?;
                meters_of_unit(&unit).map_err(BodyError::illegal)?;
            }
            // `plane` is an approximation for speed, which is not needed here.
            "distance_type" => distance_type(node)?,
            "validation_method" => validation = Validation::read(node)?,
            "ignore_unmapped" => ignore_unmapped = value::boolean(node)?,
            _ if node.is_scalar() && common.take(CLAUSE, member)? => {}
            _ => one_field(&mut center, CLAUSE, member, point(node)?)?,
        }
    }
    let (field, center) = center.ok_or(BodyError::Required { field: "field" })?;
    let center = validation.checked(center, "query")?;
    let distance =
        distance.ok_or_else(|| BodyError::illegal("geo_distance requires 'distance' to be specified"))?;
    let meters = meters(&distance, &unit).map_err(BodyError::illegal)?;
    if meters.is_nan() || meters <= 0.0 {
        return Err(BodyError::illegal("distance must be greater than zero"));
    }
    let area = GeoArea::Circle(Circle::new(center, meters));
    Ok(common.query(QueryKind::Geo(GeoQuery { field, area, ignore_unmapped })))
}

/// Reads `distance_type`, which changes nothing here: distances are always those on the surface of a sphere.
///
/// # Errors
/// For another name.
pub fn distance_type(node: &Node) -> Result<(), BodyError> {
    let name = value::text(node)?;
    match name.to_ascii_lowercase().as_str() {
        "arc" | "plane" => Ok(()),
        _ => Err(BodyError::illegal(format!("No geo distance for [{name}]"))),
    }
}

/// What the body of a `geo_bounding_box` query holds.
pub(super) fn geo_bounding_box_shape() -> Shape {
    let corners = object([
        ("top_left", point_shape()),
        ("bottom_right", point_shape()),
        ("top_right", point_shape()),
        ("bottom_left", point_shape()),
        ("top", num()),
        ("left", num()),
        ("bottom", num()),
        ("right", num()),
        ("wkt", text()),
    ]);
    object(geo_members().chain([("type", text())])).by_field(corners)
}

/// What all queries for points take.
fn geo_members() -> impl Iterator<Item = Named> {
    let methods = one(&["STRICT", "COERCE", "IGNORE_MALFORMED"]);
    let ignore = flag().about("an index without the field finds nothing, instead of being an error");
    [("validation_method", methods.preset("STRICT")), ("ignore_unmapped", ignore.preset(false))]
        .into_iter()
        .chain(common())
}

/// A point in any of its forms.
fn point_shape() -> Shape {
    any().about("a point: `{\"lat\", \"lon\"}`, `[lon, lat]`, `\"lat,lon\"`, WKT, GeoJSON or a geohash")
}

/// Reads a `geo_bounding_box` query.
pub(super) fn geo_bounding_box(body: &Node, _: Context) -> Result<Query, BodyError> {
    const CLAUSE: &str = "geo_bounding_box";
    let (mut common, mut ignore_unmapped) = (Common::default(), false);
    let mut corners = None;
    let mut validation = Validation::default();
    for member in members(body, CLAUSE)? {
        let node = &member.value;
        match &*member.name {
            "validation_method" => validation = Validation::read(node)?,
            "ignore_unmapped" => ignore_unmapped = value::boolean(node)?,
            // Of old clients; it changes nothing.
            "type" if node.is_scalar() => {}
            _ if node.is_scalar() && common.take(CLAUSE, member)? => {}
            _ if node.as_object().is_some() => one_field(&mut corners, CLAUSE, member, bounds(node)?)?,
            _ => return Err(unknown_token(CLAUSE, member)),
        }
    }
    let (field, (first, second)) = corners.ok_or(BodyError::Required { field: "field" })?;
    let (first, second) = match validation {
        Validation::IgnoreMalformed => (first, second),
        _ => checked_corners(validation, first, second)?,
    };
    let area = GeoArea::Box { top: first.lat, left: first.lon, bottom: second.lat, right: second.lon };
    Ok(common.query(QueryKind::Geo(GeoQuery { field, area, ignore_unmapped })))
}

/// Reads the box that cells of a grid have to meet.
///
/// # Errors
/// If the value is not a box, or its top is below its bottom.
pub fn bounding_box(node: &Node) -> Result<GeoArea, BodyError> {
    let (first, second) = bounds(node)?;
    let (first, second) = checked_corners(Validation::default(), first, second)?;
    Ok(GeoArea::Box { top: first.lat, left: first.lon, bottom: second.lat, right: second.lon })
}

/// The corners of a box that is one.
fn checked_corners(
    validation: Validation,
    first: GeoPoint,
    second: GeoPoint,
) -> Result<(GeoPoint, GeoPoint), BodyError> {
    // Coerced, both would be the same meridian.
    let is_round = second.lon > first.lon && (second.lon - first.lon) % 360.0 == 0.0;
    let mut first = validation.checked(first, "bounding box")?;
    let mut second = validation.checked(second, "bounding box")?;
    if is_round {
        (first.lon, second.lon) = (-180.0, 180.0);
    }
    let problem = if first.lat < second.lat {
        format!("top is below bottom corner: {:?} vs. {:?}", first.lat, second.lat)
    } else if first.lat == second.lat {
        format!("top cannot be the same as bottom: {:?} == {:?}", first.lat, second.lat)
    } else if first.lon == second.lon {
        format!("left cannot be the same as right: {:?} == {:?}", first.lon, second.lon)
    } else {
        return Ok((first, second));
    };
    Err(BodyError::illegal(problem))
}

/// The north-western and the south-eastern corner of a box.
fn bounds(node: &Node) -> Result<(GeoPoint, GeoPoint), BodyError> {
    const CLAUSE: &str = "bounding box";
    let (mut top, mut left, mut bottom, mut right) = (None, None, None, None);
    for member in node.as_object().unwrap_or_default() {
        let node = &member.value;
        // A geohash stands for the corner of its cell that is named.
        let corner = |lat: &mut Option<f64>, lon: &mut Option<f64>, north, east| -> Result<(), BodyError> {
            let point = GeoPoint::parse_corner(&node.to_value(), Corner { north, east })
                .map_err(|reason| BodyError::parsing(node.at, reason))?;
            (*lat, *lon) = (Some(point.lat), Some(point.lon));
            Ok(())
        };
        match &*member.name {
            "top" => top = Some(value::double(node)?),
            "left" => left = Some(value::double(node)?),
            "bottom" => bottom = Some(value::double(node)?),
            "right" => right = Some(value::double(node)?),
            "top_left" | "topLeft" => corner(&mut top, &mut left, true, false)?,
            "top_right" | "topRight" => corner(&mut top, &mut right, true, true)?,
            "bottom_left" | "bottomLeft" => corner(&mut bottom, &mut left, false, false)?,
            "bottom_right" | "bottomRight" => corner(&mut bottom, &mut right, false, true)?,
            "wkt" => {
                let [west, east, north, south] = envelope(&value::text(node)?)?;
                (left, right, top, bottom) = (Some(west), Some(east), Some(north), Some(south));
            }
            name => {
                return Err(BodyError::parsing(
                    member.at,
                    format!("failed to parse {CLAUSE}. unexpected field [{name}]"),
                ));
            }
        }
    }
    match (top, left, bottom, right) {
        (Some(top), Some(left), Some(bottom), Some(right)) => {
            Ok((GeoPoint { lat: top, lon: left }, GeoPoint { lat: bottom, lon: right }))
        }
        _ => Err(BodyError::illegal(format!(
            "failed to parse {CLAUSE}. two opposite corners, or [top], [left], [bottom] and [right], are needed"
        ))),
    }
}

/// The four numbers of `BBOX (west, east, north, south)`.
fn envelope(text: &str) -> Result<[f64; 4], BodyError> {
    let inner = text.trim().get(4..).filter(|_| text.trim()[..4].eq_ignore_ascii_case("bbox"));
    let inner = inner.and_then(|rest| rest.trim().strip_prefix('(')?.strip_suffix(')'));
    let numbers = inner
        .map(|inner| inner.split(',').map(|number| number.trim().parse()).collect::<Result<Vec<f64>, _>>());
    match numbers {
        Some(Ok(numbers)) => <[f64; 4]>::try_from(numbers).ok(),
        _ => None,
    }
    .ok_or_else(|| BodyError::illegal(format!("failed to parse WKT bounding box [{text}]")))
}

/// Remembers what is said of the field; there may be one.
fn one_field<T>(
    found: &mut Option<(String, T)>,
    clause: &str,
    member: &Member,
    said: T,
) -> Result<(), BodyError> {
    match found.replace((member.name.to_string(), said)) {
        None => Ok(()),
        Some((first, _)) => Err(BodyError::parsing(
            member.at,
            format!(
                "[{clause}] query doesn't support multiple fields, found [{first}] and [{}]",
                member.name
            ),
        )),
    }
}

impl Clause for GeoQuery {
    fn lucene_name(&self) -> &'static str {
        match self.area {
            GeoArea::Circle(_) => "LatLonPointDistanceQuery",
            GeoArea::Box { .. } => "LatLonPointQuery",
        }
    }

    fn print(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = &self.field;
        match self.area {
            GeoArea::Circle(Circle { center, meters, .. }) => {
                write!(out, "{field}:{:?},{:?} +/- {meters:?} meters", center.lat, center.lon)
            }
            GeoArea::Box { top, left, bottom, right } => {
                write!(out, "{field}:[{bottom:?} TO {top:?}],[{left:?} TO {right:?}]")
            }
        }
    }

    no_children!();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point() -> impl Strategy<Value = GeoPoint> {
        (-90.0..=90.0f64, -180.0..=180.0f64).prop_map(|(lat, lon)| GeoPoint { lat, lon })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn circles_have_the_points_that_are_near(center in point(), other in point(), more in -1.0..1.0f64) {
            let distance = center.meters_to(other);
            // Close to the edge, where only the distance decides, and far from it.
            for meters in [distance * (1.0 + more * 1e-9), distance * (1.0 + more), 20_100_000.0] {
                let circle = Circle::new(center, meters.max(1e-6));
                prop_assert_eq!(circle.contains(other), distance <= circle.meters, "{:?} {:?}", circle, other);
            }
        }
    }
}
