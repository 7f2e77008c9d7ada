//! Points on the earth: how requests and documents write them, the number under which `geo_point` fields index one, and distances.

use serde_json::Value;

use super::source::each_at;

/// Mean radius of the earth in meters, as Lucene has it.
pub const EARTH_RADIUS: f64 = 6_371_008.771_4;

/// Degrees between two latitudes that are told apart: half a circle in 2^32 steps.
const LATITUDE_STEP: f64 = 180.0 / 4_294_967_296.0;
const LONGITUDE_STEP: f64 = 360.0 / 4_294_967_296.0;

/// Digits of a geohash.
const GEOHASH: &str = "0123456789bcdefghjkmnpqrstuvwxyz";
/// Digits of a geohash that say more than a point holds.
pub const GEOHASH_DIGITS: usize = 12;

/// A point on the earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoPoint {
    /// Latitude, north of the equator positive.
    pub lat: f64,
    /// Longitude, east of Greenwich positive.
    pub lon: f64,
}

impl GeoPoint {
    /// Reads a point in any of its forms: `{"lat", "lon"}`, GeoJSON, `"lat,lon"`, `"POINT (lon lat)"`, a geohash, or `[lon, lat]`. Whether it
    /// lies on the earth is not checked.
    ///
    /// # Errors
    /// A message that says why the value is not a point.
    pub fn parse(value: &Value) -> Result<Self, String> {
        Self::parse_corner(value, Corner::SOUTH_WEST)
    }

    /// Does the same, with another corner of the cell that a geohash stands for.
    ///
    /// # Errors
    /// As [`GeoPoint::parse`].
    pub fn parse_corner(value: &Value, corner: Corner) -> Result<Self, String> {
        let point = Self::read(value, corner)?;
        match point.lat.is_finite() && point.lon.is_finite() {
            true => Ok(point),
            false => Err("latitude and longitude must be finite numbers".to_owned()),
        }
    }

    /// Reads a point that has to lie on the earth; `of` is what it is given for.
    ///
    /// # Errors
    /// As [`GeoPoint::parse`], and the message of [`GeoPoint::problem`].
    pub fn on_earth(value: &Value, of: &str) -> Result<Self, String> {
        let point = Self::parse(value)?;
        point.problem(of).map_or(Ok(point), Err)
    }

    fn read(value: &Value, corner: Corner) -> Result<Self, String> {
        match value {
            Value::String(text) => Self::from_text(text, corner),
            Value::Array(_) => Self::from_position(value),
            Value::Object(members) if members.contains_key("type") || members.contains_key("coordinates") => {
                let is_point = members
                    .get("type")
                    .and_then(Value::as_str)
                    .is_some_and(|kind| kind.eq_ignore_ascii_case("point"));
                match members.get("coordinates") {
                    Some(position) if is_point && members.len() == 2 => Self::from_position(position),
                    _ => Err("[type] for geo_point can only be 'Point', with [coordinates]".to_owned()),
                }
            }
            Value::Object(members) => {
                if let Some(unknown) =
                    members.keys().find(|key| !matches!(key.as_str(), "lat" | "lon" | "z" | "geohash"))
                {
                    return Err(format!(
                        "field [{unknown}] not supported - must be one of: lon, lat, z, type, coordinates, geohash"
                    ));
                }
                match (members.get("geohash"), members.get("lat"), members.get("lon")) {
                    (Some(Value::String(hash)), None, None) => Self::from_geohash(hash, corner),
                    (Some(_), ..) => Err("field must be either lat/lon or geohash".to_owned()),
                    (None, Some(lat), Some(lon)) => {
                        let degrees = |value, name: &str| {
                            degrees(value).ok_or(format!("[{name}] must be a valid double value"))
                        };
                        Ok(Self { lat: degrees(lat, "lat")?, lon: degrees(lon, "lon")? })
                    }
                    (None, Some(_), None) => Err("Required [lon]".to_owned()),
                    (None, None, _) => Err("Required [lat]".to_owned()),
                }
            }
            _ => Err("geo_point expected".to_owned()),
        }
    }

    /// The points that a document has at a path. What lies on no earth, or is no point, is left out; `null_value` stands for a null.
    pub fn all_at(source: &Value, path: &str, null_value: Option<&Value>) -> Vec<Self> {
        let mut points = Vec::new();
        each_at(source, path, &mut |value| Self::collect(value, null_value, &mut points));
        points
    }

    fn collect(value: &Value, null_value: Option<&Value>, points: &mut Vec<Self>) {
        match value {
            Value::Array(values) if !Self::is_position(values) => {
                values.iter().for_each(|value| Self::collect(value, null_value, points));
            }
            Value::Null => points.extend(null_value.and_then(|value| Self::parse(value).ok())),
            value => {
                let point = Self::parse(value).ok().filter(|point| point.problem("").is_none());
                points.extend(point);
            }
        }
    }

    /// Whether an array is one point, and no list of points.
    pub(crate) fn is_position(values: &[Value]) -> bool {
        values.first().is_some_and(Value::is_number)
    }

    fn from_position(value: &Value) -> Result<Self, String> {
        match value.as_array().map(Vec::as_slice) {
            // A height, which is ignored, may follow.
            Some([lon, lat, rest @ ..])
                if rest.len() < 2 && [lon, lat].into_iter().chain(rest).all(Value::is_number) =>
            {
                Ok(Self { lat: lat.as_f64().unwrap_or(f64::NAN), lon: lon.as_f64().unwrap_or(f64::NAN) })
            }
            _ => Err("[coordinates] must be [longitude, latitude]".to_owned()),
        }
    }

    fn from_text(text: &str, corner: Corner) -> Result<Self, String> {
        let text = text.trim();
        let unreadable = || format!("failed to parse [{text}] as a geo_point");
        if text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("point")) {
            let inner = text[5..].trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            let numbers: Vec<f64> = inner
                .ok_or_else(unreadable)?
                .split_whitespace()
                .map(|number| number.parse().map_err(|_| unreadable()))
                .collect::<Result<_, _>>()?;
            return match numbers[..] {
                [lon, lat] | [lon, lat, _] => Ok(Self { lat, lon }),
                _ => Err(unreadable()),
            };
        }
        if !text.contains(',') {
            return Self::from_geohash(text, corner);
        }
        let mut parts = text.split(',').map(str::trim);
        let mut next = |name: &str| -> Result<f64, String> {
            let part = parts.next().ok_or_else(unreadable)?;
            part.parse().map_err(|_| format!("{name} must be a number"))
        };
        let point = Self { lat: next("latitude")?, lon: next("longitude")? };
        // A height, which is ignored, may follow.
        match (parts.next().map(str::parse::<f64>), parts.next()) {
            (None | Some(Ok(_)), None) => Ok(point),
            _ => Err(unreadable()),
        }
    }

    /// A corner of a geohash's cell.
    fn from_geohash(hash: &str, corner: Corner) -> Result<Self, String> {
        if hash.is_empty() {
            return Err("empty geohash".to_owned());
        }
        let (mut lat, mut lon) = ((-90.0, 90.0), (-180.0, 180.0));
        let mut of_longitude = true;
        for (place, digit) in hash.chars().enumerate() {
            let bits = GEOHASH
                .find(digit.to_ascii_lowercase())
                .ok_or_else(|| format!("unsupported symbol [{digit}] in geohash [{hash}]"))?;
            if place >= GEOHASH_DIGITS {
                continue;
            }
            for bit in (0..5).rev() {
                let range = if of_longitude { &mut lon } else { &mut lat };
                let middle: f64 = f64::midpoint(range.0, range.1);
                if bits >> bit & 1 == 1 {
                    range.0 = middle
                } else {
                    range.1 = middle
                }
                of_longitude = !of_longitude;
            }
        }
        Ok(Self {
            lat: if corner.north { lat.1 } else { lat.0 },
            lon: if corner.east { lon.1 } else { lon.0 },
        })
    }

    /// The cell of so many digits that the point is in.
    pub fn geohash(self, digits: usize) -> String {
        let (mut lat, mut lon) = ((-90.0, 90.0), (-180.0, 180.0));
        let mut of_longitude = true;
        let mut hash = String::with_capacity(digits);
        for _ in 0..digits {
            let mut bits = 0;
            for _ in 0..5 {
                let (range, degrees) = if of_longitude { (&mut lon, self.lon) } else { (&mut lat, self.lat) };
                let middle: f64 = f64::midpoint(range.0, range.1);
                let is_upper = degrees >= middle;
                *(if is_upper { &mut range.0 } else { &mut range.1 }) = middle;
                bits = bits << 1 | usize::from(is_upper);
                of_longitude = !of_longitude;
            }
            hash.push_str(&GEOHASH[bits..=bits]);
        }
        hash
    }

    /// Why the point does not lie on the earth, as Elasticsearch says it; `of` is what it was given for.
    pub fn problem(self, of: &str) -> Option<String> {
        if !(-90.0..=90.0).contains(&self.lat) {
            return Some(format!("illegal latitude value [{:?}] for {of}", self.lat));
        }
        (!(-180.0..=180.0).contains(&self.lon))
            .then(|| format!("illegal longitude value [{:?}] for {of}", self.lon))
    }

    /// The point on the earth that is reached by going on beyond a pole or round the earth.
    #[must_use]
    pub fn normalized(self) -> Self {
        let mut lat = (self.lat + 180.0).rem_euclid(360.0) - 180.0;
        let mut lon = self.lon;
        if lat.abs() > 90.0 {
            lat = 180.0_f64.copysign(lat) - lat;
            lon += 180.0;
        }
        if !(-180.0..=180.0).contains(&lon) {
            lon = (lon + 180.0).rem_euclid(360.0) - 180.0;
        }
        Self { lat, lon }
    }

    /// The number under which the point is indexed: each coordinate in 32 bits, as Lucene rounds them.
    pub fn encoded(self) -> i64 {
        let steps = |degrees: f64, step: f64, most: f64| -> i32 {
            // The cast saturates, so that the highest value is the last step.
            if degrees >= most { i32::MAX } else { (degrees / step).floor() as i32 }
        };
        let lat = steps(self.lat, LATITUDE_STEP, 90.0);
        let lon = steps(self.lon, LONGITUDE_STEP, 180.0);
        i64::from(lat) << 32 | i64::from(lon.cast_unsigned())
    }

    /// The point that was indexed under a number.
    pub fn decoded(encoded: i64) -> Self {
        let lat = (encoded >> 32) as i32;
        let lon = encoded as i32;
        Self { lat: f64::from(lat) * LATITUDE_STEP, lon: f64::from(lon) * LONGITUDE_STEP }
    }

    /// Meters to another point, along the surface.
    pub fn meters_to(self, other: Self) -> f64 {
        let (from, to) = (self.lat.to_radians(), other.lat.to_radians());
        let half = |difference: f64| (difference / 2.0).sin().powi(2);
        let of_longitudes = half((other.lon - self.lon).to_radians());
        let chord = half(to - from) + from.cos() * to.cos() * of_longitudes;
        2.0 * EARTH_RADIUS * chord.sqrt().min(1.0).asin()
    }
}

/// A corner of a geohash's cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corner {
    pub north: bool,
    pub east: bool,
}

impl Corner {
    /// The one that stands for the cell where a point is wanted.
    pub const SOUTH_WEST: Self = Self { north: false, east: false };
}

/// The cells around that of a geohash, of as many digits.
pub fn neighbours(hash: &str) -> Vec<String> {
    let corner = |corner| GeoPoint::from_geohash(hash, corner).ok();
    let (south_west, north_east) = (corner(Corner::SOUTH_WEST), corner(Corner { north: true, east: true }));
    let Some((low, high)) = south_west.zip(north_east) else { return Vec::new() };
    let (height, width) = (high.lat - low.lat, high.lon - low.lon);
    let mut found = Vec::with_capacity(8);
    for (north, east) in (-1..=1).flat_map(|north| (-1..=1).map(move |east| (north, east))) {
        let lat = f64::midpoint(low.lat, high.lat) + f64::from(north) * height;
        let lon = f64::midpoint(low.lon, high.lon) + f64::from(east) * width;
        // Nothing is beyond a pole.
        if (north, east) != (0, 0) && (-90.0..=90.0).contains(&lat) {
            found.push(GeoPoint { lat, lon: (lon + 180.0).rem_euclid(360.0) - 180.0 }.geohash(hash.len()));
        }
    }
    found
}

/// Digits of the geohashes whose cells are about as wide as a number of meters, as Elasticsearch counts them.
pub fn geohash_digits(meters: f64) -> usize {
    const EQUATOR: f64 = 2.0 * std::f64::consts::PI * 6_378_137.0;
    const POLAR_DISTANCE: f64 = std::f64::consts::PI * 6_356_752.314_245;
    if meters <= 0.0 {
        return GEOHASH_DIGITS;
    }
    let ratio = 1.0 + POLAR_DISTANCE / EQUATOR;
    let cells = (EQUATOR / (meters / ratio)).ceil();
    let bits = cells.log2().round().max(0.0) as usize;
    let (full, left) = (bits / 5, bits % 5);
    (2 * full + usize::from(left > 0) + usize::from(left > 3)).min(GEOHASH_DIGITS)
}

fn degrees(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// Meters of a distance such as `12km` or `1.5 mi`; without a unit it is one of `unit`.
///
/// # Errors
/// The message about what is no distance, or an unknown unit.
pub fn meters(text: &str, unit: &str) -> Result<f64, String> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    // `e` may belong to the number.
    let split = match text[split..].strip_prefix(['e', 'E']) {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '+') => {
            let digits = rest[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 1);
            split + 2 + digits
        }
        _ => split,
    };
    let (number, own) = text.split_at(split);
    let factor = meters_of_unit(if own.is_empty() { unit } else { own })?;
    let number: f64 = number.trim().parse().map_err(|_| format!("failed to parse distance [{text}]"))?;
    Ok(number * factor)
}

/// Meters of a unit of length.
///
/// # Errors
/// The message about an unknown unit.
pub fn meters_of_unit(unit: &str) -> Result<f64, String> {
    Ok(match unit.trim() {
        "m" | "meters" => 1.0,
        "km" | "kilometers" => 1000.0,
        "cm" | "centimeters" => 0.01,
        "mm" | "millimeters" => 0.001,
        "mi" | "miles" => 1609.344,
        "yd" | "yards" => 0.9144,
        "ft" | "feet" => 0.3048,
        "in" | "inch" => 0.0254,
        "NM" | "nmi" | "nauticalmiles" => 1852.0,
        other => return Err(format!("No distance unit match [{other}]")),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_have_neighbours_and_sizes() {
        let amsterdam = GeoPoint { lat: 52.22, lon: 4.53 };
        assert_eq!([amsterdam.geohash(5), amsterdam.geohash(3)], ["u171p", "u17"]);
        assert_eq!(GeoPoint { lat: 42.605, lon: -5.603 }.geohash(5), "ezs42");
        let mut around = super::neighbours("ezs42");
        around.sort();
        assert_eq!(around, ["ezefp", "ezefr", "ezefx", "ezs40", "ezs41", "ezs43", "ezs48", "ezs49"]);
        // Round the date line, and not beyond a pole.
        assert!(super::neighbours("8").contains(&"x".to_owned()));
        assert_eq!(super::neighbours("zz").len(), 5);
        let digits = |meters| super::geohash_digits(meters);
        assert_eq!([digits(5_000.0), digits(1.0), digits(100_000.0), digits(0.0)], [6, 11, 4, 12]);
    }

    #[test]
    fn all_forms_say_the_same_point() {
        let point = GeoPoint { lat: 41.12, lon: -71.34 };
        for value in [
            json!({"lat": 41.12, "lon": -71.34}),
            json!({"lat": "41.12", "lon": "-71.34"}),
            json!({"type": "Point", "coordinates": [-71.34, 41.12]}),
            json!([-71.34, 41.12]),
            json!([-71.34, 41.12, 12.0]),
            json!({"lat": 41.12, "lon": -71.34, "z": 3}),
            json!("41.12,-71.34,7"),
            json!("41.12,-71.34"),
            json!("41.12, -71.34"),
            json!("POINT (-71.34 41.12)"),
            json!("point(-71.34 41.12)"),
        ] {
            assert_eq!(GeoPoint::parse(&value), Ok(point), "{value}");
        }
        let hashed = GeoPoint::parse(&json!("drm3btev3e86")).unwrap();
        assert!((hashed.lat - 41.12).abs() < 1e-6 && (hashed.lon + 71.34).abs() < 1e-6, "{hashed:?}");
        let corner = |north, east| GeoPoint::parse_corner(&json!("d"), Corner { north, east }).unwrap();
        assert_eq!(corner(true, false), GeoPoint { lat: 45.0, lon: -90.0 });
        assert_eq!(corner(false, true), GeoPoint { lat: 0.0, lon: -45.0 });
        let document = json!({"a": [{"p": [[1, 2, 3], [4, 5, 6]]}, {"p": [200, 100]}, {"p": ["7,8", null, [1, 2, 3, 4]]}]});
        let of = |lat, lon| GeoPoint { lat, lon };
        assert_eq!(
            GeoPoint::all_at(&document, "a.p", Some(&json!([9, 9]))),
            [of(2.0, 1.0), of(5.0, 4.0), of(7.0, 8.0), of(9.0, 9.0)]
        );
        for wrong in [
            json!(1),
            json!("1,x"),
            json!("1,2,3,4"),
            json!("1,2,abc"),
            json!("nan,nan"),
            json!("1e400,0"),
            json!("POINT(inf 1)"),
            json!("1,2,"),
            json!([1, 2, "x"]),
            json!([1, 2, 3, 4]),
            json!("drm3btev3e86!"),
            json!({"type": "point", "coordinates": [1, 2], "foo": 1}),
            json!("a!b"),
            json!({"lat": 1}),
            json!({"lat": 1, "lon": 2, "x": 3}),
            json!({"type": "Polygon", "coordinates": [1, 2]}),
            json!([1]),
            json!("POINT (1)"),
            json!(null),
        ] {
            assert!(GeoPoint::parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn distances_are_those_of_the_earth() {
        let of = |lat, lon| GeoPoint { lat, lon };
        // A quarter of a meridian, and the two ways round the 180th.
        assert!((of(0.0, 0.0).meters_to(of(90.0, 0.0)) - 10_007_557.2).abs() < 1.0);
        assert!((of(0.0, 179.5).meters_to(of(0.0, -179.5)) - 111_195.08).abs() < 1.0);
        // Paris to London.
        let to_london = of(48.8566, 2.3522).meters_to(of(51.5074, -0.1278));
        assert!((to_london - 343_556.5).abs() < 100.0, "{to_london}");
        for (text, meters_of) in [
            ("12km", 12_000.0),
            ("1.5 mi", 2414.016),
            ("7", 7.0),
            ("1e3m", 1000.0),
            ("2NM", 3704.0),
            ("1e2", 100.0),
        ] {
            assert!((meters(text, "m").unwrap() - meters_of).abs() < 1e-6, "{text}");
        }
        for wrong in ["", "km", "12 parsecs", "x1km"] {
            assert!(meters(wrong, "m").is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn points_are_indexed_to_a_hundred_millionth(lat in -90.0..=90.0f64, lon in -180.0..=180.0f64) {
            let point = GeoPoint { lat, lon };
            let again = GeoPoint::decoded(point.encoded());
            prop_assert!((again.lat - lat).abs() <= LATITUDE_STEP && (again.lon - lon).abs() <= LONGITUDE_STEP);
            prop_assert_eq!(again.encoded(), point.encoded());
            prop_assert!(point.meters_to(again) < 0.02);
            let far = GeoPoint { lat: lat + 360.0, lon: lon - 720.0 }.normalized();
            prop_assert!(far.meters_to(point) < 0.001, "{:?} {:?}", far, point);
        }
    }
}
