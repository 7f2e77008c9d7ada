//! Collects all problems of an endpoint's settings for one error, in Elasticsearch's wording.

use serde_json::{Map, Value};

use sparrow_request::error::{EngineError, Exception};

/// An error with Elasticsearch's plain type.
pub(super) fn status(status: u16, reason: impl Into<String>) -> EngineError {
    EngineError::api(status, Exception::new("status_exception", reason))
}

/// Problems found so far.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Adds the message of a problem.
    pub fn add(&mut self, problem: String) {
        self.0.push(problem);
    }

    /// Adds the message for a value of the wrong type.
    pub fn wrong_type(&mut self, name: &str, value: &Value, expected: &str) {
        self.add(format!(
            "field [{name}] is not of the expected type. The value [{}] cannot be converted to a [{expected}]",
            java_text(value)
        ));
    }

    /// Reads a positive integer that is required; `None` if a problem was added.
    pub fn required_positive(
        &mut self,
        given: &Map<String, Value>,
        name: &str,
        scope: &str,
    ) -> Option<usize> {
        match given.get(name) {
            None | Some(Value::Null) => {
                self.add(format!("[{scope}] does not contain the required setting [{name}]"));
                None
            }
            Some(_) => self.positive(given, name, scope),
        }
    }

    /// Reads a positive integer; `None` if it is absent or a problem was added.
    pub fn positive(&mut self, given: &Map<String, Value>, name: &str, scope: &str) -> Option<usize> {
        let value = given.get(name).filter(|value| !value.is_null())?;
        match value.as_i64().filter(|number| i32::try_from(*number).is_ok()) {
            None => {
                self.wrong_type(name, value, "Integer");
                None
            }
            Some(number) => match usize::try_from(number) {
                Ok(number) if number > 0 => Some(number),
                _ => {
                    self.add(format!(
                        "[{scope}] Invalid value [{number}]. [{name}] must be a positive integer"
                    ));
                    None
                }
            },
        }
    }

    /// Reads a non-empty string; `None` if it is absent or a problem was added.
    pub fn text(&mut self, given: &Map<String, Value>, name: &str, scope: &str) -> Option<String> {
        match given.get(name) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) if text.is_empty() => {
                self.add(format!(
                    "[{scope}] Invalid value empty string. [{name}] must be a non-empty string"
                ));
                None
            }
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => {
                self.wrong_type(name, other, "String");
                None
            }
        }
    }

    /// Ends the collection: an error with all problems, if there are any.
    ///
    /// # Errors
    /// Status 400, `validation_exception`.
    pub fn done(self) -> Result<(), EngineError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let listed: Vec<String> =
            self.0.iter().enumerate().map(|(at, problem)| format!("{}: {problem};", at + 1)).collect();
        let reason = format!("Validation Failed: {}", listed.join(""));
        Err(EngineError::api(400, Exception::new("validation_exception", reason)))
    }
}

/// A value as Java's `toString` prints it: strings without quotes, objects as `{a=1, b=2}`.
pub fn java_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(java_text).collect::<Vec<_>>().join(", ")),
        Value::Object(members) => java_map(members),
        other => other.to_string(),
    }
}

/// An object as Java prints a map.
pub fn java_map(members: &Map<String, Value>) -> String {
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("{name}={}", java_text(value))).collect();
    format!("{{{}}}", members.join(", "))
}
