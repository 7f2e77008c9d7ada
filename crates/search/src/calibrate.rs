//! Finds the calibration of each list of a calibrated fusion, once its texts are encoded.

use sparrow_call::error::EngineError;
use sparrow_encoder::Calibration;
use sparrow_index::query::QueryError;
use sparrow_mapping::{DenseVector, FieldType};
use sparrow_models::Models;
use sparrow_query::{Query, QueryKind, SemanticQuery, VectorKind};

use super::error::SearchError;
use super::resolve::set_default_fields;
use super::target::Target;
use crate::service::SearchService;
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::calibration::{Map, WORDS};
use sparrow_search_body::fusion::Normalizer;
use sparrow_search_body::retriever::{Fusion, Retriever};

/// Records which models the clauses with a text name, before the texts are replaced by vectors.
pub fn note_models(fusion: &mut Fusion) {
    for input in &mut fusion.inputs {
        if let Retriever::Fused(inner) = &mut input.retriever {
            note_models(inner);
        }
        if input.normalizer != Normalizer::Calibrated {
            continue;
        }
        input.model = match leaf(&input.retriever).map(|query| &scoring(query).0.kind) {
            Some(QueryKind::TextExpansion(clause)) => Some(clause.model_id.clone()),
            Some(QueryKind::KnnBuilder(clause)) => Some(clause.model_id.clone()),
            _ => None,
        };
    }
}

/// Finds the calibration of each list for each index that is searched.
///
/// # Errors
/// Status 400 when the scores of a list cannot be calibrated, with advice.
pub fn bind(service: &SearchService, targets: &[Target], body: &mut SearchBody) -> Result<(), EngineError> {
    let boosts = !body.indices_boost.is_empty();
    match &mut body.fusion {
        Some(fusion) => bind_tree(&service.models, targets, fusion, boosts),
        None => Ok(()),
    }
}

fn bind_tree(
    models: &Models,
    targets: &[Target],
    fusion: &mut Fusion,
    boosts: bool,
) -> Result<(), EngineError> {
    for input in &mut fusion.inputs {
        if let Retriever::Fused(inner) = &mut input.retriever {
            bind_tree(models, targets, inner, boosts)?;
        }
        if input.normalizer != Normalizer::Calibrated {
            continue;
        }
        if boosts {
            return Err(refused("cannot be combined with [indices_boost]"));
        }
        let kind = input.retriever.kind();
        let query = leaf(&input.retriever).filter(|_| input.rescore.is_empty());
        let Some(query) = query else {
            return Err(refused(&format!(
                "takes the scores of a query or a kNN search, not of a [{kind}] retriever"
            )));
        };
        let maps = targets.iter().map(|target| map(models, target, query, input.model.as_deref()));
        input.maps = maps.collect::<Result<_, _>>()?;
    }
    Ok(())
}

/// The query of a retriever that fuses nothing.
fn leaf(retriever: &Retriever) -> Option<&Query> {
    match retriever {
        Retriever::Standard(standard) => Some(&standard.query),
        Retriever::Knn(knn) => Some(&knn.search.query),
        Retriever::Fused(_) => None,
    }
}

/// The clause that gives a query its scores, inside `bool` clauses that only filter, and the product of these clauses' boosts.
fn scoring(mut query: &Query) -> (&Query, f32) {
    let mut boost = 1.0;
    while let QueryKind::Bool(tree) = &query.kind
        && tree.should.is_empty()
        && let [one] = &tree.must[..]
    {
        boost *= query.boost;
        query = one;
    }
    (query, boost)
}

/// The calibration of a list for one index; none if the list finds nothing there.
fn map(
    models: &Models,
    target: &Target,
    query: &Query,
    model: Option<&str>,
) -> Result<Option<Map>, EngineError> {
    let (clause, outer) = scoring(query);
    let boost = clause.boost * outer;
    match &clause.kind {
        QueryKind::MatchNone => Ok(None),
        QueryKind::Sparse(sparse) => {
            let Some(model) = model else { return Err(unknown_model("query")) };
            of_tokens(models, model, &sparse.tokens, boost).map(Some)
        }
        QueryKind::Knn(knn) => {
            let Some(model) = model else { return Err(unknown_model("query_vector_builder")) };
            match target.snapshot.mapping().field(&knn.field) {
                Some(FieldType::DenseVector(field)) => {
                    of_vectors(models, model, Some(field), boost).map(Some)
                }
                Some(FieldType::SemanticText(field)) => {
                    of_vectors(models, model, field.dense.as_deref(), boost).map(Some)
                }
                _ => Ok(None),
            }
        }
        QueryKind::Semantic(semantic) => of_passages(models, target, semantic, boost),
        _ => of_words(target, clause, outer).map(Some),
    }
}

fn of_passages(
    models: &Models,
    target: &Target,
    clause: &SemanticQuery,
    boost: f32,
) -> Result<Option<Map>, EngineError> {
    let Some(field) = target.snapshot.mapping().semantic_field(&clause.field) else {
        return match &clause.otherwise {
            None => Ok(None),
            Some(kind) if **kind == QueryKind::MatchNone => Ok(None),
            Some(kind) => of_words(target, &Query::new((**kind).clone()), boost).map(Some),
        };
    };
    let id = field.search_id();
    let Some((_, vector)) = clause.vectors.iter().find(|(model, _)| model == id) else { return Ok(None) };
    let wants = |kind: VectorKind| clause.part.is_none_or(|part| part == kind);
    let sparse = vector.sparse().filter(|_| wants(VectorKind::Sparse));
    let dense = vector.dense().filter(|_| wants(VectorKind::Dense));
    match (sparse, dense) {
        (Some(_), Some(_)) => Err(refused(&format!(
            "takes the scores of one model, and field [{}] adds up those of two: use [query] and [fields] of the \
             retriever, or a [sparse_vector] and a [knn] list",
            clause.field
        ))),
        (Some(tokens), None) => of_tokens(models, id, tokens, boost).map(Some),
        (None, Some(_)) => of_vectors(models, id, field.dense.as_deref(), boost).map(Some),
        (None, None) => Ok(None),
    }
}

fn of_tokens(
    models: &Models,
    model: &str,
    tokens: &[(Box<str>, f32)],
    boost: f32,
) -> Result<Map, EngineError> {
    let calibration = calibration(models, model, VectorKind::Sparse)?;
    let length = tokens.iter().map(|(_, weight)| weight * weight).sum::<f32>().sqrt();
    Ok(Map::new(calibration, length * boost, 0.0))
}

fn of_vectors(
    models: &Models,
    model: &str,
    field: Option<&DenseVector>,
    boost: f32,
) -> Result<Map, EngineError> {
    let calibration = calibration(models, model, VectorKind::Dense)?;
    if field.is_some_and(|field| !field.scores_cosine()) {
        return Err(refused("takes vectors whose similarity is [cosine] or [dot_product]"));
    }
    // A score is (1 + cos) / 2.
    Ok(Map::new(calibration, boost / 2.0, boost / 2.0))
}

fn of_words(target: &Target, clause: &Query, outer: f32) -> Result<Map, EngineError> {
    let mut clause = clause.clone();
    if !target.default_fields.is_empty() {
        set_default_fields(&mut clause, &target.default_fields);
    }
    let failed = |source: QueryError| SearchError::Query { shard: target.shard.clone(), source };
    match target.snapshot.unit_of_words(&clause).map_err(failed)? {
        Some(unit) => Ok(Map::new(WORDS, unit * outer, 0.0)),
        None => Err(refused(
            "takes the scores of words ([match], [multi_match], [dis_max] of them) or of a model ([semantic], \
             [sparse_vector], [knn]), with or without filters",
        )),
    }
}

fn calibration(models: &Models, model: &str, kind: VectorKind) -> Result<Calibration, EngineError> {
    models.calibration(model, kind).ok_or_else(|| {
        refused(&format!(
            "needs a [calibration.json] in the folder of the model of [{model}], which has none: make one with \
             [sparrow models calibrate FOLDER] and restart the server, or use the normalizer [zscore]"
        ))
    })
}

fn unknown_model(key: &str) -> EngineError {
    refused(&format!("needs to know the model of a list: give it a text with [{key}], not a vector"))
}

fn refused(why: &str) -> EngineError {
    SearchError::illegal(format!("[linear] normalizer [calibrated] {why}")).into()
}
