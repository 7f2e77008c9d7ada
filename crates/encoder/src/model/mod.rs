//! Model directories: detecting their layout, and loading the parts that all deployments of a model share.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bert::Bert;
use crate::cache::Vector;
use crate::error::EncoderError;
use crate::head::{Head, kernels};
use crate::pooling::Activation;
use crate::scorer::Scorer;
use crate::tokenizer::TextTokenizer;
use crate::vocabulary::Vocabulary;

mod above;
mod basis;
mod calibration;
mod checkpoint;
mod classifier;
mod decoder;
mod external_data;
mod fingerprint;
mod info;
mod layout;
mod modernbert;
mod onnx;
mod recognised;
mod safetensors;
mod sentence_transformers;
mod weights;
mod weights_table;

pub use info::{Calibration, MOST_PREFIX, ModelInfo, ModelKind, Prefixes, Recognised, Trunk};
use layout::{ForwardPass, Layout, Pooling};
pub(crate) use weights::Keep;
use weights::Loaded;

/// What computes the forward pass of a model.
#[derive(Debug)]
pub(crate) enum Runs {
    /// Our own code, with the weights of a checkpoint.
    Native(Box<Bert>),
    /// ONNX Runtime: the path of the graph, beside which external data is found, and the output of it that is read.
    Onnx { graph: PathBuf, output: String },
}

/// How the output of a model's forward pass becomes token weights, a vector or a score.
#[derive(Debug)]
pub(crate) enum Plan {
    /// `[texts, tokens, dims]` hidden states go through our own head.
    FusedSparse { head: Arc<Head>, activation: Activation },
    /// Logits, `[texts, tokens, terms]`, which the graph computes; the largest logit of each term is taken here.
    SparseLogits { activation: Activation },
    /// Logits, `[texts, terms]`, whose maximum over tokens the graph has taken.
    SparsePooled { activation: Activation },
    /// Hidden states, `[texts, tokens, width]`, are pooled to one vector for each text, or vectors, `[texts, width]`, are taken as they
    /// are; only the first `dims` numbers of a vector are kept.
    Dense { pooling: DensePooling, dims: usize, normalize: bool },
    /// The hidden states of a question and a text to one number.
    Score { scorer: Box<Scorer> },
    /// Scores, `[texts, 1]`, which the graph computes.
    Scored,
}

/// How the hidden states of a text's tokens are combined into one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DensePooling {
    Mean,
    First,
    Last,
    /// The graph has done it: there is one vector for each text.
    Done,
}

/// A model directory, read and shared by all deployments of it: tokenizer, vocabulary, quantised decoder.
#[derive(Debug)]
pub struct Model {
    info: ModelInfo,
    dir: PathBuf,
    mapped: bool,
    pub(crate) runs: Runs,
    pub(crate) plan: Plan,
    pub(crate) tokenizer: Arc<TextTokenizer>,
    /// The dense model that it is a head on, and the number of its layers: the first of this model's.
    pub(crate) trunk: Option<(Arc<Model>, usize)>,
    /// What a token of a text adds to the weight of the term that it is, by term. A head learns from few texts which words of its own
    /// a text should be found by; that they stand in it is known.
    own_tokens: Option<Vec<f32>>,
    /// Readable tokens by id; empty for a dense model.
    pub(crate) vocabulary: Vocabulary,
    /// Weights of query tokens by id, of a model that encodes documents only.
    pub(crate) query_weights: Option<Vec<f32>>,
}

/// Most terms of a vocabulary: 64 times those of the largest multilingual vocabularies. Tables of this length are allocated when a model is
/// loaded.
const LARGEST_VOCABULARY: usize = 1 << 24;

impl Model {
    /// Reads a model directory in Hugging Face layout: `model.safetensors` or `model.onnx`, `tokenizer.json`, `config.json`, and the files
    /// from which the kind of model is detected; `sparrow.json` overrides what is detected.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] or [`EncoderError::Unsupported`].
    pub fn load(dir: &Path) -> Result<Arc<Model>, EncoderError> {
        Self::read(dir, None)
    }

    /// As [`Model::load`], with a file for the packed weights if the model is large enough for it.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub(crate) fn read(dir: &Path, keep: Option<Keep<'_>>) -> Result<Arc<Model>, EncoderError> {
        let layout = Layout::detect(dir)?;
        if let Some(Trunk { model, fingerprint }) = &layout.trunk {
            return Err(EncoderError::Unsupported {
                path: dir.to_path_buf(),
                reason: format!(
                    "it is a head on the model [{model}] of fingerprint [{fingerprint}], which is not there"
                ),
            });
        }
        let mut tokenizer = TextTokenizer::load(&layout.tokenizer, layout.max_tokens)?;
        if layout.is_cross_encoder() {
            tokenizer.find_pairs(&layout.tokenizer)?;
        }
        let (fingerprint, head, runs, mapped) = match &layout.forward {
            ForwardPass::Checkpoint(checkpoint) => {
                has_row_for_each_id(&layout, &tokenizer, checkpoint.words()?.shape[0])?;
                let loaded =
                    weights::load(&layout, checkpoint, &tokenizer, basis::load(dir)?.as_ref(), keep)?;
                let Loaded { fingerprint, head, bert, mapped, .. } = loaded;
                (fingerprint, head, Runs::Native(Box::new(bert)), mapped)
            }
            ForwardPass::Graph { onnx, output } => {
                let runs = Runs::Onnx { graph: onnx.clone(), output: output.clone() };
                (layout.fingerprint()?, None, runs, false)
            }
        };
        let model = Self::of_parts(&layout, fingerprint, head, runs, mapped, Arc::new(tokenizer))?;
        Ok(Arc::new(model))
    }

    /// Reads a model directory that holds only a head on another model: a sparse model that continues with the hidden states of a dense one,
    /// reads texts as it does, and shares its weights. One pass over a text gives the vectors of both.
    ///
    /// # Errors
    /// As [`Model::load`], also if it is no head on that model.
    pub fn load_head(dir: &Path, trunk: &Arc<Model>) -> Result<Arc<Model>, EncoderError> {
        let layout = Layout::detect(dir)?;
        let unsupported =
            |reason: &str| EncoderError::Unsupported { path: dir.to_path_buf(), reason: reason.into() };
        let named = layout.trunk.as_ref().map(|trunk| trunk.fingerprint.as_str());
        if named != Some(trunk.info.fingerprint.as_str()) || trunk.trunk.is_some() {
            return Err(unsupported("it is no head on this model"));
        }
        let (ForwardPass::Checkpoint(checkpoint), Runs::Native(below), Pooling::Splade, Plan::Dense { .. }) =
            (&layout.forward, &trunk.runs, layout.pooling, &trunk.plan)
        else {
            return Err(unsupported("a head is a sparse model of a checkpoint, on a dense model of one"));
        };
        let loaded = weights::load_head(&layout, checkpoint, basis::load(dir)?.as_ref(), below)?;
        let Loaded { fingerprint, head, bert, own_tokens, mapped } = loaded;
        let (runs, tokenizer) = (Runs::Native(Box::new(bert)), Arc::clone(&trunk.tokenizer));
        let mut model = Self::of_parts(&layout, fingerprint, head, runs, mapped, tokenizer)?;
        model.info.max_tokens = trunk.info.max_tokens;
        model.trunk = Some((Arc::clone(trunk), below.depth()));
        model.own_tokens = own_tokens;
        Ok(Arc::new(model))
    }

    /// A model of what was loaded for it.
    fn of_parts(
        layout: &Layout,
        fingerprint: (String, u64),
        head: Option<Arc<Head>>,
        runs: Runs,
        mapped: bool,
        tokenizer: Arc<TextTokenizer>,
    ) -> Result<Model, EncoderError> {
        let dir = layout.dir();
        let mut info = layout.info(fingerprint);
        info.recognised.int8 = matches!(&runs, Runs::Native(bert) if bert.is_int8());
        if info.vocabulary_size > LARGEST_VOCABULARY {
            return Err(EncoderError::ModelNotReadable {
                path: dir.join("config.json"),
                reason: format!(
                    "it has a vocabulary of [{}] terms; at most [{LARGEST_VOCABULARY}] are read",
                    info.vocabulary_size
                ),
            });
        }
        let activation = layout.activation;
        let dense = |pooling| Plan::Dense {
            pooling,
            dims: layout.dims().unwrap_or(usize::MAX),
            normalize: layout.normalize,
        };
        let plan = match layout.pooling {
            Pooling::Classifier => Plan::Score { scorer: Box::new(layout.scorer()?) },
            Pooling::Splade => match head {
                Some(head) => Plan::FusedSparse { head, activation },
                None => Plan::SparseLogits { activation },
            },
            Pooling::Done if layout.is_sparse() => Plan::SparsePooled { activation },
            Pooling::Done if layout.is_cross_encoder() => Plan::Scored,
            Pooling::Done => dense(DensePooling::Done),
            Pooling::Mean => dense(DensePooling::Mean),
            Pooling::Cls => dense(DensePooling::First),
            Pooling::Last => dense(DensePooling::Last),
        };
        if let Plan::FusedSparse { head, .. } = &plan {
            info.vocabulary_size = head.terms();
        }
        let vocabulary =
            if layout.is_sparse() { tokenizer.vocabulary(info.vocabulary_size) } else { Vec::new() };
        let vocabulary = Vocabulary::new(vocabulary);
        let query_weights = match &layout.query_weights {
            Some(path) => Some(weights_table::load(path, &tokenizer, info.vocabulary_size)?),
            None => None,
        };
        Ok(Model {
            info,
            dir: dir.to_path_buf(),
            mapped,
            runs,
            plan,
            tokenizer,
            trunk: None,
            own_tokens: None,
            vocabulary,
            query_weights,
        })
    }

    /// Facts about the model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// The number of a token in the model's vocabulary, by its name in sparse vectors, in which a '.' is written `__`.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.tokenizer.id(token).or_else(|| self.tokenizer.id(&token.replace("__", ".")))
    }

    /// The directory that the model was read from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Reads the facts about a model directory without loading its weights (all files are read once, for the
    /// fingerprint).
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn inspect(dir: &Path) -> Result<ModelInfo, EncoderError> {
        let layout = Layout::detect(dir)?;
        Ok(layout.info(layout.fingerprint()?))
    }

    /// As [`Model::inspect`]; if there is a valid file of packed weights, the fingerprint is taken from it instead of computing it from all
    /// files.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn inspect_packed(dir: &Path, packed: &Path) -> Result<ModelInfo, EncoderError> {
        let layout = Layout::detect(dir)?;
        let Some(facts) = weights::facts(&layout, packed) else {
            return Ok(layout.info(layout.fingerprint()?));
        };
        let mut info = layout.info((facts.fingerprint, facts.size_bytes));
        info.recognised.int8 = facts.bert.int8;
        Ok(info)
    }

    /// Whether an ONNX file refers to weights in other files, which is forbidden in an uploaded model.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if it is not ONNX.
    pub fn takes_other_files(onnx: &Path) -> Result<bool, EncoderError> {
        external_data::is_used(onnx)
    }

    /// Whether deployments run without ONNX Runtime, in Sparrow's own code.
    pub fn is_native(&self) -> bool {
        matches!(self.runs, Runs::Native(_))
    }

    /// Name of the instruction set that the model's own code runs with: the head's, if it has one.
    pub fn instructions(&self) -> &'static str {
        match (&self.plan, &self.runs) {
            (Plan::FusedSparse { head, .. }, _) => head.instructions(),
            (_, Runs::Native(bert)) => bert.instructions(),
            (_, Runs::Onnx { .. }) => kernels::chosen().name,
        }
    }

    /// Whether the weights are in a mapped file.
    pub fn is_mapped(&self) -> bool {
        self.mapped
    }

    /// Adds to the term weights of a text what its own tokens bring; vectors of other models stay as they are.
    pub(crate) fn with_own_tokens(&self, vector: Vector, ids: &[u32]) -> Vector {
        let (Vector::Sparse(weights), Some(own)) = (&vector, &self.own_tokens) else { return vector };
        let mut weights: BTreeMap<u32, f32> = weights.iter().copied().collect();
        for id in BTreeSet::from_iter(ids) {
            if let Some(weight) = own.get(*id as usize).filter(|weight| **weight > 0.0) {
                *weights.entry(*id).or_default() += weight;
            }
        }
        Vector::Sparse(weights.into_iter().collect())
    }

    /// Whether a batch needs memory for the logits of every token.
    pub(crate) fn materialises_logits(&self) -> bool {
        matches!(self.plan, Plan::SparseLogits { .. })
    }
}

/// Compares the ids of a tokenizer with the number of word embeddings: there may be more of these, which no token has.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`] for a token without an embedding, which would be an error of each text that has it.
fn has_row_for_each_id(layout: &Layout, tokenizer: &TextTokenizer, rows: usize) -> Result<(), EncoderError> {
    let highest = tokenizer.highest_id();
    if (highest as usize) < rows {
        return Ok(());
    }
    let reason = format!(
        "it has a token with the id [{highest}], and the model has word embeddings for the [{rows}] ids from 0 only"
    );
    Err(EncoderError::ModelNotReadable { path: layout.tokenizer.clone(), reason })
}

/// For the tests: the weights of a directory's checkpoint, without the head of a masked language model.
#[cfg(test)]
pub(crate) fn weights(dir: &Path) -> crate::bert::Weights {
    let layout = Layout::detect(dir).unwrap();
    let ForwardPass::Checkpoint(checkpoint) = &layout.forward else {
        panic!("{} has no checkpoint", dir.display())
    };
    checkpoint.weights(false).unwrap()
}

#[cfg(test)]
mod tests;
