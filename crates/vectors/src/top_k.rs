//! Exact nearest neighbours by a scan.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sparrow_types::{DocId, Score};

use crate::builder::check_vector;
use crate::error::VectorsError;
use crate::reader::VectorsReader;
use crate::rough::BATCH;
use crate::scorer::Query;

/// Vectors scored between two looks at the cancel flag: about a millisecond's work.
pub(crate) const CANCEL_INTERVAL: usize = 4096;

/// What to look for. Bitsets hold one bit per document of the segment, lowest bit first; documents past their
/// end count as absent.
pub struct TopKRequest<'a> {
    /// The components: floats, or whole numbers of one byte.
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

impl TopKRequest<'_> {
    pub(crate) fn allows(&self, doc: DocId) -> bool {
        has(self.live, doc) && has(self.filter, doc)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Relaxed))
    }
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

/// Keeps the best documents by score, equal ones by their tie.
pub(crate) struct Best<'a> {
    request: &'a TopKRequest<'a>,
    size: usize,
    heap: BinaryHeap<Candidate>,
}

impl<'a> Best<'a> {
    /// Keeps `size` of the `available` documents that will be offered.
    pub(crate) fn new(request: &'a TopKRequest<'a>, size: usize, available: usize) -> Self {
        Self { request, size, heap: BinaryHeap::with_capacity(size.min(available) + 1) }
    }

    pub(crate) fn offer(&mut self, doc: DocId, score: Score) {
        // The tie is only asked for documents that can still enter.
        if self.heap.len() >= self.size && self.heap.peek().is_none_or(|worst| score < worst.score) {
            return;
        }
        self.heap.push(Candidate { score, tie: (self.request.tie)(doc), doc });
        if self.heap.len() > self.size {
            self.heap.pop();
        }
    }

    /// Best first.
    pub(crate) fn finish(self) -> Vec<(DocId, Score)> {
        self.heap.into_sorted_vec().into_iter().map(|found| (found.doc, found.score)).collect()
    }
}

impl<B: Deref<Target = [u8]>> VectorsReader<B> {
    /// The `k` best documents, best first, with their scores.
    ///
    /// # Errors
    /// [`VectorsError::Dimensions`] or [`VectorsError::Component`] for a query that does not fit.
    pub fn top_k(&self, request: &TopKRequest<'_>) -> Result<Vec<(DocId, Score)>, VectorsError> {
        check_vector(self.metric(), request.query)?;
        let query = Query::new(self.metric(), request.query, false);
        let mut best = Best::new(request, request.k, self.len());
        let near = |ords: &[u32], out: &mut [f32]| query.exact_many(self, ords, out);
        self.scan(request, near, |doc, near| {
            let score = self.metric().score_of_nearness(near);
            if request.min_score.is_none_or(|floor| score >= floor) {
                best.offer(doc, score);
            }
        });
        Ok(best.finish())
    }

    /// Visits each allowed document that has a vector with its nearness, which `near` gives for many vectors at a time.
    pub(crate) fn scan(
        &self,
        request: &TopKRequest<'_>,
        near: impl Fn(&[u32], &mut [f32]),
        mut visit: impl FnMut(DocId, f32),
    ) {
        let (mut ords, mut nearness) = ([0; BATCH], [0.0; BATCH]);
        let mut next = 0;
        while next < self.len() {
            if request.is_cancelled() {
                break;
            }
            let end = self.len().min(next + CANCEL_INTERVAL);
            while next < end {
                let mut count = 0;
                while next < end && count < BATCH {
                    ords[count] = next as u32;
                    count += usize::from(request.allows(self.doc(next)));
                    next += 1;
                }
                near(&ords[..count], &mut nearness[..count]);
                for (ord, near) in ords[..count].iter().zip(&nearness) {
                    visit(self.doc(*ord as usize), *near);
                }
            }
        }
    }

    /// Score of one document; `None` when it has no vector.
    ///
    /// # Errors
    /// As [`VectorsReader::top_k`].
    pub fn score(&self, query: &[f32], doc: DocId) -> Result<Option<Score>, VectorsError> {
        check_vector(self.metric(), query)?;
        let query = Query::new(self.metric(), query, false);
        Ok(self.ord(doc).map(|ord| self.metric().score_of_nearness(query.exact(self, ord))))
    }
}

fn has(bits: Option<&[u64]>, doc: DocId) -> bool {
    bits.is_none_or(|words| words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1))
}

#[cfg(test)]
pub(crate) mod tests;
