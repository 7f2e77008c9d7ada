//! `bytes`: `1kb` becomes 1024.

use serde_json::Value;

use super::text::{self, ChangeText};
use crate::config::Config;
use crate::error::{ConfigError, ProcessorError};
use sparrow_wire::size::split_size;

pub(super) fn from_config(config: &mut Config) -> Result<ChangeText, ConfigError> {
    text::read(config, |text, _| parse(text).map(Value::from), "cannot process it.")
}

/// Parses a size with its unit, `b` to `pb` in either case, into bytes; `0` and `-1` need no unit.
fn parse(text: &str) -> Result<i64, ProcessorError> {
    let lower = text.trim().to_lowercase();
    if matches!(lower.as_str(), "-1" | "0") {
        return Ok(if lower == "0" { 0 } else { -1 });
    }
    let refuse = |reason: &str| ProcessorError::Form {
        reason: format!("failed to parse value [{text}] as a size in bytes{reason}"),
    };
    let (number, _, power) = split_size(&lower).ok_or_else(|| refuse(": unit is missing or unrecognized"))?;
    let whole = number.parse::<i64>().ok().filter(|whole| *whole >= 0);
    if let Some(whole) = whole {
        return whole.checked_mul(1 << power).ok_or_else(|| refuse(": it is too large"));
    }
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let part = number.parse::<f64>().ok().filter(|_| digits).ok_or_else(|| refuse(""))?;
    let bytes = part * f64::from(power).exp2();
    // 2^63, above which an i64 ends.
    if bytes >= 9_223_372_036_854_775_808.0 {
        return Err(refuse(": it is too large"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded above")]
    Ok(bytes as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::processors::check;

    fn bytes(value: Value) -> Result<Value, String> {
        check(json!({"bytes": {"field": "a"}}), json!({"a": value})).map(|source| source["a"].clone())
    }

    #[test]
    fn sizes_become_numbers() {
        for (value, expected) in [
            (json!("1kb"), json!(1024)),
            (json!(" 2 MB "), json!(2_097_152)),
            (json!("1.5g"), json!(1_610_612_736)),
            (json!("7b"), json!(7)),
            (json!("0"), json!(0)),
            (json!("-1"), json!(-1)),
            (json!(["1k", "1b"]), json!([1024, 1])),
        ] {
            assert_eq!(bytes(value).unwrap(), expected);
        }
        for (value, message) in [
            (json!("12"), "failed to parse value [12] as a size in bytes: unit is missing or unrecognized"),
            (json!("xkb"), "failed to parse value [xkb] as a size in bytes"),
            (json!("-3kb"), "failed to parse value [-3kb] as a size in bytes"),
            (json!("1e3kb"), "failed to parse value [1e3kb] as a size in bytes"),
            (
                json!("9999999999pb"),
                "failed to parse value [9999999999pb] as a size in bytes: it is too large",
            ),
            (
                json!("999999999999999999999pb"),
                "failed to parse value [999999999999999999999pb] as a size in bytes: it is too large",
            ),
            (Value::Null, "field [a] is null, cannot process it."),
        ] {
            assert_eq!(bytes(value).unwrap_err(), message);
        }
    }
}
