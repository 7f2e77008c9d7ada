//! What a chain is made of, and the documents that run through it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use sparrow_runtime::work::Kept;

use super::call::PipelineCall;
use super::foreach::ForEach;
use super::inference::{Inference, ModelAccess};
use crate::counters::Counters;
use crate::document::Document;
use crate::effort::{DocumentSteps, RunBudget};
use crate::error::ProcessorError;
use crate::script::Condition;

/// A processor that works on one document at a time.
pub(crate) trait Processor: Send + Sync + std::fmt::Debug {
    /// Processes the document.
    ///
    /// # Errors
    /// The reason why the processor failed; the document may have been partly changed.
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError>;
}

/// What a node of a chain does.
#[derive(Debug)]
pub(crate) enum Action {
    /// Works on each document alone.
    Each(Box<dyn Processor>),
    /// Runs a model over the texts of all documents.
    Inference(Inference),
    /// Runs another pipeline.
    Pipeline(PipelineCall),
    /// Runs another processor for every element of a field.
    ForEach(ForEach),
    /// Ends the pipeline, but not the one that called it.
    Terminate,
    /// Drops the document: it is not written, and there is no error.
    Drop,
}

/// A processor in a chain: its action, its options, and the handlers for its failures.
#[derive(Debug)]
pub(crate) struct Node {
    pub kind: String,
    pub tag: Option<String>,
    pub description: Option<String>,
    /// The condition under which it runs on a document.
    pub condition: Option<Condition>,
    pub ignore_failure: bool,
    pub on_failure: Vec<Node>,
    pub action: Action,
    pub counters: Counters,
}

/// A pipeline, ready to run.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub id: String,
    pub definition: Map<String, Value>,
    pub processors: Vec<Node>,
    pub on_failure: Vec<Node>,
    pub counters: Counters,
    /// Why a stored definition cannot be run by this version; its documents fail with it.
    pub unusable: Option<String>,
    /// The memory of all this.
    pub kept: Option<Kept>,
}

impl Pipeline {
    /// A stored pipeline that is kept although it cannot run.
    pub fn unusable(id: &str, definition: Map<String, Value>, reason: String) -> Self {
        Self {
            id: id.to_owned(),
            definition,
            processors: Vec::new(),
            on_failure: Vec::new(),
            counters: Counters::default(),
            unusable: Some(reason),
            kept: None,
        }
    }

    /// Bytes that it keeps.
    pub fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, Kept::bytes)
    }

    /// The `version` in the definition, which its author sets.
    pub fn version(&self) -> Option<i64> {
        self.definition.get("version").and_then(Value::as_i64)
    }
}

/// What a run needs beside the documents.
pub(crate) struct Runtime<'a> {
    pub pipelines: &'a BTreeMap<String, Arc<Pipeline>>,
    pub models: ModelAccess<'a>,
    /// What may still be done to all documents of the run.
    pub budget: RunBudget,
}

/// The error of a processor, with its type, tag and pipeline.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub error: ProcessorError,
    pub kind: String,
    pub tag: Option<String>,
    pub pipeline: String,
}

/// The state of a document in a run.
#[derive(Debug, Clone)]
pub(crate) enum State {
    /// The document is processed further.
    Live,
    /// The current pipeline has ended, because of `terminate`.
    Terminated,
    /// The document was dropped, because of `drop`.
    Dropped,
    /// The document failed.
    Failed(Failure),
}

/// A document of a batch.
#[derive(Debug)]
pub(crate) struct Item {
    pub document: Document,
    pub state: State,
    /// The result of each processor, if the request is verbose.
    pub trace: Option<Vec<Value>>,
    /// Ids of the pipelines that ran, if they are to be recorded.
    pub executed: Option<Vec<String>>,
    /// Pipelines that are running on the document, outermost first.
    pub stack: Vec<String>,
    pub steps: DocumentSteps,
}

impl Item {
    /// A document before its first processor.
    pub fn new(document: Document, traced: bool) -> Self {
        Self {
            document,
            state: State::Live,
            trace: traced.then(Vec::new),
            executed: None,
            stack: Vec::new(),
            steps: DocumentSteps::default(),
        }
    }

    pub fn is_live(&self) -> bool {
        matches!(self.state, State::Live)
    }
}

/// Marks a document as failed with the error of a processor.
pub(crate) fn fail(item: &mut Item, node: &Node, error: ProcessorError) {
    item.state = State::Failed(Failure {
        error,
        kind: node.kind.clone(),
        tag: node.tag.clone(),
        pipeline: item.stack.last().cloned().unwrap_or_default(),
    });
}
