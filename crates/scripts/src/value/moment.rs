//! Points in time, dates without a time zone, and durations.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

use sparrow_wire::{DatePattern, IsoDate, Zone};
use time::{Date, Duration, Month, OffsetDateTime, Time, UtcOffset};

use crate::error::Fault;

/// Nanoseconds of a second.
const SECOND: i128 = 1_000_000_000;

/// Which of Java's classes it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Instant,
    Zoned,
    Date,
    DateTime,
    Time,
    /// `java.util.Date`.
    Legacy,
}

/// A point in time, or the fields of one.
#[derive(Debug, Clone)]
pub struct Moment {
    pub(crate) class: Class,
    /// With the offset of the zone; local dates and times have the offset 0.
    pub(crate) at: OffsetDateTime,
    pub(crate) zone: ZoneName,
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        self.class == other.class
            && self.at == other.at
            && (self.class != Class::Zoned || self.zone == other.zone)
    }
}

/// A time zone with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct ZoneName {
    pub(crate) name: Rc<str>,
    pub(crate) zone: Zone,
}

pub(crate) fn utc() -> ZoneName {
    ZoneName { name: "Z".into(), zone: Zone::UTC }
}

pub(crate) fn out_of_range() -> Fault {
    Fault::new("date_time_exception", "The date is out of the years -9999 to 9999")
}

fn unreadable(text: &str) -> Fault {
    let shown: String = text.chars().take(64).collect();
    Fault::new("date_time_parse_exception", format!("Text '{shown}' could not be parsed at index 0"))
}

impl ZoneName {
    /// The zone of a name such as `Europe/Paris`, `Z` or `+02:00`.
    pub(crate) fn named(name: &str) -> Result<Self, Fault> {
        match Zone::parse(name) {
            Some(zone) if name.len() < 100 => Ok(Self { name: name.into(), zone }),
            _ => {
                let shown: String = name.chars().take(64).collect();
                Err(Fault::new("zone_rules_exception", format!("Unknown time-zone ID: {shown}")))
            }
        }
    }

    fn offset(&self, millis: i64) -> UtcOffset {
        let seconds = i32::try_from(self.zone.offset_at(millis) / 1000).unwrap_or_default();
        UtcOffset::from_whole_seconds(seconds).unwrap_or(UtcOffset::UTC)
    }
}

impl Moment {
    /// A `ZonedDateTime` in UTC.
    pub(crate) fn utc(nanos: i128) -> Option<Self> {
        let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?;
        Some(Self { class: Class::Zoned, at, zone: utc() })
    }

    /// One of another class, in a zone.
    pub(crate) fn of(class: Class, nanos: i128, zone: &ZoneName) -> Result<Self, Fault> {
        let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).map_err(|_| out_of_range())?;
        let mut moment = Self { class, at, zone: zone.clone() };
        let offset = zone.offset(moment.millis());
        moment.at = at.checked_to_offset(offset).ok_or_else(out_of_range)?;
        Ok(moment)
    }

    /// One whose clocks show this, in a zone.
    pub(crate) fn local(class: Class, date: Date, time: Time, zone: &ZoneName) -> Result<Self, Fault> {
        let shown = date.with_time(time).assume_utc();
        let millis = i64::try_from(shown.unix_timestamp_nanos().div_euclid(1_000_000)).unwrap_or_default();
        let utc = zone.zone.to_utc(millis);
        let nanos = i128::from(utc) * 1_000_000 + shown.unix_timestamp_nanos().rem_euclid(1_000_000);
        Self::of(class, nanos, zone)
    }

    /// Reads a text: ISO 8601, or a pattern.
    pub(crate) fn read(
        class: Class,
        text: &str,
        by: Option<(&DatePattern, &ZoneName)>,
    ) -> Result<Self, Fault> {
        let zone = by.map_or_else(utc, |(_, zone)| zone.clone());
        // A time zone in brackets names what the offset before it is.
        let (plain, named) = match text.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
            Some((plain, name)) => (plain, Some(ZoneName::named(name)?)),
            None => (text, None),
        };
        // Java reads the letters in either case, and names of zones only in brackets.
        let iso = |text: &str| {
            let text = text.to_ascii_uppercase();
            let has_name = text.contains(|char: char| char.is_ascii_uppercase() && !"TZ".contains(char));
            let read = IsoDate::read(&text).filter(|_| !has_name)?;
            Some((read.first_moment(&Zone::UTC)?, None))
        };
        let read = match by {
            Some((pattern, zone)) => pattern.read_with_zone(text, &zone.zone),
            None if class == Class::Time => iso(&format!("1970-01-01T{plain}")),
            None => iso(plain),
        };
        let (at, given) = read.ok_or_else(|| unreadable(text))?;
        let digits = plain.bytes().filter(u8::is_ascii_digit).count();
        let has_zone = plain.ends_with(['Z', 'z']) || plain.rfind(['+', '-']).is_some_and(|sign| sign > 10);
        match class {
            Class::Instant | Class::Zoned if by.is_none() && (!has_zone || digits < 12) => {
                return Err(unreadable(text));
            }
            Class::Date if by.is_none() && plain.len() != 10 => return Err(unreadable(text)),
            Class::DateTime if by.is_none() && (has_zone || digits < 12) => return Err(unreadable(text)),
            _ => {}
        }
        match class {
            Class::Instant | Class::Legacy => Self::of(class, at.unix_timestamp_nanos(), &utc()),
            Class::Zoned => {
                let of_text = |given: Option<Zone>| ZoneName {
                    name: given.as_ref().and_then(Zone::name).unwrap_or(&offset_name(at.offset())).into(),
                    zone: given.unwrap_or_else(|| Zone::Fixed(i64::from(at.offset().whole_seconds()) * 1000)),
                };
                let zone = named.unwrap_or_else(|| match (by, given) {
                    (Some(_), None) => zone,
                    (_, given) => of_text(given),
                });
                Self::of(class, at.unix_timestamp_nanos(), &zone)
            }
            Class::Date => Self::local(class, at.date(), Time::MIDNIGHT, &utc()),
            Class::DateTime => Self::local(class, at.date(), at.time(), &utc()),
            Class::Time => Self::local(class, epoch_day(), at.time(), &utc()),
        }
    }

    pub(crate) fn nanos(&self) -> i128 {
        self.at.unix_timestamp_nanos()
    }

    /// Milliseconds since 1970.
    pub(crate) fn millis(&self) -> i64 {
        i64::try_from(self.nanos().div_euclid(1_000_000)).unwrap_or_default()
    }

    /// The same clock's time plus a number of units: those of a day and more keep what the clock shows.
    pub(crate) fn plus(&self, count: i64, unit: &str) -> Result<Self, Fault> {
        let months = |count: i64| {
            let month = i64::from(self.at.year()) * 12 + i64::from(u8::from(self.at.month())) - 1;
            let month = month.checked_add(count).ok_or_else(out_of_range)?;
            let year = i32::try_from(month.div_euclid(12)).map_err(|_| out_of_range())?;
            let name = Month::try_from((month.rem_euclid(12) + 1) as u8).map_err(|_| out_of_range())?;
            let day = self.at.day().min(name.length(year));
            Date::from_calendar_date(year, name, day).map_err(|_| out_of_range())
        };
        let days = |count: i64| {
            let days = Duration::seconds(count.checked_mul(86_400).ok_or_else(out_of_range)?);
            self.at.date().checked_add(days).ok_or_else(out_of_range)
        };
        let times = |count: i64, by: i64| count.checked_mul(by).ok_or_else(out_of_range);
        let date = match unit {
            "DAYS" => days(count)?,
            "WEEKS" => days(times(count, 7)?)?,
            "MONTHS" => months(count)?,
            "YEARS" => months(times(count, 12)?)?,
            "DECADES" => months(times(count, 120)?)?,
            other => {
                let nanos =
                    unit_nanos(other).ok_or_else(|| Fault::illegal(format!("Unsupported unit: {other}")))?;
                let nanos = i128::from(count).saturating_mul(nanos).saturating_add(self.nanos());
                return match self.class {
                    Class::Time => Self::of(self.class, nanos.rem_euclid(86_400 * SECOND), &self.zone),
                    _ => Self::of(self.class, nanos, &self.zone),
                };
            }
        };
        Self::local(self.class, date, self.at.time(), &self.zone)
    }

    /// Whole units from this moment to another.
    pub(crate) fn until(&self, other: &Self, unit: &str) -> Result<i64, Fault> {
        if let Some(nanos) =
            unit_nanos(unit).or(if unit == "WEEKS" { Some(7 * 86_400 * SECOND) } else { None })
        {
            // Days are those of the calendar here.
            let shown = |moment: &Self| match unit {
                "DAYS" | "WEEKS" | "HALF_DAYS" => {
                    let offset = if self.class == Class::Zoned {
                        self.zone.offset(moment.millis())
                    } else {
                        UtcOffset::UTC
                    };
                    moment.nanos() + i128::from(offset.whole_seconds()) * SECOND
                }
                _ => moment.nanos(),
            };
            let between = shown(other) - shown(self);
            return i64::try_from(between / nanos).map_err(|_| out_of_range());
        }
        let by = match unit {
            "MONTHS" => 1,
            "YEARS" => 12,
            "DECADES" => 120,
            other => return Err(Fault::illegal(format!("Unsupported unit: {other}"))),
        };
        let other = other.at.checked_to_offset(self.at.offset()).ok_or_else(out_of_range)?;
        let month = |at: OffsetDateTime| i64::from(at.year()) * 12 + i64::from(u8::from(at.month()));
        let rest = |at: OffsetDateTime| (at.day(), at.time());
        let mut months = month(other) - month(self.at);
        if months > 0 && rest(other) < rest(self.at) {
            months -= 1;
        } else if months < 0 && rest(other) > rest(self.at) {
            months += 1;
        }
        Ok(months / by)
    }

    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at)
    }

    pub(crate) fn class_name(&self) -> &'static str {
        match self.class {
            Class::Instant => "java.time.Instant",
            Class::Zoned => "java.time.ZonedDateTime",
            Class::Date => "java.time.LocalDate",
            Class::DateTime => "java.time.LocalDateTime",
            Class::Time => "java.time.LocalTime",
            Class::Legacy => "java.util.Date",
        }
    }

    /// The moment in a document, with at least milliseconds.
    pub(crate) fn json(&self) -> String {
        match self.class {
            Class::Date | Class::Time => self.to_string(),
            _ => {
                let (date, time) = (date_text(self.at.date()), time_text(self.at.time(), 3));
                let offset =
                    if self.class == Class::DateTime { String::new() } else { offset_name(self.at.offset()) };
                format!("{date}T{time}{offset}")
            }
        }
    }
}

impl fmt::Display for Moment {
    /// As Java's `toString` writes it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (date_text(self.at.date()), time_text(self.at.time(), 0));
        let full = if self.at.second() == 0 && self.at.nanosecond() == 0 {
            format!("{time}:00")
        } else {
            time.clone()
        };
        match self.class {
            Class::Date => out.write_str(&date),
            Class::Time => out.write_str(&time),
            Class::DateTime => write!(out, "{date}T{time}"),
            Class::Instant => write!(out, "{date}T{full}Z"),
            Class::Legacy => {
                let (day, month) = (self.at.weekday().to_string(), self.at.month().to_string());
                let seconds = time_text(self.at.time().replace_nanosecond(0).unwrap_or(Time::MIDNIGHT), 1);
                write!(
                    out,
                    "{} {} {:02} {} UTC {}",
                    &day[..3],
                    &month[..3],
                    self.at.day(),
                    &seconds[..8],
                    self.at.year()
                )
            }
            Class::Zoned => {
                write!(out, "{date}T{time}{}", offset_name(self.at.offset()))?;
                match self.zone.name.contains(['/', 'T', 'C']) {
                    true => write!(out, "[{}]", self.zone.name),
                    false => Ok(()),
                }
            }
        }
    }
}

fn epoch_day() -> Date {
    OffsetDateTime::UNIX_EPOCH.date()
}

fn date_text(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), u8::from(date.month()), date.day())
}

/// A time with as few digits as Java gives it, but with at least so many behind the point.
fn time_text(time: Time, least: usize) -> String {
    let (hour, minute, second, nanos) = time.as_hms_nano();
    let digits = match nanos {
        0 => 0,
        _ if nanos % 1_000_000 == 0 => 3,
        _ if nanos % 1_000 == 0 => 6,
        _ => 9,
    }
    .max(least);
    let fraction = &format!("{nanos:09}")[..digits];
    match (digits, second) {
        (0, 0) => format!("{hour:02}:{minute:02}"),
        (0, _) => format!("{hour:02}:{minute:02}:{second:02}"),
        _ => format!("{hour:02}:{minute:02}:{second:02}.{fraction}"),
    }
}

/// `Z`, or `+02:00`.
pub(crate) fn offset_name(offset: UtcOffset) -> String {
    let (hours, minutes, _) = offset.as_hms();
    match offset.is_utc() {
        true => "Z".into(),
        false => {
            let sign = if offset.is_negative() { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", hours.unsigned_abs(), minutes.unsigned_abs())
        }
    }
}

/// Nanoseconds of a unit that always has as many.
pub(crate) fn unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "NANOS" => 1,
        "MICROS" => 1_000,
        "MILLIS" => 1_000_000,
        "SECONDS" => SECOND,
        "MINUTES" => 60 * SECOND,
        "HOURS" => 3_600 * SECOND,
        "HALF_DAYS" => 43_200 * SECOND,
        "DAYS" => 86_400 * SECOND,
        _ => return None,
    })
}

/// A duration as Java writes it: `PT1H30M`.
pub(crate) fn span_text(nanos: i128) -> String {
    let (seconds, rest) = (nanos / SECOND, nanos % SECOND);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let mut text = String::from("PT");
    for (count, unit) in [(hours, 'H'), (minutes, 'M')] {
        if count != 0 {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    if seconds != 0 || rest != 0 || text.len() == 2 {
        let sign = if nanos < 0 && seconds == 0 && rest != 0 { "-" } else { "" };
        let fraction = format!("{:09}", rest.unsigned_abs());
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        text.push_str(&format!("{sign}{seconds}{point}{fraction}S"));
    }
    text
}
