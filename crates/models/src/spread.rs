//! How far apart a dense model's vectors lie. The cosines of some models differ by tenths, those of others by hundredths; where they are
//! added to other scores, they are scaled so that they say as much.

use sparrow_encoder::{Deployment, EncoderError, ModelKind, Output};

/// Number of nearest others of a text whose cosines count.
const NEIGHBOURS: usize = 10;
/// The spread and the calibration's slope of the embedded dense model, with which scores are compared.
const EMBEDDED: f32 = 0.0462;
const EMBEDDED_SLOPE: f32 = 10.964;
/// The factors that there may be: a model all of whose vectors are equal would have an endless one.
const FACTORS: (f32, f32) = (0.25, 16.0);

/// The factor for cosines of a model with this spread, so that they say as much as those of the embedded one.
pub(super) fn factor(spread: f32) -> f32 {
    (EMBEDDED / spread).clamp(FACTORS.0, FACTORS.1)
}

/// As [`factor`], for a model with a calibration of this slope.
pub(super) fn factor_of_slope(slope: f32) -> f32 {
    (slope / EMBEDDED_SLOPE).clamp(FACTORS.0, FACTORS.1)
}

/// The spread of a dense model: for each of some texts, the standard deviation of the cosines to those most similar to it, in the mean.
/// `None` for models of other kinds.
///
/// # Errors
/// When the model fails.
pub(super) fn measure(deployment: &Deployment, texts: &[&str]) -> Result<Option<f32>, EncoderError> {
    if !matches!(deployment.model().info().kind, ModelKind::Dense { .. }) {
        return Ok(None);
    }
    let encoded = deployment.encode_paced(texts, None)?;
    let vectors: Vec<&[f32]> = encoded
        .iter()
        .filter_map(|text| match &text.output {
            Output::Dense(vector) => Some(&**vector),
            Output::Sparse(_) | Output::Hybrid { .. } => None,
        })
        .collect();
    Ok(of_vectors(&vectors))
}

fn of_vectors(vectors: &[&[f32]]) -> Option<f32> {
    let dot = |one: &[f32], other: &[f32]| -> f32 { one.iter().zip(other).map(|(a, b)| a * b).sum() };
    let lengths: Vec<f32> = vectors.iter().map(|vector| dot(vector, vector).sqrt()).collect();
    let deviations = vectors.iter().enumerate().map(|(at, vector)| {
        let others = vectors.iter().enumerate().filter(|(other, _)| *other != at);
        let mut cosines: Vec<f32> =
            others.map(|(other, of)| dot(vector, of) / (lengths[at] * lengths[other])).collect();
        cosines.sort_by(|a, b| b.total_cmp(a));
        cosines.truncate(NEIGHBOURS);
        let count = cosines.len().max(1) as f32;
        let mean = cosines.iter().sum::<f32>() / count;
        (cosines.iter().map(|cosine| (cosine - mean).powi(2)).sum::<f32>() / count).sqrt()
    });
    let spread = deviations.sum::<f32>() / vectors.len().max(1) as f32;
    (spread.is_finite() && spread > 0.0).then_some(spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adding the same number to every component moves all vectors to one side: their cosines come closer together.
    #[test]
    fn vectors_that_lie_close_together_spread_less() {
        let number = |seed: usize| ((seed * 2_654_435_761) % 1000) as f32 / 1000.0 - 0.5;
        let apart: Vec<Vec<f32>> =
            (0..40).map(|row| (0..16).map(|at| number(row * 16 + at + 1)).collect()).collect();
        let close: Vec<Vec<f32>> =
            apart.iter().map(|row| row.iter().map(|value| value + 1.0).collect()).collect();
        let spread = |rows: &[Vec<f32>]| of_vectors(&rows.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let (far, near) = (spread(&apart).unwrap(), spread(&close).unwrap());
        assert!(far > 2.0 * near, "{far} {near}");
        assert!(factor(near) > factor(far));
        assert_eq!(spread(&vec![vec![1.0; 4]; 20]), None);
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn the_embedded_model_is_the_measure() {
        assert!(
            (factor(EMBEDDED) - 1.0).abs() < 1e-6 && (factor_of_slope(EMBEDDED_SLOPE) - 1.0).abs() < 1e-6
        );
    }
}
