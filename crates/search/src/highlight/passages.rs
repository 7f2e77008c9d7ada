//! The `semantic` highlighter of `semantic_text` fields: a document's best passages, as they stand in its texts.

use serde_json::Value;
use sparrow_mapping::Mapping;
use sparrow_mapping::passages::{self, PassageVector};
use sparrow_query::{Query, QueryKind};
use sparrow_tantivy_index::DocAddress;
use sparrow_tantivy_index::query::DENSE_SHARE;

use super::encoded;
use crate::error::SearchError;
use sparrow_catalog::texts::values_at;
use sparrow_query::walk;
use sparrow_search_body::highlight::{Highlight, Kind};
use sparrow_wire::glob;

/// Texts of the `number` best passages of a field by score, in the order of the text unless `by_score`.
/// Without a clause on the field every passage scores the same.
pub(super) fn best(
    path: &str,
    mapping: &Mapping,
    queries: &[&Query],
    payload: Option<&[u8]>,
    source: &Value,
    number: usize,
    by_score: bool,
) -> Vec<String> {
    let fields = payload.and_then(passages::decode).unwrap_or_default();
    let Some((stored, _)) = mapping.searched_slot(path) else { return Vec::new() };
    let Some(field) = fields.iter().find(|field| field.path == stored) else { return Vec::new() };
    // Each with the factor on its dense part.
    let mut wanted: Vec<(PassageVector, f32)> = Vec::new();
    let mut all = false;
    let is_same = |name: &str| mapping.concrete(name) == mapping.concrete(path);
    for query in queries {
        walk::visit(query, &mut |clause| match &clause.kind {
            QueryKind::Semantic(clause) if is_same(&clause.field) => {
                let id = mapping.semantic_field(path).map(|field| field.search_id());
                let of_field = clause.vectors.iter().find(|(of, _)| Some(of.as_str()) == id);
                // The lists of a fusion search by one kind each; a passage is worth what all of them make of it.
                wanted.extend(of_field.map(|(id, vector)| (vector.clone(), clause.dense_factor(id))));
            }
            QueryKind::Sparse(clause) if is_same(&clause.field) => {
                wanted.push((PassageVector::Sparse(clause.tokens.clone()), 1.0));
            }
            QueryKind::Knn(clause) if is_same(&clause.field) => {
                wanted.push((PassageVector::Dense(clause.vector.clone()), 1.0));
            }
            QueryKind::MatchAll => all = true,
            _ => {}
        });
    }
    if wanted.is_empty() && !all {
        return Vec::new();
    }
    let mut scored: Vec<(usize, f32)> = field
        .chunks
        .iter()
        .enumerate()
        .filter_map(|(at, chunk)| {
            let best = wanted
                .iter()
                .filter_map(|(query, factor)| score(query, &chunk.vector, *factor))
                .fold(None, |best, score| Some(best.map_or(score, |best: f32| best.max(score))));
            // Found by something else, all of them may be shown.
            best.or(wanted.is_empty().then_some(1.0)).map(|score| (at, score))
        })
        .collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    scored.truncate(number);
    if !by_score {
        scored.sort_unstable_by_key(|(at, _)| *at);
    }
    let texts: Vec<String> =
        field.sources.iter().map(|source_path| values_at(source, source_path).join(" ")).collect();
    scored
        .into_iter()
        .filter_map(|(at, _)| {
            let chunk = &field.chunks[at];
            let text = texts.get(usize::from(chunk.source))?;
            text.get(chunk.start as usize..chunk.end as usize).map(str::to_owned)
        })
        .collect()
}

/// The best passages of a document whose index is kept elsewhere, by the paths of its `semantic_text` fields that are to be highlighted.
///
/// # Errors
/// When the options of a field contradict each other.
pub fn best_passages(
    mapping: &Mapping,
    highlight: &Highlight,
    queries: &[&Query],
    payload: Option<&[u8]>,
    source: &Value,
) -> Result<Vec<(String, Vec<String>)>, SearchError> {
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    for (name, options) in highlight.fields()? {
        if options.kind_given && options.kind != Kind::Semantic {
            continue;
        }
        let number = if options.number_of_fragments == 0 { usize::MAX } else { options.number_of_fragments };
        for path in mapping.semantic_fields().iter().filter(|path| glob::matches(name, path)) {
            let texts = best(path, mapping, queries, payload, source, number, options.by_score);
            if !texts.is_empty() && !out.iter().any(|(known, _)| known == path) {
                out.push((path.clone(), texts.iter().map(|text| encoded(text, options.html)).collect()));
            }
        }
    }
    Ok(out)
}

/// Similarity of a passage to a query; `None` if they have nothing in common.
fn score(query: &PassageVector, passage: &PassageVector, factor: f32) -> Option<f32> {
    let sparse =
        query.sparse().zip(passage.sparse()).and_then(|(query, passage)| shared_weight(query, passage));
    let dense = query.dense().zip(passage.dense()).and_then(|(query, passage)| cosine(query, passage));
    match (sparse, dense) {
        // As the clause itself scores: what is not near has its sparse score alone.
        (Some(sparse), Some(dense)) => Some(sparse + factor * DENSE_SHARE * (1.0 + dense) / 2.0),
        (None, Some(dense)) if query.sparse().is_some() => Some(factor * DENSE_SHARE * (1.0 + dense) / 2.0),
        (one, other) => one.or(other),
    }
}

fn shared_weight(query: &[(Box<str>, f32)], passage: &[(Box<str>, f32)]) -> Option<f32> {
    let mut shared = None;
    for (token, weight) in query {
        if let Some((_, stored)) = passage.iter().find(|(other, _)| other == token) {
            *shared.get_or_insert(0.0) += weight * stored;
        }
    }
    shared
}

fn cosine(query: &[f32], passage: &[f32]) -> Option<f32> {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let length = dot(query, query).sqrt() * dot(passage, passage).sqrt();
    (query.len() == passage.len() && length > 0.0).then(|| dot(query, passage) / length)
}

/// The stored payload of a document's passages, encoded.
pub(super) fn payload(target: &super::super::target::Target, addr: DocAddress) -> Option<Vec<u8>> {
    target.snapshot.fetch(addr).ok()?.passages
}
