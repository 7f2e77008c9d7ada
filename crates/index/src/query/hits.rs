//! What a search is asked besides its query, and what it finds.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_query::Query;
use sparrow_types::{Executors, SeqNo};

/// How far the number of hits is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalHits {
    /// Every hit.
    Exact,
    /// Exactly up to a number, then "at least".
    UpTo(u64),
    /// Not at all.
    Off,
}

/// What a search returns besides matching.
#[derive(Debug, Clone)]
pub struct SearchOptions {
    /// Hits to return, `from` included.
    pub size: usize,
    /// Hits below this score are dropped, from the total too.
    pub min_score: Option<f32>,
    /// How far hits are counted.
    pub track_total_hits: TotalHits,
    /// Set from another thread to end the search with [`super::QueryError::Cancelled`].
    pub cancel: Option<Arc<AtomicBool>>,
    /// Once `cancel` is set, the hits found so far are returned instead of the error, where they are known one by one.
    pub partial: bool,
    /// Restricts the hits without taking part in the score.
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

/// One hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoredDoc {
    /// Where the document is.
    pub addr: tantivy::DocAddress,
    /// Score of the document.
    pub score: f32,
    /// Sequence number of its last write.
    pub seq_no: SeqNo,
}

/// Whether a number of hits is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalRelation {
    /// Exactly so many.
    Eq,
    /// At least so many.
    Gte,
}

/// The best hits, highest score first, equal scores by sequence number.
#[derive(Debug, Clone, PartialEq)]
pub struct TopDocs {
    /// At most `size` hits.
    pub hits: Vec<ScoredDoc>,
    /// Number of hits; 0 with [`TotalRelation::Gte`] when they were not counted.
    pub total: u64,
    /// Whether `total` is exact.
    pub relation: TotalRelation,
    /// Highest score; `None` without a hit.
    pub max_score: Option<f32>,
    /// The algorithms that found them.
    pub executors: Executors,
}
