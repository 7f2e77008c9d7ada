//! Reranking of hits that a cluster finds: which parts of their texts the model reads, and how it scores these.

use serde::Deserialize;
use serde_json::{Value, json};
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

use super::{parsed, stage};
use crate::execute::scores_of_texts;
use crate::service::SearchService;
use sparrow_search_body::retriever::Stage;

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("score_texts", Action::Infer, Lane::Read, score_texts)
        .large()
        .about("How a reranker scores the texts of hits from indices that are kept elsewhere.")
        .json()
        .stops()
        .unlisted()];

#[derive(Deserialize)]
struct Asked {
    /// The retriever, with its inference endpoint; whatever stands for its list is not run.
    retriever: Value,
    texts: Vec<String>,
}

fn score_texts(
    service: &SearchService,
    _: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked: Asked = parsed(body)?;
    let Some(Stage::Rerank(rerank)) = stage(&asked.retriever)? else {
        return Err(EngineError::illegal_argument("[retriever] is no [text_similarity_reranker]"));
    };
    let scores = scores_of_texts(&service.models, &rerank, &asked.texts, cancel.flag())??;
    Ok(Reply::ok(&json!({"scores": scores})))
}
