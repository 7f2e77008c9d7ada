//! Another basis for terms and tokens, which a model directory may bring along: in it, a few leading dimensions hold nearly all of a logit.

use super::kernels::MAX_DIMS;

/// Dimensions of a panel in the turned basis are multiples of this: two steps of a dot product instruction, which is what
/// AVX2 takes at once.
pub(crate) const TURNED_STEP: usize = 8;

/// Two square matrices with `termsᵀ · tokens ≈ 1`, so that `w·h ≈ (terms·w)·(tokens·h)`, with the most significant dimensions first.
/// Results are right with any two matrices: the distance of the product from 1 is part of the margin, and a bad basis is only slow.
pub(crate) struct Basis {
    dims: usize,
    /// The matrix for terms, `[dims][dims]`, with a row for each new dimension; `tokens` likewise.
    pub(super) terms: Vec<f32>,
    pub(super) tokens: Vec<f32>,
    /// Added to each token in the new basis, which makes its average zero; `dims` numbers.
    pub(super) offset: Vec<f32>,
    /// For each term, how many of the new dimensions the first look takes, the last of which is the norm of the remaining ones.
    pub(super) looks: Vec<u32>,
}

impl std::fmt::Debug for Basis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Basis").field("dims", &self.dims).finish_non_exhaustive()
    }
}

impl Basis {
    /// A basis over its parts; `looks` are rounded up to whole steps and cut to `dims`.
    ///
    /// # Errors
    /// A message that says which part is of the wrong length or not finite.
    pub(crate) fn new(
        terms: Vec<f32>,
        tokens: Vec<f32>,
        offset: Vec<f32>,
        looks: &[f32],
    ) -> Result<Self, String> {
        let dims = offset.len();
        let square = Some(terms.len()) == dims.checked_mul(dims) && tokens.len() == terms.len();
        if !square || dims == 0 || dims > MAX_DIMS || !dims.is_multiple_of(crate::bert::kernels::STEP) {
            return Err(format!(
                "basis of {} and {} numbers does not fit {dims} dimensions",
                terms.len(),
                tokens.len()
            ));
        }
        if !terms.iter().chain(&tokens).chain(&offset).all(|value| value.is_finite()) {
            return Err("basis holds a number that is not finite".into());
        }
        let looks = looks
            .iter()
            // NaN becomes 0.
            .map(|look| (*look as usize).clamp(1, dims).next_multiple_of(TURNED_STEP).min(dims) as u32)
            .collect();
        Ok(Self { dims, terms, tokens, offset, looks })
    }

    pub(super) fn dims(&self) -> usize {
        self.dims
    }

    /// The Frobenius norms of both matrices, and that of `1 − termsᵀ · tokens`.
    pub(super) fn norms(&self) -> Norms {
        let dims = self.dims;
        let frobenius = |values: &[f32]| values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
        let mut gap = 0.0;
        let mut row = vec![0f64; dims];
        for at in 0..dims {
            row.fill(0.0);
            row[at] = -1.0;
            for (terms, tokens) in self.terms.chunks_exact(dims).zip(self.tokens.chunks_exact(dims)) {
                let factor = f64::from(terms[at]);
                row.iter_mut().zip(tokens).for_each(|(sum, token)| *sum += factor * f64::from(*token));
            }
            gap += row.iter().map(|value| value * value).sum::<f64>();
        }
        Norms {
            terms: frobenius(&self.terms),
            tokens: frobenius(&self.tokens),
            offset: frobenius(&self.offset),
            gap: gap.sqrt(),
        }
    }
}

/// Norms of a basis: the Frobenius norms of both matrices, the norm of the offset, and `gap`, the Frobenius norm of `1 − termsᵀ · tokens`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Norms {
    pub(super) terms: f64,
    pub(super) tokens: f64,
    pub(super) offset: f64,
    pub(super) gap: f64,
}

#[cfg(test)]
mod tests {
    use super::Basis;

    #[test]
    fn what_does_not_fit_is_refused() {
        let unit = |at: usize| if at.is_multiple_of(33) { 1.0 } else { 0.0 };
        let one: Vec<f32> = (0..32 * 32).map(unit).collect();
        let basis =
            Basis::new(one.clone(), one.clone(), vec![0.0; 32], &[0.0, 9.0, 99.0, f32::NAN, -1.0]).unwrap();
        assert_eq!(basis.looks, [8, 16, 32, 8, 8]);
        assert_eq!(basis.norms().gap, 0.0);
        assert!(Basis::new(one.clone(), vec![1.0; 32], vec![0.0; 32], &[]).is_err());
        assert!(Basis::new(one.clone(), one.clone(), vec![0.0; 31], &[]).is_err());
        assert!(Basis::new(one.clone(), one, vec![f32::NAN; 32], &[]).is_err());
        assert!(Basis::new(vec![], vec![], vec![], &[]).is_err());
        assert!(Basis::new(vec![1.0; 16], vec![1.0; 16], vec![0.0; 4], &[]).is_err());
    }
}
