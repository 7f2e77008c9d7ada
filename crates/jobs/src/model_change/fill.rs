//! The task of a change: gives all documents vectors of the new model, compares the results of both models, and switches searches over.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use serde::Serialize;
use serde_json::{Value, json};
use sparrow_catalog::model_change::{ChangeState, Filling, ModelChange};
use sparrow_catalog::model_steps::FillingGuard;
use sparrow_catalog::{ExternalVersion, IndexHandle, PRIMARY_TERM, Source, WriteOp};
use sparrow_models::Purpose;
use sparrow_request::body::tree_bytes;
use sparrow_request::error::EngineError;
use sparrow_runtime::work::{self, Work};
use sparrow_search::SearchService;
use sparrow_tantivy_index::{DocAddress, Snapshot};
use sparrow_tasks::throttle::Throttle;
use sparrow_tasks::{Progress, TaskContext};

use super::compare::{self, both_slots};
use crate::prepare::PART_BYTES;

/// The member of a task's record that holds what is needed to resume a change.
pub(crate) const RESUME: &str = "model_change";

/// Most documents that are read, encoded and written together.
const CHUNK: usize = 128;
/// Most failures of documents that are shown.
const SHOWN_FAILURES: usize = 10;

/// Counters and throttle of a running task.
#[derive(Debug)]
pub(super) struct FillProgress {
    pub filling: Arc<Filling>,
    conflicts: AtomicU64,
    throttle: Throttle,
}

impl FillProgress {
    pub fn new(filling: Arc<Filling>, pace: f64) -> Self {
        Self { filling, conflicts: AtomicU64::new(0), throttle: Throttle::new(pace) }
    }

    fn counters(&self) -> FillCounters {
        let pace = self.throttle.requests_per_second();
        FillCounters {
            total: self.filling.total.load(Relaxed),
            filled: self.filling.filled.load(Relaxed),
            version_conflicts: self.conflicts.load(Relaxed),
            throttled_millis: self.throttle.throttled_millis().round() as u64,
            requests_per_second: if pace.is_finite() { pace } else { -1.0 },
            canceled: None,
        }
    }
}

/// The counters of a status and of a response, in the order of their members.
#[derive(Serialize)]
struct FillCounters {
    total: u64,
    filled: u64,
    version_conflicts: u64,
    throttled_millis: u64,
    requests_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    canceled: Option<&'static str>,
}

/// The response of a task, in the order of its members.
#[derive(Serialize)]
struct FillResponse<'a> {
    took: u64,
    field: &'a str,
    state: &'a str,
    #[serde(flatten)]
    counters: FillCounters,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<Value>,
}

impl Progress for FillProgress {
    fn status(&self, cancelled: bool) -> Value {
        json!(FillCounters { canceled: cancelled.then_some("by user request"), ..self.counters() })
    }

    fn rethrottle(&self, requests_per_second: f64) -> bool {
        self.throttle.change(requests_per_second);
        true
    }
}

/// A running task.
pub(super) struct Fill {
    pub service: Arc<SearchService>,
    pub handle: Arc<IndexHandle>,
    pub change: ModelChange,
    pub progress: Arc<FillProgress>,
    pub _claimed: FillingGuard,
}

/// The results of writing one portion of the documents.
#[derive(Default)]
struct Portion {
    read: usize,
    written: u64,
    conflicts: u64,
    failures: Vec<(String, EngineError)>,
}

impl Fill {
    /// What the task's record needs for resuming it; `pace` is the throttle in documents per second.
    pub fn resume(&self, pace: f64) -> Value {
        let pace = if pace.is_finite() { json!(pace) } else { Value::Null };
        json!({RESUME: {"index": self.handle.name, "uuid": self.handle.uuid, "requests_per_second": pace}})
    }

    /// Runs the change to its end, or until it needs a request to switch searches over.
    ///
    /// # Errors
    /// The reason why not all documents could be given vectors; the change is then stopped, and searches use the old vectors.
    pub fn run(self, context: &TaskContext) -> Result<Value, EngineError> {
        let began = Instant::now();
        let result = match self.change.state {
            ChangeState::Filling => self.fill(context).and_then(|()| {
                let compared = compare::run(&self.service, &self.handle, &self.change, context)?;
                self.handle.model_is_filled(compared)
            }),
            // The server ended when all was done but for saying so.
            ChangeState::Ready | ChangeState::Switched => Ok(()),
        };
        match result {
            Ok(()) => {}
            Err(_) if context.is_closing() => return Err(EngineError::Cancelled),
            Err(_) if context.is_cancelled() && self.is_filling() => {
                self.handle.end_model_change()?;
                return Ok(self.response(began, "cancelled", None));
            }
            Err(error) => {
                // An index that is gone, or a full disk, takes no note.
                if let Err(error) = self.handle.note_filling(Some(error.reason())) {
                    tracing::warn!(index = self.handle.name, %error, "it is not noted why a change of a model stopped");
                }
                return Err(error);
            }
        }
        let change = self.handle.model_change();
        let state = change.as_ref().map_or("dropped", |change| change.state.name());
        Ok(self.response(began, state, change.as_ref().and_then(|change| change.compared.clone())))
    }

    /// Whether the change is in the state in which documents are still being given new vectors.
    fn is_filling(&self) -> bool {
        self.handle.model_change().is_some_and(|change| change.state == ChangeState::Filling)
    }

    fn response(&self, began: Instant, state: &str, compared: Option<Value>) -> Value {
        json!(FillResponse {
            took: began.elapsed().as_millis() as u64,
            field: &self.change.field,
            state,
            counters: self.progress.counters(),
            compared,
        })
    }

    /// Processes the documents that lack vectors of the new model until there are none. Documents that are written meanwhile get them
    /// anyway.
    fn fill(&self, context: &TaskContext) -> Result<(), EngineError> {
        let mut pace = self.progress.throttle.requests_per_second();
        loop {
            self.handle.refresh().map_err(|error| self.handle.explain(error))?;
            let snapshot = self.handle.snapshot();
            let (of, within) = both_slots(snapshot.mapping(), &self.change.field)?;
            let lacking = snapshot.lacking_passages(&of, &within);
            let filled = self.progress.filling.filled.load(Relaxed);
            self.progress.filling.total.store(filled + lacking.len() as u64, Relaxed);
            if lacking.is_empty() {
                return Ok(());
            }
            let (mut done, mut failures) = (0, Vec::new());
            let mut left = &lacking[..];
            while !left.is_empty() {
                if context.is_cancelled() {
                    return Err(EngineError::Cancelled);
                }
                let began = Instant::now();
                let most = most_at_once(pace).min(left.len());
                let portion = self.handle_chunk(&snapshot, &left[..most], context)?;
                left = &left[portion.read..];
                done += portion.written + portion.conflicts;
                self.progress.filling.filled.fetch_add(portion.written, Relaxed);
                self.progress.conflicts.fetch_add(portion.conflicts, Relaxed);
                let is_nothing_done = portion.written + portion.conflicts == 0;
                failures.extend(portion.failures.into_iter().take(SHOWN_FAILURES));
                // What keeps all of them from being written keeps the others, too.
                if (is_nothing_done && portion.read == CHUNK) || failures.len() > SHOWN_FAILURES {
                    return Err(self.stopped(failures));
                }
                let stop = || context.is_cancelled();
                self.progress.throttle.pause(portion.read, began, &stop);
                let wanted = self.progress.throttle.requests_per_second();
                if (wanted - pace).abs() > f64::EPSILON && !context.is_cancelled() {
                    pace = wanted;
                    context.checkpoint(self.resume(pace))?;
                }
            }
            if done == 0 {
                return Err(self.stopped(failures));
            }
        }
    }

    fn stopped(&self, mut failures: Vec<(String, EngineError)>) -> EngineError {
        if self.handle.shard.is_closed() {
            return EngineError::IndexNotFound { name: self.handle.name.clone() };
        }
        if failures.is_empty() {
            return EngineError::internal("documents lack vectors and nothing kept them from being written");
        }
        let (id, error) = failures.swap_remove(0);
        let field = &self.change.field;
        let slot = self.handle.mapping().slot_beside(field);
        let reason = told(&error, &id, field, slot.as_deref());
        tracing::warn!(index = self.handle.name, id, %error, "a document cannot be given vectors of a new model");
        EngineError::api(
            error.status(),
            sparrow_request::error::Exception::new(
                error.es_type(),
                format!("a document cannot be given vectors of the new model of field [{field}]: {reason}"),
            ),
        )
    }

    /// Writes documents again as they are, with vectors of both models: the first ones, where all of them are long.
    fn handle_chunk(
        &self,
        snapshot: &Snapshot,
        chunk: &[(u64, DocAddress)],
        context: &TaskContext,
    ) -> Result<Portion, EngineError> {
        let cancel = Arc::clone(context.cancel_flag());
        let limits = work::enter(Some(Work::new(
            Arc::clone(&cancel),
            Arc::clone(&self.service.memory),
            "<change_model>",
        )));
        let (mut ids, mut ops) = (Vec::with_capacity(chunk.len()), Vec::with_capacity(chunk.len()));
        let documents = read_portion(chunk, |(seq_no, addr)| {
            let stored = snapshot.fetch(*addr)?;
            let bytes = stored.source.len() + tree_bytes(&stored.source);
            Ok(((*seq_no, stored), bytes))
        })?;
        let read = documents.len();
        for (seq_no, stored) in documents {
            let source = Source { raw: stored.source.clone(), value: None };
            let mut op = WriteOp::index(Some(stored.id.clone()), source);
            op.routing = stored.routing;
            op.previous = stored.passages.map(|passages| (stored.source, passages));
            // A document that was written since has vectors of both models already. Its content stays, so its version does too.
            op.if_seq_no = Some(seq_no);
            op.if_primary_term = Some(PRIMARY_TERM);
            op.external_version = Some(ExternalVersion { version: stored.version, or_equal: true });
            ids.push(stored.id);
            ops.push(op);
        }
        let mapping = self.handle.mapping();
        let refused = self.handle.embed(&mapping, &mut ops, Purpose::PacedIngest, Some(cancel.as_ref()));
        // Writing has no limits of a request: it is the job's.
        drop(limits);
        if context.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        let mut portion = Portion { read, ..Portion::default() };
        let (mut written, mut places) = (Vec::with_capacity(ops.len()), Vec::with_capacity(ops.len()));
        for ((op, id), refused) in ops.into_iter().zip(ids).zip(refused) {
            match refused {
                Some(error) => portion.failures.push((id, error)),
                None => {
                    written.push(op);
                    places.push(id);
                }
            }
        }
        for (id, result) in places.into_iter().zip(self.handle.write(written)) {
            match result.map_err(|error| self.handle.explain(error)) {
                Ok(_) => portion.written += 1,
                Err(EngineError::VersionConflict { .. }) => portion.conflicts += 1,
                Err(error) => portion.failures.push((id, error)),
            }
        }
        Ok(portion)
    }
}

/// The most documents of a portion: fewer than usual if `pace`, in documents per second, is low, so that the work is spread evenly.
fn most_at_once(pace: f64) -> usize {
    if pace.is_finite() { (pace as usize).clamp(1, CHUNK) } else { CHUNK }
}

/// Reads documents, each with its size in bytes, until they have more than [`PART_BYTES`]: all that are read are in memory at once.
fn read_portion<A, D>(
    addresses: &[A],
    mut read: impl FnMut(&A) -> Result<(D, usize), EngineError>,
) -> Result<Vec<D>, EngineError> {
    let (mut documents, mut bytes) = (Vec::with_capacity(addresses.len()), 0);
    for address in addresses {
        let (document, size) = read(address)?;
        documents.push(document);
        bytes += size;
        if bytes > PART_BYTES {
            break;
        }
    }
    Ok(documents)
}

/// The message why a document could not be written, for all who may see the change: without contents of the document, and with the field's
/// name in place of the internal name of its new vectors.
fn told(error: &EngineError, id: &str, field: &str, slot: Option<&str>) -> String {
    let reason = error.reason();
    let reason = slot.map_or_else(|| reason.clone(), |slot| reason.replace(slot, field));
    let is_private = matches!(error, EngineError::Document(_)) || reason.contains(&format!("[{id}]"));
    if is_private { format!("{}, the log of the server says more", error.es_type()) } else { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_has_as_many_documents_as_the_pace_allows() {
        let paces = [2.5, f64::INFINITY, 0.1, 1e9, 50.0];
        assert_eq!(paces.map(most_at_once), [2, CHUNK, 1, CHUNK, 50]);
    }

    #[test]
    fn a_portion_ends_where_its_documents_are_long() {
        let read = |sizes: &[usize]| read_portion(sizes, |size| Ok(((), *size))).unwrap().len();
        assert_eq!(read(&[1; CHUNK]), CHUNK);
        assert_eq!(read(&[PART_BYTES / 2; CHUNK]), 3);
        assert_eq!(read(&[PART_BYTES + 1, 1]), 1);
        assert_eq!(read(&[]), 0);
    }

    #[test]
    fn what_a_document_says_and_hidden_names_are_not_told() {
        let illegal = |reason: &str| EngineError::illegal_argument(reason);
        let told = |error: &EngineError| told(error, "customer-7", "b", Some("b..1"));
        assert_eq!(told(&illegal("field [b..1] has no room")), "field [b] has no room");
        assert_eq!(
            told(&illegal("[customer-7]: no room")),
            "illegal_argument_exception, the log of the server says more"
        );
        assert_eq!(told(&illegal("the model is gone")), "the model is gone");
    }
}
