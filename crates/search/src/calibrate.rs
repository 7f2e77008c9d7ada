//! Finds the calibration of each list of a calibrated fusion, once its texts are encoded.

use sparrow_encoder::Calibration;
use sparrow_mapping::{DenseVector, FieldType, Mapping};
use sparrow_models::Models;
use sparrow_query::{Query, QueryKind, SemanticQuery, VectorKind};
use sparrow_request::error::EngineError;
use sparrow_tantivy_index::query::QueryError;

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
        input.model = leaf(&input.retriever).and_then(model_of);
    }
}

/// The id of the model that the clause which gives a query its scores names, before its text is replaced by vectors.
pub fn model_of(query: &Query) -> Option<String> {
    match &scoring(query).0.kind {
        QueryKind::TextExpansion(clause) => Some(clause.model_id.clone()),
        QueryKind::KnnBuilder(clause) => Some(clause.model_id.clone()),
        _ => None,
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
            return Err(beside_boosts());
        }
        let kind = input.retriever.kind();
        let query = leaf(&input.retriever).filter(|_| input.rescore.is_empty());
        let Some(query) = query else { return Err(of_fused(kind)) };
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
    match scores(models, target.snapshot.mapping(), query, model)? {
        Scores::None => Ok(None),
        Scores::Mapped(map) => Ok(Some(map)),
        Scores::Words(clause, outer) => of_words(target, *clause, outer).map(Some),
    }
}

/// What the scores of a list are in one index.
pub enum Scores {
    /// The list finds nothing there.
    None,
    /// Scores of vectors, with their calibration.
    Mapped(Map),
    /// Scores of words, with the product of the boosts around the clause: their calibration depends on the documents.
    Words(Box<Query>, f32),
}

/// What the scores of a list are in an index with this mapping.
///
/// # Errors
/// Status 400 when they cannot be calibrated, with advice.
pub fn scores(
    models: &Models,
    mapping: &Mapping,
    query: &Query,
    model: Option<&str>,
) -> Result<Scores, EngineError> {
    let (clause, outer) = scoring(query);
    let boost = clause.boost * outer;
    match &clause.kind {
        QueryKind::MatchNone => Ok(Scores::None),
        QueryKind::Sparse(sparse) => {
            let Some(model) = model else { return Err(unknown_model("query")) };
            of_tokens(models, model, &sparse.tokens, boost).map(Scores::Mapped)
        }
        QueryKind::Knn(knn) => {
            let Some(model) = model else { return Err(unknown_model("query_vector_builder")) };
            match mapping.field(&knn.field) {
                Some(FieldType::DenseVector(field)) => {
                    of_vectors(models, model, Some(field), boost).map(Scores::Mapped)
                }
                Some(FieldType::SemanticText(field)) => {
                    of_vectors(models, model, field.dense.as_deref(), boost).map(Scores::Mapped)
                }
                _ => Ok(Scores::None),
            }
        }
        QueryKind::Semantic(semantic) => of_passages(models, mapping, semantic, boost),
        _ => Ok(Scores::Words(Box::new(clause.clone()), outer)),
    }
}

fn of_passages(
    models: &Models,
    mapping: &Mapping,
    clause: &SemanticQuery,
    boost: f32,
) -> Result<Scores, EngineError> {
    let Some(field) = mapping.semantic_field(&clause.field) else {
        return Ok(match &clause.otherwise {
            None => Scores::None,
            Some(kind) if **kind == QueryKind::MatchNone => Scores::None,
            Some(kind) => Scores::Words(Box::new(Query::new((**kind).clone())), boost),
        });
    };
    let id = field.search_id();
    let Some((_, vector)) = clause.vectors.iter().find(|(model, _)| model == id) else {
        return Ok(Scores::None);
    };
    let wants = |kind: VectorKind| clause.part.is_none_or(|part| part == kind);
    let sparse = vector.sparse().filter(|_| wants(VectorKind::Sparse));
    let dense = vector.dense().filter(|_| wants(VectorKind::Dense));
    match (sparse, dense) {
        (Some(_), Some(_)) => Err(refused(&format!(
            "takes the scores of one model, and field [{}] adds up those of two: use [query] and [fields] of the \
             retriever, or a [sparse_vector] and a [knn] list",
            clause.field
        ))),
        (Some(tokens), None) => of_tokens(models, id, tokens, boost).map(Scores::Mapped),
        (None, Some(_)) => of_vectors(models, id, field.dense.as_deref(), boost).map(Scores::Mapped),
        (None, None) => Ok(Scores::None),
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

fn of_words(target: &Target, mut clause: Query, outer: f32) -> Result<Map, EngineError> {
    if !target.default_fields.is_empty() {
        set_default_fields(&mut clause, &target.default_fields);
    }
    let failed = |source: QueryError| SearchError::Query { shard: target.shard.clone(), source };
    match target.snapshot.unit_of_words(&clause).map_err(failed)? {
        Some(unit) => Ok(Map::new(WORDS, unit * outer, 0.0)),
        None => Err(not_of_words()),
    }
}

/// The error for a list whose scores are neither those of words nor those of a model.
pub fn not_of_words() -> EngineError {
    refused(
        "takes the scores of words ([match], [multi_match], [dis_max] of them) or of a model ([semantic], \
         [sparse_vector], [knn]), with or without filters",
    )
}

fn calibration(models: &Models, model: &str, kind: VectorKind) -> Result<Calibration, EngineError> {
    // A hybrid endpoint has two models.
    let of = match kind {
        VectorKind::Sparse => "sparse",
        VectorKind::Dense => "dense",
    };
    models.calibration(model, kind).ok_or_else(|| {
        refused(&format!(
            "needs a [calibration.json] in the folder of the {of} model of [{model}], which has none: make one with \
             [sparrow models calibrate FOLDER] and restart the server, or use the normalizer [zscore]"
        ))
    })
}

/// The error for a calibration beside boosts of indices.
pub fn beside_boosts() -> EngineError {
    refused("cannot be combined with [indices_boost]")
}

/// The error for a list that another retriever than a query or a kNN search makes.
pub fn of_fused(kind: &str) -> EngineError {
    refused(&format!("takes the scores of a query or a kNN search, not of a [{kind}] retriever"))
}

fn unknown_model(key: &str) -> EngineError {
    refused(&format!("needs to know the model of a list: give it a text with [{key}], not a vector"))
}

fn refused(why: &str) -> EngineError {
    SearchError::illegal(format!("[linear] normalizer [calibrated] {why}")).into()
}
