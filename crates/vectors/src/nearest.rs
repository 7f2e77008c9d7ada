//! Nearest-neighbour search by graphs and codes where they are faster, otherwise by an exact scan.

use std::ops::Deref;

use sparrow_types::{DocId, Executor, Executors, Score};

use crate::builder::check_vector;
use crate::error::VectorsError;
use crate::graph::BeamSearch;
use crate::graph::GraphReader;
use crate::kernels::ReadOrder;
use crate::reader::VectorsReader;
use crate::rough::BATCH;
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
    /// Number of candidates to rescore exactly, as a multiple of `k`; raised to `num_candidates` if lower.
    pub oversample: f32,
}

impl Effort {
    fn candidates(self, k: usize) -> usize {
        self.num_candidates.max((k as f32 * self.oversample).ceil() as usize).max(k)
    }
}

/// Algorithm that answered a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// All allowed vectors were compared exactly.
    Exact,
    /// All allowed vectors were compared by their codes, and the best of them exactly.
    Codes,
    /// A graph was walked, and the vectors found were compared exactly.
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
        let query = Query::new(self.metric(), request.query, self.has_codes() || graph.code_bytes() > 0);
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
        Some(self.rescore(request, &query, walked, graph.code_bytes() > 0 || self.has_codes()))
    }

    fn scan_codes(&self, request: &TopKRequest<'_>, candidates: usize) -> Vec<(DocId, Score)> {
        let query = Query::new(self.metric(), request.query, true);
        let mut best = Best::new(request, candidates, self.len());
        let near = |order, ords: &[u32], out: &mut [f32]| query.by_codes(self, order, ords, out);
        self.scan(request, ReadOrder::Scattered, near, |doc, near| best.offer(doc, near));
        let best_by_codes =
            best.finish().into_iter().filter_map(|(doc, nearness)| Some((self.ord(doc)?, nearness)));
        self.rescore(request, &query, best_by_codes.collect(), true)
    }

    /// The `k` best of some vectors by their exact scores. `by_codes` says that their nearness is only
    /// approximate.
    fn rescore(
        &self,
        request: &TopKRequest<'_>,
        query: &Query<'_>,
        mut neighbours: Vec<(usize, f32)>,
        by_codes: bool,
    ) -> Vec<(DocId, Score)> {
        if by_codes {
            let (mut ords, mut near) = ([0; BATCH], [0.0; BATCH]);
            for batch in neighbours.chunks_mut(BATCH) {
                let count = batch.len();
                ords.iter_mut().zip(&*batch).for_each(|(ord, neighbour)| *ord = neighbour.0 as u32);
                query.exact_many(self, ReadOrder::Scattered, &ords[..count], &mut near[..count]);
                batch.iter_mut().zip(near).for_each(|(neighbour, near)| neighbour.1 = near);
            }
        }
        let mut best = Best::new(request, request.k, neighbours.len());
        for (ord, nearness) in neighbours {
            let score = self.metric().score_of_nearness(nearness);
            if request.min_score.is_none_or(|floor| score >= floor) {
                best.offer(self.doc(ord), score);
            }
        }
        best.finish()
    }
}
