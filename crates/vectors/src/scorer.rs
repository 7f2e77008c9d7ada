//! Comparing one query with stored vectors, and stored vectors with each other.

use std::ops::Deref;

use crate::builder::{encode, inverse_length};
use crate::element::{Element, Metric};
use crate::kernels;
use crate::quantise::Int8;
use crate::reader::VectorsReader;
use crate::similarity::Similarity;

/// One side of a comparison.
#[derive(Clone, Copy)]
enum Side<'a> {
    Float {
        row: &'a [u8],
        inverse_length: f32,
    },
    Byte {
        row: &'a [u8],
        squared_length: u32,
    },
    Bit {
        row: &'a [u8],
    },
    /// Floats by their codes.
    Codes {
        codes: &'a [u8],
        scale: f32,
        inverse_length: f32,
    },
}

/// A query made ready for one segment.
pub(crate) struct Query<'a> {
    metric: Metric,
    floats: &'a [f32],
    inverse_length: f32,
    /// Bytes or bits as they are stored; codes of floats, if they were asked for.
    bytes: Vec<u8>,
    squared_length: u32,
    scale: f32,
}

impl<'a> Query<'a> {
    /// A query that fits `metric`. `codes` makes [`Query::rough`] possible for floats.
    pub(crate) fn new(metric: Metric, query: &'a [f32], codes: bool) -> Self {
        let squared = query.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
        let mut bytes = Vec::new();
        let mut scale = 0.0;
        if metric.element != Element::Float {
            encode(metric.element, query, &mut bytes);
        } else if codes {
            scale = Int8::default().encode(query, &mut bytes);
        }
        Self {
            metric,
            floats: query,
            inverse_length: inverse_length(squared),
            bytes,
            squared_length: squared as u32,
            scale,
        }
    }

    /// Exact nearness of a stored vector.
    pub(crate) fn exact<B: Deref<Target = [u8]>>(&self, reader: &VectorsReader<B>, ord: usize) -> f32 {
        let row = reader.row(ord);
        let raw = match (self.metric.element, self.metric.similarity) {
            (Element::Float, Similarity::Cosine) => {
                kernels::dot(self.floats, row) * self.inverse_length * reader.inverse_length(ord)
            }
            (Element::Float, Similarity::L2Norm) => kernels::squared_distance(self.floats, row),
            (Element::Float, _) => kernels::dot(self.floats, row),
            (Element::Byte, _) => {
                let side = Side::Byte { row, squared_length: reader.squared_length(ord) };
                raw(
                    self.metric.similarity,
                    Side::Byte { row: &self.bytes, squared_length: self.squared_length },
                    side,
                )
            }
            (Element::Bit, _) => {
                raw(self.metric.similarity, Side::Bit { row: &self.bytes }, Side::Bit { row })
            }
        };
        self.metric.nearness(raw)
    }

    /// Nearness by codes; only when query and reader have them.
    pub(crate) fn rough<B: Deref<Target = [u8]>>(&self, reader: &VectorsReader<B>, ord: usize) -> f32 {
        let own = Side::Codes { codes: &self.bytes, scale: self.scale, inverse_length: self.inverse_length };
        self.metric.nearness(raw(self.metric.similarity, own, codes_of(reader, ord)))
    }
}

fn codes_of<B: Deref<Target = [u8]>>(reader: &VectorsReader<B>, ord: usize) -> Side<'_> {
    Side::Codes {
        codes: reader.codes(ord),
        scale: reader.scale(ord),
        inverse_length: reader.inverse_length(ord),
    }
}

fn side<B: Deref<Target = [u8]>>(
    metric: Metric,
    reader: &VectorsReader<B>,
    ord: usize,
    codes: bool,
) -> Side<'_> {
    match metric.element {
        Element::Byte => Side::Byte { row: reader.row(ord), squared_length: reader.squared_length(ord) },
        Element::Bit => Side::Bit { row: reader.row(ord) },
        Element::Float if codes => codes_of(reader, ord),
        Element::Float => Side::Float { row: reader.row(ord), inverse_length: reader.inverse_length(ord) },
    }
}

/// Distance of two stored vectors, smaller is nearer; by codes if both have them.
pub(crate) fn distance<B: Deref<Target = [u8]>>(
    metric: Metric,
    (a, a_ord): (&VectorsReader<B>, usize),
    (b, b_ord): (&VectorsReader<B>, usize),
) -> f32 {
    let codes = a.has_codes() && b.has_codes();
    let (a, b) = (side(metric, a, a_ord, codes), side(metric, b, b_ord, codes));
    let nearness = metric.nearness(raw(metric.similarity, a, b));
    if metric.similarity == Similarity::Cosine { 1.0 - nearness } else { -nearness }
}

/// A cosine, a dot product, a squared distance or a number of bits.
fn raw(similarity: Similarity, a: Side<'_>, b: Side<'_>) -> f32 {
    match (a, b) {
        (Side::Bit { row: a }, Side::Bit { row: b }) => kernels::hamming(a, b) as f32,
        (Side::Byte { row: a, squared_length: a2 }, Side::Byte { row: b, squared_length: b2 }) => {
            let dot = kernels::dot_i8(a, b);
            match similarity {
                Similarity::Cosine if a2 == 0 || b2 == 0 => 0.0,
                Similarity::Cosine => (f64::from(dot) / (f64::from(a2) * f64::from(b2)).sqrt()) as f32,
                // Whole numbers, so the difference is exact.
                Similarity::L2Norm => (i64::from(a2) + i64::from(b2) - 2 * i64::from(dot)) as f32,
                Similarity::DotProduct | Similarity::MaxInnerProduct => dot as f32,
            }
        }
        (
            Side::Codes { codes: a, scale: a_scale, inverse_length: a_inverse },
            Side::Codes { codes: b, scale: b_scale, inverse_length: b_inverse },
        ) => {
            let dot = kernels::dot_i8(a, b) as f32 * a_scale * b_scale;
            let squared = |inverse: f32| if inverse > 0.0 { (1.0 / inverse).powi(2) } else { 0.0 };
            match similarity {
                Similarity::Cosine => dot * a_inverse * b_inverse,
                Similarity::L2Norm => squared(a_inverse) + squared(b_inverse) - 2.0 * dot,
                Similarity::DotProduct | Similarity::MaxInnerProduct => dot,
            }
        }
        (
            Side::Float { row: a, inverse_length: a_inverse },
            Side::Float { row: b, inverse_length: b_inverse },
        ) => match similarity {
            Similarity::Cosine => kernels::dot_rows(a, b) * a_inverse * b_inverse,
            Similarity::L2Norm => kernels::squared_distance_rows(a, b),
            Similarity::DotProduct | Similarity::MaxInnerProduct => kernels::dot_rows(a, b),
        },
        // Both sides are always of one kind.
        _ => 0.0,
    }
}
