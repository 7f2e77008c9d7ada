//! How numbers and dates are written as text.

use std::borrow::Cow;

use sparrow_mapping::date::parse_formats;
use sparrow_mapping::{DateFormat, ip, java_double};
use sparrow_wire::Zone;

use super::cells::Cells;

/// How the values of a field are shown as text.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueFormat {
    /// Unformatted: responses have the values without a text form.
    Raw,
    /// IP addresses, whose keys are keywords encoded by [`ip`].
    Ip,
    /// `true` and `false`.
    Boolean,
    /// Dates in the local time of a zone.
    Date(DateFormat, Zone),
    /// Numbers by a pattern such as `#,##0.00`.
    Decimal(Decimal),
    /// Cells of a grid, by their names.
    Cell(Cells),
}

impl ValueFormat {
    /// Formats a number; `None` if its values have no text form.
    pub fn text(&self, value: f64) -> Option<String> {
        match self {
            ValueFormat::Raw | ValueFormat::Ip | ValueFormat::Cell(_) => None,
            _ => Some(self.key(value)),
        }
    }

    /// Formats a number; like Java's `Double.toString` if there is no format.
    pub fn key(&self, value: f64) -> String {
        match self {
            ValueFormat::Raw | ValueFormat::Ip | ValueFormat::Cell(_) => java_double(value),
            ValueFormat::Boolean => (value != 0.0).to_string(),
            ValueFormat::Date(format, zone) => format.write(value as i64, zone),
            ValueFormat::Decimal(pattern) => pattern.format(value),
        }
    }

    /// Whether the values are IP addresses.
    pub fn is_address(&self) -> bool {
        matches!(self, ValueFormat::Ip)
    }

    /// Formats a keyword: an IP address in the usual notation, any other unchanged.
    pub fn keyword<'t>(&self, keyword: &'t str) -> Cow<'t, str> {
        match self {
            ValueFormat::Ip => Cow::Owned(ip::shown(keyword)),
            _ => Cow::Borrowed(keyword),
        }
    }

    /// Formats an integer; `None` if its values have no text form.
    pub fn whole_text(&self, value: i64) -> Option<String> {
        match self {
            ValueFormat::Raw | ValueFormat::Ip | ValueFormat::Cell(_) => None,
            ValueFormat::Boolean => Some((value != 0).to_string()),
            ValueFormat::Date(format, zone) => Some(format.write(value, zone)),
            ValueFormat::Decimal(pattern) => Some(pattern.format(value as f64)),
        }
    }
}

/// The first date format of a request's `format`; `None` if that is not a date format.
pub fn date_format(format: &str) -> Option<DateFormat> {
    parse_formats(format).ok()?.into_iter().next()
}

/// A number pattern as in Java's `DecimalFormat`: literal text around digits `0` and `#`, grouping and `%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Decimal {
    prefix: String,
    suffix: String,
    whole_digits: usize,
    least_fraction: usize,
    most_fraction: usize,
    group: usize,
    factor: f64,
}

impl Decimal {
    /// Parses a number pattern. One without any digit consists of literal text only.
    pub fn new(pattern: &str) -> Self {
        let pattern = pattern.split(';').next().unwrap_or_default();
        let is_digit = |c: char| matches!(c, '0' | '#');
        let start = pattern.find(is_digit).unwrap_or(pattern.len());
        let start = match pattern[..start].strip_suffix('.') {
            Some(before) => before.len(),
            None => start,
        };
        let body_len = pattern[start..].find(|c| !matches!(c, '0' | '#' | ',' | '.'));
        let end = body_len.map_or(pattern.len(), |length| start + length);
        let (prefix, body, suffix) = (&pattern[..start], &pattern[start..end], &pattern[end..]);
        let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
        let zeros = |text: &str| text.matches('0').count();
        let group = whole.rsplit_once(',').map_or(0, |(_, last)| last.len());
        let affixes = format!("{prefix}{suffix}");
        let factor = if affixes.contains('%') {
            100.0
        } else if affixes.contains('\u{2030}') {
            1000.0
        } else {
            1.0
        };
        let unquoted = |text: &str| text.replace("''", "\u{0}").replace('\'', "").replace('\u{0}', "'");
        Self {
            prefix: unquoted(prefix),
            suffix: unquoted(suffix),
            whole_digits: zeros(whole),
            least_fraction: zeros(fraction),
            most_fraction: fraction.chars().filter(|&c| is_digit(c)).count().min(17),
            group,
            factor,
        }
    }

    fn format(&self, value: f64) -> String {
        if value.is_nan() {
            return "NaN".to_owned();
        }
        if value.is_infinite() {
            let sign = if value < 0.0 { "-" } else { "" };
            return format!("{sign}{}\u{221e}{}", self.prefix, self.suffix);
        }
        // Rust rounds ties to even, as Java's pattern does.
        let digits = format!("{:.*}", self.most_fraction, (value * self.factor).abs());
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        let mut fraction = fraction.to_owned();
        while fraction.len() > self.least_fraction && fraction.ends_with('0') {
            fraction.pop();
        }
        let whole = whole.trim_start_matches('0');
        let mut whole = format!("{}{whole}", "0".repeat(self.whole_digits.saturating_sub(whole.len())));
        if whole.is_empty() && fraction.is_empty() {
            whole.push('0');
        }
        if self.group > 0 {
            let mut grouped = String::new();
            for (place, digit) in whole.chars().enumerate() {
                if place > 0 && (whole.len() - place).is_multiple_of(self.group) {
                    grouped.push(',');
                }
                grouped.push(digit);
            }
            whole = grouped;
        }
        let sign = if value < 0.0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{whole}{point}{fraction}{}", self.prefix, self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::{Decimal, date_format};
    use sparrow_wire::Zone;

    #[test]
    fn numbers_follow_patterns() {
        for (pattern, value, expected) in [
            ("0.00", 1.005, "1.00"),
            ("0.0#", 0.04, "0.04"),
            ("0.0#", 0.0, "0.0"),
            ("#,##0.00", 1_234_567.891, "1,234,567.89"),
            ("$###.00", 12.5, "$12.50"),
            ("0000.0", -3.0, "-0003.0"),
            ("#.##%", 0.256, "25.6%"),
            ("Value is ##0.0", 50.0, "Value is 50.0"),
            ("#", 0.2, "0"),
            (".00", 0.5, ".50"),
        ] {
            assert_eq!(Decimal::new(pattern).format(value), expected, "{pattern} {value}");
        }
    }

    #[test]
    fn dates_follow_patterns() {
        let at = 1_709_209_815_123; // 2024-02-29T12:30:15.123Z, a Thursday
        for (format, zone, expected) in [
            ("strict_date_optional_time", 0, "2024-02-29T12:30:15.123Z"),
            ("iso8601", -2 * 3_600_000, "2024-02-29T10:30:15.123-02:00"),
            ("epoch_millis", 3_600_000, "1709209815123"),
            ("epoch_second", 0, "1709209815.123"),
            ("yyyy-MM-dd", 12 * 3_600_000, "2024-03-01"),
            ("dd.MM.yy HH 'h'", 0, "29.02.24 12 h"),
            ("yyyyMMdd'T'HHmmss.SSSXX", 0, "20240229T123015.123Z"),
        ] {
            let zone = Zone::Fixed(zone);
            assert_eq!(date_format(format).unwrap().write(at, &zone), expected, "{format}");
        }
    }
}
