//! What every part of an aggregation reads of the segment that it goes over.

use sparrow_index::SegmentSnapshot;
use tantivy::SegmentReader;

use super::bind::Bound;
use super::limits::Budget;

/// What aggregations read of a segment.
pub struct SegmentContext<'a> {
    /// tantivy's part.
    pub reader: &'a SegmentReader,
    /// Our part.
    pub segment: &'a SegmentSnapshot,
    /// Position of the segment.
    pub ord: u32,
    /// Position of the index among those searched.
    pub target: usize,
    /// The index's part of the request.
    pub bound: &'a Bound,
    /// Score of each document, if they are needed.
    pub scores: Option<&'a [f32]>,
    /// Milliseconds since the epoch.
    pub now: i64,
    /// What the request may take.
    pub budget: &'a Budget<'a>,
}
