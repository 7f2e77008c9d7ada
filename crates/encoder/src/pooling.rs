//! Reduces the hidden states or logits of a batch to one vector per text. Plain loops are enough: ONNX
//! Runtime has done most of the work before.

/// Function from a term's maximal logit to its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// `ln(1 + ReLU(x))`, as in SPLADE.
    Log1p,
    /// `ln(1 + ln(1 + ReLU(x)))`, as in OpenSearch's third generation of models.
    Log1pTwice,
    /// None: the model has applied its activation itself.
    Done,
}

impl Activation {
    /// The weight that this activation gives a positive maximal logit.
    pub(crate) fn weight(self, logit: f32) -> f32 {
        match self {
            Activation::Log1p => logit.ln_1p(),
            Activation::Log1pTwice => logit.ln_1p().ln_1p(),
            Activation::Done => logit,
        }
    }
}

/// For each term, the maximum over all tokens, if it is positive; ascending by term. `logits` is
/// `[tokens][terms]`.
pub(crate) fn max_over_tokens(logits: &[f32], terms: usize) -> Vec<(u32, f32)> {
    let mut maxima = vec![0f32; terms];
    for token in logits.chunks_exact(terms) {
        for (max, &logit) in maxima.iter_mut().zip(token) {
            *max = if logit > *max { logit } else { *max };
        }
    }
    maxima
        .into_iter()
        .enumerate()
        .filter(|(_, max)| *max > 0.0)
        .map(|(term, max)| (term as u32, max))
        .collect()
}

/// The mean of the hidden states over all tokens. `hidden` is `[tokens][dims]`; without tokens the mean is
/// all zeros.
pub(crate) fn mean(hidden: &[f32], dims: usize) -> Vec<f32> {
    let mut sums = vec![0f32; dims];
    let mut tokens = 0u32;
    for token in hidden.chunks_exact(dims) {
        tokens += 1;
        for (sum, value) in sums.iter_mut().zip(token) {
            *sum += value;
        }
    }
    let inverse = 1.0 / f32::from(u16::try_from(tokens.max(1)).unwrap_or(u16::MAX));
    sums.iter_mut().for_each(|sum| *sum *= inverse);
    sums
}

/// Scales a vector to length 1; a vector of zeros is left unchanged.
pub(crate) fn normalize(vector: &mut [f32]) {
    let square: f64 = vector.iter().map(|value| f64::from(*value).powi(2)).sum();
    if square > 0.0 {
        let inverse = 1.0 / square.sqrt();
        vector.iter_mut().for_each(|value| *value = (f64::from(*value) * inverse) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::{Activation, max_over_tokens, mean, normalize};

    #[test]
    fn maxima_keep_positive_terms_only() {
        let logits = [1.0, -1.0, 0.0, 2.0, 0.5, -3.0, -0.0, 4.0];
        assert_eq!(max_over_tokens(&logits, 4), [(0, 1.0), (3, 4.0)]);
        assert_eq!(max_over_tokens(&[f32::NAN, 1.0], 1), [(0, 1.0)]);
        assert_eq!(max_over_tokens(&[], 3), []);
    }

    #[test]
    fn weights() {
        assert_eq!(Activation::Log1p.weight(1.0), 2f32.ln());
        assert_eq!(Activation::Log1pTwice.weight(1.0), (1.0 + 2f32.ln()).ln());
        assert_eq!(Activation::Done.weight(1.5), 1.5);
    }

    #[test]
    fn means_and_norms() {
        let mut vector = mean(&[1.0, 2.0, 5.0, 6.0], 2);
        assert_eq!(vector, [3.0, 4.0]);
        normalize(&mut vector);
        assert_eq!(vector, [0.6, 0.8]);
        let mut zeros = mean(&[], 2);
        normalize(&mut zeros);
        assert_eq!(zeros, [0.0, 0.0]);
    }
}
