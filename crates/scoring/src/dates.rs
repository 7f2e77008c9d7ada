//! Parses the dates of queries: formats, date math (`now-1d/d`, `2024-01-01||+1M/M`) and time zones.

use time::{Date, Month, OffsetDateTime};

use crate::error::QueryError;
use sparrow_mapping::DateFormat;
use sparrow_wire::Zone;

/// Length of a day, in milliseconds.
const DAY: i64 = 86_400_000;

/// Nanoseconds of a millisecond.
const NANOS: i128 = 1_000_000;

/// How to parse the dates of one clause: formats, current time and time zone.
pub struct DateRequest<'a> {
    formats: &'a [DateFormat],
    now: i64,
    zone: Zone,
}

impl<'a> DateRequest<'a> {
    /// A parser of dates; `now` is in milliseconds since the epoch, `time_zone` is `Z`, `+01:00` or
    /// `Europe/Berlin`, for example.
    pub fn new(formats: &'a [DateFormat], now: i64, time_zone: Option<&str>) -> Result<Self, QueryError> {
        let zone = match time_zone {
            None => Zone::UTC,
            Some(zone) => Zone::parse(zone).ok_or_else(|| QueryError::TimeZone { input: zone.to_owned() })?,
        };
        Ok(Self { formats, now, zone })
    }

    /// Parses a date to milliseconds since the epoch. Parts that the text omits are taken as the earliest
    /// moment; with `round_up`, a missing time of day is the end of the day. Date math likewise rounds down,
    /// or up with `round_up`.
    pub fn parse(&self, text: &str, round_up: bool, in_range: bool) -> Result<i64, QueryError> {
        Ok(millis_of_nanos(self.parse_nanos(text, round_up, in_range)?))
    }

    /// As [`DateRequest::parse`], to nanoseconds since the epoch.
    pub fn parse_nanos(&self, text: &str, round_up: bool, in_range: bool) -> Result<i128, QueryError> {
        let (base, math) = if let Some(math) = text.strip_prefix("now") {
            (i128::from(self.now) * NANOS, math)
        } else if let Some((date, math)) = text.split_once("||") {
            // Only a date without math rounds by itself.
            (self.date(date, round_up && math.is_empty(), in_range)?, math)
        } else {
            return self.date(text, round_up, in_range);
        };
        let moved = self.math(text, millis_of_nanos(base), math, round_up)?;
        let rest = match (math.contains('/'), round_up) {
            (false, _) => base.rem_euclid(NANOS),
            (true, false) => 0,
            (true, true) => NANOS - 1,
        };
        Ok(i128::from(moved) * NANOS + rest)
    }

    fn date(&self, text: &str, round_up: bool, in_range: bool) -> Result<i128, QueryError> {
        let read = |format: &DateFormat| format.read_nanos(text, round_up, &self.zone);
        if let Some(nanos) = self.formats.iter().find_map(read) {
            return Ok(nanos);
        }
        let names: Vec<&str> = self.formats.iter().map(DateFormat::name).collect();
        Err(QueryError::DateFormat { input: text.to_owned(), format: names.join("||"), in_range })
    }

    fn math(&self, text: &str, base: i64, math: &str, round_up: bool) -> Result<i64, QueryError> {
        let malformed =
            |detail: &str| QueryError::DateMath { input: text.to_owned(), detail: detail.to_owned() };
        let mut at = base;
        let mut rest = math.chars().peekable();
        while let Some(operator) = rest.next() {
            let (rounds, sign): (bool, i64) = match operator {
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
            let moved = match rounds {
                true => self.round(at, unit, round_up),
                false => sign.checked_mul(count).and_then(|count| self.shift(at, unit, count)),
            };
            at = moved.ok_or_else(|| malformed("unit not supported, or date out of bounds"))?;
        }
        Ok(at)
    }

    /// The moment of a local time (both in milliseconds); if there are two, the one with the UTC offset in
    /// force at `near`.
    fn resolve(&self, local: i64, near: i64) -> i64 {
        let offset = self.zone.offset_at(near);
        let at = local.saturating_sub(offset);
        if self.zone.offset_at(at) == offset { at } else { self.zone.to_utc(local) }
    }

    fn shift(&self, at: i64, unit: char, count: i64) -> Option<i64> {
        let local = at.checked_add(self.zone.offset_at(at))?;
        // Days and longer are the same time of another day; shorter units are time that passes.
        let moved = match unit {
            'y' => self.resolve(shift_months(local, count.checked_mul(12)?)?, at),
            'M' => self.resolve(shift_months(local, count)?, at),
            'w' => self.resolve(local.checked_add(count.checked_mul(7 * DAY)?)?, at),
            'd' => self.resolve(local.checked_add(count.checked_mul(DAY)?)?, at),
            'h' | 'H' => at.checked_add(count.checked_mul(3_600_000)?)?,
            'm' => at.checked_add(count.checked_mul(60_000)?)?,
            's' => at.checked_add(count.checked_mul(1_000)?)?,
            _ => return None,
        };
        date_of(moved).map(|_| moved)
    }

    /// The first millisecond of the unit that contains `at`, or with `up` the last one.
    fn round(&self, at: i64, unit: char, up: bool) -> Option<i64> {
        let local = at.checked_add(self.zone.offset_at(at))?;
        let date = date_of(local)?;
        let start = match unit {
            'y' => millis_of(Date::from_calendar_date(date.year(), Month::January, 1).ok()?),
            'M' => millis_of(date.replace_day(1).ok()?),
            'w' => millis_of(date) - i64::from(date.weekday().number_days_from_monday()) * DAY,
            'd' => millis_of(date),
            'h' | 'H' => local - local.rem_euclid(3_600_000),
            'm' => local - local.rem_euclid(60_000),
            's' => local - local.rem_euclid(1_000),
            _ => return None,
        };
        let start = self.resolve(start, at);
        if up { self.shift(start, unit, 1)?.checked_sub(1) } else { Some(start) }
    }
}

/// The millisecond that a nanosecond lies in.
fn millis_of_nanos(nanos: i128) -> i64 {
    let millis = nanos.div_euclid(NANOS);
    i64::try_from(millis).unwrap_or(if millis < 0 { i64::MIN } else { i64::MAX })
}

fn date_of(local: i64) -> Option<Date> {
    OffsetDateTime::from_unix_timestamp(local.div_euclid(1_000)).ok().map(OffsetDateTime::date)
}

fn millis_of(date: Date) -> i64 {
    date.midnight().assume_utc().unix_timestamp() * 1_000
}

/// The same time of day `count` months later, on the same day of the month or its last day. In milliseconds
/// of local time.
fn shift_months(local: i64, count: i64) -> Option<i64> {
    let date = date_of(local)?;
    let months = i64::from(date.year()) * 12 + i64::from(u8::from(date.month())) - 1;
    let months = months.checked_add(count)?;
    let year = i32::try_from(months.div_euclid(12)).ok()?;
    let month = Month::try_from(months.rem_euclid(12) as u8 + 1).ok()?;
    let day = date.day().min(month.length(year));
    Some(millis_of(Date::from_calendar_date(year, month, day).ok()?) + local.rem_euclid(DAY))
}

#[cfg(test)]
mod tests {
    use super::DateRequest;
    use sparrow_mapping::DateFormat;

    /// The moment 2024-03-31T10:20:30.456Z, a Sunday, in milliseconds since the epoch.
    const NOW: i64 = 1_711_880_430_456;

    fn check(text: &str, zone: Option<&str>, round_up: bool, expected: Option<&str>) {
        let formats = [DateFormat::StrictDateOptionalTime, DateFormat::EpochMillis];
        let request = DateRequest::new(&formats, NOW, zone).unwrap();
        let parsed = request.parse(text, round_up, true).ok().map(sparrow_mapping::date::format_millis);
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
        // Clocks in Berlin were put forward on that day at two.
        check("now/d", Some("Europe/Berlin"), false, Some("2024-03-30T23:00:00.000Z"));
        check("now/d", Some("Europe/Berlin"), true, Some("2024-03-31T21:59:59.999Z"));
        check("now-1d", Some("Europe/Berlin"), false, Some("2024-03-30T11:20:30.456Z"));
        check("now-24h", Some("Europe/Berlin"), false, Some("2024-03-30T10:20:30.456Z"));
        check("now/M", Some("Europe/Berlin"), false, Some("2024-02-29T23:00:00.000Z"));
        check("now-", None, false, None);
        check("now/2d", None, false, None);
        check("now*1d", None, false, None);
        check("now+99999999999999999y", None, false, None);
    }

    #[test]
    fn nanoseconds_are_kept_unless_math_rounds() {
        let formats = [DateFormat::StrictDateOptionalTime];
        let request = DateRequest::new(&formats, NOW, None).unwrap();
        let at = |text: &str, round_up| request.parse_nanos(text, round_up, true).unwrap() % 1_000_000_000;
        assert_eq!(at("2024-01-05T00:00:00.123456789", false), 123_456_789);
        assert_eq!(at("2024-01-05", true), 999_999_999);
        assert_eq!(at("2024-01-05T00:00:00.123456789||+1d", true), 123_456_789);
        assert_eq!(at("2024-01-05T00:00:00.123456789||/s", false), 0);
        assert_eq!(at("now/d", true), 999_999_999);
        assert_eq!(at("now", true), 456_000_000);
    }

    #[test]
    fn dates_round_and_take_the_zone() {
        check("2024-01-05", None, false, Some("2024-01-05T00:00:00.000Z"));
        check("2024-01-05", None, true, Some("2024-01-05T23:59:59.999Z"));
        check("2024-01-05", Some("+01:00"), false, Some("2024-01-04T23:00:00.000Z"));
        check("2024-01-05T00:00:00Z", Some("+01:00"), false, Some("2024-01-05T00:00:00.000Z"));
        check("2024-07-05", Some("Europe/Berlin"), true, Some("2024-07-05T21:59:59.999Z"));
        check("2024-03-31T02:30:00", Some("Europe/Berlin"), false, Some("2024-03-31T01:30:00.000Z"));
        check("1704412800000", Some("+01:00"), false, Some("2024-01-05T00:00:00.000Z"));
        check("5 January", None, false, None);
        assert!(DateRequest::new(&[], NOW, Some("Mars")).is_err());
    }
}
