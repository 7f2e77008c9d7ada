//! Sizes in bytes as written in requests and settings, such as `1.5gb`.

/// Size units, and the exponents of the powers of two that they stand for. Longer units come first, as
/// several end with `b`.
const SIZES: [(&str, u32); 11] = [
    ("kb", 10),
    ("mb", 20),
    ("gb", 30),
    ("tb", 40),
    ("pb", 50),
    ("k", 10),
    ("m", 20),
    ("g", 30),
    ("t", 40),
    ("p", 50),
    ("b", 0),
];

/// Splits a lower-case size into the number, the unit, and the exponent of the power of two that the unit
/// stands for; `None` if it has no unit.
pub fn split_size(lower: &str) -> Option<(&str, &'static str, u32)> {
    SIZES.into_iter().find_map(|(unit, power)| Some((lower.strip_suffix(unit)?.trim(), unit, power)))
}

/// Parses a size with a unit, such as `1.5gb`, to bytes. `-1` and `0` need no unit, and both are 0. `None` if
/// malformed.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    if matches!(text.as_str(), "0" | "-1") {
        return Some(0);
    }
    let (number, _, power) = split_size(&text)?;
    let number: f64 = number.parse().ok()?;
    (number >= 0.0 && number.is_finite()).then_some((number * (1u64 << power) as f64) as u64)
}

/// Formats a size as Elasticsearch does, such as `6.6kb`.
pub fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["b", "kb", "mb", "gb", "tb"] {
        if value < 1024.0 || unit == "tb" {
            return tenths(value, unit);
        }
        value /= 1024.0;
    }
    format!("{bytes}b")
}

/// Formats a number with its unit and at most one decimal, rounded down.
pub fn tenths(value: f64, unit: &str) -> String {
    let tenths = (value * 10.0).floor() / 10.0;
    if tenths.fract() == 0.0 { format!("{tenths:.0}{unit}") } else { format!("{tenths:.1}{unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_0_and_minus_1_need_none() {
        for (text, bytes) in [
            ("5kb", Some(5120)),
            ("1.5MB", Some(3 << 19)),
            (" 7 b", Some(7)),
            ("2t", Some(2 << 40)),
            ("0", Some(0)),
            ("-1", Some(0)),
            ("5", None),
            ("-5kb", None),
            ("infkb", None),
            ("kb", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }
}
