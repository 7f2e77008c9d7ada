//! Parsers of `histogram` and `date_histogram`: intervals, offsets, bounds.

use serde_json::Value;
use sparrow_aggregations::{
    AggregationKind, CalendarUnit, DateHistogram, Histogram, Interval, Order, OrderBy, Rounding, ValueSource,
};
use sparrow_wire::Zone;

use super::parameter_reader::{ParameterReader, scalar};
use super::shape::{
    Named, Shape, any, count, int, keyed, num, object, of_values, order, text, time_zone, untyped,
};
use sparrow_wire::BodyError;
use sparrow_wire::json::{Json, Member};

fn by_key() -> Vec<Order> {
    vec![Order { by: OrderBy::Key, ascending: true }]
}

pub fn histogram_shape() -> Shape {
    of_values(untyped(), [("interval", num()), ("offset", num())]).and(common()).needs(&["field", "interval"])
}

pub fn date_histogram_shape() -> Shape {
    of_values(untyped(), interval_shape()).and(common())
}

/// What histograms of numbers and of dates have in common.
fn common() -> [Named; 5] {
    [
        ("min_doc_count", int().about("0 shows empty buckets as well").preset(0)),
        ("extended_bounds", bounds_shape()),
        ("hard_bounds", bounds_shape()),
        keyed(false),
        order(),
    ]
}

fn bounds_shape() -> Shape {
    object([("min", any()), ("max", any())])
}

/// The intervals of dates.
pub fn interval_shape() -> [Named; 4] {
    let units = "`minute`, `hour`, `day`, `week`, `month`, `quarter`, `year`, or `1d`";
    [
        ("calendar_interval", text().about(units)),
        ("fixed_interval", text().about("such as `30m`")),
        time_zone(),
        ("offset", count()),
    ]
}

pub fn histogram(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
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
    for member in reader.members() {
        if reader.source(member, &mut histogram.source)? {
            continue;
        }
        match &*member.name {
            "interval" => {
                histogram.interval = reader.float(member)?;
                if !(histogram.interval > 0.0 && histogram.interval.is_finite()) {
                    return Err(reader.invalid(member, "[interval] must be >0 for histogram aggregation"));
                }
            }
            "offset" => histogram.offset = reader.float(member)?,
            "min_doc_count" => {
                histogram.min_doc_count = reader.whole(member, 0, "min_doc_count")? as u64;
            }
            "extended_bounds" => histogram.extended_bounds = Some(number_bounds(&reader, member)?),
            "hard_bounds" => histogram.hard_bounds = Some(number_bounds(&reader, member)?),
            "keyed" => histogram.keyed = reader.boolean(member)?,
            "order" => histogram.order = reader.order(member)?,
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&histogram.source)?;
    if histogram.interval == 0.0 {
        return Err(BodyError::illegal("[interval] must be >0 for histogram aggregation"));
    }
    if !histogram.offset.is_finite() {
        return Err(BodyError::illegal("[offset] must be a finite number"));
    }
    check_bounds(histogram.extended_bounds, histogram.hard_bounds)?;
    Ok(AggregationKind::Histogram(histogram))
}

/// Reads the `min` and `max` of a bounds object, each with `read`; a `null` leaves that end open.
fn bounds<T>(
    reader: &ParameterReader<'_>,
    member: &Member,
    read: impl Fn(&Member) -> Result<Option<T>, BodyError>,
) -> Result<(Option<T>, Option<T>), BodyError> {
    let Some(members) = member.value.as_object() else {
        return Err(reader.wrong_type(&member.name, &member.value));
    };
    let (mut min, mut max) = (None, None);
    for end in members {
        let slot = match &*end.name {
            "min" => &mut min,
            "max" => &mut max,
            _ => return Err(reader.unknown_in(&bounds_shape(), end)),
        };
        *slot = match end.value.json {
            Json::Null => None,
            _ => read(end)?,
        };
    }
    Ok((min, max))
}

type NumberBounds = (Option<f64>, Option<f64>);

fn number_bounds(reader: &ParameterReader<'_>, member: &Member) -> Result<NumberBounds, BodyError> {
    let (min, max) =
        bounds(reader, member, |end| Ok(Some(reader.float(end)?).filter(|value| value.is_finite())))?;
    if let (Some(min), Some(max)) = (min, max)
        && max < min
    {
        return Err(
            reader.invalid(member, format!("Max bound [{max:?}] must be greater than min bound [{min:?}]"))
        );
    }
    Ok((min, max))
}

fn check_bounds(extended: Option<NumberBounds>, hard: Option<NumberBounds>) -> Result<(), BodyError> {
    let (Some(extended), Some(hard)) = (extended, hard) else { return Ok(()) };
    let outside = matches!((extended.0, hard.0), (Some(e), Some(h)) if e < h)
        || matches!((extended.1, hard.1), (Some(e), Some(h)) if e > h);
    match outside {
        true => Err(BodyError::illegal("Extended bounds have to be inside hard bounds")),
        false => Ok(()),
    }
}

pub fn date_histogram(reader: ParameterReader<'_>) -> Result<AggregationKind, BodyError> {
    let mut source = ValueSource::default();
    let mut interval = None;
    let mut offset = 0;
    let mut min_doc_count = 0;
    let (mut extended_bounds, mut hard_bounds) = (None, None);
    let (mut keyed, mut order) = (false, by_key());
    for member in reader.members() {
        if reader.source(member, &mut source)? {
            continue;
        }
        match &*member.name {
            "calendar_interval" | "fixed_interval" => date_interval(&reader, member, &mut interval)?,
            "interval" => return Err(deprecated_interval(&reader, member)),
            "offset" => offset = date_offset(&reader, member)?,
            "min_doc_count" => min_doc_count = reader.whole(member, 0, "min_doc_count")? as u64,
            "extended_bounds" => extended_bounds = Some(date_bounds(&reader, member)?),
            "hard_bounds" => hard_bounds = Some(date_bounds(&reader, member)?),
            "keyed" => keyed = reader.boolean(member)?,
            "order" => order = reader.order(member)?,
            _ => return Err(reader.unknown(member)),
        }
    }
    reader.need_field(&source)?;
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
pub fn deprecated_interval(reader: &ParameterReader<'_>, member: &Member) -> BodyError {
    BodyError::UnknownField {
        parser: reader.parser,
        field: member.name.to_string(),
        suggestions: vec!["fixed_interval", "calendar_interval"],
        at: member.at,
    }
}

/// The rounding of a date histogram, from its interval, time zone and offset.
pub fn rounding(
    source: &ValueSource,
    interval: Option<Interval>,
    offset: i64,
) -> Result<Rounding, BodyError> {
    let Some(interval) = interval else {
        return Err(BodyError::illegal("Invalid interval specified, must be non-null and non-empty"));
    };
    Ok(Rounding { interval, zone: zone(source)?, offset })
}

/// The time zone in whose local time dates are rounded: UTC unless another one is given.
pub(super) fn zone(source: &ValueSource) -> Result<Zone, BodyError> {
    let Some(zone) = &source.time_zone else { return Ok(Zone::UTC) };
    Zone::parse(zone).ok_or_else(|| BodyError::illegal(format!("Unknown time-zone ID: {zone}")))
}

/// Reads a `calendar_interval` or `fixed_interval`; giving both is an error.
pub fn date_interval(
    reader: &ParameterReader<'_>,
    member: &Member,
    interval: &mut Option<Interval>,
) -> Result<(), BodyError> {
    let text = reader.text(member)?;
    let parsed = if &*member.name == "calendar_interval" {
        let Some(unit) = calendar_unit(&text) else {
            return Err(reader.invalid(
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
            return Err(reader.invalid(member, reason));
        };
        if millis < 1 {
            return Err(reader.invalid(member, "Zero or negative time interval not supported"));
        }
        Interval::Fixed(millis)
    };
    match interval.replace(parsed) {
        None => Ok(()),
        Some(_) => Err(reader
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

/// Parses a time span in units from `ms` to `d`; milliseconds.
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
pub fn date_offset(reader: &ParameterReader<'_>, member: &Member) -> Result<i64, BodyError> {
    let text = reader.text(member)?;
    if let Ok(millis) = text.parse::<i64>() {
        return Ok(millis);
    }
    let (sign, length) = match text.strip_prefix('-') {
        Some(length) => (-1, length),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    match fixed_millis(length) {
        Some(millis) => Ok(sign * millis),
        None => Err(reader.invalid(
            member,
            format!(
                "failed to parse setting [date_histogram.offset] with value [{text}] as a time value: unit is missing \
                 or unrecognized"
            ),
        )),
    }
}

type DateBounds = (Option<Value>, Option<Value>);

fn date_bounds(reader: &ParameterReader<'_>, member: &Member) -> Result<DateBounds, BodyError> {
    bounds(reader, member, |end| scalar(reader, &end.name, &end.value).map(Some))
}
