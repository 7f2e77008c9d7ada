//! Dates by ISO 8601: the form in which nearly all dates come, read without a pattern.

use time::{Date, Month, OffsetDateTime, Time};

use crate::zone::Zone;

const DAY: i64 = 86_400_000;
/// The first and the last millisecond of the calendar, the years -9999 to 9999.
const CALENDAR: std::ops::RangeInclusive<i64> = (Date::MIN.to_julian_day() as i64 - EPOCH) * DAY
    ..=(Date::MAX.to_julian_day() as i64 - EPOCH + 1) * DAY - 1;
/// The Julian day of 1970-01-01.
const EPOCH: i64 = 2_440_588;

/// A date by ISO 8601: a year, optionally followed by the rest of a date, a time, and a time zone behind a time. A month or a day that
/// is left out is the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsoDate {
    date: Date,
    hour: Option<u8>,
    minute: Option<u8>,
    second: Option<u8>,
    nano: Option<u32>,
    zone: Option<Zone>,
}

impl IsoDate {
    /// Reads what Elasticsearch reads by `strict_date_optional_time`: numbers with all their digits, `.` or `,` before one to nine
    /// digits of a fraction, and as a zone `Z`, an offset of two, four or six digits, or a name. `None` if the text is no such date.
    pub fn read(text: &str) -> Option<Self> {
        let (year, mut rest) = match text.strip_prefix('-') {
            Some(rest) => digits(rest.as_bytes(), 4).map(|(year, rest)| (-year, rest)),
            None => digits(text.as_bytes(), 4),
        }?;
        let (mut month, mut day) = (1, 1);
        if let Some(behind) = rest.strip_prefix(b"-") {
            (month, rest) = two(behind, 12)?;
            if let Some(behind) = rest.strip_prefix(b"-") {
                (day, rest) = two(behind, 31)?;
            }
        }
        let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
        let mut read = Self { date, hour: None, minute: None, second: None, nano: None, zone: None };
        match rest {
            b"" | b"T" => return Some(read),
            [b'T', behind @ ..] => rest = behind,
            _ => return None,
        }
        let mut part;
        (part, rest) = two(rest, 23)?;
        read.hour = Some(part);
        if let Some(behind) = rest.strip_prefix(b":") {
            (part, rest) = two(behind, 59)?;
            read.minute = Some(part);
            if let Some(behind) = rest.strip_prefix(b":") {
                (part, rest) = two(behind, 59)?;
                read.second = Some(part);
                if let [b'.' | b',', behind @ ..] = rest {
                    let length = behind.iter().take(9).take_while(|byte| byte.is_ascii_digit()).count();
                    let (value, behind) = digits(behind, length).filter(|_| length > 0)?;
                    read.nano = Some(value.unsigned_abs() * 10_u32.pow(9 - u32::try_from(length).ok()?));
                    rest = behind;
                }
            }
        }
        if !rest.is_empty() {
            read.zone = Some(zone(&text[text.len() - rest.len()..])?);
        }
        Some(read)
    }

    /// Milliseconds since the epoch, in `zone` if the text has none; with `round_up`, what is left out of the time of the day is the last
    /// that there is. `None` outside the years -9999 to 9999.
    pub fn millis(&self, round_up: bool, zone: &Zone) -> Option<i64> {
        let pick = |given: Option<u8>, last: i64| given.map_or(if round_up { last } else { 0 }, i64::from);
        let seconds = pick(self.hour, 23) * 3600 + pick(self.minute, 59) * 60 + pick(self.second, 59);
        let millis = self.nano.map_or(if round_up { 999 } else { 0 }, |nano| i64::from(nano / 1_000_000));
        let days = i64::from(self.date.to_julian_day()) - EPOCH;
        let at = self.zone.as_ref().unwrap_or(zone).to_utc(days * DAY + seconds * 1000 + millis);
        CALENDAR.contains(&at).then_some(at)
    }

    /// As [`IsoDate::millis`], in nanoseconds.
    pub fn nanos(&self, round_up: bool, zone: &Zone) -> Option<i128> {
        let nano = self.nano.unwrap_or(if round_up { 999_999_999 } else { 0 });
        Some(i128::from(self.millis(round_up, zone)?) * 1_000_000 + i128::from(nano % 1_000_000))
    }

    /// The first moment that the text stands for, with the offset that local clocks have there, in `zone` if the text has none. `None`
    /// outside the years -9999 to 9999.
    pub fn first_moment(&self, zone: &Zone) -> Option<OffsetDateTime> {
        let part = |given: Option<u8>| given.unwrap_or(0);
        let (hour, minute, second) = (part(self.hour), part(self.minute), part(self.second));
        let time = Time::from_hms_nano(hour, minute, second, self.nano.unwrap_or(0)).ok()?;
        super::at((self.date.with_time(time), self.zone.clone()), zone)
    }
}

/// The time zone at the end of a date.
fn zone(text: &str) -> Option<Zone> {
    match text.as_bytes() {
        b"Z" => Some(Zone::UTC),
        // Requests may name hours by one digit.
        [b'+' | b'-', ..] => Zone::parse(text).filter(|_| text.len() > 2),
        [first, ..] if first.is_ascii_alphabetic() => Zone::parse_in_date(text),
        _ => None,
    }
}

/// A number of exactly so many digits, and what follows.
fn digits(text: &[u8], length: usize) -> Option<(i32, &[u8])> {
    let (digits, rest) = text.split_at_checked(length)?;
    let mut value = 0;
    for byte in digits {
        value = value * 10 + i32::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
    }
    Some((value, rest))
}

/// A number of two digits up to `most`, and what follows.
fn two(text: &[u8], most: u8) -> Option<(u8, &[u8])> {
    let (value, rest) = digits(text, 2)?;
    Some((u8::try_from(value).ok().filter(|value| *value <= most)?, rest))
}
