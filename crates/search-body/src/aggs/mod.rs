//! Aggregations: their JSON, and checks that are possible before they are computed.

mod parse;

use sparrow_aggregations::{Aggregation, AggregationError, AggregationKind};
use sparrow_query::Query;

pub use self::parse::{Aggregations, parse, schemas};
use super::highlight::Highlight;

impl Aggregations {
    /// All queries inside the aggregations: of filters and backgrounds, and of the highlighting of `top_hits`. Their texts
    /// are encoded together with those of the search.
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

    /// Name of each `top_hits`, and how many hits it reads (`from` + `size`).
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

    /// Checks that the buckets which exist whatever is found (those of filters and ranges, nested ones
    /// multiplied) are no more than `most`, the `search.max_buckets` setting: filling each costs as much as a
    /// document.
    ///
    /// # Errors
    /// If there are more.
    pub fn check_buckets(&self, most: usize) -> Result<(), AggregationError> {
        fn count(all: &[Aggregation]) -> usize {
            let one = |aggregation: &Aggregation| {
                let buckets = match &aggregation.kind {
                    AggregationKind::Filters(filters) => filters.filters.len(),
                    AggregationKind::Range(range) => range.ranges.len(),
                    AggregationKind::AddressRanges(asked) => asked.ranges.len(),
                    AggregationKind::Filter(_)
                    | AggregationKind::Global
                    | AggregationKind::Nested(_)
                    | AggregationKind::ReverseNested(_)
                    | AggregationKind::Sampler(_) => 1,
                    _ => return 0,
                };
                buckets.saturating_mul(1 + count(&aggregation.subs))
            };
            all.iter().map(one).fold(0, usize::saturating_add)
        }
        match count(&self.tree) > most {
            true => Err(AggregationError::TooManyBuckets { limit: most }),
            false => Ok(()),
        }
    }

    /// Whether the aggregations need the score of every document.
    pub fn needs_scores(&self) -> bool {
        self.tree.iter().any(Aggregation::needs_scores) || self.hits.iter().any(|shown| shown.track_scores)
    }
}
