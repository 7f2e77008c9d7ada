//! Date math in names of indices: `<logs-{now/d{yyyy.MM.dd|Europe/Berlin}}>` is the `logs-` of today.

use sparrow_wire::Zone;
use time::{Date, Duration, Month, OffsetDateTime, Time};

use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::DatePattern;

const DEFAULT_FORMAT: &str = "yyyy.MM.dd";
const MAX_LENGTH: usize = 1000;

/// Resolves an index name with date math to the name that it stands for now. Names without date math are returned as they are.
///
/// # Errors
/// When the expression is malformed.
pub fn resolve(expression: &str) -> Result<String, EngineError> {
    if !expression.starts_with('<') {
        return Ok(expression.to_owned());
    }
    at(expression, OffsetDateTime::now_utc())
}

fn at(expression: &str, now: OffsetDateTime) -> Result<String, EngineError> {
    let Some(text) = expression.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) else {
        return Ok(expression.to_owned());
    };
    if text.len() > MAX_LENGTH {
        return Err(malformed(expression, "the expression is too long"));
    }
    let mut name = String::new();
    let mut chars = text.chars();
    while let Some(next) = chars.next() {
        match next {
            '\\' => name.extend(chars.next()),
            '{' => {
                let inner = inside(&mut chars)
                    .ok_or_else(|| malformed(expression, "date math placeholder is open ended"))?;
                name.push_str(&placeholder(expression, &inner, now)?);
            }
            '}' => {
                return Err(malformed(
                    expression,
                    "invalid character at position [0]. `{` and `}` are reserved characters and should be escaped \
                     when used as part of the index name using `\\` (e.g. `\\{text\\}`)",
                ));
            }
            other => name.push(other),
        }
    }
    if name.is_empty() {
        return Err(malformed(expression, "nothing captured"));
    }
    Ok(name)
}

/// The text up to the matching closing brace; none if it is missing.
fn inside(chars: &mut std::str::Chars<'_>) -> Option<String> {
    let mut depth = 1;
    let mut inner = String::new();
    for next in chars {
        match next {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(inner);
        }
        inner.push(next);
    }
    None
}

fn placeholder(expression: &str, inner: &str, now: OffsetDateTime) -> Result<String, EngineError> {
    let (math, format) = match inner.split_once('{') {
        None => (inner, None),
        Some((math, format)) => match format.strip_suffix('}') {
            None => return Err(malformed(expression, "missing closing `}` for date math format")),
            Some("") => return Err(malformed(expression, "missing date format")),
            Some(format) => (math, Some(format)),
        },
    };
    let (format, zone) = match format.map(|format| format.split_once('|').unwrap_or((format, ""))) {
        None => (DEFAULT_FORMAT, ""),
        Some((format, zone)) => (format, zone),
    };
    let zone = if zone.is_empty() { Some(Zone::UTC) } else { Zone::parse(zone) }
        .ok_or_else(|| malformed(expression, &format!("unknown time zone [{zone}]")))?;
    let pattern = DatePattern::parse(format)
        .map_err(|_| malformed(expression, &format!("Invalid format: [{format}]")))?;
    let moment = evaluate(math.trim(), now, &pattern, &zone)
        .ok_or_else(|| malformed(expression, &format!("failed to parse date field [{math}]")))?;
    Ok(pattern.write_local(moment, &zone))
}

/// Evaluates date math: `now`, or a date in this format followed by `||`, and then any number of `+1d`, `-2w` or `/M`.
fn evaluate(math: &str, now: OffsetDateTime, format: &DatePattern, zone: &Zone) -> Option<OffsetDateTime> {
    let (start, mut rest) = match math.strip_prefix("now") {
        Some(rest) => (now, rest),
        None => {
            let (date, rest) = math.split_once("||").unwrap_or((math, ""));
            (format.read(date, zone)?, rest)
        }
    };
    let mut moment = zone.local(start)?;
    while let Some(operator) = rest.chars().next() {
        rest = &rest[operator.len_utf8()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(digits);
        let unit = behind.chars().next()?;
        rest = &behind[unit.len_utf8()..];
        match operator {
            '/' if number.is_empty() => moment = round(moment, unit)?,
            '+' | '-' => {
                let count: i64 = if number.is_empty() { 1 } else { number.parse().ok()? };
                moment = add(moment, if operator == '-' { -count } else { count }, unit)?;
            }
            _ => return None,
        }
    }
    Some(moment)
}

fn add(moment: OffsetDateTime, count: i64, unit: char) -> Option<OffsetDateTime> {
    let seconds = match unit {
        'y' => return add_months(moment, count.checked_mul(12)?),
        'M' => return add_months(moment, count),
        'w' => 7 * 86_400,
        'd' => 86_400,
        'h' | 'H' => 3600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    moment.checked_add(Duration::seconds(count.checked_mul(seconds)?))
}

fn add_months(moment: OffsetDateTime, count: i64) -> Option<OffsetDateTime> {
    let months = i64::from(moment.year()) * 12 + i64::from(u8::from(moment.month())) - 1;
    let months = months.checked_add(count)?;
    let year = i32::try_from(months.div_euclid(12)).ok()?;
    let month = Month::try_from(u8::try_from(months.rem_euclid(12)).ok()? + 1).ok()?;
    let day = moment.day().min(month.length(year));
    Some(moment.replace_date(Date::from_calendar_date(year, month, day).ok()?))
}

fn round(moment: OffsetDateTime, unit: char) -> Option<OffsetDateTime> {
    let day = |date: Date| moment.replace_date(date).replace_time(Time::MIDNIGHT);
    let date = moment.date();
    Some(match unit {
        'y' => day(Date::from_calendar_date(date.year(), Month::January, 1).ok()?),
        'M' => day(date.replace_day(1).ok()?),
        'w' => day(date.checked_sub(Duration::days(date.weekday().number_days_from_monday().into()))?),
        'd' => day(date),
        'h' | 'H' => moment.replace_time(Time::from_hms(moment.hour(), 0, 0).ok()?),
        'm' => moment.replace_time(Time::from_hms(moment.hour(), moment.minute(), 0).ok()?),
        's' => moment.replace_nanosecond(0).ok()?,
        _ => return None,
    })
}

fn malformed(expression: &str, problem: &str) -> EngineError {
    let reason = format!("invalid dynamic name expression [{expression}]. {problem}");
    EngineError::api(400, Exception::new("parse_exception", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_name_days_weeks_and_months() {
        let now = OffsetDateTime::from_unix_timestamp(1_711_065_600 + 3 * 3600).unwrap();
        for (expression, name) in [
            ("plain", "plain"),
            ("<plain>", "plain"),
            ("<logs-{now/d}>", "logs-2024.03.22"),
            ("<logs-{now/M}>", "logs-2024.03.01"),
            ("<logs-{now/M{yyyy.MM}}>", "logs-2024.03"),
            ("<logs-{now/M-1M{yyyy.MM}}>", "logs-2024.02"),
            ("<logs-{now/w}-x>", "logs-2024.03.18-x"),
            ("<logs-{now-1d/d{uuuu.MM.dd|-12:00}}>", "logs-2024.03.20"),
            ("<elastic\\{ON\\}-{now/M}>", "elastic{ON}-2024.03.01"),
            ("<events-{2016-04-22||/d{yyyy-MM-dd|UTC}}>", "events-2016-04-22"),
            // The first day of the calendar is a Monday.
            ("<a-{-9999-01-01||/w{uuuu-MM-dd}}>", "a--9999-01-01"),
            ("<events-{2016-04-22||/M+1M{yyyy-MM-dd|Europe/Berlin}}>", "events-2016-05-01"),
        ] {
            assert_eq!(at(expression, now).unwrap(), name, "{expression}");
        }
        for bad in [
            "<a-{now/d>",
            "<a-}>",
            "<a-{later}>",
            "<a-{2016-04-22||/d}>",
            "<a-{2016-04-22/d{yyyy-MM-dd}}>",
            "<a-{now/x}>",
            "<a-{now{}}>",
            "<a-{now/d{yyyy|Mars}}>",
            "<a-{9999-12-31T23:59-18:00||/d{yyyy-MM-dd'T'HH:mmXXX}}>",
            "<a-{9999-12-31T23:59||/d{uuuu-MM-dd'T'HH:mm|-18:00}}>",
            "<>",
        ] {
            assert_eq!(at(bad, now).unwrap_err().status(), 400, "{bad}");
        }
        assert!(at("<a-{now+99999999999999y}>", now).is_err());
    }
}
