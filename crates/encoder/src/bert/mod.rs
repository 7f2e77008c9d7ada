//! The forward pass of BERT in our own code: token ids to hidden states, without padding and without ONNX Runtime.
//!
//! In f32 this is what ONNX Runtime computes (another order of additions, another polynomial for `erf` and `exp`; the hidden
//! states differ by 10⁻⁵ of their size, see the test). A model whose files ask for it, as those of the embedded dense one do, or that
//! is large and hardly changed by it, has its linear maps multiplied in 8 bits (`kernels/int8.rs`), and the rest in f32, or with AMX
//! attention in sums of two numbers of bf16. Rows of many
//! texts are stacked for the matrix products; attention looks at one text at a time. The weights are packed once ([`packing`]) and shared by all allocations.

use std::ops::Range;
use std::sync::Arc;

use kernels::{Epilogue, Linear};

use crate::numbers::{AlignedSlice, reserve, room};
use crate::table::Table;

mod fits;
pub(crate) mod kernels;
mod layers;
mod modern;
mod packing;
mod sampled;
mod weights;

pub(crate) use layers::Past;
use layers::{Layers, Memory};
use modern::Modern;
pub(crate) use weights::{LayerWeights, LinearWeights, ModernWeights, NormWeights, Refused, Upper, Weights};

/// The tokens of one text, or of a question and a text after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sequence<'a> {
    pub(crate) ids: &'a [u32],
    /// Index of the first token of the second type; the number of tokens if no token has it.
    pub(crate) second: usize,
}

impl<'a> From<&'a [u32]> for Sequence<'a> {
    fn from(ids: &'a [u32]) -> Self {
        Self { ids, second: ids.len() }
    }
}

/// An encoder, packed for the instruction set of this process.
pub(crate) struct Bert {
    /// The word embeddings, which may be a decoder's rows.
    words: Arc<Table>,
    positions: Arc<AlignedSlice<f32>>,
    second_type: Vec<f32>,
    embedding_norm: NormWeights,
    layers: Layers,
    transform: Option<(Linear, NormWeights)>,
    modern: Option<Modern>,
}

impl std::fmt::Debug for Bert {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bert")
            .field("width", &self.layers.width)
            .field("layers", &self.layers.list.len())
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
        self.layers.kernels.name
    }

    /// Whether its linear maps are computed in 8 bits.
    pub(crate) fn is_int8(&self) -> bool {
        self.layers.list.first().is_some_and(|layer| layer.qkv.is_int8())
    }

    /// Number of its layers.
    pub(crate) fn depth(&self) -> usize {
        self.layers.list.len()
    }

    /// The number of attention heads in each layer.
    pub(crate) fn heads(&self) -> usize {
        self.layers.heads
    }

    /// The word embeddings.
    pub(crate) fn words(&self) -> &Arc<Table> {
        &self.words
    }

    /// Width of a hidden state, in numbers.
    pub(crate) fn width(&self) -> usize {
        self.layers.width
    }

    /// Hidden states of texts, `[sum of tokens][width]`, and each text's rows; `None` if an id or a length is beyond the
    /// tables.
    pub(crate) fn forward<'s>(
        &self,
        texts: &[Sequence<'_>],
        scratch: &'s mut Scratch,
    ) -> Option<(&'s [f32], Vec<Range<usize>>)> {
        self.forward_past(texts, scratch, None)
    }

    /// As [`Bert::forward`]; on the way the hidden states after some number of layers are shown.
    pub(crate) fn forward_past<'s>(
        &self,
        texts: &[Sequence<'_>],
        scratch: &'s mut Scratch,
        past: Option<Past<'_>>,
    ) -> Option<(&'s [f32], Vec<Range<usize>>)> {
        let (kernels, width) = (self.layers.kernels, self.layers.width);
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
                ids.iter().try_for_each(|&id| self.append(id, rows))?;
                ranges.push(start..start + ids.len());
                continue;
            }
            for (position, &id) in ids.iter().enumerate() {
                let position = self.positions.get(position * width..(position + 1) * width)?;
                let row = rows.len();
                self.append(id, rows)?;
                rows[row..].iter_mut().zip(position).for_each(|(word, position)| *word += position);
            }
            if !self.second_type.is_empty() {
                for row in rows[(start + second) * width..].chunks_exact_mut(width) {
                    row.iter_mut().zip(&self.second_type).for_each(|(value, kind)| *value += kind);
                }
            }
            ranges.push(start..start + ids.len());
        }
        kernels.normalize(&self.embedding_norm.view(), rows, &[]);
        let qkv = room(qkv, total * 3 * width);
        room(context, total * width);
        context.truncate(total * width);
        let memory = Memory { rows, qkv, context, inner, gate, scratch };
        match &self.modern {
            Some(modern) => modern.forward(&self.layers, &ranges, memory),
            None => self.layers.forward(&ranges, memory, past),
        }
        if let Some((linear, norm)) = &self.transform {
            kernels.linear(linear, rows, Epilogue::Gelu, scratch, context);
            kernels.normalize(&norm.view(), context, &[]);
            std::mem::swap(rows, context);
        }
        Some((rows, ranges))
    }

    /// Appends the embedding of a word, if there is one.
    fn append(&self, id: u32, rows: &mut Vec<f32>) -> Option<()> {
        self.words.get(id as usize)?.append(rows);
        Some(())
    }
}

#[cfg(test)]
mod tests;
