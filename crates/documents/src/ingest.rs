//! Ingest pipelines before writes: determines which pipeline runs on which document, and runs them in batches.

use serde_json::Value;

use super::action::{ActionKind, Conditions};
use super::update::UpdateBody;
use sparrow_catalog::{Source, WriteKind};
use sparrow_ingest::{IngestDoc, IngestMode, IngestOutcome, IngestSummary};
use sparrow_request::body::parse_source;
use sparrow_request::error::EngineError;
use sparrow_request::request::CancelFlag;
use sparrow_request::rights::Caller;
use sparrow_search::SearchService;
use sparrow_wire::json::WrittenNumbers;

/// Number of documents that go through a pipeline together. Smaller than the queue of a default deployment, so that
/// one large bulk request never fills the queue alone; larger than a batch of the encoder.
const BATCH: usize = 64;

/// Name that stands for no pipeline, in settings and parameters.
const NONE: &str = "_none";

/// Stage that a write has reached before it is carried out.
pub(super) enum Stage<'a> {
    /// A document as it was sent.
    Raw(WriteKind, &'a [u8]),
    /// A document as changed by a pipeline.
    Ready(WriteKind, Source),
    Update(Box<UpdateBody>),
    Delete,
    /// A document dropped by a pipeline, which is not written.
    Dropped,
    Failed(EngineError),
}

/// A write that is being prepared.
pub(super) struct Pending<'a> {
    pub(super) kind: ActionKind,
    pub(super) index: String,
    pub(super) id: Option<String>,
    /// Routing of the document, which a pipeline may change.
    pub(super) routing: Option<String>,
    /// Pipeline that the request names.
    pub(super) pipeline: Option<String>,
    /// Preconditions of the write, which a pipeline may change.
    pub(super) conditions: Conditions,
    /// Pipelines that ran on it, if the request asks for them.
    pub(super) executed: Option<Vec<String>>,
    pub(super) stage: Stage<'a>,
}

impl Pending<'_> {
    /// Checks that the caller is allowed to carry out the write on the index.
    ///
    /// # Errors
    /// 403 if not; 400 if the name cannot be parsed.
    pub(super) fn check_name(&self, caller: &Caller) -> Result<(), EngineError> {
        if !caller.is_restricted() {
            return Ok(());
        }
        let right = caller.to(self.kind.needed(self.id.as_deref()));
        right.check([sparrow_catalog::concrete_name(&self.index)?.as_str()])
    }
}

/// Effects of pipelines other than changed documents.
#[derive(Debug, Default)]
pub(super) struct PipelineEffects {
    /// Paths of fields filled by models, each with the model's fingerprint, by index: recorded in the index once it exists.
    pub(super) filled: Vec<(String, Vec<(String, String)>)>,
    /// Number of texts that a model truncated to the tokens it can read.
    pub(super) truncated: u64,
}

/// Runs the pipelines of a window of documents, whose stages then hold the results. `None` if no document has a
/// pipeline.
pub(super) fn run(
    service: &SearchService,
    pending: &mut [Pending<'_>],
    caller: &Caller,
    cancel: &CancelFlag,
) -> Option<PipelineEffects> {
    let mut pipelines = IndexPipelines::default();
    let mut done = None;
    let first: Vec<Option<String>> =
        pending.iter().map(|document| first_pipeline(service, &mut pipelines, document)).collect();
    run_stage(service, pending, &first, caller, cancel, &mut done);
    // A pipeline may have sent the document to another index, whose final pipeline then counts.
    let last: Vec<Option<String>> =
        pending.iter().map(|document| pipelines.of(service, &document.index).last.clone()).collect();
    run_stage(service, pending, &last, caller, cancel, &mut done);
    done
}

/// Default and final pipelines of the indices seen so far; a list, as a window has few indices.
#[derive(Default)]
struct IndexPipelines(Vec<(String, OfIndex)>);

#[derive(Default)]
struct OfIndex {
    default: Option<String>,
    last: Option<String>,
}

impl IndexPipelines {
    fn of(&mut self, service: &SearchService, index: &str) -> &OfIndex {
        let at = self.0.iter().position(|(name, _)| name == index).unwrap_or_else(|| {
            let settings = service.indices.write_settings(index);
            let pipelines = OfIndex {
                default: settings.default_pipeline().map(str::to_owned),
                last: settings.final_pipeline().map(str::to_owned),
            };
            self.0.push((index.to_owned(), pipelines));
            self.0.len() - 1
        });
        &self.0[at].1
    }
}

fn first_pipeline(
    service: &SearchService,
    pipelines: &mut IndexPipelines,
    document: &Pending<'_>,
) -> Option<String> {
    match document.pipeline.as_deref() {
        Some(NONE) => None,
        Some(name) => Some(name.to_owned()),
        None => pipelines.of(service, &document.index).default.clone(),
    }
}

fn run_stage(
    service: &SearchService,
    pending: &mut [Pending<'_>],
    pipelines: &[Option<String>],
    caller: &Caller,
    cancel: &CancelFlag,
    done: &mut Option<PipelineEffects>,
) {
    let mut groups: Vec<((&str, String), Vec<usize>)> = Vec::new();
    for (at, (document, pipeline)) in pending.iter().zip(pipelines).enumerate() {
        let Some(pipeline) = pipeline.as_deref().filter(|_| document.stage.has_document()) else { continue };
        match groups.iter_mut().find(|((name, index), _)| *name == pipeline && *index == document.index) {
            Some((_, members)) => members.push(at),
            None => groups.push(((pipeline, document.index.clone()), vec![at])),
        }
    }
    for ((pipeline, index), members) in groups {
        let done = done.get_or_insert_default();
        let mut models: Vec<(String, String)> = Vec::new();
        for batch in members.chunks(BATCH) {
            let summary = run_batch(service, pending, pipeline, batch, caller, cancel);
            done.truncated += summary.truncated;
            for model in summary.filled {
                if !models.contains(&model) {
                    models.push(model);
                }
            }
        }
        if !models.is_empty() {
            done.filled.push((index, models));
        }
    }
}

/// Runs a pipeline on one batch of documents.
fn run_batch(
    service: &SearchService,
    pending: &mut [Pending<'_>],
    pipeline: &str,
    batch: &[usize],
    caller: &Caller,
    cancel: &CancelFlag,
) -> IngestSummary {
    let mut members = Vec::with_capacity(batch.len());
    let mut documents = Vec::with_capacity(batch.len());
    for at in batch {
        let document = &mut pending[*at];
        match document.stage.take_document() {
            Ok(Some((source, numbers))) => {
                members.push(*at);
                let mut taken = IngestDoc::new(document.index.clone(), document.id.clone(), source);
                taken.numbers = numbers;
                taken.set_routing(document.routing.take());
                taken.executed = document.executed.take();
                documents.push(taken);
            }
            Ok(None) => {}
            Err(error) => document.stage = Stage::Failed(error),
        }
    }
    let mode = IngestMode { paced: false, cancel: Some(cancel.flag()) };
    let summary = service.pipelines.run(&*service.models, pipeline, &mut documents, mode);
    for (at, document) in members.into_iter().zip(documents) {
        let slot = &mut pending[at];
        let routing = document.routing();
        slot.executed = document.executed;
        if summary.is_err() {
            let reason = format!("pipeline with id [{pipeline}] does not exist");
            slot.stage = Stage::Failed(EngineError::illegal_argument(reason));
            continue;
        }
        match document.outcome {
            IngestOutcome::Ok => {
                let moved = document.index != slot.index;
                slot.index = document.index;
                slot.id = document.id;
                slot.routing = routing;
                slot.stage.put_document(document.source, document.numbers.as_ref());
                // No path and no body names the index that a pipeline chose.
                let allowed = if moved { slot.check_name(caller) } else { Ok(()) };
                if let Err(error) = allowed.and(slot.conditions.set_by_pipeline(&document.metadata)) {
                    slot.stage = Stage::Failed(error);
                }
            }
            IngestOutcome::Dropped => slot.stage = Stage::Dropped,
            IngestOutcome::Failed(error) => slot.stage = Stage::Failed(error.into()),
        }
    }
    summary.unwrap_or_default()
}

impl Stage<'_> {
    /// Whether there is a document for a pipeline to run on.
    fn has_document(&self) -> bool {
        match self {
            Self::Raw(..) | Self::Ready(..) => true,
            Self::Update(body) => body.has_upsert(),
            Self::Delete | Self::Dropped | Self::Failed(_) => false,
        }
    }

    fn take_document(&mut self) -> Result<Option<(Value, Option<WrittenNumbers>)>, EngineError> {
        let read = |raw: &[u8]| Ok(Some((parse_source(raw)?, WrittenNumbers::of(raw))));
        match self {
            Self::Raw(_, raw) => read(raw),
            Self::Ready(_, source) => match source.value.take() {
                Some(value) => Ok(Some((value, WrittenNumbers::of(&source.raw)))),
                None => read(&source.raw),
            },
            Self::Update(body) => {
                Ok(body.upsert_mut().map(|fields| (Value::Object(std::mem::take(fields)), None)))
            }
            Self::Delete | Self::Dropped | Self::Failed(_) => Ok(None),
        }
    }

    fn put_document(&mut self, document: Value, numbers: Option<&WrittenNumbers>) {
        match self {
            Self::Raw(kind, _) | Self::Ready(kind, _) => {
                *self = Self::Ready(*kind, Source::written(document, numbers.as_slice()));
            }
            Self::Update(body) => {
                if let (Some(upsert), Value::Object(document)) = (body.upsert_mut(), document) {
                    *upsert = document;
                }
            }
            Self::Delete | Self::Dropped | Self::Failed(_) => {}
        }
    }
}
