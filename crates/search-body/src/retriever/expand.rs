//! What the short form of `rrf` and `linear` stands for in the indices that are searched: a full-text list
//! over the text fields, and for every `semantic_text` field a list for each kind of vector that it has.
//!
//! Weights, rank constants and windows are the same for all. docs/hybrid-search.md has the measurements that
//! they were chosen by.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sparrow_mapping::{FieldType, Mapping, SemanticModel};
use sparrow_query::{Operator, Query, QueryKind, SemanticQuery, VectorKind};
use sparrow_request::error::EngineError;
use sparrow_runtime::work::{self, Stopped};
use sparrow_wire::glob;

use super::super::fusion::{Method, Normalizer};
use super::{Fusion, Input, Retriever, Standard, check_lists};
use crate::window::Window;

/// Weight of each kind of list in a fusion.
#[derive(Debug, Clone, Copy)]
struct Weights {
    words: f32,
    sparse: f32,
    dense: f32,
}

/// Default weights of the lists, for the fusion of ranks as well as of scores, but for sparse lists under `zscore`.
const WEIGHTS: Weights = Weights { words: 1.0, sparse: 1.0, dense: 1.5 };
/// Weight of sparse lists where deviations are added up (`zscore`): sparse vectors hold the words too, which would count twice.
const SPARSE_OF_DEVIATIONS: f32 = 0.7;
/// Default `rank_constant` of reciprocal rank fusion. The usual 60 makes the lists' first places count little
/// more than their twentieth, so that two poor lists outvote a good one.
const RANK_CONSTANT: u32 = 5;
/// Number of hits of each list that are fused, unless the request sets a window or asks for more hits.
const WINDOW: usize = 100;

/// The short form of a compound retriever: a text to be searched in fields of the indices.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortForm {
    /// The text to search for.
    pub text: String,
    /// Fields that the request names, with their weights; `None` for all fields.
    pub fields: Option<Vec<(String, f32)>>,
    /// Whether the request sets a `rank_constant`.
    pub names_constant: bool,
    /// Whether documents that have all words of the text make a list of their own: in a sum of scores of which the request does not say how
    /// they are normalized.
    pub with_all_words: bool,
}

/// Replaces each short form in a fusion by the lists that it stands for.
///
/// # Errors
/// When a search would have more lists than [`MAX_LISTS`](super::MAX_LISTS), or the request must stop.
pub fn expand(fusion: &mut Fusion, mappings: &[Arc<Mapping>]) -> Result<(), EngineError> {
    expand_tree(fusion, mappings)?;
    Ok(check_lists(fusion.queries().len())?)
}

fn expand_tree(fusion: &mut Fusion, mappings: &[Arc<Mapping>]) -> Result<(), Stopped> {
    let mut lists = Vec::with_capacity(fusion.inputs.len());
    for mut input in std::mem::take(&mut fusion.inputs) {
        match &mut input.retriever {
            Retriever::Standard(standard) => match standard.short.take() {
                Some(short) => of_short_form(fusion, &short, &input, mappings, &mut lists)?,
                None => lists.push(input),
            },
            Retriever::Fused(inner) => {
                expand_tree(inner, mappings)?;
                lists.push(input);
            }
            Retriever::Knn(_) => lists.push(input),
        }
    }
    fusion.inputs = lists;
    Ok(())
}

/// Appends the lists that a short form stands for to `lists`. `input` is its full-text list.
fn of_short_form(
    fusion: &mut Fusion,
    short: &ShortForm,
    input: &Input,
    mappings: &[Arc<Mapping>],
    lists: &mut Vec<Input>,
) -> Result<(), Stopped> {
    let semantic = semantic_fields(short, mappings)?;
    if semantic.is_empty() {
        lists.push(input.clone());
        return Ok(());
    }
    if let Window::Default(window) = fusion.window {
        fusion.window = Window::Default(window.max(WINDOW));
    }
    if let Method::Rrf { rank_constant } = &mut fusion.method
        && !short.names_constant
    {
        *rank_constant = RANK_CONSTANT;
    }
    let mut all_words = None;
    if let Some((fields, weight)) = words(short, mappings) {
        let of_words = |operator: Operator| {
            let fields = fields.clone();
            let clause = move |kind: &mut QueryKind| {
                if let QueryKind::MultiMatch(clause) = kind {
                    clause.fields = fields;
                    clause.words_only = true;
                    clause.template.operator = operator;
                }
            };
            list(input, WEIGHTS.words * weight, clause)
        };
        lists.extend(of_words(Operator::Or));
        // A list that a small window cuts does not tell how many documents have the words.
        if short.with_all_words && fusion.window.first() >= WINDOW {
            all_words = of_words(Operator::And);
        }
    }
    let filter = filters(input);
    let adds_deviations = fusion.method == Method::Linear && input.normalizer == Normalizer::ZScore;
    let sparse_weight = if adds_deviations { SPARSE_OF_DEVIATIONS } else { WEIGHTS.sparse };
    // However many fields there are, they count as much together as one.
    let share = 1.0 / semantic.iter().filter(|field| field.sparse || field.dense).count().max(1) as f32;
    for SemanticField { path, weight, sparse, dense } in semantic {
        let parts = [(VectorKind::Sparse, sparse_weight, sparse), (VectorKind::Dense, WEIGHTS.dense, dense)];
        for (part, of_kind, _) in parts.into_iter().filter(|(_, _, has_such)| *has_such) {
            // Each list has the text and the filters.
            work::check()?;
            let clause = |kind: &mut QueryKind| {
                *kind = QueryKind::Semantic(SemanticQuery {
                    field: path.clone(),
                    text: short.text.clone(),
                    filter: filter.clone(),
                    part: Some(part),
                    // In an index where the field is of another type, the list of words has it.
                    otherwise: Some(Box::new(QueryKind::MatchNone)),
                    ..SemanticQuery::default()
                });
            };
            lists.extend(list(input, of_kind * weight * share, clause));
        }
    }
    lists.extend(all_words.map(|list| Input { normalizer: Normalizer::Rarity, ..list }));
    Ok(())
}

/// A list with the filters of `input` but another query in place of its full-text query; `None` if `weight`
/// is 0 or less, or if `input` is no standard retriever.
fn list(input: &Input, weight: f32, replace: impl FnOnce(&mut QueryKind)) -> Option<Input> {
    if weight <= 0.0 {
        return None;
    }
    let Retriever::Standard(Standard { query, .. }) = &input.retriever else { return None };
    let mut query: Query = query.clone();
    let mut replace = Some(replace);
    // The words are the first clause of a text: filters are put around them.
    sparrow_query::walk::change_all(&mut query, &mut |kind| {
        if matches!(kind, QueryKind::MultiMatch(_))
            && let Some(replace) = replace.take()
        {
            replace(kind);
        }
    });
    Some(Input { weight, ..Input { retriever: Retriever::Standard(Standard::new(query)), ..input.clone() } })
}

/// The filters around the full-text query of a short form, which also restrict where nearest neighbours are
/// looked for.
fn filters(input: &Input) -> Vec<Query> {
    let mut filters = Vec::new();
    let Retriever::Standard(standard) = &input.retriever else { return filters };
    let mut query = &standard.query;
    while let QueryKind::Bool(tree) = &query.kind {
        filters.extend_from_slice(&tree.filter);
        let Some(inner) = tree.must.first() else { break };
        query = inner;
    }
    filters
}

/// The text fields to search with their weights, and the weight of the list: that of its heaviest field.
/// `None` if the request names `semantic_text` fields only. A field may be `semantic_text` in one index and
/// not in another.
fn words(short: &ShortForm, mappings: &[Arc<Mapping>]) -> Option<(Vec<(String, f32)>, f32)> {
    let Some(fields) = &short.fields else { return Some((Vec::new(), 1.0)) };
    let is_semantic = |name: &str| {
        let mut types = mappings.iter().filter_map(|mapping| mapping.field(name)).peekable();
        types.peek().is_some() && types.all(|found| matches!(found, FieldType::SemanticText(_)))
    };
    let of_words: Vec<(String, f32)> =
        fields.iter().filter(|(name, _)| !is_semantic(name)).cloned().collect();
    let heaviest = of_words
        .iter()
        .map(|(_, weight)| *weight)
        .fold(None, |most: Option<f32>, weight| Some(most.map_or(weight, |most| most.max(weight))))?;
    Some((of_words, heaviest))
}

/// A `semantic_text` field, with the kinds of vectors that it has in any of the indices.
struct SemanticField {
    path: String,
    weight: f32,
    sparse: bool,
    dense: bool,
}

/// The `semantic_text` fields in which a short form's text is searched.
fn semantic_fields(short: &ShortForm, mappings: &[Arc<Mapping>]) -> Result<Vec<SemanticField>, Stopped> {
    let mut fields: Vec<SemanticField> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for mapping in mappings {
        for path in mapping.semantic_fields() {
            work::check()?;
            let Some(FieldType::SemanticText(field)) = mapping.field(path) else { continue };
            let weight = match &short.fields {
                None => Some(1.0),
                // A field that is named twice counts for both, as in a query over several fields.
                Some(fields) => fields
                    .iter()
                    .filter(|(name, _)| {
                        *path == mapping.concrete(name) || (name.contains('*') && glob::matches(name, path))
                    })
                    .map(|(_, weight)| *weight)
                    .reduce(|product, weight| product * weight),
            };
            let Some(weight) = weight else { continue };
            let (sparse, dense) = match field.model {
                // No document of the index has a value yet.
                None => (false, false),
                Some(SemanticModel::Sparse) => (true, false),
                Some(SemanticModel::Dense { .. }) => (false, true),
                Some(SemanticModel::Hybrid { .. }) => (true, true),
            };
            match places.get(path.as_str()) {
                Some(place) => {
                    fields[*place].sparse |= sparse;
                    fields[*place].dense |= dense;
                }
                None => {
                    places.insert(path, fields.len());
                    fields.push(SemanticField { path: path.clone(), weight, sparse, dense });
                }
            }
        }
    }
    Ok(fields)
}
