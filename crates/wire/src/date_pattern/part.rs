//! The parts of a pattern: what each reads of a text, and writes of a date.

use time::OffsetDateTime;

use super::fields::{Field, Fields, quarter};
use super::number::Digits;
use super::offset::{OffsetForm, read_localized, write_localized};
use crate::zone::Zone;

/// Longest name of a time zone, in bytes.
const LONGEST_ZONE: usize = 40;

/// Names of time zones by abbreviations that mean one zone to nearly everybody.
const ABBREVIATIONS: [(&str, &str); 19] = [
    ("AKDT", "America/Anchorage"),
    ("AKST", "America/Anchorage"),
    ("CDT", "America/Chicago"),
    ("CEST", "Europe/Paris"),
    ("CET", "Europe/Paris"),
    ("CST", "America/Chicago"),
    ("EDT", "America/New_York"),
    ("EEST", "Europe/Bucharest"),
    ("EET", "Europe/Bucharest"),
    ("EST", "America/New_York"),
    ("HST", "Pacific/Honolulu"),
    ("JST", "Asia/Tokyo"),
    ("MDT", "America/Denver"),
    ("MSK", "Europe/Moscow"),
    ("MST", "America/Denver"),
    ("PDT", "America/Los_Angeles"),
    ("PST", "America/Los_Angeles"),
    ("WEST", "Europe/Lisbon"),
    ("WET", "Europe/Lisbon"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    Number {
        field: Field,
        digits: Digits,
    },
    /// The last two digits of a year from 2000 to 2099.
    ShortYear {
        field: Field,
        digits: Digits,
    },
    /// Digits of the fraction of a second; `shown` of them are written at least, and more where bounds allow it and they are not zero.
    Fraction {
        digits: Digits,
        shown: usize,
    },
    /// One of several names, of which the first stands for the value `first`.
    Name {
        field: Field,
        names: &'static [&'static str],
        first: u8,
    },
    Offset(OffsetForm),
    LocalizedOffset {
        full: bool,
    },
    /// A time zone: its name in the tz database or its offset, and with `abbreviated` one of [`ABBREVIATIONS`].
    Zone {
        abbreviated: bool,
    },
    Optional(Vec<Part>),
}

impl Part {
    /// Whether a part, or one in an optional one, is as `wanted`.
    pub(super) fn any(parts: &[Self], wanted: &impl Fn(&Self) -> bool) -> bool {
        parts.iter().any(|part| match part {
            Self::Optional(inner) => Self::any(inner, wanted),
            part => wanted(part),
        })
    }

    /// The field that the part reads and writes.
    pub(super) fn field(&self) -> Option<Field> {
        match self {
            Self::Number { field, .. } | Self::ShortYear { field, .. } | Self::Name { field, .. } => {
                Some(*field)
            }
            Self::Fraction { .. } => Some(Field::Nano),
            Self::Literal(_)
            | Self::Offset(_)
            | Self::LocalizedOffset { .. }
            | Self::Zone { .. }
            | Self::Optional(_) => None,
        }
    }

    /// The digits of a number, which may be followed by another one.
    pub(super) fn digits_mut(&mut self) -> Option<&mut Digits> {
        match self {
            Self::Number { digits, .. } | Self::ShortYear { digits, .. } | Self::Fraction { digits, .. } => {
                Some(digits)
            }
            _ => None,
        }
    }

    /// Reads parts one after another. Returns what follows.
    pub(super) fn read_all<'t>(parts: &[Self], text: &'t str, fields: &mut Fields) -> Option<&'t str> {
        parts.iter().try_fold(text, |rest, part| part.read(rest, fields))
    }

    fn read<'t>(&self, text: &'t str, fields: &mut Fields) -> Option<&'t str> {
        match self {
            Self::Literal(literal) => text.strip_prefix(literal.as_str()),
            Self::Number { field, digits } => {
                let (value, _, rest) = digits.read(text)?;
                fields.set(*field, value)?;
                Some(rest)
            }
            Self::ShortYear { field, digits } => {
                let (value, _, rest) = digits.read(text)?;
                fields.set(*field, value + 2000)?;
                Some(rest)
            }
            Self::Fraction { digits, .. } => {
                let (value, length, rest) = digits.read(text)?;
                fields.set_fraction(value, length)?;
                Some(rest)
            }
            Self::Name { field, names, first } => {
                let is_there = |(_, name): &(usize, &&str)| text.starts_with(**name);
                let (at, name) =
                    names.iter().enumerate().filter(is_there).max_by_key(|(_, name)| name.len())?;
                fields.set(*field, i64::try_from(at).ok()? + i64::from(*first))?;
                Some(&text[name.len()..])
            }
            Self::Offset(form) => with_offset(form.read(text)?, fields),
            Self::LocalizedOffset { full } => with_offset(read_localized(text, *full)?, fields),
            Self::Zone { abbreviated } => {
                let (zone, rest) = zone(text, *abbreviated)?;
                with_zone(zone, fields)?;
                Some(rest)
            }
            Self::Optional(parts) => {
                let mut tried = fields.clone();
                let Some(rest) = Self::read_all(parts, text, &mut tried) else { return Some(text) };
                *fields = tried;
                Some(rest)
            }
        }
    }

    /// Writes the part of a date; `zone` is the name of its time zone, if it has one.
    pub(super) fn write(&self, date: OffsetDateTime, zone: Option<&str>, out: &mut String) {
        match self {
            Self::Literal(literal) => out.push_str(literal),
            Self::Number { field, digits } => digits.write(value_of(*field, date), out),
            Self::ShortYear { field, digits } => digits.write(value_of(*field, date).rem_euclid(100), out),
            Self::Fraction { digits, shown } => {
                let all = format!("{:09}", date.nanosecond());
                let needed = all.trim_end_matches('0').len();
                out.push_str(&all[..needed.clamp(*shown, digits.most.max(*shown))]);
            }
            Self::Name { field, names, first } => {
                let at = usize::try_from(value_of(*field, date) - i64::from(*first));
                out.push_str(at.ok().and_then(|at| names.get(at)).copied().unwrap_or_default());
            }
            Self::Offset(form) => form.write(date.offset(), out),
            Self::LocalizedOffset { full } => write_localized(date.offset(), *full, out),
            Self::Zone { .. } => match zone {
                Some(name) => out.push_str(name),
                None => OffsetForm::WITH_COLONS.write(date.offset(), out),
            },
            Self::Optional(parts) => parts.iter().for_each(|part| part.write(date, zone, out)),
        }
    }
}

fn with_offset<'t>((seconds, rest): (i32, &'t str), fields: &mut Fields) -> Option<&'t str> {
    with_zone(Zone::Fixed(i64::from(seconds) * 1000), fields)?;
    Some(rest)
}

/// Sets the time zone; `None` if there is another one already.
fn with_zone(zone: Zone, fields: &mut Fields) -> Option<()> {
    match fields.zone.replace(zone.clone()) {
        Some(before) if before != zone => None,
        _ => Some(()),
    }
}

/// Reads the longest name of a time zone. Returns the zone with what follows.
fn zone(text: &str, abbreviated: bool) -> Option<(Zone, &str)> {
    if text.starts_with(['+', '-']) {
        let (seconds, rest) = OffsetForm::WITH_COLONS.read(text)?;
        return Some((Zone::Fixed(i64::from(seconds) * 1000), rest));
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"/_+-:".contains(byte);
    let longest = text.bytes().take(LONGEST_ZONE).take_while(is_part).count();
    (1..=longest).rev().find_map(|length| {
        let (name, rest) = text.split_at(length);
        let known = ABBREVIATIONS.iter().find(|(short, _)| abbreviated && *short == name);
        let zone = Zone::parse(known.map_or(name, |(_, long)| long)).filter(|_| name != "z")?;
        Some((zone, rest))
    })
}

fn value_of(field: Field, date: OffsetDateTime) -> i64 {
    let year = i64::from(date.year());
    let (week_year, week, day) = date.date().to_iso_week_date();
    let hour = i64::from(date.hour());
    let nano_of_day = (date.time() - time::Time::MIDNIGHT).whole_nanoseconds();
    let nano_of_day = i64::try_from(nano_of_day).unwrap_or_default();
    match field {
        Field::Era => i64::from(year > 0),
        Field::Year => year,
        Field::YearOfEra if year > 0 => year,
        Field::YearOfEra => 1 - year,
        Field::WeekYear => week_year.into(),
        Field::Week => week.into(),
        Field::Quarter => quarter(date.date()),
        Field::Month => u8::from(date.month()).into(),
        Field::Day => date.day().into(),
        Field::DayOfYear => date.ordinal().into(),
        Field::DayOfWeek => day.number_from_monday().into(),
        Field::HalfDay => i64::from(hour >= 12),
        Field::Hour => hour,
        Field::ClockHour => (hour + 23) % 24 + 1,
        Field::HalfDayHour => hour % 12,
        Field::HalfDayClockHour => (hour + 11) % 12 + 1,
        Field::Minute => date.minute().into(),
        Field::Second => date.second().into(),
        Field::Nano => date.nanosecond().into(),
        Field::MilliOfDay => nano_of_day / 1_000_000,
        Field::NanoOfDay => nano_of_day,
    }
}
