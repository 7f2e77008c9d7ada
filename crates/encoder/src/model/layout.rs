//! Detects what kind of model a directory holds, by the file names and contents that the Hugging Face ecosystem uses.

mod detect;

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::EncoderError;
use crate::packed::Identity;
use crate::pooling::Activation;
use crate::scorer::Scorer;
use crate::small_file;

use super::checkpoint::Checkpoint;
use super::fingerprint;
use super::info::{Calibration, ModelInfo, ModelKind, Prefixes, Trunk};

/// Most tokens of a text that are encoded, whatever a model could take.
pub(super) const MAX_TOKENS: usize = 512;

/// How the hidden states or logits of a text's tokens are combined into one vector or score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Pooling {
    /// Maximum over tokens of the logits.
    Splade,
    /// Mean over tokens.
    Mean,
    /// The hidden state of the first token.
    Cls,
    /// The hidden state of the last token.
    Last,
    /// The head of a cross-encoder computes one score from the hidden states.
    #[serde(skip)]
    Classifier,
    /// The graph itself combines them.
    #[serde(rename = "none")]
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    SparseMlm,
    SparseDocOnly,
    Dense,
    CrossEncoder,
}

/// `sparrow.json`, which overrules what is detected. Every key may be absent. A key of another name is refused: a misspelled one would not
/// do what was meant, and make another model of the folder.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    kind: Option<Kind>,
    pooling: Option<Pooling>,
    normalize: Option<bool>,
    max_tokens: Option<usize>,
    dims: Option<usize>,
    activation: Option<String>,
    query_weights: Option<String>,
    arithmetic: Option<Arithmetic>,
    trunk: Option<Trunk>,
    dense_factor: Option<f32>,
    language: Option<String>,
    #[serde(default)]
    same_space_as: Vec<String>,
}

/// The number format in which our own code computes a model's linear maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Arithmetic {
    Float32,
    /// Weights and rows of 8 bits.
    Int8,
}

/// The keys of `config.json` that decide which kind of model it is.
#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    architectures: Vec<String>,
    vocab_size: Option<usize>,
    hidden_size: Option<usize>,
    max_position_embeddings: Option<usize>,
    model_type: Option<String>,
}

impl Config {
    fn is_masked_lm(&self) -> bool {
        self.architectures.iter().any(|name| name.ends_with("ForMaskedLM"))
    }

    fn is_classifier(&self) -> bool {
        self.architectures.iter().any(|name| name.ends_with("ForSequenceClassification"))
    }
}

/// How a model's hidden states are computed: by an ONNX graph or from a checkpoint.
#[derive(Debug)]
pub(super) enum ForwardPass {
    /// An ONNX graph, and the name of the output that the rest of the model takes.
    Graph { onnx: PathBuf, output: String },
    /// Parameters of an architecture that our own code computes.
    Checkpoint(Box<Checkpoint>),
}

/// What the files of a model directory are and how they fit together; no weights are loaded.
#[derive(Debug)]
pub(super) struct Layout {
    dir: PathBuf,
    pub(super) forward: ForwardPass,
    pub(super) tokenizer: PathBuf,
    kind: ModelKind,
    pub(super) pooling: Pooling,
    pub(super) normalize: bool,
    pub(super) activation: Activation,
    pub(super) query_weights: Option<PathBuf>,
    pub(super) max_tokens: usize,
    /// `None` if the files do not say: that of a large model is then chosen when it is packed.
    pub(super) arithmetic: Option<Arithmetic>,
    pub(super) trunk: Option<Trunk>,
    dense_factor: f32,
    language: Option<String>,
    same_space_as: Vec<String>,
    calibration: Option<Calibration>,
    prefixes: Prefixes,
    vocabulary_size: usize,
    files: Vec<PathBuf>,
}

impl Layout {
    /// The fingerprint of all files of the model, and the sum of their lengths in bytes.
    pub(super) fn fingerprint(&self) -> Result<(String, u64), EncoderError> {
        fingerprint::fingerprint(&self.dir, &self.files)
    }

    /// The identity that packed weights must have to be used for the files as they are now; `None` if a file is
    /// missing.
    pub(super) fn identity(&self, kernels: String) -> Option<Identity> {
        Identity::of(kernels, &self.dir, &self.files)
    }

    /// Facts about the model, given its fingerprint and the length of its files in bytes.
    pub(super) fn info(&self, (fingerprint, size_bytes): (String, u64)) -> ModelInfo {
        ModelInfo {
            kind: self.kind,
            fingerprint,
            size_bytes,
            vocabulary_size: self.vocabulary_size,
            max_tokens: self.max_tokens,
            dims: self.dims(),
            same_space_as: self.same_space_as.clone(),
            trunk: self.trunk.clone(),
            dense_factor: self.dense_factor,
            language: self.language.clone(),
            calibration: self.calibration,
            prefixes: self.prefixes.clone(),
            recognised: self.recognised(),
        }
    }

    /// Length of the model's vectors; `None` if it makes no dense vectors.
    pub(super) fn dims(&self) -> Option<usize> {
        match self.kind {
            ModelKind::Dense { dims } => Some(dims),
            ModelKind::SparseMlm | ModelKind::SparseDocOnly | ModelKind::CrossEncoder => None,
        }
    }

    /// The directory of the model.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn is_sparse(&self) -> bool {
        self.kind.is_sparse()
    }

    pub(super) fn is_cross_encoder(&self) -> bool {
        self.kind == ModelKind::CrossEncoder
    }

    /// The head of a cross-encoder.
    ///
    /// # Errors
    /// As [`Checkpoint::scorer`].
    pub(super) fn scorer(&self) -> Result<Scorer, EncoderError> {
        match &self.forward {
            ForwardPass::Checkpoint(checkpoint) => checkpoint.scorer(),
            ForwardPass::Graph { .. } => Err(EncoderError::Unsupported {
                path: self.dir.clone(),
                reason: "a graph has no head of its own".into(),
            }),
        }
    }
}

/// Reads a JSON file of the model and adds its path to `files`; `None` if it does not exist.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(
    path: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<Option<T>, EncoderError> {
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.to_path_buf(), reason };
    match small_file::read(path) {
        Ok(bytes) => {
            files.push(path.to_path_buf());
            serde_json::from_slice(&bytes).map(Some).map_err(|error| unreadable(error.to_string()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

/// The activation of a name that sentence-transformers uses: its `relu` stands for `log1p(relu(x))`.
pub(super) fn activation(name: &str) -> Option<Activation> {
    match name {
        "relu" | "log1p" => Some(Activation::Log1p),
        "log1p_relu" | "log1p_log1p" => Some(Activation::Log1pTwice),
        "none" => Some(Activation::Done),
        _ => None,
    }
}
