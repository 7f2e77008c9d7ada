//! Bringing segments to the state that was acknowledged: a commit, then the log.

use sparrow_index::{IndexError, SparrowIndex, WriteDocument};
use sparrow_mapping::{Mapping, ParsedDocument};
use sparrow_storage::Replay;

use crate::error::ShardError;
use crate::record::Record;

/// A logged document, read against the mapping in force.
pub struct RereadDocument {
    pub parsed: ParsedDocument,
    /// Fields that today's mapping cannot take, left out; the stored source has them all the same.
    pub left_out: Vec<String>,
}

/// Reads a logged document: mapping, id, logged bytes. It never refuses one, since it was acknowledged: what the mapping of today
/// cannot take is left out of the index and named.
pub type Reread = dyn Fn(&Mapping, &str, &[u8]) -> RereadDocument + Send + Sync;

/// What a replay did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Writes that were applied again.
    pub records: u64,
    /// Documents of which fields had to be left out of the index.
    pub incomplete_documents: u64,
    /// The highest sequence number in the log.
    pub last_seq_no: Option<u64>,
}

/// Applies the log's writes after `covered`. They may have been applied before: twice is the same as once.
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
