//! The facts about a model that its directory states.

use serde::Deserialize;

/// The kind of output that a model computes for a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelKind {
    /// Token weights for documents and for queries (SPLADE).
    SparseMlm,
    /// Token weights for documents; queries take inverse document frequencies of their own tokens.
    SparseDocOnly,
    /// One dense vector.
    Dense {
        /// Length of the vector.
        dims: usize,
    },
    /// A score of a question and a text, read together.
    CrossEncoder,
}

impl ModelKind {
    /// Whether the model gives token weights.
    pub fn is_sparse(self) -> bool {
        match self {
            ModelKind::SparseMlm | ModelKind::SparseDocOnly => true,
            ModelKind::Dense { .. } | ModelKind::CrossEncoder => false,
        }
    }
}

/// Most bytes of a prefix: it is copied and read with each text. Published ones have up to a few hundred.
pub const MOST_PREFIX: usize = 4096;

/// Prefixes that a model expects before the texts that it encodes, such as `query: `.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// Prefix of search queries.
    pub search: Option<String>,
    /// Prefix of documents.
    pub ingest: Option<String>,
}

/// The dense model that a sparse one is a head on: the head continues with the hidden states of its last layer, reads texts as it does,
/// and shares its word embeddings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trunk {
    /// Id of the model.
    pub model: String,
    /// Fingerprint of that model: the head was trained on its hidden states, and those of another model would give meaningless weights.
    pub fingerprint: String,
}

/// Facts about a model directory.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The kind of output that the model computes.
    pub kind: ModelKind,
    /// Hex SHA-256 over the model's files: equal fingerprints give equal vectors, but for the rounding of weights.
    pub fingerprint: String,
    /// Sum of the lengths of the model's files, in bytes.
    pub size_bytes: u64,
    /// Entries of the vocabulary.
    pub vocabulary_size: usize,
    /// Most tokens of a text that are encoded.
    pub max_tokens: usize,
    /// Length of the vector of a dense model.
    pub dims: Option<usize>,
    /// The prefixes that the model's own files specify.
    pub prefixes: Prefixes,
    /// Fingerprints of other files of the same model, whose vectors differ by roundings only: they may be searched together.
    pub same_space_as: Vec<String>,
    /// The dense model that it is a head on; `None` for a model that is whole.
    pub trunk: Option<Trunk>,
    /// Beside a sparse model's scores, what those of a dense model count, as a multiple of what they count beside the embedded sparse
    /// model's.
    pub dense_factor: f32,
    /// The only language that the model reads, such as `en`, if its files say so.
    pub language: Option<String>,
    /// The map from the model's scores to a probability of relevance; `None` if none was fitted.
    pub calibration: Option<Calibration>,
    /// Weights, architecture and pooling that the files of the model's directory were found to describe.
    pub recognised: Recognised,
}

impl ModelInfo {
    /// Whether vectors of a model with that fingerprint and this model's may be compared.
    pub fn compares_with(&self, fingerprint: &str) -> bool {
        self.fingerprint == fingerprint || self.same_space_as.iter().any(|same| same == fingerprint)
    }
}

/// A logistic map from a score to the probability that the document is relevant: `1 / (1 + e^-(slope · x + intercept))`, where
/// `x` is the cosine for a dense model, and for a sparse one the dot product with the question's token weights, scaled to a
/// vector of length one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// How much the log-odds grow with `x`; above 0.
    pub slope: f32,
    /// The log-odds at `x = 0`.
    pub intercept: f32,
}

/// What the files of a model's directory were found to describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised {
    /// Name of the file whose parameters are computed with: `model.safetensors` or `model.onnx`.
    pub weights: &'static str,
    /// The architecture of a checkpoint: its type, and the numbers of layers, of numbers in a hidden state, and of
    /// attention heads. `None` for an ONNX graph.
    pub architecture: Option<(String, [usize; 3])>,
    /// How the hidden states of a text's tokens are combined, as a phrase.
    pub pooling: &'static str,
    /// Whether vectors are scaled to length 1.
    pub normalized: bool,
    /// Whether linear maps are computed in 8 bits.
    pub int8: bool,
}
