//! Inference endpoints: named combinations of a model, a task, a deployment and chunking settings.
//!
//! Endpoints are stored in the data directory. An endpoint that a request created has a deployment of its own, with its
//! id, unless it names another; built-in endpoints are deployed when they are first used. Wherever a model id is
//! accepted, so is the id of an endpoint.

mod api;
mod hybrid;
mod infer;
mod problems;
mod rerank;
mod settings;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sparrow_encoder::{ModelInfo, ModelKind};
use sparrow_mapping::{Chunking, HYBRID_TASK};
use sparrow_query::VectorKind;
use sparrow_storage::{DataDir, StorageError};

pub(crate) use self::api::OPERATIONS;
pub use self::api::{SemanticIndices, delete_endpoint, put_endpoint};
use self::hybrid::HYBRID_ENDPOINT;
pub use self::hybrid::{HybridParts, not_one_vector};
pub(crate) use self::infer::OPERATIONS as ENCODING;
use self::rerank::RerankSettings;
use crate::{AdaptiveAllocations, DENSE_MODEL, Models};
use sparrow_call::error::{EngineError, Exception};
use sparrow_storage::stores::{self, Unusable};

/// Name of the store in the data directory.
const STORE: &str = "inference";
/// Id of the endpoint of the embedded sparse model.
const SPARSE_ENDPOINT: &str = ".elser-2-elasticsearch";
/// Id of the endpoint of the embedded dense model.
const DENSE_ENDPOINT: &str = ".all-minilm-l6-v2-elasticsearch";
/// Ids of the endpoints that are always there.
const PRECONFIGURED: [&str; 3] = [SPARSE_ENDPOINT, DENSE_ENDPOINT, HYBRID_ENDPOINT];

/// The error of an endpoint that is stored and that this version cannot read.
fn not_loaded(id: &str, kept: &Unusable) -> EngineError {
    let reason = format!("inference endpoint [{id}] could not be loaded, caused by [{}]", kept.reason);
    EngineError::api(500, Exception::new("illegal_state_exception", reason))
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
    fn to_json(&self) -> Value {
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

/// What an inference id refers to, be it an endpoint, a deployment or a model.
#[derive(Debug, Clone)]
pub struct InferenceTarget {
    /// The task, which determines the kind of vectors.
    pub task_type: TaskType,
    /// Length of its dense vectors, if it makes such.
    pub dimensions: Option<usize>,
    /// Similarity for dense vectors, if an endpoint specifies it: `cosine`, `dot_product` or `l2_norm`.
    pub similarity: Option<String>,
    /// How long texts are split before they are encoded.
    pub chunking: Chunking,
}

impl Models {
    /// Resolves an inference id, which [`crate::TextEncoder::encode`] accepts as it is. Nothing is started.
    pub fn inference_target(&self, id: &str) -> Option<InferenceTarget> {
        let endpoint = self.endpoints.get(id);
        if let Some(endpoint) = endpoint.as_ref().filter(|endpoint| endpoint.hybrid.is_some()) {
            return Some(InferenceTarget {
                task_type: endpoint.task_type,
                dimensions: endpoint.dimensions,
                similarity: endpoint.similarity.clone(),
                chunking: endpoint.chunking(),
            });
        }
        let model = match &endpoint {
            Some(endpoint) => {
                self.resolve(endpoint.deployment()).or_else(|| self.resolve(&endpoint.model_id))
            }
            None => self.resolve(id),
        }?;
        let info = model.info().ok()?;
        Some(InferenceTarget {
            task_type: TaskType::of(info),
            dimensions: info.dims,
            similarity: endpoint.as_ref().and_then(|endpoint| endpoint.similarity.clone()),
            chunking: endpoint.map(|endpoint| endpoint.chunking()).unwrap_or_default(),
        })
    }
}

/// The inference endpoints of a node.
#[derive(Debug)]
pub struct Endpoints {
    data: Arc<DataDir>,
    current: RwLock<BTreeMap<String, Arc<Endpoint>>>,
    /// Endpoints that this version cannot read: kept as they are stored until they are replaced or deleted.
    unusable: RwLock<BTreeMap<String, Unusable>>,
    /// Lock that is held while an endpoint and its deployment are created, changed or deleted.
    changes: Mutex<()>,
}

impl Endpoints {
    /// Reads the endpoints of the data directory. One that this version cannot read is kept, with the reason.
    ///
    /// # Errors
    /// When the store is damaged or cannot be read.
    pub fn open(data: Arc<DataDir>) -> Result<Self, EngineError> {
        let mut current = BTreeMap::new();
        let mut unusable = BTreeMap::new();
        for (id, definition) in stores::read_members(&data, STORE)? {
            match Endpoint::deserialize(&definition) {
                Ok(endpoint) => {
                    current.insert(id, Arc::new(endpoint));
                }
                Err(error) => {
                    tracing::error!(endpoint = id, %error, "a stored inference endpoint cannot be used");
                    unusable.insert(id, Unusable { definition, reason: error.to_string() });
                }
            }
        }
        for id in PRECONFIGURED {
            current.entry(id.to_owned()).or_insert_with(|| Arc::new(always_there(id)));
        }
        Ok(Self {
            data,
            current: RwLock::new(current),
            unusable: RwLock::new(unusable),
            changes: Mutex::new(()),
        })
    }

    /// The endpoints that this version cannot read, by id.
    pub fn unusable(&self) -> BTreeMap<String, Unusable> {
        self.unusable.read().clone()
    }

    /// The endpoint of this id.
    pub fn get(&self, id: &str) -> Option<Arc<Endpoint>> {
        self.current.read().get(id).cloned()
    }

    /// All endpoints, by id.
    pub fn all(&self) -> Vec<Arc<Endpoint>> {
        self.current.read().values().cloned().collect()
    }

    /// Locks the endpoints against changes by others.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.changes.lock()
    }

    /// Stores an endpoint durably. The caller must hold [`Endpoints::lock`].
    ///
    /// # Errors
    /// When the store cannot be written; nothing has changed then.
    pub fn put(&self, endpoint: Endpoint) -> Result<(), StorageError> {
        let mut next = self.current.read().clone();
        let id = endpoint.inference_id.clone();
        next.insert(id.clone(), Arc::new(endpoint));
        self.replace(&id, next)
    }

    /// Deletes an endpoint durably. The caller must hold [`Endpoints::lock`]. A built-in endpoint is reset to its
    /// original settings.
    ///
    /// # Errors
    /// When the store cannot be written; nothing has changed then.
    pub fn remove(&self, id: &str) -> Result<(), StorageError> {
        let mut next = self.current.read().clone();
        next.remove(id);
        for name in PRECONFIGURED.iter().filter(|name| **name == id) {
            next.insert(id.to_owned(), Arc::new(always_there(name)));
        }
        self.replace(id, next)
    }

    /// Replaces all endpoints and writes them. `named` is the id of the changed endpoint, whose unreadable stored form,
    /// if any, is dropped.
    fn replace(&self, named: &str, next: BTreeMap<String, Arc<Endpoint>>) -> Result<(), StorageError> {
        let mut unusable = self.unusable();
        unusable.remove(named);
        let stored: Map<String, Value> = next
            .iter()
            .filter(|(_, endpoint)| !endpoint.preconfigured)
            .map(|(id, endpoint)| (id.clone(), json!(**endpoint)))
            .chain(unusable.iter().map(|(id, kept)| (id.clone(), kept.definition.clone())))
            .collect();
        self.data.write_json(STORE, &Value::Object(stored))?;
        *self.current.write() = next;
        *self.unusable.write() = unusable;
        Ok(())
    }
}

/// The JSON form of chunking settings that an endpoint stores and shows.
fn shown(chunking: &Chunking) -> Map<String, Value> {
    match chunking.to_json() {
        Value::Object(settings) => settings,
        _ => Map::new(),
    }
}

/// The endpoint of one of the ids of [`PRECONFIGURED`].
fn always_there(id: &str) -> Endpoint {
    match id {
        HYBRID_ENDPOINT => hybrid::preconfigured(),
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
