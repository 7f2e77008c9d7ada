//! `pipeline`: sends documents through another pipeline.

use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, flag, object, text};
use crate::template::{Escape, Template};

/// Sends the document through another pipeline.
#[derive(Debug)]
pub(crate) struct PipelineCall {
    name: Template,
    /// Pipeline name as written in the processor's definition: a template.
    written: String,
    /// Whether a missing pipeline is skipped instead of failing the document.
    pub ignore_missing: bool,
}

pub(crate) fn pipeline_shape() -> Shape {
    object([("name", text()), ("ignore_missing_pipeline", flag())]).needs(&["name"])
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

    /// Pipeline name as written in the processor's definition: a template.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Id of the pipeline to call for this document: the name template, rendered with the document's fields.
    ///
    /// # Errors
    /// If the rendered id would be too long.
    pub fn name(&self, document: &Document) -> Result<String, ProcessorError> {
        self.name.render(document, Escape::Plain)
    }
}
