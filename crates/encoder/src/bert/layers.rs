//! The packed layers of an encoder, and the way of BERT through them.

use std::ops::Range;
use std::sync::Arc;

use crate::numbers::room;

use super::kernels::{Attention, Epilogue, Kernels, Linear};
use super::weights::NormWeights;

/// Rows that go through the feed-forward part at once: their inner activations stay in the second-level cache.
pub(super) const ROWS_AT_ONCE: usize = 120;

/// As `ROWS_AT_ONCE`, for a model of floats whose feed-forward weights fit no cache and are read from memory in each pass: the rows of a whole batch
/// of ingest.
const ROWS_OF_LARGE: usize = 528;

/// Rows that go through a whole layer at once where its weights are bytes, unless a single text has more: queries, keys and values, and the
/// inner activations stay in the second-level cache, which they would leave several times as often as the weights.
const ROWS_OF_BYTES: usize = 192;

/// Number of weights of a linear map above which the feed-forward part counts as large; its two maps are of the same size.
const LARGE: usize = 1 << 19;

#[derive(Debug)]
pub(super) struct Layer {
    /// Queries, keys and values as one linear map; the weights of the queries are scaled by `1/√depth` beforehand.
    pub(super) qkv: Linear,
    pub(super) attended: Linear,
    pub(super) attention_norm: NormWeights,
    pub(super) inner: Linear,
    pub(super) gate: Option<Linear>,
    pub(super) outer: Linear,
    pub(super) output_norm: NormWeights,
}

/// All layers of an encoder, packed for an instruction set.
pub(super) struct Layers {
    pub(super) kernels: &'static Kernels,
    /// Width of a hidden state, in numbers.
    pub(super) width: usize,
    pub(super) heads: usize,
    /// The layers; an encoder on top of another one shares the first.
    pub(super) list: Vec<Arc<Layer>>,
}

/// A function that receives the hidden states of a batch, [rows, width] in one slice, and the range of rows of each text.
type Show<'p> = &'p mut dyn FnMut(&[f32], &[Range<usize>]);

/// A place between two layers where hidden states are shown.
pub(crate) struct Past<'p> {
    /// The layers before, at least one.
    pub(crate) layers: usize,
    pub(crate) show: Show<'p>,
}

/// The buffers that a forward pass works in.
pub(super) struct Memory<'m> {
    pub(super) rows: &'m mut Vec<f32>,
    pub(super) qkv: &'m mut [f32],
    pub(super) context: &'m mut Vec<f32>,
    pub(super) inner: &'m mut Vec<f32>,
    pub(super) gate: &'m mut Vec<f32>,
    pub(super) scratch: &'m mut Vec<f32>,
}

impl Layers {
    /// Computes all layers as BERT does; `rows` holds the embeddings before and the hidden states after.
    pub(super) fn forward(&self, ranges: &[Range<usize>], memory: Memory<'_>, mut past: Option<Past<'_>>) {
        let Memory { rows, qkv, context, inner, gate, scratch } = memory;
        for (number, layer) in (1..).zip(&self.list) {
            let memory = Memory { rows, qkv, context, inner, gate, scratch };
            self.layer(layer, ranges, memory);
            if let Some(past) = past.as_mut().filter(|past| past.layers == number) {
                (past.show)(rows, ranges);
            }
        }
    }

    /// Computes a layer in place, a group of texts at a time, whose `ranges` follow one another. Returns what its feed-forward part was given
    /// last: that of all rows, if there are at most [`ROWS_AT_ONCE`].
    pub(super) fn layer<'m>(&self, layer: &Layer, ranges: &[Range<usize>], memory: Memory<'m>) -> &'m [f32] {
        let Memory { rows, qkv, context, inner, gate, scratch } = memory;
        let most = if layer.inner.is_int8() { ROWS_OF_BYTES } else { usize::MAX };
        let (mut last, mut rest) = (0, ranges);
        while let Some(first) = rest.first() {
            let fits = |range: &&Range<usize>| range.end - first.start <= most;
            let (texts, others) = rest.split_at(rest.iter().take_while(fits).count().max(1));
            let memory = Memory { rows, qkv, context, inner, gate, scratch };
            last = self.layer_of(layer, texts, memory);
            rest = others;
        }
        &qkv[..last]
    }

    /// Computes a layer of successive texts. Returns how many numbers its feed-forward part was given last; they are in `qkv`.
    fn layer_of(&self, layer: &Layer, texts: &[Range<usize>], memory: Memory<'_>) -> usize {
        let (kernels, width) = (self.kernels, self.width);
        let (Some(Range { start, .. }), Some(Range { end, .. })) = (texts.first(), texts.last()) else {
            return 0;
        };
        let Memory { rows, qkv, context, inner, scratch, .. } = memory;
        let rows = &mut rows[start * width..end * width];
        let (qkv, context) = (&mut qkv[..3 * rows.len()], &mut context[..rows.len()]);
        kernels.linear(&layer.qkv, rows, Epilogue::None, scratch, qkv);
        for text in texts {
            let text = text.start - start..text.end - start;
            let job = Attention {
                qkv: &qkv[text.start * 3 * width..text.end * 3 * width],
                tokens: text.len(),
                width,
                heads: self.heads,
                window: usize::MAX,
            };
            kernels.attention(&job, scratch, &mut context[text.start * width..text.end * width]);
        }
        let columns = layer.inner.columns();
        let at_once = if layer.inner.is_int8() {
            ROWS_OF_BYTES
        } else if layer.inner.size() > LARGE {
            ROWS_OF_LARGE
        } else {
            ROWS_AT_ONCE
        };
        let inner = room(inner, (rows.len() / width).min(at_once) * columns);
        let mut last = 0;
        for (rows, context) in rows.chunks_mut(at_once * width).zip(context.chunks_mut(at_once * width)) {
            // The queries have been read: their place takes what is made of the context.
            last = rows.len();
            let attended = &mut qkv[..last];
            kernels.linear(&layer.attended, context, Epilogue::None, scratch, attended);
            kernels.normalize(&layer.attention_norm.view(), attended, rows);
            let inner = &mut inner[..rows.len() / width * columns];
            kernels.linear(&layer.inner, attended, Epilogue::Gelu, scratch, inner);
            kernels.linear(&layer.outer, inner, Epilogue::None, scratch, rows);
            kernels.normalize(&layer.output_norm.view(), rows, attended);
        }
        last
    }
}
