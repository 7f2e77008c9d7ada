//! Bringing an index to the state that was acknowledged: last commit, then the log.

use serde_json::Value;
use sparrow_index::mapping::Mapping;
use sparrow_index::passages;
use sparrow_index::{SparrowIndex, WriteDocument};
use sparrow_storage::Replay;

use super::record::Record;
use super::settings::Settings;
use super::write;
use crate::error::EngineError;

/// What a replay did.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    /// Writes that were applied again.
    pub(crate) records: usize,
    /// The highest sequence number in the log.
    pub(crate) last_seq_no: Option<u64>,
}

/// Applies the log's writes after `covered`, which may have been applied before: applying twice is the same as once.
///
/// # Errors
/// When a record cannot be read or the index cannot take it.
pub(crate) fn apply(
    log: Replay,
    index: &SparrowIndex,
    mapping: &Mapping,
    settings: &Settings,
    covered: Option<u64>,
) -> Result<Replayed, EngineError> {
    let limits = settings.limits();
    let mut replayed = Replayed::default();
    for bytes in log {
        let bytes = bytes?;
        let record = Record::decode(&bytes)
            .ok_or_else(|| EngineError::internal("a log record is not readable by this version"))?;
        replayed.last_seq_no = replayed.last_seq_no.max(Some(record.seq_no));
        if covered.is_some_and(|covered| record.seq_no <= covered) {
            continue;
        }
        replayed.records += 1;
        let Some(source) = record.source else {
            index.delete(record.id)?;
            continue;
        };
        let (json, payload) = passages::split(source);
        let value: Value = serde_json::from_slice(json)
            .map_err(|error| EngineError::internal(format!("a logged document is not JSON: {error}")))?;
        // The mapping was made wide enough, durably, before the document was logged.
        let (mut parsed, _) = mapping.parse_document(record.id, &value, &limits)?;
        write::attach(mapping, &mut parsed, payload, &|_| None)?;
        index.add(WriteDocument {
            id: record.id.to_owned(),
            seq_no: record.seq_no,
            version: record.version,
            parsed,
            source: source.to_vec(),
            replaces: true,
        })?;
    }
    Ok(replayed)
}
