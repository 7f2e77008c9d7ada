//! Similarity functions of float vectors, and their scores.

/// Similarity function of a field's vectors; [`crate::Metric`] adds element type and dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Similarity {
    /// `(1 + cos(q, v)) / 2`
    Cosine,
    /// `(1 + q·v) / 2`, for vectors of length one
    DotProduct,
    /// `1 / (1 + |q − v|²)`
    L2Norm,
    /// `x + 1` for `x = q·v ≥ 0`, else `1 / (1 − x)`; products that are too large for a float score as the
    /// largest float
    MaxInnerProduct,
}

impl Similarity {
    /// Score of a raw comparison of floats: cosine, dot product, or the *squared* distance for [`Similarity::L2Norm`].
    pub(crate) fn score(self, raw: f32) -> f32 {
        match self {
            // Rounding can push a cosine past ±1.
            Self::Cosine => ((1.0 + raw) / 2.0).clamp(0.0, 1.0),
            Self::DotProduct => ((1.0 + raw) / 2.0).max(0.0),
            Self::L2Norm => 1.0 / (1.0 + raw),
            Self::MaxInnerProduct if raw < 0.0 => 1.0 / (1.0 - raw),
            Self::MaxInnerProduct => (raw + 1.0).min(f32::MAX),
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Cosine => 0,
            Self::DotProduct => 1,
            Self::L2Norm => 2,
            Self::MaxInnerProduct => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Cosine, Self::DotProduct, Self::L2Norm, Self::MaxInnerProduct]
            .into_iter()
            .find(|similarity| similarity.code() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::Similarity;

    #[test]
    fn scores_are_elasticsearchs() {
        let cases = [
            (Similarity::Cosine, 0.5, 0.75),
            (Similarity::Cosine, 1.000_001, 1.0),
            (Similarity::DotProduct, -1.0, 0.0),
            (Similarity::L2Norm, 4.0, 0.2),
            (Similarity::MaxInnerProduct, -1.0, 0.5),
            (Similarity::MaxInnerProduct, 3.0, 4.0),
            (Similarity::MaxInnerProduct, f32::INFINITY, f32::MAX),
            (Similarity::MaxInnerProduct, f32::NEG_INFINITY, 0.0),
        ];
        for (similarity, raw, score) in cases {
            assert_eq!(similarity.score(raw), score, "{similarity:?} {raw}");
        }
    }
}
