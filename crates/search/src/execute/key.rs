//! What a document is known by while lists are fused.

use std::cmp::Ordering;

use sparrow_tantivy_index::DocAddress;

use crate::target::Hit;

/// Identifies a document across the indices of one search; the order of keys is the order in which ties are
/// broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    target: usize,
    seq_no: u64,
    segment: u32,
    doc: u32,
}

impl Key {
    /// Position of the document's index in the list of targets.
    pub fn target(self) -> usize {
        self.target
    }

    /// Segment and number of the document within its index.
    pub fn addr(self) -> DocAddress {
        DocAddress::new(self.segment, self.doc)
    }

    pub fn of(hit: &Hit) -> Self {
        Self { target: hit.target, seq_no: hit.seq_no, segment: hit.addr.segment_ord, doc: hit.addr.doc_id }
    }

    pub fn hit(self, score: f32, rank: Option<u32>) -> Hit {
        Hit { target: self.target, addr: self.addr(), seq_no: self.seq_no, score, rank }
    }

    pub fn is_in(&self, sets: &[Vec<Vec<u64>>]) -> bool {
        let words = sets.get(self.target).and_then(|segments| segments.get(self.segment as usize));
        words
            .and_then(|words| words.get(self.doc as usize / 64))
            .is_some_and(|word| word >> (self.doc % 64) & 1 == 1)
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |key: &Self| (key.target, key.seq_no, key.segment, key.doc);
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
