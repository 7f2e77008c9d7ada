//! The forward pass of BERT in our own code: token ids to hidden states, without padding and without ONNX Runtime.
//!
//! In f32 this is what ONNX Runtime computes (another order of additions, another polynomial for `erf` and `exp`; the hidden
//! states differ by 10⁻⁵ of their size, see the test). A model whose files ask for it, as those of the embedded dense one do, or that
//! is large and hardly changed by it, has its linear maps multiplied in 8 bits (`kernels/int8.rs`), and the rest in f32. Rows of many
//! texts are stacked for the matrix products; attention looks at one text at a time. The weights are packed once ([`packing`]) and shared by all allocations.

use std::ops::Range;

use kernels::{Attention, Epilogue, Kernels, Linear, Norm};

use crate::numbers::{AlignedSlice, reserve, room};
use crate::stored::Stored;

pub(crate) mod kernels;
mod modern;
mod packing;
mod words;

use modern::Modern;
pub(crate) use modern::ModernWeights;
pub(crate) use packing::Refused;
use words::Words;

/// Rows that go through the feed-forward part at once: their inner activations stay in the second-level cache.
const ROWS_AT_ONCE: usize = 120;

/// As `ROWS_AT_ONCE`, for a model whose feed-forward weights fit no cache and are read from memory in each pass: the rows of a whole batch
/// of ingest.
const ROWS_OF_LARGE: usize = 528;

/// Number of weights of a linear map above which the feed-forward part counts as large; its two maps are of the same size.
const LARGE: usize = 1 << 19;

/// A layer normalisation's parameters.
#[derive(Debug, Default, Clone)]
pub(crate) struct NormWeights {
    pub(crate) scale: Vec<f32>,
    pub(crate) shift: Vec<f32>,
    pub(crate) epsilon: f32,
}

impl NormWeights {
    fn view(&self) -> Norm<'_> {
        Norm { scale: &self.scale, shift: &self.shift, epsilon: self.epsilon }
    }
}

/// A linear map as files hold it: `weights` is `[inputs][outputs]`, and stays in the file until it is packed.
#[derive(Debug, Default, Clone)]
pub(crate) struct LinearWeights {
    pub(crate) weights: Stored,
    pub(crate) bias: Vec<f32>,
}

/// One layer's parameters.
#[derive(Debug, Default, Clone)]
pub(crate) struct LayerWeights {
    pub(crate) query: LinearWeights,
    pub(crate) key: LinearWeights,
    pub(crate) value: LinearWeights,
    pub(crate) attended: LinearWeights,
    pub(crate) attention_norm: NormWeights,
    pub(crate) inner: LinearWeights,
    /// The gate, whose output the activated inner numbers are multiplied with; `None` in BERT.
    pub(crate) gate: Option<LinearWeights>,
    pub(crate) outer: LinearWeights,
    pub(crate) output_norm: NormWeights,
}

/// The tokens of one text, or of a question and a text after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence<'a> {
    pub(crate) ids: &'a [u32],
    /// Index of the first token of the second type; the number of tokens if there is none.
    pub(crate) second: usize,
}

impl<'a> From<&'a [u32]> for Sequence<'a> {
    fn from(ids: &'a [u32]) -> Self {
        Self { ids, second: ids.len() }
    }
}

/// All parameters of an encoder.
#[derive(Debug, Default, Clone)]
pub(crate) struct Weights {
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// Word embeddings, `[vocabulary][width]`.
    pub(crate) words: Stored,
    /// `[positions][width]`, with the first token type added.
    pub(crate) positions: Vec<f32>,
    /// The embedding of the second token type minus that of the first, `width` numbers; empty if types make no difference.
    pub(crate) second_type: Vec<f32>,
    pub(crate) embedding_norm: NormWeights,
    pub(crate) layers: Vec<LayerWeights>,
    /// The transform of a masked language model, after the last layer.
    pub(crate) transform: Option<(LinearWeights, NormWeights)>,
    /// What only ModernBERT has, which has no position embeddings.
    pub(crate) modern: Option<ModernWeights>,
}

#[derive(Debug)]
struct Layer {
    /// Queries, keys and values as one linear map; the weights of the queries are scaled by `1/√depth` beforehand.
    qkv: Linear,
    attended: Linear,
    attention_norm: NormWeights,
    inner: Linear,
    gate: Option<Linear>,
    outer: Linear,
    output_norm: NormWeights,
}

/// An encoder, packed for the instruction set of this process.
pub(crate) struct Bert {
    kernels: &'static Kernels,
    width: usize,
    heads: usize,
    words: Words,
    positions: AlignedSlice<f32>,
    second_type: Vec<f32>,
    embedding_norm: NormWeights,
    layers: Vec<Layer>,
    transform: Option<(Linear, NormWeights)>,
    modern: Option<Modern>,
}

impl std::fmt::Debug for Bert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bert")
            .field("width", &self.width)
            .field("layers", &self.layers.len())
            .finish_non_exhaustive()
    }
}

/// Scratch memory of one worker, reused between batches.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    rows: Vec<f32>,
    qkv: Vec<f32>,
    context: Vec<f32>,
    inner: Vec<f32>,
    gate: Vec<f32>,
    /// Scratch memory of the kernels.
    kernels: Vec<f32>,
}

impl Bert {
    /// Name of the instruction set that its linear maps are computed with.
    pub(crate) fn instructions(&self) -> &'static str {
        self.kernels.name
    }

    /// Whether its linear maps are computed in 8 bits.
    pub(crate) fn is_int8(&self) -> bool {
        self.layers.first().is_some_and(|layer| layer.qkv.is_int8())
    }

    /// Width of a hidden state, in numbers.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Hidden states of texts, `[sum of tokens][width]`, and each text's rows; `None` if an id or a length is beyond the
    /// tables.
    pub(crate) fn forward<'s>(
        &self,
        texts: &[Sequence<'_>],
        scratch: &'s mut Scratch,
    ) -> Option<(&'s [f32], Vec<Range<usize>>)> {
        let width = self.width;
        let mut ranges = Vec::with_capacity(texts.len());
        let total: usize = texts.iter().map(|text| text.ids.len()).sum();
        let Scratch { rows, qkv, context, inner, gate, kernels: scratch } = scratch;
        rows.clear();
        reserve(rows, total * width);
        for Sequence { ids, second } in texts {
            let start = rows.len() / width;
            if let Some(modern) = &self.modern {
                if ids.len() > modern.positions() {
                    return None;
                }
                ids.iter().try_for_each(|&id| self.words.append(id as usize, rows))?;
                ranges.push(start..start + ids.len());
                continue;
            }
            for (position, &id) in ids.iter().enumerate() {
                let position = self.positions.get(position * width..(position + 1) * width)?;
                let row = rows.len();
                self.words.append(id as usize, rows)?;
                rows[row..].iter_mut().zip(position).for_each(|(word, position)| *word += position);
            }
            if !self.second_type.is_empty() {
                for row in rows[(start + second) * width..].chunks_exact_mut(width) {
                    row.iter_mut().zip(&self.second_type).for_each(|(value, kind)| *value += kind);
                }
            }
            ranges.push(start..start + ids.len());
        }
        self.kernels.normalize(&self.embedding_norm.view(), rows, &[]);
        let qkv = room(qkv, total * 3 * width);
        room(context, total * width);
        context.truncate(total * width);
        if let Some(modern) = &self.modern {
            let memory = modern::Memory { rows, qkv, context, inner, gate, scratch };
            modern.forward(self, &ranges, memory);
        }
        for layer in self.layers.iter().filter(|_| self.modern.is_none()) {
            self.layer(layer, &ranges, rows, qkv, context, (inner, scratch));
        }
        if let Some((linear, norm)) = &self.transform {
            self.kernels.linear(linear, rows, Epilogue::Gelu, scratch, context);
            self.kernels.normalize(&norm.view(), context, &[]);
            std::mem::swap(rows, context);
        }
        Some((rows, ranges))
    }

    fn layer(
        &self,
        layer: &Layer,
        ranges: &[Range<usize>],
        rows: &mut [f32],
        qkv: &mut [f32],
        context: &mut [f32],
        (inner, scratch): (&mut Vec<f32>, &mut Vec<f32>),
    ) {
        let (kernels, width) = (self.kernels, self.width);
        kernels.linear(&layer.qkv, rows, Epilogue::None, scratch, qkv);
        for range in ranges {
            let job = Attention {
                qkv: &qkv[range.start * 3 * width..range.end * 3 * width],
                tokens: range.len(),
                width,
                heads: self.heads,
                window: usize::MAX,
            };
            kernels.attention(&job, scratch, &mut context[range.start * width..range.end * width]);
        }
        let columns = layer.inner.columns();
        let at_once = if layer.inner.size() > LARGE { ROWS_OF_LARGE } else { ROWS_AT_ONCE };
        let inner = room(inner, (rows.len() / width).min(at_once) * columns);
        for (rows, context) in rows.chunks_mut(at_once * width).zip(context.chunks_mut(at_once * width)) {
            // The queries have been read: their place takes what is made of the context.
            let attended = &mut qkv[..rows.len()];
            kernels.linear(&layer.attended, context, Epilogue::None, scratch, attended);
            kernels.normalize(&layer.attention_norm.view(), attended, rows);
            let inner = &mut inner[..rows.len() / width * columns];
            kernels.linear(&layer.inner, attended, Epilogue::Gelu, scratch, inner);
            kernels.linear(&layer.outer, inner, Epilogue::None, scratch, rows);
            kernels.normalize(&layer.output_norm.view(), rows, attended);
        }
    }
}

#[cfg(test)]
mod tests;
