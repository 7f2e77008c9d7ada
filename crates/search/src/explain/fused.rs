//! Explanations of fused lists, in the words of Elasticsearch's rank documents.

use std::sync::atomic::AtomicBool;

use sparrow_tantivy_index::query::Explanation;

use super::super::error::SearchError;
use super::super::execute::{Branch, Key, Origin};
use super::super::target::{Hit, Target};
use super::of_queries;
use sparrow_search_body::fusion::{Method, Normalizer};
use sparrow_search_body::retriever::{Fusion, Retriever};
use sparrow_search_body::window::windows;
use sparrow_wire::java_float::f32_text;

/// Explains hits of a fusion by the ranked lists that it was made from.
pub fn explain(
    targets: &[Target],
    fusion: &Fusion,
    branch: &Branch,
    wanted: usize,
    hits: &[Hit],
    cancel: &AtomicBool,
) -> Result<Vec<Explanation>, SearchError> {
    let mut explained = Vec::with_capacity(hits.len());
    for hit in hits {
        explained.push(fused(targets, fusion, branch, wanted, hit, cancel)?);
    }
    Ok(explained)
}

/// Explains the score of a document in a fused list, which may be shown with a lower score than it has in its
/// window.
fn fused(
    targets: &[Target],
    fusion: &Fusion,
    branch: &Branch,
    wanted: usize,
    hit: &Hit,
    cancel: &AtomicBool,
) -> Result<Explanation, SearchError> {
    let key = Key::of(hit);
    let longest = windows(fusion.window, wanted).last().copied().unwrap_or_default();
    let origin = branch.origins.iter().find(|origin| origin.doc == key).copied();
    let origin = origin.unwrap_or(Origin { doc: key, window: longest, score: hit.score, shown: hit.score });
    let explanation = in_window(targets, fusion, branch, &origin, longest, hit, cancel)?;
    if origin.shown == origin.score {
        return Ok(explanation);
    }
    let description = format!(
        "shown no higher than the hit before it, which comes from a narrower window than the [{}] first hits of each list:",
        origin.window
    );
    Ok(Explanation::of(origin.shown, description, vec![explanation]))
}

/// Explains the score of a document in the window that its hit comes from, a number of hits of each list.
/// `longest` is the number of hits that the lists were actually read to.
fn in_window(
    targets: &[Target],
    fusion: &Fusion,
    branch: &Branch,
    origin: &Origin,
    longest: usize,
    hit: &Hit,
    cancel: &AtomicBool,
) -> Result<Explanation, SearchError> {
    let (key, window) = (origin.doc, origin.window);
    if fusion.is_calibrated() {
        return calibrated(targets, fusion, branch, origin, longest, hit, cancel);
    }
    if let (Some(rerank), [input], [list]) = (fusion.rerank(), &fusion.inputs[..], &branch.inputs[..]) {
        let inner_score =
            list.hits.iter().find(|(document, _)| *document == key).map_or(0.0, |(_, score)| *score);
        let inner = source(targets, &input.retriever, list, longest, hit, inner_score, cancel)?;
        let description = format!(
            "text_similarity_reranker match using inference endpoint: [{}] on document field: [{}] matching on source query \
             with score:",
            rerank.inference_id, rerank.field
        );
        return Ok(Explanation::of(origin.score, description, vec![inner]));
    }
    let mut details = Vec::with_capacity(branch.inputs.len());
    let (mut ranks, mut scores, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let mut sum = 0.0;
    for (number, (input, list)) in fusion.inputs.iter().zip(&branch.inputs).enumerate() {
        let alias = name_of(&input.retriever).map(|name| format!(" [{name}]")).unwrap_or_default();
        let which = format!("at index [{number}]{alias}");
        weights.push(f32_text(input.weight));
        let Some(index) = place(list, window, &key) else {
            let what = match fusion.method {
                Method::Rrf { .. } => "rrf",
                Method::Linear => "weighted",
            };
            ranks.push("0".to_owned());
            scores.push("0.0".to_owned());
            details
                .push(Explanation::no_match(format!("{what} score: [0], result not found in query {which}")));
            continue;
        };
        let inner_score = list.hits[index].1;
        let source = source(targets, &input.retriever, list, longest, hit, inner_score, cancel)?;
        let rank = index + 1;
        match fusion.method {
            Method::Rrf { rank_constant } => {
                let score = 1.0 / (rank_constant as f32 + rank as f32);
                sum += input.weight * score;
                let factor = match input.weight {
                    1.0 => String::new(),
                    weight => format!(" * weight [{}]", f32_text(weight)),
                };
                details.push(Explanation::of(
                    rank as f32,
                    format!(
                        "rrf score: [{}], for rank [{rank}] in query {which} computed as [1 / ({rank} + \
                         {rank_constant})]{factor}, for matching query with score",
                        f32_text(score)
                    ),
                    vec![source],
                ));
            }
            Method::Linear => {
                let normalize =
                    input.normalizer.normalize(list.hits.iter().take(window).map(|(_, score)| *score));
                let normalized = normalize(inner_score);
                let weighted = input.weight * normalized;
                sum += weighted;
                scores.push(f32_text(normalized));
                details.push(Explanation::of(
                    weighted,
                    format!(
                        "weighted score: [{}] in query {which} computed as [{} * {}] using score normalizer \
                         [{}] for original matching query with score:",
                        f32_text(weighted),
                        f32_text(input.weight),
                        f32_text(normalized),
                        Normalizer::name(input.normalizer),
                    ),
                    vec![source],
                ));
            }
        }
        ranks.push(rank.to_string());
    }
    let description = match fusion.method {
        Method::Rrf { rank_constant } => {
            let weighted = match fusion.inputs.iter().all(|input| input.weight == 1.0) {
                true => String::new(),
                false => format!(" and weights [{}]", weights.join(", ")),
            };
            format!(
                "rrf score: [{}] computed for initial ranks [{}] with rankConstant: [{rank_constant}]{weighted} \
                 as sum of [1 / (rank + rankConstant)] for each query",
                f32_text(sum),
                ranks.join(", ")
            )
        }
        Method::Linear => format!(
            "weighted linear combination score: [{}] computed for normalized scores [{}] and weights [{}] as \
             sum of (weight[i] * score[i]) for each query.",
            f32_text(sum),
            scores.join(", "),
            weights.join(", ")
        ),
    };
    // The sum in another order may differ in its last digit.
    Ok(Explanation::of(origin.score, description, details))
}

/// Position of a document among the first `window` hits of a list, from 0; `None` if it is not there.
fn place(list: &Branch, window: usize, key: &Key) -> Option<usize> {
    list.hits.iter().take(window).position(|(document, _)| document == key)
}

/// Explains a calibrated fusion's probability by the probabilities of its lists.
fn calibrated(
    targets: &[Target],
    fusion: &Fusion,
    branch: &Branch,
    origin: &Origin,
    longest: usize,
    hit: &Hit,
    cancel: &AtomicBool,
) -> Result<Explanation, SearchError> {
    let (key, window) = (origin.doc, origin.window);
    let mut details = Vec::with_capacity(branch.inputs.len());
    for (number, (input, list)) in fusion.inputs.iter().zip(&branch.inputs).enumerate() {
        // Nothing is known of a list that can hold no document.
        let Some(map) = input.map(key.target()) else { continue };
        let alias = name_of(&input.retriever).map(|name| format!(" [{name}]")).unwrap_or_default();
        let which = format!("query at index [{number}]{alias} with weight [{}]", f32_text(input.weight));
        let Some(index) = place(list, window, &key) else {
            let value = map.of_absent();
            let description = format!("calibrated score of a result not found in {which}");
            details.push(Explanation::new(value, description));
            continue;
        };
        let inner_score = list.hits[index].1;
        let description = format!("calibrated score in {which}, for original matching query with score:");
        let source = source(targets, &input.retriever, list, longest, hit, inner_score, cancel)?;
        details.push(Explanation::of(map.of_score(inner_score), description, vec![source]));
    }
    let description = "calibrated score, computed as the weighted mean of:";
    Ok(Explanation::of(origin.score, description, details))
}

/// Explains the score of a document in one of the fused lists.
fn source(
    targets: &[Target],
    retriever: &Retriever,
    list: &Branch,
    wanted: usize,
    hit: &Hit,
    score: f32,
    cancel: &AtomicBool,
) -> Result<Explanation, SearchError> {
    let query = match retriever {
        Retriever::Standard(standard) => &standard.query,
        // The neighbours over all indices: no one index can say it.
        Retriever::Knn(_) => return Ok(Explanation::new(score, "within top k documents")),
        Retriever::Fused(fusion) => {
            let explanation = fused(targets, fusion, list, wanted, hit, cancel)?;
            if explanation.value == score {
                return Ok(explanation);
            }
            return Ok(Explanation::of(score, "score after rescoring, of:", vec![explanation]));
        }
    };
    let queries: Vec<_> = targets.iter().map(|_| Some(query.clone())).collect();
    let mut explained = of_queries(targets, &queries, std::slice::from_ref(hit), cancel)?;
    let mut explanation = explained.pop().unwrap_or_else(|| Explanation::new(score, "score"));
    explanation.settle(score);
    Ok(explanation)
}

fn name_of(retriever: &Retriever) -> Option<&str> {
    match retriever {
        Retriever::Standard(standard) => standard.name.as_deref(),
        Retriever::Knn(knn) => knn.name.as_deref(),
        Retriever::Fused(fusion) => fusion.name.as_deref(),
    }
}
