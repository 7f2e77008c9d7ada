//! A batch of documents on its way through pipelines: what goes in, and what became of it.

use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};
use sparrow_wire::json::WrittenNumbers;

use super::error::IngestError;

/// A document that is to pass through pipelines, or has done so.
#[derive(Debug)]
pub struct IngestDoc {
    /// Index that the document goes to; a pipeline may change it.
    pub index: String,
    /// Id of the document, if it already has one; a pipeline may change it.
    pub id: Option<String>,
    /// Fields of the document.
    pub source: Value,
    /// Values that pipelines have set for `_routing`, `_version`, `_version_type`, `_if_seq_no` and `_if_primary_term`.
    pub metadata: Map<String, Value>,
    /// The result of the pipelines for the document.
    pub outcome: IngestOutcome,
    /// Ids of the pipelines that ran on the document, in order; `None` if they are not to be recorded.
    pub executed: Option<Vec<String>>,
    /// Numbers of the document's JSON that its fields do not hold as they were written.
    pub numbers: Option<WrittenNumbers>,
}

impl IngestDoc {
    /// A document to which no pipeline has been applied yet.
    pub fn new(index: impl Into<String>, id: Option<String>, source: Value) -> Self {
        Self {
            index: index.into(),
            id,
            source,
            metadata: Map::new(),
            outcome: IngestOutcome::Ok,
            executed: None,
            numbers: None,
        }
    }

    /// Gives the document the routing that it is written with, which a pipeline may change.
    pub fn set_routing(&mut self, routing: Option<String>) {
        self.metadata.extend(routing.map(|routing| ("_routing".to_owned(), Value::String(routing))));
    }

    /// The routing that the document is to be written with; `None` if it has none, or an empty one.
    pub fn routing(&self) -> Option<String> {
        let routing = self.metadata.get("_routing").and_then(Value::as_str);
        routing.filter(|routing| !routing.is_empty()).map(str::to_owned)
    }

    /// Keeps the numbers as they are written in `json`, which the fields were parsed from.
    #[must_use]
    pub fn written_as(mut self, json: &[u8]) -> Self {
        self.numbers = WrittenNumbers::of(json);
        self
    }
}

/// The result of pipelines for a document.
#[derive(Debug)]
pub enum IngestOutcome {
    /// The document can be written.
    Ok,
    /// A pipeline dropped the document: it is not written, and there is no error.
    Dropped,
    /// A processor failed on the document, and no error handler succeeded.
    Failed(IngestError),
}

/// Options for running a batch.
#[derive(Debug, Clone, Copy, Default)]
pub struct IngestMode<'a> {
    /// Inferences wait for room in the queue of the model instead of failing.
    pub paced: bool,
    /// Flag that is set when the caller has gone.
    pub cancel: Option<&'a AtomicBool>,
}

/// Information about a batch beside the changed documents.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct IngestSummary {
    /// Fields that models filled, as paths, with the fingerprints of the models.
    pub filled: Vec<(String, String)>,
    /// Texts of which models have read only the first tokens.
    pub truncated: u64,
}
