//! Dates as Elasticsearch's formats read them, to milliseconds since the epoch.

use time::{Date, Month, PrimitiveDateTime, Time, UtcOffset};

/// Format of date fields whose mapping does not name one.
pub const DEFAULT_FORMAT: &str = "strict_date_optional_time||epoch_millis";
/// The format dynamic date detection gives to dates with slashes.
pub const SLASH_FORMAT: &str = "yyyy/MM/dd HH:mm:ss||yyyy/MM/dd||epoch_millis";

/// One alternative of a date format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DateFormat {
    /// ISO 8601 with optional time, strict digit counts (`strict_date_optional_time`).
    StrictDateOptionalTime,
    /// Milliseconds since the epoch.
    EpochMillis,
    /// Seconds since the epoch.
    EpochSecond,
    /// A pattern of date letters such as `yyyy/MM/dd HH:mm:ss`.
    Pattern(String),
}

impl DateFormat {
    /// The format's name in mappings.
    pub fn name(&self) -> &str {
        match self {
            DateFormat::StrictDateOptionalTime => "strict_date_optional_time",
            DateFormat::EpochMillis => "epoch_millis",
            DateFormat::EpochSecond => "epoch_second",
            DateFormat::Pattern(pattern) => pattern,
        }
    }
}

/// Parses a format string with alternatives (`a||b`); the error is Elasticsearch's sentence.
pub fn parse_formats(formats: &str) -> Result<Vec<DateFormat>, String> {
    formats.split("||").map(|name| parse_format(name.trim())).collect()
}

fn parse_format(name: &str) -> Result<DateFormat, String> {
    let pattern = match name {
        "strict_date_optional_time"
        | "strict_date_optional_time_nanos"
        | "date_optional_time"
        | "iso8601"
        | "strict_date_time"
        | "date_time"
        | "strict_date_time_no_millis"
        | "date_time_no_millis" => return Ok(DateFormat::StrictDateOptionalTime),
        "epoch_millis" => return Ok(DateFormat::EpochMillis),
        "epoch_second" => return Ok(DateFormat::EpochSecond),
        "strict_date" | "date" | "strict_year_month_day" | "year_month_day" => "yyyy-MM-dd",
        "basic_date" => "yyyyMMdd",
        "strict_year" | "year" => "yyyy",
        "strict_year_month" | "year_month" => "yyyy-MM",
        "basic_date_time" => "yyyyMMdd'T'HHmmss.SSSXX",
        "basic_date_time_no_millis" => "yyyyMMdd'T'HHmmssXX",
        "strict_date_hour_minute_second" | "date_hour_minute_second" => "yyyy-MM-dd'T'HH:mm:ss",
        "strict_date_hour_minute" | "date_hour_minute" => "yyyy-MM-dd'T'HH:mm",
        "" => return Err("No date pattern provided".to_owned()),
        other => other,
    };
    check_pattern(pattern)?;
    Ok(DateFormat::Pattern(pattern.to_owned()))
}

/// First matching format's milliseconds since the epoch.
///
/// Parts the text does not give are the first possible ones, or the last if `round_up` (for the upper
/// end of a range).
pub fn parse_date(formats: &[DateFormat], text: &str, round_up: bool) -> Option<i64> {
    formats.iter().find_map(|format| match format {
        DateFormat::EpochMillis => text.parse::<i64>().ok().or_else(|| {
            let millis = text.parse::<f64>().ok()?;
            millis.is_finite().then_some(millis as i64)
        }),
        DateFormat::EpochSecond => {
            let seconds = text.parse::<f64>().ok()?;
            seconds.is_finite().then_some((seconds * 1000.0) as i64)
        }
        DateFormat::StrictDateOptionalTime => parse_iso(text)?.to_millis(round_up),
        DateFormat::Pattern(pattern) => parse_pattern(pattern, text)?.to_millis(round_up),
    })
}

/// The format (of those dynamic mapping tries) that reads `text`, as a mapping writes it; `Some(None)`
/// is the default format.
pub(crate) fn detect(text: &str) -> Option<Option<&'static str>> {
    if parse_iso(text).and_then(|parts| parts.to_millis(false)).is_some() {
        return Some(None);
    }
    ["yyyy/MM/dd HH:mm:ss", "yyyy/MM/dd"]
        .iter()
        .any(|pattern| parse_pattern(pattern, text).and_then(|parts| parts.to_millis(false)).is_some())
        .then_some(Some(SLASH_FORMAT))
}

/// Formats milliseconds since the epoch like `strict_date_optional_time`; just the number if it is outside the range
/// of the calendar.
pub fn format_millis(millis: i64) -> String {
    iso_millis(millis).unwrap_or_else(|| millis.to_string())
}

/// Formats milliseconds since the epoch as an ISO 8601 UTC time; `None` outside the range of the calendar.
pub fn iso_millis(millis: i64) -> Option<String> {
    let at = time::OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * 1_000_000).ok()?;
    Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    ))
}

#[derive(Default, Clone, Copy)]
struct Parts {
    year: i32,
    month: Option<u8>,
    day: Option<u8>,
    hour: Option<u8>,
    minute: Option<u8>,
    second: Option<u8>,
    nano: Option<u32>,
    offset: Option<UtcOffset>,
}

impl Parts {
    fn to_millis(self, up: bool) -> Option<i64> {
        let pick = |value: Option<u8>, low: u8, high: u8| value.unwrap_or(if up { high } else { low });
        // Elasticsearch rounds the clock up, not the calendar: `2015-02` ends on its first day.
        let month = Month::try_from(self.month.unwrap_or(1)).ok()?;
        let day = self.day.unwrap_or(1);
        let date = Date::from_calendar_date(self.year, month, day).ok()?;
        let nano = self.nano.unwrap_or(if up { 999_000_000 } else { 0 });
        let (hour, minute) = (pick(self.hour, 0, 23), pick(self.minute, 0, 59));
        let clock = Time::from_hms_nano(hour, minute, pick(self.second, 0, 59), nano).ok()?;
        let at = PrimitiveDateTime::new(date, clock).assume_offset(self.offset.unwrap_or(UtcOffset::UTC));
        i64::try_from(at.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
    }
}

struct Scanner<'a> {
    rest: &'a str,
}

impl Scanner<'_> {
    fn digits(&mut self, min: usize, max: usize) -> Option<u32> {
        let count = self.rest.bytes().take(max).take_while(u8::is_ascii_digit).count();
        if count < min {
            return None;
        }
        let (digits, rest) = self.rest.split_at(count);
        self.rest = rest;
        digits.parse().ok()
    }

    fn two(&mut self) -> Option<u8> {
        self.digits(2, 2).and_then(|value| u8::try_from(value).ok())
    }

    fn eat(&mut self, byte: char) -> bool {
        match self.rest.strip_prefix(byte) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn fraction(&mut self) -> Option<(u32, u8)> {
        let count = self.rest.bytes().take(9).take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return None;
        }
        let value = self.digits(count, count)?;
        Some((value * 10u32.pow(9 - count as u32), count as u8))
    }

    /// Reads a time zone offset: `Z`, `+01`, `+0100` or `+01:00`.
    fn offset(&mut self) -> Option<UtcOffset> {
        if self.eat('Z') || self.eat('z') {
            return Some(UtcOffset::UTC);
        }
        let sign = if self.eat('+') {
            1
        } else if self.eat('-') {
            -1
        } else {
            return None;
        };
        let hours = self.two()? as i8;
        let colon = self.eat(':');
        let minutes = match self.two() {
            Some(minutes) => minutes as i8,
            None if colon => return None,
            None => 0,
        };
        UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
    }
}

fn parse_iso(text: &str) -> Option<Parts> {
    let mut scan = Scanner { rest: text };
    let mut parts = Parts::default();
    let negative = scan.eat('-');
    parts.year = i32::try_from(scan.digits(4, 4)?).ok()? * if negative { -1 } else { 1 };
    if scan.eat('-') {
        parts.month = Some(scan.two()?);
        if scan.eat('-') {
            parts.day = Some(scan.two()?);
        }
    }
    if parts.day.is_some() && scan.eat('T') && !scan.rest.is_empty() {
        parts.hour = Some(scan.two()?);
        if scan.eat(':') {
            parts.minute = Some(scan.two()?);
            if scan.eat(':') {
                parts.second = Some(scan.two()?);
                if scan.eat('.') || scan.eat(',') {
                    parts.nano = Some(scan.fraction()?.0);
                }
            }
        }
        if !scan.rest.is_empty() {
            parts.offset = Some(scan.offset()?);
        }
    }
    scan.rest.is_empty().then_some(parts)
}

fn check_pattern(pattern: &str) -> Result<(), String> {
    let mut quoted = false;
    for letter in pattern.chars() {
        match letter {
            '\'' => quoted = !quoted,
            _ if quoted => {}
            'y' | 'u' | 'M' | 'd' | 'H' | 'm' | 's' | 'S' | 'X' | 'x' | 'Z' => {}
            letter if letter.is_ascii_alphabetic() => {
                return Err(format!("Invalid format: [{pattern}]: Unknown pattern letter: {letter}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn parse_pattern(pattern: &str, text: &str) -> Option<Parts> {
    let mut scan = Scanner { rest: text };
    let mut parts = Parts::default();
    let letters: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    while at < letters.len() {
        let letter = letters[at];
        if letter == '\'' {
            at += 1;
            while at < letters.len() && letters[at] != '\'' {
                scan.eat(letters[at]).then_some(())?;
                at += 1;
            }
            at += 1;
            continue;
        }
        let run = letters[at..].iter().take_while(|&&next| next == letter).count();
        at += run;
        let number = |scan: &mut Scanner<'_>| -> Option<u8> {
            let (min, max) = if run == 1 { (1, 2) } else { (run, run) };
            u8::try_from(scan.digits(min, max)?).ok()
        };
        match letter {
            'y' | 'u' => {
                parts.year = i32::try_from(scan.digits(run.min(4), run.clamp(1, 4).max(4))?).ok()?;
                if run == 2 {
                    parts.year += 2000;
                }
            }
            'M' => parts.month = Some(number(&mut scan)?),
            'd' => parts.day = Some(number(&mut scan)?),
            'H' => parts.hour = Some(number(&mut scan)?),
            'm' => parts.minute = Some(number(&mut scan)?),
            's' => parts.second = Some(number(&mut scan)?),
            'S' => {
                let (nano, digits) = scan.fraction()?;
                if usize::from(digits) != run {
                    return None;
                }
                parts.nano = Some(nano);
            }
            'X' | 'x' | 'Z' => parts.offset = Some(scan.offset()?),
            other => {
                for _ in 0..run {
                    scan.eat(other).then_some(())?;
                }
            }
        }
    }
    scan.rest.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, text: &str, expected: Option<i64>) {
        let formats = parse_formats(format).unwrap();
        assert_eq!(parse_date(&formats, text, false), expected, "{format} {text}");
    }

    #[test]
    fn formats_read_dates() {
        check(DEFAULT_FORMAT, "1970-01-02", Some(86_400_000));
        check(DEFAULT_FORMAT, "2024-02-29T12:30:15.123Z", Some(1_709_209_815_123));
        check(DEFAULT_FORMAT, "2024-02-29T12:30:15.123+02:00", Some(1_709_202_615_123));
        check(DEFAULT_FORMAT, "2023-02-29", None);
        check(DEFAULT_FORMAT, "1420070400001", Some(1_420_070_400_001));
        check(DEFAULT_FORMAT, "2015", Some(1_420_070_400_000));
        check(DEFAULT_FORMAT, "24-1-1", None);
        check(DEFAULT_FORMAT, "abc", None);
        check("yyyy/MM/dd HH:mm:ss||yyyy/MM/dd", "2015/01/01", Some(1_420_070_400_000));
        check("yyyyMMdd", "20150101", Some(1_420_070_400_000));
        check("dd.MM.yyyy 'at' HH", "01.01.2015 at 01", Some(1_420_074_000_000));
        check("epoch_second", "1420070400", Some(1_420_070_400_000));
        assert!(parse_formats("yyyy-Q").is_err());
    }

    #[test]
    fn upper_ends_round_up() {
        let formats = parse_formats(DEFAULT_FORMAT).unwrap();
        let end = parse_date(&formats, "2015-02", true).unwrap();
        assert_eq!(format_millis(end), "2015-02-01T23:59:59.999Z");
    }

    #[test]
    fn detection_is_not_fooled() {
        assert_eq!(detect("2015-01-01"), Some(None));
        assert_eq!(detect("2015/01/01"), Some(Some(SLASH_FORMAT)));
        assert_eq!(detect("2015/13/01"), None);
        assert_eq!(detect("hello"), None);
    }
}
