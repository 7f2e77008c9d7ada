//! The parameters of an encoder in a checkpoint of Hugging Face's Transformers: `model.safetensors`, in one file or in several, and
//! what `config.json` says of its architecture.
//!
//! BERT, DistilBERT and RoBERTa (XLM-R, CamemBERT) compute the same under different names; RoBERTa counts positions from
//! another start. Whatever else an architecture does differently is refused by name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::bert::{LayerWeights, LinearWeights, NormWeights, Refused, Weights};
use crate::error::EncoderError;
use crate::small_file;
use crate::stored::Stored;

use super::decoder::Source;
use super::safetensors::{Tensor, Tensors};

/// A checkpoint in one file.
const WHOLE: &str = "model.safetensors";
/// The list of the files of a checkpoint in several: `{"weight_map": {tensor: file}}`.
const INDEX: &str = "model.safetensors.index.json";
/// Name of the word embeddings, which every encoder but ModernBERT has; what precedes it in a file is the prefix of all encoder tensors.
const WORDS: &str = "embeddings.word_embeddings.weight";
const MODERN_WORDS: &str = "embeddings.tok_embeddings.weight";
/// Most layers of an encoder that is accepted.
pub(super) const MAX_LAYERS: usize = 100;

/// The keys of `config.json` that say how an encoder computes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Architecture {
    model_type: String,
    hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    vocab_size: Option<usize>,
    intermediate_size: Option<usize>,
    hidden_act: Option<String>,
    layer_norm_eps: Option<f32>,
    norm_eps: Option<f32>,
    hidden_activation: Option<String>,
    #[serde(flatten)]
    pub(super) modern: ModernKeys,
    position_embedding_type: Option<String>,
    pad_token_id: Option<usize>,
    is_decoder: bool,
    pub(super) classifier_pooling: Option<String>,
    pub(super) classifier_activation: Option<String>,
}

/// The keys of `config.json` that only ModernBERT has.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ModernKeys {
    pub(super) local_attention: Option<usize>,
    pub(super) global_attn_every_n_layers: Option<usize>,
    pub(super) layer_types: Option<Vec<String>>,
    pub(super) global_rope_theta: Option<f32>,
    pub(super) local_rope_theta: Option<f32>,
    /// The parameters of rotary positions by type of layer, in newer files; other architectures use this key for other
    /// things.
    pub(super) rope_parameters: serde_json::Value,
    pub(super) max_position_embeddings: Option<usize>,
}

/// Names of the tensors of a layer, without the encoder's prefix.
#[derive(Debug)]
struct LayerNames {
    layers: &'static str,
    query: &'static str,
    key: &'static str,
    value: &'static str,
    attended: &'static str,
    attention_norm: &'static str,
    inner: &'static str,
    outer: &'static str,
    output_norm: &'static str,
}

const BERT: LayerNames = LayerNames {
    layers: "encoder.layer",
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    attended: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    inner: "intermediate.dense",
    outer: "output.dense",
    output_norm: "output.LayerNorm",
};

const DISTILBERT: LayerNames = LayerNames {
    layers: "transformer.layer",
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    attended: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    inner: "ffn.lin1",
    outer: "ffn.lin2",
    output_norm: "output_layer_norm",
};

/// Names of the parts of a masked language model's head.
pub(super) struct HeadNames {
    dense: &'static str,
    norm: &'static str,
    pub(super) decoder: &'static str,
    /// The two names under which files keep the decoder's bias; where a file has both, the first counts.
    bias: [&'static str; 2],
}

const HEADS: [HeadNames; 4] = [
    HeadNames {
        dense: "cls.predictions.transform.dense",
        norm: "cls.predictions.transform.LayerNorm",
        decoder: "cls.predictions.decoder.weight",
        bias: ["cls.predictions.decoder.bias", "cls.predictions.bias"],
    },
    HeadNames {
        dense: "lm_head.dense",
        norm: "lm_head.layer_norm",
        decoder: "lm_head.decoder.weight",
        bias: ["lm_head.decoder.bias", "lm_head.bias"],
    },
    HeadNames {
        dense: "vocab_transform",
        norm: "vocab_layer_norm",
        decoder: "vocab_projector.weight",
        bias: ["vocab_projector.bias", "vocab_projector.bias"],
    },
    HeadNames {
        dense: "head.dense",
        norm: "head.norm",
        decoder: "decoder.weight",
        bias: ["decoder.bias", "decoder.bias"],
    },
];

/// A checkpoint whose architecture is known; its parameters are not read.
#[derive(Debug)]
pub(super) struct Checkpoint {
    dir: PathBuf,
    pub(super) architecture: Architecture,
    names: &'static LayerNames,
    files: Vec<Tensors>,
    /// Prefix of the encoder's tensor names, such as `bert.`; may be empty.
    prefix: String,
}

fn words_of(architecture: &Architecture) -> &'static str {
    if architecture.model_type == "modernbert" { MODERN_WORDS } else { WORDS }
}

/// The files of a directory's checkpoint, with the index of a checkpoint in several files first; `None` if there is no checkpoint.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if the index cannot be read or names a file outside the directory.
pub(super) fn files(dir: &Path) -> Result<Option<Vec<PathBuf>>, EncoderError> {
    #[derive(Deserialize)]
    struct Index {
        weight_map: BTreeMap<String, String>,
    }
    let whole = dir.join(WHOLE);
    if whole.is_file() {
        return Ok(Some(vec![whole]));
    }
    let path = dir.join(INDEX);
    let unreadable = |reason: String| EncoderError::ModelNotReadable { path: path.clone(), reason };
    let bytes = match small_file::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let index: Index = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    if let Some(name) =
        names.iter().find(|name| name.contains(['/', '\\']) || !name.ends_with(".safetensors"))
    {
        return Err(unreadable(format!("[{name}] is not a file of the checkpoint")));
    }
    let parts = names.iter().map(|name| dir.join(name)).collect::<Vec<_>>();
    Ok(Some([vec![path.clone()], parts].concat()))
}

impl Checkpoint {
    /// Reads `config.json` and the headers of the files that [`files`] returned. Those of a head have only its own layers.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if one is damaged, [`EncoderError::Unsupported`] for an architecture that our own code does
    /// not compute.
    pub(super) fn open(
        dir: &Path,
        files: &[PathBuf],
        architecture: Architecture,
        is_head: bool,
    ) -> Result<Self, EncoderError> {
        let unsupported = |reason: String| EncoderError::Unsupported { path: dir.to_path_buf(), reason };
        let names = match architecture.model_type.as_str() {
            "bert" | "roberta" | "xlm-roberta" | "camembert" => &BERT,
            "distilbert" => &DISTILBERT,
            // These names are not asked for: the parameters of ModernBERT are read in `modernbert.rs`.
            "modernbert" => &BERT,
            "" => return Err(unsupported("config.json does not say its [model_type]".into())),
            other => {
                return Err(unsupported(format!(
                    "[{other}] is not an architecture that is computed from a checkpoint; those are [bert], [distilbert], [roberta], \
                     [xlm-roberta], [camembert] and [modernbert]. It needs a graph, model.onnx, beside it"
                )));
            }
        };
        let said =
            |option: &Option<String>, wanted: &str| option.as_deref().is_none_or(|given| given == wanted);
        let activation = architecture.hidden_activation.clone().or(architecture.hidden_act.clone());
        if !said(&activation, "gelu") {
            let given = activation.unwrap_or_default();
            return Err(unsupported(format!("activation [{given}]; it has to be [gelu]")));
        }
        if !said(&architecture.position_embedding_type, "absolute") || architecture.is_decoder {
            return Err(unsupported("its positions are not absolute, or it is a decoder".into()));
        }
        let safetensors =
            files.iter().filter(|path| path.extension().is_some_and(|kind| kind == "safetensors"));
        let files = safetensors.map(|path| Tensors::open(path)).collect::<Result<Vec<_>, _>>()?;
        let (words, layers) = (words_of(&architecture), format!("{}.", names.layers));
        let prefix_of = |name| match is_head {
            true => str::find(name, &layers).map(|at| &name[..at]),
            false => str::strip_suffix(name, words),
        };
        let prefix = files.iter().flat_map(Tensors::names).find_map(prefix_of);
        let prefix = match (prefix, is_head) {
            (Some(prefix), _) => prefix.to_owned(),
            // It may have no layer of its own.
            (None, true) => String::new(),
            (None, false) => return Err(unsupported(format!("its checkpoint has no tensor [{words}]"))),
        };
        Ok(Self { dir: dir.to_path_buf(), architecture, names, files, prefix })
    }

    /// Whether it has the head of a masked language model.
    pub(super) fn has_head(&self) -> bool {
        self.head().is_some()
    }

    pub(super) fn is_modern(&self) -> bool {
        self.model_type() == "modernbert"
    }

    /// The type of the architecture, as `config.json` names it.
    pub(super) fn model_type(&self) -> &str {
        &self.architecture.model_type
    }

    /// The small number that layer normalisation adds to the variance before it divides by its root (`layer_norm_eps`, `norm_eps`).
    pub(super) fn norm_epsilon(&self) -> f32 {
        let Architecture { layer_norm_eps, norm_eps, .. } = self.architecture;
        if self.is_modern() { norm_eps.unwrap_or(1e-5) } else { layer_norm_eps.unwrap_or(1e-12) }
    }

    /// Length of a hidden state.
    pub(super) fn width(&self) -> usize {
        self.architecture.hidden_size
    }

    /// The parameters of the encoder, the large ones still in the file; with those of the masked language model's transform, if its head
    /// is wanted.
    ///
    /// # Errors
    /// [`EncoderError::Unsupported`] with the tensor that is missing or of another shape, or what a damaged file gives.
    pub(super) fn weights(&self, with_head: bool) -> Result<Weights, EncoderError> {
        let Architecture { hidden_size: width, num_attention_heads: heads, .. } = self.architecture;
        let layers = self.architecture.num_hidden_layers;
        if !(1..=MAX_LAYERS).contains(&layers) {
            return Err(self.unsupported(format!("{layers} layers; it must have 1 to {MAX_LAYERS}")));
        }
        let list = if self.is_modern() { "layers" } else { self.names.layers };
        let beyond = self.own(&format!("{list}.{layers}."));
        if self.files.iter().flat_map(Tensors::names).any(|name| name.starts_with(&beyond)) {
            let reason =
                format!("its checkpoint has tensors [{beyond}…], and config.json says {layers} layers");
            return Err(self.unsupported(reason));
        }
        if self.is_modern() {
            return self.modern_weights(with_head);
        }
        let words = self.words()?;
        let (positions, rows) = (
            self.own("embeddings.position_embeddings.weight"),
            self.architecture.modern.max_position_embeddings,
        );
        let mut positions = self.values(&self.matrix(&positions, rows, width)?)?;
        if !matches!(self.architecture.model_type.as_str(), "bert" | "distilbert") {
            // RoBERTa's first positions are of padding: a text starts behind it.
            let before = self.architecture.pad_token_id.unwrap_or(1).saturating_add(1).saturating_mul(width);
            positions.drain(..before.min(positions.len()));
        }
        let types = self.own("embeddings.token_type_embeddings.weight");
        let mut second_type = Vec::new();
        if self.find(&types)?.is_some() {
            // Most tokens are of the first type: it goes into the positions.
            let types = self.values(&self.matrix(&types, None, width)?)?;
            for row in positions.chunks_exact_mut(width) {
                row.iter_mut().zip(&types).for_each(|(position, kind)| *position += kind);
            }
            if let Some(second) = types.get(width..2 * width) {
                second_type = second.iter().zip(&types).map(|(second, first)| second - first).collect();
            }
        }
        Ok(Weights {
            width,
            heads,
            words: words.values,
            positions,
            second_type,
            embedding_norm: self.norm(&self.own("embeddings.LayerNorm"))?,
            layers: (0..layers).map(|number| self.layer(number)).collect::<Result<_, _>>()?,
            transform: self.transform(with_head)?,
            modern: None,
        })
    }

    /// The biases of the terms of a head, whose decoder is the word embeddings of the encoder below.
    ///
    /// # Errors
    /// As [`Checkpoint::weights`].
    pub(super) fn bias_of_terms(&self, terms: usize) -> Result<Stored, EncoderError> {
        let head = self.head().ok_or_else(|| self.no_head())?;
        let bias = match (self.find(head.bias[0])?, self.find(head.bias[1])?) {
            (Some(bias), _) | (None, Some(bias)) => bias.values,
            (None, None) => Stored::Here(vec![0.0; terms]),
        };
        if bias.len() != terms {
            return Err(self.unsupported(format!("{} biases do not fit {terms} terms", bias.len())));
        }
        Ok(bias)
    }

    fn no_head(&self) -> EncoderError {
        self.unsupported(
            "its checkpoint has no head of a masked language model, which token weights come from".into(),
        )
    }

    /// Locates the word embeddings, `[vocabulary][width]`.
    pub(super) fn words(&self) -> Result<Tensor, EncoderError> {
        self.matrix(&self.own(words_of(&self.architecture)), self.architecture.vocab_size, self.width())
    }

    /// The transform of the masked language model's head, if it is wanted.
    pub(super) fn transform(
        &self,
        wanted: bool,
    ) -> Result<Option<(LinearWeights, NormWeights)>, EncoderError> {
        let width = self.width();
        match self.head().filter(|_| wanted) {
            Some(head) => Ok(Some((self.linear(head.dense, width, width)?, self.norm(head.norm)?))),
            None => Ok(None),
        }
    }

    /// The decoder of the masked language model, which may be the word embeddings.
    ///
    /// # Errors
    /// As [`Checkpoint::weights`]; also if it has no such head.
    pub(super) fn decoder(&self) -> Result<Source, EncoderError> {
        let dims = self.width();
        let head = self.head().ok_or_else(|| self.no_head())?;
        let has_decoder = self.find(head.decoder)?.is_some();
        let rows = if has_decoder { self.matrix(head.decoder, None, dims)? } else { self.words()? };
        let bias = self.bias_of_terms(rows.shape[0])?;
        Ok(Source { rows: rows.values, bias, dims })
    }

    /// The error for parameters that the kernels do not accept, or that cannot be read.
    pub(super) fn unfit(&self, refused: Refused) -> EncoderError {
        match refused {
            Refused::Io(error) => self.unreadable(&error),
            other => self.unsupported(other.to_string()),
        }
    }

    fn unreadable(&self, error: &std::io::Error) -> EncoderError {
        EncoderError::ModelNotReadable { path: self.dir.clone(), reason: error.to_string() }
    }

    pub(super) fn head(&self) -> Option<&'static HeadNames> {
        let has = |name: &str| self.files.iter().flat_map(Tensors::names).any(|tensor| tensor == name);
        HEADS.iter().find(|head| has(&format!("{}.weight", head.dense)))
    }

    pub(super) fn layer(&self, number: usize) -> Result<LayerWeights, EncoderError> {
        let (names, width) = (self.names, self.width());
        let of_layer = |part: &str| self.own(&format!("{}.{number}.{part}", names.layers));
        let square = |part: &str| self.linear(&of_layer(part), width, width);
        let inner = match self.architecture.intermediate_size {
            Some(inner) => inner,
            None => self.tensor(&format!("{}.bias", of_layer(names.inner)))?.values.len(),
        };
        Ok(LayerWeights {
            query: square(names.query)?,
            key: square(names.key)?,
            value: square(names.value)?,
            attended: square(names.attended)?,
            attention_norm: self.norm(&of_layer(names.attention_norm))?,
            inner: self.linear(&of_layer(names.inner), width, inner)?,
            gate: None,
            outer: self.linear(&of_layer(names.outer), inner, width)?,
            output_norm: self.norm(&of_layer(names.output_norm))?,
        })
    }

    /// A linear map, which checkpoints keep as `[outputs][inputs]`.
    pub(super) fn linear(
        &self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<LinearWeights, EncoderError> {
        let weights = self.matrix(&format!("{name}.weight"), Some(outputs), inputs)?;
        let bias = self.bias(name, outputs)?;
        Ok(LinearWeights { weights: weights.values.transposed(inputs), bias })
    }

    /// The bias of a linear map or a normalisation, `length` numbers; zeros for a ModernBERT model without one, as is its default.
    pub(super) fn bias(&self, name: &str, length: usize) -> Result<Vec<f32>, EncoderError> {
        match self.find(&format!("{name}.bias"))? {
            Some(tensor) => self.values(&tensor),
            None if self.is_modern() => Ok(vec![0.0; length]),
            None => self.values(&self.tensor(&format!("{name}.bias"))?),
        }
    }

    /// A layer normalisation; the oldest checkpoints call its parameters `gamma` and `beta`.
    pub(super) fn norm(&self, name: &str) -> Result<NormWeights, EncoderError> {
        if self.is_modern() {
            let scale = self.values(&self.tensor(&format!("{name}.weight"))?)?;
            let shift = self.bias(name, scale.len())?;
            return Ok(NormWeights { scale, shift, epsilon: self.norm_epsilon() });
        }
        let either = |now: &str, before: &str| match self.find(&format!("{name}.{before}"))? {
            Some(tensor) => self.values(&tensor),
            None => self.values(&self.tensor(&format!("{name}.{now}"))?),
        };
        let epsilon = self.norm_epsilon();
        Ok(NormWeights { scale: either("weight", "gamma")?, shift: either("bias", "beta")?, epsilon })
    }

    /// Locates a tensor that must be a matrix of `columns` columns, and of `rows` rows if that is given.
    pub(super) fn matrix(
        &self,
        name: &str,
        rows: Option<usize>,
        columns: usize,
    ) -> Result<Tensor, EncoderError> {
        let tensor = self.tensor(name)?;
        let fits = matches!(tensor.shape[..], [high, wide] if wide == columns && rows.is_none_or(|rows| rows == high));
        if fits && columns > 0 {
            return Ok(tensor);
        }
        let wanted = rows.map_or_else(|| "any".to_owned(), |rows| rows.to_string());
        Err(self.unsupported(format!(
            "tensor [{name}] has the shape {:?}, and config.json says [{wanted}, {columns}]",
            tensor.shape
        )))
    }

    pub(super) fn tensor(&self, name: &str) -> Result<Tensor, EncoderError> {
        self.find(name)?.ok_or_else(|| self.unsupported(format!("its checkpoint has no tensor [{name}]")))
    }

    pub(super) fn find(&self, name: &str) -> Result<Option<Tensor>, EncoderError> {
        self.files.iter().find_map(|file| file.find(name).transpose()).transpose()
    }

    pub(super) fn values(&self, tensor: &Tensor) -> Result<Vec<f32>, EncoderError> {
        tensor.values.read().map_err(|error| self.unreadable(&error))
    }

    pub(super) fn own(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(super) fn unsupported(&self, reason: String) -> EncoderError {
        EncoderError::Unsupported { path: self.dir.clone(), reason }
    }
}
