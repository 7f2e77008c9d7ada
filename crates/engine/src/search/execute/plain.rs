//! One list: a query, the nearest neighbours of `knn`, or the union of both.

use std::sync::Arc;

use sparrow_index::query::{BoolQuery, Query, QueryKind, SearchOptions, TotalHits};

use super::{List, Outcome, Run, total, with_k};
use crate::search::dsl::KnnSearch;
use crate::search::error::SearchError;
use crate::search::sort::Sort;

impl Run<'_> {
    pub(super) fn plain(&mut self) -> Result<Outcome, SearchError> {
        let body = self.body;
        let wanted = body.from + body.size;
        let queries: Vec<Option<Query>> = self.union_per_target();
        let options = self.options(wanted, body.tracked_hits(), body.min_score);
        let list = self.list(&options, |target| queries[target].clone());
        let scored = body.sort == Sort::Score;
        Ok(Outcome {
            max_score: list.max_score.filter(|_| scored && body.size > 0),
            total: total(list.total, list.exact, body.tracked_hits()),
            hits: list.hits.into_iter().skip(body.from).take(body.size).collect(),
            ..Outcome::default()
        })
    }

    /// The query that each index runs: `query` and the `knn` sections in one, `None` where only kNN
    /// asks and the index holds none of the nearest neighbours.
    pub(super) fn union_per_target(&mut self) -> Vec<Option<Query>> {
        let body = self.body;
        // One sub-search without a rank is a query by another name.
        let query = body.query.clone().or_else(|| body.sub_searches.first().cloned());
        if body.knn.is_empty() {
            let query = query.unwrap_or_else(Query::match_all);
            let query = match body.sort {
                Sort::Score => query,
                // With one score for all, the tie breaker is the order.
                Sort::SeqNo => QueryKind::ConstantScore { filter: Box::new(query) }.into(),
            };
            return self.targets.iter().map(|_| Some(query.clone())).collect();
        }
        let mut per_target: Vec<Vec<Query>> =
            self.targets.iter().map(|_| query.iter().cloned().collect()).collect();
        for knn in &body.knn {
            for (clauses, k) in per_target.iter_mut().zip(self.neighbours_per_target(knn)) {
                clauses.extend(with_k(&knn.query, k));
            }
        }
        per_target
            .into_iter()
            .map(|mut clauses| match clauses.len() {
                0 => None,
                1 => clauses.pop(),
                _ => Some(QueryKind::Bool(BoolQuery { should: clauses, ..Default::default() }).into()),
            })
            .collect()
    }

    /// How many of the `k` nearest neighbours over all indices each index holds.
    fn neighbours_per_target(&mut self, knn: &KnnSearch) -> Vec<usize> {
        if self.targets.len() == 1 {
            return vec![knn.k];
        }
        let mut counts = vec![0; self.targets.len()];
        for hit in self.nearest(knn, knn.k).hits {
            counts[hit.target] += 1;
        }
        counts
    }

    fn nearest(&mut self, knn: &KnnSearch, limit: usize) -> List {
        let options = SearchOptions {
            size: limit,
            track_total_hits: TotalHits::Off,
            cancel: Some(Arc::clone(self.cancel)),
            ..SearchOptions::default()
        };
        self.list(&options, |_| with_k(&knn.query, knn.k))
    }
}
