//! In-memory vectors of one graph, in the form in which they are compared during its construction, and stored
//! as its codes for floats that have none.

use std::ops::Deref;

use crate::builder::decode;
use crate::element::{Element, Metric};
use crate::kernels::Rows;
use crate::quantise::Int8;
use crate::reader::VectorsReader;
use crate::rough::{BATCH, Factor, Rough};

/// Vectors with one byte per component, or per eight bits.
pub(super) struct Packed {
    metric: Metric,
    width: usize,
    pub(super) rows: Vec<u8>,
    pub(super) scales: Vec<f32>,
    int8: Int8,
    factors: Vec<Factor>,
}

impl Packed {
    pub(super) fn new(metric: Metric, count: usize, int8: Int8) -> Self {
        let width = metric.element.components(metric.dims);
        Self {
            metric,
            width,
            rows: Vec::with_capacity(count * width),
            scales: Vec::new(),
            int8,
            factors: Vec::with_capacity(count),
        }
    }

    pub(super) fn push<B: Deref<Target = [u8]>>(
        &mut self,
        reader: &VectorsReader<B>,
        ord: usize,
        floats: &mut Vec<f32>,
    ) {
        match self.metric.element {
            Element::Float => {
                let scale = if reader.has_codes_for(self.int8) {
                    self.rows.extend_from_slice(reader.codes(ord));
                    reader.scale(ord)
                } else {
                    floats.clear();
                    decode(Element::Float, reader.row(ord), floats);
                    self.int8.encode(floats, &mut self.rows)
                };
                self.scales.push(scale);
                self.factors.push(Factor::of_codes(
                    self.metric.similarity,
                    scale,
                    reader.inverse_length(ord),
                ));
            }
            Element::Byte => {
                self.rows.extend_from_slice(reader.row(ord));
                self.factors.push(Factor::of_bytes(self.metric.similarity, reader.squared_length(ord)));
            }
            Element::Bit => {
                self.rows.extend_from_slice(reader.row(ord));
                self.factors.push(Factor::default());
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.factors.len()
    }

    /// What comparisons see of a vector; equal for vectors that are as near to any other. Factors are compared
    /// without their last bits, by which a model's vectors of the same text may differ.
    pub(super) fn seen(&self, vector: u32) -> (&[u8], [u32; 2]) {
        (Rows::new(&self.rows, self.width).row(vector), self.factors[vector as usize].rounded())
    }

    /// Nearness of one vector to others, given by number.
    pub(super) fn near(&self, one: u32, others: &[u32], out: &mut [f32]) {
        let rows = Rows::new(&self.rows, self.width);
        let rough = Rough::new(self.metric, rows.row(one), self.factors[one as usize]);
        for (others, out) in others.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            rough.near(rows, others, |number| self.factors[number as usize], out);
        }
    }
}
