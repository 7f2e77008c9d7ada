//! Inference at query time: clauses that carry a text are given the vector that a model makes of it.
//!
//! All texts of a request are encoded in one call per model, and the models run concurrently.

use std::sync::atomic::AtomicBool;

use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use sparrow_encoder::{Encoded, Output, Timings};
use sparrow_mapping::Mapping;
use sparrow_models::{ModelError, Models, TextEncoder, is_blank};
use sparrow_query::walk::{change, change_all, visit};
use sparrow_query::{Query, QueryKind, SparseQuery, TextToEncode, VectorKind};
use sparrow_request::error::EngineError;

/// A field that a query searches, and the model whose vector it searches with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelUse {
    /// Path of the field.
    pub field: String,
    /// Id of the model, or of its deployment.
    pub model_id: String,
}

/// The distinct (field, model) pairs of all clauses in `queries` whose text a model still has to encode.
pub fn model_uses(queries: &[&mut Query]) -> Vec<ModelUse> {
    let mut uses = IndexSet::new();
    for query in queries {
        visit(query, &mut |query| {
            if let Some(TextToEncode { field, model_id, .. }) = query.kind.clause().text_to_encode() {
                uses.insert(ModelUse { field: field.to_owned(), model_id: model_id.to_owned() });
            }
        });
    }
    uses.into_iter().collect()
}

/// The (field, model) pairs of all semantic clauses in `queries`: each takes the search endpoint that
/// `mapping` gives its field.
pub fn own_models(queries: &[&mut Query], mapping: &Mapping) -> Vec<ModelUse> {
    let mut uses = IndexSet::new();
    for query in queries {
        visit(query, &mut |clause| {
            if let QueryKind::Semantic(clause) = &clause.kind
                && let Some(field) = mapping.semantic_field(&clause.field)
            {
                let model_id = field.search_id().to_owned();
                uses.insert(ModelUse { field: clause.field.clone(), model_id });
            }
        });
    }
    uses.into_iter().collect()
}

/// The model that filled a `semantic_text` field, if the vectors of the model in `used` cannot be compared
/// with those stored in it; `None` if they can.
pub fn other_model(models: &Models, mapping: &Mapping, used: &ModelUse) -> Option<String> {
    let field = mapping.semantic_field(&used.field)?;
    // Queries by a [search_inference_id] are held to this too: only the model that filled the field says what can be compared with it.
    let stored = field.fingerprint.clone().or_else(|| models.model_fingerprint(&field.inference_id))?;
    let differs = |model_id: &str| models.compares_with(model_id, &stored) == Some(false);
    if !differs(&used.model_id) {
        return None;
    }
    // The endpoint has another model by now, perhaps, than the one that it filled the field with.
    Some(match differs(&field.inference_id) {
        false => field.inference_id.clone(),
        true => models.name_of(&stored).unwrap_or(stored),
    })
}

/// Replaces the id of an endpoint that makes both sparse and dense vectors by the id of the model that makes
/// the kind its clause needs.
pub fn name_parts(models: &Models, queries: &mut [&mut Query]) {
    let named = &mut |kind: &mut QueryKind| {
        let (model_id, wanted) = match kind {
            QueryKind::TextExpansion(clause) => (&mut clause.model_id, VectorKind::Sparse),
            QueryKind::KnnBuilder(clause) => (&mut clause.model_id, VectorKind::Dense),
            _ => return,
        };
        if let Some(parts) = models.hybrid_parts(model_id) {
            *model_id = parts.of(wanted).to_owned();
        }
    };
    for query in queries {
        change_all(query, named);
    }
}

/// Encodes the texts of `queries` and puts the vectors in their place.
///
/// A text without any word matches nothing, whatever the model makes of it. With `timed` the phases of each
/// model's call are added to it.
///
/// # Errors
/// When a model does not exist, is not deployed, makes the wrong kind of vector for its clause, or fails.
pub fn resolve(
    encoder: &dyn TextEncoder,
    queries: &mut [&mut Query],
    cancel: &AtomicBool,
    mut timed: Option<&mut Vec<(String, Timings)>>,
) -> Result<(), EngineError> {
    let mut texts: FxHashMap<String, IndexSet<String>> = FxHashMap::default();
    let mut order: Vec<String> = Vec::new();
    for query in queries.iter() {
        visit(query, &mut |query| {
            let Some(TextToEncode { model_id, text, .. }) = query.kind.clause().text_to_encode() else {
                return;
            };
            let of_model = texts.entry(model_id.to_owned()).or_insert_with(|| {
                order.push(model_id.to_owned());
                IndexSet::new()
            });
            of_model.insert(text.to_owned());
        });
    }
    let mut lists: Vec<(&str, Vec<&str>)> = Vec::with_capacity(order.len());
    for model_id in &order {
        let of_model = texts.get(model_id).into_iter().flatten();
        lists.push((model_id, of_model.map(String::as_str).collect()));
    }
    let results = encoder.encode_queries(&lists, Some(cancel), timed.is_some())?;
    let mut encoded: FxHashMap<&str, Vec<Encoded>> = FxHashMap::default();
    for (model_id, (vectors, timings)) in order.iter().zip(results) {
        if let Some(timed) = &mut timed {
            timed.push((model_id.clone(), timings));
        }
        encoded.insert(model_id, vectors);
    }
    let vector_of = |model_id: &str, text: &str| -> Result<&Output, EngineError> {
        texts
            .get(model_id)
            .and_then(|of_model| of_model.get_index_of(text))
            .and_then(|index| encoded.get(model_id)?.get(index))
            .map(|encoded| &encoded.output)
            .ok_or_else(|| EngineError::internal(format!("model [{model_id}] left out a text")))
    };
    for query in queries {
        change::<EngineError>(query, &mut |kind| {
            let replacement = match kind {
                QueryKind::TextExpansion(clause) => {
                    let Output::Sparse(weights) = vector_of(&clause.model_id, &clause.model_text)? else {
                        return Err(wrong_kind(&clause.model_id, "dense", "sparse"));
                    };
                    let tokens = match is_blank(&clause.model_text) {
                        true => Vec::new(),
                        false => weights.pairs().to_vec(),
                    };
                    QueryKind::Sparse(SparseQuery {
                        field: std::mem::take(&mut clause.field),
                        tokens,
                        pruning: clause.pruning,
                        origin: clause.origin,
                    })
                }
                QueryKind::KnnBuilder(clause) => {
                    let Output::Dense(vector) = vector_of(&clause.model_id, &clause.model_text)? else {
                        return Err(wrong_kind(&clause.model_id, "sparse", "dense"));
                    };
                    let mut knn = std::mem::take(&mut clause.knn);
                    knn.vector = vector.to_vec();
                    match is_blank(&clause.model_text) {
                        true => QueryKind::MatchNone,
                        false => QueryKind::Knn(knn),
                    }
                }
                _ => return Ok(()),
            };
            *kind = replacement;
            Ok(())
        })?;
    }
    Ok(())
}

fn wrong_kind(id: &str, made: &'static str, wanted: &'static str) -> EngineError {
    ModelError::WrongKind { id: id.to_owned(), made, wanted }.into()
}

/// Makes query strings that name no field search `fields` (the index's `index.query.default_field`).
pub fn set_default_fields(query: &mut Query, fields: &[String]) {
    change_all(query, &mut |kind| {
        if let Some(clause) = kind.clause_mut() {
            clause.set_default_fields(fields);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use parking_lot::Mutex;
    use sparrow_encoder::{Encoded, Output};
    use sparrow_query::{Query, QueryKind};
    use sparrow_runtime::TokenWeights;

    use super::{model_uses, resolve};
    use sparrow_models::{ModelError, Purpose, TextEncoder};
    use sparrow_query::dsl::{Context, parse_query};
    use sparrow_wire::json;

    /// A fake encoder that turns each text into a single token, or into a vector as long as the text, and
    /// records its calls.
    #[derive(Default)]
    struct Echo(Mutex<Vec<(String, Vec<String>)>>);

    impl TextEncoder for Echo {
        fn encode(
            &self,
            model_id: &str,
            texts: &[&str],
            purpose: Purpose,
            _cancel: Option<&AtomicBool>,
        ) -> Result<Vec<Encoded>, ModelError> {
            assert_eq!(purpose, Purpose::Query);
            if model_id == "missing" {
                return Err(ModelError::NotFoundForInference {
                    id: model_id.to_owned(),
                    instead: String::new(),
                });
            }
            let owned = texts.iter().map(|text| (*text).to_owned()).collect();
            self.0.lock().push((model_id.to_owned(), owned));
            let encode = |text: &&str| Encoded {
                output: match model_id {
                    "dense" => Output::Dense(Arc::from(vec![text.len() as f32])),
                    _ => Output::Sparse(Arc::new(TokenWeights::from_pairs(vec![((*text).into(), 1.0)]))),
                },
                token_count: 1,
                truncated_tokens: 0,
            };
            Ok(texts.iter().map(encode).collect())
        }

        fn fingerprint(&self, _model_id: &str) -> Option<String> {
            None
        }
    }

    fn query(text: &str) -> Query {
        let (node, _) = json::read(text.as_bytes()).expect("valid JSON");
        parse_query(&node, Context::new(10)).expect("valid query")
    }

    fn run(encoder: &Echo, query: &mut Query) -> Result<(), String> {
        resolve(encoder, &mut [query], &AtomicBool::new(false), None)
            .map_err(|error| format!("{} {}", error.status(), error.reason()))
    }

    #[test]
    fn texts_are_encoded_once_per_model_wherever_they_stand() {
        let mut tree = query(
            r#"{"bool": {
                "must": [{"text_expansion": {"v": {"model_id": "sparse", "model_text": "a"}}}],
                "should": [{"sparse_vector": {"field": "w", "inference_id": "sparse", "query": "a"}},
                           {"dis_max": {"queries": [{"constant_score": {"filter":
                               {"text_expansion": {"v": {"model_id": "sparse", "model_text": "bb"}}}}}]}}],
                "filter": {"knn": {"field": "d", "filter":
                    {"text_expansion": {"v": {"model_id": "sparse", "model_text": "ccc"}}},
                    "query_vector_builder": {"text_embedding": {"model_id": "dense", "model_text": "dddd"}}}}
            }}"#,
        );
        let uses = model_uses(&[&mut tree]);
        assert_eq!(uses.len(), 3);
        let encoder = Echo::default();
        run(&encoder, &mut tree).expect("encodes");
        assert_eq!(
            *encoder.0.lock(),
            [
                ("sparse".to_owned(), vec!["a".to_owned(), "bb".to_owned(), "ccc".to_owned()]),
                ("dense".to_owned(), vec!["dddd".to_owned()]),
            ]
        );
        assert!(model_uses(&[&mut tree]).is_empty());
        let QueryKind::Bool(tree) = tree.kind else { panic!("bool stays") };
        let QueryKind::Sparse(must) = &tree.must[0].kind else { panic!("sparse") };
        assert_eq!((must.field.as_str(), &must.tokens[..]), ("v", &[("a".into(), 1.0)][..]));
        let QueryKind::Knn(knn) = &tree.filter[0].kind else { panic!("knn") };
        assert_eq!(knn.vector, [4.0]);
        assert!(matches!(knn.filter[0].kind, QueryKind::Sparse(_)));
    }

    #[test]
    fn a_blank_text_matches_nothing() {
        let mut sparse = query(r#"{"text_expansion": {"v": {"model_id": "sparse", "model_text": " \n"}}}"#);
        run(&Echo::default(), &mut sparse).expect("encodes");
        assert!(matches!(sparse.kind, QueryKind::Sparse(clause) if clause.tokens.is_empty()));
        let mut dense = query(
            r#"{"knn": {"field": "d", "query_vector_builder":
                {"text_embedding": {"model_id": "dense", "model_text": ""}}}}"#,
        );
        run(&Echo::default(), &mut dense).expect("encodes");
        assert_eq!(dense.kind, QueryKind::MatchNone);
    }

    #[test]
    fn models_that_cannot_answer_are_errors() {
        let text = |model: &str| {
            query(&format!(r#"{{"text_expansion": {{"v": {{"model_id": "{model}", "model_text": "x"}}}}}}"#))
        };
        assert_eq!(
            run(&Echo::default(), &mut text("missing")),
            Err("404 Could not find trained model [missing]".to_owned())
        );
        let error = run(&Echo::default(), &mut text("dense")).expect_err("wrong kind");
        assert!(error.contains("makes dense vectors"), "{error}");
    }
}
