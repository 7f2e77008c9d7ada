//! What kind of model a directory holds, from the files that the ecosystem puts there.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::EncoderError;
use crate::packed::Identity;
use crate::pooling::Activation;
use crate::scorer::Scorer;
use crate::stored::Stored;

use super::checkpoint::{self, Architecture, Checkpoint};
use super::decoder::Source;
use super::sentence_transformers::{self, Modules, Prompts};
use super::{Calibration, ModelInfo, ModelKind, Prefixes, calibration, fingerprint, onnx, safetensors};

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
    /// Looks at a directory.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if a needed file is missing or damaged, [`EncoderError::Unsupported`] if the
    /// output fits no kind.
    pub(super) fn detect(dir: &Path) -> Result<Self, EncoderError> {
        let unreadable = |path: &Path, reason: &str| EncoderError::ModelNotReadable {
            path: path.to_path_buf(),
            reason: reason.into(),
        };
        let unsupported = |reason: String| EncoderError::Unsupported { path: dir.to_path_buf(), reason };
        if !dir.is_dir() {
            return Err(unreadable(dir, "no such directory"));
        }
        let tokenizer = dir.join("tokenizer.json");
        if !tokenizer.is_file() {
            return Err(unreadable(&tokenizer, "no such file"));
        }
        let mut files = vec![tokenizer.clone()];
        let said: Option<Description> = read_json(&dir.join("sparrow.json"), &mut files)?;
        let said_so = said.is_some();
        let said = said.unwrap_or_default();
        let (config, architecture) = read_config(dir, &mut files)?;
        let modules = Modules::read(dir, &mut files)?;
        let prompts = Prompts::read(dir, &mut files)?;
        let (forward, shape) = find_forward_pass(dir, &said, said_so, architecture, &mut files)?;
        let width = shape.last().copied().flatten();
        let pooled = shape.len() == 2;
        // A sentence encoder says how it pools; a classifier without that reads a question and a text together.
        let classifies =
            config.is_classifier() && modules.as_ref().is_none_or(|modules| modules.is_sparse().is_none());
        let over_vocabulary = match &forward {
            ForwardPass::Graph { output, .. } => {
                output == "logits"
                    || config.is_masked_lm() && said.head.is_some()
                    || width.is_some() && width == config.vocab_size
            }
            ForwardPass::Checkpoint(checkpoint) => match modules.as_ref().and_then(Modules::is_sparse) {
                Some(sparse) => sparse,
                None => config.is_masked_lm() && checkpoint.has_head(),
            },
        };

        let query_weights = said.query_weights.as_ref().map(|name| dir.join(name)).or_else(|| {
            ["idf.json", "query_token_weights.txt"].iter().map(|name| dir.join(name)).find(|p| p.is_file())
        });
        let kind = said.kind.unwrap_or(match (over_vocabulary, &query_weights) {
            _ if classifies => Kind::CrossEncoder,
            (true, Some(_)) => Kind::SparseDocOnly,
            (true, None) => Kind::SparseMlm,
            (false, _) => Kind::Dense,
        });
        if kind == Kind::SparseDocOnly && query_weights.is_none() {
            return Err(unreadable(
                &dir.join("idf.json"),
                "no such file, and the model encodes documents only",
            ));
        }
        let pooling = match (said.pooling, &forward) {
            (_, ForwardPass::Checkpoint(_)) if kind == Kind::CrossEncoder => Pooling::Classifier,
            (_, ForwardPass::Graph { output, .. }) if kind == Kind::CrossEncoder => {
                gives_scores(output, &shape).map_err(unsupported)?;
                Pooling::Done
            }
            (Some(pooling), _) => pooling,
            (None, _) if pooled => Pooling::Done,
            (None, _) if kind != Kind::Dense => Pooling::Splade,
            (None, _) => sentence_transformers::dense_pooling(dir, &mut files)?,
        };
        if let (ForwardPass::Checkpoint(_), Some(modules), Kind::Dense) = (&forward, &modules, kind)
            && let Some(foreign) = modules.foreign()
        {
            return Err(unsupported(format!(
                "module [{foreign}] of modules.json is not computed from a checkpoint"
            )));
        }
        let head = said.head.as_ref().map(|name| HeadFile {
            path: dir.join(name),
            weight: said.head_weight.clone().unwrap_or_else(|| "decoder.weight".into()),
            bias: if said_so { said.head_bias.clone() } else { None },
        });
        let activation = match &said.activation {
            Some(name) => activation(name).ok_or_else(|| unsupported(format!("activation [{name}]")))?,
            None => sentence_transformers::splade_activation(dir, &mut files)?.unwrap_or(if pooled {
                Activation::Done
            } else {
                Activation::Log1p
            }),
        };
        let normalize = said.normalize.unwrap_or_else(|| {
            // Without a list of modules the forward pass is all that is known; cosine similarity is the safe reading.
            modules.as_ref().is_none_or(Modules::normalizes)
        });
        let cut = said.dims.or(prompts.truncate_dim);
        if let (Some(cut), Some(width)) = (cut, width)
            && kind == Kind::Dense
            && !(1..=width).contains(&cut)
        {
            return Err(unsupported(format!("its vectors have {width} numbers and cannot be cut to {cut}")));
        }
        let dims = cut.or(width).or(config.hidden_size);
        let kind = match kind {
            Kind::SparseMlm => ModelKind::SparseMlm,
            Kind::SparseDocOnly => ModelKind::SparseDocOnly,
            Kind::Dense => ModelKind::Dense {
                dims: dims.ok_or_else(|| unsupported("the length of its vectors is not known".into()))?,
            },
            Kind::CrossEncoder => ModelKind::CrossEncoder,
        };
        let arithmetic = said.arithmetic.unwrap_or_default();
        if arithmetic == Arithmetic::Int8 && !matches!(kind, ModelKind::Dense { .. }) {
            return Err(unsupported(
                "arithmetic [int8] of a model of token weights or a cross-encoder, which are exact".into(),
            ));
        }
        // RoBERTa counts positions from 2: the last two of its table are never used.
        let reserved =
            usize::from(config.model_type.as_deref().is_some_and(|kind| kind.contains("roberta"))) * 2;
        let positions =
            config.max_position_embeddings.map_or(MAX_TOKENS, |positions| positions.saturating_sub(reserved));
        let max_tokens = said.max_tokens.unwrap_or(MAX_TOKENS).min(positions).min(MAX_TOKENS);
        let vocabulary_size = config.vocab_size.or(width.filter(|_| kind.is_sparse()));
        files.extend(head.as_ref().map(|head| head.path.clone()));
        files.extend(query_weights.clone());
        let mut layout = Self {
            dir: dir.to_path_buf(),
            forward,
            tokenizer,
            kind,
            pooling,
            normalize,
            head,
            activation,
            query_weights,
            max_tokens,
            arithmetic,
            same_space_as: said.same_space_as,
            calibration: calibration::load(dir, kind)?,
            prefixes: prompts.prefixes(),
            vocabulary_size: vocabulary_size.unwrap_or(0),
            files,
        };
        if layout.vocabulary_size == 0 {
            let tokenizer = crate::tokenizer::TextTokenizer::load(&layout.tokenizer, layout.max_tokens)?;
            layout.vocabulary_size = tokenizer.vocabulary_size();
        }
        Ok(layout)
    }

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

/// The graph or the checkpoint, and the shape of its output: a row for each text, or for each of its tokens. A directory may have both, as most on Hugging Face's hub do: a checkpoint that our own code computes
/// is taken before a graph, which may need ONNX Runtime, unless `sparrow.json` describes the graph.
fn find_forward_pass(
    dir: &Path,
    said: &Description,
    said_so: bool,
    architecture: Architecture,
    files: &mut Vec<PathBuf>,
) -> Result<(ForwardPass, Vec<Option<usize>>), EncoderError> {
    let onnx =
        ["model.onnx", "onnx/model.onnx"].iter().map(|name| dir.join(name)).find(|path| path.is_file());
    let parts = checkpoint::files(dir)?;
    let checkpoint = match (&parts, &onnx) {
        (Some(_), Some(_)) if said_so => None,
        (Some(parts), _) => Some(Checkpoint::open(dir, parts, architecture)),
        (None, _) => None,
    };
    let onnx = match (checkpoint, onnx) {
        (Some(Ok(checkpoint)), _) => {
            files.extend(parts.into_iter().flatten());
            let shape = vec![None, None, Some(checkpoint.width())];
            return Ok((ForwardPass::Checkpoint(Box::new(checkpoint)), shape));
        }
        (Some(Err(error)), None) => return Err(error),
        (_, Some(onnx)) => onnx,
        (None, None) => {
            let reason = if dir.join("pytorch_model.bin").is_file() {
                "pytorch_model.bin is not read: save the model as model.safetensors, or export it as model.onnx"
            } else {
                "there is no model.onnx and no model.safetensors"
            };
            return Err(EncoderError::ModelNotReadable { path: dir.to_path_buf(), reason: reason.into() });
        }
    };
    let outputs = onnx::outputs(&onnx)?;
    let wanted = said.hidden_output.as_deref();
    let output = match wanted {
        Some(name) => outputs.iter().find(|output| output.name == name),
        None => ["logits", "sentence_embedding", "last_hidden_state", "token_embeddings"]
            .iter()
            .find_map(|name| outputs.iter().find(|output| output.name == *name))
            .or_else(|| outputs.first()),
    };
    let output = output.ok_or_else(|| EncoderError::Unsupported {
        path: dir.to_path_buf(),
        reason: format!("graph has no output [{}]", wanted.unwrap_or("logits")),
    })?;
    let (output, shape) = (output.name.clone(), output.shape.clone());
    files.push(onnx.clone());
    files.extend(external_data(&onnx));
    Ok((ForwardPass::Graph { onnx, output }, shape))
}

/// Whether the output of a graph can be one number for each text. A size that the graph does not say is found out when it runs.
///
/// # Errors
/// When the graph gives something else than one number for each text; the sentence says what.
fn gives_scores(output: &str, shape: &[Option<usize>]) -> Result<(), String> {
    match shape {
        [] | [_, None | Some(1)] => Ok(()),
        [_, Some(labels)] => {
            Err(format!("its graph gives [{labels}] labels; a cross-encoder that ranks texts has one"))
        }
        _ => {
            let sizes: Vec<String> =
                shape.iter().map(|size| size.map_or("?".into(), |size| size.to_string())).collect();
            Err(format!(
                "output [{output}] of its graph has the shape [{}]; a cross-encoder that ranks texts gives [texts, 1]",
                sizes.join(", ")
            ))
        }
    }
}

/// What matters in `config.json`; nothing, where there is none.
fn read_config(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(Config, Architecture), EncoderError> {
    let path = dir.join("config.json");
    let Some(json) = read_json::<serde_json::Value>(&path, files)? else { return Ok(Default::default()) };
    let unreadable = |error: serde_json::Error| EncoderError::ModelNotReadable {
        path: path.clone(),
        reason: error.to_string(),
    };
    let config = Config::deserialize(&json).map_err(unreadable)?;
    // A graph needs none of it: what is unusual there is said where it matters.
    Ok((config, Architecture::deserialize(&json).unwrap_or_default()))
}

/// Reads a JSON file, if there is one, and notes it as part of the model.
pub(super) fn read_json<T: serde::de::DeserializeOwned>(
    path: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<Option<T>, EncoderError> {
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.to_path_buf(), reason };
    match std::fs::read(path) {
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

/// Weights that exporters put beside a large graph.
fn external_data(onnx: &Path) -> Option<PathBuf> {
    ["onnx_data", "onnx.data"]
        .iter()
        .map(|extension| onnx.with_extension(extension))
        .find(|path| path.is_file())
}
