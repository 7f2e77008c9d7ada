//! Hybrid endpoints, which make a sparse and a dense vector of each text, so that one field can be searched by both.
//!
//! Such an endpoint names two others, which do the encoding; it has no model or deployment of its own. The endpoint
//! `.hybrid` always exists and uses the embedded models.

use std::sync::Arc;

use serde_json::{Map, Value};
use sparrow_encoder::{Encoded, Output};
use sparrow_inference::vector_to_json;
use sparrow_query::VectorKind;

use super::endpoint::{Endpoint, HybridParts, TaskType, shown};
use super::problems::{Problems, java_map, status};
use crate::models::PARTS;
use crate::{Models, spread};
use sparrow_mapping::Chunking;
use sparrow_request::error::EngineError;

impl Models {
    /// The factor for the cosines of a hybrid endpoint's dense model, so that they say beside its sparse model as much as those of the
    /// embedded one do beside the embedded sparse one; 1 for any other id.
    pub fn dense_factor(&self, inference_id: &str) -> f32 {
        let Some(parts) = self.hybrid_parts(inference_id) else { return 1.0 };
        let sparse = self.behind(parts.of(VectorKind::Sparse));
        let beside_sparse = sparse.and_then(|model| Some(model.info().ok()?.dense_factor)).unwrap_or(1.0);
        beside_sparse * self.factor_of_cosines(parts.of(VectorKind::Dense))
    }

    /// That factor beside the embedded sparse model: by the dense model's calibration, else by how far apart its vectors lie; 1 if neither
    /// is known.
    fn factor_of_cosines(&self, dense: &str) -> f32 {
        if let Some(calibration) = self.calibration(dense, VectorKind::Dense) {
            return spread::factor_of_slope(calibration.slope);
        }
        self.behind(dense).and_then(|model| model.spread()).map_or(1.0, spread::factor)
    }

    /// The parts of a hybrid endpoint; `None` for any other id.
    pub fn hybrid_parts(&self, id: &str) -> Option<HybridParts> {
        self.endpoints.get(id)?.hybrid.clone()
    }

    /// The names that encode for an id: the id itself, or both parts of a hybrid endpoint. The parts have one name if the sparse model is a
    /// head on the dense one, whose single pass over a text then gives both vectors.
    pub fn encoders(&self, id: &str) -> Vec<String> {
        let Some(parts) = self.hybrid_parts(id) else { return vec![id.to_owned()] };
        let HybridParts { sparse_inference_id: sparse, dense_inference_id: dense } = &parts;
        if self.is_head_on(sparse, dense) { vec![format!("{sparse}{PARTS}{dense}")] } else { parts.ids() }
    }

    /// Whether the sparse model of one id is a head on the dense model of another.
    pub(crate) fn is_head_on(&self, sparse: &str, dense: &str) -> bool {
        let (sparse, dense) = (self.behind(sparse), self.behind(dense));
        sparse
            .zip(dense)
            .is_some_and(|(sparse, dense)| sparse.trunk().is_some_and(|trunk| Arc::ptr_eq(&trunk, &dense)))
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
        let target = models.inference_target(id).ok_or_else(|| models.no_endpoint(id))?;
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

/// The two vectors of a text in the response of `_inference`, from what each of [`Models::encoders`] made of it.
pub(super) fn vectors_to_json<'e>(encoded: impl Iterator<Item = &'e Encoded>) -> Value {
    let mut is_truncated = false;
    let mut shown = Map::new();
    for one in encoded {
        is_truncated |= one.truncated_tokens > 0;
        let vector = vector_to_json(&one.output);
        match (&one.output, vector) {
            (Output::Hybrid { .. }, Value::Object(both)) => shown.extend(both),
            (Output::Dense(_), vector) => drop(shown.insert("text_embedding".into(), vector)),
            (_, vector) => drop(shown.insert("sparse_embedding".into(), vector)),
        }
    }
    shown.insert("is_truncated".into(), is_truncated.into());
    Value::Object(shown)
}
