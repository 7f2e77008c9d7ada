//! Layout of encoded vectors. Numbers are little-endian.
//!
//! ```text
//! magic      8 bytes  "SPRVEC\0" and the version
//! similarity u8 · element u8 · codes u8 (0 none, 1 int8) · whole u8 · dims u32 · num_docs u32 · count u32
//! body_crc   u32  over everything behind the header
//! header_crc u32  over everything before it
//! docs       u32 × count, ascending; absent when count = num_docs
//! norms      4 bytes × count; float: f32, 1 / length of the vector (0 for a zero vector);
//!            byte: u32, the squared length; bit: absent
//! scales     f32 × count, absent without codes
//! vectors    float: f32 × dims × count; byte: i8 × dims × count; bit: u8 × dims / 8 × count
//! codes      i8 × dims × count, absent without codes
//! ```
//!
//! `whole` is 1 where codes stand for components within half a step, and 0 where large components may be clipped, or
//! where it is not known: an older build wrote 0 always.
//!
//! Version 1 had floats only and no codes: the same layout with zeros for element and codes.

use crate::element::{Element, Metric};
use crate::error::VectorsError;
use crate::similarity::Similarity;

/// Format version that this build writes.
pub(crate) const VERSION: u8 = 2;
pub(crate) const HEADER: usize = 32;
const MAGIC: [u8; 7] = *b"SPRVEC\0";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) version: u8,
    pub(crate) metric: Metric,
    /// Whether each vector also has 8-bit codes, one per component.
    pub(crate) codes: bool,
    /// Whether no component is clipped in its code.
    pub(crate) whole_codes: bool,
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
    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..7].copy_from_slice(&MAGIC);
        bytes[7] = self.version;
        bytes[8] = self.metric.similarity.code();
        bytes[9] = self.metric.element.code();
        bytes[10] = u8::from(self.codes);
        bytes[11] = u8::from(self.whole_codes);
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
        if header[10] > 1 || (header[10] == 1 && element != Element::Float) {
            return Err(corrupt("codes"));
        }
        let parsed = Self {
            version: header[7],
            metric: Metric { element, similarity, dims: u32_at(header, 12) as usize },
            codes: header[10] == 1,
            whole_codes: header[10] == 1 && header[11] == 1,
            num_docs: u32_at(header, 16),
            count: u32_at(header, 20),
            body_checksum: u32_at(header, 24),
        };
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
        let vectors = scales + if self.codes { words } else { 0 };
        let codes =
            vectors.checked_add(count.checked_mul(self.metric.element.row_bytes(self.metric.dims))?)?;
        let end = if self.codes { codes.checked_add(count.checked_mul(self.metric.dims)?)? } else { codes };
        Some(Layout { norms, scales, vectors, codes, end })
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn f32_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_bits(u32_at(bytes, at))
}
