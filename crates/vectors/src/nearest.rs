//! Nearest-neighbour search by graphs and codes where they are faster, otherwise by an exact scan.

use std::ops::Deref;

use sparrow_runtime::{DocId, Executor, Executors, Score};

use crate::builder::check_vector;
use crate::error::VectorsError;
use crate::graph::BeamSearch;
use crate::graph::GraphReader;
use crate::kernels::ReadOrder;
use crate::reader::VectorsReader;
use crate::rescore::Hits;
use crate::scorer::Query;
use crate::top_k::{Best, TopKRequest};

/// Number of allowed vectors below which all are compared exactly, without a first pass over their codes.
const MIN_CODES_SCAN: usize = 10_000;
/// Cost of a comparison on a graph walk, in comparisons of a scan: memory access is random, and neighbour
/// lists and heaps come on top. Measured: see `docs/design/vectors/hnsw.md`.
const WALK_COST: usize = 3;
/// Expected comparisons of a walk per candidate and unit of `m`, measured on embeddings.
const COMPARISONS_PER_CANDIDATE: usize = 1;

/// Accuracy of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Number of candidates to collect, at least `k`: more find more of the true neighbours and take longer.
    pub num_candidates: usize,
    /// Number of candidates of which the best by their exact scores are hits, as a multiple of `k`; raised to `num_candidates` if lower.
    pub oversample: f32,
}

/// Most candidates that a factor asks for, as in Elasticsearch: the floats of each may have to be read from the disk.
const MOST_OVERSAMPLED: usize = 10_000;

impl Effort {
    fn candidates(self, k: usize) -> usize {
        let oversampled = (k as f32 * self.oversample).ceil() as usize;
        self.num_candidates.max(oversampled.min(MOST_OVERSAMPLED)).max(k)
    }
}

/// Algorithm that answered a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// All allowed vectors were compared exactly.
    Exact,
    /// All allowed vectors were compared by their codes, and those of the best that could be hits exactly.
    Codes,
    /// A graph was walked, and those vectors found that could be hits were compared exactly.
    Graph,
}

impl From<Method> for Executors {
    fn from(method: Method) -> Self {
        Self::from(match method {
            Method::Exact => Executor::ExactVectorScan,
            Method::Codes => Executor::QuantizedVectorScan,
            Method::Graph => Executor::GraphWalk,
        })
    }
}

impl<B: Deref<Target = [u8]>> VectorsReader<B> {
    /// The `k` best documents, best first, and the algorithm that found them. Scores are exact. With
    /// [`Method::Exact`] no better documents exist; otherwise that depends on `effort`.
    ///
    /// # Errors
    /// As [`VectorsReader::top_k`].
    pub fn nearest(
        &self,
        graph: Option<&GraphReader<B>>,
        request: &TopKRequest<'_>,
        effort: Effort,
    ) -> Result<(Vec<(DocId, Score)>, Method), VectorsError> {
        check_vector(self.metric(), request.query)?;
        let allowed = self.count_allowed(request);
        let candidates = effort.candidates(request.k).min(allowed);
        if let Some(graph) = graph.filter(|graph| graph.is_of(self))
            && let Some(neighbours) = self.walk(graph, request, candidates, allowed)
        {
            return Ok((neighbours, Method::Graph));
        }
        if self.has_codes() && allowed >= MIN_CODES_SCAN && candidates < allowed / 2 {
            return Ok((self.scan_codes(request, candidates), Method::Codes));
        }
        Ok((self.top_k(request)?, Method::Exact))
    }

    /// Number of allowed documents that have a vector.
    fn count_allowed(&self, request: &TopKRequest<'_>) -> usize {
        if request.live.is_none() && request.filter.is_none() {
            return self.len();
        }
        if !self.is_complete() {
            return (0..self.len()).filter(|ord| request.allows(self.doc(*ord))).count();
        }
        let words = self.len().div_ceil(64);
        let word = |bits: Option<&[u64]>, at: usize| {
            bits.map_or(u64::MAX, |bits| bits.get(at).copied().unwrap_or(0))
        };
        let last = if self.len().is_multiple_of(64) { u64::MAX } else { (1 << (self.len() % 64)) - 1 };
        (0..words)
            .map(|at| {
                let allowed = word(request.live, at) & word(request.filter, at);
                (if at + 1 == words { allowed & last } else { allowed }).count_ones() as usize
            })
            .sum()
    }

    /// The best documents, found by a graph walk; `None` where a scan is expected to be cheaper, or the walk
    /// exceeded its budget or found fewer candidates than there are.
    fn walk(
        &self,
        graph: &GraphReader<B>,
        request: &TopKRequest<'_>,
        candidates: usize,
        allowed: usize,
    ) -> Option<Vec<(DocId, Score)>> {
        // What comparisons may cost in all before a scan of the allowed vectors would have been cheaper.
        let budget = allowed / WALK_COST;
        let unfiltered =
            candidates.checked_mul(usize::from(graph.m()))?.checked_mul(COMPARISONS_PER_CANDIDATE)?;
        // Of the vectors that are walked over, only the allowed share becomes candidates.
        let expected = (unfiltered as f64 * graph.len() as f64 / allowed.max(1) as f64) as usize;
        if candidates == 0 || expected > budget {
            return None;
        }
        let query = if graph.code_bytes() == 0 && self.has_codes() {
            Query::of_codes(self, request.query)
        } else {
            Query::new(self.metric(), request.query, graph.code_bytes() > 0)
        };
        let allows = |ord: usize| request.allows(self.doc(ord));
        let walked = graph.walk(&BeamSearch {
            candidates,
            budget,
            allows: (allowed < self.len()).then_some(&allows),
            near: &|compared, vectors, out| query.on_walk(self, compared, vectors, out),
            cancelled: &|| request.is_cancelled(),
        })?;
        // In graphs of version 2, equal vectors may be without a way to the others.
        if walked.len() < candidates && !request.is_cancelled() {
            return None;
        }
        if graph.code_bytes() > 0 {
            return Some(self.rescore(request, &query, &walked, |ord| graph.whole_scale(ord)));
        }
        if self.has_codes() {
            return Some(self.rescore(request, &query, &walked, |ord| self.whole_scale(ord)));
        }
        let mut hits = Hits::new(request, self, walked.len());
        walked.into_iter().for_each(|(ord, nearness)| hits.add(ord, nearness));
        Some(hits.finish())
    }

    fn scan_codes(&self, request: &TopKRequest<'_>, candidates: usize) -> Vec<(DocId, Score)> {
        let query = Query::of_codes(self, request.query);
        let mut best = Best::new(request, candidates, self.len());
        let near = |order, ords: &[u32], out: &mut [f32]| query.by_codes(self, order, ords, out);
        self.scan(request, ReadOrder::Scattered, near, |doc, near| best.offer(doc, near));
        let candidates: Vec<(usize, f32)> = best
            .finish()
            .into_iter()
            .filter_map(|(doc, nearness)| Some((self.ord(doc)?, nearness)))
            .collect();
        self.rescore(request, &query, &candidates, |ord| self.whole_scale(ord))
    }

    /// Scale of a vector's codes; `None` if they may be clipped.
    fn whole_scale(&self, ord: usize) -> Option<f32> {
        self.has_whole_codes().then(|| self.scale(ord))
    }

    /// The `k` best by their exact scores of vectors that are given with their nearness by codes. `scale` is that of a vector's
    /// codes, and `None` if it says nothing about their error.
    fn rescore(
        &self,
        request: &TopKRequest<'_>,
        query: &Query<'_>,
        candidates: &[(usize, f32)],
        scale: impl Fn(usize) -> Option<f32>,
    ) -> Vec<(DocId, Score)> {
        let mut hits = Hits::new(request, self, candidates.len());
        let of_codes = query.code_error();
        let error =
            |ord| scale(ord).map_or(f64::INFINITY, |scale| of_codes.of(scale, self.inverse_length(ord)));
        hits.add_rescored(candidates, error, |ords, near| {
            query.exact_many(self, ReadOrder::Scattered, ords, near);
        });
        hits.finish()
    }
}
