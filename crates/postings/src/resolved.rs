//! Terms that were looked up and validated once, for callers that search for the same terms again.

use sparrow_runtime::TermId;

use crate::kernels;
use crate::layout::CODES;
use crate::record::Record;

/// A term of one segment, looked up and validated; 40 bytes.
///
/// In the file it occupies two places, on pages that are rarely read for anything else: the record, and the
/// level codes of a dense term. With 23 terms in each of five segments, waiting for them is a fifth of a
/// search. Callers that search the same segments again keep the results of [`PostingsReader::resolve`] for a
/// token side by side, and pass them in [`SegmentSearch::terms`].
///
/// [`PostingsReader::resolve`]: crate::PostingsReader::resolve
/// [`SegmentSearch::terms`]: crate::SegmentSearch::terms
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedTerm {
    pub(crate) record: Record,
    /// Level codes of a dense term; all 0 for others.
    pub(crate) codes: [u8; CODES],
}

/// A token's id and resolved term in one segment; `None` if the segment does not have the token.
pub type SegmentTerm = Option<(TermId, ResolvedTerm)>;

/// The tokens of a query in several segments, as [`SegmentSearch`](crate::SegmentSearch) takes them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryTerms {
    /// Term ids and weights, segment by segment, in the query's order.
    query: Vec<(TermId, f32)>,
    resolved: Vec<ResolvedTerm>,
    /// Per segment, the end of its terms in `query` and `resolved`.
    ends: Vec<usize>,
}

impl QueryTerms {
    /// Takes, per query token, its term in each of the `segments` segments (in segment order) and its weight.
    pub fn new<'r>(runs: impl Iterator<Item = (&'r [SegmentTerm], f32)> + Clone, segments: usize) -> Self {
        // Runs are kept wherever their tokens were first asked for: waited for all at once.
        runs.clone().for_each(|(run, _)| kernels::fetch_all(run));
        let most = runs.size_hint().1.unwrap_or(0) * segments;
        let mut query = Vec::with_capacity(most);
        let mut resolved = Vec::with_capacity(most);
        let ends = (0..segments).map(|segment| {
            for (run, weight) in runs.clone() {
                if let Some(Some((term, resolved_term))) = run.get(segment) {
                    query.push((*term, weight));
                    resolved.push(*resolved_term);
                }
            }
            query.len()
        });
        let ends = ends.collect();
        Self { query, resolved, ends }
    }

    /// Query terms of one segment: its term ids with their weights, and the resolved terms, both in query
    /// order.
    pub fn of_segment(&self, segment: usize) -> (&[(TermId, f32)], &[ResolvedTerm]) {
        let start = segment.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let range = start..self.ends.get(segment).copied().unwrap_or(start);
        (&self.query[range.clone()], &self.resolved[range])
    }
}
