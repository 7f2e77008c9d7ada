//! Parsers of metric aggregations, which compute values rather than buckets.

use sparrow_aggregations::{AggregationKind, Percentiles, StatsKind, ValueSource};

use super::options::Options;
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member};

/// Default `precision_threshold` of `cardinality`: the number of distinct values up to which the count is
/// exact.
const DEFAULT_THRESHOLD: usize = 3_000;
/// Highest `precision_threshold` that has an effect; larger ones are lowered to it.
const MOST_THRESHOLD: usize = 40_000;

pub fn stats(options: Options<'_>) -> Result<AggregationKind, BodyError> {
    const KNOWN: &[&str] = &["field", "missing", "format", "value_type"];
    let mut source = ValueSource::default();
    let mut sigma = 2.0;
    for member in options.members() {
        if options.source(member, &mut source, KNOWN)? {
            continue;
        }
        match &*member.name {
            "sigma" if options.parser == "extended_stats" => {
                sigma = options.float(member)?;
                if sigma < 0.0 {
                    return Err(options.invalid(
                        member,
                        format!(
                            "[sigma] must be greater than or equal to 0. Found [{sigma:?}] in [{}]",
                            options.name
                        ),
                    ));
                }
            }
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&source)?;
    let kind = match options.parser {
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

pub fn cardinality(options: Options<'_>) -> Result<AggregationKind, BodyError> {
    const KNOWN: &[&str] = &["field", "missing", "value_type", "precision_threshold", "execution_hint"];
    let mut source = ValueSource::default();
    let mut precision_threshold = DEFAULT_THRESHOLD;
    for member in options.members() {
        if options.source(member, &mut source, &["field", "missing", "value_type", "format"])? {
            continue;
        }
        match &*member.name {
            "precision_threshold" => {
                let threshold = options.whole(member, i64::MIN, "precisionThreshold")?;
                let Ok(threshold) = usize::try_from(threshold) else {
                    return Err(options.invalid(
                        member,
                        format!(
                            "[precisionThreshold] must be greater than or equal to 0. Found [{threshold}] in [{}]",
                            options.name
                        ),
                    ));
                };
                precision_threshold = threshold.min(MOST_THRESHOLD);
            }
            "rehash" => {
                options.boolean(member)?;
            }
            "execution_hint" => match options.text(member)?.as_str() {
                "direct"
                | "global_ordinals"
                | "segment_ordinals"
                | "save_time_heuristic"
                | "save_memory_heuristic" => {}
                other => {
                    return Err(options.invalid(
                        member,
                        format!("Invalid execution mode for cardinality aggregation: [{other}]"),
                    ));
                }
            },
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&source)?;
    Ok(AggregationKind::Cardinality { source, precision_threshold })
}

/// Highest number of points in one `percentiles` or `percentile_ranks`.
const MOST_POINTS: usize = 1_024;

pub fn percentiles(options: Options<'_>) -> Result<AggregationKind, BodyError> {
    const KNOWN: &[&str] =
        &["field", "missing", "format", "value_type", "percents", "values", "keyed", "tdigest", "hdr"];
    let ranks = options.parser == "percentile_ranks";
    let points_key = if ranks { "values" } else { "percents" };
    let mut percentiles = Percentiles {
        source: ValueSource::default(),
        points: if ranks { Vec::new() } else { vec![1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0] },
        keyed: true,
        hdr: None,
    };
    let (mut digest, mut given) = (false, false);
    for member in options.members() {
        if options.source(member, &mut percentiles.source, &["field", "missing", "format", "value_type"])? {
            continue;
        }
        match &*member.name {
            key if key == points_key => {
                given = true;
                percentiles.points = options.floats(member)?;
                if percentiles.points.len() > MOST_POINTS {
                    return Err(BodyError::illegal(format!(
                        "[{}] has [{}] {points_key}, at most [{MOST_POINTS}] are possible on this server",
                        options.name,
                        percentiles.points.len()
                    )));
                }
                if percentiles.points.is_empty() {
                    return Err(options.invalid(
                        member,
                        format!("[{points_key}] must not be an empty array: [{}]", options.name),
                    ));
                }
                let outside = percentiles.points.iter().find(|point| !(0.0..=100.0).contains(*point));
                if let (Some(point), false) = (outside, ranks) {
                    return Err(options.invalid(
                        member,
                        format!("percent must be in [0,100], got [{point:?}]: [{}]", options.name),
                    ));
                }
                percentiles.points.sort_by(f64::total_cmp);
            }
            "keyed" => percentiles.keyed = options.boolean(member)?,
            "tdigest" => {
                digest = true;
                tdigest(&options, member)?;
            }
            "hdr" => percentiles.hdr = Some(hdr(&options, member)?),
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&percentiles.source)?;
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

/// Validates the options of a t-digest and ignores them: the digest used here is finer than any that they can
/// ask for.
fn tdigest(options: &Options<'_>, member: &Member) -> Result<(), BodyError> {
    let Json::Object(members) = &member.value.json else {
        return Err(options.wrong_type("tdigest", &member.value));
    };
    for option in members {
        match &*option.name {
            "compression" => {
                let compression = options.float(option)?;
                if compression < 0.0 {
                    return Err(options.invalid(
                        option,
                        format!("[compression] must be greater than or equal to 0. Found [{compression:?}]"),
                    ));
                }
            }
            "execution_hint" => hint(options, option)?,
            _ => return Err(options.unknown(option, &["compression", "execution_hint"])),
        }
    }
    Ok(())
}

fn hint(options: &Options<'_>, member: &Member) -> Result<(), BodyError> {
    match options.text(member)?.as_str() {
        "default" | "high_accuracy" => Ok(()),
        other => Err(options.invalid(
            member,
            format!("Invalid execution_hint [{other}], valid values are [default, high_accuracy]"),
        )),
    }
}

fn hdr(options: &Options<'_>, member: &Member) -> Result<u8, BodyError> {
    let Json::Object(members) = &member.value.json else {
        return Err(options.wrong_type("hdr", &member.value));
    };
    let mut digits = 3;
    for option in members {
        match &*option.name {
            "number_of_significant_value_digits" => {
                digits = options.whole(option, i64::MIN, "number_of_significant_value_digits")?;
                if !(0..=5).contains(&digits) {
                    return Err(
                        options.invalid(option, "[numberOfSignificantValueDigits] must be between 0 and 5")
                    );
                }
            }
            _ => return Err(options.unknown(option, &["number_of_significant_value_digits"])),
        }
    }
    Ok(digits as u8)
}

pub fn string_stats(options: Options<'_>) -> Result<AggregationKind, BodyError> {
    const KNOWN: &[&str] = &["field", "missing", "show_distribution"];
    let (mut source, mut distribution) = (ValueSource::default(), false);
    for member in options.members() {
        if options.source(member, &mut source, &["field", "missing", "format", "value_type"])? {
            continue;
        }
        match &*member.name {
            "show_distribution" => distribution = options.boolean(member)?,
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&source)?;
    Ok(AggregationKind::StringStats { source, distribution })
}

/// Parses `median_absolute_deviation` or `boxplot`, both of which are computed from a t-digest.
pub fn median_absolute_deviation(options: Options<'_>) -> Result<AggregationKind, BodyError> {
    const KNOWN: &[&str] = &["field", "missing", "format", "value_type", "compression", "execution_hint"];
    let mut source = ValueSource::default();
    for member in options.members() {
        if options.source(member, &mut source, &["field", "missing", "format", "value_type"])? {
            continue;
        }
        match &*member.name {
            "compression" => {
                let compression = options.float(member)?;
                if compression <= 0.0 {
                    return Err(options.invalid(
                        member,
                        format!(
                            "[compression] must be greater than 0. Found [{compression:?}] in [{}]",
                            options.name
                        ),
                    ));
                }
            }
            "execution_hint" => hint(&options, member)?,
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&source)?;
    Ok(match options.parser {
        "boxplot" => AggregationKind::Boxplot(source),
        _ => AggregationKind::MedianAbsoluteDeviation(source),
    })
}

pub fn weighted_avg(options: Options<'_>) -> Result<AggregationKind, BodyError> {
    let (mut value, mut weight, mut format) = (None, None, None);
    for member in options.members() {
        match &*member.name {
            "value" | "weight" => {
                let Json::Object(members) = &member.value.json else {
                    return Err(options.wrong_type(&member.name, &member.value));
                };
                let mut source = ValueSource::default();
                for part in members {
                    if !options.source(part, &mut source, &["field", "missing"])? {
                        return Err(options.unknown(part, &["field", "missing"]));
                    }
                }
                options.need_field(&source)?;
                *(if &*member.name == "value" { &mut value } else { &mut weight }) = Some(source);
            }
            "format" => format = Some(options.text(member)?),
            "value_type" => {
                options.text(member)?;
            }
            _ => return Err(options.unknown(member, &["value", "weight", "format", "value_type"])),
        }
    }
    match (value, weight) {
        (Some(value), Some(weight)) => Ok(AggregationKind::WeightedAvg { value, weight, format }),
        (None, _) => Err(BodyError::Required { field: "value" }),
        (_, None) => Err(BodyError::Required { field: "weight" }),
    }
}
