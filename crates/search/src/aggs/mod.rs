//! Aggregations: their JSON, and what of them needs more than one index.

mod hits;
mod parse;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};
use sparrow_aggregations::{
    Aggregation, AggregationError, AggregationKind, Collected, ReduceOptions, reduce,
};
use sparrow_query::Query;

pub use self::parse::{Aggregations, parse};
use super::body::SearchBody;
use super::error::SearchError;
use super::execute::Target;
use super::highlight::Highlight;
use super::uri::Presentation;
use crate::service::SearchService;
use sparrow_call::error::EngineError;

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
        fn add<'a>(list: &'a [Aggregation], found: &mut Vec<(&'a str, usize)>) {
            for aggregation in list {
                if let AggregationKind::TopHits(top) = &aggregation.kind
                    && top.metrics.is_empty()
                {
                    found.push((&aggregation.name, top.from.saturating_add(top.size)));
                }
                add(&aggregation.subs, found);
            }
        }
        let mut found = Vec::new();
        add(&self.tree, &mut found);
        found
    }

    /// Checks that the buckets which are there whatever is found (those of filters and ranges, within each other) are no more than
    /// `search.max_buckets`: filling them takes a document's time for each.
    ///
    /// # Errors
    /// If there are more.
    pub fn check_buckets(&self, most: usize) -> Result<(), SearchError> {
        fn count(all: &[Aggregation]) -> usize {
            let one = |aggregation: &Aggregation| {
                let own = match &aggregation.kind {
                    AggregationKind::Filters(filters) => filters.filters.len(),
                    AggregationKind::Range(range) => range.ranges.len(),
                    AggregationKind::Filter(_) | AggregationKind::Global => 1,
                    _ => return 0,
                };
                own.saturating_mul(1 + count(&aggregation.subs))
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

    /// Puts together what the indices contributed, in at most as many buckets as `search.max_buckets` says.
    ///
    /// # Errors
    /// When the parts do not fit together, or there are too many buckets.
    pub fn reduce(
        &self,
        service: &SearchService,
        collected: Vec<Collected>,
        targets: &[Target],
        search: &SearchBody,
        shown: Presentation,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Map<String, Value>, EngineError> {
        let options =
            ReduceOptions { typed_keys: shown.typed_keys, max_buckets: service.cluster.max_buckets() };
        let mut hits = hits::Hits::new(service, targets, &self.hits, search, shown, cancel);
        reduce(&self.tree, collected, options, &mut hits)
            .map_err(|source| hits.error.take().unwrap_or_else(|| SearchError::Reduce { source }.into()))
    }
}
