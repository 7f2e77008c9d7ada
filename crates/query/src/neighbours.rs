//! Defaults for the numbers of neighbours and candidates of kNN clauses that do not give them.

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
