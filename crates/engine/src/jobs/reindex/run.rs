//! Running a reindex.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::plan::{self, Chunk, Position, Source};
use super::spec::{ReindexSpec, VersionType};
use super::tally::Tally;
use crate::Engine;
use crate::error::EngineError;
use crate::indices::{self, ExternalVersion, IndexHandle, ResolveOptions, Resolved, WriteOp, WriteOutcome};
use crate::jobs::task::TaskContext;
use crate::models::Purpose;
use crate::pipelines::{IngestDoc, IngestMode, IngestOutcome};
use crate::request::CancelFlag;

/// Chunks that are read and encoded while an earlier one is written. Two keep a machine of a few cores busy; more
/// would only hold more documents in memory.
const AHEAD: usize = 3;

/// A reindex at work.
pub(super) struct Run<'a> {
    engine: &'a Arc<Engine>,
    context: &'a TaskContext,
    spec: ReindexSpec,
    tally: Arc<Tally>,
    /// Where the destination's sequence numbers were before a crash, if there was one.
    floor: Option<u64>,
}

/// A document that was read and went through its pipelines.
struct Prepared {
    id: Option<String>,
    action: Action,
}

enum Action {
    Write {
        index: String,
        op: Box<WriteOp>,
    },
    /// A pipeline dropped it.
    Nothing,
    Fail(EngineError),
}

impl<'a> Run<'a> {
    pub fn new(
        engine: &'a Arc<Engine>,
        context: &'a TaskContext,
        spec: ReindexSpec,
        tally: Arc<Tally>,
    ) -> Self {
        let floor = tally.progressed().destination_seq_no;
        Self { engine, context, spec, tally, floor }
    }

    /// Copies everything; the answer is the response, failures of documents included.
    ///
    /// # Errors
    /// What keeps the reindex from starting; [`EngineError::Cancelled`] if the server stops.
    pub fn run(self) -> Result<Value, EngineError> {
        let sources = self.sources()?;
        self.spec.check_not_into_itself(self.engine)?;
        let positions = self.positions(&sources)?;
        let failures = if positions.is_empty() {
            Vec::new()
        } else {
            let destination = self.engine.indices.get_or_create(&self.spec.destination)?;
            self.copy(&sources, &positions, &destination)?
        };
        let cancelled = self.context.is_cancelled();
        if cancelled && self.context.is_closing() {
            return Err(EngineError::Cancelled);
        }
        if self.spec.refresh
            && let Ok(destination) = self.engine.indices.write_target(&self.spec.destination)
        {
            destination.refresh()?;
        }
        Ok(self.tally.response(failures, cancelled, self.context.is_persistent()))
    }

    /// The indices to read. Everything written before the reindex began is read, also what no search shows yet.
    fn sources(&self) -> Result<Vec<Source>, EngineError> {
        let mut sources: Vec<Source> = Vec::new();
        for expression in &self.spec.sources {
            for Resolved { handle, filter } in
                self.engine.indices.resolve_filtered(expression, &ResolveOptions::default())?
            {
                if sources.iter().any(|known| known.handle.uuid == handle.uuid) {
                    continue;
                }
                handle.refresh()?;
                let snapshot =
                    crate::search::restrict(self.engine, &handle, &handle.snapshot(), filter.as_ref())?;
                sources.push(Source { handle, snapshot });
            }
        }
        Ok(sources)
    }

    /// The documents to read, behind those that are done.
    fn positions(&self, sources: &[Source]) -> Result<Vec<Position>, EngineError> {
        let handles: Vec<Arc<IndexHandle>> =
            sources.iter().map(|source| Arc::clone(&source.handle)).collect();
        let cancel = CancelFlag::from(Arc::clone(self.context.cancel_flag()));
        let query = match &self.spec.query {
            None => None,
            Some(query) => Some(crate::search::prepare_query(self.engine, &handles, query, &cancel)?),
        };
        let after = self.tally.progressed().after;
        let done = after
            .as_ref()
            .and_then(|(name, _)| sources.iter().position(|source| source.handle.name == *name));
        let mut positions = Vec::new();
        for (number, source) in sources.iter().enumerate() {
            if done.is_some_and(|done| number < done) {
                continue;
            }
            let found = match &query {
                None => source.snapshot.scan_all(None),
                Some(query) => {
                    let matching = source
                        .snapshot
                        .matching(query)
                        .map_err(|error| crate::search::query_error(self.engine, &source.handle, error))?;
                    source.snapshot.scan_all(Some(&matching))
                }
            };
            let behind = match &after {
                Some((_, seq_no)) if done == Some(number) => {
                    found.partition_point(|(known, _)| known <= seq_no)
                }
                _ => 0,
            };
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            positions.extend(found[behind..].iter().map(|(seq_no, addr)| (number, *seq_no, *addr)));
        }
        self.tally.update(|progressed| {
            let found = positions.len() as u64;
            progressed.total.get_or_insert(self.spec.max_docs.map_or(found, |most| most.min(found)));
        });
        // With conflicts passed over, documents beyond the limit take the place of those that were not written.
        if let Some(most) = self.spec.max_docs.filter(|_| !self.spec.proceed) {
            let left = most.saturating_sub(self.tally.progressed().successful());
            positions.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        }
        Ok(positions)
    }

    fn copy(
        &self,
        sources: &[Source],
        positions: &[Position],
        destination: &Arc<IndexHandle>,
    ) -> Result<Vec<Value>, EngineError> {
        let in_batch = usize::try_from(self.tally.progressed().in_batch).unwrap_or(0);
        let mut waiting = plan::chunks(positions.len(), self.spec.batch, in_batch);
        let mut failures = Vec::new();
        let mut floor = self.floor;
        self.checkpoint(destination)?;
        std::thread::scope(|scope| {
            let mut ahead = VecDeque::with_capacity(AHEAD);
            let mut batch_began = Instant::now();
            let mut batch_documents = 0;
            loop {
                while ahead.len() < AHEAD
                    && !self.context.is_cancelled()
                    && let Some(chunk) = waiting.next()
                {
                    let read = &positions[chunk.range.clone()];
                    ahead.push_back((chunk, scope.spawn(move || self.prepare(sources, read, destination))));
                }
                let Some((chunk, prepared)) = ahead.pop_front() else { break };
                let prepared = prepared
                    .join()
                    .map_err(|_| EngineError::internal("reading a part of the documents panicked"))??;
                if self.context.is_cancelled() {
                    break;
                }
                batch_documents += chunk.range.len();
                let enough = self.write(prepared, destination, floor.take(), &mut failures)?;
                self.note(&chunk, sources, positions, enough);
                self.checkpoint(destination)?;
                if enough || (chunk.ends_batch && !failures.is_empty()) {
                    break;
                }
                if chunk.ends_batch {
                    if chunk.range.end < positions.len() {
                        self.tally
                            .throttle
                            .pause(batch_documents, batch_began, &|| self.context.is_cancelled());
                    }
                    batch_began = Instant::now();
                    batch_documents = 0;
                }
            }
            Ok(failures)
        })
    }

    /// Reads documents and sends them through their pipelines; runs on a thread of its own.
    fn prepare(
        &self,
        sources: &[Source],
        positions: &[Position],
        destination: &IndexHandle,
    ) -> Result<Vec<Prepared>, EngineError> {
        let mut documents = Vec::with_capacity(positions.len());
        let mut versions = Vec::with_capacity(positions.len());
        let mut earlier = Vec::with_capacity(positions.len());
        let mut selected = Vec::new();
        for (source, _, addr) in positions {
            let stored = sources[*source as usize].snapshot.fetch(*addr)?;
            selected.clear();
            self.spec.selection.write(&stored.source, &mut selected);
            let value: Value = serde_json::from_slice(&selected).map_err(|_| {
                EngineError::illegal_argument(format!("[{}] has no _source to copy", stored.id))
            })?;
            versions.push(stored.version);
            earlier.push(stored.passages.map(|passages| (stored.source, passages)));
            documents.push(IngestDoc::new(destination.name.clone(), Some(stored.id), value));
        }
        let settings = destination.settings();
        let first = self.spec.pipeline.as_deref().or_else(|| settings.default_pipeline());
        let mode = IngestMode { paced: true, cancel: Some(self.context.cancel_flag().as_ref()) };
        let mut prepared = Vec::with_capacity(documents.len());
        for pipeline in first.into_iter().chain(settings.final_pipeline()) {
            match self.engine.pipelines.run(&self.engine.models, pipeline, &mut documents, mode) {
                Ok(summary) => destination.note_models(&summary.filled)?,
                Err(error) => {
                    let reason = error.reason();
                    prepared.extend(documents.into_iter().map(|document| Prepared {
                        id: document.id,
                        action: Action::Fail(EngineError::illegal_argument(reason.clone())),
                    }));
                    return Ok(prepared);
                }
            }
        }
        // Which of the prepared documents go to the destination, and their writes, whose texts are encoded here and not
        // while the log waits.
        let mut places = Vec::new();
        let mut ops = Vec::new();
        for ((document, version), previous) in documents.into_iter().zip(versions).zip(earlier) {
            let id = document.id.clone();
            let action = match document.outcome {
                IngestOutcome::Ok => {
                    let mut op = self.operation(document.id, document.source, version);
                    op.previous = previous;
                    if document.index == destination.name {
                        places.push(prepared.len());
                        ops.push(op);
                        Action::Nothing
                    } else {
                        Action::Write { index: document.index, op: Box::new(op) }
                    }
                }
                IngestOutcome::Dropped => Action::Nothing,
                IngestOutcome::Failed(error) => Action::Fail(error),
            };
            prepared.push(Prepared { id, action });
        }
        let cancel = self.context.cancel_flag();
        let refused = destination.embed(&mut ops, Purpose::PacedIngest, Some(cancel.as_ref()));
        for ((place, op), refused) in places.into_iter().zip(ops).zip(refused) {
            prepared[place].action = match refused {
                Some(error) => Action::Fail(error),
                None => Action::Write { index: destination.name.clone(), op: Box::new(op) },
            };
        }
        Ok(prepared)
    }

    fn operation(&self, id: Option<String>, source: Value, version: u64) -> WriteOp {
        let source = indices::Source::from_value(source);
        let mut op = if self.spec.create { WriteOp::create(id, source) } else { WriteOp::index(id, source) };
        op.external_version = match self.spec.version_type {
            VersionType::Internal => None,
            VersionType::External => Some(ExternalVersion { version, or_equal: false }),
            VersionType::ExternalOrEqual => Some(ExternalVersion { version, or_equal: true }),
        };
        op
    }

    /// Writes a chunk and counts; says whether `max_docs` is reached.
    fn write(
        &self,
        prepared: Vec<Prepared>,
        destination: &Arc<IndexHandle>,
        floor: Option<u64>,
        failures: &mut Vec<Value>,
    ) -> Result<bool, EngineError> {
        let done = self.tally.progressed();
        let mut room = self.spec.max_docs.map_or(u64::MAX, |most| most.saturating_sub(done.successful()));
        let mut groups: Vec<(String, Vec<Option<String>>, Vec<WriteOp>)> = Vec::new();
        for document in prepared {
            match document.action {
                // Counted as done once there is room no more: the rest of the chunk is not wanted.
                _ if room == 0 => break,
                Action::Nothing => {
                    room -= 1;
                    self.tally.update(|tally| tally.noops += 1);
                }
                Action::Fail(error) => self.failed(document.id.as_deref(), &error, failures),
                Action::Write { index, op } => {
                    room -= 1;
                    if self.was_written(destination, &index, document.id.as_deref(), floor)? {
                        continue;
                    }
                    match groups.iter_mut().find(|(name, _, _)| *name == index) {
                        Some((_, ids, ops)) => {
                            ids.push(document.id);
                            ops.push(*op);
                        }
                        None => groups.push((index, vec![document.id], vec![*op])),
                    }
                }
            }
        }
        for (index, ids, ops) in groups {
            let results = if index == destination.name {
                destination.write(ops)
            } else {
                // A pipeline sent them elsewhere.
                self.engine.indices.get_or_create(&index)?.write(ops)
            };
            for (id, result) in ids.into_iter().zip(results) {
                match result {
                    Ok(WriteOutcome { result, .. }) => self.tally.update(|tally| match result.status() {
                        201 => tally.created += 1,
                        _ => tally.updated += 1,
                    }),
                    Err(error) => self.failed(id.as_deref(), &error, failures),
                }
            }
        }
        Ok(self.spec.max_docs.is_some_and(|most| self.tally.progressed().successful() >= most))
    }

    /// After a crash the next chunk may have been written without having been set down. Such a document is counted
    /// and not written again: with `op_type: create` it would be a conflict.
    fn was_written(
        &self,
        destination: &IndexHandle,
        index: &str,
        id: Option<&str>,
        floor: Option<u64>,
    ) -> Result<bool, EngineError> {
        let (Some(floor), Some(id)) = (floor, id) else { return Ok(false) };
        if index != destination.name {
            return Ok(false);
        }
        match destination.current_version(id)? {
            Some(current) if current.seq_no >= floor && current.source.is_some() => {
                self.tally.update(|tally| match current.version {
                    1 => tally.created += 1,
                    _ => tally.updated += 1,
                });
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn failed(&self, id: Option<&str>, error: &EngineError, failures: &mut Vec<Value>) {
        if matches!(error, EngineError::VersionConflict { .. }) {
            self.tally.update(|tally| tally.version_conflicts += 1);
            if self.spec.proceed {
                return;
            }
        }
        failures.push(json!({
            "index": self.spec.destination,
            "id": id,
            "cause": error.to_json(),
            "status": error.status(),
        }));
    }

    fn note(&self, chunk: &Chunk, sources: &[Source], positions: &[Position], enough: bool) {
        let last = positions[chunk.range.clone()].last();
        self.tally.update(|tally| {
            if let Some((source, seq_no, _)) = last {
                tally.after = Some((sources[*source as usize].handle.name.clone(), *seq_no));
            }
            if chunk.ends_batch || enough {
                tally.batches += 1;
                tally.in_batch = 0;
            } else {
                tally.in_batch += chunk.range.len() as u64;
            }
        });
    }

    fn checkpoint(&self, destination: &IndexHandle) -> Result<(), EngineError> {
        if !self.context.is_persistent() {
            return Ok(());
        }
        let next = destination.write.lock().next_seq_no;
        self.tally.update(|tally| tally.destination_seq_no = Some(next));
        self.context.checkpoint(self.spec.to_resume(&self.tally.progressed()))
    }
}
