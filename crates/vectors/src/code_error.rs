//! How far nearness by 8-bit codes may be from exact nearness.
//!
//! A component of a vector v and s times its code differ by at most s / 2, so for a query q with codes c of scale t
//!
//! ```text
//! q · v − t c · s codes(v) = (q − t c) · v + t c · (v − s codes(v))
//! |q · v − t c · s codes(v)| ≤ |q − t c| |v| + t |c|₁ s / 2
//! ```
//!
//! The roundings of floats come on top: those of a sum of `dims` products, with which nearness is computed exactly, are
//! the largest of them. Products that are too large for a float are worked out again in double precision, except for the
//! similarity `dot_product`, which takes vectors of length one only.

use crate::similarity::Similarity;

/// Largest difference of a component and its code, in steps: half of one, and the roundings of floats.
const HALF_STEP: f64 = 0.501;
/// Roundings on the way to nearness besides those of the products' sum, counted generously.
const OTHER_ROUNDINGS: usize = 16;

/// What the error of nearness by codes depends on at the side of the query.
pub(crate) struct CodeError {
    similarity: Similarity,
    /// Length of the query.
    length: f64,
    /// Length of the difference of the query and its codes.
    residual: f64,
    /// Sum of the magnitudes of what the query's codes stand for.
    sum: f64,
    /// Relative error of a sum of as many products as there are dimensions.
    rounding: f64,
    /// Whether the numbers of the query have all digits that floats have.
    precise: bool,
}

impl CodeError {
    /// Of a query of this inverse length whose codes have this scale.
    pub(crate) fn new(
        similarity: Similarity,
        query: &[f32],
        inverse_length: f32,
        codes: &[u8],
        scale: f32,
    ) -> Self {
        let precise = scale.is_normal() && inverse_length.is_normal();
        let scale = f64::from(scale);
        let (mut squared, mut residual, mut sum) = (0.0, 0.0, 0.0);
        for (component, code) in query.iter().zip(codes) {
            let (component, coded) = (f64::from(*component), scale * f64::from(*code as i8));
            squared += component * component;
            residual += (component - coded).powi(2);
            sum += coded.abs();
        }
        Self {
            similarity,
            length: squared.sqrt(),
            residual: residual.sqrt(),
            sum,
            rounding: (query.len() + OTHER_ROUNDINGS) as f64 * f64::from(f32::EPSILON),
            precise,
        }
    }

    /// Largest difference of exact nearness, as it is computed, to nearness by codes of this scale, none of which is clipped.
    /// Not finite where none is known: numbers at the ends of floats' range have fewer digits.
    pub(crate) fn of(&self, scale: f32, inverse_length: f32) -> f64 {
        if !self.precise || !scale.is_normal() || !inverse_length.is_normal() {
            return f64::INFINITY;
        }
        let length = 1.0 / f64::from(inverse_length);
        let product = self.residual * length + self.sum * f64::from(scale) * HALF_STEP;
        match self.similarity {
            Similarity::Cosine => product / (self.length * length) + self.rounding,
            Similarity::DotProduct | Similarity::MaxInnerProduct => {
                product + self.rounding * self.length * length
            }
            Similarity::L2Norm => 2.0 * product + self.rounding * (self.length + length).powi(2),
        }
    }
}
