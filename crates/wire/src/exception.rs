//! Exceptions as the API shows them.

use serde_json::{Map, Value};

/// Most bytes of a reason. A reason may quote what was sent, which may be a hundred megabytes.
const MAX_REASON: usize = 10_000;
/// Bytes that are kept at the end of a longer reason, where the problem is named.
const REASON_END: usize = 2_000;

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

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
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

/// A text without its middle if it is too long for a reason.
fn shortened(mut reason: String) -> String {
    if reason.len() > MAX_REASON {
        let boundary = |at: usize| (0..=at).rev().find(|at| reason.is_char_boundary(*at)).unwrap_or_default();
        let (begin, end) = (boundary(MAX_REASON - REASON_END), boundary(reason.len() - REASON_END));
        reason.replace_range(begin..end, " […] ");
    }
    reason
}

#[cfg(test)]
mod tests {
    use super::Exception;

    #[test]
    fn a_long_reason_keeps_its_beginning_and_its_end() {
        let reason = |text: &str| Exception::new("parse_exception", text).reason;
        assert_eq!(reason(&"a".repeat(10_000)), "a".repeat(10_000));
        let long = reason(&format!("Cannot parse '{}': a bracket is missing", "ü?".repeat(1_000_000)));
        assert!(long.len() < 10_020, "{}", long.len());
        assert!(long.starts_with("Cannot parse 'ü?ü?") && long.ends_with("ü?': a bracket is missing"));
        assert_eq!(long.matches(" […] ").count(), 1);
    }
}
