//! Single values as the JSON of an answer.

use serde_json::Value;

use super::format::ValueFormat;
use super::key::Key;

/// A number; what JSON cannot hold is null.
pub fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// A number as Elasticsearch writes those that may be none at all.
pub fn any_number(value: f64) -> Value {
    if value.is_nan() { "NaN".into() } else { number(value) }
}

/// A number, or null.
pub fn optional(value: Option<f64>) -> Value {
    value.map_or(Value::Null, number)
}

/// A key as JSON, dates and booleans as numbers.
pub fn key_value(key: &Key, format: &ValueFormat) -> Value {
    match key {
        Key::Missing => Value::Null,
        Key::Long(value) => (*value).into(),
        Key::Unsigned(value) => (*value).into(),
        Key::Double(bits) => number(f64::from_bits(*bits)),
        Key::Text(text) => Value::from(&*format.keyword(text)),
        Key::Slot(slot) => (*slot).into(),
        Key::Tuple(keys) => keys.iter().map(|key| key_value(key, format)).collect(),
    }
}
