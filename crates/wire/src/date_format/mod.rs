//! Dates as Elasticsearch's formats read them, to milliseconds or nanoseconds since the epoch.

mod built_in;
#[cfg(test)]
mod java;
mod nanos;

use std::sync::{Arc, LazyLock};

pub use nanos::{parse_nanos, storable_nanos};
use time::OffsetDateTime;

use crate::date_pattern::{DatePattern, IsoDate};
use crate::zone::Zone;

/// Format of date fields whose mapping does not name one.
pub const DEFAULT_FORMAT: &str = "strict_date_optional_time||epoch_millis";
/// Format of `date_nanos` fields whose mapping does not name one.
pub const DEFAULT_NANOS_FORMAT: &str = "strict_date_optional_time_nanos||epoch_millis";

/// Nanoseconds of a millisecond.
const NANOS: i128 = 1_000_000;
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
    /// A pattern of date letters such as `yyyy/MM/dd HH:mm:ss`, or another format with a name.
    Pattern(Arc<NamedPattern>),
}

/// A format that reads and writes dates by patterns.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedPattern {
    name: Arc<str>,
    /// Tried one after another.
    readers: Vec<DatePattern>,
    writer: DatePattern,
}

impl NamedPattern {
    /// The first or the last moment that a text stands for, by the first pattern that reads it.
    fn read(&self, text: &str, last: bool, zone: &Zone) -> Option<OffsetDateTime> {
        self.readers.iter().find_map(|reader| match last {
            true => reader.last_moment(text, zone),
            false => reader.first_moment(text, zone),
        })
    }
}

impl DateFormat {
    /// The format's name in mappings.
    pub fn name(&self) -> &str {
        match self {
            DateFormat::StrictDateOptionalTime => "strict_date_optional_time",
            DateFormat::EpochMillis => "epoch_millis",
            DateFormat::EpochSecond => "epoch_second",
            DateFormat::Pattern(pattern) => &pattern.name,
        }
    }

    /// Whether it is a format of a stored mapping that cannot be used any more: see [`stored_formats`].
    fn reads_nothing(&self) -> bool {
        matches!(self, DateFormat::Pattern(pattern) if pattern.readers.is_empty())
    }

    /// Reads a date, to milliseconds since the epoch. Without an offset it is in `zone`.
    ///
    /// Parts that the text does not give are the first possible ones, or the last if `round_up` (for the upper end of a range).
    pub fn read(&self, text: &str, round_up: bool, zone: &Zone) -> Option<i64> {
        match self {
            DateFormat::EpochMillis => text.parse::<i64>().ok().or_else(|| {
                let millis = text.parse::<f64>().ok()?;
                // Parts of a millisecond are left out as they are of other dates: towards the past.
                millis.is_finite().then_some(millis.floor() as i64)
            }),
            DateFormat::EpochSecond => {
                let seconds = text.parse::<f64>().ok()?;
                let millis = seconds.is_finite().then_some((seconds * 1000.0).floor() as i64)?;
                let is_whole = !text.contains(['.', 'e', 'E']);
                Some(if round_up && is_whole { millis.saturating_add(999) } else { millis })
            }
            DateFormat::StrictDateOptionalTime => IsoDate::read(text)?.millis(round_up, zone),
            DateFormat::Pattern(pattern) => {
                let at = pattern.read(text, round_up, zone)?;
                i64::try_from(at.unix_timestamp_nanos().div_euclid(NANOS)).ok()
            }
        }
    }

    /// Reads a date for an ingest pipeline, to the nanosecond. Without a time zone it is in `zone`, and without a year it is in this one.
    pub fn moment(&self, text: &str, zone: &Zone) -> Option<OffsetDateTime> {
        match self {
            DateFormat::EpochMillis | DateFormat::EpochSecond => {
                let nanos = i128::from(self.read(text, false, zone)?) * NANOS;
                OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()
            }
            DateFormat::StrictDateOptionalTime => IsoDate::read(text)?.first_moment(zone),
            DateFormat::Pattern(pattern) => pattern.readers.iter().find_map(|reader| reader.read(text, zone)),
        }
    }

    /// Writes milliseconds since the epoch as a date in a time zone; just the number if it is outside the range of the calendar.
    pub fn write(&self, millis: i64, zone: &Zone) -> String {
        let pattern = match self {
            DateFormat::EpochMillis => return millis.to_string(),
            DateFormat::EpochSecond => {
                let (seconds, fraction) = (millis.div_euclid(1000), millis.rem_euclid(1000));
                return match fraction {
                    0 => seconds.to_string(),
                    _ if seconds < 0 => (millis as f64 / 1000.0).to_string(),
                    fraction => format!("{seconds}.{fraction:03}").trim_end_matches('0').to_owned(),
                };
            }
            DateFormat::StrictDateOptionalTime if *zone == Zone::UTC => return format_millis(millis),
            DateFormat::StrictDateOptionalTime => &*ISO,
            DateFormat::Pattern(pattern) => &pattern.writer,
        };
        write_moment(pattern, i128::from(millis) * NANOS, zone).unwrap_or_else(|| millis.to_string())
    }
}

/// Writes nanoseconds since the epoch with a pattern, in a time zone; `None` outside the range of the calendar.
fn write_moment(pattern: &DatePattern, nanos: i128, zone: &Zone) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?;
    Some(pattern.write_in(zone.local(at)?, zone))
}

/// How dates are written in time zones by formats without a pattern.
static ISO: LazyLock<DatePattern> =
    LazyLock::new(|| DatePattern::parse("uuuu-MM-dd'T'HH:mm:ss.SSSXXX").expect("the letters are all known"));

/// Most characters of the formats in a request: each of them is tried with each value.
pub const MOST_FORMAT: usize = 200;

/// Parses the formats that a request gives, with alternatives (`a||b`).
///
/// # Errors
/// Elasticsearch's sentence when one of them cannot be used, or one of our own when they are longer than [`MOST_FORMAT`] characters.
pub fn parse_formats(formats: &str) -> Result<Vec<DateFormat>, String> {
    let length = formats.chars().count();
    if length > MOST_FORMAT {
        return Err(format!(
            "[format] is too long: at most [{MOST_FORMAT}] characters are possible, found [{length}]"
        ));
    }
    names(formats).map(parse_format).collect()
}

/// The formats of a mapping that is stored. Earlier versions took patterns that this one refuses: those read no date, and write dates as
/// `strict_date_optional_time` does.
pub fn stored_formats(formats: &str) -> Vec<DateFormat> {
    let unreadable = |name: &str| {
        DateFormat::Pattern(Arc::new(NamedPattern {
            name: name.into(),
            readers: Vec::new(),
            writer: ISO.clone(),
        }))
    };
    names(formats).map(|name| parse_format(name).unwrap_or_else(|_| unreadable(name))).collect()
}

/// Why the first of the stored formats that read nothing cannot be used; `None` if all read dates.
pub fn unusable(formats: &[DateFormat]) -> Option<String> {
    formats.iter().find(|format| format.reads_nothing()).and_then(|format| parse_format(format.name()).err())
}

fn names(formats: &str) -> impl Iterator<Item = &str> {
    formats.split("||").map(str::trim)
}

fn parse_format(name: &str) -> Result<DateFormat, String> {
    match name {
        "strict_date_optional_time" | "iso8601" => return Ok(DateFormat::StrictDateOptionalTime),
        "epoch_millis" => return Ok(DateFormat::EpochMillis),
        "epoch_second" => return Ok(DateFormat::EpochSecond),
        "" => return Err("No date pattern provided".to_owned()),
        _ => {}
    }
    let pattern = match built_in::find(name) {
        Some(found) => found?,
        None => {
            let pattern = DatePattern::parse(name)?;
            NamedPattern { name: Arc::from(name), readers: vec![pattern.clone()], writer: pattern }
        }
    };
    Ok(DateFormat::Pattern(Arc::new(pattern)))
}

/// First matching format's milliseconds since the epoch.
///
/// Parts the text does not give are the first possible ones, or the last if `round_up` (for the upper
/// end of a range).
pub fn parse_date(formats: &[DateFormat], text: &str, round_up: bool) -> Option<i64> {
    formats.iter().find_map(|format| format.read(text, round_up, &Zone::UTC))
}

/// The formats with slashes that dynamic mapping tries.
static SLASHES: LazyLock<Vec<DatePattern>> = LazyLock::new(|| {
    let patterns = ["yyyy/MM/dd HH:mm:ss", "yyyy/MM/dd"].into_iter().map(DatePattern::parse);
    patterns.collect::<Result<_, _>>().expect("the letters are all known")
});

/// The format (of those dynamic mapping tries) that reads `text`, as a mapping writes it; `Some(None)`
/// is the default format.
pub fn detect(text: &str) -> Option<Option<&'static str>> {
    if IsoDate::read(text).is_some() {
        return Some(None);
    }
    SLASHES.iter().any(|format| format.first_moment(text, &Zone::UTC).is_some()).then_some(Some(SLASH_FORMAT))
}

/// Formats milliseconds since the epoch like `strict_date_optional_time`; just the number if it is outside the range
/// of the calendar.
pub fn format_millis(millis: i64) -> String {
    iso_millis(millis).unwrap_or_else(|| millis.to_string())
}

/// Formats milliseconds since the epoch as an ISO 8601 UTC time; `None` outside the range of the calendar.
pub fn iso_millis(millis: i64) -> Option<String> {
    let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(millis) * NANOS).ok()?;
    let sign = if at.year() < 0 { "-" } else { "" };
    Some(format!(
        "{sign}{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year().unsigned_abs(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    ))
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
        for format in [DEFAULT_FORMAT, "date_optional_time", "yyyy-MM-dd'T'HH:mm:ssXXX"] {
            check(format, "9999-12-31T23:59:59Z", Some(253_402_300_799_000));
            check(format, "9999-12-31T23:59:59-18:00", None);
        }
        check(DEFAULT_FORMAT, "abc", None);
        check("yyyy/MM/dd HH:mm:ss||yyyy/MM/dd", "2015/01/01", Some(1_420_070_400_000));
        check("yyyyMMdd", "20150101", Some(1_420_070_400_000));
        check("dd.MM.yyyy 'at' HH", "01.01.2015 at 01", Some(1_420_074_000_000));
        check("epoch_second", "1420070400", Some(1_420_070_400_000));
        assert!(parse_formats("yyyy-W").is_err());
    }

    #[test]
    fn dates_before_the_year_0_are_read_as_they_are_written() {
        for (millis, text) in [
            (-65_278_204_793_000, "-0099-06-02T05:20:07.000Z"),
            (-62_167_219_200_001, "-0001-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(format_millis(millis), text);
            check(DEFAULT_FORMAT, text, Some(millis));
            let zone = Zone::parse("+01:00").unwrap();
            let local = DateFormat::StrictDateOptionalTime.write(millis, &zone);
            check("uuuu-MM-dd'T'HH:mm:ss.SSSXXXXX", &local, Some(millis));
        }
    }

    #[test]
    fn formats_of_requests_are_bounded() {
        let long = "'[-yyyy]'".repeat(30);
        assert_eq!(
            parse_formats(&long).unwrap_err(),
            "[format] is too long: at most [200] characters are possible, found [270]"
        );
        assert_eq!(stored_formats(&long).len(), 1);
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
