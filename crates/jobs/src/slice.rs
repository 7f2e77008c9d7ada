//! Processes the documents of a whole job, or of one slice of it, in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use serde_json::json;

use super::counters::JobCounters;
use super::plan::{self, Action, Batch, Chunk, Position, Prepared, Source};
use super::spec::{Operation, Spec};
use sparrow_catalog::{IndexHandle, WriteOp, WriteOutcome, WriteResult};
use sparrow_request::error::EngineError;
use sparrow_search::SearchService;
use sparrow_tasks::TaskContext;

/// Chunks that are read and encoded while an earlier one is written. Two keep a machine of a few cores busy; more
/// would only hold more documents in memory.
const AHEAD: usize = 3;

/// Limits the number of slices that work at the same time to the number of cores, since each holds a chunk of documents
/// in memory. A slice that sleeps because of its throttle does not count.
pub(super) struct Semaphore {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Semaphore {
    pub fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self { free: Mutex::new(cores.max(2)), freed: Condvar::new() }
    }

    fn take(&self) -> Permit<'_> {
        let mut free = self.free.lock();
        while *free == 0 {
            self.freed.wait(&mut free);
        }
        *free -= 1;
        Permit(self)
    }
}

struct Permit<'a>(&'a Semaphore);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.freed.notify_one();
    }
}

/// A running job, or one running slice of it.
pub(super) struct Slice<'a> {
    pub service: &'a Arc<SearchService>,
    pub context: &'a TaskContext,
    pub spec: &'a Spec,
    pub sources: &'a [Source],
    /// The indices that are written: the destination of a copy, or the sources themselves.
    pub targets: Vec<Arc<IndexHandle>>,
    pub counters: &'a JobCounters,
    pub max_docs: Option<u64>,
    /// The semaphore that slices of the same job share; with it, the slice reads and writes in turn on a single thread.
    pub semaphore: Option<&'a Semaphore>,
    /// Writes a checkpoint of the whole job.
    pub checkpoint: &'a (dyn Fn() -> Result<(), EngineError> + Sync),
}

impl Slice<'_> {
    /// Processes the given documents; failures of single documents are counted and recorded.
    ///
    /// # Errors
    /// The error that prevents the job from continuing.
    pub fn run(&self, mut positions: Vec<Position>) -> Result<(), EngineError> {
        self.skip_done(&mut positions);
        let result = self.handle(&positions);
        if result.is_ok() && !self.context.is_cancelled() {
            self.counters.update(|progressed| progressed.ended = true);
            self.save_checkpoint()?;
        }
        result
    }

    /// Removes documents that an earlier run has done; on the first run, counts all documents.
    fn skip_done(&self, positions: &mut Vec<Position>) {
        let progressed = self.counters.progressed();
        if let Some((name, seq_no)) = &progressed.after
            && let Some(done) = self.sources.iter().position(|source| source.handle.name == *name)
        {
            positions.retain(|(source, found, _)| {
                let source = *source as usize;
                source > done || (source == done && found > seq_no)
            });
        }
        let left = positions.len() as u64;
        self.counters.update(|progressed| match progressed.found {
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
            let left = most.saturating_sub(self.counters.progressed().successful());
            positions.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        }
    }

    fn handle(&self, positions: &[Position]) -> Result<(), EngineError> {
        let earlier = self.counters.progressed();
        let mut floor = earlier.destination_seq_no;
        let in_batch = usize::try_from(earlier.in_batch).unwrap_or(0);
        // What failed in a batch ends the job with it.
        if in_batch == 0 && !earlier.failures.is_empty() {
            return Ok(());
        }
        let enough = |slice: &Self| {
            slice.max_docs.is_some_and(|most| slice.counters.progressed().successful() >= most)
        };
        if enough(self) {
            return Ok(());
        }
        let mut waiting = plan::chunks(positions.len(), self.spec.batch, in_batch);
        self.save_checkpoint()?;
        std::thread::scope(|scope| {
            let mut ahead = VecDeque::with_capacity(AHEAD);
            let mut batch_began = Instant::now();
            let mut batch_documents = 0;
            loop {
                while self.semaphore.is_none()
                    && ahead.len() < AHEAD
                    && !self.context.is_cancelled()
                    && let Some(chunk) = waiting.next()
                {
                    let read = &positions[chunk.range.clone()];
                    ahead.push_back((chunk, scope.spawn(move || self.prepare(read))));
                }
                let turn = self.semaphore.map(Semaphore::take);
                let (chunk, batch) = if turn.is_some() {
                    if self.context.is_cancelled() {
                        break;
                    }
                    let Some(chunk) = waiting.next() else { break };
                    let batch = self.prepare(&positions[chunk.range.clone()]);
                    (chunk, batch)
                } else {
                    let Some((chunk, thread)) = ahead.pop_front() else { break };
                    let batch = thread
                        .join()
                        .map_err(|_| EngineError::internal("reading a part of the documents panicked"))?;
                    (chunk, batch)
                };
                // What was stopped in the middle is no failure: a job that goes on after a restart reads it again.
                if self.context.is_cancelled() {
                    break;
                }
                batch_documents += chunk.range.len();
                let goes_on = self.write_chunk(&chunk, positions, batch?, floor.take(), &enough)?;
                drop(turn);
                let failed = self.counters.update(|counters| !counters.failures.is_empty());
                if !goes_on || (chunk.ends_batch && failed) {
                    break;
                }
                if chunk.ends_batch {
                    if chunk.range.end < positions.len() {
                        let stop = || self.context.is_cancelled();
                        self.counters.throttle.pause(batch_documents, batch_began, &stop);
                    }
                    batch_began = Instant::now();
                    batch_documents = 0;
                }
            }
            Ok(())
        })
    }

    /// Writes a chunk of which `batch` is what was read ahead, and the rest, if its documents are large, part by part. Returns whether
    /// the job goes on.
    fn write_chunk(
        &self,
        chunk: &Chunk,
        positions: &[Position],
        mut batch: Batch,
        floor: Option<u64>,
        enough: &dyn Fn(&Self) -> bool,
    ) -> Result<bool, EngineError> {
        let mut start = chunk.range.start;
        loop {
            let end = start + batch.read;
            let is_whole = end == chunk.range.end;
            let part = Chunk { range: start..end, ends_batch: chunk.ends_batch && is_whole };
            self.counters.update(|counters| counters.truncated_texts += batch.truncated);
            self.write(batch.documents, floor)?;
            let enough = enough(self);
            self.note(&part, positions, enough);
            self.save_checkpoint()?;
            if enough || is_whole {
                return Ok(!enough);
            }
            let rest = self.prepare(&positions[end..chunk.range.end]);
            // As for what is read ahead.
            if self.context.is_cancelled() {
                return Ok(false);
            }
            (start, batch) = (end, rest?);
        }
    }

    /// Writes a part of a chunk and counts.
    fn write(&self, documents: Vec<Prepared>, floor: Option<u64>) -> Result<(), EngineError> {
        let done = self.counters.progressed();
        let mut room = self.max_docs.map_or(u64::MAX, |most| most.saturating_sub(done.successful()));
        let mut groups: Vec<(String, Vec<Option<String>>, Vec<WriteOp>)> = Vec::new();
        for Prepared { id, index, action } in documents {
            match action {
                // Counted as done once there is room no more: the rest of the chunk is not wanted.
                _ if room == 0 => break,
                Action::Nothing => {
                    room -= 1;
                    self.counters.update(|counters| counters.noops += 1);
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
            let target = self.targets.iter().find(|target| target.name == index);
            let target = match (target, self.spec.destination()) {
                (Some(target), None) => Arc::clone(target),
                (Some(target), Some(destination)) => {
                    match self.service.indices.names().uuid(&index) == Some(target.uuid.as_str()) {
                        true => Arc::clone(target),
                        // Deleted meanwhile: a write makes it again, as any other does.
                        false => self
                            .service
                            .indices
                            .get_or_create(&destination.index, self.spec.right_to_write())?,
                    }
                }
                // A pipeline sent them elsewhere.
                (None, _) => self.service.indices.get_or_create(&index, self.spec.right_to_write())?,
            };
            let results = target.write(ops).into_iter().map(|one| one.map_err(|error| target.explain(error)));
            for (id, result) in ids.into_iter().zip(results) {
                match result {
                    Ok(WriteOutcome { result, truncated, .. }) => self.counters.update(|counters| {
                        counters.truncated_texts += truncated;
                        match result {
                            WriteResult::Created => counters.created += 1,
                            WriteResult::Deleted | WriteResult::NotFound => counters.deleted += 1,
                            WriteResult::Updated => counters.updated += 1,
                        }
                    }),
                    Err(error) => self.failed(&index, id.as_deref(), &error),
                }
            }
        }
        Ok(())
    }

    /// Whether a document of the chunk after a checkpoint was already copied before a crash (`floor` is the sequence
    /// number of the destination at the checkpoint). If so, it is counted and not written again, which would be a
    /// conflict with `op_type: create`.
    fn was_written(&self, index: &str, id: Option<&str>, floor: Option<u64>) -> Result<bool, EngineError> {
        let (Some(floor), Some(id), Some(target)) = (floor, id, self.targets.first()) else {
            return Ok(false);
        };
        if self.spec.destination().is_none() || index != target.name {
            return Ok(false);
        }
        match target.shard.current_version(id, None).map_err(|error| target.failed(error))? {
            Some(current) if current.seq_no >= floor && current.source.is_some() => {
                self.counters.update(|counters| match current.version {
                    1 => counters.created += 1,
                    _ => counters.updated += 1,
                });
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn failed(&self, index: &str, id: Option<&str>, error: &EngineError) {
        // The copy is named as it was asked for, perhaps by an alias.
        let index = self.spec.destination().map_or(index, |destination| &destination.index);
        self.counters.update(|counters| {
            if matches!(error, EngineError::VersionConflict { .. }) {
                counters.version_conflicts += 1;
                if self.spec.proceed {
                    return;
                }
            }
            counters.failures.push(json!({
                "index": index,
                "id": id,
                "cause": error.to_json(),
                "status": error.status(),
            }));
        });
    }

    fn note(&self, chunk: &Chunk, positions: &[Position], enough: bool) {
        let last = positions[chunk.range.clone()].last();
        self.counters.update(|counters| {
            if let Some((source, seq_no, _)) = last {
                counters.after = Some((self.sources[*source as usize].handle.name.clone(), *seq_no));
            }
            counters.done += chunk.range.len() as u64;
            if chunk.ends_batch || enough {
                counters.batches += 1;
                counters.in_batch = 0;
            } else {
                counters.in_batch += chunk.range.len() as u64;
            }
        });
    }

    fn save_checkpoint(&self) -> Result<(), EngineError> {
        if let (Some(_), Some(target)) = (self.spec.destination(), self.targets.first()) {
            let next = target.shard.next_seq_no();
            self.counters.update(|counters| counters.destination_seq_no = Some(next));
        }
        (self.checkpoint)()
    }
}
