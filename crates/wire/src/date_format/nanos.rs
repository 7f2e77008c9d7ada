//! Dates in nanoseconds since the epoch, as `date_nanos` fields have them: from 1970 to 2262.

use super::{DateFormat, NANOS, format_millis, write_moment};
use crate::date_pattern::IsoDate;
use crate::zone::Zone;

impl DateFormat {
    /// As [`DateFormat::read`], to nanoseconds since the epoch.
    pub fn read_nanos(&self, text: &str, round_up: bool, zone: &Zone) -> Option<i128> {
        let (unit, digits) = match self {
            DateFormat::EpochMillis => (NANOS, 6),
            DateFormat::EpochSecond => (1000 * NANOS, 9),
            DateFormat::StrictDateOptionalTime => return IsoDate::read(text)?.nanos(round_up, zone),
            DateFormat::Pattern(pattern) => {
                return Some(pattern.read(text, round_up, zone)?.unix_timestamp_nanos());
            }
        };
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        let Some(number) = whole.parse::<i64>().ok().filter(|_| is_number(fraction)) else {
            // A number in another notation, such as 1e12, is read to the millisecond.
            return self.read(text, round_up, zone).map(|millis| i128::from(millis) * NANOS);
        };
        let mut rest = fraction.get(..digits).unwrap_or(fraction).parse().unwrap_or(0_i128);
        rest *= 10_i128.pow((digits - fraction.len().min(digits)) as u32);
        if fraction.is_empty() && round_up {
            rest = unit - 1;
        }
        let whole_part = i128::from(number) * unit;
        Some(if whole.starts_with('-') && !fraction.is_empty() {
            whole_part - rest
        } else {
            whole_part + rest
        })
    }

    /// Writes nanoseconds since the epoch as a date in a time zone.
    pub fn write_nanos(&self, nanos: i64, zone: &Zone) -> String {
        let millis = nanos.div_euclid(1_000_000);
        match self {
            DateFormat::StrictDateOptionalTime => self.write(millis, zone),
            DateFormat::EpochMillis => decimal(nanos, 6),
            DateFormat::EpochSecond => decimal(nanos, 9),
            DateFormat::Pattern(pattern) => {
                write_moment(&pattern.writer, nanos.into(), zone).unwrap_or_else(|| millis.to_string())
            }
        }
    }
}

/// A number divided by a power of ten, without the zeros at its end.
fn decimal(number: i64, digits: u32) -> String {
    let unit = 10_u64.pow(digits);
    let (whole, rest) = (number.unsigned_abs() / unit, number.unsigned_abs() % unit);
    let sign = if number < 0 { "-" } else { "" };
    match rest {
        0 => format!("{sign}{whole}"),
        rest => {
            let shown = format!("{sign}{whole}.{rest:0width$}", width = digits as usize);
            shown.trim_end_matches('0').to_owned()
        }
    }
}

/// First matching format's nanoseconds since the epoch; see [`super::parse_date`].
pub fn parse_nanos(formats: &[DateFormat], text: &str, round_up: bool) -> Option<i128> {
    formats.iter().find_map(|format| format.read_nanos(text, round_up, &Zone::UTC))
}

/// A date as a `date_nanos` field keeps it.
///
/// # Errors
/// Elasticsearch's sentence for a date before 1970 or after the first months of 2262.
pub fn storable_nanos(nanos: i128) -> Result<i64, String> {
    let problem = match i64::try_from(nanos) {
        Ok(nanos) if nanos >= 0 => return Ok(nanos),
        _ if nanos < 0 => "before the epoch in 1970",
        _ => "after 2262-04-11T23:47:16.854775807",
    };
    Err(format!("date[{}] is {problem} and cannot be stored in nanosecond resolution", instant(nanos)))
}

/// A moment as Java prints it: with as many groups of three digits behind the seconds as it needs.
fn instant(nanos: i128) -> String {
    let millis = i64::try_from(nanos.div_euclid(NANOS)).unwrap_or(i64::MAX);
    let shown = format_millis(millis);
    let Some(to_second) = shown.strip_suffix('Z').and_then(|shown| shown.rsplit_once('.')) else {
        return shown;
    };
    let fraction = format!("{:09}", nanos.rem_euclid(1000 * NANOS));
    let mut fraction = &fraction[..];
    while let Some(shorter) = fraction.strip_suffix("000") {
        fraction = shorter;
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}Z", to_second.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::date_format::{DEFAULT_NANOS_FORMAT, parse_formats};

    #[test]
    fn dates_are_read_and_written_to_the_nanosecond() {
        let formats = parse_formats(DEFAULT_NANOS_FORMAT).unwrap();
        for (text, nanos, last, shown) in [
            (
                "2015-01-01T12:10:30.123456789Z",
                1_420_114_230_123_456_789,
                0,
                "2015-01-01T12:10:30.123456789Z",
            ),
            ("2015-01-01T12:10:30.1234+01:00", 1_420_110_630_123_400_000, 0, "2015-01-01T11:10:30.1234Z"),
            ("2015-01-01T12:10:30Z", 1_420_114_230_000_000_000, 999_999_999, "2015-01-01T12:10:30.000Z"),
            ("1420114230123", 1_420_114_230_123_000_000, 999_999, "2015-01-01T12:10:30.123Z"),
            ("1420114230123.5", 1_420_114_230_123_500_000, 0, "2015-01-01T12:10:30.1235Z"),
            ("-1.5", -1_500_000, 0, "1969-12-31T23:59:59.9985Z"),
        ] {
            assert_eq!(parse_nanos(&formats, text, false), Some(nanos), "{text}");
            assert_eq!(parse_nanos(&formats, text, true), Some(nanos + last), "{text}");
            assert_eq!(formats[0].write_nanos(nanos as i64, &Zone::UTC), shown);
        }
        assert_eq!(parse_nanos(&formats, "1.", true), Some(1_999_999));
        for text in ["soon", "2015-13-01", "12345678901234567890123"] {
            assert_eq!(
                parse_nanos(&formats, text, false),
                super::super::parse_date(&formats, text, false).map(|at| i128::from(at) * NANOS)
            );
        }
        for (format, text, millis) in [("epoch_millis", "-1.5", -2), ("epoch_second", "-1.0005", -1001)] {
            let format = &parse_formats(format).unwrap()[0];
            let nanos = format.read_nanos(text, false, &Zone::UTC).unwrap();
            assert_eq!(
                format.read(text, false, &Zone::UTC),
                Some(millis),
                "documents and queries read alike"
            );
            assert_eq!(nanos.div_euclid(NANOS), millis.into());
        }
        let written = |format: &str| {
            parse_formats(format).unwrap()[0].write_nanos(1_420_114_230_123_456_780, &Zone::UTC)
        };
        assert_eq!(written("epoch_millis"), "1420114230123.45678");
        assert_eq!(written("epoch_second"), "1420114230.12345678");
        assert_eq!(written("strict_date_optional_time"), "2015-01-01T12:10:30.123Z");
        assert_eq!(written("HH:mm:ss.SSSSSSSSS"), "12:10:30.123456780");
    }

    #[test]
    fn dates_are_kept_from_1970_to_2262() {
        let refused = |nanos: i128| storable_nanos(nanos).unwrap_err();
        assert_eq!((storable_nanos(0), storable_nanos(i64::MAX.into())), (Ok(0), Ok(i64::MAX)));
        assert_eq!(
            refused(-1_000_000_000),
            "date[1969-12-31T23:59:59Z] is before the epoch in 1970 and cannot be stored in nanosecond resolution"
        );
        assert_eq!(
            refused(i128::from(i64::MAX) + 1),
            "date[2262-04-11T23:47:16.854775808Z] is after 2262-04-11T23:47:16.854775807 and cannot be stored in nanosecond resolution"
        );
    }
}
