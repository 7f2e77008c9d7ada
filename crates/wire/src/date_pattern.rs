//! Java date patterns, as far as requests and pipelines use them, for parsing and formatting.

use crate::zone::Zone;
use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime, Time, UtcOffset, Weekday};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A parsed pattern such as `dd/MMM/yyyy:HH:mm:ss Z`.
#[derive(Debug, Clone, PartialEq)]
pub struct DatePattern {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Literal(String),
    Year(usize),
    /// Year of the ISO 8601 week.
    WeekYear(usize),
    Week(usize),
    /// Day of the week, 1 (Monday) to 7.
    DayOfWeek,
    Month(usize),
    Day(usize),
    DayOfYear(usize),
    DayName(usize),
    /// Hour of the day, 0 to 23.
    Hour(usize),
    /// Hour of the day, 1 to 24.
    ClockHour(usize),
    /// Hour of the half day, 1 to 12.
    HalfDayHour(usize),
    Minute(usize),
    Second(usize),
    Fraction(usize),
    HalfDay,
    /// UTC offset such as `+0100`.
    OffsetDigits,
    /// UTC offset: `Z`, or `+01`, `+0100`, `+01:00` depending on the number of letters.
    OffsetIso(usize),
    /// Zone name: `UTC`, `GMT` or `Z`.
    ZoneName,
}

/// Date fields parsed so far.
#[derive(Default)]
struct Fields {
    year: Option<i32>,
    week_year: Option<i32>,
    week: Option<u8>,
    day_of_week: Option<u8>,
    month: Option<u8>,
    day: Option<u8>,
    day_of_year: Option<u16>,
    hour: Option<u8>,
    half_day_hour: Option<u8>,
    afternoon: bool,
    minute: u8,
    second: u8,
    nanos: u32,
    offset: Option<UtcOffset>,
}

impl DatePattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// When the pattern is empty, has an unclosed quote, or contains a letter that is not supported.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut chars = pattern.chars().peekable();
        while let Some(char) = chars.next() {
            let literal = match char {
                '\'' => {
                    let mut text = String::new();
                    loop {
                        match chars.next() {
                            Some('\'') if chars.peek() == Some(&'\'') => text.extend(chars.next()),
                            Some('\'') => break,
                            Some(char) => text.push(char),
                            None => {
                                return Err(format!("Invalid format: [{pattern}]: a quote is not closed"));
                            }
                        }
                    }
                    if text.is_empty() { "'".to_owned() } else { text }
                }
                letter if letter.is_ascii_alphabetic() => {
                    let mut length = 1;
                    while chars.next_if_eq(&letter).is_some() {
                        length += 1;
                    }
                    parts.push(Part::from_letter(letter, length).ok_or_else(|| {
                        format!("Invalid format: [{pattern}]: pattern letter [{letter}] is not supported")
                    })?);
                    continue;
                }
                other => other.to_string(),
            };
            match parts.last_mut() {
                Some(Part::Literal(text)) => text.push_str(&literal),
                _ => parts.push(Part::Literal(literal)),
            }
        }
        if parts.is_empty() {
            return Err("Invalid format: the pattern is empty".into());
        }
        Ok(Self { parts })
    }

    /// Parses a date; `zone` applies if the text has no offset. `None` if the text does not match.
    pub fn read(&self, text: &str, zone: &Zone) -> Option<OffsetDateTime> {
        let mut fields = Fields::default();
        let mut rest = text;
        for part in &self.parts {
            rest = part.read(rest, &mut fields)?;
        }
        if rest.is_empty() { fields.build(zone) } else { None }
    }

    /// Formats a date.
    pub fn write(&self, date: OffsetDateTime) -> String {
        let mut out = String::new();
        for part in &self.parts {
            part.write(date, &mut out);
        }
        out
    }
}

impl Part {
    fn from_letter(letter: char, length: usize) -> Option<Self> {
        Some(match letter {
            'y' | 'u' => Self::Year(length),
            'Y' => Self::WeekYear(length),
            'w' => Self::Week(length),
            'e' if length == 1 => Self::DayOfWeek,
            'M' | 'L' => Self::Month(length),
            'd' => Self::Day(length),
            'D' => Self::DayOfYear(length),
            'E' => Self::DayName(length),
            'H' => Self::Hour(length),
            'k' => Self::ClockHour(length),
            'h' => Self::HalfDayHour(length),
            'm' => Self::Minute(length),
            's' => Self::Second(length),
            'S' => Self::Fraction(length),
            'a' => Self::HalfDay,
            'Z' if length < 4 => Self::OffsetDigits,
            'X' | 'x' if length <= 3 => Self::OffsetIso(length),
            'z' | 'v' | 'V' => Self::ZoneName,
            _ => return None,
        })
    }

    fn read<'t>(&self, text: &'t str, fields: &mut Fields) -> Option<&'t str> {
        let (value, rest): (u32, &str) = match self {
            Self::Literal(literal) => return text.strip_prefix(literal.as_str()),
            Self::Month(3) => {
                return name(text, &MONTHS, true, |at| fields.month = u8::try_from(at + 1).ok());
            }
            Self::Month(length) if *length > 3 => {
                return name(text, &MONTHS, false, |at| fields.month = u8::try_from(at + 1).ok());
            }
            Self::DayName(length) => return name(text, &DAYS, *length < 4, |_| {}),
            Self::HalfDay => {
                let (half, rest) = text.split_at_checked(2)?;
                fields.afternoon = match half.to_ascii_uppercase().as_str() {
                    "AM" => false,
                    "PM" => true,
                    _ => return None,
                };
                return Some(rest);
            }
            Self::Fraction(length) => {
                let digits = text.get(..*length)?;
                if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                let nanos: String = digits.chars().chain("000000000".chars()).take(9).collect();
                fields.nanos = nanos.parse().ok()?;
                return Some(&text[*length..]);
            }
            Self::OffsetDigits | Self::OffsetIso(_) => {
                let (offset, rest) = leading_offset(text)?;
                fields.offset = Some(offset);
                return Some(rest);
            }
            Self::ZoneName => {
                let rest = ["UTC", "GMT", "Z"].iter().find_map(|zone| text.strip_prefix(zone))?;
                fields.offset = Some(UtcOffset::UTC);
                return Some(rest);
            }
            Self::Year(2) | Self::WeekYear(2) => {
                let (year, rest) = number(text, 2, 2)?;
                (year + 2000, rest)
            }
            Self::Year(length) | Self::WeekYear(length) => number(text, *length, (*length).max(4))?,
            Self::DayOfWeek => number(text, 1, 1)?,
            Self::DayOfYear(length) => number(text, *length, 3)?,
            Self::Month(length)
            | Self::Day(length)
            | Self::Week(length)
            | Self::Hour(length)
            | Self::ClockHour(length)
            | Self::HalfDayHour(length)
            | Self::Minute(length)
            | Self::Second(length) => number(text, *length, 2)?,
        };
        match self {
            Self::Year(_) => fields.year = i32::try_from(value).ok(),
            Self::WeekYear(_) => fields.week_year = i32::try_from(value).ok(),
            Self::Week(_) => fields.week = u8::try_from(value).ok(),
            Self::DayOfWeek => fields.day_of_week = u8::try_from(value).ok(),
            Self::DayOfYear(_) => fields.day_of_year = u16::try_from(value).ok(),
            Self::Month(_) => fields.month = u8::try_from(value).ok(),
            Self::Day(_) => fields.day = u8::try_from(value).ok(),
            Self::Hour(_) => fields.hour = u8::try_from(value).ok(),
            Self::ClockHour(_) => fields.hour = u8::try_from(value % 24).ok(),
            Self::HalfDayHour(_) => fields.half_day_hour = u8::try_from(value % 12).ok(),
            Self::Minute(_) => fields.minute = u8::try_from(value).ok()?,
            Self::Second(_) => fields.second = u8::try_from(value).ok()?,
            Self::Literal(_)
            | Self::DayName(_)
            | Self::Fraction(_)
            | Self::HalfDay
            | Self::OffsetDigits
            | Self::OffsetIso(_)
            | Self::ZoneName => {}
        }
        Some(rest)
    }

    fn write(&self, date: OffsetDateTime, out: &mut String) {
        let month = usize::from(u8::from(date.month()));
        let day = usize::from(date.weekday().number_days_from_monday());
        let text = match self {
            Self::Literal(literal) => literal.clone(),
            Self::Year(2) => format!("{:02}", date.year().rem_euclid(100)),
            Self::Year(length) => format!("{:0width$}", date.year(), width = *length),
            Self::WeekYear(2) => format!("{:02}", date.date().to_iso_week_date().0.rem_euclid(100)),
            Self::WeekYear(length) => {
                format!("{:0width$}", date.date().to_iso_week_date().0, width = *length)
            }
            Self::Week(length) => format!("{:0width$}", date.iso_week(), width = *length),
            Self::DayOfWeek => (day + 1).to_string(),
            Self::Month(3) => MONTHS[month - 1][..3].to_owned(),
            Self::Month(length) if *length > 3 => MONTHS[month - 1].to_owned(),
            Self::Month(length) => format!("{month:0width$}", width = *length),
            Self::Day(length) => format!("{:0width$}", date.day(), width = *length),
            Self::DayOfYear(length) => format!("{:0width$}", date.ordinal(), width = *length),
            Self::DayName(length) if *length < 4 => DAYS[day][..3].to_owned(),
            Self::DayName(_) => DAYS[day].to_owned(),
            Self::Hour(length) => format!("{:0width$}", date.hour(), width = *length),
            Self::ClockHour(length) => {
                format!("{:0width$}", if date.hour() == 0 { 24 } else { date.hour() }, width = *length)
            }
            Self::HalfDayHour(length) => {
                let hour = if date.hour().is_multiple_of(12) { 12 } else { date.hour() % 12 };
                format!("{hour:0width$}", width = *length)
            }
            Self::Minute(length) => format!("{:0width$}", date.minute(), width = *length),
            Self::Second(length) => format!("{:0width$}", date.second(), width = *length),
            Self::Fraction(length) => format!("{:09}", date.nanosecond()).chars().take(*length).collect(),
            Self::HalfDay => if date.hour() < 12 { "AM" } else { "PM" }.to_owned(),
            Self::OffsetDigits => offset_text(date.offset(), ""),
            Self::OffsetIso(_) if date.offset().is_utc() => "Z".to_owned(),
            Self::OffsetIso(1) => offset_text(date.offset(), "")[..3].to_owned(),
            Self::OffsetIso(2) => offset_text(date.offset(), ""),
            Self::OffsetIso(_) => offset_text(date.offset(), ":"),
            Self::ZoneName if date.offset().is_utc() => "UTC".to_owned(),
            Self::ZoneName => offset_text(date.offset(), ":"),
        };
        out.push_str(&text);
    }
}

impl Fields {
    fn build(self, zone: &Zone) -> Option<OffsetDateTime> {
        // A pattern without a year means this year, as in system logs.
        let year = || self.year.unwrap_or_else(|| OffsetDateTime::now_utc().year());
        let date = match (self.week_year, self.day_of_year) {
            (Some(year), _) => {
                let day = self.day_of_week.unwrap_or(1).checked_sub(1).filter(|day| *day < 7)?;
                let day = Weekday::Monday.nth_next(day);
                Date::from_iso_week_date(year, self.week.unwrap_or(1), day).ok()?
            }
            (None, Some(day)) => Date::from_ordinal_date(year(), day).ok()?,
            (None, None) => {
                let month = Month::try_from(self.month.unwrap_or(1)).ok()?;
                Date::from_calendar_date(year(), month, self.day.unwrap_or(1)).ok()?
            }
        };
        let hour = match (self.hour, self.half_day_hour) {
            (Some(hour), _) => hour,
            (None, Some(hour)) => hour + if self.afternoon { 12 } else { 0 },
            (None, None) => 0,
        };
        let time = Time::from_hms_nano(hour, self.minute, self.second, self.nanos).ok()?;
        let local = PrimitiveDateTime::new(date, time);
        if let Some(offset) = self.offset {
            return Some(local.assume_offset(offset));
        }
        let seconds = zone.to_utc(local.assume_utc().unix_timestamp() * 1000).div_euclid(1000);
        OffsetDateTime::from_unix_timestamp(seconds).ok()?.replace_nanosecond(time.nanosecond()).ok()
    }
}

/// Parses an ISO 8601 date: a year, optionally followed by the rest of a date, a time and an offset. `zone`
/// applies if there is no offset.
pub fn parse_iso8601(text: &str, zone: &Zone) -> Option<OffsetDateTime> {
    let mut fields = Fields::default();
    let (year, mut rest) = number(text, 4, 4)?;
    fields.year = i32::try_from(year).ok();
    if let Some(after) = rest.strip_prefix('-') {
        let (month, after) = number(after, 2, 2)?;
        fields.month = u8::try_from(month).ok();
        rest = after;
        if let Some(after) = rest.strip_prefix('-') {
            let (day, after) = number(after, 2, 2)?;
            fields.day = u8::try_from(day).ok();
            rest = after;
        }
    }
    if let Some(after) = rest.strip_prefix(['T', 't', ' ']) {
        let (hour, after) = number(after, 2, 2)?;
        fields.hour = u8::try_from(hour).ok();
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            let (minute, after) = number(after, 2, 2)?;
            fields.minute = u8::try_from(minute).ok()?;
            rest = after;
            if let Some(after) = rest.strip_prefix(':') {
                let (second, after) = number(after, 2, 2)?;
                fields.second = u8::try_from(second).ok()?;
                rest = after;
                if let Some(after) = rest.strip_prefix(['.', ',']) {
                    let length = after.bytes().take_while(u8::is_ascii_digit).count();
                    if length == 0 || length > 9 {
                        return None;
                    }
                    rest = Part::Fraction(length).read(after, &mut fields)?;
                }
            }
        }
    }
    if !rest.is_empty() {
        let (offset, after) = leading_offset(rest)?;
        fields.offset = Some(offset);
        rest = after;
    }
    if rest.is_empty() { fields.build(zone) } else { None }
}

fn leading_offset(text: &str) -> Option<(UtcOffset, &str)> {
    if let Some(rest) = text.strip_prefix(['Z', 'z']) {
        return Some((UtcOffset::UTC, rest));
    }
    let negative = match text.as_bytes().first()? {
        b'+' => false,
        b'-' => true,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2, 2)?;
    let after = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = number(after, 2, 2).unwrap_or((0, rest));
    if hours > 18 || minutes > 59 {
        return None;
    }
    let seconds = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    let offset = Duration::seconds(i64::from(if negative { -seconds } else { seconds }));
    Some((UtcOffset::from_whole_seconds(i32::try_from(offset.whole_seconds()).ok()?).ok()?, rest))
}

fn offset_text(offset: UtcOffset, separator: &str) -> String {
    let (hours, minutes, _) = offset.as_hms();
    let sign = if offset.is_negative() { '-' } else { '+' };
    format!("{sign}{:02}{separator}{:02}", hours.unsigned_abs(), minutes.unsigned_abs())
}

fn number(text: &str, least: usize, most: usize) -> Option<(u32, &str)> {
    let length = text.bytes().take(most.max(least)).take_while(u8::is_ascii_digit).count();
    if length < least { None } else { Some((text[..length].parse().ok()?, &text[length..])) }
}

fn name<'t>(text: &'t str, names: &[&str], short: bool, found: impl FnOnce(usize)) -> Option<&'t str> {
    let (at, length) = names.iter().enumerate().find_map(|(at, name)| {
        let name = if short { &name[..3] } else { name };
        let start = text.get(..name.len())?;
        start.eq_ignore_ascii_case(name).then_some((at, name.len()))
    })?;
    found(at);
    Some(&text[length..])
}
