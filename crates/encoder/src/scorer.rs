//! The head of a cross-encoder, which computes one score from the hidden states of a question and a text. It
//! takes a few thousandths of the encoder's work, so plain loops are enough.

use crate::pooling::mean;

/// Which hidden states the head uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum States {
    /// The state of the first token.
    First,
    /// The mean of the states of all tokens.
    Mean,
}

/// Activation function for the outputs of the first layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    Tanh,
    Relu,
    Gelu,
}

impl Activation {
    fn of(self, value: f64) -> f64 {
        match self {
            Activation::Tanh => value.tanh(),
            Activation::Relu => value.max(0.0),
            Activation::Gelu => 0.5 * value * (1.0 + erf(value * std::f64::consts::FRAC_1_SQRT_2)),
        }
    }
}

/// Factors and epsilon of a layer normalization that has no bias.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    pub(crate) factors: Vec<f32>,
    pub(crate) epsilon: f32,
}

/// A head of two layers: `last . norm(activation(dense . states + bias)) + offset`.
#[derive(Debug, Clone)]
pub(crate) struct Scorer {
    pub(crate) states: States,
    /// Weights of the first layer, `[width][width]`, one row for each output.
    pub(crate) dense: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) activation: Activation,
    pub(crate) norm: Option<Scale>,
    /// Weights of the last layer, one for each output of the first.
    pub(crate) last: Vec<f32>,
    pub(crate) offset: f32,
}

impl Scorer {
    /// Score of the hidden states of all tokens, `[tokens][width]`; NaN if there are none.
    pub(crate) fn score(&self, states: &[f32], width: usize) -> f32 {
        let mean_of_all;
        let state = match self.states {
            States::First => states.get(..width),
            States::Mean => {
                mean_of_all = mean(states, width);
                Some(&mean_of_all[..])
            }
        };
        let Some(state) = state.filter(|_| !states.is_empty()) else { return f32::NAN };
        let mut inner: Vec<f64> = self
            .dense
            .chunks_exact(width)
            .zip(&self.bias)
            .map(|(row, bias)| self.activation.of(dot(row, state) + f64::from(*bias)))
            .collect();
        if let Some(norm) = &self.norm {
            let count = inner.len() as f64;
            let mean = inner.iter().sum::<f64>() / count;
            let variance = inner.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
            let inverse = 1.0 / (variance + f64::from(norm.epsilon)).sqrt();
            for (value, factor) in inner.iter_mut().zip(&norm.factors) {
                *value = (*value - mean) * inverse * f64::from(*factor);
            }
        }
        let sum: f64 = inner.iter().zip(&self.last).map(|(value, weight)| value * f64::from(*weight)).sum();
        (sum + f64::from(self.offset)) as f32
    }
}

/// Dot product with eight partial sums, which compilers turn into vector instructions.
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0f32; 8];
    let (left, right) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in left.zip(right) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    sums.iter().map(|sum| f64::from(*sum)).sum::<f64>() + f64::from(rest)
}

/// The error function, with an error below 1.2e-7: a Chebyshev fit of its complement from Numerical Recipes.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let coefficients = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let series = coefficients.iter().fold(0.0, |sum, coefficient| sum * t + coefficient);
    let complement = t * (-x * x + series).exp();
    if x >= 0.0 { 1.0 - complement } else { complement - 1.0 }
}

#[cfg(test)]
mod tests {
    use super::{Activation, Scale, Scorer, States, erf};

    #[test]
    fn the_error_function() {
        for (x, value) in
            [(0.0, 0.0), (0.5, 0.520_499_878), (1.0, 0.842_700_793), (-2.0, -0.995_322_265), (9.0, 1.0)]
        {
            assert!((erf(x) - value).abs() < 2e-7, "{x}");
        }
    }

    #[test]
    fn a_score_of_the_first_state_or_of_the_mean() {
        let scorer = Scorer {
            states: States::First,
            dense: vec![1.0, 0.0, 0.0, -1.0],
            bias: vec![1.0, 0.5],
            activation: Activation::Relu,
            norm: None,
            last: vec![2.0, 10.0],
            offset: 0.25,
        };
        let states = [1.0, 2.0, 3.0, -4.0];
        assert_eq!(scorer.score(&states, 2), 4.25);
        let all = Scorer { states: States::Mean, ..scorer.clone() };
        assert_eq!(all.score(&states, 2), 2.0 * 3.0 + 10.0 * 1.5 + 0.25);
        let norm = Some(Scale { factors: vec![1.0, 3.0], epsilon: 0.0 });
        assert_eq!(Scorer { norm, ..all }.score(&states, 2), 2.0 - 30.0 + 0.25);
        assert!(scorer.score(&[], 2).is_nan());
    }
}
