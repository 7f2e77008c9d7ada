//! Element types of stored vectors, and the scores of comparisons.

use crate::similarity::Similarity;

/// Element type of a field's vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Element {
    /// 32-bit floats.
    #[default]
    Float,
    /// Whole numbers from −128 to 127.
    Byte,
    /// Bits, eight to a component from −128 to 127, compared by their Hamming distance.
    Bit,
}

impl Element {
    /// Number of components of a vector with `dims` dimensions.
    pub fn components(self, dims: usize) -> usize {
        match self {
            Self::Float | Self::Byte => dims,
            Self::Bit => dims.div_ceil(8),
        }
    }

    /// Size in bytes of a stored vector with `dims` dimensions.
    pub(crate) fn row_bytes(self, dims: usize) -> usize {
        match self {
            Self::Float => dims * 4,
            Self::Byte => dims,
            Self::Bit => dims.div_ceil(8),
        }
    }

    /// Whether the element type can represent `component`.
    pub fn holds(self, component: f32) -> bool {
        match self {
            Self::Float => component.is_finite(),
            Self::Byte | Self::Bit => component.fract() == 0.0 && (-128.0..=127.0).contains(&component),
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Float => 0,
            Self::Byte => 1,
            Self::Bit => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        [Self::Float, Self::Byte, Self::Bit].into_iter().find(|element| element.code() == code)
    }
}

/// Element type, similarity and dimensions of a field's vectors. Scores follow Elasticsearch 8: positive,
/// larger is nearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Metric {
    /// Element type of the components.
    pub element: Element,
    /// Similarity function; only [`Similarity::L2Norm`] is possible with [`Element::Bit`].
    pub similarity: Similarity,
    /// Number of dimensions; for [`Element::Bit`], number of bits.
    pub dims: usize,
}

impl Metric {
    /// Score for the raw result of a comparison: a cosine, a dot product, a *squared* distance, or the number
    /// of differing bits.
    pub fn score(self, raw: f32) -> f32 {
        match (self.element, self.similarity) {
            (Element::Bit, _) => (self.dims as f32 - raw) / self.dims as f32,
            // Bytes have no unit length: the largest possible product stands for one half.
            (Element::Byte, Similarity::DotProduct) => 0.5 + raw / (self.dims as f32 * 32_768.0),
            (_, similarity) => similarity.score(raw),
        }
    }

    /// Score equivalent to a user's `similarity` threshold: a cosine, a dot product, a distance (not
    /// squared), or a number of differing bits.
    pub fn threshold_score(self, threshold: f32) -> f32 {
        match (self.element, self.similarity) {
            (Element::Bit, _) => self.score(threshold),
            (_, Similarity::L2Norm) => self.score(threshold * threshold),
            _ => self.score(threshold),
        }
    }

    /// Nearness for the raw result of a comparison: negated where smaller is nearer, so that larger is always
    /// nearer.
    pub(crate) fn nearness(self, raw: f32) -> f32 {
        if self.element == Element::Bit || self.similarity == Similarity::L2Norm { -raw } else { raw }
    }

    /// Score for a nearness.
    pub(crate) fn score_of_nearness(self, nearness: f32) -> f32 {
        self.score(self.nearness(nearness))
    }

    /// Score that no vector exceeds whose nearness is at most this one, which may be larger than any vector has.
    pub(crate) fn highest_score(self, nearness: f32) -> f32 {
        let raw = self.nearness(nearness);
        // A distance is never negative.
        self.score(if self.nearness(1.0) < 0.0 { raw.max(0.0) } else { raw })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_bytes_and_bits_are_elasticsearchs() {
        let byte = |similarity| Metric { element: Element::Byte, similarity, dims: 4 };
        assert_eq!(byte(Similarity::DotProduct).score(16_384.0), 0.625);
        assert_eq!(byte(Similarity::Cosine).score(0.5), 0.75);
        assert_eq!(byte(Similarity::L2Norm).threshold_score(2.0), 0.2);
        assert_eq!(byte(Similarity::MaxInnerProduct).score(3.0), 4.0);
        let bit = Metric { element: Element::Bit, similarity: Similarity::L2Norm, dims: 40 };
        assert_eq!(bit.score(10.0), 0.75);
        assert_eq!(bit.threshold_score(10.0), 0.75);
    }

    #[test]
    fn components_are_checked() {
        assert!(Element::Byte.holds(-128.0) && !Element::Byte.holds(128.0) && !Element::Byte.holds(0.5));
        assert!(!Element::Float.holds(f32::NAN) && Element::Float.holds(1e30));
        assert_eq!((Element::Bit.components(40), Element::Bit.row_bytes(40)), (5, 5));
    }
}
