//! Reading the parameters of a field definition.

use serde_json::{Map, Value};

use super::error::MappingError;
use super::java::java_string;

/// Reader of one field definition: hands out parameters and keeps track of those that nothing asked for.
pub(crate) struct Params<'a> {
    pub field: &'a str,
    pub type_name: &'static str,
    pub map: &'a Map<String, Value>,
    /// Non-default parameters, as the mapping will show them.
    pub kept: Map<String, Value>,
    /// Parameters that were asked for, whether the definition has them or not.
    pub asked: Vec<&'static str>,
}

impl Params<'_> {
    pub fn take(&mut self, name: &'static str) -> Option<&Value> {
        self.asked.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// A boolean parameter; kept if it is not the default.
    pub fn flag(&mut self, name: &'static str, default: bool) -> Result<bool, MappingError> {
        let Some(value) = self.take(name).cloned() else { return Ok(default) };
        let flag = boolean(name, &value)?;
        if flag != default {
            self.kept.insert(name.to_owned(), Value::Bool(flag));
        }
        Ok(flag)
    }

    /// Reads a boolean parameter whose default is not the mapping's to say.
    pub fn given_flag(&mut self, name: &'static str) -> Result<Option<bool>, MappingError> {
        let Some(value) = self.take(name).cloned() else { return Ok(None) };
        let flag = boolean(name, &value)?;
        self.kept.insert(name.to_owned(), Value::Bool(flag));
        Ok(Some(flag))
    }

    /// Reads a parameter of which only some values are implemented, and refuses any other.
    pub fn only(&mut self, name: &'static str, allowed: &[Value]) -> Result<(), MappingError> {
        let Some(value) = self.take(name).cloned() else { return Ok(()) };
        if allowed.contains(&value) {
            return Ok(());
        }
        Err(MappingError::UnsupportedParameter {
            field: self.field.to_owned(),
            type_name: self.type_name,
            parameter: name.to_owned(),
            value: java_string(&value),
        })
    }

    /// Takes a parameter that the mapping shows but that has no effect here (hints, storage choices).
    pub fn keep(&mut self, name: &'static str) {
        if let Some(value) = self.take(name).cloned() {
            self.kept.insert(name.to_owned(), value);
        }
    }

    pub fn unsigned(&mut self, name: &'static str) -> Result<Option<u64>, MappingError> {
        let Some(value) = self.take(name).cloned() else { return Ok(None) };
        let number = match &value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| {
            bad(format!(
                "Failed to parse value [{}] for parameter [{name}] on field [{}]",
                java_string(&value),
                self.field
            ))
        })?;
        self.kept.insert(name.to_owned(), number.into());
        Ok(Some(number))
    }
}

pub(crate) fn bad(reason: String) -> MappingError {
    MappingError::BadValue { reason }
}

/// Reads a boolean, or a string that spells one.
pub(crate) fn boolean(key: &str, value: &Value) -> Result<bool, MappingError> {
    match value {
        Value::Bool(flag) => Ok(*flag),
        Value::String(text) if text == "true" => Ok(true),
        Value::String(text) if text == "false" => Ok(false),
        other => Err(bad(format!(
            "Could not convert [{key}] to boolean: Failed to parse value [{}] as only [true] or [false] are allowed.",
            java_string(other)
        ))),
    }
}
