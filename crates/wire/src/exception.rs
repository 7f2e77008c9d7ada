//! Exceptions as the API shows them.

use serde_json::{Map, Value};

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
    /// An exception without details.
    pub fn new(kind: &'static str, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into(), details: Map::new(), caused_by: None }
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
