//! Options of a search besides its query, and its results.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_query::Query;
use sparrow_runtime::{Executors, SeqNo};

/// How far the number of hits is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalHits {
    /// Every hit.
    Exact,
    /// Exactly up to this number of hits, above it as "at least".
    UpTo(u64),
    /// Not counted.
    Off,
}

/// Options of a search besides its query.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// Number of hits to return, including the first `from` that are skipped later.
    pub size: usize,
    /// Lowest score of a hit; hits below it do not count in the total either.
    pub min_score: Option<f32>,
    /// How far hits are counted.
    pub track_total_hits: TotalHits,
    /// Flag that another thread sets to end the search with [`crate::query::QueryError::Cancelled`].
    pub cancel: Option<Arc<AtomicBool>>,
    /// Whether the hits found so far are returned, instead of the error, once `cancel` is set (for searches
    /// that find hits one by one).
    pub partial: bool,
    /// Query that restricts the hits without affecting scores.
    pub post_filter: Option<Query>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            size: 10,
            min_score: None,
            track_total_hits: TotalHits::UpTo(10_000),
            cancel: None,
            partial: false,
            post_filter: None,
        }
    }
}

/// A hit of a search by score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredDoc {
    /// Segment and number of the document.
    pub addr: tantivy::DocAddress,
    /// Score of the document.
    pub score: f32,
    /// Sequence number of the document's last write.
    pub seq_no: SeqNo,
}

/// Whether a number of hits is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalRelation {
    /// The number of hits is exact.
    Eq,
    /// The number of hits is a lower bound.
    Gte,
}

/// The best hits, highest score first, equal scores by sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct TopDocs {
    /// The best hits, at most `size`.
    pub hits: Vec<ScoredDoc>,
    /// Number of hits; 0 with [`TotalRelation::Gte`] when they were not counted.
    pub total: u64,
    /// Whether `total` is exact.
    pub relation: TotalRelation,
    /// Highest score; `None` without a hit.
    pub max_score: Option<f32>,
    /// The algorithms that found the hits.
    pub executors: Executors,
}
