//! `fail` and `pipeline`: where a document goes next. (`drop` has no parameters and no code of its own.)

use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::template::{Escape, Template};

/// Fails with the user's message.
#[derive(Debug)]
pub(crate) struct Fail {
    message: Template,
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

/// Sends the document through another pipeline.
#[derive(Debug)]
pub(crate) struct PipelineCall {
    name: Template,
    /// The name as the definition has it.
    written: String,
    /// Whether a pipeline that does not exist is passed over.
    pub ignore_missing: bool,
}

impl PipelineCall {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let written = config.text("name")?;
        Ok(Self {
            name: Template::parse(&written).map_err(|reason| config.unusable("name", reason))?,
            written,
            ignore_missing: config.boolean("ignore_missing_pipeline", false)?,
        })
    }

    /// The name as the definition has it.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Id of the pipeline for a document.
    ///
    /// # Errors
    /// If it would be too long.
    pub fn name(&self, document: &Document) -> Result<String, ProcessorError> {
        self.name.render(document, Escape::Plain)
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
