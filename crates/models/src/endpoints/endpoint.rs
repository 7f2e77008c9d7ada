//! An inference endpoint, and those that are built in.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sparrow_encoder::{ModelInfo, ModelKind};
use sparrow_inference::ModelError;
use sparrow_mapping::{Chunking, HYBRID_TASK};
use sparrow_query::VectorKind;

use sparrow_request::error::EngineError;

use super::problems::status;
use crate::id::is_valid_id;
use crate::registry::{BGE_MODEL, HEAD_MODEL, MULTILINGUAL_MODEL};
use crate::{AdaptiveAllocations, DENSE_MODEL};

/// Id of the endpoint of the embedded sparse model.
pub(super) const SPARSE_ENDPOINT: &str = ".elser-2-elasticsearch";
/// Id of the endpoint of the embedded dense model.
pub(super) const DENSE_ENDPOINT: &str = ".all-minilm-l6-v2-elasticsearch";
/// Id of the built-in hybrid endpoint.
const HYBRID_ENDPOINT: &str = ".hybrid";
/// Id of the endpoint of the sparse model that is a head on the embedded dense one.
const HEAD_ENDPOINT: &str = ".splade-minilm-l6-elasticsearch";
/// Id of the built-in hybrid endpoint of the embedded dense model and the head on it, which one pass over a text is enough for.
const HEAD_HYBRID_ENDPOINT: &str = ".hybrid-minilm-l6";
/// Id of the endpoint of the dense model that is not installed by default.
const BGE_ENDPOINT: &str = ".bge-small-en-elasticsearch";
/// Id of the built-in hybrid endpoint of that model and the embedded sparse one.
const BGE_HYBRID_ENDPOINT: &str = ".hybrid-bge-small-en";
/// Id of the endpoint of the dense model of many languages, which is not installed by default.
const MULTILINGUAL_ENDPOINT: &str = ".multilingual-e5-small-elasticsearch";
/// Ids of the built-in endpoints.
pub(super) const PRECONFIGURED: [&str; 8] = [
    SPARSE_ENDPOINT,
    DENSE_ENDPOINT,
    HYBRID_ENDPOINT,
    HEAD_ENDPOINT,
    HEAD_HYBRID_ENDPOINT,
    BGE_ENDPOINT,
    BGE_HYBRID_ENDPOINT,
    MULTILINGUAL_ENDPOINT,
];

/// The model without which a built-in endpoint is not there; `None` if the endpoint is always there.
pub(super) fn required_model(endpoint: &str) -> Option<&'static str> {
    match endpoint {
        HEAD_ENDPOINT | HEAD_HYBRID_ENDPOINT => Some(HEAD_MODEL),
        BGE_ENDPOINT | BGE_HYBRID_ENDPOINT => Some(BGE_MODEL),
        MULTILINGUAL_ENDPOINT => Some(MULTILINGUAL_MODEL),
        _ => None,
    }
}

/// Whether an allocation may have so many threads: a power of 2, at most 32.
pub(super) fn are_threads(number: usize) -> bool {
    number.is_power_of_two() && number <= 32
}

/// The task of an endpoint: what it computes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskType {
    /// Token weights.
    SparseEmbedding,
    /// A dense vector.
    TextEmbedding,
    /// A sparse and a dense vector; Elasticsearch does not have this task.
    HybridEmbedding,
    /// The score of each text as an answer to a question.
    Rerank,
}

impl TaskType {
    /// The name of the task in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::SparseEmbedding => "sparse_embedding",
            Self::TextEmbedding => "text_embedding",
            Self::HybridEmbedding => HYBRID_TASK,
            Self::Rerank => "rerank",
        }
    }

    /// The task of a kind of model.
    pub fn of(info: &ModelInfo) -> Self {
        match info.kind {
            ModelKind::Dense { .. } => Self::TextEmbedding,
            ModelKind::SparseMlm | ModelKind::SparseDocOnly => Self::SparseEmbedding,
            ModelKind::CrossEncoder => Self::Rerank,
        }
    }
}

/// An inference endpoint.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    pub inference_id: String,
    pub task_type: TaskType,
    /// `elasticsearch`, or `elser` as older clients write it.
    pub service: String,
    /// Model id as the request gave it; empty for a hybrid endpoint.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model_id: String,
    /// Id of an existing deployment that is used; `None` if the endpoint has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_allocations: Option<usize>,
    pub num_threads: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive_allocations: Option<AdaptiveAllocations>,
    /// Similarity that suits the dense vectors; only for `text_embedding`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<usize>,
    /// The chunking settings with all defaults; see [`Endpoint::chunking`]. Empty if texts are not split.
    pub chunking_settings: Map<String, Value>,
    /// Default settings of `rerank` requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rerank: Option<RerankSettings>,
    /// The two endpoints of a hybrid endpoint; `None` for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hybrid: Option<HybridParts>,
    /// Whether the endpoint is built in.
    #[serde(skip)]
    pub preconfigured: bool,
}

impl Endpoint {
    /// Reads an endpoint of a snapshot, which may come from anywhere: its id and its sizes have to be such as a request may give.
    ///
    /// # Errors
    /// Status 400 with what is wrong.
    pub fn of_snapshot(id: &str, definition: &Value) -> Result<Self, EngineError> {
        let refuse = |problem: String| Err(status(400, format!("inference endpoint [{id}] {problem}")));
        let endpoint = match Self::deserialize(definition) {
            Ok(endpoint) => endpoint,
            Err(error) => return refuse(format!("cannot be read: {error}")),
        };
        if endpoint.inference_id != id {
            return refuse("has another id in its definition".into());
        }
        if !is_valid_id(id) && !PRECONFIGURED.contains(&id) {
            return refuse("has an id that no endpoint may have".into());
        }
        if endpoint.hybrid.is_none() {
            if !are_threads(endpoint.num_threads) {
                return refuse(format!("has [{}] threads", endpoint.num_threads));
            }
            if endpoint.num_allocations == Some(0) {
                return refuse("has no allocations".into());
            }
        }
        Ok(endpoint)
    }

    /// How long texts are split into chunks.
    pub fn chunking(&self) -> Chunking {
        Chunking::parse(&self.chunking_settings).ok().flatten().unwrap_or_default()
    }

    /// Whether it has a deployment under its own id.
    pub fn owns_deployment(&self) -> bool {
        self.deployment_id.is_none() && self.hybrid.is_none()
    }

    /// Id of the deployment that answers.
    pub fn deployment(&self) -> &str {
        self.deployment_id.as_deref().unwrap_or(&self.inference_id)
    }

    /// The JSON form of the endpoint in responses.
    pub(super) fn to_json(&self) -> Value {
        let mut service = Map::new();
        if let Some(number) = self.num_allocations {
            service.insert("num_allocations".into(), number.into());
        }
        match &self.hybrid {
            Some(parts) => {
                service.insert("sparse_inference_id".into(), parts.of(VectorKind::Sparse).into());
                service.insert("dense_inference_id".into(), parts.of(VectorKind::Dense).into());
            }
            None => {
                service.insert("num_threads".into(), self.num_threads.into());
                service.insert("model_id".into(), self.model_id.clone().into());
            }
        }
        if let Some(adaptive) = &self.adaptive_allocations {
            service.insert("adaptive_allocations".into(), json!(adaptive));
        }
        if let Some(deployment) = &self.deployment_id {
            service.insert("deployment_id".into(), deployment.clone().into());
        }
        if matches!(self.task_type, TaskType::TextEmbedding | TaskType::HybridEmbedding) {
            if let Some(similarity) = &self.similarity {
                service.insert("similarity".into(), similarity.clone().into());
            }
            if let Some(dimensions) = self.dimensions {
                service.insert("dimensions".into(), dimensions.into());
            }
            service.insert("element_type".into(), "float".into());
        }
        let mut shown = json!({
            "inference_id": self.inference_id,
            "task_type": self.task_type.name(),
            "service": self.service,
            "service_settings": service,
            "task_settings": self.rerank.map_or_else(|| json!({}), RerankSettings::to_json),
        });
        if self.task_type != TaskType::Rerank {
            shown["chunking_settings"] = self.chunking_settings.clone().into();
        }
        shown
    }
}

/// The two endpoints, deployments or models that a hybrid endpoint encodes with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HybridParts {
    pub sparse_inference_id: String,
    pub dense_inference_id: String,
}

impl HybridParts {
    /// The id that makes this kind of vectors.
    pub fn of(&self, kind: VectorKind) -> &str {
        match kind {
            VectorKind::Sparse => &self.sparse_inference_id,
            VectorKind::Dense => &self.dense_inference_id,
        }
    }

    /// Both ids; the sparse one comes first, as it is faster.
    pub(crate) fn ids(&self) -> Vec<String> {
        vec![self.sparse_inference_id.clone(), self.dense_inference_id.clone()]
    }
}

/// The error for a hybrid endpoint where one vector is required.
pub fn not_one_vector(id: &str, parts: &HybridParts) -> ModelError {
    ModelError::MakesBoth {
        id: id.to_owned(),
        sparse: parts.sparse_inference_id.clone(),
        dense: parts.dense_inference_id.clone(),
    }
}

/// What a `rerank` response contains, from the `task_settings` of an endpoint or a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RerankSettings {
    /// Whether each entry contains its text; true by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_documents: Option<bool>,
    /// Most entries of the response; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_n: Option<usize>,
}

impl RerankSettings {
    /// These settings, with those that are not set taken from `defaults`.
    pub(super) fn or(self, defaults: Self) -> Self {
        Self {
            return_documents: self.return_documents.or(defaults.return_documents),
            top_n: self.top_n.or(defaults.top_n),
        }
    }

    /// The JSON form of the settings in an endpoint.
    pub(super) fn to_json(self) -> Value {
        let mut shown = json!({"return_documents": self.return_documents.unwrap_or(true)});
        if let Some(top_n) = self.top_n {
            shown["top_n"] = top_n.into();
        }
        shown
    }
}

/// The JSON form of chunking settings that an endpoint stores and shows.
pub(super) fn shown(chunking: &Chunking) -> Map<String, Value> {
    match chunking.to_json() {
        Value::Object(settings) => settings,
        _ => Map::new(),
    }
}

/// The endpoint of one of the ids of [`PRECONFIGURED`].
pub(super) fn always_there(id: &str) -> Endpoint {
    match id {
        HYBRID_ENDPOINT => preconfigured_hybrid(id, SPARSE_ENDPOINT, DENSE_ENDPOINT),
        HEAD_HYBRID_ENDPOINT => preconfigured_hybrid(id, HEAD_ENDPOINT, DENSE_ENDPOINT),
        BGE_HYBRID_ENDPOINT => preconfigured_hybrid(id, SPARSE_ENDPOINT, BGE_ENDPOINT),
        BGE_ENDPOINT => preconfigured(id, TaskType::TextEmbedding, BGE_MODEL),
        MULTILINGUAL_ENDPOINT => preconfigured(id, TaskType::TextEmbedding, MULTILINGUAL_MODEL),
        HEAD_ENDPOINT => preconfigured(id, TaskType::SparseEmbedding, HEAD_MODEL),
        DENSE_ENDPOINT => preconfigured(id, TaskType::TextEmbedding, DENSE_MODEL),
        _ => preconfigured(id, TaskType::SparseEmbedding, ".elser_model_2"),
    }
}

fn preconfigured(id: &str, task_type: TaskType, model_id: &str) -> Endpoint {
    let chunking_settings = shown(&Chunking::default());
    let dense = task_type == TaskType::TextEmbedding;
    Endpoint {
        inference_id: id.to_owned(),
        task_type,
        service: "elasticsearch".into(),
        model_id: model_id.to_owned(),
        deployment_id: None,
        num_allocations: None,
        num_threads: 1,
        adaptive_allocations: Some(AdaptiveAllocations {
            enabled: true,
            min_number_of_allocations: Some(0),
            max_number_of_allocations: Some(32),
        }),
        similarity: dense.then(|| "cosine".to_owned()),
        dimensions: dense.then_some(384),
        chunking_settings,
        rerank: None,
        hybrid: None,
        preconfigured: true,
    }
}

/// A built-in hybrid endpoint.
fn preconfigured_hybrid(id: &str, sparse: &str, dense: &str) -> Endpoint {
    Endpoint {
        task_type: TaskType::HybridEmbedding,
        model_id: String::new(),
        adaptive_allocations: None,
        hybrid: Some(HybridParts {
            sparse_inference_id: sparse.to_owned(),
            dense_inference_id: dense.to_owned(),
        }),
        ..preconfigured(id, TaskType::TextEmbedding, "")
    }
}
