//! Exceptions as the API shows them.

use serde_json::{Map, Value};

/// Most bytes of a text in an exception. It may quote what was sent, which may be a hundred megabytes.
const MAX_TEXT: usize = 10_000;
/// Bytes that are kept at the end of a longer text, where the problem is named.
const KEPT_END: usize = 2_000;

/// What stands in place of the middle.
const GAP: &str = " […] ";

/// One exception in a response body.
#[derive(Debug, Clone, PartialEq)]
pub struct Exception {
    /// Exception type, such as `illegal_argument_exception`.
    pub kind: &'static str,
    /// Human-readable reason.
    pub reason: String,
    /// Further members of the JSON object, in order.
    pub details: Map<String, Value>,
    /// The exception that caused this one.
    pub caused_by: Option<Box<Exception>>,
}

impl Exception {
    /// An exception without details. A reason of more than 10,000 bytes loses its middle.
    pub fn new(kind: &'static str, reason: impl Into<String>) -> Self {
        Self { kind, reason: shortened(reason.into()), details: Map::new(), caused_by: None }
    }

    /// Adds a member. A text of more than 10,000 bytes loses its middle.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = match value.into() {
            Value::String(text) => shortened(text).into(),
            value => value,
        };
        self.details.insert(name.to_owned(), value);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn because(mut self, cause: Exception) -> Self {
        self.caused_by = Some(Box::new(cause));
        self
    }

    /// JSON object `{type, reason, …, caused_by?}`.
    pub fn to_json(&self) -> Value {
        let mut object = self.head();
        if let Some(cause) = &self.caused_by {
            object.insert("caused_by".into(), cause.to_json());
        }
        Value::Object(object)
    }

    /// JSON object `{type, reason, …}` without the cause.
    pub fn head(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("type".into(), self.kind.into());
        object.insert("reason".into(), self.reason.as_str().into());
        object.extend(self.details.clone());
        object
    }
}

/// A text without its middle if it is too long for an exception.
pub fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let boundary = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let (begin, end) = (boundary(MAX_TEXT - KEPT_END - GAP.len()), boundary(text.len() - KEPT_END + 3));
        text.replace_range(begin..end, GAP);
        // An answer to a bulk holds thousands of exceptions until it is written: none may keep the memory of the whole text.
        text.shrink_to_fit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Exception;

    #[test]
    fn a_long_reason_keeps_its_beginning_and_its_end() {
        let reason = |text: &str| Exception::new("parse_exception", text).reason;
        assert_eq!(reason(&"a".repeat(10_000)), "a".repeat(10_000));
        let long = reason(&format!("Cannot parse '{}': a bracket is missing", "ü?".repeat(1_000_000)));
        assert!((9_900..=10_000).contains(&long.len()), "{}", long.len());
        assert_eq!(reason(&long), long);
        assert!(long.starts_with("Cannot parse 'ü?ü?") && long.ends_with("ü?': a bracket is missing"));
        assert_eq!(long.matches(" […] ").count(), 1);
        let named =
            Exception::new("index_not_found_exception", "no such index").with("index", "x".repeat(20_000));
        assert!(named.to_json().to_string().len() < 10_200);
    }
}
