//! Restores the acknowledged state of the segments: the last commit, then the log.

use sparrow_mapping::{Mapping, ParsedDocument};
use sparrow_tantivy_index::{IndexError, SparrowIndex, WriteDocument};
use sparrow_write_ahead_log::Replay;

use crate::error::ShardError;
use crate::record::Record;

/// A logged document, read against the mapping in force.
pub struct RereadDocument {
    pub parsed: ParsedDocument,
    /// Fields that the current mapping cannot take and that were not indexed; the stored source still has
    /// them.
    pub left_out: Vec<String>,
}

/// Parses a logged document: mapping, id, logged bytes. Never refuses one, as it was acknowledged: fields
/// that the current mapping cannot take are not indexed, and are named.
pub type Reread = dyn Fn(&Mapping, &str, &[u8]) -> RereadDocument + Send + Sync;

/// Result of a replay of the log.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Number of writes that were applied again.
    pub records: u64,
    /// Number of documents with fields that could not be indexed.
    pub incomplete_documents: u64,
    /// Highest sequence number in the log, `None` if it is empty.
    pub last_seq_no: Option<u64>,
}

/// Applies the log's writes with sequence numbers above `covered`. Idempotent: they may have been applied
/// before.
///
/// # Errors
/// When a record cannot be read or the segments cannot take it.
pub(crate) fn apply(
    log: Replay,
    index: &SparrowIndex,
    reread: &Reread,
    covered: Option<u64>,
) -> Result<Replayed, ShardError> {
    let mapping = index.mapping();
    let mut replayed = Replayed::default();
    for bytes in log {
        let bytes = bytes?;
        let record = Record::decode(&bytes).ok_or(ShardError::UnknownRecord)?;
        replayed.last_seq_no = replayed.last_seq_no.max(Some(record.seq_no));
        if covered.is_some_and(|covered| record.seq_no <= covered) {
            continue;
        }
        replayed.records += 1;
        let Some(source) = record.source else {
            index.delete(record.id)?;
            continue;
        };
        let RereadDocument { parsed, mut left_out } = reread(&mapping, record.id, source);
        let document = |parsed: ParsedDocument| WriteDocument {
            id: record.id.to_owned(),
            seq_no: record.seq_no,
            version: record.version,
            parsed,
            source: source.to_vec(),
            replaces: true,
        };
        match index.add(document(parsed)) {
            Ok(()) => {}
            Err(IndexError::UnknownField { field }) => {
                left_out.push(field);
                index.add(document(ParsedDocument::default()))?;
            }
            Err(error) => return Err(error.into()),
        }
        if !left_out.is_empty() {
            replayed.incomplete_documents += 1;
            tracing::warn!(
                id = record.id,
                fields = left_out.join(", "),
                "a logged document does not fit the mapping of today; fields are not indexed"
            );
        }
    }
    Ok(replayed)
}
