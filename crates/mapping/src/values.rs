//! Coercion of JSON scalars to field values, with Elasticsearch's messages.

use serde_json::Value;

use super::date;
use super::error::{Cause, ILLEGAL_ARGUMENT, NUMBER_FORMAT, illegal};
use super::java::{java_double, java_float, java_string, token_name};
use super::types::{FieldType, NumberValue, feature_value};

/// Smallest positive normal `f32`, the least weight a feature may have.
pub(crate) const MIN_WEIGHT: f32 = f32::MIN_POSITIVE;

/// The value a float field stores for `value`; queries convert their operands the same way.
pub fn normalize_float(field_type: &FieldType, value: f64) -> f64 {
    match field_type {
        FieldType::Float => f64::from(value as f32),
        FieldType::HalfFloat => half::f16::from_f64(value).to_f64(),
        FieldType::ScaledFloat { factor } => (value * factor).round() / factor,
        _ => value,
    }
}

fn not_a_number(text: &str) -> Vec<Cause> {
    let reason = if text.trim().is_empty() {
        "empty String".to_owned()
    } else {
        format!("For input string: \"{text}\"")
    };
    vec![(NUMBER_FORMAT, reason)]
}

/// Reads a scalar for a number, boolean or date field; `None` stands for no value. `written` is the text of a number that
/// has more digits than a double.
pub(super) fn number(
    field_type: &FieldType,
    coerce: bool,
    value: &Value,
    written: Option<&str>,
) -> Result<Option<NumberValue>, Vec<Cause>> {
    match field_type {
        FieldType::Boolean => boolean(value).map(|flag| flag.map(NumberValue::Bool)),
        FieldType::Date { formats } | FieldType::DateNanos { formats } => {
            let text = match value {
                Value::Null => return Ok(None),
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                other => return Err(illegal(format!("Can't get text on a {}", token_name(other)))),
            };
            let read = match field_type {
                FieldType::DateNanos { .. } => date::parse_nanos(formats, &text, false)
                    .map(|nanos| date::storable_nanos(nanos).map_err(illegal)),
                _ => date::parse_date(formats, &text, false)
                    // These stand for no value in sorts, where pages would lose the document.
                    .filter(|millis| !matches!(*millis, i64::MIN | i64::MAX))
                    .map(Ok),
            };
            match read {
                Some(date) => Ok(Some(NumberValue::I64(date?))),
                None => {
                    let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
                    Err(vec![
                        (
                            ILLEGAL_ARGUMENT,
                            format!("failed to parse date field [{text}] with format [{}]", names.join("||")),
                        ),
                        ("date_time_parse_exception", "Failed to parse with all enclosed parsers".to_owned()),
                    ])
                }
            }
        }
        field_type if field_type.is_integer() => integer(field_type, coerce, value, written),
        field_type => float(field_type, coerce, value),
    }
}

fn boolean(value: &Value) -> Result<Option<bool>, Vec<Cause>> {
    match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        Value::String(text) if text == "true" => Ok(Some(true)),
        Value::String(text) if text == "false" || text.is_empty() => Ok(Some(false)),
        other => Err(illegal(format!(
            "Failed to parse value [{}] as only [true] or [false] are allowed.",
            java_string(other)
        ))),
    }
}

/// Smallest and largest value of an integer field type, and its name in error messages.
fn integer_range(field_type: &FieldType) -> (i128, i128, &'static str) {
    match field_type {
        FieldType::Integer => (i32::MIN.into(), i32::MAX.into(), "an integer"),
        FieldType::Short => (i16::MIN.into(), i16::MAX.into(), "a short"),
        FieldType::Byte => (i8::MIN.into(), i8::MAX.into(), "a byte"),
        FieldType::UnsignedLong => (0, u64::MAX.into(), "an unsigned long"),
        _ => (i64::MIN.into(), i64::MAX.into(), "a long"),
    }
}

fn integer(
    field_type: &FieldType,
    coerce: bool,
    value: &Value,
    written: Option<&str>,
) -> Result<Option<NumberValue>, Vec<Cause>> {
    let (min, max, name) = integer_range(field_type);
    let out_of_range = || {
        let shown = written.map_or_else(|| java_string(value), str::to_owned);
        illegal(format!("Value [{shown}] is out of range for {name}"))
    };
    let (whole, float) = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => {
            let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
            (whole.or_else(|| whole_part(written?, coerce)), number.as_f64())
        }
        Value::String(text) => {
            if text.is_empty() && coerce {
                return Ok(None);
            }
            if !coerce {
                return Err(illegal(format!("{} value passed as String", java_type(field_type))));
            }
            let text = text.trim();
            let float = parse_double(text);
            (whole_part(text, true).filter(|_| float.is_some()), float)
        }
        Value::Object(_) => return Err(illegal("Cannot parse object as number".to_owned())),
        Value::Bool(_) | Value::Array(_) => return Err(not_numeric(value)),
    };
    let whole = match (whole, float) {
        (Some(whole), _) => whole,
        (None, Some(float)) if float.is_nan() => return Err(not_a_number(&java_string(value))),
        (None, Some(float)) => {
            if float < min as f64 || float > max as f64 {
                return Err(out_of_range());
            }
            if float.fract() != 0.0 && !coerce {
                return Err(illegal(format!(
                    "{} cannot be converted to {} without data loss",
                    java_double(float),
                    java_type(field_type)
                )));
            }
            float.trunc() as i128
        }
        (None, None) => return Err(not_a_number(&java_string(value))),
    };
    if whole < min || whole > max {
        return Err(out_of_range());
    }
    Ok(Some(match i64::try_from(whole) {
        Ok(whole) => NumberValue::I64(whole),
        Err(_) => NumberValue::U64(u64::try_from(whole).map_err(|_| out_of_range())?),
    }))
}

/// The whole part of a decimal number, if it has no exponent, and if nothing else is lost or `truncates` says that it may
/// be.
fn whole_part(written: &str, truncates: bool) -> Option<i128> {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let is_whole = fraction.bytes().all(|digit| digit == b'0');
    let is_plain = fraction.bytes().all(|digit| digit.is_ascii_digit());
    if is_whole || truncates && is_plain { whole.parse().ok() } else { None }
}

fn java_type(field_type: &FieldType) -> &'static str {
    match field_type {
        FieldType::Integer => "Integer",
        FieldType::Short => "Short",
        FieldType::Byte => "Byte",
        FieldType::Float => "Float",
        FieldType::Double => "Double",
        _ => "Long",
    }
}

fn float(field_type: &FieldType, coerce: bool, value: &Value) -> Result<Option<NumberValue>, Vec<Cause>> {
    let float = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => {
            if text.is_empty() && coerce {
                return Ok(None);
            }
            if !coerce {
                return Err(illegal(format!("{} value passed as String", java_type(field_type))));
            }
            parse_double(text.trim())
        }
        Value::Object(_) => return Err(illegal("Cannot parse object as number".to_owned())),
        Value::Bool(_) | Value::Array(_) => return Err(not_numeric(value)),
    };
    let Some(float) = float else { return Err(not_a_number(&java_string(value))) };
    let stored = normalize_float(field_type, float);
    if !stored.is_finite() {
        return Err(illegal(format!(
            "[{}] supports only finite values, but got [{}]",
            field_type.name(),
            java_double(stored)
        )));
    }
    Ok(Some(NumberValue::F64(stored)))
}

fn not_numeric(value: &Value) -> Vec<Cause> {
    illegal(format!("Current token ({}) not numeric, can not use numeric value accessors", token_name(value)))
}

/// Parses like Java's `Double.parseDouble`, except for hexadecimal floats and type suffixes.
pub(super) fn parse_double(text: &str) -> Option<f64> {
    match text.trim() {
        "NaN" => Some(f64::NAN),
        "Infinity" | "+Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        // Rust also reads `inf`, `nan` and such, Java does not.
        text if text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')) => {
            text.parse().ok()
        }
        _ => None,
    }
}

/// A weight of a `sparse_vector` or `rank_features` field: `None` for null.
pub(super) fn weight(path: &str, feature: &str, value: &Value) -> Result<Option<f32>, Vec<Cause>> {
    let Some(weight) = single(value, || format!("unexpected token {}", token_name(value)))? else {
        return Ok(None);
    };
    check_feature(path, feature, weight)?;
    Ok(Some(weight))
}

/// Reads a value of a `rank_feature` field; `None` for null.
pub(super) fn rank_feature(
    path: &str,
    positive_score_impact: bool,
    value: &Value,
) -> Result<Option<f32>, Vec<Cause>> {
    let reason =
        || format!("Current token ({}) not numeric, can not use numeric value accessors", token_name(value));
    let Some(value) = single(value, reason)? else { return Ok(None) };
    // Lucene keeps all features in one field of this name.
    check_feature("_feature", path, if positive_score_impact { value } else { 1.0 / value })?;
    Ok(Some(feature_value(value, positive_score_impact)))
}

/// Reads a single-precision number, or text that spells one; `None` for null.
fn single(value: &Value, not_a_scalar: impl Fn() -> String) -> Result<Option<f32>, Vec<Cause>> {
    let single = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_f64().map(|float| float as f32),
        Value::String(text) => match parse_double(text) {
            // Parsed again, as rounding twice may differ.
            Some(double) if double.is_finite() => text.trim().parse().ok(),
            other => other.map(|double| double as f32),
        },
        _ => None,
    };
    single.map(Some).ok_or_else(|| match value {
        Value::String(text) => not_a_number(text),
        _ => illegal(not_a_scalar()),
    })
}

/// Whether Lucene's `FeatureField` accepts a weight: finite and at least [`MIN_WEIGHT`].
pub(super) fn is_weight(weight: f32) -> bool {
    weight.is_finite() && weight >= MIN_WEIGHT
}

/// Refuses a weight that Lucene's `FeatureField` would refuse.
fn check_feature(path: &str, feature: &str, weight: f32) -> Result<(), Vec<Cause>> {
    if !weight.is_finite() {
        return Err(illegal(format!(
            "featureValue must be finite, got: {} for feature {feature} on field {path}",
            java_float(weight)
        )));
    }
    if weight < MIN_WEIGHT {
        return Err(illegal(format!(
            "featureValue must be a positive normal float, got: {} for feature {feature} on field {path} \
             which is less than the minimum positive normal float: 1.17549435E-38",
            java_float(weight)
        )));
    }
    Ok(())
}

/// Whether a keyword is longer than its `ignore_above`, which counts UTF-16 code units, as Java does.
pub fn is_above(ignore_above: Option<usize>, text: &str) -> bool {
    // A text has at least as many bytes.
    ignore_above.is_some_and(|limit| text.len() > limit && text.encode_utf16().count() > limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(field_type: FieldType, value: Value, expected: Result<Option<NumberValue>, &str>) {
        let found = number(&field_type, true, &value, None);
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{value}"),
            (Err(causes), Err(expected)) => assert_eq!(causes[0].1, expected, "{value}"),
            (found, expected) => panic!("{value}: {found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn numbers_are_coerced() {
        use NumberValue::{Bool, F64, I64, U64};
        check(FieldType::Integer, json!("12"), Ok(Some(I64(12))));
        check(FieldType::Integer, json!("12.7"), Ok(Some(I64(12))));
        check(FieldType::Integer, json!(-3.9), Ok(Some(I64(-3))));
        check(FieldType::Integer, json!(""), Ok(None));
        check(FieldType::Integer, json!("oops"), Err("For input string: \"oops\""));
        check(FieldType::Integer, json!("nan"), Err("For input string: \"nan\""));
        check(
            FieldType::Integer,
            json!(1u64 << 31),
            Err("Value [2147483648] is out of range for an integer"),
        );
        check(FieldType::Byte, json!(-129), Err("Value [-129] is out of range for a byte"));
        check(FieldType::Long, json!(9_007_199_254_740_993u64), Ok(Some(I64(9_007_199_254_740_993))));
        check(
            FieldType::Long,
            json!(u64::MAX),
            Err("Value [18446744073709551615] is out of range for a long"),
        );
        check(FieldType::UnsignedLong, json!(u64::MAX), Ok(Some(U64(u64::MAX))));
        check(FieldType::UnsignedLong, json!(-1), Err("Value [-1] is out of range for an unsigned long"));
        check(FieldType::Integer, json!({"a": 1}), Err("Cannot parse object as number"));
        check(FieldType::Float, json!(1.1), Ok(Some(F64(f64::from(1.1f32)))));
        check(FieldType::Double, json!("1.1"), Ok(Some(F64(1.1))));
        check(FieldType::Float, json!(1e40), Err("[float] supports only finite values, but got [Infinity]"));
        check(FieldType::ScaledFloat { factor: 100.0 }, json!(1.234), Ok(Some(F64(1.23))));
        check(FieldType::Boolean, json!("false"), Ok(Some(Bool(false))));
        check(
            FieldType::Boolean,
            json!(1),
            Err("Failed to parse value [1] as only [true] or [false] are allowed."),
        );
    }

    #[test]
    fn weights_are_positive_normal_floats() {
        let check = |value: Value, expected: Result<Option<f32>, &str>| match (
            weight("v", "alpha", &value),
            expected,
        ) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(causes), Err(expected)) => assert!(causes[0].1.contains(expected), "{causes:?}"),
            (found, expected) => panic!("{value}: {found:?}, expected {expected:?}"),
        };
        check(json!(0.7), Ok(Some(0.7)));
        check(json!("0.7"), Ok(Some(0.7)));
        check(json!(null), Ok(None));
        check(json!(-1), Err("got: -1.0 for feature alpha on field v which is less"));
        check(json!(0), Err("got: 0.0 for feature alpha on field v which is less"));
        check(json!(1e-40), Err("got: 1.0E-40 for feature"));
        check(json!("NaN"), Err("featureValue must be finite, got: NaN for feature alpha on field v"));
        check(json!(1e40), Err("featureValue must be finite, got: Infinity"));
        check(json!("abc"), Err("For input string: \"abc\""));
    }

    #[test]
    fn java_prints_numbers_its_own_way() {
        assert_eq!(java_double(1e7), "1.0E7");
        assert_eq!(java_double(123.0), "123.0");
        assert_eq!(java_double(1.5e-5), "1.5E-5");
        assert_eq!(java_string(&json!({"a": [1, 2.0, null]})), "{a=[1, 2.0, null]}");
    }
}
