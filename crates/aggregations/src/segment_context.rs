//! The segment being aggregated, and the request's data that every part of an aggregation needs.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};
use sparrow_tantivy_index::{SegmentSnapshot, Snapshot};
use tantivy::SegmentReader;

use super::bind::Bound;

/// Sequences of words that earlier documents had, by the id of the aggregation that looks for them; as hashes.
pub type Seen = RefCell<FxHashMap<usize, FxHashSet<u64>>>;

/// The segment being aggregated, with the request's data for it.
#[derive(Clone, Copy)]
pub struct SegmentContext<'a> {
    /// Reader of tantivy's part of the segment.
    pub reader: &'a SegmentReader,
    /// The documents of the index.
    pub root: &'a Snapshot,
    /// The documents that are aggregated: those of the index, or the objects of a nested field.
    pub snapshot: &'a Snapshot,
    /// Snapshot of Sparrow's own part of the segment, such as its live documents.
    pub segment: &'a SegmentSnapshot,
    /// Position of the segment within the index.
    pub ord: u32,
    /// Position of the index among those searched.
    pub target: usize,
    /// The request's aggregations as bound to the index.
    pub bound: &'a Bound,
    /// Score of each document, if they are needed.
    pub scores: Option<&'a [f32]>,
    /// Current time, in milliseconds since the epoch.
    pub now: i64,
    /// What aggregations of words have seen in this index.
    pub seen: &'a Seen,
}

impl<'a> SegmentContext<'a> {
    /// The context for sub-aggregations that see the documents of another view of the segment.
    pub fn inside(&self, snapshot: &'a Snapshot) -> Self {
        Self { snapshot, segment: snapshot.segment(self.ord), ..*self }
    }
}
