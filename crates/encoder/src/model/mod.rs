//! Model directories: what is in one, and the parts that all deployments of it share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bert::{Bert, kernels};
use crate::error::EncoderError;
use crate::head::{self, Head};
use crate::pooling::Activation;
use crate::session::Graph;
use crate::tokenizer::TextTokenizer;
use crate::vocabulary::Vocabulary;

mod basis;
mod bert;
mod fingerprint;
mod graph;
mod layout;
mod onnx;
mod safetensors;
mod split;
mod weights_table;

use layout::{Layout, Pooling};

/// What a model makes of a text.
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
}

impl ModelKind {
    /// Whether the model gives token weights.
    pub fn is_sparse(self) -> bool {
        match self {
            ModelKind::SparseMlm | ModelKind::SparseDocOnly => true,
            ModelKind::Dense { .. } => false,
        }
    }
}

/// Facts about a model directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// What it makes of a text.
    pub kind: ModelKind,
    /// Hex SHA-256 over the model's files: equal fingerprints give equal vectors.
    pub fingerprint: String,
    /// Bytes of the model's files.
    pub size_bytes: u64,
    /// Entries of the vocabulary.
    pub vocabulary_size: usize,
    /// Most tokens of a text that are encoded.
    pub max_tokens: usize,
    /// Length of the vector of a dense model.
    pub dims: Option<usize>,
}

/// What happens to the output of the graph.
#[derive(Debug)]
pub(crate) enum Plan {
    /// `[texts, tokens, dims]` hidden states go through our own head.
    FusedSparse { head: Arc<Head>, activation: Activation },
    /// `[texts, tokens, terms]` logits: the graph runs whole.
    SparseLogits { activation: Activation },
    /// `[texts, terms]`: the graph takes the maximum itself.
    SparsePooled { activation: Activation },
    /// `[texts, tokens, dims]` to the mean over tokens.
    DenseMean { normalize: bool },
    /// `[texts, tokens, dims]` to the first token's.
    DenseCls { normalize: bool },
    /// `[texts, dims]`.
    DensePooled { normalize: bool },
}

/// A model directory, read and shared by all deployments of it: tokenizer, vocabulary, quantised decoder.
#[derive(Debug)]
pub struct Model {
    info: ModelInfo,
    dir: PathBuf,
    pub(crate) graph: Graph,
    pub(crate) output: String,
    /// The graph up to `output` in our own code, if it is of a known form.
    pub(crate) bert: Option<Bert>,
    pub(crate) plan: Plan,
    pub(crate) tokenizer: TextTokenizer,
    /// Readable tokens by id; empty for a dense model.
    pub(crate) vocabulary: Vocabulary,
    /// Weights of query tokens by id, of a model that encodes documents only.
    pub(crate) query_weights: Option<Vec<f32>>,
}

impl Model {
    /// Reads a model directory in Hugging Face layout: `model.onnx`, `tokenizer.json`, `config.json`, and what else
    /// says of which kind it is; `sparrow.json` says it outright.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] or [`EncoderError::Unsupported`].
    pub fn load(dir: &Path) -> Result<Arc<Model>, EncoderError> {
        let layout = Layout::detect(dir)?;
        let mut info = layout.info()?;
        let tokenizer = TextTokenizer::load(&layout.tokenizer, layout.max_tokens)?;
        let mut graph = Graph::File(layout.onnx.clone());
        let mut output = layout.output.clone();
        let normalize = layout.normalize;
        let activation = layout.activation;
        let plan = match layout.pooling {
            Pooling::Splade => {
                let basis = basis::load(dir)?;
                let head = match &layout.head {
                    Some(files) => Some(files.load(basis.as_ref())?),
                    None => split::decoder(&layout.onnx, &output, basis.as_ref()).map(|split| {
                        output = split.hidden;
                        split.head
                    }),
                };
                match head {
                    Some(head) => Plan::FusedSparse { head: Arc::new(head), activation },
                    None => Plan::SparseLogits { activation },
                }
            }
            Pooling::Done if layout.is_sparse() => Plan::SparsePooled { activation },
            Pooling::Done => Plan::DensePooled { normalize },
            Pooling::Mean => Plan::DenseMean { normalize },
            Pooling::Cls => Plan::DenseCls { normalize },
        };
        let per_token =
            matches!(plan, Plan::FusedSparse { .. } | Plan::DenseMean { .. } | Plan::DenseCls { .. });
        let bert = if per_token { native(&layout.onnx, &output, &plan) } else { None };
        // Only the runtime needs a graph without the decoder; it would hold all other weights once more.
        if bert.is_none() && output != layout.output {
            let graph_changed = || EncoderError::ModelNotReadable {
                path: layout.onnx.clone(),
                reason: "the file was changed while it was read".into(),
            };
            graph = Graph::Bytes(split::shorter(&layout.onnx, &layout.output).ok_or_else(graph_changed)?);
        }
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
        Ok(Arc::new(Model {
            info,
            dir: dir.to_path_buf(),
            graph,
            output,
            bert,
            plan,
            tokenizer,
            vocabulary,
            query_weights,
        }))
    }

    /// Facts about the model.
    pub fn info(&self) -> &ModelInfo {
        &self.info
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
        Layout::detect(dir)?.info()
    }

    /// Whether an ONNX file takes weights from other files, which a model that someone uploaded must not.
    ///
    /// # Errors
    /// [`EncoderError::ModelNotReadable`] if it is not ONNX.
    pub fn takes_other_files(onnx: &Path) -> Result<bool, EncoderError> {
        onnx::has_external_data(onnx)
    }

    /// Whether deployments run without ONNX Runtime: the model's graph is one that Sparrow computes itself.
    pub fn is_native(&self) -> bool {
        self.bert.is_some()
    }

    /// Whether each token of a batch makes a row of logits in memory.
    pub(crate) fn materialises_logits(&self) -> bool {
        matches!(self.plan, Plan::SparseLogits { .. })
    }
}

/// The forward pass in our own code, if the graph is of the known form and fits the rest of the model.
fn native(path: &Path, output: &str, plan: &Plan) -> Option<Bert> {
    let mut weights = bert::recognise(path, output)?;
    if let Plan::FusedSparse { head, .. } = plan {
        if head.dims() != weights.width {
            return None;
        }
        // A tied decoder is in memory once.
        if head.rows() == &weights.words {
            weights.words = Arc::clone(head.rows());
        }
    }
    Bert::new(weights, kernels::named(head::kernels::chosen().name))
}
