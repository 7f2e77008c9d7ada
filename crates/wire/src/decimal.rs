//! Formats numbers by a pattern such as `#,##0.00`: the part of Java's `DecimalFormat` without locale-specific texts.

/// A parsed number pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecimalFormat {
    prefix: String,
    suffix: String,
    least_whole: usize,
    least_fraction: usize,
    most_fraction: usize,
    group: usize,
    percent: bool,
}

impl DecimalFormat {
    /// Parses a pattern; `None` if it contains anything but digits, grouping, a decimal point, a percent sign and plain text around
    /// them.
    pub fn parse(pattern: &str) -> Option<Self> {
        let digit = |letter: char| matches!(letter, '#' | '0' | ',' | '.');
        let start = pattern.find(digit)?;
        let end = pattern.rfind(digit)? + 1;
        let (prefix, digits, suffix) = (&pattern[..start], &pattern[start..end], &pattern[end..]);
        let plain = |text: &str| !text.chars().any(|letter| matches!(letter, 'E' | ';' | '\'' | '¤' | '‰'));
        if !plain(prefix) || !plain(suffix) || !digits.chars().all(digit) {
            return None;
        }
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if fraction.contains(['.', ',']) {
            return None;
        }
        let zeros = |text: &str| text.chars().filter(|letter| *letter == '0').count();
        let whole_digits = whole.replace(',', "");
        // Digits that must be there come last before the point and first behind it.
        if whole_digits.trim_start_matches('#').contains('#') || fraction.trim_end_matches('#').contains('#')
        {
            return None;
        }
        Some(Self {
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            least_whole: zeros(whole),
            least_fraction: zeros(fraction),
            most_fraction: fraction.len(),
            group: whole.rfind(',').map_or(0, |at| whole.len() - at - 1),
            percent: prefix.contains('%') || suffix.contains('%'),
        })
    }

    /// Formats a number, rounding halves to the even digit.
    pub fn write(&self, number: f64) -> String {
        let number = if self.percent { number * 100.0 } else { number };
        let text = format!("{:.*}", self.most_fraction, number.abs());
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole = whole.trim_start_matches('0');
        let mut digits = "0".repeat(self.least_whole.saturating_sub(whole.len())) + whole;
        let mut fraction = fraction.to_owned();
        while fraction.len() > self.least_fraction && fraction.ends_with('0') {
            fraction.pop();
        }
        if digits.is_empty() && fraction.is_empty() {
            digits.push('0');
        }
        if self.group > 0 {
            let mut at = digits.len();
            while at > self.group {
                at -= self.group;
                digits.insert(at, ',');
            }
        }
        let zero = digits.chars().chain(fraction.chars()).all(|letter| matches!(letter, '0' | ','));
        let sign = if number < 0.0 && !zero { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{}{digits}{point}{fraction}{}", self.prefix, self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::DecimalFormat;

    #[test]
    fn numbers_are_written_as_the_pattern_says() {
        for (pattern, number, expected) in [
            ("#.0", 1.0, "1.0"),
            ("#.0", 0.5, ".5"),
            ("0.00", 2.7162, "2.72"),
            ("#,##0.##", 1_234_567.5, "1,234,567.5"),
            ("000", 7.0, "007"),
            ("#", 0.0, "0"),
            ("$0.00 x", -2.5, "-$2.50 x"),
            ("0%", 0.25, "25%"),
            ("0", 2.5, "2"),
            ("0", -0.2, "0"),
        ] {
            let format = DecimalFormat::parse(pattern).expect(pattern);
            assert_eq!(format.write(number), expected, "{pattern} {number}");
        }
        for pattern in ["", "abc", "0.0E0", "0;(0)", "0#", "0.#0", "0.0.0"] {
            assert_eq!(DecimalFormat::parse(pattern), None, "{pattern}");
        }
    }
}
