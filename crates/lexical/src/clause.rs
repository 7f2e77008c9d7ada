//! A term of a query in one segment.

use tantivy::DocId;

use crate::field::{Factors, SegmentField};
use crate::list::PostingList;

/// A term of the query in one segment: its posting list, with what is needed for scoring.
pub struct Clause<'a> {
    pub list: PostingList<'a>,
    pub field: &'a SegmentField,
    pub factors: &'a Factors,
    /// Weight of the term: a document's score is the weight times its BM25 factor.
    pub weight: f32,
}

impl Clause<'_> {
    /// The score that a document gets for so many occurrences of the term.
    #[inline]
    pub fn score(&self, doc: DocId, count: u32) -> f32 {
        self.weight * self.factors.factor(count, self.field.length(doc))
    }

    /// Adds the scores of `docs` to `sums`, which are those of consecutive documents beginning with `start`.
    #[inline]
    pub(crate) fn add(&self, docs: &[DocId], counts: &[u32], start: DocId, sums: &mut [f32]) {
        let Some(lengths) = self.field.lengths() else {
            for (doc, count) in docs.iter().zip(counts) {
                sums[(doc - start) as usize] += self.score(*doc, *count);
            }
            return;
        };
        let here = sums.len().min(lengths.len() - start as usize);
        let (lengths, sums) = (&lengths[start as usize..][..here], &mut sums[..here]);
        for (doc, count) in docs.iter().zip(counts) {
            let at = (doc - start) as usize;
            sums[at] += self.weight * self.factors.factor(*count, lengths[at]);
        }
    }
}
