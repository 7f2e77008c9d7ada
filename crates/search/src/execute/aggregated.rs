//! Aggregations over every document that a search matches, whichever page of hits is shown.

use sparrow_aggregations::{Aggregation, AggregationError, Collected, Documents};
use sparrow_query::{BoolQuery, Query, QueryKind};

use super::Run;
use super::plain::boosted;
use super::union::at_least;
use crate::error::SearchError;
use crate::resolve::set_default_fields;
use crate::slices;
use sparrow_search_body::aggs::Aggregations;
use sparrow_search_body::retriever::{Fusion, Retriever};

impl Run<'_> {
    /// What each index contributes. Post filters do not apply; fused lists count with all that any of them finds, had they no window: what
    /// is below the lowest score of a list does not count as a hit of it.
    pub(super) fn aggregated(&mut self, aggregations: &Aggregations) -> Vec<Collected> {
        let queries = match &self.body.fusion {
            None => self.union_per_target(),
            Some(fusion) => {
                (0..self.targets.len()).map(|number| Some(self.any_list(fusion, number))).collect()
            }
        };
        let mut collected = Vec::with_capacity(self.targets.len());
        for (number, query) in queries.into_iter().enumerate() {
            if self.failures[number].is_some() {
                continue;
            }
            match self.aggregate_one(aggregations, number, query) {
                Ok(tree) => collected.push(tree),
                Err(error) => {
                    let shard = self.targets[number].shard.clone();
                    self.failures[number] = Some(match error {
                        AggregationError::Query(source) => SearchError::Query { shard, source },
                        source => SearchError::Aggregation { shard, source },
                    });
                }
            }
        }
        collected
    }

    /// A query for the documents that any of the lists finds in an index.
    fn any_list(&self, fusion: &Fusion, number: usize) -> Query {
        let of = |retriever: &Retriever| {
            let (query, least) = match retriever {
                Retriever::Standard(standard) => (&standard.query, standard.min_score),
                Retriever::Knn(knn) => (&knn.search.query, knn.min_score),
                Retriever::Fused(inner) => return self.any_list(inner, number),
            };
            match least {
                None => query.clone(),
                // Lists compare the score that the index's factor is part of.
                Some(least) => at_least(boosted(self.targets, self.body, number, query.clone()), least),
            }
        };
        let should = fusion.inputs.iter().map(|input| of(&input.retriever)).collect();
        QueryKind::Bool(BoolQuery { should, ..BoolQuery::default() }).into()
    }

    fn aggregate_one(
        &self,
        aggregations: &Aggregations,
        number: usize,
        query: Option<Query>,
    ) -> Result<Collected, AggregationError> {
        let target = &self.targets[number];
        let snapshot = &target.snapshot;
        let mut query = query.unwrap_or_else(|| QueryKind::MatchNone.into());
        let mut tree: Option<Vec<Aggregation>> = None;
        if !target.default_fields.is_empty() {
            set_default_fields(&mut query, &target.default_fields);
            let mut shard_tree = aggregations.tree.clone();
            for aggregation in &mut shard_tree {
                aggregation.queries_mut(&mut |query| set_default_fields(query, &target.default_fields));
            }
            tree = Some(shard_tree);
        }
        let tree = tree.as_deref().unwrap_or(&aggregations.tree);
        let mut matching = snapshot.matching_until(&query, Some(self.cancel))?;
        let mut scores = None;
        if aggregations.needs_scores() || self.body.min_score.is_some() {
            scores = Some(snapshot.all_scores(&query, Some(self.cancel))?);
        }
        if let (Some(least), Some(scores)) = (self.body.min_score, &scores) {
            for (words, scores) in matching.iter_mut().zip(scores) {
                for (place, word) in words.iter_mut().enumerate() {
                    let mut bits = *word;
                    while bits != 0 {
                        let bit = bits.trailing_zeros();
                        bits &= bits - 1;
                        let score = scores.get(place * 64 + bit as usize).copied().unwrap_or(f32::NAN);
                        if score.is_nan() || score < least {
                            *word &= !(1 << bit);
                        }
                    }
                }
            }
        }
        let body = self.body;
        if body.slice.is_some() || body.terminate_after > 0 {
            let slice =
                body.slice.as_ref().map(|slice| slices::bind(slice, snapshot.mapping(), &target.shard));
            let slice = slice.transpose().map_err(|error| AggregationError::Execution(error.to_string()))?;
            let most = (body.terminate_after > 0).then_some(body.terminate_after);
            snapshot.keep_part(&mut matching, slice.as_ref(), most)?;
        }
        let documents = Documents { matching: &matching, scores: scores.as_deref() };
        sparrow_aggregations::aggregate(snapshot, tree, &documents, &target.shard.index, number)
    }
}
