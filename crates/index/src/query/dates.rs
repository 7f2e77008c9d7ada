//! Dates of queries: formats, date math (`now-1d/d`, `2024-01-01||+1M/M`) and time zones.

use time::{Date, Duration, Month, OffsetDateTime, UtcOffset};

use super::error::QueryError;
use crate::mapping::DateFormat;
use crate::mapping::date::parse_date;

/// How the dates of one clause are read.
pub(crate) struct DateRequest<'a> {
    formats: &'a [DateFormat],
    now: i64,
    offset: UtcOffset,
}

impl<'a> DateRequest<'a> {
    /// `now` is in milliseconds since the epoch; `time_zone` is `Z`, `UTC` or `+01:00`.
    pub(crate) fn new(
        formats: &'a [DateFormat],
        now: i64,
        time_zone: Option<&str>,
    ) -> Result<Self, QueryError> {
        let offset = match time_zone {
            None => UtcOffset::UTC,
            Some(zone) => parse_zone(zone).ok_or_else(|| QueryError::TimeZone { input: zone.to_owned() })?,
        };
        Ok(Self { formats, now, offset })
    }

    /// Milliseconds that the request's zone is ahead of UTC.
    pub(crate) fn zone_millis(&self) -> i64 {
        i64::from(self.offset.whole_seconds()) * 1000
    }

    /// Milliseconds since the epoch. What a date does not state is the earliest moment, or the last
    /// one of the day when `round_up`; so does rounding by date math.
    pub(crate) fn parse(&self, text: &str, round_up: bool, in_range: bool) -> Result<i64, QueryError> {
        let (base, math) = if let Some(math) = text.strip_prefix("now") {
            (self.now, math)
        } else if let Some((date, math)) = text.split_once("||") {
            // Only a date without math rounds by itself.
            (self.date(date, round_up && math.is_empty(), in_range)?, math)
        } else {
            return self.date(text, round_up, in_range);
        };
        self.math(text, base, math, round_up)
    }

    fn date(&self, text: &str, round_up: bool, in_range: bool) -> Result<i64, QueryError> {
        for format in self.formats {
            let Some(millis) = parse_date(std::slice::from_ref(format), text, round_up) else {
                continue;
            };
            let states_zone = match format {
                DateFormat::EpochMillis | DateFormat::EpochSecond => true,
                DateFormat::Pattern(pattern) => pattern.contains(['X', 'x', 'Z']),
                DateFormat::StrictDateOptionalTime => {
                    text.split_once('T').is_some_and(|(_, clock)| clock.contains(['Z', 'z', '+', '-']))
                }
            };
            let shift = if states_zone { 0 } else { i64::from(self.offset.whole_seconds()) * 1000 };
            return Ok(millis - shift);
        }
        let names: Vec<&str> = self.formats.iter().map(DateFormat::name).collect();
        Err(QueryError::DateFormat { input: text.to_owned(), format: names.join("||"), in_range })
    }

    fn math(&self, text: &str, base: i64, math: &str, round_up: bool) -> Result<i64, QueryError> {
        let malformed =
            |detail: &str| QueryError::DateMath { input: text.to_owned(), detail: detail.to_owned() };
        let mut at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(base) * 1_000_000)
            .map_err(|_| malformed("date out of bounds"))?
            .to_offset(self.offset);
        let mut rest = math.chars().peekable();
        while let Some(operator) = rest.next() {
            let (rounds, sign) = match operator {
                '/' => (true, 1),
                '+' => (false, 1),
                '-' => (false, -1),
                _ => return Err(malformed("operator not supported")),
            };
            let mut digits = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            let count: i64 = match digits.as_str() {
                "" => 1,
                digits => digits.parse().map_err(|_| malformed("number too large"))?,
            };
            if rounds && count != 1 {
                return Err(malformed("rounding `/` can only be used on single unit types"));
            }
            let unit = rest.next().ok_or_else(|| malformed("truncated"))?;
            at = if rounds { round(at, unit, round_up) } else { shift(at, unit, sign * count) }
                .ok_or_else(|| malformed("unit not supported, or date out of bounds"))?;
        }
        i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000))
            .map_err(|_| malformed("date out of bounds"))
    }
}

fn parse_zone(zone: &str) -> Option<UtcOffset> {
    if matches!(zone, "Z" | "z" | "UTC" | "GMT") {
        return Some(UtcOffset::UTC);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() == 4 => digits.split_at(2),
        None => (digits, "0"),
    };
    let (hours, minutes): (i8, i8) = (hours.parse().ok()?, minutes.parse().ok()?);
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

fn shift(at: OffsetDateTime, unit: char, count: i64) -> Option<OffsetDateTime> {
    let seconds = match unit {
        'y' => return shift_months(at, count.checked_mul(12)?),
        'M' => return shift_months(at, count),
        'w' => 7 * 86_400,
        'd' => 86_400,
        'h' | 'H' => 3_600,
        'm' => 60,
        's' => 1,
        _ => return None,
    };
    at.checked_add(Duration::seconds(count.checked_mul(seconds)?))
}

/// The same day of another month, or that month's last day.
fn shift_months(at: OffsetDateTime, count: i64) -> Option<OffsetDateTime> {
    let months = i64::from(at.year()) * 12 + i64::from(u8::from(at.month())) - 1;
    let months = months.checked_add(count)?;
    let year = i32::try_from(months.div_euclid(12)).ok()?;
    let month = Month::try_from(months.rem_euclid(12) as u8 + 1).ok()?;
    let day = at.day().min(month.length(year));
    Some(at.replace_date(Date::from_calendar_date(year, month, day).ok()?))
}

/// The first moment of the unit around `at`, or its last millisecond.
fn round(at: OffsetDateTime, unit: char, up: bool) -> Option<OffsetDateTime> {
    let midnight = at.replace_time(time::Time::MIDNIGHT);
    let start = match unit {
        'y' => midnight.replace_month(Month::January).ok()?.replace_day(1).ok()?,
        'M' => midnight.replace_day(1).ok()?,
        'w' => {
            let days = i64::from(at.weekday().number_days_from_monday());
            midnight.checked_sub(Duration::days(days))?
        }
        'd' => midnight,
        'h' | 'H' => midnight.replace_hour(at.hour()).ok()?,
        'm' => midnight.replace_hour(at.hour()).ok()?.replace_minute(at.minute()).ok()?,
        's' => at.replace_nanosecond(0).ok()?,
        _ => return None,
    };
    if !up {
        return Some(start);
    }
    shift(start, unit, 1)?.checked_sub(Duration::milliseconds(1))
}

#[cfg(test)]
mod tests {
    use super::DateRequest;
    use crate::mapping::DateFormat;

    /// 2024-03-31T10:20:30.456Z, a Sunday.
    const NOW: i64 = 1_711_880_430_456;

    fn check(text: &str, zone: Option<&str>, round_up: bool, expected: Option<&str>) {
        let formats = [DateFormat::StrictDateOptionalTime, DateFormat::EpochMillis];
        let request = DateRequest::new(&formats, NOW, zone).unwrap();
        let parsed = request.parse(text, round_up, true).ok().map(crate::mapping::date::format_millis);
        assert_eq!(parsed.as_deref(), expected, "{text} {zone:?} {round_up}");
    }

    #[test]
    fn math_moves_and_rounds() {
        check("now", None, false, Some("2024-03-31T10:20:30.456Z"));
        check("now-1d", None, false, Some("2024-03-30T10:20:30.456Z"));
        check("now-1M", None, false, Some("2024-02-29T10:20:30.456Z"));
        check("now+1y-2h", None, false, Some("2025-03-31T08:20:30.456Z"));
        check("now/d", None, false, Some("2024-03-31T00:00:00.000Z"));
        check("now/d", None, true, Some("2024-03-31T23:59:59.999Z"));
        check("now/w", None, false, Some("2024-03-25T00:00:00.000Z"));
        check("now-1d/h", None, true, Some("2024-03-30T10:59:59.999Z"));
        check("now/M", None, true, Some("2024-03-31T23:59:59.999Z"));
        check("now/y", None, false, Some("2024-01-01T00:00:00.000Z"));
        check("2024-01-31||+1M/d", None, false, Some("2024-02-29T00:00:00.000Z"));
        check("now/d", Some("+02:00"), false, Some("2024-03-30T22:00:00.000Z"));
        check("now-", None, false, None);
        check("now/2d", None, false, None);
        check("now*1d", None, false, None);
        check("now+99999999999999999y", None, false, None);
    }

    #[test]
    fn dates_round_and_take_the_zone() {
        check("2024-01-05", None, false, Some("2024-01-05T00:00:00.000Z"));
        check("2024-01-05", None, true, Some("2024-01-05T23:59:59.999Z"));
        check("2024-01-05", Some("+01:00"), false, Some("2024-01-04T23:00:00.000Z"));
        check("2024-01-05T00:00:00Z", Some("+01:00"), false, Some("2024-01-05T00:00:00.000Z"));
        check("1704412800000", Some("+01:00"), false, Some("2024-01-05T00:00:00.000Z"));
        check("5 January", None, false, None);
        assert!(DateRequest::new(&[], NOW, Some("Mars")).is_err());
    }
}
