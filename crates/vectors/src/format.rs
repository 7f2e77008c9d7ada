//! Layout of the bytes, version 1. Numbers are little endian.
//!
//! ```text
//! magic      8 bytes  "SPRVEC\0" and the version
//! similarity u8 · zero u8×3 · dims u32 · num_docs u32 · count u32
//! body_crc   u32  over everything behind the header
//! header_crc u32  over everything before it
//! docs       u32 × count, ascending; absent when count = num_docs
//! inverse    f32 × count, 1 / length of each vector (0 for a zero vector)
//! vectors    f32 × dims × count
//! ```

use crate::error::VectorsError;
use crate::similarity::Similarity;

pub(crate) const VERSION: u8 = 1;
pub(crate) const HEADER: usize = 32;
const MAGIC: [u8; 7] = *b"SPRVEC\0";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) similarity: Similarity,
    pub(crate) dims: u32,
    pub(crate) num_docs: u32,
    pub(crate) count: u32,
    pub(crate) body_checksum: u32,
}

impl Header {
    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..7].copy_from_slice(&MAGIC);
        bytes[7] = VERSION;
        bytes[8] = self.similarity.code();
        bytes[12..16].copy_from_slice(&self.dims.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.num_docs.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.count.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.body_checksum.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header and checks that it fits a body of `body` bytes.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, VectorsError> {
        let header = bytes.get(..HEADER).ok_or(VectorsError::NotVectors)?;
        if header[..7] != MAGIC {
            return Err(VectorsError::NotVectors);
        }
        if header[7] > VERSION {
            return Err(VectorsError::NewerFormat { found: header[7], supported: VERSION });
        }
        if u32_at(header, 28) != crc32fast::hash(&header[..28]) {
            return Err(VectorsError::Corrupt { detail: "header checksum" });
        }
        let similarity =
            Similarity::from_code(header[8]).ok_or(VectorsError::Corrupt { detail: "similarity" })?;
        let parsed = Self {
            similarity,
            dims: u32_at(header, 12),
            num_docs: u32_at(header, 16),
            count: u32_at(header, 20),
            body_checksum: u32_at(header, 24),
        };
        if parsed.count > parsed.num_docs {
            return Err(VectorsError::Corrupt { detail: "more vectors than documents" });
        }
        if parsed.body_length() != Some((bytes.len() - HEADER) as u64) {
            return Err(VectorsError::Corrupt { detail: "length" });
        }
        Ok(parsed)
    }

    pub(crate) fn is_complete(self) -> bool {
        self.count == self.num_docs
    }

    fn body_length(self) -> Option<u64> {
        let count = u64::from(self.count);
        let docs = if self.is_complete() { 0 } else { count * 4 };
        count.checked_mul(u64::from(self.dims) * 4)?.checked_add(docs + count * 4)
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn f32_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_bits(u32_at(bytes, at))
}
