//! What a search needs of a term before its postings, for who asks for the same terms again.

use sparrow_types::TermId;

use crate::kernels;
use crate::layout::CODES;
use crate::record::Record;

/// A term of one segment, found and checked: 40 bytes.
///
/// In the file that are two places, each on a page of its own that hardly anything else is read from: the record,
/// and what the levels of a frequent term stand for. With 23 terms in each of five segments, waiting for them is a
/// fifth of a search. Whoever searches the same segments again keeps what [`PostingsReader::resolve`] gave for a
/// token in all of them side by side, and hands it to [`SegmentSearch::terms`].
///
/// [`PostingsReader::resolve`]: crate::PostingsReader::resolve
/// [`SegmentSearch::terms`]: crate::SegmentSearch::terms
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResolvedTerm {
    pub(crate) record: Record,
    /// Codes of a dense term.
    pub(crate) codes: [u8; CODES],
}

/// A token in one segment, if that has it.
pub type SegmentTerm = Option<(TermId, ResolvedTerm)>;

/// The tokens of a query in several segments, as [`SegmentSearch`](crate::SegmentSearch) takes them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryTerms {
    /// Term ids and weights, segment by segment, in the query's order.
    query: Vec<(TermId, f32)>,
    resolved: Vec<ResolvedTerm>,
    /// Where each segment's end.
    ends: Vec<usize>,
}

impl QueryTerms {
    /// Of every token its run, which is what it is in each of so many segments, and its weight.
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

    /// What a segment knows of the query: its own numbers of the tokens with their weights, and what they were resolved to.
    pub fn of_segment(&self, segment: usize) -> (&[(TermId, f32)], &[ResolvedTerm]) {
        let start = segment.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let range = start..self.ends.get(segment).copied().unwrap_or(start);
        (&self.query[range.clone()], &self.resolved[range])
    }
}
