//! Execution of writes: pipelines, creation of missing indices, updates, and one ordered batch for each index.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use rustc_hash::FxHashSet;
use serde_json::value::RawValue;
use sparrow_runtime::work::{self, Stopped};

use super::action::{Action, ActionKind};
use super::ingest::{self, Pending, Stage};
use super::reply::Success;
use super::update::{Plan, UpdateBody};
use sparrow_catalog::{IndexHandle, Source, WriteKind, WriteOp, WriteOutcome, generate_id};
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::params::RefreshPolicy;
use sparrow_request::request::{CancelFlag, Request};
use sparrow_request::rights::{Caller, Right};
use sparrow_search::SearchService;

/// Limits on the actions, and on their bytes, that are parsed, run through pipelines and written together. A parsed
/// document takes about ten times its bytes, so this bounds the memory of a bulk request of any size; each window
/// costs one fsync per index.
const WINDOW_ACTIONS: usize = 1000;
const WINDOW_BYTES: usize = 4 << 20;

/// Estimated bytes of an item in the response without its names.
const ANSWER_BYTES: usize = 180;

/// Estimated bytes of an error without its sentence.
const ERROR_BYTES: usize = 300;

/// Length of a generated document id in bytes.
const ID_BYTES: usize = 20;

/// Result of one action.
pub(super) struct ItemResult {
    pub(super) index: String,
    pub(super) id: Option<String>,
    pub(super) result: Result<Success, EngineError>,
    /// Pipelines that ran on the document, if the request asks for them.
    pub(super) executed: Option<Vec<String>>,
}

impl ItemResult {
    /// Estimated memory for an action's result and its item in the response, in bytes, if it succeeds.
    fn bytes_for(action: &Action<'_>) -> usize {
        let names = action.index.len() + action.id.as_ref().map_or(ID_BYTES, String::len);
        size_of::<Self>() + ANSWER_BYTES + 2 * names
    }

    /// Memory for the result and its item in the response, in bytes.
    fn kept_bytes(&self, action: &Action<'_>) -> usize {
        // What may be long is held here, and then stands in the response.
        Self::bytes_for(action) + 2 * self.shown_bytes()
    }

    /// Bytes of what may be long in the response: the source that it shows, an error, the names of pipelines.
    pub(super) fn shown_bytes(&self) -> usize {
        let result = match &self.result {
            Ok(success) => success.source.as_ref().map_or(0, |source| source.get().len()),
            Err(error) => error.to_string().len() + ERROR_BYTES,
        };
        result + self.executed.iter().flatten().map(String::len).sum::<usize>()
    }
}

/// Carries out the actions of one request.
pub(super) struct Execution<'e> {
    service: &'e SearchService,
    cancel: &'e CancelFlag,
    caller: &'e Caller,
    touched: Vec<Arc<IndexHandle>>,
    /// Total time spent in pipelines, in milliseconds; `None` if none ran.
    pub(super) ingest_millis: Option<u64>,
    /// Number of texts that a model truncated to the tokens it can read.
    pub(super) truncated_texts: u64,
    /// Whether results list the pipelines that ran on each document.
    pub(super) list_executed: bool,
}

impl<'e> Execution<'e> {
    pub(super) fn new(service: &'e SearchService, request: &'e Request, cancel: &'e CancelFlag) -> Self {
        Self {
            service,
            cancel,
            caller: &request.caller,
            touched: Vec::new(),
            ingest_millis: None,
            truncated_texts: 0,
            list_executed: false,
        }
    }

    /// Executes actions in order; a failing action does not stop the others.
    ///
    /// # Errors
    /// If there is too little memory for the response, before anything is written; or if the client disconnects, in
    /// which case everything written before stays. When the request goes over its memory later, the remaining actions fail, each
    /// by itself.
    pub(super) fn run(&mut self, actions: &[Action<'_>]) -> Result<Vec<ItemResult>, EngineError> {
        // All of it at once: who is told that a request was refused sends it again, and must find nothing of it written.
        work::room_for(actions.iter().map(ItemResult::bytes_for).sum())?;
        let mut results = Vec::with_capacity(actions.len());
        let mut remaining = actions;
        while !remaining.is_empty() {
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            let mut bytes = 0;
            let fits = |action: &&Action<'_>| {
                bytes += action.body.len();
                bytes <= WINDOW_BYTES
            };
            let length = remaining.iter().take(WINDOW_ACTIONS).take_while(fits).count().max(1);
            let (window, later) = remaining.split_at(length);
            let mark = work::mark();
            let done = self.run_window(window)?;
            // The documents are in the log and wait to be written to a segment, for which there is a limit for all requests.
            mark.hand_over(window.iter().zip(&done).map(|(action, item)| item.kept_bytes(action)).sum());
            results.extend(done);
            remaining = later;
        }
        Ok(results)
    }

    /// Makes the writes searchable as requested; returns whether a refresh was forced.
    ///
    /// # Errors
    /// If a refresh fails; the writes are durable nonetheless.
    pub(super) fn refresh(&self, policy: RefreshPolicy) -> Result<bool, EngineError> {
        for handle in &self.touched {
            let refreshed = match policy {
                RefreshPolicy::None => Ok(()),
                RefreshPolicy::Immediate => handle.refresh(),
                RefreshPolicy::WaitFor => handle.wait_for_refresh(self.cancel),
            };
            match refreshed {
                // An index that was deleted meanwhile has nothing to show, and the writes to others are answered for all the same.
                Err(_) if handle.shard.is_closed() => {}
                refreshed => refreshed?,
            }
        }
        Ok(policy == RefreshPolicy::Immediate)
    }

    /// Executes the actions of one window.
    ///
    /// # Errors
    /// If the client disconnects before anything of the window is written.
    fn run_window(&mut self, actions: &[Action<'_>]) -> Result<Vec<ItemResult>, EngineError> {
        let mut pending: Vec<Pending<'_>> = actions.iter().map(stage).collect();
        for document in &mut pending {
            // Before any pipeline of an index runs that the caller may not write to.
            if let Err(error) = document.check_name(self.caller) {
                document.stage = Stage::Failed(error);
            }
        }
        if self.list_executed {
            pending.iter_mut().for_each(|document| document.executed = Some(Vec::new()));
        }
        let mut filled = Vec::new();
        let start = Instant::now();
        fail_if_exceeded(&mut pending)?;
        if let Some(done) = ingest::run(self.service, &mut pending, self.caller, self.cancel) {
            filled = done.filled;
            self.truncated_texts += done.truncated;
            *self.ingest_millis.get_or_insert(0) += start.elapsed().as_millis() as u64;
        }
        // Pipelines stop in the middle of a document.
        fail_if_exceeded(&mut pending)?;
        let mut groups: Vec<(Arc<IndexHandle>, Vec<usize>)> = Vec::new();
        for (at, (document, action)) in pending.iter_mut().zip(actions).enumerate() {
            if matches!(document.stage, Stage::Dropped | Stage::Failed(_)) {
                continue;
            }
            let right = self.caller.to(action.kind.needed(document.id.as_deref()));
            let routed = self.service.indices.routing(&document.index, document.routing.take());
            let found = routed.and_then(|routing| {
                document.routing = routing;
                target(self.service, action, &document.index, right)
            });
            match found {
                Ok(handle) => {
                    document.index.clone_from(&handle.name);
                    if let Stage::Update(body) = &mut document.stage
                        && body.has_script()
                    {
                        let deletes = self.caller.to(ActionKind::Delete.needed(document.id.as_deref()));
                        body.no_deletion =
                            deletes.check([handle.name.as_str()]).err().map(|refused| refused.exception());
                    }
                    match groups.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &handle)) {
                        Some((_, members)) => members.push(at),
                        None => groups.push((handle, vec![at])),
                    }
                }
                Err(error) => document.stage = Stage::Failed(error),
            }
        }
        for (index, models) in filled {
            let noted =
                // Only where something was written.
                self.service.indices.write_target(&index, Right::unlimited());
            let noted = noted.and_then(|handle| handle.note_models(&models));
            if let Err(error) = noted {
                tracing::warn!(index, %error, "the models that filled fields could not be noted");
            }
        }
        let mut results: Vec<Option<Result<Success, EngineError>>> = Vec::new();
        results.resize_with(pending.len(), || None);
        for (handle, members) in groups {
            let mut sequence = Sequence::new(&handle, &mut results);
            for at in members {
                let document = &mut pending[at];
                let stage = std::mem::replace(&mut document.stage, Stage::Delete);
                sequence.push(at, stage, document, &actions[at]);
            }
            sequence.send();
            self.truncated_texts += sequence.truncated;
            if !self.touched.iter().any(|other| Arc::ptr_eq(other, &handle)) {
                self.touched.push(handle);
            }
        }
        let outcomes = pending.into_iter().zip(results).zip(actions);
        Ok(outcomes.map(|((document, result), action)| item(document, result, action)).collect())
    }
}

/// Fails every document if the request went over a limit.
///
/// # Errors
/// If the client disconnected.
fn fail_if_exceeded(pending: &mut [Pending<'_>]) -> Result<(), EngineError> {
    let Err(stopped) = work::check() else { return Ok(()) };
    if let Stopped::Cancelled = stopped {
        return Err(EngineError::Cancelled);
    }
    for document in pending {
        document.stage = Stage::Failed(stopped.clone().into());
    }
    Ok(())
}

fn stage<'a>(action: &Action<'a>) -> Pending<'a> {
    let stage = match action.kind {
        ActionKind::Index => Stage::Raw(WriteKind::Index, action.body),
        ActionKind::Create => Stage::Raw(WriteKind::Create, action.body),
        ActionKind::Delete => Stage::Delete,
        ActionKind::Update => match UpdateBody::parse(action) {
            Ok(body) => Stage::Update(Box::new(body)),
            Err(error) => Stage::Failed(error),
        },
    };
    Pending {
        kind: action.kind,
        index: action.index.clone(),
        id: action.id.clone(),
        routing: action.routing.clone(),
        pipeline: action.pipeline.clone(),
        conditions: action.conditions.clone(),
        executed: None,
        stage,
    }
}

/// Finds the index to write to. A missing one is created, except for a deletion without an external version.
fn target(
    service: &SearchService,
    action: &Action<'_>,
    index: &str,
    right: Right<'_>,
) -> Result<Arc<IndexHandle>, EngineError> {
    if action.require_alias && !service.indices.is_alias(index) {
        let reason = format!(
            "no such index [{index}] and [require_alias] request flag is [true] and [{index}] is not an alias"
        );
        let exception = Exception::new("index_not_found_exception", reason)
            .with("index_uuid", "_na_")
            .with("index", index);
        return Err(EngineError::api(404, exception));
    }
    match action.kind {
        // A deletion makes no index, unless it leaves a version behind that the caller counts.
        ActionKind::Delete if action.conditions.external().is_none() => {
            service.indices.write_target(index, right)
        }
        _ => service.indices.get_or_create(index, right),
    }
}

fn item(
    document: Pending<'_>,
    result: Option<Result<Success, EngineError>>,
    action: &Action<'_>,
) -> ItemResult {
    let Pending { index, mut id, stage, executed, .. } = document;
    let result = match (stage, result) {
        (_, Some(result)) => result,
        (Stage::Failed(error), None) => Err(error),
        (Stage::Dropped, None) => Ok(Success::dropped(id.clone())),
        _ => Err(EngineError::internal("a write was lost on its way")),
    };
    match &result {
        Ok(success) => id = Some(success.id.clone()),
        // A document without an id had one on its way to the index, which the error may name.
        Err(EngineError::Document(error)) if id.is_none() && action.pipeline.is_none() => {
            id = Some(error.document_id().map_or_else(generate_id, str::to_owned));
        }
        Err(EngineError::Api(_)) if id.is_none() && action.pipeline.is_none() => id = Some(generate_id()),
        Err(_) => {}
    }
    ItemResult { index, id, result, executed }
}

/// An update that was written, to be retried if another write to the document came first.
struct Attempt {
    body: Box<UpdateBody>,
    retries: usize,
    returned: Option<Box<RawValue>>,
}

/// The writes to one index, in order, gathered to as few batches as updates allow.
struct Sequence<'s> {
    handle: &'s IndexHandle,
    copies: usize,
    results: &'s mut Vec<Option<Result<Success, EngineError>>>,
    ops: Vec<WriteOp>,
    sent: Vec<(usize, Option<Attempt>)>,
    /// Ids of the documents in the current batch; it has to be written before an update of one of them is planned.
    ids: FxHashSet<String>,
    /// Number of texts that a model truncated to the tokens it can read.
    truncated: u64,
}

impl<'s> Sequence<'s> {
    fn new(handle: &'s IndexHandle, results: &'s mut Vec<Option<Result<Success, EngineError>>>) -> Self {
        let copies = 1 + handle.settings().replicas();
        Self {
            handle,
            copies,
            results,
            ops: Vec::new(),
            sent: Vec::new(),
            ids: FxHashSet::default(),
            truncated: 0,
        }
    }

    fn push(&mut self, at: usize, stage: Stage<'_>, document: &Pending<'_>, action: &Action<'_>) {
        let id = document.id.clone();
        // An update reads the document that it changes, which may be many times as long as its body.
        if let (Stage::Update(_), Err(Stopped::Exceeded(limit))) = (&stage, work::check()) {
            self.results[at] = Some(Err(limit.into()));
            return;
        }
        let (op, attempt) = match stage {
            Stage::Raw(kind, raw) => {
                let source = Source { raw: raw.to_vec(), value: None };
                (write_op(kind, source, document), None)
            }
            Stage::Ready(kind, source) => (write_op(kind, source, document), None),
            Stage::Delete => (write_op(WriteKind::Delete, Source::default(), document), None),
            Stage::Update(mut body) => {
                let id = id.unwrap_or_default();
                body.routing.clone_from(&document.routing);
                if self.ids.contains(&id) {
                    self.send();
                }
                match body.plan(self.handle, &id) {
                    Ok(Plan::Write(op, returned)) => {
                        (op, Some(Attempt { body, retries: action.retry_on_conflict, returned }))
                    }
                    Ok(Plan::Noop(success)) => {
                        self.handle.counters.noop.fetch_add(1, Relaxed);
                        self.results[at] = Some(Ok(success));
                        return;
                    }
                    Err(error) => {
                        self.results[at] = Some(Err(error));
                        return;
                    }
                }
            }
            Stage::Dropped => {
                self.results[at] = Some(Ok(Success::dropped(id)));
                return;
            }
            Stage::Failed(error) => {
                self.results[at] = Some(Err(error));
                return;
            }
        };
        self.ids.extend(op.id.clone());
        self.ops.push(op);
        self.sent.push((at, attempt));
    }

    /// Writes the current batch and stores the results.
    fn send(&mut self) {
        self.ids.clear();
        let ops = std::mem::take(&mut self.ops);
        if ops.is_empty() {
            return;
        }
        let outcomes = self.handle.write(ops);
        for ((at, attempt), outcome) in std::mem::take(&mut self.sent).into_iter().zip(outcomes) {
            self.results[at] = Some(self.finish(attempt, outcome));
        }
    }

    fn finish(
        &mut self,
        attempt: Option<Attempt>,
        mut outcome: Result<WriteOutcome, EngineError>,
    ) -> Result<Success, EngineError> {
        let Some(mut attempt) = attempt else { return self.written(outcome) };
        while let Err(EngineError::VersionConflict { id, .. }) = &outcome {
            if attempt.retries == 0 {
                break;
            }
            attempt.retries -= 1;
            match attempt.body.plan(self.handle, id)? {
                Plan::Noop(success) => {
                    self.handle.counters.noop.fetch_add(1, Relaxed);
                    return Ok(success);
                }
                Plan::Write(op, returned) => {
                    attempt.returned = returned;
                    outcome = self.handle.write_one(op);
                }
            }
        }
        let mut success = self.written(outcome)?;
        success.source = attempt.returned;
        Ok(success)
    }

    fn written(&mut self, outcome: Result<WriteOutcome, EngineError>) -> Result<Success, EngineError> {
        let outcome = outcome?;
        self.truncated += outcome.truncated;
        Ok(Success::written(self.copies, outcome))
    }
}

fn write_op(kind: WriteKind, source: Source, document: &Pending<'_>) -> WriteOp {
    let Pending { conditions, routing, .. } = document;
    let id = document.id.clone();
    let mut op = match kind {
        WriteKind::Index => WriteOp::index(id, source),
        WriteKind::Create => WriteOp::create(id, source),
        WriteKind::Delete => WriteOp::delete(id.unwrap_or_default()),
    };
    op.routing.clone_from(routing);
    op.if_seq_no = conditions.if_seq_no;
    op.if_primary_term = conditions.term();
    op.external_version = conditions.external();
    op
}
