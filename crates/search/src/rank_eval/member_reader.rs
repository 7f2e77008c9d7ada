//! Reads the members of a JSON object by name, and remembers which were asked for so that unknown ones can be
//! rejected.

use serde_json::{Map, Value};

use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::suggest::near;

/// Highest relevance grade: gains are powers of two (`2^rating - 1`).
pub const MAX_RATING: u32 = 1000;

/// Hands out the members of an object, and remembers which.
pub struct MemberReader<'a> {
    owner: &'a str,
    members: &'a Map<String, Value>,
    taken: Vec<&'static str>,
}

impl<'a> MemberReader<'a> {
    /// `owner` is what errors call it.
    pub fn new(owner: &'a str, members: &'a Map<String, Value>) -> Self {
        Self { owner, members, taken: Vec::new() }
    }

    /// The value of a member; `None` if it is missing or `null`.
    pub fn take(&mut self, name: &'static str) -> Option<&'a Value> {
        self.taken.push(name);
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// Reads a whole number, also from a string.
    ///
    /// # Errors
    /// For any other value.
    pub fn integer(&mut self, name: &'static str) -> Result<Option<i64>, EngineError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
        number.map(Some).ok_or_else(|| self.bad(name))
    }

    /// Reads a relevance grade, from 0 to [`MAX_RATING`].
    ///
    /// # Errors
    /// For a grade outside that range.
    pub fn rating(&mut self, name: &'static str) -> Result<Option<u32>, EngineError> {
        match self.integer(name)? {
            None => Ok(None),
            Some(rating) => {
                u32::try_from(rating).ok().filter(|rating| *rating <= MAX_RATING).map(Some).ok_or_else(|| {
                    EngineError::illegal_argument(format!(
                        "[{}] [{name}] must be between 0 and {MAX_RATING}, was [{rating}]",
                        self.owner
                    ))
                })
            }
        }
    }

    /// Reads a boolean.
    ///
    /// # Errors
    /// For any other value.
    pub fn boolean(&mut self, name: &'static str) -> Result<Option<bool>, EngineError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(Value::String(text)) if text == "true" || text == "false" => Ok(Some(text == "true")),
            Some(_) => Err(self.bad(name)),
        }
    }

    /// Reads a required string.
    ///
    /// # Errors
    /// When the member is missing or not a string.
    pub fn text(&mut self, name: &'static str) -> Result<&'a str, EngineError> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(self.bad(name)),
            None => Err(EngineError::illegal_argument(format!("Required [{name}]"))),
        }
    }

    /// Reads an array; an empty one if the member is missing.
    ///
    /// # Errors
    /// For any other value.
    pub fn list(&mut self, name: &'static str) -> Result<&'a [Value], EngineError> {
        match self.take(name) {
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.bad(name)),
            None => Ok(&[]),
        }
    }

    /// Rejects members that no one has asked for.
    ///
    /// # Errors
    /// When there is an unknown member; the message names the first.
    pub fn done(&self) -> Result<(), EngineError> {
        match self.members.keys().find(|name| !self.taken.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let near = near(name, &self.taken);
                Err(parse(format!("[{}] unknown field [{name}]{near}", self.owner)))
            }
        }
    }

    fn bad(&self, name: &str) -> EngineError {
        parse(format!("[{}] failed to parse field [{name}]", self.owner))
    }
}

/// Elasticsearch's error for an object that cannot be parsed.
pub fn parse(reason: String) -> EngineError {
    EngineError::api(400, Exception::new("x_content_parse_exception", reason))
}
