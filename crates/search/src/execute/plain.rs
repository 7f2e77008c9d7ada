//! One list: a query, the nearest neighbours of `knn`, or the union of both.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Hit, List, Outcome, Run, Target, total, with_k};
use crate::error::SearchError;
use sparrow_query::{BoolQuery, KnnSearch, Query, QueryKind};
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::rescore::Rescore;
use sparrow_tantivy_index::query::{QueryError, SearchOptions, TotalHits};
use sparrow_wire::glob;

impl Run<'_> {
    pub(super) fn plain(&mut self) -> Result<Outcome, SearchError> {
        let body = self.body;
        let window = body.rescore.iter().map(|rescore| rescore.window).max().unwrap_or(0);
        let wanted = (body.from + body.size).max(window);
        let queries: Vec<Option<Query>> = self.union_per_target();
        let options = self.options(wanted, body.tracked_hits(), body.min_score);
        let mut list = self.list(&options, |target| queries[target].clone());
        for rescore in &body.rescore {
            let mut hits: Vec<&mut Hit> = list.hits.iter_mut().collect();
            self.rescore(rescore, &mut hits)?;
            list.hits.sort_by(by_score);
            list.max_score = list.hits.first().map(|hit| hit.score);
        }
        Ok(Outcome {
            max_score: list.max_score.filter(|_| body.size > 0),
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
            return (0..self.targets.len())
                .map(|number| Some(boosted(self.targets, body, number, query.clone())))
                .collect();
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
            .enumerate()
            .map(|(number, query)| query.map(|query| boosted(self.targets, body, number, query)))
            .collect()
    }

    /// Rescores the first hits of each index. `hits` are sorted best first.
    pub(super) fn rescore(&self, rescore: &Rescore, hits: &mut [&mut Hit]) -> Result<(), SearchError> {
        let mut scores = Vec::with_capacity(self.targets.len());
        for (number, target) in self.targets.iter().enumerate() {
            let of_target = hits.iter().filter(|hit| hit.target == number);
            let docs: Vec<_> = of_target.take(rescore.window).map(|hit| hit.addr).collect();
            match target.snapshot.score_docs(&rescore.query, &docs) {
                Ok(of_target) => scores.push(of_target),
                // Scores of which only some are rescored do not compare: without time for all, none is.
                Err(QueryError::Cancelled) => return Ok(()),
                Err(source) => return Err(SearchError::Query { shard: target.shard.clone(), source }),
            }
        }
        for (number, scores) in scores.into_iter().enumerate() {
            // Hits of one index keep their order within the list.
            let of_target = hits.iter_mut().filter(|hit| hit.target == number);
            for (place, hit) in of_target.enumerate() {
                hit.score = match scores.get(place) {
                    Some(second) => rescore.combine(hit.score, *second),
                    None => rescore.behind(hit.score),
                };
            }
        }
        Ok(())
    }

    /// For each index, how many of the `k` nearest neighbours over all indices it holds.
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

/// The query with its scores multiplied by the factor that `indices_boost` gives the index.
pub(super) fn boosted(targets: &[Target], body: &SearchBody, number: usize, mut query: Query) -> Query {
    if body.indices_boost.is_empty() {
        return query;
    }
    let index = &targets[number].shard.index;
    if let Some((_, boost)) = body.indices_boost.iter().find(|(names, _)| glob::matches(names, index)) {
        query.boost *= boost;
    }
    query
}

/// Orders hits by score, highest first, then by index, then in the order the documents were written.
pub(super) fn by_score(a: &Hit, b: &Hit) -> Ordering {
    b.score.total_cmp(&a.score).then(a.target.cmp(&b.target)).then(a.seq_no.cmp(&b.seq_no))
}
