//! The write path of one index: versions, log, segments; one fsync for a batch.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use sparrow_index::mapping::{Mapping, ParsedDocument};
use sparrow_index::{IndexError, WriteDocument, passages};

use super::handle::IndexHandle;
use super::record::Record;
use super::versions::LiveVersion;
use crate::error::EngineError;
use crate::models::Purpose;

/// Longest `_id`, in bytes.
const MAX_ID_BYTES: usize = 512;

/// Bytes of unrefreshed sources above which a batch ends with a refresh, so that memory stays bounded without
/// a refresh interval.
const MAX_LIVE_SOURCE_BYTES: usize = 64 << 20;

/// What to do with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// Write it, whatever was there.
    Index,
    /// Write it if there is none.
    Create,
    Delete,
}

/// A document's JSON.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    /// The bytes that are stored.
    pub(crate) raw: Vec<u8>,
    /// The same, parsed; parsed here when absent.
    pub(crate) value: Option<Value>,
}

impl Source {
    /// A document that exists as a value only.
    pub(crate) fn from_value(value: Value) -> Self {
        let mut raw = Vec::with_capacity(1024);
        // A value always serialises, and a vector takes all bytes. (Printing it would go through text formatting.)
        let _ = serde_json::to_writer(&mut raw, &value);
        Self { raw, value: Some(value) }
    }
}

/// One write.
#[derive(Debug, Clone)]
pub(crate) struct WriteOp {
    pub(crate) kind: WriteKind,
    /// Generated when absent.
    pub(crate) id: Option<String>,
    /// Empty for a deletion.
    pub(crate) source: Source,
    /// Only when the document's last write had this number.
    pub(crate) if_seq_no: Option<u64>,
    pub(crate) if_primary_term: Option<u64>,
    /// A version that the caller counts itself; `external_gte` allows an equal one.
    pub(crate) external_version: Option<ExternalVersion>,
    /// The payload of the document's passages (empty for none), once its texts are encoded.
    pub(crate) passages: Option<Vec<u8>>,
    /// An earlier form of the document, JSON and payload, whose passages may stay.
    pub(crate) previous: Option<(Vec<u8>, Vec<u8>)>,
}

/// A version from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExternalVersion {
    pub(crate) version: u64,
    pub(crate) or_equal: bool,
}

impl WriteOp {
    pub(crate) fn index(id: Option<String>, source: Source) -> Self {
        Self::new(WriteKind::Index, id, source)
    }

    pub(crate) fn create(id: Option<String>, source: Source) -> Self {
        Self::new(WriteKind::Create, id, source)
    }

    pub(crate) fn delete(id: String) -> Self {
        Self::new(WriteKind::Delete, Some(id), Source::default())
    }

    fn new(kind: WriteKind, id: Option<String>, source: Source) -> Self {
        Self {
            kind,
            id,
            source,
            if_seq_no: None,
            if_primary_term: None,
            external_version: None,
            passages: None,
            previous: None,
        }
    }
}

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteResult {
    Created,
    Updated,
    Deleted,
    NotFound,
}

impl WriteResult {
    /// As bodies say it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::NotFound => "not_found",
        }
    }

    /// HTTP status.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Created => 201,
            Self::Updated | Self::Deleted => 200,
            Self::NotFound => 404,
        }
    }
}

/// A write that was acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct WriteOutcome {
    pub(crate) id: String,
    pub(crate) seq_no: u64,
    pub(crate) version: u64,
    pub(crate) result: WriteResult,
}

/// The one primary term that a single node ever has.
pub(crate) const PRIMARY_TERM: u64 = 1;

/// A document read against the mapping before the write lock is taken.
struct Prepared {
    kind: WriteKind,
    id: String,
    raw: Vec<u8>,
    value: Value,
    parsed: ParsedDocument,
    widened: Option<Mapping>,
    conditions: WriteOp,
    /// A generated id is new by construction: nothing to look up.
    id_is_new: bool,
}

impl IndexHandle {
    /// Writes a batch in order. An operation that fails does not keep the others from being written; those that
    /// succeed are durable when this returns (unless the index asks for `async` durability).
    ///
    /// Texts of `semantic_text` fields are encoded first, where that was not done yet.
    pub(crate) fn write(&self, mut ops: Vec<WriteOp>) -> Vec<Result<WriteOutcome, EngineError>> {
        let began = Instant::now();
        let kinds: Vec<WriteKind> = ops.iter().map(|op| op.kind).collect();
        let bytes = ops.iter().map(|op| op.source.raw.len()).sum();
        let refused = self.embed(&mut ops, Purpose::Ingest, None);
        let mapping = self.mapping();
        let prepared: Vec<Result<Prepared, EngineError>> = ops
            .into_iter()
            .zip(refused)
            .map(|(op, refused)| refused.map_or_else(|| self.prepare(op, &mapping), Err))
            .collect();

        let mut last = None;
        let mut results = Vec::with_capacity(prepared.len());
        {
            let mut state = self.write.lock();
            for document in prepared {
                if state.closed {
                    results.push(Err(EngineError::IndexNotFound { name: self.name.clone() }));
                    continue;
                }
                if let Err(error) = self.check_write() {
                    results.push(Err(error));
                    continue;
                }
                results.push(document.and_then(|document| {
                    let (outcome, lsn) = self.apply(document, &mut state.next_seq_no)?;
                    last = Some(lsn);
                    Ok(outcome)
                }));
            }
        }
        if let Some(lsn) = last {
            self.mark_dirty();
            if !self.settings().is_async()
                && let Err(error) = self.wal.sync(lsn)
            {
                // Not durable: none of them may be acknowledged.
                let reason = error.to_string();
                for result in results.iter_mut().filter(|result| result.is_ok()) {
                    *result = Err(sparrow_storage::StorageError::Poisoned { reason: reason.clone() }.into());
                }
            }
            self.counters.wrote(&kinds, &results, bytes, began.elapsed());
            if self.versions.lock().source_bytes() > MAX_LIVE_SOURCE_BYTES
                && let Err(error) = self.refresh()
            {
                tracing::error!(index = self.name, %error, "refresh failed");
            }
        } else {
            self.counters.wrote(&kinds, &results, bytes, began.elapsed());
        }
        results
    }

    /// Writes one document.
    pub(crate) fn write_one(&self, op: WriteOp) -> Result<WriteOutcome, EngineError> {
        self.write(vec![op]).pop().unwrap_or_else(|| Err(EngineError::internal("a write had no result")))
    }

    fn prepare(&self, mut op: WriteOp, mapping: &Mapping) -> Result<Prepared, EngineError> {
        let id_is_new = op.id.is_none();
        let id = op.id.take().unwrap_or_else(generate_id);
        check_id(&id)?;
        let source = std::mem::take(&mut op.source);
        if op.kind == WriteKind::Delete {
            return Ok(Prepared {
                kind: op.kind,
                id,
                raw: Vec::new(),
                value: Value::Null,
                parsed: ParsedDocument::default(),
                widened: None,
                conditions: op,
                id_is_new,
            });
        }
        let value = match source.value {
            Some(value) => value,
            None => crate::body::parse_source(&source.raw)?,
        };
        let mut raw = source.raw;
        if let Some(payload) = op.passages.take().filter(|payload| !payload.is_empty()) {
            passages::append(&mut raw, &payload);
        }
        let (parsed, widened) = self.parse(mapping, &id, &value, &raw)?;
        Ok(Prepared { kind: op.kind, id, raw, value, parsed, widened, conditions: op, id_is_new })
    }

    fn parse(
        &self,
        mapping: &Mapping,
        id: &str,
        value: &Value,
        raw: &[u8],
    ) -> Result<(ParsedDocument, Option<Mapping>), EngineError> {
        let limits = self.metadata.read().settings.limits();
        let (json, payload) = passages::split(raw);
        let (mut parsed, mut widened) =
            mapping.parse_document(id, value, &limits).map_err(|error| error.locate(json))?;
        if let Some(payload) = payload {
            // What is stored of a filtered source keeps the passages too; nothing stored is nothing.
            if let Some(stored) = parsed.stored_source.as_mut().filter(|stored| !stored.is_empty()) {
                passages::append(stored, payload);
            }
            let wider = attach(widened.as_ref().unwrap_or(mapping), &mut parsed, Some(payload))?;
            widened = wider.or(widened);
        }
        if let Some(widened) = &widened {
            // A template may have named an analyzer after the field.
            widened.check_analyzers(self.snapshot().analysis())?;
        }
        Ok((parsed, widened))
    }

    /// Checks, logs and indexes one document. The caller holds the write lock.
    fn apply(
        &self,
        mut document: Prepared,
        next_seq_no: &mut u64,
    ) -> Result<(WriteOutcome, sparrow_storage::Lsn), EngineError> {
        let current = if document.id_is_new { None } else { self.current_version(&document.id)? };
        let version = self.check_conditions(&document, current.as_ref())?;
        if document.widened.is_some() {
            // Another document of the batch, or another writer, may have widened the mapping since.
            let (parsed, widened) =
                self.parse(&self.mapping(), &document.id, &document.value, &document.raw)?;
            document.parsed = parsed;
            if let Some(widened) = widened {
                self.widen_mapping(&widened)?;
            }
        }
        let existed = current.as_ref().is_some_and(|current| current.source.is_some());
        let seq_no = *next_seq_no;
        let deleted = document.kind == WriteKind::Delete;
        let lsn = self.wal.append(
            &Record { seq_no, version, id: &document.id, source: (!deleted).then_some(&document.raw) }
                .encode(),
        )?;
        *next_seq_no += 1;
        let Prepared { id, raw, parsed, .. } = document;
        let stored: Option<Arc<[u8]>> =
            (!deleted).then(|| Arc::from(parsed.stored_source.as_deref().unwrap_or(&raw)));
        let index = self.index();
        let indexed = if deleted {
            if existed { index.delete(&id) } else { Ok(()) }
        } else {
            index.add(WriteDocument {
                id: id.clone(),
                seq_no,
                version,
                parsed,
                source: raw,
                replaces: existed,
            })
        };
        match indexed {
            Ok(()) => {}
            // The record is in the log: applying the log again brings this write back too.
            Err(IndexError::RolledBack { replay_after, source }) => {
                self.reapply(&index, &self.mapping(), &source, replay_after)?;
            }
            Err(error) => return Err(error.into()),
        }
        self.versions.lock().insert(id.clone(), LiveVersion { seq_no, version, source: stored });
        let result = match (deleted, existed) {
            (true, true) => WriteResult::Deleted,
            (true, false) => WriteResult::NotFound,
            (false, true) => WriteResult::Updated,
            (false, false) => WriteResult::Created,
        };
        Ok((WriteOutcome { id, seq_no, version, result }, lsn))
    }

    /// The version that the write will have.
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
            return Ok(current.map_or(1, |current| current.version + 1));
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

/// Gives a document the passages of a payload; the mapping to put in force before, if it has to be wider.
///
/// # Errors
/// When the payload cannot be read, or its vectors are of another kind than the field's.
pub(super) fn attach(
    mapping: &Mapping,
    parsed: &mut ParsedDocument,
    payload: Option<&[u8]>,
) -> Result<Option<Mapping>, EngineError> {
    let Some(payload) = payload else { return Ok(None) };
    let fields = passages::decode(payload)
        .ok_or_else(|| EngineError::internal("the passages of a document cannot be read"))?;
    mapping.attach_passages(parsed, fields).map_err(EngineError::illegal_argument)
}

fn check_id(id: &str) -> Result<(), EngineError> {
    if id.is_empty() {
        return Err(EngineError::illegal_argument("if _id is specified it must not be empty"));
    }
    if id.len() > MAX_ID_BYTES {
        return Err(EngineError::invalid(format!(
            "id is too long, must be no longer than {MAX_ID_BYTES} bytes but was: {}",
            id.len()
        )));
    }
    Ok(())
}

/// 20 URL-safe characters, as Elasticsearch's generated ids are.
pub(crate) fn generate_id() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&uuid::Uuid::new_v4().as_bytes()[..15])
}
