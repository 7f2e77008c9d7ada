//! Aggregations that make buckets.

use serde_json::Value;
use sparrow_index::Zone;
use sparrow_index::aggregations::{
    AggregationKind, CalendarUnit, DateHistogram, Filters, Histogram, Interval, Order, OrderBy, Range,
    RangeBucket, Rounding, Selection, Terms, ValueSource,
};

use super::options::Options;
use super::scalar;
use crate::search::dsl::{self, Context};
use crate::search::error::SearchError;
use crate::search::json::{Json, Member, Node};

/// Buckets of a `terms` aggregation that asks for no number.
const DEFAULT_SIZE: usize = 10;

pub fn terms(options: Options<'_>) -> Result<AggregationKind, SearchError> {
    if options.parser == "rare_terms" {
        return rare_terms(options);
    }
    const KNOWN: &[&str] = &[
        "field",
        "missing",
        "value_type",
        "format",
        "size",
        "shard_size",
        "min_doc_count",
        "shard_min_doc_count",
        "order",
        "include",
        "exclude",
        "show_term_doc_count_error",
        "execution_hint",
        "collect_mode",
    ];
    let mut terms = Terms {
        source: ValueSource::default(),
        size: DEFAULT_SIZE,
        min_doc_count: 1,
        max_doc_count: None,
        order: vec![
            Order { by: OrderBy::Count, ascending: false },
            Order { by: OrderBy::Key, ascending: true },
        ],
        include: None,
        exclude: None,
        show_error: false,
    };
    for member in options.members() {
        if options.source(member, &mut terms.source, &["field", "missing", "value_type", "format"])? {
            continue;
        }
        match &*member.name {
            "size" => terms.size = options.whole(member, 1, "size")? as usize,
            // Every index is looked at as a whole: there is nothing that a larger number would make more exact.
            "shard_size" => {
                options.whole(member, 1, "shardSize")?;
            }
            "min_doc_count" => terms.min_doc_count = options.whole(member, 0, "minDocCount")? as u64,
            "shard_min_doc_count" => {
                options.whole(member, 0, "shardMinDocCount")?;
            }
            "order" => terms.order = options.order(member)?,
            "include" => terms.include = Some(selection(&options, member, true)?),
            "exclude" => terms.exclude = Some(selection(&options, member, false)?),
            "show_term_doc_count_error" => terms.show_error = options.boolean(member)?,
            // There is one way to count here, but a hint that is none is a mistake.
            "execution_hint" => {
                let hint = options.text(member)?;
                if !matches!(hint.as_str(), "map" | "global_ordinals") {
                    return Err(SearchError::illegal(format!(
                        "Unknown `execution_hint`: [{hint}], expected any of [map, global_ordinals]"
                    )));
                }
            }
            "collect_mode" => match options.text(member)?.as_str() {
                "depth_first" | "breadth_first" => {}
                other => {
                    return Err(
                        options.invalid(member, format!("no [collect_mode] found for value [{other}]"))
                    );
                }
            },
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&terms.source)?;
    if matches!(terms.include, Some(Selection::Partition { .. })) && terms.exclude.is_some() {
        return Err(SearchError::illegal(
            "Cannot specify any exclude clause when using a partition-based include",
        ));
    }
    Ok(AggregationKind::Terms(terms))
}

/// Most documents of a bucket of `rare_terms`.
const MOST_RARE: i64 = 100;

fn rare_terms(options: Options<'_>) -> Result<AggregationKind, SearchError> {
    const KNOWN: &[&str] =
        &["field", "missing", "value_type", "max_doc_count", "precision", "include", "exclude"];
    let mut terms = Terms {
        source: ValueSource::default(),
        size: usize::MAX,
        min_doc_count: 1,
        max_doc_count: Some(1),
        order: vec![
            Order { by: OrderBy::Count, ascending: true },
            Order { by: OrderBy::Key, ascending: true },
        ],
        include: None,
        exclude: None,
        show_error: false,
    };
    for member in options.members() {
        if options.source(member, &mut terms.source, &["field", "missing", "format", "value_type"])? {
            continue;
        }
        match &*member.name {
            "max_doc_count" => {
                let most = options.whole(member, 1, "max_doc_count")?;
                if most > MOST_RARE {
                    return Err(options.invalid(
                        member,
                        format!("[max_doc_count] must be smaller than {MOST_RARE} in [{}]", options.name),
                    ));
                }
                terms.max_doc_count = Some(most as u64);
            }
            // All values are counted: there is nothing to estimate.
            "precision" => {
                let precision = options.float(member)?;
                if precision < 0.00001 {
                    return Err(options.invalid(member, "[precision] must be greater than 0.00001"));
                }
            }
            "include" => terms.include = Some(selection(&options, member, false)?),
            "exclude" => terms.exclude = Some(selection(&options, member, false)?),
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&terms.source)?;
    Ok(AggregationKind::Terms(terms))
}

fn selection(options: &Options<'_>, member: &Member, may_part: bool) -> Result<Selection, SearchError> {
    match &member.value.json {
        Json::String(pattern) => Ok(Selection::Regexp(pattern.to_string())),
        Json::Array(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                match &item.json {
                    Json::String(text) => values.push(text.to_string()),
                    Json::Number(text) => values.push(text.to_string()),
                    Json::Bool(value) => values.push(value.to_string()),
                    _ => {
                        return Err(options.invalid(
                            member,
                            format!(
                                "Array elements in include/exclude clauses should be string values, not [{}]",
                                item.token()
                            ),
                        ));
                    }
                }
            }
            Ok(Selection::Values(values))
        }
        Json::Object(parts) if may_part => {
            let (mut partition, mut partitions) = (None, None);
            for part in parts {
                match &*part.name {
                    "partition" => partition = Some(options.whole(part, 0, "partition")?),
                    "num_partitions" => partitions = Some(options.whole(part, 1, "num_partitions")?),
                    name => {
                        return Err(options.invalid(
                            member,
                            format!("Unknown parameter in Include/Exclude clause: {name}"),
                        ));
                    }
                }
            }
            match (partition, partitions) {
                (None, _) => {
                    Err(options.invalid(member, "Missing [partition] parameter for partition-based include"))
                }
                (_, None) => {
                    Err(options
                        .invalid(member, "Missing [num_partitions] parameter for partition-based include"))
                }
                (Some(partition), Some(partitions)) if partition >= partitions => Err(options.invalid(
                    member,
                    "Partition index must be >= 0 and < num_partitions".to_owned()
                        + &format!(", got [{partition}] of [{partitions}]"),
                )),
                (Some(partition), Some(partitions)) => {
                    Ok(Selection::Partition { partition: partition as u64, partitions: partitions as u64 })
                }
            }
        }
        _ => Err(options.wrong_type(&member.name, &member.value)),
    }
}

pub fn range(options: Options<'_>) -> Result<AggregationKind, SearchError> {
    const KNOWN: &[&str] = &["field", "missing", "format", "time_zone", "keyed", "ranges"];
    let dates = options.parser == "date_range";
    let takes: &[&str] =
        if dates { &["field", "missing", "format", "time_zone"] } else { &["field", "missing", "format"] };
    let mut range = Range { source: ValueSource::default(), ranges: Vec::new(), keyed: false, dates };
    for member in options.members() {
        if options.source(member, &mut range.source, takes)? {
            continue;
        }
        match &*member.name {
            "keyed" => range.keyed = options.boolean(member)?,
            "ranges" => {
                let Some(items) = member.value.as_array() else {
                    return Err(options.wrong_type("ranges", &member.value));
                };
                for item in items {
                    range.ranges.push(range_bucket(&options, item)?);
                }
            }
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&range.source)?;
    if range.ranges.is_empty() {
        return Err(SearchError::illegal(format!(
            "No [ranges] specified for the [{}] aggregation",
            options.name
        )));
    }
    Ok(AggregationKind::Range(range))
}

fn range_bucket(options: &Options<'_>, node: &Node) -> Result<RangeBucket, SearchError> {
    let Some(members) = node.as_object() else { return Err(options.wrong_type("ranges", node)) };
    let mut bucket = RangeBucket { key: None, from: None, to: None };
    for member in members {
        let end = || match member.value.json {
            Json::Null => Ok(None),
            _ => scalar(options, &member.name, &member.value).map(Some),
        };
        match &*member.name {
            "key" => bucket.key = Some(options.text(member)?),
            "from" => bucket.from = end()?,
            "to" => bucket.to = end()?,
            _ => {
                return Err(SearchError::UnknownField {
                    parser: "range",
                    field: member.name.to_string(),
                    suggestions: crate::search::suggest::suggestions(&member.name, &["key", "from", "to"]),
                    at: member.at,
                });
            }
        }
    }
    Ok(bucket)
}

fn by_key() -> Vec<Order> {
    vec![Order { by: OrderBy::Key, ascending: true }]
}

pub fn histogram(options: Options<'_>) -> Result<AggregationKind, SearchError> {
    const KNOWN: &[&str] = &[
        "field",
        "missing",
        "format",
        "interval",
        "offset",
        "min_doc_count",
        "extended_bounds",
        "hard_bounds",
        "keyed",
        "order",
    ];
    let mut histogram = Histogram {
        source: ValueSource::default(),
        interval: 0.0,
        offset: 0.0,
        min_doc_count: 0,
        extended_bounds: None,
        hard_bounds: None,
        keyed: false,
        order: by_key(),
    };
    for member in options.members() {
        if options.source(member, &mut histogram.source, &["field", "missing", "format"])? {
            continue;
        }
        match &*member.name {
            "interval" => {
                histogram.interval = options.float(member)?;
                if !(histogram.interval > 0.0 && histogram.interval.is_finite()) {
                    return Err(options.invalid(member, "[interval] must be >0 for histogram aggregation"));
                }
            }
            "offset" => histogram.offset = options.float(member)?,
            "min_doc_count" => {
                histogram.min_doc_count = options.whole(member, 0, "min_doc_count")? as u64;
            }
            "extended_bounds" => histogram.extended_bounds = Some(number_bounds(&options, member)?),
            "hard_bounds" => histogram.hard_bounds = Some(number_bounds(&options, member)?),
            "keyed" => histogram.keyed = options.boolean(member)?,
            "order" => histogram.order = options.order(member)?,
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&histogram.source)?;
    if histogram.interval == 0.0 {
        return Err(SearchError::illegal("[interval] must be >0 for histogram aggregation"));
    }
    if !histogram.offset.is_finite() {
        return Err(SearchError::illegal("[offset] must be a finite number"));
    }
    check_bounds(histogram.extended_bounds, histogram.hard_bounds)?;
    Ok(AggregationKind::Histogram(histogram))
}

type NumberBounds = (Option<f64>, Option<f64>);

fn number_bounds(options: &Options<'_>, member: &Member) -> Result<NumberBounds, SearchError> {
    let Some(members) = member.value.as_object() else {
        return Err(options.wrong_type(&member.name, &member.value));
    };
    let (mut min, mut max) = (None, None);
    for end in members {
        let slot = match &*end.name {
            "min" => &mut min,
            "max" => &mut max,
            _ => return Err(options.unknown(end, &["min", "max"])),
        };
        *slot = match end.value.json {
            Json::Null => None,
            _ => Some(options.float(end)?).filter(|value| value.is_finite()),
        };
    }
    if let (Some(min), Some(max)) = (min, max)
        && max < min
    {
        return Err(
            options.invalid(member, format!("Max bound [{max:?}] must be greater than min bound [{min:?}]"))
        );
    }
    Ok((min, max))
}

fn check_bounds(extended: Option<NumberBounds>, hard: Option<NumberBounds>) -> Result<(), SearchError> {
    let (Some(extended), Some(hard)) = (extended, hard) else { return Ok(()) };
    let outside = matches!((extended.0, hard.0), (Some(e), Some(h)) if e < h)
        || matches!((extended.1, hard.1), (Some(e), Some(h)) if e > h);
    match outside {
        true => Err(SearchError::illegal("Extended bounds have to be inside hard bounds")),
        false => Ok(()),
    }
}

pub fn date_histogram(options: Options<'_>) -> Result<AggregationKind, SearchError> {
    const KNOWN: &[&str] = &[
        "field",
        "missing",
        "format",
        "time_zone",
        "calendar_interval",
        "fixed_interval",
        "offset",
        "min_doc_count",
        "extended_bounds",
        "hard_bounds",
        "keyed",
        "order",
    ];
    let mut source = ValueSource::default();
    let mut interval = None;
    let mut offset = 0;
    let mut min_doc_count = 0;
    let (mut extended_bounds, mut hard_bounds) = (None, None);
    let (mut keyed, mut order) = (false, by_key());
    for member in options.members() {
        if options.source(member, &mut source, &["field", "missing", "format", "time_zone"])? {
            continue;
        }
        match &*member.name {
            "calendar_interval" | "fixed_interval" => date_interval(&options, member, &mut interval)?,
            "interval" => return Err(deprecated_interval(&options, member)),
            "offset" => offset = date_offset(&options, member)?,
            "min_doc_count" => min_doc_count = options.whole(member, 0, "min_doc_count")? as u64,
            "extended_bounds" => extended_bounds = Some(date_bounds(&options, member)?),
            "hard_bounds" => hard_bounds = Some(date_bounds(&options, member)?),
            "keyed" => keyed = options.boolean(member)?,
            "order" => order = options.order(member)?,
            _ => return Err(options.unknown(member, KNOWN)),
        }
    }
    options.need_field(&source)?;
    let rounding = rounding(&source, interval, offset)?;
    Ok(AggregationKind::DateHistogram(DateHistogram {
        source,
        rounding,
        min_doc_count,
        extended_bounds,
        hard_bounds,
        keyed,
        order,
    }))
}

/// The old parameter, which Elasticsearch 8 does not take any more.
pub fn deprecated_interval(options: &Options<'_>, member: &Member) -> SearchError {
    SearchError::UnknownField {
        parser: options.parser,
        field: member.name.to_string(),
        suggestions: vec!["fixed_interval", "calendar_interval"],
        at: member.at,
    }
}

/// Puts interval, zone and offset together.
pub fn rounding(
    source: &ValueSource,
    interval: Option<Interval>,
    offset: i64,
) -> Result<Rounding, SearchError> {
    let Some(interval) = interval else {
        return Err(SearchError::illegal("Invalid interval specified, must be non-null and non-empty"));
    };
    let zone = match &source.time_zone {
        None => Zone::UTC,
        Some(zone) => {
            Zone::parse(zone).ok_or_else(|| SearchError::illegal(format!("Unknown time-zone ID: {zone}")))?
        }
    };
    Ok(Rounding { interval, zone, offset })
}

/// `calendar_interval` or `fixed_interval`, of which only one may be there.
pub fn date_interval(
    options: &Options<'_>,
    member: &Member,
    interval: &mut Option<Interval>,
) -> Result<(), SearchError> {
    let text = options.text(member)?;
    let found = if &*member.name == "calendar_interval" {
        let Some(unit) = calendar_unit(&text) else {
            return Err(options.invalid(
                member,
                format!("The supplied interval [{text}] could not be parsed as a calendar interval."),
            ));
        };
        Interval::Calendar(unit)
    } else {
        let Some(millis) = fixed_millis(&text) else {
            let reason = match calendar_unit(&text) {
                Some(_) => format!(
                    "failed to parse setting [fixed_interval] with value [{text}] as a time value: \
                                    unit is missing or unrecognized"
                ),
                None => format!(
                    "failed to parse setting [date_histogram.fixed_interval] with value [{text}] as a time value: \
                     unit is missing or unrecognized"
                ),
            };
            return Err(options.invalid(member, reason));
        };
        if millis < 1 {
            return Err(options.invalid(member, "Zero or negative time interval not supported"));
        }
        Interval::Fixed(millis)
    };
    match interval.replace(found) {
        None => Ok(()),
        Some(_) => Err(options
            .invalid(member, "Cannot use [fixed_interval] with [calendar_interval] configuration option.")),
    }
}

fn calendar_unit(text: &str) -> Option<CalendarUnit> {
    Some(match text {
        "second" | "1s" => CalendarUnit::Second,
        "minute" | "1m" => CalendarUnit::Minute,
        "hour" | "1h" => CalendarUnit::Hour,
        "day" | "1d" => CalendarUnit::Day,
        "week" | "1w" => CalendarUnit::Week,
        "month" | "1M" => CalendarUnit::Month,
        "quarter" | "1q" => CalendarUnit::Quarter,
        "year" | "1y" => CalendarUnit::Year,
        _ => return None,
    })
}

/// A time of days and shorter units, in milliseconds.
fn fixed_millis(text: &str) -> Option<i64> {
    let text = text.trim();
    let (digits, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let factor = match unit {
        "ms" => 1.0,
        "s" => 1e3,
        "m" => 6e4,
        "h" => 3.6e6,
        "d" => 8.64e7,
        _ => return None,
    };
    let millis = digits.trim().parse::<f64>().ok()? * factor;
    (millis.abs() < 1e17).then_some(millis as i64)
}

/// Milliseconds, also as `+6h` or `-1d`.
pub fn date_offset(options: &Options<'_>, member: &Member) -> Result<i64, SearchError> {
    let text = options.text(member)?;
    if let Ok(millis) = text.parse::<i64>() {
        return Ok(millis);
    }
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    match fixed_millis(rest) {
        Some(millis) => Ok(sign * millis),
        None => Err(options.invalid(
            member,
            format!(
                "failed to parse setting [date_histogram.offset] with value [{text}] as a time value: unit is missing \
                 or unrecognized"
            ),
        )),
    }
}

type DateBounds = (Option<Value>, Option<Value>);

fn date_bounds(options: &Options<'_>, member: &Member) -> Result<DateBounds, SearchError> {
    let Some(members) = member.value.as_object() else {
        return Err(options.wrong_type(&member.name, &member.value));
    };
    let (mut min, mut max) = (None, None);
    for end in members {
        let slot = match &*end.name {
            "min" => &mut min,
            "max" => &mut max,
            _ => return Err(options.unknown(end, &["min", "max"])),
        };
        *slot = match end.value.json {
            Json::Null => None,
            _ => Some(scalar(options, &end.name, &end.value)?),
        };
    }
    Ok((min, max))
}

pub fn filter(options: Options<'_>, context: Context) -> Result<AggregationKind, SearchError> {
    // `{}` matched everything in old versions; it is an error in the new ones.
    Ok(AggregationKind::Filter(dsl::parse_query(options.node, context)?))
}

pub fn filters(options: Options<'_>, context: Context) -> Result<AggregationKind, SearchError> {
    let mut filters = Vec::new();
    let (mut other, mut other_key, mut keyed) = (None, None, true);
    let mut found = false;
    for member in options.members() {
        match (&*member.name, &member.value.json) {
            ("filters", Json::Object(members)) => {
                found = true;
                for filter in members {
                    let query = dsl::parse_query(&filter.value, context)?;
                    filters.push((Some(filter.name.to_string()), query));
                }
            }
            ("filters", Json::Array(items)) => {
                found = true;
                for item in items {
                    filters.push((None, dsl::parse_query(item, context)?));
                }
            }
            ("other_bucket", _) => other = Some(options.boolean(member)?),
            ("other_bucket_key", _) => other_key = Some(options.text(member)?),
            ("keyed", _) => keyed = options.boolean(member)?,
            (name, _) => {
                return Err(SearchError::parsing(
                    member.value.at,
                    format!("Unknown key for a {} in [{}]: [{name}].", member.value.token(), options.name),
                ));
            }
        }
    }
    if !found || filters.is_empty() {
        return Err(SearchError::illegal("[filters] cannot be empty"));
    }
    filters.sort_by(|a, b| a.0.cmp(&b.0));
    // A key alone asks for the bucket too.
    let other = match (other, other_key) {
        (Some(false), _) | (None, None) => None,
        (_, Some(key)) => Some(key),
        (Some(true), None) => Some("_other_".to_owned()),
    };
    Ok(AggregationKind::Filters(Filters { filters, other, keyed }))
}

pub fn missing(options: Options<'_>) -> Result<AggregationKind, SearchError> {
    let mut source = ValueSource::default();
    for member in options.members() {
        if !options.source(member, &mut source, &["field", "missing", "value_type", "format"])? {
            return Err(options.unknown(member, &["field", "missing"]));
        }
    }
    options.need_field(&source)?;
    Ok(AggregationKind::Missing(source))
}

pub fn global(options: Options<'_>) -> Result<AggregationKind, SearchError> {
    match options.members().first() {
        Some(member) => Err(options.unknown(member, &[])),
        None => Ok(AggregationKind::Global),
    }
}
