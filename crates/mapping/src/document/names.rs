//! Names of members of a document that no field can have.

use serde_json::Value;

use super::super::error::DocumentError;
use super::super::location::Step;
use super::Reader;

impl Reader<'_> {
    /// Checks the name of a member, which may contain dots.
    pub(super) fn check_name(&self, name: &str) -> Result<(), DocumentError> {
        if !name.split('.').any(|part| part.trim().is_empty()) {
            return Ok(());
        }
        Err(self.illegal(match name {
            "" => "field name cannot be an empty string".to_owned(),
            name if name.contains('.') => {
                format!("field name [{name}] cannot contain only whitespace or start or end with a dot")
            }
            name => format!("field name cannot contain only whitespace: ['{name}']"),
        }))
    }

    /// Checks the names of all members of a value that no field takes: what one mapping refuses, all do.
    pub(super) fn check_names(&mut self, value: &Value) -> Result<(), DocumentError> {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    self.steps.push(Step::Key(name.clone()));
                    self.check_name(name)?;
                    self.check_names(value)?;
                    self.steps.pop();
                }
                Ok(())
            }
            Value::Array(values) => self.each(values, Self::check_names),
            _ => Ok(()),
        }
    }
}
