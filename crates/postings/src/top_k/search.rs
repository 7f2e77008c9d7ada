//! A search of one segment, and its terms.

use sparrow_runtime::DocId;

use super::TopKRequest;
use super::bounds::ScoreBounds;
use crate::term::Postings;

/// A query term that the segment has.
pub(super) struct Clause<'a> {
    pub(super) postings: Postings<'a>,
    pub(super) weight: f32,
    pub(super) factor: u16,
    /// Upper bound of the term's contribution to an estimate.
    pub(super) bound: u32,
}

impl Clause<'_> {
    /// Leaves out the postings of the documents before `first`.
    pub(super) fn from(&self, first: DocId) -> Self {
        Self { postings: self.postings.from(first), ..*self }
    }
}

/// The search of one segment, or of a part of one.
pub(super) struct Search<'s, 'a, 'r> {
    /// Index of the segment among those that are searched together.
    pub(super) segment: usize,
    /// Segment document that is numbered 0 here: a large segment is searched in parts, each as if it were a
    /// segment.
    pub(super) first: DocId,
    pub(super) num_docs: u32,
    /// Documents per window.
    pub(super) window_size: u32,
    pub(super) request: TopKRequest<'r>,
    /// Query terms that the segment has, in query order, for exact scores.
    pub(super) clauses: &'s [Clause<'a>],
    /// Indexes of the dense clauses, highest bound first; `others` has those of the rest.
    pub(super) dense: &'s [usize],
    pub(super) others: &'s [usize],
    /// Receives the upper bounds of blocks, if requested.
    pub(super) bounds: Option<&'a mut ScoreBounds>,
    /// Index of this search's first document among the sums of all segments.
    pub(super) sums_at: usize,
    pub(super) matched: u64,
    /// Number of documents that pass the filter; `None` if there is no filter.
    pub(super) passed: Option<u64>,
}
