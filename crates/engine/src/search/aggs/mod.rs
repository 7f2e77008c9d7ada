//! Aggregations: their JSON, and what of them needs more than one index.

mod hits;
mod parse;
mod zone;

use serde_json::{Map, Value};
use sparrow_index::aggregations::{Collected, ReduceOptions, reduce};
use sparrow_index::query::Query;

pub use self::parse::{Aggregations, parse};
use super::error::SearchError;
use super::execute::Target;

impl Aggregations {
    /// The queries of filters, whose texts are encoded with those of the search.
    pub fn queries_mut(&mut self) -> Vec<&mut Query> {
        let mut queries = Vec::new();
        for aggregation in &mut self.tree {
            aggregation.queries_mut(&mut |query| queries.push(query));
        }
        queries
    }

    /// Whether every document's score is needed.
    pub fn needs_scores(&self) -> bool {
        self.tree.iter().any(sparrow_index::aggregations::Aggregation::needs_scores)
    }

    /// Puts together what the indices contributed, in at most `max_buckets` buckets (`search.max_buckets`).
    ///
    /// # Errors
    /// When the parts do not fit together, or there are too many buckets.
    pub fn reduce(
        &self,
        collected: Vec<Collected>,
        targets: &[Target],
        typed_keys: bool,
        max_buckets: usize,
    ) -> Result<Map<String, Value>, SearchError> {
        let options = ReduceOptions { typed_keys, max_buckets };
        let mut hits = hits::Hits { targets, options: &self.hits };
        reduce(&self.tree, collected, options, &mut hits).map_err(|source| SearchError::Reduce { source })
    }
}
