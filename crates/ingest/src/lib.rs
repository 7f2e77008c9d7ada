//! Ingest pipelines: where they are kept, and how documents run through them.
//!
//! A batch of documents goes through a pipeline together, one processor after another, so that an inference sees all
//! its texts at once. What a processor does to one document never depends on the others.

mod batch;
mod chain;
mod config;
mod counters;
mod document;
mod effort;
mod error;
mod processors;
mod script;
mod shape;
mod simulate;
mod stats;
mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use sparrow_inference::{Purpose, TextEncoder};
use sparrow_write_ahead_log::stores;
use sparrow_write_ahead_log::{DataDir, StorageError};
use time::OffsetDateTime;
use time::macros::format_description;

pub use self::batch::{IngestDoc, IngestMode, IngestOutcome, IngestSummary};
pub use self::chain::check_tokenization;
use self::chain::{Item, ModelAccess, Pipeline, Runtime, State};
use self::counters::Counters;
use self::document::Document;
use self::effort::RunBudget;
pub use self::error::{ConfigError, IngestError, ProcessorError, PropertyProblem};
pub use self::processors::{definition_shape, schemas};
pub use self::simulate::shape as simulation_shape;

/// Name of the store in the data directory.
const STORE: &str = "pipelines";

/// The pipelines of a node.
#[derive(Debug)]
pub struct Pipelines {
    data: Arc<DataDir>,
    current: RwLock<Arc<BTreeMap<String, Arc<Pipeline>>>>,
    /// Lock that is held while pipelines are stored or deleted; running them does not need it.
    changes: Mutex<()>,
    /// Counters of all pipelines together.
    total: Counters,
}

impl Pipelines {
    /// Reads the pipelines of the data directory.
    ///
    /// # Errors
    /// If the store cannot be read. A single pipeline that this version cannot run keeps its definition, until it is
    /// replaced or deleted; its documents fail with the reason.
    pub fn open(data: Arc<DataDir>) -> Result<Self, IngestError> {
        let mut pipelines = BTreeMap::new();
        for (id, definition) in stores::read_members(&data, STORE)? {
            let Value::Object(definition) = definition else {
                return Err(stores::damaged(&data, STORE, format!("[{id}] is not an object")).into());
            };
            let pipeline = processors::build_stored(&id, &definition).unwrap_or_else(|error| {
                tracing::error!(pipeline = id, %error, "a stored pipeline cannot be used");
                Pipeline::unusable(&id, definition, error.to_string())
            });
            pipelines.insert(id, Arc::new(pipeline));
        }
        Ok(Self {
            data,
            current: RwLock::new(Arc::new(pipelines)),
            changes: Mutex::new(()),
            total: Counters::default(),
        })
    }

    /// Runs documents through a pipeline. Documents that an earlier pipeline has dropped or that have failed are
    /// skipped.
    ///
    /// # Errors
    /// If there is no pipeline with this id; an error of a single document is in its outcome.
    pub fn run(
        &self,
        encoder: &dyn TextEncoder,
        pipeline_id: &str,
        documents: &mut [IngestDoc],
        mode: IngestMode<'_>,
    ) -> Result<IngestSummary, IngestError> {
        let pipelines = Arc::clone(&self.current.read());
        let pipeline = pipelines.get(pipeline_id).ok_or_else(|| {
            IngestError::illegal_argument(format!("pipeline with id [{pipeline_id}] does not exist"))
        })?;
        let runtime = Runtime {
            pipelines: &pipelines,
            models: ModelAccess {
                encoder,
                purpose: if mode.paced { Purpose::PacedIngest } else { Purpose::Ingest },
                cancel: mode.cancel,
            },
            budget: RunBudget::new(documents.len()),
        };
        let now = timestamp();
        let mut positions = Vec::with_capacity(documents.len());
        let mut items = Vec::with_capacity(documents.len());
        for (at, document) in documents.iter_mut().enumerate() {
            // Anything but an object is refused later, when it meets the mapping.
            if !matches!(document.outcome, IngestOutcome::Ok) || !document.source.is_object() {
                continue;
            }
            let Value::Object(source) = document.source.take() else { continue };
            positions.push(at);
            let mut item = Item::new(prepare(source, document, &now), false);
            item.executed = document.executed.take();
            items.push(item);
        }
        let who: Vec<usize> = (0..items.len()).collect();
        let mut summary = IngestSummary::default();
        let running = self.total.enter(who.len());
        chain::run_pipeline(&runtime, pipeline, &mut items, &who, &mut summary);
        running.leave(items.iter().filter(|item| matches!(item.state, State::Failed(_))).count());
        for (at, item) in positions.into_iter().zip(items) {
            finish(&mut documents[at], item);
        }
        Ok(summary)
    }

    /// The pipelines in which a model is used, directly or in a handler.
    pub fn using_model(&self, is_model: &dyn Fn(&str) -> bool) -> Vec<String> {
        let pipelines = Arc::clone(&self.current.read());
        pipelines
            .values()
            .filter(|pipeline| {
                processors::model_ids(&pipeline.processors)
                    .chain(processors::model_ids(&pipeline.on_failure))
                    .any(is_model)
            })
            .map(|pipeline| pipeline.id.clone())
            .collect()
    }

    /// Pairs of a model and an input field with which pipelines fill `field`; those of the pipelines `usual` come
    /// first.
    pub fn inputs_of(&self, usual: &[&str], field: &str) -> Vec<(String, String)> {
        let pipelines = Arc::clone(&self.current.read());
        let first = usual.iter().filter_map(|id| pipelines.get(*id));
        let mut inputs: Vec<(String, String)> = Vec::new();
        for pipeline in first.chain(pipelines.values()) {
            for (model, input) in processors::inputs_of(&pipeline.processors, field) {
                if !inputs.contains(&(model.clone(), input.clone())) {
                    inputs.push((model, input));
                }
            }
        }
        inputs
    }

    /// The definitions of pipelines by id, patterns with `*`, separated by commas; all for an empty expression.
    pub fn definitions(&self, expression: &str) -> Map<String, Value> {
        let pipelines = Arc::clone(&self.current.read());
        pipelines
            .values()
            .filter(|pipeline| is_named(expression, &pipeline.id))
            .map(|pipeline| (pipeline.id.clone(), Value::Object(pipeline.definition.clone())))
            .collect()
    }

    /// Stores a pipeline.
    ///
    /// # Errors
    /// If the definition is not accepted, the version of the existing pipeline is not the required one, or the store
    /// cannot be written.
    pub fn put(
        &self,
        id: &str,
        definition: &Map<String, Value>,
        if_version: Option<i64>,
    ) -> Result<(), IngestError> {
        let replaced = self.get(id).map_or(0, |pipeline| pipeline.kept_bytes());
        let mut pipeline = processors::build_in_place_of(replaced, id, definition)?;
        let _changes = self.changes.lock();
        self.data.settle_store(STORE)?;
        let mut pipelines = BTreeMap::clone(&self.current.read());
        if let Some(required) = if_version {
            check_version(id, pipelines.get(id), pipeline.version(), required)?;
            if pipeline.version().is_none() {
                pipeline.definition.insert("version".into(), required.saturating_add(1).into());
            }
        }
        pipelines.insert(id.to_owned(), Arc::new(pipeline));
        self.replace(pipelines)?;
        Ok(())
    }

    /// Replaces all pipelines with the given definitions by id.
    ///
    /// # Errors
    /// If one of them cannot be run by this version, or the store cannot be written; then nothing has changed.
    pub fn replace_all(&self, definitions: &Map<String, Value>) -> Result<(), IngestError> {
        let replaced = self.all().values().map(|pipeline| pipeline.kept_bytes()).sum();
        let pipelines = Self::built(replaced, definitions)?;
        let _changes = self.changes.lock();
        Ok(self.replace(pipelines)?)
    }

    /// Checks that this version can run all of the given definitions.
    ///
    /// # Errors
    /// The first problem in one of them.
    pub fn check_all(definitions: &Map<String, Value>) -> Result<(), IngestError> {
        Self::built(0, definitions).map(|_| ())
    }

    fn built(
        replaced: usize,
        definitions: &Map<String, Value>,
    ) -> Result<BTreeMap<String, Arc<Pipeline>>, IngestError> {
        let build = |(id, definition): (&String, &Value)| {
            let Value::Object(definition) = definition else {
                return Err(IngestError::NotAnObject { id: id.clone() });
            };
            Ok((id.clone(), Arc::new(processors::build_in_place_of(replaced, id, definition)?)))
        };
        definitions.iter().map(build).collect()
    }

    /// Deletes the pipelines that an expression matches; whether there were any.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn delete(&self, expression: &str) -> Result<bool, IngestError> {
        let _changes = self.changes.lock();
        // A change that was refused may lie in the store, and to delete what is not there writes nothing.
        self.data.settle_store(STORE)?;
        let mut pipelines = BTreeMap::clone(&self.current.read());
        let before = pipelines.len();
        pipelines.retain(|id, _| !is_named(expression, id));
        let existed = pipelines.len() < before;
        if existed {
            self.replace(pipelines)?;
        }
        Ok(existed)
    }

    fn replace(&self, pipelines: BTreeMap<String, Arc<Pipeline>>) -> Result<(), StorageError> {
        let stored: Map<String, Value> = pipelines
            .iter()
            .map(|(id, pipeline)| (id.clone(), Value::Object(pipeline.definition.clone())))
            .collect();
        self.data.write_json(STORE, &Value::Object(stored))?;
        *self.current.write() = Arc::new(pipelines);
        Ok(())
    }

    fn get(&self, id: &str) -> Option<Arc<Pipeline>> {
        self.current.read().get(id).cloned()
    }

    fn all(&self) -> Arc<BTreeMap<String, Arc<Pipeline>>> {
        Arc::clone(&self.current.read())
    }
}

/// Checks that the existing pipeline has the version that the request requires, and that the new version is another.
fn check_version(
    id: &str,
    current: Option<&Arc<Pipeline>>,
    new: Option<i64>,
    required: i64,
) -> Result<(), IngestError> {
    let conflict = |problem: String| {
        let reason =
            format!("version conflict, required version [{required}] for pipeline [{id}] but {problem}");
        Err(IngestError::illegal_argument(reason))
    };
    let Some(current) = current else { return conflict("no pipeline was found".into()) };
    match current.version() {
        Some(version) if version == required => {}
        Some(version) => return conflict(format!("current version is [{version}]")),
        None => return conflict("current version is [null]".into()),
    }
    if new == Some(required) {
        return Err(IngestError::illegal_argument(format!(
            "cannot update pipeline [{id}] with the same version [{required}]"
        )));
    }
    Ok(())
}

fn is_named(expression: &str, id: &str) -> bool {
    expression.is_empty() || expression.split(',').any(|part| sparrow_wire::glob::matches(part, id))
}

fn prepare(source: Map<String, Value>, given: &mut IngestDoc, now: &str) -> Document {
    let mut document =
        Document { source, metadata: std::mem::take(&mut given.metadata), ..Document::default() };
    document.metadata.insert("_index".into(), Value::String(given.index.clone()));
    if let Some(id) = &given.id {
        document.metadata.insert("_id".into(), Value::String(id.clone()));
    }
    document.ingest.insert("timestamp".into(), Value::String(now.to_owned()));
    document
}

fn finish(document: &mut IngestDoc, item: Item) {
    document.source = Value::Object(item.document.source);
    document.executed = item.executed;
    match item.state {
        State::Live | State::Terminated => {
            let mut metadata = item.document.metadata;
            if let Some(Value::String(index)) = metadata.shift_remove("_index") {
                document.index = index;
            }
            document.id = match metadata.shift_remove("_id") {
                Some(Value::String(id)) => Some(id),
                _ => None,
            };
            document.metadata = metadata;
        }
        State::Dropped => document.outcome = IngestOutcome::Dropped,
        State::Failed(failure) => document.outcome = IngestOutcome::Failed(failure.error.into()),
    }
}

/// The current time in the format of `_ingest.timestamp`.
fn timestamp() -> String {
    OffsetDateTime::now_utc()
        .format(format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:9]Z"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
