//! How many neighbours, and of how many candidates, a clause finds that does not say it.

use crate::tree::{DefaultK, KnnQuery, QueryKind, SemanticQuery};

/// Most candidates of a clause, and with that the largest `k`.
pub const MAX_CANDIDATES: usize = 10_000;
/// Candidates of a clause that does not say how many, unless 1.5·k, Elasticsearch's number, is more. In the benchmark of
/// `docs/performance.md`, 100 candidates find 95% of the ten nearest neighbours, and 20 find 73%.
const FEWEST_CANDIDATES: usize = 100;

/// Neighbours where as many are looked for as hits are wanted; a search for no hits still needs one.
pub fn default_k(hits: usize) -> usize {
    hits.clamp(1, MAX_CANDIDATES)
}

/// Elasticsearch's number of candidates where only the number of hits is known.
pub fn candidates_of_hits(hits: usize) -> usize {
    hits.saturating_add(hits.div_ceil(2)).clamp(1, MAX_CANDIDATES)
}

/// Candidates that are looked at for `k` neighbours.
pub fn default_candidates(k: usize) -> usize {
    candidates_of_hits(k).clamp(FEWEST_CANDIDATES, MAX_CANDIDATES).max(k)
}

impl KnnQuery {
    /// Sets what the request leaves open, for a list of `hits`.
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
    /// Finds as many documents by dense passages as a list of `hits` holds.
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
