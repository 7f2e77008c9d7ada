//! The write path of one index: versions, log, segments; one fsync for a batch.

use std::time::{Duration, Instant};

use sparrow_mapping::passages;
use sparrow_mapping::{Mapping, ParsedDocument};
use sparrow_write_ahead_log::Lsn;
use sparrow_write_path::{LiveVersion, Logged, NewDocument, ShardError, Writer};

use super::handle::IndexHandle;
use super::op::{WriteKind, WriteOp, WriteOutcome, WriteResult};
use super::prepare::{Prepared, decode};
use crate::slow_log::{SlowWrites, WrittenDocument};
use sparrow_models::Purpose;
use sparrow_request::error::EngineError;

/// Bytes of unrefreshed sources above which a batch ends with a refresh, so that memory stays bounded without
/// a refresh interval.
const MAX_LIVE_SOURCE_BYTES: usize = 64 << 20;

/// The primary term of every write: with a single node it never changes.
pub const PRIMARY_TERM: u64 = 1;

/// The first document of a batch, for the log of slow writes.
struct FirstDocument {
    /// Position of the document in the batch.
    place: usize,
    source: Vec<u8>,
}

impl FirstDocument {
    /// The first write of a batch that is not a deletion; none if all are.
    fn of(ops: &[WriteOp]) -> Option<Self> {
        let place = ops.iter().position(|op| op.kind != WriteKind::Delete)?;
        Some(Self { place, source: ops[place].source.raw.clone() })
    }
}

/// The writes of a batch that are in the log but not yet synced.
#[derive(Default)]
struct LoggedWrites {
    /// Positions of these writes in the batch.
    places: Vec<usize>,
    /// Position of the last of these writes in the log.
    last: Option<Lsn>,
}

enum Unwritten {
    Refused(EngineError),
    /// The mapping asks for other passages than it did when its texts were encoded.
    Stale(Box<Prepared>),
}

impl<E: Into<EngineError>> From<E> for Unwritten {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl IndexHandle {
    /// Writes a batch in order. An operation that fails does not keep the others from being written; those that
    /// succeed are durable when this returns (unless the index asks for `async` durability).
    ///
    /// Texts of `semantic_text` fields are encoded first, where that was not done yet.
    pub fn write(&self, mut ops: Vec<WriteOp>) -> Vec<Result<WriteOutcome, EngineError>> {
        let began = Instant::now();
        let kinds: Vec<WriteKind> = ops.iter().map(|op| op.kind).collect();
        let bytes = ops.iter().map(|op| op.source.raw.len()).sum();
        let slow = SlowWrites::read(&self.settings()).map(|slow| (slow, FirstDocument::of(&ops)));
        let mut logged = false;
        let mut results = Vec::new();
        results.resize_with(ops.len(), || None);
        let mut places: Vec<usize> = (0..ops.len()).collect();
        // Once, unless the mapping changes while texts are encoded.
        while !ops.is_empty() {
            let mapping = self.mapping();
            let refused = self.embed(&mapping, &mut ops, Purpose::Ingest, None);
            let prepared = self.prepare_all(ops.into_iter().zip(refused).collect(), &mapping);
            let prepared = places.into_iter().zip(prepared).collect();
            let mut written = LoggedWrites::default();
            (places, ops) = self.apply_all(prepared, &mut results, &mut written);
            logged |= written.last.is_some();
            // Before texts are encoded again, which takes its time: a failure meanwhile could take what is not durable.
            self.make_durable(&written, &mut results);
        }
        let lost = || Err(EngineError::internal("a write had no result"));
        let results: Vec<Result<WriteOutcome, EngineError>> =
            results.into_iter().map(|result| result.unwrap_or_else(lost)).collect();
        self.counters.wrote(&kinds, &results, bytes, began.elapsed());
        if logged
            && self.shard.unrefreshed_bytes() > MAX_LIVE_SOURCE_BYTES
            && let Err(error) = self.refresh()
        {
            tracing::error!(index = self.name, %error, "refresh failed");
        }
        if let Some((slow, Some(first))) = slow {
            self.note_slow(&slow, &first, &results, began.elapsed());
        }
        results
    }

    /// Waits until the logged writes are durable, unless the index acknowledges them earlier. Writes that cannot be made durable
    /// are refused.
    fn make_durable(
        &self,
        written: &LoggedWrites,
        results: &mut [Option<Result<WriteOutcome, EngineError>>],
    ) {
        let Some(last) = written.last.filter(|_| !self.settings().is_async()) else { return };
        let Err(error) = self.shard.sync(last) else { return };
        for place in &written.places {
            results[*place] = Some(Err(self.failed(ShardError::read_only(&error))));
        }
    }

    /// Logs a slow batch by its first document. The documents are written together, so each is taken to have used an equal share of
    /// the time.
    fn note_slow(
        &self,
        slow: &SlowWrites,
        first: &FirstDocument,
        results: &[Result<WriteOutcome, EngineError>],
        took: Duration,
    ) {
        let share = took / u32::try_from(results.len()).unwrap_or(u32::MAX).max(1);
        if let Some(Ok(outcome)) = results.get(first.place) {
            let source = String::from_utf8_lossy(&first.source);
            let document = WrittenDocument {
                index: &self.name,
                uuid: &self.uuid,
                id: &outcome.id,
                source: &source,
                batch: results.len(),
            };
            slow.note(share, &document);
        }
    }

    /// Writes documents in order, up to the first one whose texts have to be encoded again. Gives back that one and all after it,
    /// with their positions in the batch.
    fn apply_all(
        &self,
        prepared: Vec<(usize, Result<Box<Prepared>, EngineError>)>,
        results: &mut [Option<Result<WriteOutcome, EngineError>>],
        written: &mut LoggedWrites,
    ) -> (Vec<usize>, Vec<WriteOp>) {
        let mut again = (Vec::new(), Vec::new());
        let mut writer = match self.shard.writer() {
            Ok(writer) => writer,
            Err(error) => {
                for (place, document) in prepared {
                    let refused = match &error {
                        ShardError::Closed => ShardError::Closed,
                        other => ShardError::read_only(other),
                    };
                    results[place] = Some(Err(document.err().unwrap_or_else(|| self.failed(refused))));
                }
                return again;
            }
        };
        let mut key = self.mapping().semantic_key();
        for (place, document) in prepared {
            let result = match document {
                Err(error) => Err(error),
                Ok(document) if !again.1.is_empty() => {
                    again.0.push(place);
                    again.1.push(document.into_op());
                    continue;
                }
                Ok(document) => match self.check_write() {
                    Err(error) => Err(error),
                    Ok(()) => match self.apply(document, &mut writer, &mut key) {
                        Ok((outcome, lsn)) => {
                            written.last = Some(lsn);
                            written.places.push(place);
                            Ok(outcome)
                        }
                        Err(Unwritten::Refused(error)) => Err(error),
                        Err(Unwritten::Stale(document)) => {
                            again.0.push(place);
                            again.1.push(document.into_op());
                            continue;
                        }
                    },
                },
            };
            results[place] = Some(result);
        }
        again
    }

    /// Writes one document.
    pub fn write_one(&self, op: WriteOp) -> Result<WriteOutcome, EngineError> {
        self.write(vec![op]).pop().unwrap_or_else(|| Err(EngineError::internal("a write had no result")))
    }

    /// Checks, logs and indexes one document. The caller holds the write lock; `key` is that of the mapping in force.
    fn apply(
        &self,
        mut document: Box<Prepared>,
        writer: &mut Writer<'_>,
        key: &mut u64,
    ) -> Result<(WriteOutcome, Lsn), Unwritten> {
        let failed = |error: ShardError| self.failed(error);
        let current = if document.id_is_new {
            None
        } else {
            self.shard.current_version(&document.id, document.looked_up.as_ref()).map_err(failed)?
        };
        let version = self.check_conditions(&document, current.as_ref())?;
        let deleted = document.kind == WriteKind::Delete;
        let mut widened = None;
        if document.widened.is_some() {
            self.settle_mapping(writer)?;
            *key = self.mapping().semantic_key();
            // Another document of the batch, or another writer, may have widened the mapping since.
            let parts = passages::split(&document.raw);
            let value = document.value.as_ref();
            (document.parsed, widened) = self.parse(&self.mapping(), &document.id, parts, value)?;
        }
        let needed = widened.as_ref().map_or(*key, Mapping::semantic_key);
        if !deleted && needed != document.semantic_key {
            return Err(Unwritten::Stale(document));
        }
        if let Some(widened) = widened {
            self.widen_mapping(writer, &widened)?;
            *key = needed;
        }
        let existed = current.as_ref().is_some_and(|current| current.source.is_some());
        let Prepared { id, raw, parsed, truncated, conditions: WriteOp { routing, .. }, .. } = *document;
        let Logged { seq_no, lsn } = if deleted {
            writer.delete(id.clone(), version, existed)
        } else {
            writer.index(NewDocument { id: id.clone(), version, raw, parsed, replaces: existed })
        }
        .map_err(failed)?;
        let result = match (deleted, existed) {
            (true, true) => WriteResult::Deleted,
            (true, false) => WriteResult::NotFound,
            (false, true) => WriteResult::Updated,
            (false, false) => WriteResult::Created,
        };
        Ok((WriteOutcome { id, routing, seq_no, version, result, truncated }, lsn))
    }

    /// The version that the document gets by this write, or the conflict with its conditions.
    fn check_conditions(
        &self,
        document: &Prepared,
        current: Option<&LiveVersion>,
    ) -> Result<u64, EngineError> {
        let conflict = |problem: String| EngineError::VersionConflict {
            index: self.name.clone(),
            uuid: self.uuid.clone(),
            id: document.id.clone(),
            problem,
        };
        let existing = current.filter(|current| current.source.is_some());
        if let (WriteKind::Create, Some(existing)) = (document.kind, existing) {
            let version = existing.version;
            return Err(conflict(format!("document already exists (current version [{version}])")));
        }
        let conditions = &document.conditions;
        if let (Some(seq_no), Some(term)) = (conditions.if_seq_no, conditions.if_primary_term) {
            match existing {
                Some(existing) if existing.seq_no == seq_no && term == PRIMARY_TERM => {}
                Some(existing) => {
                    return Err(conflict(format!(
                        "required seqNo [{seq_no}], primary term [{term}]. current document has seqNo [{}] and primary \
                         term [{PRIMARY_TERM}]",
                        existing.seq_no
                    )));
                }
                None => {
                    return Err(conflict(format!(
                        "required seqNo [{seq_no}], primary term [{term}]. but no document was found"
                    )));
                }
            }
        }
        let Some(external) = conditions.external_version else {
            return match current.map(|current| current.version) {
                None => Ok(1),
                Some(version) if version < i64::MAX as u64 => Ok(version + 1),
                Some(version) => {
                    Err(conflict(format!("current version [{version}] is the highest there is")))
                }
            };
        };
        match current {
            Some(current)
                if external.version < current.version
                    || (external.version == current.version && !external.or_equal) =>
            {
                let relation = if external.or_equal { "higher" } else { "higher or equal" };
                Err(conflict(format!(
                    "current version [{}] is {relation} {} the one provided [{}]",
                    current.version,
                    if external.or_equal { "than" } else { "to" },
                    external.version
                )))
            }
            _ => Ok(external.version),
        }
    }
}

/// Adds the encoded passages of a logged document to it. As they were acknowledged, it is not checked again which model made them.
///
/// # Errors
/// When the payload cannot be read, or its vectors are of another kind than the field's.
pub fn attach_logged(
    mapping: &Mapping,
    parsed: &mut ParsedDocument,
    payload: Option<&[u8]>,
) -> Result<(), EngineError> {
    let Some(payload) = payload else { return Ok(()) };
    let attached = mapping.attach_passages(parsed, decode(payload)?, &|_| None);
    attached.map(drop).map_err(EngineError::illegal_argument)
}
