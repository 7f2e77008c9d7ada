//! The documents that a job reads, and their division into batches and chunks.

use std::sync::Arc;

use sparrow_tantivy_index::{DocAddress, Snapshot};

use sparrow_catalog::{IndexHandle, WriteOp};
use sparrow_request::error::EngineError;

/// Most documents of a chunk: the unit that is encoded, written and counted in a checkpoint.
const MOST_PER_CHUNK: usize = 250;

/// An index that is read, with a snapshot from the start of the job.
pub(super) struct Source {
    pub handle: Arc<IndexHandle>,
    pub snapshot: Arc<Snapshot>,
}

/// A document to be read: index of its source in the list of sources, sequence number, and address in the snapshot.
pub(super) type Position = (u32, u64, DocAddress);

/// A portion of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The range of documents, as indexes into the list of positions.
    pub range: std::ops::Range<usize>,
    /// Whether it is the last chunk of its batch.
    pub ends_batch: bool,
}

/// Divides `documents` documents into batches of `batch`, and those into chunks.
///
/// `in_batch` documents of the first batch are already done.
pub(super) fn chunks(documents: usize, batch: usize, in_batch: usize) -> impl Iterator<Item = Chunk> {
    let mut at = 0;
    let mut left_in_batch = batch.saturating_sub(in_batch % batch.max(1)).max(1);
    std::iter::from_fn(move || {
        if at >= documents {
            return None;
        }
        let size = left_in_batch.min(MOST_PER_CHUNK).min(documents - at);
        let range = at..at + size;
        at += size;
        left_in_batch -= size;
        let ends_batch = left_in_batch == 0 || at == documents;
        if left_in_batch == 0 {
            left_in_batch = batch;
        }
        Some(Chunk { range, ends_batch })
    })
}

/// A document that was read and has gone through its pipelines, and what is to be done with it.
pub(super) struct Prepared {
    pub id: Option<String>,
    pub index: String,
    pub action: Action,
}

/// The prepared documents of a chunk, and the number of their texts that were truncated.
pub(super) struct Batch {
    pub documents: Vec<Prepared>,
    pub truncated: u64,
    /// How many of the documents were read, from the first on: fewer than were given if they are large.
    pub read: usize,
}

pub(super) enum Action {
    Write(Box<WriteOp>),
    /// Nothing is written: a pipeline dropped the document.
    Nothing,
    Fail(EngineError),
}

#[cfg(test)]
mod tests {
    use super::{Chunk, MOST_PER_CHUNK, chunks};

    #[test]
    fn batches_are_cut_into_chunks() {
        let all: Vec<Chunk> = chunks(7, 3, 0).collect();
        assert_eq!(
            all,
            [
                Chunk { range: 0..3, ends_batch: true },
                Chunk { range: 3..6, ends_batch: true },
                Chunk { range: 6..7, ends_batch: true },
            ]
        );
        assert_eq!(chunks(0, 3, 0).count(), 0);
        let resumed: Vec<Chunk> = chunks(4, 3, 2).collect();
        assert_eq!(
            resumed,
            [Chunk { range: 0..1, ends_batch: true }, Chunk { range: 1..4, ends_batch: true }]
        );
    }

    #[test]
    fn chunks_cover_everything_once() {
        for (documents, batch, in_batch) in [(1000, 1000, 0), (1001, 1000, 0), (2500, 700, 400), (10, 1, 0)] {
            let mut next = 0;
            let mut in_this_batch = in_batch;
            for chunk in chunks(documents, batch, in_batch) {
                assert_eq!(chunk.range.start, next);
                assert!(chunk.range.len() <= MOST_PER_CHUNK && !chunk.range.is_empty());
                next = chunk.range.end;
                in_this_batch += chunk.range.len();
                assert!(in_this_batch <= batch);
                if chunk.ends_batch {
                    in_this_batch = 0;
                }
            }
            assert_eq!(next, documents);
        }
    }
}
