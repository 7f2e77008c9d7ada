//! Compares one query with stored vectors.

use std::ops::Deref;

use crate::builder::{encode, inverse_length};
use crate::code_error::CodeError;
use crate::element::{Element, Metric};
use crate::graph::Compared;
use crate::kernels::{self, ReadOrder, Rows};
use crate::quantise::Int8;
use crate::reader::VectorsReader;
use crate::rough::{BATCH, Factor, Rough};
use crate::short::ShortQuery;
use crate::similarity::Similarity;

/// A query prepared for comparisons with the vectors of one segment.
pub(crate) struct Query<'a> {
    metric: Metric,
    floats: &'a [f32],
    inverse_length: f32,
    /// Byte or bit components as they are stored; codes of a float query, if they were requested.
    bytes: Vec<u8>,
    squared_length: u32,
    scale: f32,
    /// A float query in the form that is compared with the codes of fewer than 8 bits that the vectors have.
    short: Option<ShortQuery>,
}

impl<'a> Query<'a> {
    /// Prepares a query that fits `metric`. `codes` also quantises a float query, which [`Query::rough`]
    /// needs.
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
            short: None,
        }
    }

    /// Prepares a query for comparisons with the codes of a segment's vectors, whichever they are.
    pub(crate) fn of_codes<B: Deref<Target = [u8]>>(reader: &VectorsReader<B>, query: &'a [f32]) -> Self {
        let mut prepared = Self::new(reader.metric(), query, reader.short_codes().is_none());
        prepared.short = reader.short_query(query, prepared.inverse_length);
        prepared
    }

    /// Exact nearness of a stored vector.
    pub(crate) fn exact<B: Deref<Target = [u8]>>(&self, reader: &VectorsReader<B>, ord: usize) -> f32 {
        let mut near = [0.0];
        self.exact_many(reader, ReadOrder::Scattered, &[ord as u32], &mut near);
        near[0]
    }

    /// Exact nearness of at most [`BATCH`] stored vectors.
    pub(crate) fn exact_many<B: Deref<Target = [u8]>>(
        &self,
        reader: &VectorsReader<B>,
        order: ReadOrder,
        ords: &[u32],
        out: &mut [f32],
    ) {
        let rows = reader.rows().read(order);
        let similarity = self.metric.similarity;
        if self.metric.element == Element::Float {
            match similarity {
                Similarity::Cosine => {
                    kernels::dots(self.floats, rows, ords, out);
                    for (ord, out) in ords.iter().zip(out) {
                        let lengths = [self.inverse_length, reader.inverse_length(*ord as usize)];
                        // Too large or too small a product is computed again; 1 / length has an end too.
                        *out = if out.is_normal() {
                            *out * lengths[0] * lengths[1]
                        } else {
                            let times = |dot: f64, length: &f32| dot * f64::from(length.min(f32::MAX));
                            lengths.iter().fold(self.dot_f64(rows.row(*ord)), times) as f32
                        };
                    }
                }
                Similarity::L2Norm => {
                    kernels::squared_distances(self.floats, rows, ords, out);
                    out.iter_mut().take(ords.len()).for_each(|out| *out = -*out);
                }
                Similarity::DotProduct => kernels::dots(self.floats, rows, ords, out),
                Similarity::MaxInnerProduct => {
                    kernels::dots(self.floats, rows, ords, out);
                    self.without_overflow(rows, ords, out);
                }
            }
            return;
        }
        let mut raw = [0; BATCH];
        if self.metric.element == Element::Bit {
            kernels::hammings(&self.bytes, rows, ords, &mut raw);
            raw.iter().zip(out).take(ords.len()).for_each(|(bits, out)| *out = -(*bits as f32));
            return;
        }
        kernels::dots_i8(&self.bytes, rows, ords, &mut raw);
        for ((dot, ord), out) in raw.iter().zip(ords).zip(out) {
            let (a2, b2) = (self.squared_length, reader.squared_length(*ord as usize));
            *out = match similarity {
                Similarity::Cosine if a2 == 0 || b2 == 0 => 0.0,
                Similarity::Cosine => (f64::from(*dot) / (f64::from(a2) * f64::from(b2)).sqrt()) as f32,
                // Whole numbers, so the difference is exact.
                Similarity::L2Norm => -((i64::from(a2) + i64::from(b2) - 2 * i64::from(*dot)) as f32),
                Similarity::DotProduct | Similarity::MaxInnerProduct => *dot as f32,
            };
        }
    }

    /// Computes those products again that were too large for a float, or became differences of such.
    fn without_overflow(&self, rows: Rows<'_>, ords: &[u32], out: &mut [f32]) {
        for (ord, out) in ords.iter().zip(out).filter(|(_, out)| !out.is_finite()) {
            *out = self.dot_f64(rows.row(*ord)) as f32;
        }
    }

    /// Product of a float query with a stored row, in double precision.
    fn dot_f64(&self, row: &[u8]) -> f64 {
        let components = row.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        self.floats.iter().zip(components).map(|(q, v)| f64::from(*q) * f64::from(v)).sum()
    }

    /// How far nearness by codes may be from exact nearness; only of a float query with codes.
    pub(crate) fn code_error(&self) -> CodeError {
        CodeError::new(self.metric.similarity, self.floats, self.inverse_length, &self.bytes, self.scale)
    }

    /// The query in byte form, for approximate comparisons with many vectors.
    pub(crate) fn rough(&self) -> Rough<'_> {
        let factor = match self.metric.element {
            Element::Float => Factor::of_codes(self.metric.similarity, self.scale, self.inverse_length),
            Element::Byte => Factor::of_bytes(self.metric.similarity, self.squared_length),
            Element::Bit => Factor::default(),
        };
        Rough::new(self.metric, &self.bytes, factor)
    }

    /// Nearness of vectors of a graph: by the graph's codes, else by the reader's, else exactly.
    pub(crate) fn on_walk<B: Deref<Target = [u8]>>(
        &self,
        reader: &VectorsReader<B>,
        compared: &Compared<'_>,
        vectors: &[u32],
        out: &mut [f32],
    ) {
        let first = compared.first;
        let similarity = self.metric.similarity;
        for (vectors, out) in vectors.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            if let Some(codes) = compared.codes {
                let factor = |vector: u32| {
                    let inverse_length = reader.inverse_length(first + vector as usize);
                    Factor::of_codes(similarity, codes.scale(vector), inverse_length)
                };
                self.rough().near(codes.rows, vectors, factor, out);
                continue;
            }
            let mut ords = [0; BATCH];
            ords.iter_mut().zip(vectors).for_each(|(ord, vector)| *ord = first as u32 + vector);
            if reader.has_codes() {
                self.by_codes(reader, ReadOrder::Scattered, &ords[..vectors.len()], out);
            } else {
                self.exact_many(reader, ReadOrder::Scattered, &ords[..vectors.len()], out);
            }
        }
    }

    /// Nearness of at most [`BATCH`] vectors, given by number, by the reader's codes.
    pub(crate) fn by_codes<B: Deref<Target = [u8]>>(
        &self,
        reader: &VectorsReader<B>,
        order: ReadOrder,
        ords: &[u32],
        out: &mut [f32],
    ) {
        if let Some(short) = &self.short {
            short.near(reader.code_rows().read(order), ords, out);
            return;
        }
        let factor = |ord: u32| {
            let ord = ord as usize;
            Factor::of_codes(self.metric.similarity, reader.scale(ord), reader.inverse_length(ord))
        };
        self.rough().near(reader.code_rows().read(order), ords, factor, out);
    }
}
