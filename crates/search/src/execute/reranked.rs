//! Reranking: the first hits of a list are scored again by a cross-encoder that reads their texts.

use std::sync::atomic::AtomicBool;

use sparrow_mapping::values_at;
use sparrow_models::{ModelError, Models};
use sparrow_runtime::work::{self, Stopped};

use super::best_chunks::best_chunks;
use super::fused::{Branch, Origin};
use super::key::Key;
use super::{Run, Target};
use crate::error::SearchError;
use sparrow_search_body::retriever::Rerank;
use sparrow_tantivy_index::IndexError;
use sparrow_tantivy_index::query::QueryError;

/// Number of documents whose texts are in memory at the same time.
const PORTION: usize = 64;

impl Run<'_> {
    /// Reranks the hits of a list. The hits of each window are ordered by their new scores and follow those
    /// of the window before, so that no page depends on which other pages are asked for. Hits below the
    /// retriever's lowest score are left out.
    pub(super) fn reranked(
        &self,
        rerank: &Rerank,
        list: &Branch,
        windows: &[usize],
    ) -> Result<Vec<Origin>, SearchError> {
        let longest = windows.last().copied().unwrap_or_default();
        let first: Vec<Key> = list.hits.iter().take(longest).map(|hit| hit.0).collect();
        let scores = self.scores(rerank, &first)?;
        let scored: Vec<(Key, f32)> = first.into_iter().zip(scores).collect();
        let mut hits = Vec::with_capacity(scored.len());
        let (mut start, mut lowest) = (0, f32::MAX);
        for window in windows {
            let end = scored.len().min(*window);
            let mut page: Vec<(Key, f32)> = scored[start..end]
                .iter()
                .filter(|(_, score)| rerank.min_score.is_none_or(|least| *score >= least))
                .copied()
                .collect();
            page.sort_by(|one, other| other.1.total_cmp(&one.1));
            for (key, score) in page {
                // Scores behind a window may be higher than the last one before it; they are shown as they follow.
                let score = positive(score);
                lowest = lowest.min(score);
                hits.push(Origin { doc: key, window: *window, score, shown: lowest });
            }
            start = end;
        }
        Ok(hits)
    }

    /// The model's score of each document. If the time limit is reached and partial results are allowed,
    /// there are fewer scores than documents.
    fn scores(&self, rerank: &Rerank, documents: &[Key]) -> Result<Vec<f32>, SearchError> {
        let Some(models) = &rerank.models else {
            let reason = "the inference endpoint was not looked at".to_owned();
            return Err(ModelError::Inference { reason }.into());
        };
        let mut scores = Vec::with_capacity(documents.len());
        for documents in documents.chunks(PORTION) {
            let mut texts = Vec::with_capacity(documents.len());
            for key in documents {
                let target = &self.targets[key.target()];
                texts.push(text_of(target, rerank, *key)?);
            }
            let scored = scores_of_texts(models, rerank, &texts, self.cancel)
                .map_err(|stopped| self.targets[documents[0].target()].stopped(stopped))?;
            match scored {
                Ok(scored) => scores.extend(scored),
                Err(ModelError::Cancelled) if self.partial => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(scores)
    }
}

/// The model's score of each text: that of its best part, if the retriever says that only parts of it are read.
///
/// # Errors
/// [`Stopped`] when the request must stop while texts are cut; the inner error is the model's.
pub fn scores_of_texts(
    models: &Models,
    rerank: &Rerank,
    texts: &[String],
    cancel: &AtomicBool,
) -> Result<Result<Vec<f32>, ModelError>, Stopped> {
    let mut read: Vec<Vec<&str>> = Vec::with_capacity(texts.len());
    for text in texts {
        let best = match &rerank.chunks {
            Some(wanted) => best_chunks(text, &rerank.text, wanted)?,
            None => Vec::new(),
        };
        // A text without words is read as it is, too.
        read.push(if best.is_empty() { vec![text] } else { best });
    }
    let flat: Vec<&str> = read.iter().flatten().copied().collect();
    let scored = models.rerank(&rerank.inference_id, &rerank.text, &flat, Some(cancel), None);
    Ok(scored.map(|scored| {
        let mut scored = scored.iter().map(|scored| scored.score);
        let best = |parts: &Vec<&str>| scored.by_ref().take(parts.len()).fold(f32::NEG_INFINITY, f32::max);
        read.iter().map(best).collect()
    }))
}

/// Maps a model's score to a hit's score, at least 0 and in the same order, by Elasticsearch's formula.
fn positive(score: f32) -> f32 {
    score.max(0.0) + score.exp().min(1.0)
}

/// The text of a document's field, as its source has it: the first value, or an empty one.
fn text_of(target: &Target, rerank: &Rerank, key: Key) -> Result<String, SearchError> {
    let failed = |source: QueryError| SearchError::Query { shard: target.shard.clone(), source };
    work::check().map_err(|stopped| target.stopped(stopped))?;
    let mapping = target.snapshot.mapping();
    if !mapping.source_filter().enabled {
        return Err(SearchError::OfShard {
            shard: target.shard.clone(),
            kind: "illegal_argument_exception",
            reason: format!(
                "Unable to retrieve the requested [fields] since _source is disabled in the mappings for index [{}]",
                target.shard.index
            ),
        });
    }
    let unreadable = |error: IndexError| failed(QueryError::Io(std::io::Error::other(error.to_string())));
    let stored = target.snapshot.fetch(key.addr()).map_err(unreadable)?;
    let source: serde_json::Value = serde_json::from_slice(&stored.source).unwrap_or_default();
    let mut values = Vec::new();
    values_at(&source, &mapping.source_path(&rerank.field), &mut values);
    let text = values.into_iter().find_map(|value| match value {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(_) | serde_json::Value::Bool(_) => Some(value.to_string()),
        _ => None,
    });
    Ok(text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::positive;

    #[test]
    fn positive_scores_keep_the_order() {
        let scores = [-200.0, -11.0, -1.0, -0.5, 0.0, 0.5, 1.0, 9.0];
        let positive: Vec<f32> = scores.iter().map(|score| positive(*score)).collect();
        assert!(positive.is_sorted() && positive[0] >= 0.0);
        assert_eq!((positive[4], positive[6]), (1.0, 2.0));
    }
}
