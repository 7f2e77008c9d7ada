//! JSON form of single values in responses.

use serde_json::Value;

use super::format::ValueFormat;
use super::key::Key;

/// A number as JSON; NaN and infinities become null.
pub fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// A number as JSON where Elasticsearch writes NaN as the string `NaN`; infinities become null.
pub fn any_number(value: f64) -> Value {
    if value.is_nan() { "NaN".into() } else { number(value) }
}

/// A number as JSON, or null for no number.
pub fn optional(value: Option<f64>) -> Value {
    value.map_or(Value::Null, number)
}

/// A key as JSON, dates and booleans as numbers.
pub fn key_value(key: &Key, format: &ValueFormat) -> Value {
    match key {
        Key::Missing => Value::Null,
        Key::Long(value) => (*value).into(),
        Key::Unsigned(value) => match format {
            ValueFormat::Cell(cells) => cells.name(*value).into(),
            _ => (*value).into(),
        },
        Key::Double(bits) => number(f64::from_bits(*bits)),
        Key::Text(text) => Value::from(&*format.keyword(text)),
        Key::Slot(slot) => (*slot).into(),
        Key::Tuple(keys) => keys.iter().map(|key| key_value(key, format)).collect(),
    }
}
