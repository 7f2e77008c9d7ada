//! Detects the layout of a model directory.

use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::error::EncoderError;
use crate::pooling::Activation;

use super::super::checkpoint::{self, Architecture, Checkpoint};
use super::super::sentence_transformers::{self, Modules, Prompts};
use super::super::{ModelKind, calibration, onnx};
use super::{Config, Description, ForwardPass, Kind, Layout, MAX_TOKENS, Pooling, activation, read_json};

/// What `dense_factor` may be: beyond that, one of the two kinds of vectors would not count.
const DENSE_FACTORS: RangeInclusive<f32> = 0.05..=20.0;

impl Layout {
    /// Reads the small files of a directory and decides what kind of model it holds and how it is computed.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if a needed file is missing or damaged, [`EncoderError::Unsupported`] if the
    /// output fits no kind.
    pub(in crate::model) fn detect(dir: &Path) -> Result<Self, EncoderError> {
        let unreadable = |path: &Path, reason: &str| EncoderError::ModelNotReadable {
            path: path.to_path_buf(),
            reason: reason.into(),
        };
        let unsupported = |reason: String| unsupported(dir, reason);
        if !dir.is_dir() {
            return Err(unreadable(dir, "no such directory"));
        }
        let mut files = Vec::new();
        let said: Option<Description> = read_json(&dir.join("sparrow.json"), &mut files)?;
        let said = said.unwrap_or_default();
        let tokenizer = dir.join("tokenizer.json");
        if said.trunk.is_none() {
            if !tokenizer.is_file() {
                return Err(unreadable(&tokenizer, "no such file"));
            }
            files.push(tokenizer.clone());
        }
        let (config, architecture) = read_config(dir, &mut files)?;
        let modules = Modules::read(dir, &mut files)?;
        let prompts = Prompts::read(dir, &mut files)?;
        let (forward, shape) = find_forward_pass(dir, architecture, said.trunk.is_some(), &mut files)?;
        let width = shape.last().copied().flatten();
        let pooled = shape.len() == 2;
        // A sentence encoder says how it pools; a classifier without that reads a question and a text together.
        let classifies =
            config.is_classifier() && modules.as_ref().is_none_or(|modules| modules.is_sparse().is_none());
        let over_vocabulary = is_over_vocabulary(&forward, &config, modules.as_ref(), width);
        let query_weights = said.query_weights.as_ref().map(|name| inside(dir, "query_weights", name));
        let query_weights = query_weights.transpose()?.or_else(|| {
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
        let pooling = pooling_of(dir, &said, &forward, kind, &shape, &mut files)?;
        if kind == Kind::Dense
            && let Some(foreign) = modules.as_ref().and_then(Modules::foreign)
        {
            not_left_out(foreign, &forward, &said, pooling).map_err(unsupported)?;
        }
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
        let kind = with_dims(dir, kind, said.dims.or(prompts.truncate_dim), width, config.hidden_size)?;
        let max_tokens = most_tokens(said.max_tokens.or(sentence_transformers::max_tokens(dir)?), &config);
        let vocabulary_size = config.vocab_size.or(width.filter(|_| kind.is_sparse()));
        files.extend(query_weights.clone());
        let dense_factor = said.dense_factor.unwrap_or(1.0);
        if !DENSE_FACTORS.contains(&dense_factor) {
            return Err(unsupported(format!(
                "[dense_factor] must be between [{}] and [{}], got [{dense_factor}]",
                DENSE_FACTORS.start(),
                DENSE_FACTORS.end()
            )));
        }
        let mut layout = Self {
            dir: dir.to_path_buf(),
            forward,
            tokenizer,
            kind,
            pooling,
            normalize,
            activation,
            query_weights,
            max_tokens,
            arithmetic: said.arithmetic,
            trunk: said.trunk,
            dense_factor,
            language: said.language,
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
}

/// The path of a file that a key of `sparrow.json` names. A model may come from anywhere, and must not read what lies beside it.
///
/// # Errors
/// When the name leads out of the directory.
fn inside(dir: &Path, key: &str, name: &str) -> Result<PathBuf, EncoderError> {
    let mut components = Path::new(name).components().peekable();
    let stays = components.peek().is_some() && components.all(|part| matches!(part, Component::Normal(_)));
    if stays {
        return Ok(dir.join(name));
    }
    Err(EncoderError::ModelNotReadable {
        path: dir.join("sparrow.json"),
        reason: format!("[{key}] must name a file in the directory of the model, got [{name}]"),
    })
}

/// The error of a directory that holds no model that Sparrow runs.
fn unsupported(dir: &Path, reason: impl Into<String>) -> EncoderError {
    EncoderError::Unsupported { path: dir.to_path_buf(), reason: reason.into() }
}

/// Whether the output has a number for each term of the vocabulary.
fn is_over_vocabulary(
    forward: &ForwardPass,
    config: &Config,
    modules: Option<&Modules>,
    width: Option<usize>,
) -> bool {
    match forward {
        ForwardPass::Graph { output, .. } => {
            output == "logits" || width.is_some() && width == config.vocab_size
        }
        ForwardPass::Checkpoint(checkpoint) => match modules.and_then(Modules::is_sparse) {
            Some(sparse) => sparse,
            None => config.is_masked_lm() && checkpoint.has_head(),
        },
    }
}

/// How the hidden states or logits of a text's tokens are combined into one vector or score.
fn pooling_of(
    dir: &Path,
    said: &Description,
    forward: &ForwardPass,
    kind: Kind,
    shape: &[Option<usize>],
    files: &mut Vec<PathBuf>,
) -> Result<Pooling, EncoderError> {
    Ok(match (said.pooling, forward) {
        (_, ForwardPass::Checkpoint(_)) if kind == Kind::CrossEncoder => Pooling::Classifier,
        (_, ForwardPass::Graph { output, .. }) if kind == Kind::CrossEncoder => {
            gives_scores(output, shape).map_err(|reason| unsupported(dir, reason))?;
            Pooling::Done
        }
        (Some(pooling), _) => pooling,
        (None, _) if shape.len() == 2 => Pooling::Done,
        (None, _) if kind != Kind::Dense => Pooling::Splade,
        (None, _) => sentence_transformers::dense_pooling(dir, files)?,
    })
}

/// The kind of a model, with the length of dense vectors: the one they are `cut` to, that of the output, or of the hidden states.
fn with_dims(
    dir: &Path,
    kind: Kind,
    cut: Option<usize>,
    width: Option<usize>,
    hidden_size: Option<usize>,
) -> Result<ModelKind, EncoderError> {
    if let (Some(cut), Some(width)) = (cut, width)
        && kind == Kind::Dense
        && !(1..=width).contains(&cut)
    {
        return Err(unsupported(dir, format!("its vectors have {width} numbers and cannot be cut to {cut}")));
    }
    let dims = cut.or(width).or(hidden_size);
    Ok(match kind {
        Kind::SparseMlm => ModelKind::SparseMlm,
        Kind::SparseDocOnly => ModelKind::SparseDocOnly,
        Kind::Dense => ModelKind::Dense {
            dims: dims.ok_or_else(|| unsupported(dir, "the length of its vectors is not known"))?,
        },
        Kind::CrossEncoder => ModelKind::CrossEncoder,
    })
}

/// Checks a module that our own code does not compute: the graph must include it.
///
/// # Errors
/// A message, if nothing would compute the module, since leaving it out would silently give other vectors.
fn not_left_out(
    module: &str,
    forward: &ForwardPass,
    said: &Description,
    pooling: Pooling,
) -> Result<(), String> {
    match forward {
        ForwardPass::Checkpoint(_) => {
            Err(format!("module [{module}] of modules.json is not computed from a checkpoint"))
        }
        // A configuration that says how to pool says what comes after the graph.
        ForwardPass::Graph { output, .. } if pooling != Pooling::Done && said.pooling.is_none() => {
            Err(format!(
                "module [{module}] of modules.json comes after the output [{output}] of its graph, and nothing computes it: export \
             the model with its modules, as output [sentence_embedding]"
            ))
        }
        ForwardPass::Graph { .. } => Ok(()),
    }
}

/// Most tokens of a text that a model can take: the smallest of what its directory says, its table of positions, and 512.
fn most_tokens(said: Option<usize>, config: &Config) -> usize {
    // RoBERTa counts positions from 2: the last two of its table are never used.
    let reserved = usize::from(config.model_type.as_deref().is_some_and(|kind| kind.contains("roberta"))) * 2;
    let positions =
        config.max_position_embeddings.map_or(MAX_TOKENS, |positions| positions.saturating_sub(reserved));
    said.unwrap_or(MAX_TOKENS).min(positions).min(MAX_TOKENS)
}

/// Chooses between the graph and the checkpoint of a directory; also the shape of the output, with a row for each text or for each of its
/// tokens. Many directories on the Hugging Face hub have both: a checkpoint that our own code computes is preferred to a graph, which
/// needs ONNX Runtime.
fn find_forward_pass(
    dir: &Path,
    architecture: Result<Architecture, EncoderError>,
    is_head: bool,
    files: &mut Vec<PathBuf>,
) -> Result<(ForwardPass, Vec<Option<usize>>), EncoderError> {
    let onnx =
        ["model.onnx", "onnx/model.onnx"].iter().map(|name| dir.join(name)).find(|path| path.is_file());
    let parts = checkpoint::files(dir)?;
    let checkpoint = parts
        .as_ref()
        .map(|parts| architecture.and_then(|known| Checkpoint::open(dir, parts, known, is_head)));
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
    let output = ["logits", "sentence_embedding", "last_hidden_state", "token_embeddings"]
        .iter()
        .find_map(|name| outputs.iter().find(|output| output.name == *name))
        .or_else(|| outputs.first());
    let output = output.ok_or_else(|| EncoderError::Unsupported {
        path: dir.to_path_buf(),
        reason: "its graph has no output".into(),
    })?;
    let (output, shape) = (output.name.clone(), output.shape.clone());
    files.push(onnx.clone());
    files.extend(external_data(&onnx));
    Ok((ForwardPass::Graph { onnx, output }, shape))
}

/// Checks that the output of a graph can be one score for each text. A size that the graph leaves open is only checked when it runs.
///
/// # Errors
/// A sentence that says what the graph outputs instead.
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

/// Reads `config.json`; all keys are absent if the file is. An error in the description of the architecture is returned apart, as it
/// matters only if a checkpoint is used.
fn read_config(
    dir: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<(Config, Result<Architecture, EncoderError>), EncoderError> {
    let path = dir.join("config.json");
    let Some(json) = read_json::<Value>(&path, files)? else {
        return Ok((Config::default(), Ok(Architecture::default())));
    };
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.clone(), reason };
    let config = Config::deserialize(&json).map_err(|error| unreadable(error.to_string()))?;
    let architecture = with_usual_names(json)
        .and_then(|json| Architecture::deserialize(json).map_err(|error| error.to_string()));
    Ok((config, architecture.map_err(unreadable)))
}

/// Keys of `config.json` as DistilBERT writes them, and as other encoders do.
const OTHER_NAMES: [(&str, &str); 5] = [
    ("dim", "hidden_size"),
    ("n_layers", "num_hidden_layers"),
    ("n_heads", "num_attention_heads"),
    ("hidden_dim", "intermediate_size"),
    ("activation", "hidden_act"),
];

/// Gives each key that has two names the usual one.
///
/// # Errors
/// A sentence that names both where they say different things.
fn with_usual_names(mut config: Value) -> Result<Value, String> {
    let Some(keys) = config.as_object_mut() else { return Ok(config) };
    for (other, usual) in OTHER_NAMES {
        let Some(value) = keys.remove(other).filter(|value| !value.is_null()) else { continue };
        match keys.get(usual).filter(|given| !given.is_null()) {
            Some(given) if *given != value => {
                return Err(format!("[{usual}] is {given} and [{other}], which means the same, is {value}"));
            }
            _ => keys.insert(usual.to_owned(), value),
        };
    }
    Ok(config)
}

/// Weights that exporters put beside a large graph.
fn external_data(onnx: &Path) -> Option<PathBuf> {
    ["onnx_data", "onnx.data"]
        .iter()
        .map(|extension| onnx.with_extension(extension))
        .find(|path| path.is_file())
}
