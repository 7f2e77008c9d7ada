//! Values of parameters, errors for them, and names.

use serde_json::Value;
use sparrow_vectors::Element;

use super::super::error::MappingError;

pub(super) fn malformed(reason: String) -> MappingError {
    MappingError::Malformed { reason }
}

pub(super) fn bad(reason: String) -> MappingError {
    MappingError::BadValue { reason }
}

pub(super) fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

pub(super) fn float(value: &Value) -> Option<f32> {
    match value {
        Value::Number(number) => number.as_f64().map(|number| number as f32),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
    .filter(|number| number.is_finite())
}

/// Name of an element type in mappings and errors.
pub(crate) fn element_name(element: Element) -> &'static str {
    match element {
        Element::Float => "float",
        Element::Byte => "byte",
        Element::Bit => "bit",
    }
}
