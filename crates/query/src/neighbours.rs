//! Defaults for the numbers of neighbours and candidates of kNN clauses that do not give them.

use crate::tree::{DefaultK, KnnQuery, QueryKind, SemanticQuery};

/// Largest `num_candidates` of a clause, and so the largest `k`.
pub const MAX_CANDIDATES: usize = 10_000;
/// Least number of candidates of a clause that gives none; Elasticsearch's number, 1.5·k, is used if it is more. In the benchmark
/// of `docs/performance.md`, 100 candidates find 95% of the ten nearest neighbours, and 20 find 73%.
const FEWEST_CANDIDATES: usize = 100;

/// Default number of neighbours for a search that wants this many hits: as many, but at least 1.
pub fn default_k(hits: usize) -> usize {
    hits.clamp(1, MAX_CANDIDATES)
}

/// Elasticsearch's default number of candidates for a search that wants this many hits: 1.5 times as many.
pub fn candidates_of_hits(hits: usize) -> usize {
    hits.saturating_add(hits.div_ceil(2)).clamp(1, MAX_CANDIDATES)
}

/// Default number of candidates for `k` neighbours.
pub fn default_candidates(k: usize) -> usize {
    candidates_of_hits(k).clamp(FEWEST_CANDIDATES, MAX_CANDIDATES).max(k)
}

impl KnnQuery {
    /// Sets `k` and the number of candidates, as far as the request leaves them open, for a list of `hits`.
    pub fn fit(&mut self, hits: usize) {
        match self.default_k {
            None => {}
            Some(DefaultK::Hits { candidates_given: true }) => {
                self.k = default_k(hits).min(self.num_candidates);
            }
            Some(DefaultK::Hits { candidates_given: false }) => {
                self.k = default_k(hits);
                self.num_candidates = default_candidates(self.k);
            }
            Some(DefaultK::Candidates) => {
                self.k = candidates_of_hits(hits);
                self.num_candidates = default_candidates(default_k(hits)).max(self.k);
            }
        }
    }
}

impl SemanticQuery {
    /// Sets the numbers of documents and candidates that dense passages contribute to a list of `hits`.
    pub fn fit(&mut self, hits: usize) {
        self.k = default_k(hits);
        self.num_candidates = default_candidates(self.k);
    }
}

impl QueryKind {
    /// Sets the numbers of neighbours and candidates of this clause that the request leaves open, for a list of `hits`.
    pub fn fit(&mut self, hits: usize) {
        match self {
            QueryKind::Knn(clause) => clause.fit(hits),
            QueryKind::KnnBuilder(clause) => clause.knn.fit(hits),
            QueryKind::Semantic(clause) => clause.fit(hits),
            _ => {}
        }
    }
}
