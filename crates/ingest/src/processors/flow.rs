//! `fail`: ends a document with a message. (`drop` and `terminate` have no parameters and no code of their own.)

use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, object, text};
use crate::template::{Escape, Template};

/// Fails with the user's message.
#[derive(Debug)]
pub(crate) struct Fail {
    message: Template,
}

pub(super) fn fail_shape() -> Shape {
    object([("message", text())]).needs(&["message"])
}

impl Fail {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        Ok(Self { message: config.template("message")? })
    }
}

impl Processor for Fail {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        Err(ProcessorError::Fail { message: self.message.render(document, Escape::Plain)? })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::processors::check;

    #[test]
    fn fail_says_what_the_user_wrote() {
        assert_eq!(
            check(json!({"fail": {"message": "no {{a}} today"}}), json!({"a": "tea"})).unwrap_err(),
            "no tea today"
        );
        assert_eq!(
            check(json!({"fail": {}}), json!({})).unwrap_err(),
            "config: [message] required property is missing"
        );
    }
}
