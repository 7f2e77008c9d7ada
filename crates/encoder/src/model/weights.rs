//! A model's weights: from its checkpoint, or from a file in which they were packed before.

use std::path::Path;
use std::sync::Arc;

use crate::bert::{Bert, Refused, kernels as f32_kernels};
use crate::error::EncoderError;
use crate::fixed::Precision;
use crate::head::{Basis, Head, kernels};
use crate::packed::{BertShape, Facts, Identity, Packed, Packer, Unusable};
use crate::stored::Stored;
use crate::table::Table;
use crate::tokenizer::TextTokenizer;

use super::checkpoint::Checkpoint;
use super::decoder::Source;
use super::layout::{Arithmetic, ForwardPass, Layout, Pooling};

/// Bytes of weights, counted as f32, below which a model is not packed into a file: mapping would save less than a deployment's scratch
/// memory and cache take, and writing the file delays the first start.
const SMALLEST_FILE: usize = 64 << 20;

/// Why a model is not loaded whose files are not those that they were at first.
const CHANGED: &str = "the model's files were changed while they were read";

/// The path for a model's packed weights, and from which size on they are written there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep<'a> {
    path: &'a Path,
    /// Bytes of weights below which they stay in memory.
    smallest: usize,
    /// Whether a model whose files do not say is packed in 8 bits.
    bytes: bool,
}

impl<'a> Keep<'a> {
    /// Packs only a model of at least [`SMALLEST_FILE`] bytes into the file.
    pub(crate) fn large(path: &'a Path) -> Self {
        Self { path, smallest: SMALLEST_FILE, bytes: false }
    }

    /// For the tests: packs a model of any size into the file.
    #[cfg(test)]
    pub(crate) fn any(path: &'a Path) -> Self {
        Self { path, smallest: 0, bytes: false }
    }

    /// As it is where the model's files say in what its linear maps are computed, or as the file says in which an earlier choice was kept;
    /// `None` if that is still to be chosen.
    ///
    /// # Errors
    /// As [`Model::load`](super::Model::load).
    pub(crate) fn chosen(self, dir: &Path) -> Result<Option<Self>, EncoderError> {
        let layout = Layout::detect(dir)?;
        if layout.arithmetic.is_some() {
            return Ok(Some(self));
        }
        Ok(facts(&layout, self.path).map(|facts| Self { bytes: facts.bert.int8, ..self }))
    }

    /// The path for the packed weights.
    pub(crate) fn path(&self) -> &'a Path {
        self.path
    }

    /// Keeps the packed weights at another path, under the same conditions.
    pub(crate) fn at<'b>(&self, path: &'b Path) -> Keep<'b> {
        Keep { path, ..*self }
    }

    /// Packs in 8 bits where the model's files do not say in what it is computed.
    pub(crate) fn in_bytes(self) -> Self {
        Self { bytes: true, ..self }
    }
}

/// The weights of a loaded model, and facts that were found while loading.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Fingerprint of the model's files, and the sum of their lengths in bytes.
    pub(super) fingerprint: (String, u64),
    pub(super) head: Option<Arc<Head>>,
    pub(super) bert: Bert,
    /// What a token of a text adds to the weight of the term that it is, by term, in a head that has such weights.
    pub(super) own_tokens: Option<Vec<f32>>,
    /// The weights are in a mapped file.
    pub(super) mapped: bool,
}

/// Names of the kernels that weights are packed for.
fn kernel_names() -> String {
    let head = kernels::chosen().name;
    format!("{head} {}", f32_kernels::named(head).name)
}

/// What the packed weights of a model say about it, if they are valid.
pub(super) fn facts(layout: &Layout, packed: &Path) -> Option<Facts> {
    match Packed::facts(packed, &layout.identity(kernel_names())?) {
        Ok(facts) => Some(facts),
        Err(reason) => {
            not_used(packed, &reason);
            None
        }
    }
}

/// Loads a model's weights. A model with a basis is not kept in a file: those are small.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`].
pub(super) fn load(
    layout: &Layout,
    checkpoint: &Checkpoint,
    tokenizer: &TextTokenizer,
    basis: Option<&Basis>,
    keep: Option<Keep<'_>>,
) -> Result<Loaded, EncoderError> {
    let Some(Keep { path, .. }) = keep.filter(|_| basis.is_none()) else {
        return unpack(layout, checkpoint, tokenizer, basis, None);
    };
    match open(layout, path) {
        Ok(loaded) => Ok(loaded),
        Err(reason) => {
            not_used(path, &reason);
            unpack(layout, checkpoint, tokenizer, None, keep)
        }
    }
}

/// Loads what a head has of its own, in memory; the rest it shares with the encoder below. The decoder's rows are its word embeddings.
///
/// # Errors
/// [`EncoderError::ModelNotReadable`], or [`EncoderError::Unsupported`] if the two do not fit together.
pub(super) fn load_head(
    layout: &Layout,
    checkpoint: &Checkpoint,
    basis: Option<&Basis>,
    below: &Bert,
) -> Result<Loaded, EncoderError> {
    let fingerprint = layout.fingerprint()?;
    let width = below.width();
    let upper = checkpoint.above(below)?;
    let bert = Bert::over(below, upper).map_err(|refused| checkpoint.unfit(refused))?;
    let words = Arc::clone(bert.words());
    let terms = words.len() / width;
    let bias = checkpoint.bias_of_terms(terms)?.read();
    let bias = bias.map_err(|error| checkpoint.unfit(error.into()))?;
    let own_tokens = checkpoint.weights_of_own_tokens(terms)?;
    let head = Head::over(kernels::chosen(), words, bias, width, basis);
    let head = head.map_err(|reason| checkpoint.unsupported(reason))?;
    let head = Some(Arc::new(head.fastest(&bert)));
    Ok(Loaded { fingerprint, head, bert, own_tokens, mapped: false })
}

/// Logs why a file of packed weights is not used: a missing or outdated file at the level of debugging, a damaged one as a warning.
fn not_used(path: &Path, reason: &Unusable) {
    match reason {
        Unusable::Missing | Unusable::Stale => {
            tracing::debug!(path = %path.display(), %reason, "packed weights are not used");
        }
        Unusable::Damaged(_) | Unusable::Io(_) => {
            tracing::warn!(path = %path.display(), %reason, "packed weights are not used");
        }
    }
}

fn open(layout: &Layout, path: &Path) -> Result<Loaded, Unusable> {
    const OTHER: Unusable = Unusable::Damaged("it is of another model");
    let identity = layout.identity(kernel_names()).ok_or(Unusable::Stale)?;
    let packed = Packed::open(path, &identity)?;
    let is_splade = layout.pooling == Pooling::Splade;
    let ForwardPass::Checkpoint(checkpoint) = &layout.forward else { return Err(OTHER) };
    let is_said = layout.arithmetic.is_none_or(|said| (said == Arithmetic::Int8) == packed.facts.bert.int8);
    // The shape in the file must be the model's, before memory is taken for it: sections may exist and be of another shape.
    if !is_said || !is_shaped(checkpoint, &packed.facts.bert, is_splade) {
        return Err(OTHER);
    }
    let chosen = kernels::chosen();
    let head = match packed.facts.head {
        Some(shape) => Some(Head::open(&packed, shape, chosen)?),
        None => None,
    };
    let rows = head.as_ref().map(Head::rows);
    let bert = Bert::open(&packed, rows, f32_kernels::named(chosen.name))?;
    if head.as_ref().is_some_and(|head| head.dims() != bert.width()) || head.is_some() != is_splade {
        return Err(OTHER);
    }
    Ok(Loaded {
        fingerprint: (packed.facts.fingerprint, packed.facts.size_bytes),
        head: head.map(|head| Arc::new(head.fastest(&bert))),
        bert,
        own_tokens: None,
        mapped: true,
    })
}

/// Whether packed weights can be those of a checkpoint, with or without the head of a masked language model.
fn is_shaped(checkpoint: &Checkpoint, shape: &BertShape, with_head: bool) -> bool {
    let layers = checkpoint.architecture.num_hidden_layers;
    let modern = if checkpoint.is_modern() { checkpoint.modern_shape(layers).ok() } else { None };
    (shape.width, shape.heads) == (checkpoint.width(), checkpoint.architecture.num_attention_heads)
        && (shape.layers, shape.modern, shape.transform) == (layers, modern, with_head)
}

/// For the tests: whether a file of packed weights is accepted for a model.
#[cfg(test)]
pub(super) fn can_open(dir: &Path, path: &Path) -> bool {
    Layout::detect(dir).is_ok_and(|layout| open(&layout, path).is_ok())
}

/// Reads the weights from the model's files and packs those that our own code computes with; a large model is packed into a file.
fn unpack(
    layout: &Layout,
    checkpoint: &Checkpoint,
    tokenizer: &TextTokenizer,
    basis: Option<&Basis>,
    keep: Option<Keep<'_>>,
) -> Result<Loaded, EncoderError> {
    // Of the files as they were before they are read.
    let identity = layout.identity(kernel_names());
    let fingerprint = layout.fingerprint()?;
    let source = match layout.pooling {
        Pooling::Splade => Some(checkpoint.decoder()?),
        _ => None,
    };
    let weights = checkpoint.weights(source.is_some())?;
    let large = keep.filter(|keep| size(&weights, source.as_ref()) >= keep.smallest);
    // A large model answers the same wherever its weights are.
    let precision = match layout.arithmetic {
        Some(Arithmetic::Int8) => Precision::Int8,
        None if large.is_some_and(|keep| keep.bytes) => Precision::Int8,
        _ if large.is_some() => Precision::Fixed,
        _ => Precision::F32,
    };
    let sample = match precision {
        Precision::Int8 => crate::sample()
            .map(|text| Ok(tokenizer.encode(text)?.ids))
            .collect::<Result<Vec<_>, EncoderError>>()?,
        _ => Vec::new(),
    };
    if let (Some(Keep { path, .. }), Some(identity)) = (large, identity.clone()) {
        let parts = (weights.clone(), precision, &sample[..]);
        match pack(layout, path, identity, &fingerprint, parts, source.as_ref()) {
            Ok(true) => match open(layout, path) {
                Ok(loaded) => return Ok(loaded),
                Err(reason) => {
                    tracing::warn!(path = %path.display(), %reason, "packed weights stay in memory");
                }
            },
            Ok(false) => {}
            Err(reason) => {
                tracing::warn!(path = %path.display(), %reason, "packed weights stay in memory");
            }
        }
    }
    let head = match &source {
        Some(source) => Some(source.load(basis, precision).map_err(|reason| checkpoint.unsupported(reason))?),
        None => None,
    };
    let rows = head.as_ref().map(Head::rows);
    let tied = rows.filter(|rows| is_tied(&weights.words, source.as_ref(), rows, precision)).cloned();
    let kernels = f32_kernels::named(kernels::chosen().name);
    let bert = Bert::new(weights, tied, kernels, precision, &sample);
    let bert = bert.map_err(|refused| checkpoint.unfit(refused))?;
    let head = head.map(|head| Arc::new(head.fastest(&bert)));
    // Weights of two versions of a model would be neither.
    if layout.identity(kernel_names()) != identity {
        return Err(EncoderError::ModelNotReadable {
            path: layout.dir().to_path_buf(),
            reason: CHANGED.into(),
        });
    }
    Ok(Loaded { fingerprint, head, bert, own_tokens: None, mapped: false })
}

/// Approximate size of the weights as f32, in bytes.
fn size(weights: &crate::bert::Weights, source: Option<&Source>) -> usize {
    4 * (weights.size() + weights.words.len()) + source.map_or(0, |source| source.rows.len())
}

/// Packs a model into a file; false if it is not one that the kernels take.
fn pack(
    layout: &Layout,
    path: &Path,
    identity: Identity,
    (fingerprint, size_bytes): &(String, u64),
    (weights, precision, sample): (crate::bert::Weights, Precision, &[Vec<u32>]),
    source: Option<&Source>,
) -> Result<bool, Box<dyn std::error::Error>> {
    let started = std::time::Instant::now();
    let mut packer = Packer::new(path)?;
    let (mut tied, mut head) = (false, None);
    if let Some(source) = source {
        let decoder = source.load(None, Precision::Fixed)?;
        tied = is_tied(&weights.words, Some(source), decoder.rows(), Precision::Fixed);
        head = Some(decoder.store(&mut packer)?);
    }
    let kernels = f32_kernels::named(kernels::chosen().name);
    let bert = match Bert::store(weights, tied, kernels, precision, sample, &mut packer) {
        Ok(bert) => bert,
        Err(Refused::Io(error)) => return Err(error.into()),
        Err(_) => return Ok(false),
    };
    if layout.identity(kernel_names()).as_ref() != Some(&identity) {
        return Err(CHANGED.into());
    }
    let facts = Facts { fingerprint: fingerprint.clone(), size_bytes: *size_bytes, bert, head };
    packer.finish(identity, facts)?;
    let milliseconds = started.elapsed().as_millis();
    tracing::info!(path = %path.display(), milliseconds, "weights packed into a file");
    Ok(true)
}

/// Whether the word embeddings are the decoder's rows: the same place in the same file, or the same numbers.
fn is_tied(words: &Stored, source: Option<&Source>, rows: &Table, precision: Precision) -> bool {
    let same_place =
        source.is_some_and(|source| matches!(words, Stored::File { .. }) && source.rows == *words);
    let same_numbers = || {
        words
            .read()
            .ok()
            // Rounding would hide NaN.
            .filter(|words| words.iter().all(|word| word.is_finite()))
            .is_some_and(|words| {
                Table::new(words, source.map_or(0, |source| source.dims), precision) == *rows
            })
    };
    same_place || words.len() == rows.len() && same_numbers()
}
