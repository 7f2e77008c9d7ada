//! Exact nearest neighbours by a scan.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sparrow_types::{DocId, Score};

use crate::error::VectorsError;
use crate::kernels;
use crate::reader::VectorsReader;
use crate::similarity::Similarity;

/// Vectors scored between two looks at the cancel flag: about a millisecond's work.
const CANCEL_INTERVAL: usize = 4096;

/// What to look for. Bitsets hold one bit per document of the segment, lowest bit first; documents past their
/// end count as absent.
pub struct TopKRequest<'a> {
    /// `dims` finite components.
    pub query: &'a [f32],
    /// How many documents at most.
    pub k: usize,
    /// Visible documents; `None` when all are.
    pub live: Option<&'a [u64]>,
    /// Documents that may be found at all (a pre-filter).
    pub filter: Option<&'a [u64]>,
    /// Lowest score that counts.
    pub min_score: Option<f32>,
    /// Order of documents with equal scores: lower is better.
    pub tie: &'a dyn Fn(DocId) -> u64,
    /// When set, the scan stops early and its result is not to be used.
    pub cancel: Option<&'a AtomicBool>,
}

#[derive(PartialEq)]
struct Candidate {
    score: Score,
    tie: u64,
    doc: DocId,
}

impl Eq for Candidate {}

impl Ord for Candidate {
    /// Greater is worse, so that the heap's top is the candidate to drop.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.tie.cmp(&other.tie)).then(self.doc.cmp(&other.doc))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<B: Deref<Target = [u8]>> VectorsReader<B> {
    /// The `k` best documents, best first, with their scores.
    ///
    /// # Errors
    /// [`VectorsError::Dimensions`] or [`VectorsError::NotFinite`] for a query that does not fit.
    pub fn top_k(&self, request: &TopKRequest<'_>) -> Result<Vec<(DocId, Score)>, VectorsError> {
        self.check_query(request.query)?;
        let mut heap = BinaryHeap::with_capacity(request.k.min(self.len()) + 1);
        let visible = |doc: DocId| has(request.live, doc) && has(request.filter, doc);
        let scorer = Scorer::new(self, request.query);
        for ord in 0..self.len() {
            if ord % CANCEL_INTERVAL == 0 && request.cancel.is_some_and(|flag| flag.load(Relaxed)) {
                break;
            }
            let doc = self.doc(ord);
            if !visible(doc) {
                continue;
            }
            let score = scorer.score(ord);
            if request.min_score.is_some_and(|floor| score < floor) {
                continue;
            }
            // The tie is only asked for documents that can still enter.
            if heap.len() >= request.k && heap.peek().is_none_or(|worst: &Candidate| score < worst.score) {
                continue;
            }
            heap.push(Candidate { score, tie: (request.tie)(doc), doc });
            if heap.len() > request.k {
                heap.pop();
            }
        }
        Ok(heap.into_sorted_vec().into_iter().map(|found| (found.doc, found.score)).collect())
    }

    /// Score of one document; `None` when it has no vector.
    ///
    /// # Errors
    /// As [`VectorsReader::top_k`].
    pub fn score(&self, query: &[f32], doc: DocId) -> Result<Option<Score>, VectorsError> {
        self.check_query(query)?;
        Ok(self.ord(doc).map(|ord| Scorer::new(self, query).score(ord)))
    }

    fn check_query(&self, query: &[f32]) -> Result<(), VectorsError> {
        if query.len() != self.dims() {
            return Err(VectorsError::Dimensions { expected: self.dims(), found: query.len() });
        }
        if query.iter().all(|component| component.is_finite()) {
            Ok(())
        } else {
            Err(VectorsError::NotFinite)
        }
    }
}

fn has(bits: Option<&[u64]>, doc: DocId) -> bool {
    bits.is_none_or(|words| words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1))
}

struct Scorer<'a, B> {
    reader: &'a VectorsReader<B>,
    query: &'a [f32],
    inverse_query_length: f32,
}

impl<'a, B: Deref<Target = [u8]>> Scorer<'a, B> {
    fn new(reader: &'a VectorsReader<B>, query: &'a [f32]) -> Self {
        let length = query.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        let inverse_query_length = if length > 0.0 { (1.0 / length) as f32 } else { 0.0 };
        Self { reader, query, inverse_query_length }
    }

    fn score(&self, ord: usize) -> Score {
        let row = self.reader.row(ord);
        let similarity = self.reader.similarity();
        similarity.score(match similarity {
            Similarity::Cosine => {
                kernels::dot(self.query, row) * self.inverse_query_length * self.reader.inverse_length(ord)
            }
            Similarity::DotProduct | Similarity::MaxInnerProduct => kernels::dot(self.query, row),
            Similarity::L2Norm => kernels::squared_distance(self.query, row),
        })
    }
}

#[cfg(test)]
mod tests;
