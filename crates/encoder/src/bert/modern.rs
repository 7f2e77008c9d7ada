//! Where ModernBERT differs from BERT: normalisations before each half of a layer, rotary positions, local layers whose tokens attend only
//! to their neighbours, and gated feed-forward parts.

use std::ops::Range;

use crate::numbers::room;
use crate::packed::ModernShape;

use super::kernels::{Attention, Epilogue};
use super::layers::{Layer, Layers, Memory, ROWS_AT_ONCE};
use super::weights::{ModernWeights, NormWeights};

/// The packed form of [`ModernWeights`].
#[derive(Debug)]
pub(super) struct Modern {
    pub(super) final_norm: NormWeights,
    pub(super) shape: ModernShape,
    /// The rotations of global layers and of local layers.
    rotations: [Rotation; 2],
}

/// Tables of rotary positions: cosines and sines, `[positions][half]`, where `half` is half of a head's width.
#[derive(Debug)]
struct Rotation {
    half: usize,
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Rotation {
    /// Computes the tables in single precision, as PyTorch does; `depth` is the width of a head.
    fn new(base: f32, depth: usize, positions: usize) -> Self {
        let half = depth / 2;
        let frequencies: Vec<f32> =
            (0..half).map(|at| 1.0 / base.powf((2 * at) as f32 / depth as f32)).collect();
        let angles = || {
            (0..positions).flat_map(|position| {
                frequencies.iter().map(move |frequency| f64::from(position as f32 * frequency))
            })
        };
        let of = |function: fn(f64) -> f64| angles().map(|angle| function(angle) as f32).collect();
        Self { half, cosines: of(f64::cos), sines: of(f64::sin) }
    }

    /// Turns the queries and keys of a text, `[tokens][3][width]`.
    fn turn(&self, qkv: &mut [f32], width: usize) {
        let half = self.half;
        let tables = self.cosines.chunks_exact(half).zip(self.sines.chunks_exact(half));
        for (row, (cosines, sines)) in qkv.chunks_exact_mut(3 * width).zip(tables) {
            for head in row[..2 * width].chunks_exact_mut(2 * half) {
                let (first, second) = head.split_at_mut(half);
                for ((first, second), (cosine, sine)) in
                    first.iter_mut().zip(second).zip(cosines.iter().zip(sines))
                {
                    let (a, b) = (*first, *second);
                    *first = a * cosine - b * sine;
                    *second = b * cosine + a * sine;
                }
            }
        }
    }
}

impl Modern {
    pub(super) fn new(weights: ModernWeights, depth: usize) -> Self {
        let ModernWeights { final_norm, shape } = weights;
        let rotation = |base: u32| Rotation::new(f32::from_bits(base), depth, shape.positions);
        Self { final_norm, shape, rotations: shape.bases.map(rotation) }
    }

    /// Tokens of the longest text.
    pub(super) fn positions(&self) -> usize {
        self.shape.positions
    }

    /// Computes all layers; `rows` holds the embeddings before and the hidden states after.
    pub(super) fn forward(&self, layers: &Layers, ranges: &[Range<usize>], memory: Memory<'_>) {
        let Memory { rows, qkv, context, inner, gate, scratch } = memory;
        for (number, layer) in layers.list.iter().enumerate() {
            let local = self.shape.is_local(number);
            self.attend(layers, layer, local, ranges, (rows, qkv, context, scratch));
            let columns = layer.inner.columns();
            let width = layers.width;
            for (rows, context) in
                rows.chunks_mut(ROWS_AT_ONCE * width).zip(context.chunks_mut(ROWS_AT_ONCE * width))
            {
                let made = &mut qkv[..rows.len()];
                layers.kernels.linear(&layer.attended, context, Epilogue::None, scratch, made);
                add(rows, made);
                context.copy_from_slice(rows);
                layers.kernels.normalize(&layer.output_norm.view(), context, &[]);
                let numbers = rows.len() / width * columns;
                let inner = room(inner, numbers);
                layers.kernels.linear(&layer.inner, context, Epilogue::Gelu, scratch, inner);
                if let Some(linear) = &layer.gate {
                    let gate = room(gate, numbers);
                    layers.kernels.linear(linear, context, Epilogue::None, scratch, gate);
                    inner.iter_mut().zip(&*gate).for_each(|(inner, gate)| *inner *= gate);
                }
                layers.kernels.linear(&layer.outer, inner, Epilogue::None, scratch, made);
                add(rows, made);
            }
        }
        layers.kernels.normalize(&self.final_norm.view(), rows, &[]);
    }

    /// The attention of a layer, into `context`.
    fn attend(
        &self,
        layers: &Layers,
        layer: &Layer,
        local: bool,
        ranges: &[Range<usize>],
        (rows, qkv, context, scratch): (&[f32], &mut [f32], &mut [f32], &mut Vec<f32>),
    ) {
        let width = layers.width;
        // The first layer takes the embeddings as they are.
        let input = if layer.attention_norm.scale.is_empty() {
            rows
        } else {
            context.copy_from_slice(rows);
            layers.kernels.normalize(&layer.attention_norm.view(), context, &[]);
            &*context
        };
        layers.kernels.linear(&layer.qkv, input, Epilogue::None, scratch, qkv);
        let rotation = &self.rotations[usize::from(local)];
        for range in ranges {
            let text_qkv = &mut qkv[range.start * 3 * width..range.end * 3 * width];
            rotation.turn(text_qkv, width);
            let job = Attention {
                qkv: text_qkv,
                tokens: range.len(),
                width,
                heads: layers.heads,
                window: if local { self.shape.window } else { usize::MAX },
            };
            layers.kernels.attention(&job, scratch, &mut context[range.start * width..range.end * width]);
        }
    }
}

fn add(rows: &mut [f32], made: &[f32]) {
    rows.iter_mut().zip(made).for_each(|(row, made)| *row += made);
}
