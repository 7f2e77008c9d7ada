//! How large the inputs of linear maps are for a sample of texts, found in floats while the layers are packed one by one.
//!
//! Where a few numbers of a row are ten times as large as the others, as in what layer normalisations give, a scale for the whole row rounds
//! the others away. So the numbers of rows are divided, and weights multiplied, by the root of how large the former are compared with the
//! latter (SmoothQuant, arXiv:2211.10438): products stay what they are, and both are easier to round.

use std::sync::Arc;

use crate::fixed::Precision;

use super::kernels::{Kernels, Linear};
use super::layers::{Layer, Layers, Memory, ROWS_AT_ONCE};
use super::weights::{Refused, Weights};
use super::{Bert, Scratch};

/// The sample on its way through the layers, and the layers that it has passed.
pub(super) struct Sampled {
    /// Hidden states of each text, `[tokens][width]`.
    texts: Vec<Vec<f32>>,
    layers: Layers,
    scratch: Scratch,
}

/// The largest absolute value of each input of two linear maps of a layer.
#[derive(Debug, Default)]
pub(super) struct Largest {
    pub(super) qkv: Vec<f32>,
    pub(super) inner: Vec<f32>,
}

impl Sampled {
    /// The embeddings of texts, given as ids of tokens. `None` for weights that are no floats or of ModernBERT, or if a text does not fit
    /// the tables.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn new(
        weights: &Weights,
        texts: &[Vec<u32>],
        kernels: &'static Kernels,
    ) -> Result<Option<Self>, Refused> {
        let in_floats = weights.layers.iter().all(|layer| layer.inner.weights.are_floats());
        if weights.modern.is_some() || !in_floats || texts.is_empty() {
            return Ok(None);
        }
        let (width, heads) = (weights.width, weights.heads);
        let words = weights.word_table(Precision::F32)?;
        let embeddings = Bert {
            words: Arc::new(words),
            positions: Arc::new(weights.positions.clone().into()),
            second_type: Vec::new(),
            embedding_norm: weights.embedding_norm.clone(),
            layers: Layers { kernels, width, heads, list: Vec::new() },
            transform: None,
            modern: None,
        };
        let mut scratch = Scratch::default();
        let mut embedded = Vec::with_capacity(texts.len());
        for ids in texts {
            let ids = &ids[..ids.len().min(ROWS_AT_ONCE)];
            let Some((rows, _)) = embeddings.forward(&[ids.into()], &mut scratch) else { return Ok(None) };
            embedded.push(rows.to_vec());
        }
        Ok(Some(Self { texts: embedded, layers: embeddings.layers, scratch }))
    }

    /// Lets the sample pass a layer, which has to be in floats.
    pub(super) fn pass(&mut self, layer: &Layer) -> Largest {
        let (width, mut found) = (self.layers.width, Largest::default());
        for rows in &mut self.texts {
            let Scratch { qkv, context, inner, gate, kernels: scratch, .. } = &mut self.scratch;
            add(&mut found.qkv, rows, width);
            let qkv = crate::numbers::room(qkv, 3 * rows.len());
            crate::numbers::room(context, rows.len());
            context.truncate(rows.len());
            let whole = 0..rows.len() / width;
            let read =
                self.layers.layer(layer, &[whole], Memory { rows, qkv, context, inner, gate, scratch });
            add(&mut found.inner, read, width);
        }
        found
    }
}

/// Raises the largest absolute values of columns to those of some rows.
fn add(largest: &mut Vec<f32>, rows: &[f32], width: usize) {
    largest.resize(width, 0.0);
    for row in rows.chunks_exact(width) {
        largest.iter_mut().zip(row).for_each(|(largest, value)| *largest = largest.max(value.abs()));
    }
}

/// What the numbers of rows are multiplied with, and weights divided by, given the largest absolute value of each number of a row and of
/// its weights. Both lists are of the same length. All are 1 where a value is not finite, or nothing is above 0.
pub(super) fn factors(inputs: &[f32], weights: &[f32]) -> Vec<f32> {
    // A number that was always 0 in the sample may be larger in other texts.
    let floor = |of: &[f32]| of.iter().copied().fold(0.0, f32::max) / 4096.0;
    let (least_input, least_weight) = (floor(inputs), floor(weights));
    let factor = |(input, weight): (&f32, &f32)| (weight.max(least_weight) / input.max(least_input)).sqrt();
    let factors: Vec<f32> = inputs.iter().zip(weights).map(factor).collect();
    if Linear::are_factors(&factors) { factors } else { vec![1.0; inputs.len()] }
}

#[cfg(test)]
mod tests {
    use super::factors;

    #[test]
    fn factors_are_positive_and_finite_whatever_was_seen() {
        assert_eq!(factors(&[1.0, 4.0, 0.25], &[1.0, 1.0, 1.0]), [1.0, 0.5, 2.0]);
        // An input that was 0 in all texts counts as a 4,096th of the largest.
        assert_eq!(factors(&[4096.0, 0.0], &[1.0, 1.0]), [1.0 / 64.0, 1.0]);
        assert_eq!(factors(&[1.0, 1.0], &[4096.0, 0.0]), [64.0, 1.0]);
        for odd in [f32::INFINITY, f32::NAN] {
            let found = factors(&[1.0, odd], &[1.0, 1.0]);
            assert!(found.iter().all(|factor| factor.is_finite() && *factor > 0.0), "{odd}: {found:?}");
        }
        assert_eq!(factors(&[0.0, 0.0], &[1.0, 1.0]), [1.0, 1.0]);
        assert_eq!(factors(&[1.0, 1.0], &[0.0, 0.0]), [1.0, 1.0]);
    }
}
