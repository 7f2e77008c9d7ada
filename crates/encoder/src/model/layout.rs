//! What kind of model a directory holds, from the files that the ecosystem puts there.

mod detect;

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::EncoderError;
use crate::packed::Identity;
use crate::pooling::Activation;
use crate::scorer::Scorer;
use crate::small_file;
use crate::stored::Stored;

use super::checkpoint::Checkpoint;
use super::decoder::Source;
use super::{Calibration, ModelInfo, ModelKind, Prefixes, fingerprint, safetensors};

/// Most tokens of a text that are encoded, whatever a model could take.
pub(super) const MAX_TOKENS: usize = 512;

/// Where the vectors of a text's tokens become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Pooling {
    /// Maximum over tokens of the logits.
    Splade,
    /// Mean over tokens.
    Mean,
    /// The first token.
    Cls,
    /// The last token.
    Last,
    /// The head of a cross-encoder makes one number of them.
    #[serde(skip)]
    Classifier,
    /// The graph does it.
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

/// `sparrow.json`, which overrules what is detected. Every key may be absent.
#[derive(Debug, Default, Deserialize)]
struct Description {
    kind: Option<Kind>,
    pooling: Option<Pooling>,
    normalize: Option<bool>,
    hidden_output: Option<String>,
    head: Option<String>,
    head_weight: Option<String>,
    head_bias: Option<String>,
    max_tokens: Option<usize>,
    dims: Option<usize>,
    activation: Option<String>,
    query_weights: Option<String>,
    arithmetic: Option<Arithmetic>,
    #[serde(default)]
    same_space_as: Vec<String>,
}

/// What a model's linear maps are computed in, where our own code computes them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Arithmetic {
    #[default]
    Float32,
    /// Weights and rows of 8 bits.
    Int8,
}

/// The keys of `config.json` that matter here.
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

/// A decoder beside the graph.
#[derive(Debug)]
pub(super) struct HeadFile {
    path: PathBuf,
    weight: String,
    bias: Option<String>,
}

impl HeadFile {
    /// Finds the decoder.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if a tensor is missing or of another shape.
    pub(super) fn find(&self) -> Result<Source, EncoderError> {
        let weight = safetensors::find(&self.path, &self.weight)?;
        let [terms, dims] = weight.shape[..] else {
            return Err(self.unreadable(format!("tensor [{}] is not a matrix", self.weight)));
        };
        let bias = match &self.bias {
            Some(name) => safetensors::find(&self.path, name)?.values,
            None => Stored::Here(vec![0.0; terms]),
        };
        if bias.len() != terms {
            return Err(self.unreadable(format!("{} biases do not fit {terms} terms", bias.len())));
        }
        Ok(Source { rows: weight.values, transposed: false, bias, terms, dims })
    }

    /// The error of a decoder that cannot be used.
    pub(super) fn unreadable(&self, reason: String) -> EncoderError {
        EncoderError::ModelNotReadable { path: self.path.clone(), reason }
    }
}

/// Where a model's forward pass comes from.
#[derive(Debug)]
pub(super) enum ForwardPass {
    /// An ONNX graph, and the name of the output that the rest of the model takes.
    Graph { onnx: PathBuf, output: String },
    /// Parameters of an architecture that our own code computes.
    Checkpoint(Box<Checkpoint>),
}

/// A model directory, understood but not loaded.
#[derive(Debug)]
pub(super) struct Layout {
    dir: PathBuf,
    pub(super) forward: ForwardPass,
    pub(super) tokenizer: PathBuf,
    kind: ModelKind,
    pub(super) pooling: Pooling,
    pub(super) normalize: bool,
    pub(super) head: Option<HeadFile>,
    pub(super) activation: Activation,
    pub(super) query_weights: Option<PathBuf>,
    pub(super) max_tokens: usize,
    pub(super) arithmetic: Arithmetic,
    same_space_as: Vec<String>,
    calibration: Option<Calibration>,
    prefixes: Prefixes,
    vocabulary_size: usize,
    files: Vec<PathBuf>,
}

impl Layout {
    /// The fingerprint of all files and the sum of their lengths.
    pub(super) fn fingerprint(&self) -> Result<(String, u64), EncoderError> {
        fingerprint::fingerprint(&self.dir, &self.files)
    }

    /// What weights that are packed of the files as they are now must say; `None` if a file is not there.
    pub(super) fn identity(&self, kernels: String) -> Option<Identity> {
        Identity::of(kernels, &self.dir, &self.files)
    }

    /// The facts, with what [`Layout::fingerprint`] gives.
    pub(super) fn info(&self, (fingerprint, size_bytes): (String, u64)) -> ModelInfo {
        ModelInfo {
            kind: self.kind,
            fingerprint,
            size_bytes,
            vocabulary_size: self.vocabulary_size,
            max_tokens: self.max_tokens,
            dims: self.dims(),
            same_space_as: self.same_space_as.clone(),
            calibration: self.calibration,
            prefixes: self.prefixes.clone(),
            recognised: self.recognised(),
        }
    }

    /// The name of the output that the rest of the model takes.
    pub(super) fn output(&self) -> &str {
        match &self.forward {
            ForwardPass::Graph { output, .. } => output,
            ForwardPass::Checkpoint(_) => "last_hidden_state",
        }
    }

    /// Length of the vectors, if it makes such.
    pub(super) fn dims(&self) -> Option<usize> {
        match self.kind {
            ModelKind::Dense { dims } => Some(dims),
            ModelKind::SparseMlm | ModelKind::SparseDocOnly | ModelKind::CrossEncoder => None,
        }
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

/// Reads a JSON file, if there is one, and notes it as part of the model.
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

/// Names as sentence-transformers writes them: its `relu` stands for the plain `log1p(relu(x))`.
pub(super) fn activation(name: &str) -> Option<Activation> {
    match name {
        "relu" | "log1p" => Some(Activation::Log1p),
        "log1p_relu" | "log1p_log1p" => Some(Activation::Log1pTwice),
        "none" => Some(Activation::Done),
        _ => None,
    }
}
