//! `"normalizer": "calibrated"`: the scores of lists as probabilities that a document is relevant, which mean the same for
//! every question.
//!
//! Each list has a map of its own, fitted once for each model, and once for words: a logistic function (Platt scaling) of what
//! depends on the question as little as possible. That is the cosine of dense vectors; the dot product of token weights,
//! those of the question scaled to length one; BM25, divided by a measure of what the words of the question could reach
//! ([`sparrow_index::Snapshot::unit_of_words`]). The fused score of a document is the weighted mean of its probabilities. A
//! list without the document counts as one that gives it the score of nothing in common.
//!
//! So a fused score depends on the document, the question and the statistics of the index, and on no other hit.
//! `benches/calibration/` fits the maps. The mean of log-odds instead of probabilities fits a little better, but a list that
//! knows nothing of a document then outweighs two that are sure of it, and the order of the hits is worse.

use sparrow_call::error::EngineError;
use sparrow_encoder::Calibration;
use sparrow_index::query::QueryError;
use sparrow_mapping::{DenseVector, FieldType};
use sparrow_models::Models;
use sparrow_query::{Query, QueryKind, SemanticQuery, VectorKind};

use super::body::SearchBody;
use super::error::SearchError;
use super::execute::{Key, Target};
use super::fusion::{Fused, Method, Normalizer, Ranked, Ties, fuse};
use super::resolve::set_default_fields;
use super::retriever::{Fusion, Input, Retriever};
use crate::service::SearchService;

/// The map of scores by words, divided by [`sparrow_index::Snapshot::unit_of_words`]. `benches/results/calibration.json` has how
/// well it fits.
const WORDS: Calibration = Calibration { slope: 5.448, intercept: -3.462 };

/// From the score of a hit of one index in one list to a probability: the logistic function of `gain · score + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Map {
    gain: f32,
    offset: f32,
    /// Log-odds of a document that the list does not hold.
    absent: f32,
}

impl Map {
    /// The map of scores that are `unit · x + zero`, where `x` is what the calibration reads.
    fn new(calibration: Calibration, unit: f32, zero: f32) -> Self {
        let Calibration { slope, intercept } = calibration;
        // Where no score is possible, none is above that of nothing in common.
        let gain = if unit > 0.0 { slope / unit } else { 0.0 };
        Self { gain, offset: intercept - gain * zero, absent: intercept }
    }

    /// The probability that a hit is relevant, 0 to 1; the higher the score, the higher, or the same.
    pub fn of_score(self, score: f32) -> f32 {
        logistic(self.gain * score + self.offset)
    }

    /// The probability that a document is relevant which the list does not hold.
    pub fn of_absent(self) -> f32 {
        logistic(self.absent)
    }
}

fn logistic(log_odds: f32) -> f32 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Notes which models the clauses with a text name, before the texts become vectors.
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

/// Finds the map of each list for each index that is searched.
///
/// # Errors
/// When the scores of a list have no map: 400, with what to do about it.
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

/// The one clause that scores, below filters, and what its score is multiplied with.
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

/// The map of a list for one index; none where the list has no hit of it.
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
    let Some((_, vector)) = clause.vectors.iter().find(|(known, _)| known == id) else { return Ok(None) };
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
            "needs a [calibration.json] in the directory of model [{model}], which has none: fit one, or use the \
             normalizer [zscore]"
        ))
    })
}

fn unknown_model(key: &str) -> EngineError {
    refused(&format!("needs to know the model of a list: give it a text with [{key}], not a vector"))
}

fn refused(why: &str) -> EngineError {
    SearchError::illegal(format!("[linear] normalizer [calibrated] {why}")).into()
}

impl Input {
    /// The map of its scores for an index. An index in which the list can find nothing has that of another, for the sake of
    /// what is absent; none if the list can find nothing anywhere.
    pub fn map(&self, target: usize) -> Option<Map> {
        self.maps.get(target).copied().flatten().or_else(|| self.maps.iter().copied().flatten().next())
    }
}

/// Fuses the lists of a calibrated fusion, each best first. Scores are from 0 to 1.
pub fn fuse_calibrated(inputs: &[Input], lists: &[&[(Key, f32)]]) -> Vec<Fused<Key>> {
    // A list that can find nothing says nothing. The sum of such weights is more than single precision may hold.
    let total: f64 =
        inputs.iter().filter(|input| input.map(0).is_some()).map(|input| f64::from(input.weight)).sum();
    let share = |input: &Input| match input.map(0) {
        Some(_) if total > 0.0 => (f64::from(input.weight) / total) as f32,
        _ => 0.0,
    };
    // What a list adds to the probability that a document would have without it.
    let added: Vec<Vec<(Key, f32)>> = inputs
        .iter()
        .zip(lists)
        .map(|(input, hits)| {
            let more = |(key, score): &(Key, f32)| {
                let map = input.map(key.target());
                (*key, map.map_or(0.0, |map| map.of_score(*score) - map.of_absent()))
            };
            hits.iter().map(more).collect()
        })
        .collect();
    let ranked: Vec<Ranked<'_, Key>> = inputs
        .iter()
        .zip(&added)
        .map(|(input, hits)| Ranked { hits, weight: share(input), normalizer: Normalizer::None })
        .collect();
    let mut fused = fuse(Method::Linear, Ties::Document, &ranked);
    for hit in &mut fused {
        let absent = |input: &Input| input.map(hit.doc.target()).map_or(0.0, Map::of_absent);
        let least: f32 = inputs.iter().map(|input| share(input) * absent(input)).sum();
        hit.score = (hit.score + least).clamp(0.0, 1.0);
    }
    // What is absent counts differently from one index to another.
    fused.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc)));
    fused
}

#[cfg(test)]
#[path = "calibration_tests.rs"]
mod tests;
