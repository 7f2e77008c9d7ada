//! Exact nearest neighbours by a scan.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sparrow_runtime::{DocId, Score};

use crate::builder::check_vector;
use crate::element::Element;
use crate::error::VectorsError;
use crate::kernels::ReadOrder;
use crate::reader::VectorsReader;
use crate::rough::BATCH;
use crate::scorer::Query;

/// Consecutive vectors that are scanned between checks for cancellation; a fraction of a millisecond's work.
const WINDOW: usize = 1024;
/// Number of places in a window from which vectors are read in turn; a single stream of reads does not
/// saturate memory bandwidth.
const STREAMS: usize = 4;
/// Percentage of allowed vectors from which on reading a whole window is faster than picking them out.
const DENSE_PERCENT: usize = 60;

/// Query, filters and limits of a search. Bitmaps hold one bit per document of the segment, lowest bit first;
/// documents past their end count as absent.
pub struct TopKRequest<'a> {
    /// Components of the query vector: floats, or integers from −128 to 127 for byte and bit vectors.
    pub query: &'a [f32],
    /// Maximum number of hits.
    pub k: usize,
    /// Bitmap of the live documents; `None` when all are.
    pub live: Option<&'a [u64]>,
    /// Bitmap of the documents that may be hits (a pre-filter); `None` when all may.
    pub filter: Option<&'a [u64]>,
    /// Lowest score of a hit; `None` for no limit.
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
    /// Orders worse candidates as greater, so that the worst is on top of the heap.
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.tie.cmp(&other.tie)).then(self.doc.cmp(&other.doc))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Collects the best documents by score, ties by the request's `tie`.
pub(crate) struct Best<'a> {
    request: &'a TopKRequest<'a>,
    size: usize,
    heap: BinaryHeap<Candidate>,
}

impl<'a> Best<'a> {
    /// Collects the best `size` of `available` documents.
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

    /// Lowest score among the best; `None` while there are fewer than wanted.
    pub(crate) fn lowest(&self) -> Option<Score> {
        self.heap.peek().filter(|_| self.heap.len() >= self.size).map(|worst| worst.score)
    }

    /// The collected documents, best first.
    pub(crate) fn finish(self) -> Vec<(DocId, Score)> {
        self.heap.into_sorted_vec().into_iter().map(|hit| (hit.doc, hit.score)).collect()
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
        let near = |order, ords: &[u32], out: &mut [f32]| query.exact_many(self, order, ords, out);
        let dense = match self.metric().element {
            Element::Float => ReadOrder::Streams,
            Element::Byte | Element::Bit => ReadOrder::Scattered,
        };
        self.scan(request, dense, near, |doc, near| {
            let score = self.metric().score_of_nearness(near);
            if request.min_score.is_none_or(|floor| score >= floor) {
                best.offer(doc, score);
            }
        });
        Ok(best.finish())
    }

    /// Calls `visit` with each allowed document that has a vector and its nearness, which `near` computes for
    /// many vectors at a time. `dense` is the read order where most vectors are allowed: streams if memory
    /// bandwidth is the bottleneck, as with floats.
    pub(crate) fn scan(
        &self,
        request: &TopKRequest<'_>,
        dense: ReadOrder,
        near: impl Fn(ReadOrder, &[u32], &mut [f32]),
        mut visit: impl FnMut(DocId, f32),
    ) {
        let (mut numbers, mut nearness) = ([0; WINDOW], [0.0; BATCH]);
        let mut next = 0;
        while next < self.len() {
            if request.is_cancelled() {
                break;
            }
            let window = next..self.len().min(next + WINDOW);
            next = window.end;
            let mut count = 0;
            for ord in window.clone() {
                numbers[count] = ord as u32;
                count += usize::from(request.allows(self.doc(ord)));
            }
            let mut order = ReadOrder::Scattered;
            let not_allowed = window.len() - count;
            if dense == ReadOrder::Streams && count * 100 >= window.len() * DENSE_PERCENT {
                count = window.len();
                order = dense;
                in_turns(window, &mut numbers);
            }
            for numbers in numbers[..count].chunks(BATCH) {
                let nearness = &mut nearness[..numbers.len()];
                near(order, numbers, nearness);
                for (ord, near) in numbers.iter().zip(nearness) {
                    let doc = self.doc(*ord as usize);
                    if order == ReadOrder::Scattered || not_allowed == 0 || request.allows(doc) {
                        visit(doc, *near);
                    }
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

/// Writes the numbers of a window's vectors in the order in which they are read fastest: from [`STREAMS`]
/// places in turn.
fn in_turns(window: Range<usize>, numbers: &mut [u32]) {
    let each = window.len() / STREAMS;
    let in_streams = (0..each * STREAMS).map(|at| at % STREAMS * each + at / STREAMS);
    let order = in_streams.chain(each * STREAMS..window.len());
    for (number, at) in numbers.iter_mut().zip(order) {
        *number = (window.start + at) as u32;
    }
}

fn has(bits: Option<&[u64]>, doc: DocId) -> bool {
    bits.is_none_or(|words| words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1))
}

#[cfg(test)]
pub(crate) mod tests;
