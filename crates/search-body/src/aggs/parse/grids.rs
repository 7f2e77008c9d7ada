//! Parsers of `geohash_grid` and `geotile_grid`.

use sparrow_aggregations::{AggregationKind, Cells, Grid, ValueSource};
use sparrow_mapping::geo::{geohash_digits, meters};
use sparrow_query::GeoArea;
use sparrow_query::geo::bounding_box;

use super::parameter_reader::ParameterReader;
use super::shape::*;
use sparrow_wire::BodyError;
use sparrow_wire::json::Member;

/// Number of cells that an answer has unless it is asked for another.
const DEFAULT_SIZE: usize = 10_000;
/// Level of zoom of tiles where none is given.
pub const DEFAULT_ZOOM: u8 = 7;
/// Digits of geohashes where no precision is given.
const DEFAULT_DIGITS: u8 = 5;
/// Highest level of zoom.
const MOST_ZOOM: i64 = 29;
/// Most digits of a geohash.
const MOST_DIGITS: i64 = 12;

/// The area that the cells of a grid have to meet.
pub fn bounds_shape() -> Named {
    let text = "corners, or `top`, `left`, `bottom` and `right`: cells that lie outside are left out";
    ("bounds", open().about(text))
}

pub fn zoom_shape() -> Named {
    ("precision", int().about("level of zoom").preset(DEFAULT_ZOOM))
}

pub fn geotile_grid_shape() -> Shape {
    of_values([field()], [zoom_shape(), bounds_shape(), ("size", int().preset(DEFAULT_SIZE)), shard_size()])
}

pub fn geohash_grid_shape() -> Shape {
    let digits = ("precision", count().about("digits, or a distance").preset(DEFAULT_DIGITS));
    of_values([field()], [digits, bounds_shape(), ("size", int().preset(DEFAULT_SIZE)), shard_size()])
}

pub fn grid(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let tiles = reader.parser == "geotile_grid";
    let cells = if tiles { Cells::Tiles(DEFAULT_ZOOM) } else { Cells::Geohash(DEFAULT_DIGITS) };
    let mut grid = Grid { source: ValueSource::default(), cells, within: None, size: DEFAULT_SIZE };
    for member in reader.members() {
        if reader.source(member, &mut grid.source)? {
            continue;
        }
        match &*member.name {
            "precision" if tiles => grid.cells = zoom(&reader, member)?,
            "precision" => grid.cells = digits(&reader, member)?,
            "bounds" => grid.within = Some(bounds(&reader, member)?),
            "size" => grid.size = reader.whole(member, 1, "size")? as usize,
            // Every index is looked at as a whole: there is nothing that a larger number would make more exact.
            "shard_size" => {
                reader.whole(member, 1, "shard_size")?;
            }
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&grid.source)?;
    Ok(AggregationKind::Grid(grid))
}

/// Reads a level of zoom, also of a source of `composite`.
pub fn zoom(reader: &ParameterReader<'_>, member: &Member) -> Result<Cells, BodyError> {
    let zoom = reader.whole(member, i64::MIN, "precision")?;
    match (0..=MOST_ZOOM).contains(&zoom) {
        true => Ok(Cells::Tiles(zoom as u8)),
        false => Err(reader.invalid(
            member,
            format!("Invalid geotile_grid precision of {zoom}. Must be between 0 and {MOST_ZOOM}."),
        )),
    }
}

/// Reads the digits of geohashes, or a distance that their cells are to be about as wide as.
fn digits(reader: &ParameterReader<'_>, member: &Member) -> Result<Cells, BodyError> {
    let text = reader.text(member)?;
    let digits = match text.parse::<i64>() {
        Ok(digits) => digits,
        Err(_) => {
            let width = meters(&text, "m").map_err(|reason| reader.invalid(member, reason))?;
            geohash_digits(width) as i64
        }
    };
    match (1..=MOST_DIGITS).contains(&digits) {
        true => Ok(Cells::Geohash(digits as u8)),
        false => Err(reader.invalid(
            member,
            format!(
                "Invalid geohash aggregation precision of {digits}. Must be between 1 and {MOST_DIGITS}."
            ),
        )),
    }
}

/// Reads the box that cells have to meet.
pub fn bounds(reader: &ParameterReader<'_>, member: &Member) -> Result<GeoArea, BodyError> {
    if member.value.as_object().is_none() {
        return Err(reader.wrong_type(&member.name, &member.value));
    }
    bounding_box(&member.value).map_err(|error| error.within(reader.parser, &member.name, member.value.at))
}
