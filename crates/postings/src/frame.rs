//! What both formats share: header, footer, checksums and the section directory.
//!
//! ```text
//! header     magic "SPRWSPRS", version u32, 0 u32                                   16 bytes
//! postings   one blob per term, in term order (see `term`)
//! padding    so that kernels may read past the last impact (V3 only)
//! presence   bitmap of documents that have the field, u64 words
//! tokens     offsets u32[terms + 1], then the tokens' UTF-8 bytes, sorted bytewise
//! records    one per term: V1 16 bytes, V3 24 bytes (see `term`)
//! footer     as `Footer::encode` writes it                                         112 bytes
//! ```
//!
//! All numbers are little-endian, nothing needs alignment. Everything from `presence` on is
//! checked when a reader opens, by checksum and number by number, because its size depends on the
//! vocabulary; the postings are covered by a checksum of their own that only
//! [`crate::PostingsReader::verify`] computes, because its cost depends on the documents.

use crate::bytes::{u32_at, u64_at};
use crate::error::PostingsError;

/// On-disk format of the sparse postings of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Plain lists: for each term its documents (u32) and weights (f32).
    V1,
    /// Bitmaps with score bounds of blocks, or document ids local to a window; with 8-bit impacts and residuals.
    /// (Version 2 had no bounds and was never released.)
    V3,
}

impl Format {
    /// The format new segments are written in.
    pub const CURRENT: Self = Self::V3;

    /// Version number of the format, as written in the header.
    pub fn version(self) -> u32 {
        match self {
            Self::V1 => 1,
            Self::V3 => 3,
        }
    }

    /// The format with this number.
    ///
    /// # Errors
    /// [`PostingsError::UnknownVersion`] for any other number.
    pub fn from_version(version: u32) -> Result<Self, PostingsError> {
        match version {
            1 => Ok(Self::V1),
            3 => Ok(Self::V3),
            version => Err(PostingsError::UnknownVersion { version }),
        }
    }

    pub(crate) fn record_bytes(self) -> usize {
        match self {
            Self::V1 => 16,
            Self::V3 => 24,
        }
    }
}

pub(crate) const MAGIC: [u8; 8] = *b"SPRWSPRS";
pub(crate) const HEADER_BYTES: usize = 16;
pub(crate) const FOOTER_BYTES: usize = 112;
const FOOTER_MAGIC: u32 = u32::from_le_bytes(*b"SPRF");

/// Most documents of a window: the ids inside one fit 16 bits. Half as many keep sums in the first level cache, but
/// starting and ending their lists costs five small segments 6% more; with twice as many, filters that half of the
/// documents pass cost 5% more.
const WINDOW: u32 = 1 << 15;
/// Documents of a window in files of earlier builds.
pub(crate) const FORMER_WINDOW: u32 = 1 << 14;

/// Documents per window of the V3 layout.
pub(crate) fn window_for(num_docs: u32) -> u32 {
    num_docs.max(1).next_multiple_of(64).min(WINDOW)
}

/// The footer, which is at the end of the file: section directory and counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) format: Format,
    pub(crate) num_docs: u32,
    pub(crate) docs_with_field: u32,
    pub(crate) term_count: u32,
    pub(crate) window: u32,
    pub(crate) posting_count: u64,
    /// Byte offset of the end of the terms' postings, excluding padding.
    pub(crate) postings_end: u64,
    pub(crate) presence: u64,
    pub(crate) token_offsets: u64,
    pub(crate) token_bytes: u64,
    pub(crate) records: u64,
    pub(crate) footer: u64,
    pub(crate) postings_crc: u32,
    pub(crate) directory_crc: u32,
}

pub(crate) fn header(format: Format) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&format.version().to_le_bytes());
    header
}

impl Footer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        for value in [
            self.format.version(),
            self.num_docs,
            self.docs_with_field,
            self.term_count,
            self.window,
            self.postings_crc,
            self.directory_crc,
            0,
        ] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        for value in [
            self.posting_count,
            self.postings_end,
            self.presence,
            self.token_offsets,
            self.token_bytes,
            self.records,
            self.footer,
        ] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.resize(FOOTER_BYTES - 8, 0);
        let crc = crc32fast::hash(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&FOOTER_MAGIC.to_le_bytes());
        out
    }

    /// Reads and checks header, footer, section bounds and the checksum of the directory.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, PostingsError> {
        let minimum = HEADER_BYTES + FOOTER_BYTES;
        if bytes.len() < minimum {
            return Err(PostingsError::Truncated { expected: minimum as u64, actual: bytes.len() as u64 });
        }
        if bytes[..8] != MAGIC {
            return Err(PostingsError::BadMagic);
        }
        let format = Format::from_version(u32_at(bytes, 8))?;
        let start = bytes.len() - FOOTER_BYTES;
        let raw = &bytes[start..];
        if u32_at(raw, FOOTER_BYTES - 4) != FOOTER_MAGIC {
            return Err(PostingsError::BadMagic);
        }
        check_crc("footer", u32_at(raw, FOOTER_BYTES - 8), &raw[..FOOTER_BYTES - 8])?;
        let footer = Self {
            format: Format::from_version(u32_at(raw, 0))?,
            num_docs: u32_at(raw, 4),
            docs_with_field: u32_at(raw, 8),
            term_count: u32_at(raw, 12),
            window: u32_at(raw, 16),
            postings_crc: u32_at(raw, 20),
            directory_crc: u32_at(raw, 24),
            posting_count: u64_at(raw, 32),
            postings_end: u64_at(raw, 40),
            presence: u64_at(raw, 48),
            token_offsets: u64_at(raw, 56),
            token_bytes: u64_at(raw, 64),
            records: u64_at(raw, 72),
            footer: u64_at(raw, 80),
        };
        if footer.footer != start as u64 {
            return Err(PostingsError::Truncated {
                expected: footer.footer.saturating_add(FOOTER_BYTES as u64),
                actual: bytes.len() as u64,
            });
        }
        footer.check_sections(format)?;
        check_crc("directory", footer.directory_crc, &bytes[footer.presence as usize..start])?;
        Ok(footer)
    }

    fn check_sections(&self, header_format: Format) -> Result<(), PostingsError> {
        let invalid = |section| Err(PostingsError::Invalid { section });
        if self.format != header_format {
            return invalid("version");
        }
        if self.num_docs > i32::MAX as u32 || self.docs_with_field > self.num_docs {
            return invalid("document count");
        }
        let former = self.num_docs > FORMER_WINDOW && self.window == FORMER_WINDOW;
        if self.window != window_for(self.num_docs) && !former {
            return invalid("window");
        }
        let terms = u64::from(self.term_count);
        let presence_bytes = u64::from(self.num_docs).div_ceil(64) * 8;
        let ordered = HEADER_BYTES as u64 <= self.postings_end
            && self.postings_end <= self.presence
            && self.presence.checked_add(presence_bytes) == Some(self.token_offsets)
            && self.token_offsets.checked_add((terms + 1) * 4) == Some(self.token_bytes)
            && self.token_bytes <= self.records
            && self.records.checked_add(terms * self.format.record_bytes() as u64) == Some(self.footer);
        if !ordered {
            return invalid("section directory");
        }
        Ok(())
    }
}

pub(crate) fn check_crc(section: &'static str, expected: u32, bytes: &[u8]) -> Result<(), PostingsError> {
    let actual = crc32fast::hash(bytes);
    if actual == expected { Ok(()) } else { Err(PostingsError::Checksum { section, expected, actual }) }
}
