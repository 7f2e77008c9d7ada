//! The files that sentence-transformers puts beside a model: its modules, how they pool, and its prompts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::EncoderError;
use crate::pooling::Activation;

use super::layout::{Pooling, activation, read_json};
use super::{MOST_PREFIX, Prefixes};

/// `modules.json`: the steps from a text to its vector; the last parts of their type names, such as `Pooling`.
#[derive(Debug)]
pub(super) struct Modules(Vec<String>);

impl Modules {
    /// Reads `modules.json` and adds its path to `files`; `None` if it does not exist.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if it is damaged.
    pub(super) fn read(dir: &Path, files: &mut Vec<PathBuf>) -> Result<Option<Self>, EncoderError> {
        #[derive(Deserialize)]
        struct Step {
            #[serde(rename = "type", default)]
            kind: String,
        }
        let steps: Option<Vec<Step>> = read_json(&dir.join("modules.json"), files)?;
        let last = |step: Step| step.kind.rsplit('.').next().unwrap_or_default().to_owned();
        Ok(steps.map(|steps| Self(steps.into_iter().map(last).collect())))
    }

    /// Whether the result is a sparse vector; `None` if no pooling step is listed.
    pub(super) fn is_sparse(&self) -> Option<bool> {
        if self.has("SpladePooling") || self.has("MLMTransformer") {
            return Some(true);
        }
        self.has("Pooling").then_some(false)
    }

    /// Whether vectors are scaled to length 1.
    pub(super) fn normalizes(&self) -> bool {
        self.has("Normalize")
    }

    /// The first step that our own code does not compute, which only an ONNX graph may include.
    pub(super) fn foreign(&self) -> Option<&str> {
        let is_supported = |kind: &str| ["Transformer", "Pooling", "Normalize"].contains(&kind);
        self.0.iter().map(String::as_str).find(|kind| !is_supported(kind))
    }

    fn has(&self, kind: &str) -> bool {
        self.0.iter().any(|module| module == kind)
    }
}

/// `config_sentence_transformers.json`: the prefixes of texts, and the length that vectors are truncated to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Prompts {
    prompts: BTreeMap<String, String>,
    /// Number of leading components of a vector that are kept (Matryoshka embeddings); `None` for all.
    pub(super) truncate_dim: Option<usize>,
}

impl Prompts {
    /// Reads `config_sentence_transformers.json` and adds its path to `files`; all members are empty if it does not exist.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if it is damaged, or a prefix is too long.
    pub(super) fn read(dir: &Path, files: &mut Vec<PathBuf>) -> Result<Self, EncoderError> {
        let path = dir.join("config_sentence_transformers.json");
        let prompts: Self = read_json(&path, files)?.unwrap_or_default();
        let Prefixes { search, ingest } = prompts.prefixes();
        match [search, ingest].iter().flatten().map(String::len).find(|length| *length > MOST_PREFIX) {
            Some(length) => Err(EncoderError::ModelNotReadable {
                path,
                reason: format!("a prompt has [{length}] bytes, and may have at most [{MOST_PREFIX}]"),
            }),
            None => Ok(prompts),
        }
    }

    /// The prefixes of queries and of documents, under any of the names that models use for them.
    pub(super) fn prefixes(&self) -> Prefixes {
        let first = |names: &[&str]| {
            let mut prompts = names.iter().filter_map(|name| self.prompts.get(*name));
            prompts.find(|prompt| !prompt.is_empty()).cloned()
        };
        Prefixes {
            search: first(&["query", "search_query", "retrieval.query"]),
            ingest: first(&["document", "passage", "search_document", "corpus", "retrieval.passage"]),
        }
    }
}

/// Most tokens of a text that `sentence_bert_config.json` specifies; `None` if it does not. The file is not part of a model's identity: it
/// changes the vectors of long texts, but they remain comparable.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] if it is damaged, or leaves no room for a word between the two special tokens.
pub(super) fn max_tokens(dir: &Path) -> Result<Option<usize>, EncoderError> {
    #[derive(Deserialize)]
    struct Module {
        max_seq_length: Option<usize>,
    }
    let path = dir.join("sentence_bert_config.json");
    let module: Option<Module> = read_json(&path, &mut Vec::new())?;
    match module.and_then(|module| module.max_seq_length) {
        Some(length @ 0..=2) => Err(EncoderError::ModelNotReadable {
            path,
            reason: format!("[max_seq_length] must be greater than 2, got [{length}]"),
        }),
        length => Ok(length),
    }
}

/// How a dense model's tokens are pooled, from the configuration of its pooling module; the mean without such a module.
///
/// # Errors
/// [`EncoderError::Unsupported`] for one that is not known.
pub(super) fn dense_pooling(dir: &Path, files: &mut Vec<PathBuf>) -> Result<Pooling, EncoderError> {
    let path = dir.join("1_Pooling/config.json");
    let Some(module): Option<BTreeMap<String, serde_json::Value>> = read_json(&path, files)? else {
        return Ok(Pooling::Mean);
    };
    let modes: Vec<&str> = module
        .iter()
        .filter(|(_, value)| **value == serde_json::Value::Bool(true))
        .filter_map(|(name, _)| name.strip_prefix("pooling_mode_"))
        .collect();
    match modes[..] {
        ["cls_token"] => Ok(Pooling::Cls),
        ["mean_tokens"] => Ok(Pooling::Mean),
        ["lasttoken"] => Ok(Pooling::Last),
        _ => Err(EncoderError::Unsupported {
            path,
            reason: format!(
                "pooling [{}]; it has to be of the first token, the last one, or the mean",
                modes.join(", ")
            ),
        }),
    }
}

/// The activation in the pooling module of a sparse model.
///
/// # Errors
/// [`EncoderError::Unsupported`] for one that is not known, and for sums over tokens.
pub(super) fn splade_activation(
    dir: &Path,
    files: &mut Vec<PathBuf>,
) -> Result<Option<Activation>, EncoderError> {
    #[derive(Deserialize)]
    struct Module {
        activation_function: Option<String>,
        pooling_strategy: Option<String>,
    }
    // The second is where models that encode documents only have it.
    let places = ["1_SpladePooling/config.json", "document_1_SpladePooling/config.json"];
    for path in places.map(|place| dir.join(place)) {
        let Some(module): Option<Module> = read_json(&path, files)? else { continue };
        if let Some(strategy) = module.pooling_strategy.filter(|strategy| strategy != "max") {
            return Err(EncoderError::Unsupported {
                path,
                reason: format!("pooling [{strategy}]; it has to be [max]"),
            });
        }
        let Some(name) = module.activation_function else { return Ok(None) };
        return match activation(&name) {
            Some(activation) => Ok(Some(activation)),
            None => Err(EncoderError::Unsupported { path, reason: format!("activation [{name}]") }),
        };
    }
    Ok(None)
}
