//! Handling documents in their order: a whole job, or one slice of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use serde_json::json;

use super::plan::{self, Chunk, Position, Source};
use super::prepare::{Action, Prepared};
use super::spec::{Operation, Spec};
use super::tally::Tally;
use crate::Engine;
use crate::error::EngineError;
use crate::indices::{IndexHandle, WriteOp, WriteOutcome, WriteResult};
use crate::jobs::task::TaskContext;

/// Chunks that are read and encoded while an earlier one is written. Two keep a machine of a few cores busy; more
/// would only hold more documents in memory.
const AHEAD: usize = 3;

/// Which slices may work: as many at once as there are cores, since each holds a chunk of documents in memory. A slice
/// that sleeps to keep its pace needs no turn.
pub(super) struct Turns {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Turns {
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self { free: Mutex::new(cores.max(2)), freed: Condvar::new() }
    }

    fn take(&self) -> Turn<'_> {
        let mut free = self.free.lock();
        while *free == 0 {
            self.freed.wait(&mut free);
        }
        *free -= 1;
        Turn(self)
    }
}

struct Turn<'a>(&'a Turns);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.freed.notify_one();
    }
}

/// A job, or one slice of it, at work.
pub(super) struct Slice<'a> {
    pub engine: &'a Arc<Engine>,
    pub context: &'a TaskContext,
    pub spec: &'a Spec,
    pub sources: &'a [Source],
    /// Where documents are written: the destination of copies, or the sources themselves.
    pub targets: Vec<Arc<IndexHandle>>,
    pub tally: &'a Tally,
    pub max_docs: Option<u64>,
    /// Given to one of several slices, which reads and writes in turn on its own thread.
    pub turns: Option<&'a Turns>,
    /// Sets down how far the whole job is.
    pub checkpoint: &'a (dyn Fn() -> Result<(), EngineError> + Sync),
}

impl Slice<'_> {
    /// Handles its documents; what goes wrong with one is counted and set down.
    ///
    /// # Errors
    /// What keeps it from going on.
    pub fn run(&self, mut positions: Vec<Position>) -> Result<(), EngineError> {
        self.skip_done(&mut positions);
        let result = self.handle(&positions);
        if result.is_ok() && !self.context.is_cancelled() {
            self.tally.update(|progressed| progressed.ended = true);
            self.set_down()?;
        }
        result
    }

    /// Leaves out what an interrupted run has done, and counts what is there for the first time.
    fn skip_done(&self, positions: &mut Vec<Position>) {
        let progressed = self.tally.progressed();
        if let Some((name, seq_no)) = &progressed.after
            && let Some(done) = self.sources.iter().position(|source| source.handle.name == *name)
        {
            positions.retain(|(source, found, _)| {
                let source = *source as usize;
                source > done || (source == done && found > seq_no)
            });
        }
        let left = positions.len() as u64;
        self.tally.update(|progressed| match progressed.found {
            Some(found) if self.spec.destination().is_none() => {
                // Documents that are gone from before the end were handled just before a crash.
                let lost = found.saturating_sub(progressed.done + left);
                match self.spec.operation {
                    Operation::Delete => progressed.deleted += lost,
                    Operation::Copy(_) | Operation::Update { .. } => progressed.updated += lost,
                }
                progressed.done += lost;
            }
            // Documents may have come to the source of a copy in the meantime.
            Some(_) if self.max_docs.is_none() => {
                progressed.total = Some(progressed.total.unwrap_or_default().max(progressed.done + left));
            }
            Some(_) => {}
            None => {
                progressed.found = Some(left);
                progressed.total = Some(self.max_docs.map_or(left, |most| most.min(left)));
            }
        });
        // With conflicts passed over, documents beyond the limit take the place of those that were not written.
        if let Some(most) = self.max_docs.filter(|_| !self.spec.proceed) {
            let left = most.saturating_sub(self.tally.progressed().successful());
            positions.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        }
    }

    fn handle(&self, positions: &[Position]) -> Result<(), EngineError> {
        let earlier = self.tally.progressed();
        let mut floor = earlier.destination_seq_no;
        let in_batch = usize::try_from(earlier.in_batch).unwrap_or(0);
        // What failed in a batch ends the job with it.
        if in_batch == 0 && !earlier.failures.is_empty() {
            return Ok(());
        }
        let enough =
            |slice: &Self| slice.max_docs.is_some_and(|most| slice.tally.progressed().successful() >= most);
        if enough(self) {
            return Ok(());
        }
        let mut waiting = plan::chunks(positions.len(), self.spec.batch, in_batch);
        self.set_down()?;
        std::thread::scope(|scope| {
            let mut ahead = VecDeque::with_capacity(AHEAD);
            let mut batch_began = Instant::now();
            let mut batch_documents = 0;
            loop {
                while self.turns.is_none()
                    && ahead.len() < AHEAD
                    && !self.context.is_cancelled()
                    && let Some(chunk) = waiting.next()
                {
                    let read = &positions[chunk.range.clone()];
                    ahead.push_back((chunk, scope.spawn(move || self.prepare(read))));
                }
                let turn = self.turns.map(Turns::take);
                let (chunk, batch) = if turn.is_some() {
                    if self.context.is_cancelled() {
                        break;
                    }
                    let Some(chunk) = waiting.next() else { break };
                    let batch = self.prepare(&positions[chunk.range.clone()])?;
                    (chunk, batch)
                } else {
                    let Some((chunk, thread)) = ahead.pop_front() else { break };
                    let batch = thread
                        .join()
                        .map_err(|_| EngineError::internal("reading a part of the documents panicked"))??;
                    (chunk, batch)
                };
                if self.context.is_cancelled() {
                    break;
                }
                batch_documents += chunk.range.len();
                self.tally.update(|tally| tally.truncated_texts += batch.truncated);
                self.write(batch.documents, floor.take())?;
                let enough = enough(self);
                self.note(&chunk, positions, enough);
                self.set_down()?;
                drop(turn);
                let failed = self.tally.update(|tally| !tally.failures.is_empty());
                if enough || (chunk.ends_batch && failed) {
                    break;
                }
                if chunk.ends_batch {
                    if chunk.range.end < positions.len() {
                        let stop = || self.context.is_cancelled();
                        self.tally.throttle.pause(batch_documents, batch_began, &stop);
                    }
                    batch_began = Instant::now();
                    batch_documents = 0;
                }
            }
            Ok(())
        })
    }

<<<<<<< HEAD
=======
    /// Reads documents and sends them through their pipelines; runs on a thread of its own.
    fn prepare(&self, positions: &[Position]) -> Result<Batch, EngineError> {
        let mut batch = match &self.spec.operation {
            Operation::Delete => return self.prepare_deletions(positions),
            Operation::Update { pipeline } => self.prepare_updates(positions, pipeline.as_deref())?,
            Operation::Copy(destination) => self.prepare_copies(positions, destination)?,
        };
        self.embed(&mut batch);
        Ok(batch)
    }

    /// Encodes the texts of `semantic_text` fields here, and not while the log of a target waits.
    fn embed(&self, batch: &mut Batch) {
        for target in self.targets.iter().filter(|target| !target.mapping().semantic_fields().is_empty()) {
            let mut places = Vec::new();
            let mut ops = Vec::new();
            for (place, document) in batch.documents.iter_mut().enumerate() {
                if document.index != target.name {
                    continue;
                }
                match std::mem::replace(&mut document.action, Action::Nothing) {
                    Action::Write(op) => {
                        places.push(place);
                        ops.push(*op);
                    }
                    other => document.action = other,
                }
            }
            let cancel = self.context.cancel_flag();
            let refused = target.embed(&mut ops, Purpose::PacedIngest, Some(cancel.as_ref()));
            for ((place, op), refused) in places.into_iter().zip(ops).zip(refused) {
                batch.documents[place].action =
                    refused.map_or_else(|| Action::Write(Box::new(op)), Action::Fail);
            }
        }
    }

    fn prepare_deletions(&self, positions: &[Position]) -> Result<Batch, EngineError> {
        let mut documents = Vec::with_capacity(positions.len());
        for (source, seq_no, addr) in positions {
            let Source { handle, snapshot } = &self.sources[*source as usize];
            let id = snapshot.fetch(*addr)?.id;
            let mut op = WriteOp::delete(id.clone());
            op.if_seq_no = Some(*seq_no);
            op.if_primary_term = Some(PRIMARY_TERM);
            documents.push(Prepared {
                id: Some(id),
                index: handle.name.clone(),
                action: Action::Write(Box::new(op)),
            });
        }
        Ok(Batch { documents, truncated: 0 })
    }

    fn prepare_copies(&self, positions: &[Position], to: &Destination) -> Result<Batch, EngineError> {
        let Some(target) = self.targets.first() else {
            return Err(EngineError::internal("a copy has no destination"));
        };
        let mut documents = Vec::with_capacity(positions.len());
        let mut versions = Vec::with_capacity(positions.len());
        let mut selected = Vec::new();
        for (source, _, addr) in positions {
            let Source { handle, snapshot } = &self.sources[*source as usize];
            let stored = snapshot.fetch(*addr)?;
            selected.clear();
            to.selection.write(&stored.source, &mut selected);
            let value = parse_stored(&selected, handle, &stored.id)?;
            versions.push((stored.version, stored.passages.map(|passages| (stored.source, passages))));
            documents.push(IngestDoc::new(target.name.clone(), Some(stored.id), value));
        }
        let truncated = match self.ingest(target, to.pipeline.as_deref(), &mut documents)? {
            Ok(truncated) => truncated,
            Err(error) => return Ok(all_failed(documents, &error)),
        };
        let operation = |id: Option<String>, source: Value, version: u64| {
            let source = indices::Source::from_value(source);
            let mut op = if to.create { WriteOp::create(id, source) } else { WriteOp::index(id, source) };
            op.external_version = match to.version_type {
                VersionType::Internal => None,
                VersionType::External => Some(ExternalVersion { version, or_equal: false }),
                VersionType::ExternalOrEqual => Some(ExternalVersion { version, or_equal: true }),
            };
            op
        };
        let documents = documents
            .into_iter()
            .zip(versions)
            .map(|(document, (version, previous))| {
                prepared(document, |id, source| {
                    let mut op = operation(id, source, version);
                    op.previous = previous;
                    op
                })
            })
            .collect();
        Ok(Batch { documents, truncated })
    }

    fn prepare_updates(&self, positions: &[Position], pipeline: Option<&str>) -> Result<Batch, EngineError> {
        let mut batch = Batch { documents: Vec::with_capacity(positions.len()), truncated: 0 };
        for group in positions.chunk_by(|one, other| one.0 == other.0) {
            let Source { handle, snapshot } = &self.sources[group[0].0 as usize];
            let mut documents = Vec::with_capacity(group.len());
            let mut earlier = Vec::with_capacity(group.len());
            for (_, _, addr) in group {
                let stored = snapshot.fetch(*addr)?;
                let value = parse_stored(&stored.source, handle, &stored.id)?;
                earlier.push(stored.passages.map(|passages| (stored.source, passages)));
                documents.push(IngestDoc::new(handle.name.clone(), Some(stored.id), value));
            }
            match self.ingest(handle, pipeline, &mut documents)? {
                Ok(truncated) => batch.truncated += truncated,
                Err(error) => {
                    batch.documents.extend(all_failed(documents, &error).documents);
                    continue;
                }
            }
            let read = documents.into_iter().zip(earlier).zip(group);
            batch.documents.extend(read.map(|((document, previous), (_, seq_no, _))| {
                prepared(document, |id, source| {
                    let mut op = WriteOp::index(id, indices::Source::from_value(source));
                    op.previous = previous;
                    op.if_seq_no = Some(*seq_no);
                    op.if_primary_term = Some(PRIMARY_TERM);
                    op
                })
            }));
        }
        Ok(batch)
    }

    /// Sends documents through the pipeline that was asked for, or that of the index, and the final one; gives the number
    /// of texts that were cut, or why a pipeline cannot run at all.
    fn ingest(
        &self,
        target: &IndexHandle,
        pipeline: Option<&str>,
        documents: &mut [IngestDoc],
    ) -> Result<Result<u64, EngineError>, EngineError> {
        let settings = target.settings();
        let first = pipeline.or_else(|| settings.default_pipeline()).filter(|name| *name != NO_PIPELINE);
        let mode = IngestMode { paced: true, cancel: Some(self.context.cancel_flag().as_ref()) };
        let mut truncated = 0;
        for pipeline in first.into_iter().chain(settings.final_pipeline()) {
            match self.engine.pipelines.run(&self.engine.models, pipeline, documents, mode) {
                Ok(summary) => {
                    target.note_models(&summary.filled)?;
                    truncated += summary.truncated;
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        for document in documents.iter_mut().filter(|document| document.index != target.name) {
            if let Err(error) = self.spec.caller().may_write(&document.index) {
                document.outcome = IngestOutcome::Failed(error);
            }
        }
        Ok(Ok(truncated))
    }

>>>>>>> admin
    /// Writes a chunk and counts.
    fn write(&self, documents: Vec<Prepared>, floor: Option<u64>) -> Result<(), EngineError> {
        let done = self.tally.progressed();
        let mut room = self.max_docs.map_or(u64::MAX, |most| most.saturating_sub(done.successful()));
        let mut groups: Vec<(String, Vec<Option<String>>, Vec<WriteOp>)> = Vec::new();
        for Prepared { id, index, action } in documents {
            match action {
                // Counted as done once there is room no more: the rest of the chunk is not wanted.
                _ if room == 0 => break,
                Action::Nothing => {
                    room -= 1;
                    self.tally.update(|tally| tally.noops += 1);
                }
                Action::Fail(error) => self.failed(&index, id.as_deref(), &error),
                Action::Write(op) => {
                    room -= 1;
                    if self.was_written(&index, id.as_deref(), floor)? {
                        continue;
                    }
                    match groups.iter_mut().find(|(name, _, _)| *name == index) {
                        Some((_, ids, ops)) => {
                            ids.push(id);
                            ops.push(*op);
                        }
                        None => groups.push((index, vec![id], vec![*op])),
                    }
                }
            }
        }
        for (index, ids, ops) in groups {
            let results = match self.targets.iter().find(|target| target.name == index) {
                Some(target) => target.write(ops),
                // A pipeline sent them elsewhere.
                None => self.engine.indices.get_or_create(&index)?.write(ops),
            };
            for (id, result) in ids.into_iter().zip(results) {
                match result {
                    Ok(WriteOutcome { result, truncated, .. }) => self.tally.update(|tally| {
                        tally.truncated_texts += truncated;
                        match result {
                            WriteResult::Created => tally.created += 1,
                            WriteResult::Deleted | WriteResult::NotFound => tally.deleted += 1,
                            WriteResult::Updated => tally.updated += 1,
                        }
                    }),
                    Err(error) => self.failed(&index, id.as_deref(), &error),
                }
            }
        }
        Ok(())
    }

    /// After a crash the next chunk may have been copied without having been set down. Such a document is counted and
    /// not written again: with `op_type: create` it would be a conflict.
    fn was_written(&self, index: &str, id: Option<&str>, floor: Option<u64>) -> Result<bool, EngineError> {
        let (Some(floor), Some(id), Some(target)) = (floor, id, self.targets.first()) else {
            return Ok(false);
        };
        if self.spec.destination().is_none() || index != target.name {
            return Ok(false);
        }
        match target.current_version(id)? {
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

    fn failed(&self, index: &str, id: Option<&str>, error: &EngineError) {
        // The copy is named as it was asked for, perhaps by an alias.
        let index = self.spec.destination().map_or(index, |destination| &destination.index);
        self.tally.update(|tally| {
            if matches!(error, EngineError::VersionConflict { .. }) {
                tally.version_conflicts += 1;
                if self.spec.proceed {
                    return;
                }
            }
            tally.failures.push(json!({
                "index": index,
                "id": id,
                "cause": error.to_json(),
                "status": error.status(),
            }));
        });
    }

    fn note(&self, chunk: &Chunk, positions: &[Position], enough: bool) {
        let last = positions[chunk.range.clone()].last();
        self.tally.update(|tally| {
            if let Some((source, seq_no, _)) = last {
                tally.after = Some((self.sources[*source as usize].handle.name.clone(), *seq_no));
            }
            tally.done += chunk.range.len() as u64;
            if chunk.ends_batch || enough {
                tally.batches += 1;
                tally.in_batch = 0;
            } else {
                tally.in_batch += chunk.range.len() as u64;
            }
        });
    }

    fn set_down(&self) -> Result<(), EngineError> {
        if let (Some(_), Some(target)) = (self.spec.destination(), self.targets.first()) {
            let next = target.write.lock().next_seq_no;
            self.tally.update(|tally| tally.destination_seq_no = Some(next));
        }
        (self.checkpoint)()
    }
}
<<<<<<< HEAD
=======

/// A stored document, read.
///
/// # Errors
/// Illegal argument if its index keeps no sources.
pub(super) fn parse_stored(source: &[u8], handle: &IndexHandle, id: &str) -> Result<Value, EngineError> {
    serde_json::from_slice(source)
        .map_err(|_| EngineError::illegal_argument(format!("[{}][{id}] didn't store _source", handle.name)))
}

/// What became of a document in its pipelines.
fn prepared(document: IngestDoc, operation: impl FnOnce(Option<String>, Value) -> WriteOp) -> Prepared {
    // The versions of what a job writes are the job's own.
    let version = document.metadata.keys().find(|name| *name != "_routing");
    let action = match document.outcome {
        IngestOutcome::Ok if version.is_some() => Action::Fail(EngineError::illegal_argument(format!(
            "[{}] cannot be set by the pipeline of a copy or an update by query",
            version.map_or("", String::as_str)
        ))),
        IngestOutcome::Ok => Action::Write(Box::new(operation(document.id.clone(), document.source))),
        IngestOutcome::Dropped => Action::Nothing,
        IngestOutcome::Failed(error) => Action::Fail(error),
    };
    Prepared { id: document.id, index: document.index, action }
}

fn all_failed(documents: Vec<IngestDoc>, error: &EngineError) -> Batch {
    let reason = error.reason();
    let failed = documents.into_iter().map(|document| Prepared {
        id: document.id,
        index: document.index,
        action: Action::Fail(EngineError::illegal_argument(reason.clone())),
    });
    Batch { documents: failed.collect(), truncated: 0 }
}
>>>>>>> admin
