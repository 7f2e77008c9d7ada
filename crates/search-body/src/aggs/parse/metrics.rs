//! Parsers of metric aggregations, which compute values rather than buckets.

use std::sync::LazyLock;

use sparrow_aggregations::{AggregationKind, Percentiles, StatsKind, ValueSource};

use super::parameter_reader::ParameterReader;
use super::shape::*;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member};

/// Default `precision_threshold` of `cardinality`: the number of distinct values up to which the count is
/// exact.
const DEFAULT_THRESHOLD: usize = 3_000;
/// Highest `precision_threshold` that has an effect; larger ones are lowered to it.
const MOST_THRESHOLD: usize = 40_000;

pub fn stats_shape() -> Shape {
    of_values(typed(), [])
}

pub fn extended_stats_shape() -> Shape {
    of_values(typed(), [("sigma", num().preset(2))])
}

pub fn stats(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut source = ValueSource::default();
    let mut sigma = 2.0;
    for member in reader.members() {
        if reader.source(member, &mut source)? {
            continue;
        }
        match &*member.name {
            "sigma" if reader.parser == "extended_stats" => {
                sigma = reader.float(member)?;
                if sigma < 0.0 {
                    return Err(reader.invalid(
                        member,
                        format!(
                            "[sigma] must be greater than or equal to 0. Found [{sigma:?}] in [{}]",
                            reader.name
                        ),
                    ));
                }
            }
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&source)?;
    let kind = match reader.parser {
        "avg" => StatsKind::Avg,
        "min" => StatsKind::Min,
        "max" => StatsKind::Max,
        "sum" => StatsKind::Sum,
        "value_count" => StatsKind::ValueCount,
        "stats" => StatsKind::Stats,
        _ => StatsKind::Extended(sigma),
    };
    Ok(AggregationKind::Stats(kind, source))
}

pub fn cardinality_shape() -> Shape {
    let hints =
        ["direct", "global_ordinals", "segment_ordinals", "save_time_heuristic", "save_memory_heuristic"];
    let own = [("precision_threshold", int()), ("rehash", flag()), ("execution_hint", one(&hints))];
    of_values(typed(), own)
}

pub fn cardinality(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut source = ValueSource::default();
    let mut precision_threshold = DEFAULT_THRESHOLD;
    for member in reader.members() {
        if reader.source(member, &mut source)? {
            continue;
        }
        match &*member.name {
            "precision_threshold" => {
                let threshold = reader.whole(member, i64::MIN, "precisionThreshold")?;
                let Ok(threshold) = usize::try_from(threshold) else {
                    return Err(reader.invalid(
                        member,
                        format!(
                            "[precisionThreshold] must be greater than or equal to 0. Found [{threshold}] in [{}]",
                            reader.name
                        ),
                    ));
                };
                precision_threshold = threshold.min(MOST_THRESHOLD);
            }
            "rehash" => {
                reader.boolean(member)?;
            }
            "execution_hint" => match reader.text(member)?.as_str() {
                "direct"
                | "global_ordinals"
                | "segment_ordinals"
                | "save_time_heuristic"
                | "save_memory_heuristic" => {}
                other => {
                    return Err(reader.invalid(
                        member,
                        format!("Invalid execution mode for cardinality aggregation: [{other}]"),
                    ));
                }
            },
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&source)?;
    Ok(AggregationKind::Cardinality { source, precision_threshold })
}

/// Highest number of points in one `percentiles` or `percentile_ranks`.
const MOST_POINTS: usize = 1_024;

pub fn percentiles_shape() -> Shape {
    percentiles_by("percents")
}

pub fn percentile_ranks_shape() -> Shape {
    percentiles_by("values").needs(&["field", "values"])
}

fn percentiles_by(points: &'static str) -> Shape {
    let own = [(points, list(num())), keyed(true), ("tdigest", object(digest())), ("hdr", hdr_shape())];
    of_values(typed(), own)
}

/// The options of a digest.
fn digest() -> [Named; 2] {
    [("compression", num().preset(100)), ("execution_hint", one(&["default", "high_accuracy"]))]
}

fn hdr_shape() -> Shape {
    object([("number_of_significant_value_digits", int())])
}

pub fn percentiles(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let ranks = reader.parser == "percentile_ranks";
    let points_key = if ranks { "values" } else { "percents" };
    let mut percentiles = Percentiles {
        source: ValueSource::default(),
        points: if ranks { Vec::new() } else { vec![1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0] },
        keyed: true,
        hdr: None,
    };
    let (mut digest, mut given) = (false, false);
    for member in reader.members() {
        if reader.source(member, &mut percentiles.source)? {
            continue;
        }
        match &*member.name {
            key if key == points_key => {
                given = true;
                percentiles.points = reader.floats(member)?;
                if percentiles.points.len() > MOST_POINTS {
                    return Err(BodyError::illegal(format!(
                        "[{}] has [{}] {points_key}, at most [{MOST_POINTS}] are possible on this server",
                        reader.name,
                        percentiles.points.len()
                    )));
                }
                if percentiles.points.is_empty() {
                    return Err(reader.invalid(
                        member,
                        format!("[{points_key}] must not be an empty array: [{}]", reader.name),
                    ));
                }
                let outside = percentiles.points.iter().find(|point| !(0.0..=100.0).contains(*point));
                if let (Some(point), false) = (outside, ranks) {
                    return Err(reader.invalid(
                        member,
                        format!("percent must be in [0,100], got [{point:?}]: [{}]", reader.name),
                    ));
                }
                percentiles.points.sort_by(f64::total_cmp);
            }
            "keyed" => percentiles.keyed = reader.boolean(member)?,
            "tdigest" => {
                digest = true;
                tdigest(&reader, member)?;
            }
            "hdr" => percentiles.hdr = Some(hdr(&reader, member)?),
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&percentiles.source)?;
    if digest && percentiles.hdr.is_some() {
        return Err(BodyError::illegal("Only one percentiles method should be declared."));
    }
    if ranks && !given {
        return Err(BodyError::Required { field: "values" });
    }
    Ok(match ranks {
        true => AggregationKind::PercentileRanks(percentiles),
        false => AggregationKind::Percentiles(percentiles),
    })
}

/// Options of the digest are read and checked; it is finer here than any of them asks for.
fn tdigest(reader: &ParameterReader<'_>, member: &Member) -> Result<(), BodyError> {
    let Json::Object(members) = &member.value.json else {
        return Err(reader.wrong_type("tdigest", &member.value));
    };
    for option in members {
        match &*option.name {
            "compression" => {
                let compression = reader.float(option)?;
                if compression < 0.0 {
                    return Err(reader.invalid(
                        option,
                        format!("[compression] must be greater than or equal to 0. Found [{compression:?}]"),
                    ));
                }
            }
            "execution_hint" => hint(reader, option)?,
            _ => return Err(reader.unknown_in(&object(digest()), option)),
        }
    }
    Ok(())
}

fn hint(reader: &ParameterReader<'_>, member: &Member) -> Result<(), BodyError> {
    match reader.text(member)?.as_str() {
        "default" | "high_accuracy" => Ok(()),
        other => Err(reader.invalid(
            member,
            format!("Invalid execution_hint [{other}], valid values are [default, high_accuracy]"),
        )),
    }
}

fn hdr(reader: &ParameterReader<'_>, member: &Member) -> Result<u8, BodyError> {
    let Json::Object(members) = &member.value.json else {
        return Err(reader.wrong_type("hdr", &member.value));
    };
    let mut digits = 3;
    for option in members {
        match &*option.name {
            "number_of_significant_value_digits" => {
                digits = reader.whole(option, i64::MIN, "number_of_significant_value_digits")?;
                if !(0..=5).contains(&digits) {
                    return Err(
                        reader.invalid(option, "[numberOfSignificantValueDigits] must be between 0 and 5")
                    );
                }
            }
            _ => return Err(reader.unknown_in(&hdr_shape(), option)),
        }
    }
    Ok(digits as u8)
}

pub fn string_stats_shape() -> Shape {
    of_values(typed(), [("show_distribution", flag().preset(false))])
}

pub fn string_stats(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let (mut source, mut distribution) = (ValueSource::default(), false);
    for member in reader.members() {
        if reader.source(member, &mut source)? {
            continue;
        }
        match &*member.name {
            "show_distribution" => distribution = reader.boolean(member)?,
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&source)?;
    Ok(AggregationKind::StringStats { source, distribution })
}

pub fn median_absolute_deviation_shape() -> Shape {
    of_values(typed(), digest())
}

/// `median_absolute_deviation` and `boxplot`, which read a digest too.
pub fn median_absolute_deviation(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut source = ValueSource::default();
    for member in reader.members() {
        if reader.source(member, &mut source)? {
            continue;
        }
        match &*member.name {
            "compression" => {
                let compression = reader.float(member)?;
                if compression <= 0.0 {
                    return Err(reader.invalid(
                        member,
                        format!(
                            "[compression] must be greater than 0. Found [{compression:?}] in [{}]",
                            reader.name
                        ),
                    ));
                }
            }
            "execution_hint" => hint(&reader, member)?,
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&source)?;
    Ok(match reader.parser {
        "boxplot" => AggregationKind::Boxplot(source),
        _ => AggregationKind::MedianAbsoluteDeviation(source),
    })
}

/// Where the values or the weights come from.
static WEIGHTED: LazyLock<Shape> =
    LazyLock::new(|| object([field(), ("missing", scalar())]).needs(&["field"]));

pub fn weighted_avg_shape() -> Shape {
    object([("value", WEIGHTED.clone()), ("weight", WEIGHTED.clone()), format(), value_type()])
        .needs(&["value", "weight"])
}

pub fn weighted_avg(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let inner = ParameterReader { known: WEIGHTED.names(), ..reader };
    let (mut value, mut weight, mut format) = (None, None, None);
    for member in reader.members() {
        match &*member.name {
            "value" | "weight" => {
                let Json::Object(members) = &member.value.json else {
                    return Err(reader.wrong_type(&member.name, &member.value));
                };
                let mut source = ValueSource::default();
                for part in members {
                    if !inner.source(part, &mut source)? {
                        return Err(inner.unknown(part));
                    }
                }
                reader.need_field(&source)?;
                *(if &*member.name == "value" { &mut value } else { &mut weight }) = Some(source);
            }
            "format" => format = Some(reader.format(member)?),
            "value_type" => {
                reader.text(member)?;
            }
            _ => return Err(reader.unknown(member)),
        }
    }
    match (value, weight) {
        (Some(value), Some(weight)) => Ok(AggregationKind::WeightedAvg { value, weight, format }),
        (None, _) => Err(BodyError::Required { field: "value" }),
        (_, None) => Err(BodyError::Required { field: "weight" }),
    }
}
