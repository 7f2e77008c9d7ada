//! The best documents of a segment for a sparse query.
//!
//! [`PostingsReader::top_k`] is rank-safe: it returns the documents, the order and the score bits
//! of [`PostingsReader::top_k_exhaustive`], which scores every matching document.

mod allowed;
mod blocks;
mod bounds;
mod candidates;
mod collect;
mod count;
mod exact;
mod exhaustive;
mod filter_driven;
mod filtered;
mod group;
mod multi_segment;
mod parallel;
mod plan;
mod pruned;
mod scratch;
mod search;
mod single;
#[cfg(test)]
mod tests;
mod threshold_priming;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use sparrow_runtime::{DocId, Executors, TermId};

pub use bounds::ScoreBounds;

use crate::reader::PostingsReader;
use crate::resolved::ResolvedTerm;

/// Score that a document must reach, shared by the segments of one search: the k-th best score
/// found so far, or a lower bound of it.
#[derive(Debug, Default)]
pub struct SharedThreshold(AtomicU32);

impl SharedThreshold {
    /// Starts at 0: nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Current threshold. Documents below it cannot be among the best; equal ones can.
    pub fn get(&self) -> f32 {
        f32::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Raises the threshold; lower values, negative ones and NaN change nothing.
    pub fn raise(&self, score: f32) {
        // Bits of positive floats are ordered as the floats.
        if score > 0.0 {
            self.0.fetch_max(score.to_bits(), Ordering::Relaxed);
        }
    }
}

/// Query, filter and limits of a top-k search.
#[derive(Clone, Copy)]
pub struct TopKRequest<'a> {
    /// Terms and weights. Scores are summed in this order; a term may be repeated.
    pub query: &'a [(TermId, f32)],
    /// Maximum number of hits.
    pub k: usize,
    /// Documents below this score are neither returned nor counted.
    pub min_score: Option<f32>,
    /// Threshold of the whole search, raised to this segment's k-th score at the end.
    pub threshold: &'a SharedThreshold,
    /// Bit per document, 1 = visible; missing words are 0. `None`: all are.
    pub live: Option<&'a [u64]>,
    /// Bit per document, 1 = wanted; missing words are 0. `None`: all are.
    pub filter: Option<&'a [u64]>,
    /// Count matching documents exactly up to here; 0 = do not count.
    pub count_limit: u64,
    /// Order of equal scores, lower first.
    pub tie: &'a (dyn Fn(DocId) -> u64 + Sync),
    /// Stops early when set; the result is then incomplete and of no use.
    pub cancel: Option<&'a AtomicBool>,
}

/// Result of a top-k search of one segment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TopK {
    /// Highest score first, equal scores by tie key. Documents that other segments' results
    /// exclude (below [`TopKRequest::threshold`]) may be missing.
    pub hits: Vec<(DocId, f32)>,
    /// Number of matching documents: exact up to `count_limit`, beyond it a number of at least the limit.
    /// With several segments that are searched together, this holds for the sum.
    pub matched: u64,
    /// Algorithms that produced the hits.
    pub executors: Executors,
}

impl TopKRequest<'_> {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    /// The lowest score still wanted, by threshold and minimum; may be 0 or negative.
    pub(crate) fn floor(&self) -> f32 {
        let threshold = self.threshold.get();
        let threshold = if threshold > 0.0 { threshold } else { f32::NEG_INFINITY };
        threshold.max(self.min_score.unwrap_or(f32::NEG_INFINITY))
    }
}

/// A segment among several that are searched together.
pub struct SegmentSearch<'a, B> {
    /// Postings of the segment.
    pub reader: &'a PostingsReader<B>,
    /// Request for this segment. `k`, weights, minimum score, threshold, count limit and cancel flag must be
    /// the same for all segments; documents beyond the limit are not counted in later segments.
    pub request: TopKRequest<'a>,
    /// The request's query terms as [resolved](PostingsReader::resolve) by this reader, in query order, or
    /// empty. Terms of another reader give wrong answers.
    pub terms: &'a [ResolvedTerm],
    /// Receives upper bounds of all documents' scores, if the search computes them.
    pub bounds: Option<&'a mut ScoreBounds>,
}

impl<B> SegmentSearch<'_, B> {
    fn terms_are_known(&self) -> bool {
        self.terms.len() == self.request.query.len()
    }
}

/// The best documents of several segments, one result per segment as from [`PostingsReader::top_k`]. Together
/// they contain the best of all.
///
/// The blocks with the highest bounds are scored first, whichever segment they are in, so that small segments
/// cost hardly more than one segment of their total size.
pub fn top_k_of_segments<B>(segments: Vec<SegmentSearch<'_, B>>) -> Vec<TopK>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    multi_segment::top_k(segments)
}

impl<B> PostingsReader<B>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    /// The best documents, found with pruning where the format allows.
    pub fn top_k(&self, request: &TopKRequest<'_>) -> TopK {
        self.top_k_with(request, None)
    }

    /// Same as [`Self::top_k`], and upper bounds of all documents' scores, if the search computes them.
    pub fn top_k_bounded(&self, request: &TopKRequest<'_>) -> (TopK, ScoreBounds) {
        let mut bounds = ScoreBounds::default();
        (self.top_k_with(request, Some(&mut bounds)), bounds)
    }

    fn top_k_with(&self, request: &TopKRequest<'_>, bounds: Option<&mut ScoreBounds>) -> TopK {
        let segment = SegmentSearch { reader: self, request: *request, terms: &[], bounds };
        multi_segment::top_k(vec![segment]).pop().unwrap_or_default()
    }

    /// The best documents, found by scoring every matching one: the reference for [`Self::top_k`].
    pub fn top_k_exhaustive(&self, request: &TopKRequest<'_>) -> TopK {
        exhaustive::top_k(self, request)
    }
}
