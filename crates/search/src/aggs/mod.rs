//! Aggregations: their JSON, and what can be said of them before they are computed.

mod parse;

use sparrow_aggregations::{Aggregation, AggregationError, AggregationKind};
use sparrow_query::Query;

pub use self::parse::{Aggregations, parse};
use super::error::SearchError;
use super::highlight::Highlight;

impl Aggregations {
    /// The queries of filters, whose texts are encoded with those of the search.
    pub fn queries_mut(&mut self) -> Vec<&mut Query> {
        let mut queries = Vec::new();
        for aggregation in &mut self.tree {
            aggregation.queries_mut(&mut |query| queries.push(query));
        }
        for shown in &mut self.hits {
            queries.extend(shown.highlight.iter_mut().flat_map(Highlight::queries_mut));
        }
        queries
    }

    /// Names of `top_hits` and how far they reach.
    pub fn hit_windows(&self) -> Vec<(&str, usize)> {
        fn add<'a>(list: &'a [Aggregation], windows: &mut Vec<(&'a str, usize)>) {
            for aggregation in list {
                if let AggregationKind::TopHits(top) = &aggregation.kind
                    && top.metrics.is_empty()
                {
                    windows.push((&aggregation.name, top.from.saturating_add(top.size)));
                }
                add(&aggregation.subs, windows);
            }
        }
        let mut windows = Vec::new();
        add(&self.tree, &mut windows);
        windows
    }

    /// Checks that the buckets which are there whatever is found (those of filters and ranges, within each other) are no more than
    /// `search.max_buckets`: filling them takes a document's time for each.
    ///
    /// # Errors
    /// If there are more.
    pub fn check_buckets(&self, most: usize) -> Result<(), SearchError> {
        fn count(all: &[Aggregation]) -> usize {
            let one = |aggregation: &Aggregation| {
                let buckets = match &aggregation.kind {
                    AggregationKind::Filters(filters) => filters.filters.len(),
                    AggregationKind::Range(range) => range.ranges.len(),
                    AggregationKind::Filter(_) | AggregationKind::Global => 1,
                    _ => return 0,
                };
                buckets.saturating_mul(1 + count(&aggregation.subs))
            };
            all.iter().map(one).fold(0, usize::saturating_add)
        }
        match count(&self.tree) > most {
            true => Err(SearchError::Reduce { source: AggregationError::TooManyBuckets { limit: most } }),
            false => Ok(()),
        }
    }

    /// Whether every document's score is needed.
    pub fn needs_scores(&self) -> bool {
        self.tree.iter().any(Aggregation::needs_scores) || self.hits.iter().any(|shown| shown.track_scores)
    }
}
