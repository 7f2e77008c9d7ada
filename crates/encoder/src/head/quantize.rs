//! Hidden states of one document as bytes, with the norms that bound what was lost.

use super::kernels::{DIM_STEP, Document};
use super::{Limits, NotFinite, limits};

/// One document's hidden states, `[tokens][dims padded to four]`, one scale for all of them: the running maximum over
/// tokens compares integers, which a scale per token would forbid.
#[derive(Debug)]
pub(super) struct Quantized {
    values: Vec<i8>,
    shifted: Vec<u8>,
    corrections: Vec<i32>,
    limits: Limits,
}

/// Adding this to a number below 2²² rounds it to an integer, which then stands in the low bits. The plain `round` is a
/// library call on processors without SSE 4.1, which the compiler has to assume.
const ROUNDER: f32 = 12_582_912.0;

impl Quantized {
    /// Quantises `[tokens][dims]` to whole numbers from `−levels` to `levels`.
    pub(super) fn new(hidden: &[f32], dims: usize, levels: i8) -> Result<Self, NotFinite> {
        let padded = dims.next_multiple_of(DIM_STEP);
        let largest =
            hidden.iter().fold(0f32, |max, value| if value.abs() > max { value.abs() } else { max });
        if !largest.is_finite() {
            return Err(NotFinite);
        }
        // Below that, the inverse would overflow: all values become 0 and the error term carries them.
        let scale = if largest > 1e-30 { largest / f32::from(levels) } else { 1.0 };
        let inverse = 1.0 / scale;
        let tokens = hidden.len() / dims;
        let mut values = vec![0i8; tokens * padded];
        let mut corrections = Vec::with_capacity(tokens);
        let (mut error, mut norm) = (0f32, 0f32);
        for (token, out) in hidden.chunks_exact(dims).zip(values.chunks_exact_mut(padded)) {
            let mut sum = 0i32;
            let (mut lost, mut square) = ([0f32; 8], [0f32; 8]);
            for (at, (&value, out)) in token.iter().zip(out).enumerate() {
                // |value · inverse| ≤ levels·(1 + 2⁻²²): it rounds to at most `levels`.
                let shifted = value * inverse + ROUNDER;
                let quantised = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()) as i32;
                *out = quantised as i8;
                sum += i32::from(quantised as i8);
                let rest = value - (shifted - ROUNDER) * scale;
                lost[at % 8] += rest * rest;
                square[at % 8] += value * value;
            }
            corrections.push(-128 * sum);
            let (lost, square): (f32, f32) = (lost.iter().sum(), square.iter().sum());
            // NaN fails here, whatever the comparisons above made of it.
            if !square.is_finite() {
                return Err(NotFinite);
            }
            norm = norm.max(square.sqrt());
            error = error.max(lost.sqrt());
        }
        // The sums above are off by at most (dims / 8 + 8) roundings; a rest by two roundings of its value.
        let inflation = 1.0 + 2f32.powi(-10) + dims as f32 * 2f32.powi(-23);
        let norm = norm * inflation;
        let error = error * inflation + norm * 2f32.powi(-22);
        let shifted = values.iter().map(|value| (*value as u8).wrapping_add(64)).collect();
        Ok(Self { values, shifted, corrections, limits: limits(scale, error, norm) })
    }

    pub(super) fn view(&self, padded: usize) -> Document<'_> {
        Document::new(&self.values, &self.shifted, &self.corrections, padded, self.limits)
    }
}

#[cfg(test)]
mod tests {
    use super::Quantized;

    #[test]
    fn values_are_rounded_and_the_norms_bound_the_error() {
        let hidden = [1.0f32, -0.5, 0.25, 0.0, 127.0, -127.0, 63.4, 0.6];
        let quantised = Quantized::new(&hidden, 8, 127).unwrap();
        assert_eq!(quantised.values, [1, 0, 0, 0, 127, -127, 63, 1]);
        assert_eq!(quantised.corrections, [-128 * 65]);
        let lost = (0.5f32 * 0.5 + 0.25 * 0.25 + 0.4 * 0.4 + 0.4 * 0.4).sqrt();
        assert!(quantised.limits.error >= lost && quantised.limits.error < lost * 1.01);
    }

    #[test]
    fn all_zero_states_are_fine() {
        let quantised = Quantized::new(&[0.0; 6], 3, 63).unwrap();
        assert_eq!(quantised.values, [0; 8]);
        assert_eq!(quantised.limits.norm, 0.0);
    }
}
