//! ModernBERT's parameters in a checkpoint.

use crate::bert::{LayerWeights, LinearWeights, ModernWeights, NormWeights, Weights};
use crate::error::EncoderError;
use crate::packed::ModernShape;

use super::checkpoint::{Checkpoint, MAX_LAYERS};
use super::layout::MAX_TOKENS;

const GLOBAL: &str = "full_attention";
const LOCAL: &str = "sliding_attention";

impl Checkpoint {
    /// The parameters of the encoder, as [`Checkpoint::weights`].
    ///
    /// # Errors
    /// [`EncoderError::Unsupported`] with the tensor that is missing or of another shape, or what a damaged file gives.
    pub(super) fn modern_weights(&self, with_head: bool) -> Result<Weights, EncoderError> {
        let (width, layers) = (self.width(), self.architecture.num_hidden_layers);
        let shape = self.modern_shape(layers)?;
        Ok(Weights {
            width,
            heads: self.architecture.num_attention_heads,
            words: self.words()?.values,
            positions: Vec::new(),
            second_type: Vec::new(),
            embedding_norm: self.norm(&self.own("embeddings.norm"))?,
            layers: (0..layers).map(|number| self.modern_layer(number)).collect::<Result<_, _>>()?,
            transform: self.transform(with_head)?,
            modern: Some(ModernWeights { final_norm: self.norm(&self.own("final_norm"))?, shape }),
        })
    }

    /// How far attention reaches in each layer, and the bases of rotary positions.
    ///
    /// # Errors
    /// As [`Checkpoint::weights`].
    pub(super) fn modern_shape(&self, layers: usize) -> Result<ModernShape, EncoderError> {
        let keys = &self.architecture.modern;
        if !(1..=MAX_LAYERS).contains(&layers) {
            return Err(self.unsupported(format!("{layers} layers; it must have 1 to {MAX_LAYERS}")));
        }
        let every = keys.global_attn_every_n_layers.unwrap_or(3).max(1);
        let mut local = [0u64; 2];
        for layer in 0..layers {
            let is_local = match &keys.layer_types {
                None => !layer.is_multiple_of(every),
                Some(types) => match types.get(layer).map(String::as_str) {
                    Some(GLOBAL) => false,
                    Some(LOCAL) => true,
                    other => {
                        let reason = format!("layer_types [{}] of layer {layer}", other.unwrap_or("nothing"));
                        return Err(self.unsupported(reason));
                    }
                },
            };
            if is_local {
                local[layer / 64] |= 1 << (layer % 64);
            }
        }
        let rope = |kind: &str, said: Option<f32>, usual: f32| {
            let newer = &keys.rope_parameters[kind];
            if let Some(other) = newer["rope_type"].as_str().filter(|kind| *kind != "default") {
                return Err(self.unsupported(format!("rope_type [{other}]; it has to be [default]")));
            }
            let base = newer["rope_theta"].as_f64().map(|base| base as f32).or(said).unwrap_or(usual);
            if base.is_finite() && base > 0.0 {
                Ok(base.to_bits())
            } else {
                Err(self.unsupported(format!("rope_theta [{base}]")))
            }
        };
        Ok(ModernShape {
            window: keys.local_attention.unwrap_or(128) / 2,
            local,
            bases: [
                rope(GLOBAL, keys.global_rope_theta, 160_000.0)?,
                rope(LOCAL, keys.local_rope_theta, 10_000.0)?,
            ],
            positions: keys.max_position_embeddings.unwrap_or(MAX_TOKENS).min(MAX_TOKENS),
        })
    }

    fn modern_layer(&self, number: usize) -> Result<LayerWeights, EncoderError> {
        let width = self.width();
        let of_layer = |part: &str| self.own(&format!("layers.{number}.{part}"));
        let [query, key, value] = self.parts(&of_layer("attn.Wqkv"), width, width)?;
        let outer = self.tensor(&format!("{}.weight", of_layer("mlp.Wo")))?;
        let inner = outer.shape.last().copied().unwrap_or_default();
        // The first half is activated, the other one multiplies it.
        let [activated, gate] = self.parts(&of_layer("mlp.Wi"), width, inner)?;
        Ok(LayerWeights {
            query,
            key,
            value,
            attended: self.linear(&of_layer("attn.Wo"), width, width)?,
            attention_norm: match number {
                0 => NormWeights::default(),
                _ => self.norm(&of_layer("attn_norm"))?,
            },
            inner: activated,
            gate: Some(gate),
            outer: self.linear(&of_layer("mlp.Wo"), inner, width)?,
            output_norm: self.norm(&of_layer("mlp_norm"))?,
        })
    }

    /// Splits one tensor into `N` linear maps, which it holds one after another, each with `outputs` outputs.
    fn parts<const N: usize>(
        &self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<[LinearWeights; N], EncoderError> {
        let rows = outputs.checked_mul(N).unwrap_or_default();
        let matrix = self.matrix(&format!("{name}.weight"), Some(rows), inputs)?;
        let bias = self.bias(name, rows)?;
        let part = |at: usize| {
            let weights = matrix.values.part(at * outputs * inputs, outputs * inputs)?;
            let bias = bias.get(at * outputs..(at + 1) * outputs)?.to_vec();
            Some(LinearWeights { weights: weights.transposed(inputs), bias })
        };
        let parts: Option<Vec<LinearWeights>> = (0..N).map(part).collect();
        parts
            .and_then(|parts| <[LinearWeights; N]>::try_from(parts).ok())
            .ok_or_else(|| self.unsupported(format!("[{name}] does not fit")))
    }
}
