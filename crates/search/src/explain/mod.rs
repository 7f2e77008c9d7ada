//! `explain`: why each hit has its score.
//!
//! The index explains what a query gives a document; here that explanation is reconciled with the score
//! shown, fused lists are explained by their ranks or weights, and sparse tokens by the words of the document
//! that they come from.

mod api;
mod fused;
mod write;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_query::Query;
use sparrow_tantivy_index::query::Explanation;

use super::attribution::Attributor;
use super::error::SearchError;
use super::execute::{self, Outcome};
use super::target::{Hit, Target};
use crate::service::SearchService;
use sparrow_request::error::EngineError;
use sparrow_search_body::body::SearchBody;

pub(crate) use self::api::OPERATIONS;
pub(super) use self::write::write;

/// Highest number of hits of one request whose sparse tokens are traced to words: each hit takes a run of the
/// model.
const MAX_ATTRIBUTED: usize = 100;

/// Explains the hits of a search, in their order.
///
/// # Errors
/// As the search itself, which has succeeded.
pub(super) fn hits(
    service: &SearchService,
    targets: &[Target],
    body: &SearchBody,
    outcome: &Outcome,
    cancel: &Arc<AtomicBool>,
) -> Result<Vec<Explanation>, EngineError> {
    let mut explanations: Vec<Explanation> = match (&body.fusion, &outcome.branch) {
        (Some(fusion), Some(branch)) => {
            fused::explain(targets, fusion, branch, body.from + body.size, &outcome.hits, cancel)?
        }
        _ => {
            let queries = execute::queries(targets, body, cancel);
            let mut explanations = of_queries(targets, &queries, &outcome.hits, cancel)?;
            for rescore in &body.rescore {
                let queries: Vec<_> = targets.iter().map(|_| Some(rescore.query.clone())).collect();
                let second = of_queries(targets, &queries, &outcome.hits, cancel)?;
                explanations = explanations
                    .into_iter()
                    .zip(second)
                    .map(|(first, second)| {
                        rescore.explain(first, Some(second).filter(|second| !second.no_match))
                    })
                    .collect();
            }
            if !body.is_sorted() {
                for (explanation, hit) in explanations.iter_mut().zip(&outcome.hits) {
                    explanation.settle(hit.score);
                }
            }
            explanations
        }
    };
    for (hit, explanation) in outcome.hits.iter().zip(&mut explanations).take(MAX_ATTRIBUTED) {
        Attributor::new(service, &targets[hit.target], hit.addr).explain(explanation, cancel)?;
    }
    Ok(explanations)
}

/// Explains each hit by the query that its index ran.
fn of_queries(
    targets: &[Target],
    queries: &[Option<Query>],
    hits: &[Hit],
    cancel: &AtomicBool,
) -> Result<Vec<Explanation>, SearchError> {
    let mut explanations: Vec<Explanation> =
        hits.iter().map(|_| Explanation::no_match("No matching clauses")).collect();
    for (number, (target, query)) in targets.iter().zip(queries).enumerate() {
        let places: Vec<usize> = (0..hits.len()).filter(|at| hits[*at].target == number).collect();
        let Some(query) = query.as_ref().filter(|_| !places.is_empty()) else { continue };
        let mut query = query.clone();
        if !target.default_fields.is_empty() {
            super::resolve::set_default_fields(&mut query, &target.default_fields);
        }
        let docs: Vec<_> = places.iter().map(|at| hits[*at].addr).collect();
        let explained = target
            .snapshot
            .explain(&query, &docs, Some(cancel))
            .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
        for (at, explanation) in places.into_iter().zip(explained) {
            explanations[at] = explanation;
        }
    }
    Ok(explanations)
}
