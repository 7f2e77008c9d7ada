//! `pipeline`: sends documents through another pipeline.

use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::template::{Escape, Template};

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
