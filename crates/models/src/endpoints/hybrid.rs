//! Hybrid endpoints, which make a sparse and a dense vector of each text, so that one field can be searched by both.
//!
//! Such an endpoint names two others, which do the encoding; it has no model or deployment of its own. The endpoint
//! `.hybrid` always exists and uses the embedded models.

use serde_json::{Map, Value, json};
use sparrow_encoder::Encoded;
use sparrow_query::VectorKind;

use super::endpoint::{Endpoint, HybridParts, TaskType, shown};
use super::problems::{Problems, java_map, status};
use crate::{Models, spread};
use sparrow_call::error::EngineError;
use sparrow_mapping::Chunking;

impl Models {
    /// The factor for the cosines of a dense model, so that they say as much as those of the embedded one: by its calibration, else by how
    /// far apart its vectors lie; 1 if neither is known.
    pub fn dense_factor(&self, model_id: &str) -> f32 {
        if let Some(calibration) = self.calibration(model_id, VectorKind::Dense) {
            return spread::factor_of_slope(calibration.slope);
        }
        let parts = self.hybrid_parts(model_id);
        let id = parts.as_ref().map_or(model_id, |parts| parts.of(VectorKind::Dense));
        self.behind(id).and_then(|model| model.spread()).map_or(1.0, spread::factor)
    }

    /// The parts of a hybrid endpoint; `None` for any other id.
    pub fn hybrid_parts(&self, id: &str) -> Option<HybridParts> {
        self.endpoints.get(id)?.hybrid.clone()
    }

    /// The ids that encode for an id: both parts of a hybrid endpoint, or the id itself.
    pub fn encoders(&self, id: &str) -> Vec<String> {
        self.hybrid_parts(id).map_or_else(|| vec![id.to_owned()], |parts| parts.ids())
    }
}

/// Parses the settings of a `PUT` of a hybrid endpoint.
///
/// # Errors
/// Status 400 that names what is wrong; 404 for a part that is not there.
pub(super) fn endpoint(
    models: &Models,
    inference_id: &str,
    service: String,
    mut settings: Map<String, Value>,
    chunking: &Chunking,
) -> Result<Endpoint, EngineError> {
    const SCOPE: &str = "service_settings";
    let mut problems = Problems::default();
    let mut part = |name: &'static str| {
        let id = problems.text(&settings, name, SCOPE);
        if id.is_none() {
            problems.add(format!("[{SCOPE}] does not contain the required setting [{name}]"));
        }
        id.unwrap_or_default()
    };
    let (sparse, dense) = (part("sparse_inference_id"), part("dense_inference_id"));
    problems.done()?;
    settings.retain(|name, _| !["sparse_inference_id", "dense_inference_id"].contains(&name.as_str()));
    if !settings.is_empty() {
        return Err(status(
            400,
            format!(
                "Configuration contains settings [{}] unknown to the [{service}] service",
                java_map(&settings)
            ),
        ));
    }
    let task = |id: &str, wanted: TaskType| {
        let target = models
            .inference_target(id)
            .ok_or_else(|| EngineError::resource_not_found(format!("Inference endpoint not found [{id}]")))?;
        if target.task_type == wanted {
            return Ok(target);
        }
        Err(status(
            400,
            format!(
                "inference endpoint [{id}] makes [{}], but [{}] is needed here",
                target.task_type.name(),
                wanted.name()
            ),
        ))
    };
    task(&sparse, TaskType::SparseEmbedding)?;
    let target = task(&dense, TaskType::TextEmbedding)?;
    Ok(Endpoint {
        inference_id: inference_id.to_owned(),
        task_type: TaskType::HybridEmbedding,
        service,
        model_id: String::new(),
        deployment_id: None,
        num_allocations: None,
        num_threads: 1,
        adaptive_allocations: None,
        similarity: Some(target.similarity.unwrap_or_else(|| "cosine".to_owned())),
        dimensions: target.dimensions,
        chunking_settings: shown(chunking),
        rerank: None,
        hybrid: Some(HybridParts { sparse_inference_id: sparse, dense_inference_id: dense }),
        preconfigured: false,
    })
}

/// The two vectors of a text in the response of `_inference`.
pub(super) fn vectors_to_json(sparse: &Encoded, dense: &Encoded) -> Value {
    json!({
        "is_truncated": sparse.truncated_tokens > 0 || dense.truncated_tokens > 0,
        "sparse_embedding": sparrow_inference::vector_to_json(&sparse.output),
        "text_embedding": sparrow_inference::vector_to_json(&dense.output),
    })
}
