//! Nearness from integer arithmetic: on codes that approximate floats, on byte vectors, and on bit vectors.

use crate::element::{Element, Metric};
use crate::kernels::{self, Rows};
use crate::similarity::Similarity;

/// Most vectors that are compared per call.
pub(crate) const BATCH: usize = 64;

/// One vector's factor for products of bytes, and for distances its squared length.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Factor {
    of_product: f32,
    squared_length: f32,
}

impl Factor {
    /// Factor of a float vector whose codes have this scale.
    pub(crate) fn of_codes(similarity: Similarity, scale: f32, inverse_length: f32) -> Self {
        match similarity {
            Similarity::Cosine => Self { of_product: scale * inverse_length, squared_length: 0.0 },
            Similarity::L2Norm => {
                let squared_length = if inverse_length > 0.0 { (1.0 / inverse_length).powi(2) } else { 0.0 };
                Self { of_product: scale, squared_length }
            }
            Similarity::DotProduct | Similarity::MaxInnerProduct => {
                Self { of_product: scale, squared_length: 0.0 }
            }
        }
    }

    /// Bits of both numbers without the lower half of their digits.
    pub(crate) fn rounded(self) -> [u32; 2] {
        [self.of_product, self.squared_length].map(|number| number.to_bits() >> 12)
    }

    /// Factor of a byte vector.
    pub(crate) fn of_bytes(similarity: Similarity, squared_length: u32) -> Self {
        let squared_length = squared_length as f32;
        let of_product = match similarity {
            Similarity::Cosine if squared_length > 0.0 => 1.0 / squared_length.sqrt(),
            Similarity::Cosine => 0.0,
            _ => 1.0,
        };
        Self { of_product, squared_length }
    }
}

/// A vector in byte form that is compared with many others.
pub(crate) struct Rough<'a> {
    metric: Metric,
    bytes: &'a [u8],
    factor: Factor,
}

impl<'a> Rough<'a> {
    pub(crate) fn new(metric: Metric, bytes: &'a [u8], factor: Factor) -> Self {
        Self { metric, bytes, factor }
    }

    /// Nearness of at most [`BATCH`] rows, given by number.
    pub(crate) fn near(
        &self,
        rows: Rows<'_>,
        numbers: &[u32],
        factor_of: impl Fn(u32) -> Factor,
        out: &mut [f32],
    ) {
        let mut raw = [0; BATCH];
        if self.metric.element == Element::Bit {
            kernels::hammings(self.bytes, rows, numbers, &mut raw);
            raw.iter().zip(out).take(numbers.len()).for_each(|(raw, out)| *out = -(*raw as f32));
            return;
        }
        // Read first: they come from elsewhere, and arrive while the rows are compared.
        let mut factors = [Factor::default(); BATCH];
        numbers.iter().zip(&mut factors).for_each(|(number, factor)| *factor = factor_of(*number));
        kernels::dots_i8(self.bytes, rows, numbers, &mut raw);
        let products = raw.iter().zip(factors).take(numbers.len()).zip(out);
        if self.metric.similarity == Similarity::L2Norm {
            for ((raw, factor), out) in products {
                let product = *raw as f32 * self.factor.of_product * factor.of_product;
                // Twice the product may be too large where the distance is not.
                *out = (product - self.factor.squared_length) + (product - factor.squared_length);
            }
        } else {
            for ((raw, factor), out) in products {
                *out = *raw as f32 * self.factor.of_product * factor.of_product;
            }
        }
    }
}
