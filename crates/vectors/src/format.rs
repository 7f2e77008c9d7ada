//! Layout of encoded vectors. Numbers are little-endian.
//!
//! ```text
//! magic      8 bytes  "SPRVEC\0" and the version
//! similarity u8 · element u8 · codes u8 (0 none, 1 of 8 bits, 2 of 4 bits, 3 of one bit) · whole u8
//! dims u32 · num_docs u32 · count u32
//! body_crc   u32  over everything behind the header
//! header_crc u32  over everything before it
//! docs       u32 × count, ascending; absent when count = num_docs
//! norms      4 bytes × count; float: f32, 1 / length of the vector (0 for a zero vector);
//!            byte: u32, the squared length; bit: absent
//! scales     8 bits: f32 × count; 4 bits or one: f32 × dims, the mean of the vectors; absent without codes
//! vectors    float: f32 × dims × count; byte: i8 × dims × count; bit: u8 × dims / 8 × count
//! codes      8 bits: i8 × dims × count; 4 bits or one: (u8 × dims / 2 or 8, rounded up, f32 × 2) × count, where the
//!            floats are the factors of the codes before them; absent without codes
//! ```
//!
//! `whole` is 1 where codes stand for components within half a step, and 0 where large components may be clipped, or
//! where it is not known: an older build wrote 0 always.
//!
//! Version 1 had floats only and no codes: the same layout with zeros for element and codes. Version 2 knew codes of 8 bits
//! only, and is still written where there are no others.

use crate::element::{Element, Metric};
use crate::error::VectorsError;
use crate::quantise::{Codes, Short};
use crate::similarity::Similarity;

/// Newest format version.
const VERSION: u8 = 3;
/// Version of everything but codes of 4 bits or one. What it can express is as good in it.
pub(crate) const BEFORE_SHORT: u8 = 2;
pub(crate) const HEADER: usize = 32;
/// Most dimensions of vectors: sums over as many fit the numbers in which they are added up.
const MOST_DIMS: usize = 1 << 16;
const MAGIC: [u8; 7] = *b"SPRVEC\0";

/// Codes that each vector has beside its components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeKind {
    None,
    /// Of 8 bits; `whole` where no component is clipped.
    Int8 {
        whole: bool,
    },
    Short(Short),
}

impl CodeKind {
    /// Of vectors that get these codes, if any.
    pub(crate) fn of(codes: Option<Codes>) -> Self {
        match codes {
            None => Self::None,
            Some(Codes::Int8(int8)) => Self::Int8 { whole: int8.is_whole() },
            Some(Codes::Short(short)) => Self::Short(short),
        }
    }

    /// The two bytes of the header.
    fn to_bytes(self) -> [u8; 2] {
        match self {
            Self::None => [0, 0],
            Self::Int8 { whole } => [1, u8::from(whole)],
            Self::Short(Short::Int4) => [2, 0],
            Self::Short(Short::Bit) => [3, 0],
        }
    }

    fn from_bytes([kind, whole]: [u8; 2]) -> Option<Self> {
        match kind {
            0 => Some(Self::None),
            1 => Some(Self::Int8 { whole: whole == 1 }),
            2 => Some(Self::Short(Short::Int4)),
            3 => Some(Self::Short(Short::Bit)),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) version: u8,
    pub(crate) metric: Metric,
    pub(crate) codes: CodeKind,
    pub(crate) num_docs: u32,
    pub(crate) count: u32,
    pub(crate) body_checksum: u32,
}

/// Offsets of the body's sections and of its end; `None` on overflow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) norms: usize,
    pub(crate) scales: usize,
    pub(crate) vectors: usize,
    pub(crate) codes: usize,
    pub(crate) end: usize,
}

impl Header {
    /// Of vectors whose body is not written yet.
    pub(crate) fn new(metric: Metric, codes: Option<Codes>, num_docs: u32, count: u32) -> Self {
        let version = if matches!(codes, Some(Codes::Short(_))) { VERSION } else { BEFORE_SHORT };
        Self { version, metric, codes: CodeKind::of(codes), num_docs, count, body_checksum: 0 }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..7].copy_from_slice(&MAGIC);
        bytes[7] = self.version;
        bytes[8] = self.metric.similarity.code();
        bytes[9] = self.metric.element.code();
        bytes[10..12].copy_from_slice(&self.codes.to_bytes());
        bytes[12..16].copy_from_slice(&(self.metric.dims as u32).to_le_bytes());
        bytes[16..20].copy_from_slice(&self.num_docs.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.count.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_checksum.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Parses the header and checks that its sections fit the bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Result<(Self, Layout), VectorsError> {
        let corrupt = |detail| VectorsError::Corrupt { detail };
        let header = bytes.get(..HEADER).ok_or(VectorsError::NotVectors)?;
        if header[..7] != MAGIC {
            return Err(VectorsError::NotVectors);
        }
        if header[7] > VERSION {
            return Err(VectorsError::NewerFormat { found: header[7], supported: VERSION });
        }
        if u32_at(header, 28) != crc32fast::hash(&header[..28]) {
            return Err(corrupt("header checksum"));
        }
        let similarity = Similarity::from_code(header[8]).ok_or(corrupt("similarity"))?;
        let element = Element::from_code(header[9]).ok_or(corrupt("element type"))?;
        let codes = CodeKind::from_bytes([header[10], header[11]]).ok_or(corrupt("codes"))?;
        if codes != CodeKind::None && element != Element::Float {
            return Err(corrupt("codes"));
        }
        let parsed = Self {
            version: header[7],
            metric: Metric { element, similarity, dims: u32_at(header, 12) as usize },
            codes,
            num_docs: u32_at(header, 16),
            count: u32_at(header, 20),
            body_checksum: u32_at(header, 24),
        };
        // A merge makes room for the dimensions, also of no vectors, and vectors without any would have no bytes.
        if !(1..=MOST_DIMS).contains(&parsed.metric.dims) {
            return Err(corrupt("dimensions"));
        }
        if parsed.count > parsed.num_docs {
            return Err(corrupt("more vectors than documents"));
        }
        let layout = parsed.layout().filter(|layout| layout.end == bytes.len()).ok_or(corrupt("length"))?;
        Ok((parsed, layout))
    }

    pub(crate) fn is_complete(self) -> bool {
        self.count == self.num_docs
    }

    fn layout(self) -> Option<Layout> {
        let count = self.count as usize;
        let words = count.checked_mul(4)?;
        let norms = HEADER + if self.is_complete() { 0 } else { words };
        let scales = norms + if self.metric.element == Element::Bit { 0 } else { words };
        let dims = self.metric.dims;
        let (of_scales, of_codes) = match self.codes {
            CodeKind::None => (0, 0),
            CodeKind::Int8 { .. } => (words, dims),
            CodeKind::Short(short) => (dims.checked_mul(4)?, short.row_bytes(dims)),
        };
        let vectors = scales.checked_add(of_scales)?;
        let codes = vectors.checked_add(count.checked_mul(self.metric.element.row_bytes(dims))?)?;
        let end = codes.checked_add(count.checked_mul(of_codes)?)?;
        Some(Layout { norms, scales, vectors, codes, end })
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    // One check of the bounds for all four.
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(four)
}

pub(crate) fn f32_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_bits(u32_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_no_vector_has_are_refused() {
        for (dims, count, is_good) in [
            (1, 0, true),
            (MOST_DIMS, 0, true),
            (0, 0, false),
            (0, u32::MAX, false),
            (MOST_DIMS + 1, 0, false),
            (u32::MAX as usize, 0, false),
        ] {
            let metric = Metric { element: Element::Bit, similarity: Similarity::L2Norm, dims };
            let parsed = Header::parse(&Header::new(metric, None, count, count).to_bytes());
            assert_eq!(parsed.is_ok(), is_good, "{dims} {count}");
        }
    }
}
