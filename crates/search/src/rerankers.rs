//! The models of rerankers, looked up before a search runs.

use std::sync::Arc;

use sparrow_models::Models;
use sparrow_request::error::EngineError;
use sparrow_search_body::retriever::{Fusion, Retriever, Stage};
use sparrow_search_body::window::Window;

use super::error::SearchError;

/// Checks the inference endpoint of every reranker in a tree, and gives the rerankers the node's models.
///
/// # Errors
/// When an endpoint does not exist, does not rerank, is not named where there is not exactly one, or ranks fewer texts than are asked for.
pub fn bind_rerankers(fusion: &mut Fusion, models: &Arc<Models>) -> Result<(), EngineError> {
    for input in &mut fusion.inputs {
        if let Retriever::Fused(inner) = &mut input.retriever {
            bind_rerankers(inner, models)?;
        }
    }
    let Some(Stage::Rerank(rerank)) = &mut fusion.stage else { return Ok(()) };
    if rerank.inference_id.is_empty() {
        rerank.inference_id = models.only_reranker().map_err(SearchError::illegal)?;
    }
    let most = models.reranker(&rerank.inference_id)?;
    let window = fusion.window.first();
    if let Some(most) = most
        && most < window
    {
        return Err(SearchError::illegal(format!(
            "inference endpoint [{}] is configured to return the top [{most}] results, but rank_window_size is [{window}]. \
             Reduce rank_window_size to be less than or equal to the configured top N value.",
            rerank.inference_id
        ))
        .into());
    }
    // What the endpoint does not rank comes back on no later page either.
    if let (Some(most), Window::Default(first)) = (most, fusion.window) {
        fusion.window = Window::Capped { first, most };
    }
    rerank.models = Some(Arc::clone(models));
    Ok(())
}
