//! `rerank`: texts in the order of how well they answer a question.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sparrow_encoder::Scored;
use sparrow_inference::weight_to_json;
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply};

use sparrow_wire::shape::{Named, flag, int};

use super::endpoint::{Endpoint, RerankSettings, TaskType};
use super::problems::Problems;
use crate::{ModelError, Models};

impl RerankSettings {
    pub(super) fn members() -> [Named; 2] {
        [("return_documents", flag().preset(true)), ("top_n", int())]
    }

    /// Removes these settings from `task_settings` and parses them.
    ///
    /// # Errors
    /// Status 400 for a value of the wrong type or out of range.
    pub(super) fn take(settings: &mut Map<String, Value>) -> Result<Self, EngineError> {
        const SCOPE: &str = "task_settings";
        let mut problems = Problems::default();
        let return_documents = match settings.get("return_documents") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(shown)) => Some(*shown),
            Some(other) => {
                problems.wrong_type("return_documents", other, "Boolean");
                None
            }
        };
        let top_n = problems.positive(settings, "top_n", SCOPE);
        problems.done()?;
        settings.retain(|name, _| !["return_documents", "top_n"].contains(&name.as_str()));
        Ok(Self { return_documents, top_n })
    }
}

/// Scores texts with an endpoint and builds the response: the best texts first, those with equal scores in their original order.
///
/// # Errors
/// As [`Models::rerank`].
pub(super) fn answer(
    models: &Models,
    endpoint: &Endpoint,
    question: &str,
    texts: &[&str],
    settings: RerankSettings,
    cancel: &CancelFlag,
    timeout: Duration,
) -> Result<Reply, EngineError> {
    let flag = cancel.flag();
    let scores =
        models.rerank(&endpoint.inference_id, question, texts, Some(flag.as_ref()), Some(timeout))?;
    let tokens = scores.iter().map(|scored| scored.token_count).sum();
    let settings = settings.or(endpoint.rerank.unwrap_or_default());
    let shows_texts = settings.return_documents.unwrap_or(true);
    let mut ranked: Vec<(usize, Scored)> = scores.into_iter().enumerate().collect();
    ranked.sort_by(|(_, one), (_, other)| other.score.total_cmp(&one.score));
    ranked.truncate(settings.top_n.unwrap_or(usize::MAX));
    let entries: Vec<Value> = ranked
        .into_iter()
        .map(|(index, scored)| {
            let mut entry = json!({"index": index, "relevance_score": weight_to_json(scored.score)});
            if shows_texts && let Some(text) = texts.get(index) {
                entry["text"] = (*text).into();
            }
            entry
        })
        .collect();
    Ok(Reply::ok(&json!({TaskType::Rerank.name(): entries})).with_tokens(tokens))
}

impl Models {
    /// The id of the only endpoint that reranks.
    ///
    /// # Errors
    /// When no endpoint reranks, or several do: the sentence for the client, which names them.
    pub fn only_reranker(&self) -> Result<String, String> {
        let all = self.endpoints.all();
        let ids: Vec<&str> = all
            .iter()
            .filter(|endpoint| endpoint.task_type == TaskType::Rerank)
            .map(|endpoint| endpoint.inference_id.as_str())
            .collect();
        match ids[..] {
            [only] => Ok(only.to_owned()),
            [] => Err("[inference_id] is missing, and no inference endpoint reranks; create one with \
                           PUT /_inference/rerank/{inference_id}"
                .to_owned()),
            _ => Err(format!(
                "[inference_id] is missing, and several inference endpoints rerank: [{}]",
                ids.join(", ")
            )),
        }
    }

    /// Checks the endpoint that a search reranks with, whose id [`Models::rerank`] takes. The result is its `top_n`, the most texts that it
    /// ranks, if it is set.
    ///
    /// # Errors
    /// Status 404 if there is no such endpoint, 400 if it has another task.
    pub fn reranker(&self, inference_id: &str) -> Result<Option<usize>, EngineError> {
        if let Some(kept) = self.endpoints.unusable().get(inference_id) {
            return Err(super::not_loaded(inference_id, kept));
        }
        let Some(endpoint) = self.endpoints.get(inference_id) else {
            return Err(self.no_endpoint(inference_id));
        };
        match endpoint.task_type {
            TaskType::Rerank => Ok(endpoint.rerank.and_then(|settings| settings.top_n)),
            TaskType::HybridEmbedding => Err(EngineError::illegal_argument(format!(
                "inference endpoint [{inference_id}] makes a sparse and a dense vector of each text, but [rerank] is needed here"
            ))),
            TaskType::SparseEmbedding => {
                Err(ModelError::MakesNoScores { id: inference_id.to_owned(), made: "sparse" }.into())
            }
            TaskType::TextEmbedding => {
                Err(ModelError::MakesNoScores { id: inference_id.to_owned(), made: "dense" }.into())
            }
        }
    }
}
