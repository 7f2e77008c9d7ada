//! What a mapping knows of a `semantic_text` field, and the slots in which its vectors are stored.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::chunking::Chunking;
use super::dense::{DenseVector, similarity_name};
use crate::passages::PassageVector;

/// Inference id of fields whose mapping does not name an endpoint.
pub const DEFAULT_INFERENCE_ID: &str = ".elser-2-elasticsearch";
/// Task type of inference endpoints that make both a sparse and a dense vector of each text.
pub const HYBRID_TASK: &str = "hybrid_embedding";

/// A `semantic_text` field: text that is cut into passages, each encoded by a model.
#[derive(Debug, Clone, PartialEq)]
pub struct SemanticText {
    /// The endpoint that encodes documents.
    pub inference_id: String,
    /// The endpoint that encodes queries, if it is another one.
    pub search_inference_id: Option<String>,
    /// How texts are cut, if the mapping says it.
    pub chunking: Option<Chunking>,
    /// Kind of vectors that the endpoint makes; if the mapping does not say it, unknown until the first document.
    pub model: Option<SemanticModel>,
    /// How dense passages are laid out and compared; `None` unless the model makes dense vectors.
    pub dense: Option<Box<DenseVector>>,
    /// Fingerprint of the model that made the field's vectors; unknown until there are any, and in indices from
    /// before fingerprints were recorded.
    pub fingerprint: Option<String>,
    /// Where the field's vectors are stored: one slot, or two while its model is being changed.
    pub slots: Slots,
}

impl Default for SemanticText {
    fn default() -> Self {
        Self {
            inference_id: DEFAULT_INFERENCE_ID.to_owned(),
            search_inference_id: None,
            chunking: None,
            model: None,
            dense: None,
            fingerprint: None,
            slots: Slots::default(),
        }
    }
}

impl SemanticText {
    /// Name of the similarity that compares the field's dense vectors, as written in requests; `None` without dense
    /// vectors.
    pub fn similarity(&self) -> Option<&'static str> {
        self.dense.as_ref().map(|dense| similarity_name(dense.similarity))
    }

    /// The endpoint that encodes queries.
    pub fn search_id(&self) -> &str {
        self.search_inference_id.as_deref().unwrap_or(&self.inference_id)
    }
}

/// Kind of vectors that an inference endpoint makes of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SemanticModel {
    /// Sparse vectors: token weights.
    Sparse,
    /// Dense vectors with `dims` dimensions.
    Dense { dims: usize },
    /// A sparse vector and a dense vector with `dims` dimensions for each text.
    Hybrid { dims: usize },
}

impl SemanticModel {
    /// Kind of model that makes vectors like the given one.
    pub fn of(vector: &PassageVector) -> Self {
        match vector {
            PassageVector::Sparse(_) => Self::Sparse,
            PassageVector::Dense(vector) => Self::Dense { dims: vector.len() },
            PassageVector::Hybrid { dense, .. } => Self::Hybrid { dims: dense.len() },
        }
    }

    /// Task type of endpoints with such a model, such as `sparse_embedding`.
    pub fn task(self) -> &'static str {
        match self {
            Self::Sparse => "sparse_embedding",
            Self::Dense { .. } => "text_embedding",
            Self::Hybrid { .. } => HYBRID_TASK,
        }
    }

    /// Number of dimensions of the dense vectors; `None` if the model makes only sparse ones.
    pub fn dims(self) -> Option<usize> {
        match self {
            Self::Sparse => None,
            Self::Dense { dims } | Self::Hybrid { dims } => Some(dims),
        }
    }

    /// The model as the `model_settings` of a `semantic_text` field, with the similarity for its dense vectors.
    pub fn settings(self, similarity: Option<String>) -> Value {
        self.to_json(similarity)
    }

    /// The `model_settings` as JSON, in the form of mappings.
    pub(super) fn to_json(self, similarity: Option<String>) -> Value {
        match self.dims() {
            None => json!({"service": "elasticsearch", "task_type": self.task()}),
            Some(dims) => json!({
                "service": "elasticsearch", "task_type": self.task(), "dimensions": dims,
                "similarity": similarity.as_deref().unwrap_or("cosine"), "element_type": "float"
            }),
        }
    }
}

/// What stands between the path of a field and the number of a slot.
pub(super) const MARK: &str = "..";

/// The slots of a field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Slots {
    /// Number of the slot that is searched; its settings are the field's own.
    pub active: u32,
    /// Highest slot number used so far, removed slots included.
    pub(super) last: u32,
    /// The second slot, for which documents are encoded too while the model is being changed.
    pub(super) beside: Option<Box<Beside>>,
}

impl Slots {
    /// Number and settings of the slot that searches do not read, if there is one.
    pub fn beside(&self) -> Option<(u32, &SemanticText)> {
        self.beside.as_ref().map(|beside| (beside.number, &beside.settings))
    }
}

/// A second slot, which searches do not read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Beside {
    pub(super) number: u32,
    pub(super) settings: SemanticText,
    /// Parameters of the field as they would be if this slot were searched.
    pub(super) params: Map<String, Value>,
}

/// A slot of a field, with its name and settings.
#[derive(Debug, Clone)]
pub struct Slot<'m> {
    /// Name under which the slot's passages and vectors are stored.
    pub name: Cow<'m, str>,
    /// Path of the field.
    pub path: &'m str,
    pub settings: &'m SemanticText,
}

/// Path of the field to which the slot with this name belongs.
pub fn field_of(slot: &str) -> &str {
    slot.split_once(MARK).map_or(slot, |(path, _)| path)
}

/// Number of the slot with this name among those of its field.
pub fn number_of(slot: &str) -> u32 {
    parts(slot).1
}

/// Name of the slot with this number of the field at `path`.
pub(super) fn name(path: &str, number: u32) -> Cow<'_, str> {
    match number {
        0 => Cow::Borrowed(path),
        number => Cow::Owned(format!("{path}{MARK}{number}")),
    }
}

/// Splits the name of a slot into the field's path and the slot's number.
pub(super) fn parts(slot: &str) -> (&str, u32) {
    match slot.split_once(MARK) {
        None => (slot, 0),
        // No slot has this number.
        Some((path, number)) => (path, number.parse().unwrap_or(u32::MAX)),
    }
}
