//! The kinds of codes, and how floats become codes of 8 bits. Each vector has its own scale for these, so that they do not
//! depend on other vectors and merges copy them.

/// Bytes of a vector's factors, which follow its codes.
pub(crate) const FACTORS: usize = 8;
/// Codes that float vectors have beside their floats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Codes {
    /// Eight bits for each component.
    Int8(Int8),
    /// Four bits or one for each component's difference to the mean of a segment's vectors.
    Short(Short),
}

impl Codes {
    /// Eight bits for each component, none of which is clipped.
    pub const INT8: Self = Self::Int8(Int8 { confidence_interval: 1.0 });

    /// How codes of eight bits are computed, if these have as many.
    pub(crate) fn int8(self) -> Option<Int8> {
        match self {
            Self::Int8(int8) => Some(int8),
            Self::Short(_) => None,
        }
    }
}

/// How many bits a component's code has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Short {
    /// Four bits, two components to a byte.
    Int4,
    /// One bit, eight components to a byte.
    Bit,
}

impl Short {
    /// Bytes of the codes of a vector.
    pub(crate) fn code_bytes(self, dims: usize) -> usize {
        match self {
            Self::Int4 => dims.div_ceil(2),
            Self::Bit => dims.div_ceil(8),
        }
    }

    /// Bytes of the codes of a vector and its factors.
    pub(crate) fn row_bytes(self, dims: usize) -> usize {
        self.code_bytes(dims) + FACTORS
    }

    /// The largest code.
    pub(crate) fn top(self) -> f32 {
        match self {
            Self::Int4 => 15.0,
            Self::Bit => 1.0,
        }
    }
}

/// Parameters of 8-bit quantisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Int8 {
    /// Share of a vector's components, by magnitude, that are represented without clipping: above 0 up to 1. With 1
    /// the largest component gets the code ±127.
    pub confidence_interval: f32,
}

impl Default for Int8 {
    fn default() -> Self {
        Self { confidence_interval: 1.0 }
    }
}

impl Int8 {
    /// Whether all components are represented without clipping.
    pub(crate) fn is_whole(self) -> bool {
        self.confidence_interval >= 1.0
    }

    /// Appends the codes of a vector to `codes`; returns the scale by which codes must be multiplied.
    pub(crate) fn encode(self, vector: &[f32], codes: &mut Vec<u8>) -> f32 {
        let limit = self.limit(vector);
        if limit == 0.0 {
            codes.resize(codes.len() + vector.len(), 0);
            return 0.0;
        }
        codes.extend(
            // Divided first: the inverse of a very small limit would be infinite.
            vector
                .iter()
                .map(|component| (component / limit * 127.0).round().clamp(-127.0, 127.0) as i8 as u8),
        );
        limit / 127.0
    }

    /// Magnitude that maps to code ±127; larger components are clipped.
    fn limit(self, vector: &[f32]) -> f32 {
        let largest = vector.iter().fold(0.0_f32, |limit, component| limit.max(component.abs()));
        if self.is_whole() || vector.is_empty() {
            return largest;
        }
        let mut magnitudes: Vec<f32> = vector.iter().map(|component| component.abs()).collect();
        let kept = (vector.len() as f32 * self.confidence_interval).ceil() as usize;
        let (_, limit, _) =
            magnitudes.select_nth_unstable_by(kept.clamp(1, vector.len()) - 1, |a, b| a.total_cmp(b));
        if *limit > 0.0 { *limit } else { largest }
    }
}

#[cfg(test)]
mod tests {
    use super::Int8;

    #[test]
    fn codes_stand_for_the_components() {
        let vector = [0.5, -1.0, 0.25, 0.0];
        let mut codes = Vec::new();
        let scale = Int8::default().encode(&vector, &mut codes);
        for (component, code) in vector.iter().zip(&codes) {
            assert!((component - f32::from(*code as i8) * scale).abs() <= scale / 2.0);
        }
        assert_eq!(codes[1] as i8, -127);
    }

    #[test]
    fn outliers_can_be_clipped_and_zero_stays_zero() {
        let mut codes = Vec::new();
        let vector = [1.0, -2.0, 1.5, 1000.0];
        let scale = Int8 { confidence_interval: 0.75 }.encode(&vector, &mut codes);
        assert_eq!((codes[3] as i8, codes[1] as i8), (127, -127));
        assert!((scale - 2.0 / 127.0).abs() < 1e-6);
        codes.clear();
        assert_eq!(Int8::default().encode(&[0.0, 0.0], &mut codes), 0.0);
        assert_eq!(codes, [0, 0]);
        codes.clear();
        Int8::default().encode(&[1e-44, -1e-44], &mut codes);
        assert_eq!(codes.len(), 2);
    }
}
