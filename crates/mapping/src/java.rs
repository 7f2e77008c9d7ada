//! JSON values as Java and Elasticsearch's parser write them, for error messages and settings.

use serde_json::Value;

/// A JSON value as Java prints the equivalent collection: `{a=1, b=[x, y]}`.
pub fn java_string(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => java_double(float),
            _ => number.to_string(),
        },
        Value::String(text) => text.clone(),
        Value::Array(values) => {
            let inner: Vec<String> = values.iter().map(java_string).collect();
            format!("[{}]", inner.join(", "))
        }
        Value::Object(map) => {
            let inner: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}={}", java_string(value))).collect();
            format!("{{{}}}", inner.join(", "))
        }
    }
}

/// Formats like Java's `Double.toString`: plain between 1e-3 and 1e7, otherwise with an exponent; always with a
/// fraction.
pub fn java_double(value: f64) -> String {
    java_decimal(value, format!("{value:?}"), format!("{value:e}"))
}

/// Formats like Java's `Float.toString`.
pub(crate) fn java_float(value: f32) -> String {
    java_decimal(f64::from(value), format!("{value:?}"), format!("{value:e}"))
}

fn java_decimal(value: f64, plain: String, scientific: String) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return plain;
    }
    match scientific.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => scientific,
    }
}

/// Token type of a JSON value as error messages of Elasticsearch's document parser name it, such as `VALUE_TRUE`.
pub(crate) fn token_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "VALUE_NULL",
        Value::Bool(true) => "VALUE_TRUE",
        Value::Bool(false) => "VALUE_FALSE",
        Value::Number(number) if number.is_f64() => "VALUE_NUMBER_FLOAT",
        Value::Number(_) => "VALUE_NUMBER",
        Value::String(_) => "VALUE_STRING",
        Value::Array(_) => "START_ARRAY",
        Value::Object(_) => "START_OBJECT",
    }
}

/// Token type of a JSON value as error messages of Elasticsearch's request parsers name it, such as `VALUE_BOOLEAN`.
pub fn json_token(value: &Value) -> &'static str {
    match value {
        Value::Null => "VALUE_NULL",
        Value::Bool(_) => "VALUE_BOOLEAN",
        Value::Number(_) => "VALUE_NUMBER",
        Value::String(_) => "VALUE_STRING",
        Value::Array(_) => "START_ARRAY",
        Value::Object(_) => "START_OBJECT",
    }
}
