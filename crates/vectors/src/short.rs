//! Codes of one bit or four for each component of a float vector, and how near a query is by them.
//!
//! A vector v (for cosine, brought to length one) is the mean c of a segment's vectors and a rest r. Codes n of B bits stand
//! for y = 2 n − (2^B − 1), an odd number for each component: with one bit only its sign. The rest is taken for f y, where
//! f = |r|² / (r · y) makes its product with r itself right. Other directions have errors in no relation to r, so those of
//! many components cancel out (RaBitQ by Gao and Long). For a query q and its rest p = q − c then
//!
//! ```text
//! q · v  ≈  f (p · y) + c · r + c · q            cosine and products
//! −|q − v|²  ≈  2 f (p · y) − |r|² − |p|²        distances
//! ```
//!
//! of which the last term belongs to the query, and a vector has two factors beside its codes. The query's rest is rounded
//! too, to whole numbers of four bits where vectors have one, and of eight where they have four, so that p · y is a sum of whole
//! numbers. No error of this has a bound that would spare a comparison: all candidates are compared by their floats.

use crate::element::Metric;
use crate::format::f32_at;
use crate::kernels::{self, PLANES, Rows};
use crate::quantise::{FACTORS, Int8, Short};
use crate::rough::BATCH;
use crate::similarity::Similarity;

/// Largest magnitude of a query's components where they are rounded to four bits.
const LARGEST_OF_PLANES: f32 = 7.0;
/// Shares of the largest component that the largest code of four bits is tried for. The codes that point most nearly in the
/// direction of the rest are kept.
const REACHES: [f32; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// What a vector is multiplied by before it is compared: its length is of no importance to a cosine.
fn unit(similarity: Similarity, inverse_length: f32) -> f64 {
    if similarity == Similarity::Cosine { f64::from(inverse_length.min(f32::MAX)) } else { 1.0 }
}

/// The nearest float, where there is one: products of large numbers may be larger than all of them.
fn narrow(number: f64) -> f32 {
    number.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
}

/// Adds up vectors to their mean.
pub(crate) struct Centre {
    similarity: Similarity,
    sums: Vec<f64>,
    count: f64,
}

impl Centre {
    pub(crate) fn new(metric: Metric) -> Self {
        Self { similarity: metric.similarity, sums: vec![0.0; metric.dims], count: 0.0 }
    }

    /// Adds a stored vector of this inverse length.
    pub(crate) fn add(&mut self, row: &[u8], inverse_length: f32) {
        let unit = unit(self.similarity, inverse_length);
        for (sum, bytes) in self.sums.iter_mut().zip(row.as_chunks::<4>().0) {
            *sum += unit * f64::from(f32::from_le_bytes(*bytes));
        }
        self.count += 1.0;
    }

    pub(crate) fn mean(self) -> Vec<f32> {
        let count = self.count.max(1.0);
        self.sums.into_iter().map(|sum| narrow(sum / count)).collect()
    }
}

/// The difference of a vector to the mean, as shares of its largest component.
#[derive(Default)]
struct Rest {
    shares: Vec<f32>,
    largest: f64,
    squared: f64,
    /// Product of the mean with the difference.
    with_centre: f64,
}

impl Rest {
    fn set(&mut self, vector: impl Iterator<Item = f64> + Clone, centre: &[f32]) {
        let rest = || vector.clone().zip(centre).map(|(component, centre)| component - f64::from(*centre));
        (self.largest, self.squared, self.with_centre) = (0.0, 0.0, 0.0);
        for (rest, centre) in rest().zip(centre) {
            self.largest = self.largest.max(rest.abs());
            self.squared += rest * rest;
            self.with_centre += rest * f64::from(*centre);
        }
        let most = if self.largest > 0.0 { self.largest } else { 1.0 };
        self.shares.clear();
        self.shares.extend(rest().map(|rest| (rest / most) as f32));
    }
}

/// Computes the codes of the vectors of one segment.
pub(crate) struct Coder {
    short: Short,
    similarity: Similarity,
    centre: Vec<f32>,
    rest: Rest,
    codes: Vec<u8>,
    tried: Vec<u8>,
}

impl Coder {
    /// Of vectors with this mean.
    pub(crate) fn new(short: Short, metric: Metric, centre: Vec<f32>) -> Self {
        Self {
            short,
            similarity: metric.similarity,
            centre,
            rest: Rest::default(),
            codes: Vec::new(),
            tried: Vec::new(),
        }
    }

    /// The mean as it is stored.
    pub(crate) fn centre(&self) -> impl Iterator<Item = u8> {
        self.centre.iter().flat_map(|component| component.to_le_bytes())
    }

    /// Appends the codes and factors of a stored vector of this inverse length.
    pub(crate) fn encode(&mut self, row: &[u8], inverse_length: f32, out: &mut Vec<u8>) {
        let unit = unit(self.similarity, inverse_length);
        let vector = row.as_chunks::<4>().0.iter().map(|bytes| unit * f64::from(f32::from_le_bytes(*bytes)));
        self.rest.set(vector, &self.centre);
        let along = match self.short {
            Short::Bit => self.signs(),
            Short::Int4 => self.nearest(),
        };
        pack(self.short, &self.codes, out);
        let factor = if along > 0.0 { self.rest.squared / (self.rest.largest * along) } else { 0.0 };
        let (factor, added) = match self.similarity {
            Similarity::L2Norm => (2.0 * factor, -self.rest.squared),
            _ => (factor, self.rest.with_centre),
        };
        out.extend(narrow(factor).to_le_bytes());
        out.extend(narrow(added).to_le_bytes());
    }

    /// Codes of one bit; returns the product of the rest's shares with what they stand for.
    fn signs(&mut self) -> f64 {
        self.codes.clear();
        self.codes.extend(self.rest.shares.iter().map(|share| u8::from(*share >= 0.0)));
        self.rest.shares.iter().map(|share| f64::from(share.abs())).sum()
    }

    /// Codes of four bits; returns the product of the rest's shares with what they stand for.
    fn nearest(&mut self) -> f64 {
        let half = Short::Int4.top() / 2.0;
        let (mut best, mut best_along) = (f32::NEG_INFINITY, 0.0);
        self.codes.clear();
        self.codes.resize(self.rest.shares.len(), 0);
        for reach in REACHES {
            let step = half / reach;
            self.tried.clear();
            // Rounded by cutting off: what is below 0 becomes 0 in any case.
            let code = |share: &f32| (share * step + (half + 0.5)).clamp(0.0, Short::Int4.top()) as u8;
            self.tried.extend(self.rest.shares.iter().map(code));
            let (mut along, mut squared) = (0.0, 0.0);
            for (share, code) in self.rest.shares.iter().zip(&self.tried) {
                let value = 2.0 * f32::from(*code) - Short::Int4.top();
                along += share * value;
                squared += value * value;
            }
            let direction = along / squared.max(1.0).sqrt();
            if direction > best {
                (best, best_along) = (direction, f64::from(along));
                std::mem::swap(&mut self.codes, &mut self.tried);
            }
        }
        best_along
    }
}

/// Appends codes with as many to a byte as fit: of four bits the first half of the components in the lower ones.
fn pack(short: Short, codes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + short.code_bytes(codes.len()), 0);
    let packed = &mut out[start..];
    match short {
        Short::Bit => {
            for (byte, codes) in packed.iter_mut().zip(codes.chunks(8)) {
                *byte = codes.iter().enumerate().map(|(at, code)| code << at).sum();
            }
        }
        Short::Int4 => {
            let (low, high) = codes.split_at(packed.len());
            packed.copy_from_slice(low);
            packed.iter_mut().zip(high).for_each(|(byte, code)| *byte |= code << 4);
        }
    }
}

/// A query prepared for comparisons with the codes of one segment.
pub(crate) struct ShortQuery {
    short: Short,
    /// What kernels take: planes of bits, or numbers of eight bits.
    bytes: Vec<u8>,
    /// What products of codes are multiplied by, and what is taken off them then.
    scale: f64,
    less: f64,
    /// The query's own part of nearness.
    added: f64,
}

impl ShortQuery {
    /// A query of this inverse length for vectors with this mean.
    pub(crate) fn new(
        short: Short,
        metric: Metric,
        query: &[f32],
        inverse_length: f32,
        centre: &[f32],
    ) -> Self {
        let unit = unit(metric.similarity, inverse_length);
        let mut rest = Rest::default();
        rest.set(query.iter().map(|component| unit * f64::from(*component)), centre);
        let mut numbers = Vec::with_capacity(query.len());
        let scale = match short {
            Short::Bit => {
                let rounded = rest.shares.iter().map(|share| (share * LARGEST_OF_PLANES).round() as i8 as u8);
                numbers.extend(rounded);
                1.0 / LARGEST_OF_PLANES
            }
            Short::Int4 => Int8::default().encode(&rest.shares, &mut numbers),
        };
        let sum: i32 = numbers.iter().map(|number| i32::from(*number as i8)).sum();
        let scale = f64::from(scale) * rest.largest;
        let with_centre: f64 = centre.iter().map(|component| f64::from(*component).powi(2)).sum();
        let added = match metric.similarity {
            Similarity::L2Norm => -rest.squared,
            _ => rest.with_centre + with_centre,
        };
        Self {
            short,
            bytes: match short {
                Short::Bit => planes(&numbers),
                Short::Int4 => {
                    numbers.resize(2 * short.code_bytes(query.len()), 0);
                    numbers
                }
            },
            scale: 2.0 * scale,
            less: scale * f64::from(short.top()) * f64::from(sum),
            added,
        }
    }

    /// Nearness of at most [`BATCH`] rows, given by number.
    pub(crate) fn near(&self, rows: Rows<'_>, numbers: &[u32], out: &mut [f32]) {
        let mut raw = [0; BATCH];
        match self.short {
            Short::Bit => kernels::dots_bits(&self.bytes, rows, numbers, &mut raw),
            Short::Int4 => kernels::dots_int4(&self.bytes, rows, numbers, &mut raw),
        }
        for ((number, raw), out) in numbers.iter().zip(raw).zip(out) {
            let Some((_, factors)) = rows.row(*number).split_last_chunk::<FACTORS>() else { continue };
            let [factor, added] = [0, 4].map(|at| f64::from(f32_at(factors, at)));
            // In double precision: in single precision two large products could overflow, and their difference be no number.
            *out = ((f64::from(raw) * self.scale - self.less) * factor + (added + self.added)) as f32;
        }
    }
}

/// The bits of numbers from −8 to 7, all lowest ones first, as [`kernels::dots_bits`] takes them.
fn planes(numbers: &[u8]) -> Vec<u8> {
    let mut planes = Vec::new();
    for plane in 0..PLANES {
        let bits: Vec<u8> = numbers.iter().map(|number| number >> plane & 1).collect();
        pack(Short::Bit, &bits, &mut planes);
    }
    planes
}

#[cfg(test)]
mod tests;
