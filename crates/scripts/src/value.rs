//! Values of scripts.

use std::rc::Rc;

use serde_json::Value as Json;

/// A value. Copies of a collection refer to the same.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// A boolean.
    Bool(bool),
    /// A `long`.
    Long(i64),
    /// A `double`.
    Double(f64),
    /// A string.
    Text(Rc<str>),
}

impl Value {
    /// Converts a value of a document or a request. Numbers become the smallest of int, long and double that holds them.
    pub fn from_json(_json: &Json) -> Self {
        Self::Null
    }

    /// The value as a number of double precision, if it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        None
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        None
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        None
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether both are the same collection or string, not only equal ones: what was computed from one holds for the other.
    pub fn is_same(&self, _other: &Self) -> bool {
        false
    }

    /// The elements of a list or an array.
    pub fn elements(&self) -> Option<Vec<Value>> {
        None
    }

    /// A string.
    pub fn text(_text: &str) -> Self {
        Self::Null
    }

    /// A list.
    pub fn list(_elements: Vec<Value>) -> Self {
        Self::Null
    }

    /// A `ZonedDateTime` in UTC, such as the values of date fields are, from nanoseconds since 1970.
    pub fn date(_nanos: i128) -> Self {
        Self::Null
    }

    /// Java's name of the value's class.
    pub fn class_name(&self) -> &'static str {
        ""
    }
}
