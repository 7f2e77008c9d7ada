//! Queries on `semantic_text` fields: which they are, and the vectors of their texts.
//!
//! A `match` on such a field, or a `sparse_vector` or `knn` clause that names no model, searches for the
//! vector that the field's own inference endpoint makes of its text. Indices of one search may differ in
//! that: a clause keeps one vector for each endpoint, and each index takes its own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use super::error::SearchError;
use crate::service::SearchService;
use sparrow_catalog::semantic::embed::vector;
use sparrow_encoder::Timings;
use sparrow_mapping::Mapping;
use sparrow_mapping::passages::PassageVector;
use sparrow_models::{TextEncoder, is_blank};
use sparrow_query::{Clause, Query, QueryKind, SemanticQuery, walk};
use sparrow_request::error::EngineError;

/// Turns clauses on `semantic_text` fields into [`QueryKind::Semantic`] ones, and encodes their texts.
/// `mappings` are those that the indices are searched with, since a field may get another model a moment
/// later; `size` is how many documents a clause on dense passages finds if it does not say. With `timed`, the
/// time that each model took is added to it.
///
/// # Errors
/// When a clause needs a model that its field does not name, or the model fails.
pub fn bind(
    service: &SearchService,
    mappings: &[Arc<Mapping>],
    queries: &mut [&mut Query],
    size: usize,
    cancel: &AtomicBool,
    timed: Option<&mut Vec<(String, Timings)>>,
) -> Result<(), EngineError> {
    let plain = mappings.iter().all(|mapping| mapping.semantic_fields().is_empty());
    let endpoints = |field: &str| -> IndexSet<String> {
        let fields = mappings.iter().filter_map(|mapping| mapping.semantic_field(field));
        fields.map(|field| field.search_id().to_owned()).collect()
    };
    let mut texts: FxHashMap<String, IndexSet<String>> = FxHashMap::default();
    for query in queries.iter_mut() {
        walk::change::<EngineError>(query, &mut |kind| {
            match kind {
                QueryKind::Match(clause) if !plain && !endpoints(&clause.field).is_empty() => {
                    *kind = QueryKind::Semantic(SemanticQuery {
                        field: clause.field.clone(),
                        text: clause.text.clone(),
                        otherwise: Some(Box::new(QueryKind::Match(clause.clone()))),
                        ..SemanticQuery::default()
                    });
                }
                QueryKind::TextExpansion(clause) if clause.model_id.is_empty() => {
                    let reason = "[sparse_vector] requires one of [query_vector] or [inference_id] for sparse_vector \
                                  fields";
                    clause.model_id = only(&endpoints(&clause.field), &clause.field, reason)?;
                }
                QueryKind::KnnBuilder(clause) if clause.model_id.is_empty() => {
                    let reason = "[model_id] must not be null.";
                    clause.model_id = only(&endpoints(&clause.knn.field), &clause.knn.field, reason)?;
                }
                _ => {}
            }
            let QueryKind::Semantic(clause) = kind else { return Ok(()) };
            if clause.k == 0 {
                clause.fit(size);
            }
            let blank = is_blank(&clause.text);
            // A search may come here twice; what is encoded stays.
            for id in endpoints(&clause.field) {
                if clause.vectors.iter().any(|(model, _)| *model == id) {
                    continue;
                }
                if blank {
                    clause.vectors.push((id, PassageVector::Dense(Vec::new())));
                } else {
                    texts.entry(id).or_default().insert(clause.text.clone());
                }
            }
            Ok(())
        })?;
    }
    if texts.is_empty() {
        return Ok(());
    }
    // All models of all endpoints in one call, so that they work at the same time.
    let named: Vec<(String, Vec<String>)> =
        texts.keys().map(|id| (id.clone(), service.models.encoders(id))).collect();
    let lists: Vec<(&str, Vec<&str>)> = named
        .iter()
        .flat_map(|(id, model_ids)| model_ids.iter().map(move |model_id| (id, model_id)))
        .map(|(id, model_id)| (model_id.as_str(), texts[id].iter().map(String::as_str).collect()))
        .collect();
    let results = service.models.encode_queries(&lists, Some(cancel), timed.is_some())?;
    if let Some(timed) = timed {
        timed.extend(
            lists.iter().zip(&results).map(|((model_id, _), result)| ((*model_id).to_owned(), result.1)),
        );
    }
    let mut results = results.into_iter().map(|(encoded, _)| encoded);
    for (id, model_ids) in &named {
        let encoded: Vec<_> = results.by_ref().take(model_ids.len()).collect();
        let texts = &texts[id];
        let of_text =
            |at: usize| vector(encoded.iter().filter_map(|of_model| Some(&of_model.get(at)?.output)));
        let vectors: Option<Vec<PassageVector>> = (0..texts.len()).map(of_text).collect();
        let vectors = vectors.ok_or_else(|| {
            EngineError::internal(format!("the models of [{id}] make no vectors that go together"))
        })?;
        let factor = service.models.dense_factor(id);
        for query in queries.iter_mut() {
            walk::change::<EngineError>(query, &mut |kind| {
                if let QueryKind::Semantic(clause) = kind
                    && !clause.vectors.iter().any(|(model, _)| model == id)
                    && endpoints(&clause.field).contains(id)
                    && let Some(vector) = texts.get_index_of(&clause.text).and_then(|at| vectors.get(at))
                {
                    clause.vectors.push((id.clone(), vector.clone()));
                    clause.dense_factors.push((id.clone(), factor));
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// The only inference endpoint of a field over all indices searched; an error for no endpoint, or more than
/// one.
fn only(endpoints: &IndexSet<String>, field: &str, missing: &str) -> Result<String, EngineError> {
    let mut ids = endpoints.iter();
    match (ids.next(), ids.next()) {
        (Some(id), None) => Ok(id.clone()),
        (None, _) => Err(SearchError::illegal(missing).into()),
        (Some(first), Some(second)) => Err(SearchError::illegal(format!(
            "field [{field}] has different inference ids in the indices searched, [{first}] and [{second}]; name one \
             in the query"
        ))
        .into()),
    }
}
