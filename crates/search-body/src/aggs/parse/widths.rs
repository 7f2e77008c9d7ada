//! Parsers of histograms that are asked for a number of buckets: `auto_date_histogram` and `variable_width_histogram`.

use sparrow_aggregations::{AggregationKind, AutoDates, MOST_UNITS, ValueSource, VariableWidths};
use sparrow_wire::Zone;

use super::histograms::zone;
use super::parameter_reader::ParameterReader;
use super::shape::*;
use sparrow_wire::BodyError;
use sparrow_wire::json::Member;

/// Number of buckets where none is given.
const DEFAULT_BUCKETS: usize = 10;
/// One more than `auto_date_histogram` may be asked for: each bucket may come of so many.
const MOST_DATES: usize = 65_536 / MOST_UNITS;
/// One more than `variable_width_histogram` may be asked for.
const MOST_WIDTHS: usize = 50_000;

pub fn auto_dates_shape() -> Shape {
    let units = ["year", "month", "day", "hour", "minute", "second"];
    of_values(untyped(), [time_zone(), buckets_shape(), ("minimum_interval", one(&units))])
}

fn buckets_shape() -> Named {
    ("buckets", int().about("at most so many").preset(DEFAULT_BUCKETS))
}

pub fn auto_dates(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut asked =
        AutoDates { source: ValueSource::default(), buckets: DEFAULT_BUCKETS, least: 0, zone: Zone::UTC };
    for member in reader.members() {
        if reader.source(member, &mut asked.source)? {
            continue;
        }
        match &*member.name {
            "buckets" => asked.buckets = buckets(&reader, member, MOST_DATES)?,
            "minimum_interval" => {
                let unit = reader.text(member)?;
                asked.least = AutoDates::level(&unit).ok_or_else(|| {
                    reader.invalid(
                        member,
                        format!(
                            "minimum_interval must be one of [year, month, day, hour, minute, second], found [{unit}]"
                        ),
                    )
                })?;
            }
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&asked.source)?;
    asked.zone = zone(&asked.source)?;
    Ok(AggregationKind::AutoDates(asked))
}

pub fn variable_widths_shape() -> Shape {
    of_values([field()], [buckets_shape(), shard_size(), ("initial_buffer", int())])
}

pub fn variable_widths(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut asked = VariableWidths { source: ValueSource::default(), buckets: DEFAULT_BUCKETS };
    for member in reader.members() {
        if reader.source(member, &mut asked.source)? {
            continue;
        }
        match &*member.name {
            "buckets" => asked.buckets = buckets(&reader, member, MOST_WIDTHS)?,
            // All values are looked at together: nothing is estimated from the first ones.
            "shard_size" => {
                reader.whole(member, 2, "shard_size")?;
            }
            "initial_buffer" => {
                reader.whole(member, 1, "initial_buffer")?;
            }
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&asked.source)?;
    Ok(AggregationKind::VariableWidths(asked))
}

fn buckets(reader: &ParameterReader<'_>, member: &Member, below: usize) -> Result<usize, BodyError> {
    let buckets = reader.whole(member, 1, "buckets")? as usize;
    match buckets < below {
        true => Ok(buckets),
        false => Err(reader.invalid(member, format!("buckets must be less than {below}"))),
    }
}
