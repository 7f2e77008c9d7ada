//! Where the postings of a term are, and in which layout.
//!
//! Record of a term: `blob u64` (position in the file), `df u32`, and in V3 `escapes u32`,
//! `max u16` (highest weight, half bits), `kind u8`, 5 zero bytes. V1 ends with 4 zero bytes.
//!
//! Blob of a term with `n = df` postings and `e` escapes:
//!
//! ```text
//! V1 plain    (document u32, weight f32)[n]
//! V3 rare     documents u32[n], weights u16[n] (half bits)
//! V3 sparse   windows u32[windows + 1], ids u16[n], impacts u8[n], residuals u8[n], escapes
//! V3 dense    levels u8[chunks * 64], bitmap u64[chunks * 16], ranks u16[chunks * 8],
//!             regions u32[regions], codes u8[16], impacts u8[n], residuals u8[n], escapes
//! escapes     positions u32[e], weights u16[e] (half bits)
//! ```
//!
//! `windows[i]` is the number of postings before window `i`, an id is the document's distance
//! from its window's start. Of a dense term, a chunk is 1,024 documents, a region 65,536:
//! `regions[i]` is the number of postings before region `i`, `ranks[i]` that from the start of the
//! region to 128 documents `i`. A level, of 4 bits, stands for an upper bound of the impacts of 8
//! documents: `codes[level]`, ascending, 0 for level 0, which says that there is no posting. Where
//! a chunk has which level tells [`level_place`](crate::layout::level_place).
//!
//! A term in at least 1/24 of the documents (and 64) is dense: such terms hold 93% of the postings
//! that questions touch. One with no more postings than windows is rare, so that a directory never
//! outweighs its postings.

use crate::bytes::{slice, u16_at, u32_at, u64_at};
use crate::frame::{Footer, Format, HEADER_BYTES};
use crate::kernels;
use crate::layout::{CHUNK, CHUNK_BITMAP, CHUNK_LEVELS, CHUNK_RANKS, CODES, REGION};

/// Layout of a term's postings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Plain,
    Rare,
    Sparse,
    Dense,
}

impl Kind {
    /// The V3 layout with this `kind` number, as records store it.
    #[inline]
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Rare),
            2 => Some(Self::Sparse),
            3 => Some(Self::Dense),
            _ => None,
        }
    }
}

/// A term is dense if it occurs in at least one of this many documents.
const DENSE_SHARE: u64 = 24;

/// Sizes that the layouts of all terms of a segment depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) num_docs: u32,
    /// Documents per window.
    pub(crate) window: u32,
    pub(crate) windows: usize,
    pub(crate) chunks: usize,
    pub(crate) regions: usize,
}

impl Shape {
    pub(crate) fn new(num_docs: u32, window: u32) -> Self {
        Self {
            num_docs,
            window,
            windows: num_docs.div_ceil(window.max(1)) as usize,
            chunks: num_docs.div_ceil(CHUNK) as usize,
            regions: num_docs.div_ceil(REGION) as usize,
        }
    }

    /// The layout that V3 uses for a term with `df` postings.
    pub(crate) fn kind_for(&self, df: u32) -> Kind {
        if df as usize <= self.windows {
            Kind::Rare
        } else if df >= 64 && u64::from(df) * DENSE_SHARE >= u64::from(self.num_docs) {
            Kind::Dense
        } else {
            Kind::Sparse
        }
    }

    /// Sizes in bytes of a dense term's levels, bitmap, ranks and regions.
    pub(crate) fn dense_parts(&self) -> [usize; 4] {
        [self.chunks * CHUNK_LEVELS, self.chunks * CHUNK_BITMAP, self.chunks * CHUNK_RANKS, self.regions * 4]
    }

    /// Size in bytes of a sparse term's window directory.
    pub(crate) fn windows_bytes(&self) -> usize {
        (self.windows + 1) * 4
    }

    /// Bytes that precede the postings of a term with this layout.
    fn directory_bytes(&self, kind: Kind) -> usize {
        match kind {
            Kind::Plain | Kind::Rare => 0,
            Kind::Sparse => self.windows_bytes(),
            Kind::Dense => self.dense_parts().iter().sum::<usize>() + CODES,
        }
    }
}

/// A term's entry in the `records` section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) blob: u64,
    pub(crate) df: u32,
    pub(crate) escapes: u32,
    pub(crate) max: u16,
    pub(crate) kind: Kind,
}

impl Record {
    pub(crate) fn encode(&self, format: Format, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.blob.to_le_bytes());
        out.extend_from_slice(&self.df.to_le_bytes());
        out.extend_from_slice(&self.escapes.to_le_bytes());
        if format == Format::V3 {
            out.extend_from_slice(&self.max.to_le_bytes());
            out.push(self.kind as u8);
            out.extend_from_slice(&[0; 5]);
        }
    }

    /// Reads a record; `None` when its kind is unknown.
    pub(crate) fn decode(bytes: &[u8], format: Format) -> Option<Self> {
        let (blob, df, escapes) = (u64_at(bytes, 0), u32_at(bytes, 8), u32_at(bytes, 12));
        if format == Format::V1 {
            return Some(Self { blob, df, escapes, max: 0, kind: Kind::Plain });
        }
        let kind = Kind::from_number(*bytes.get(18)?)?;
        Some(Self { blob, df, escapes, max: u16_at(bytes, 16), kind })
    }

    /// Offset in the file of the first impact of a sparse or dense term.
    #[inline]
    pub(crate) fn impacts_at(&self, shape: &Shape) -> usize {
        let ids = if self.kind == Kind::Sparse { self.df as usize * 2 } else { 0 };
        self.blob as usize + shape.directory_bytes(self.kind) + ids
    }

    pub(crate) fn blob_bytes(&self, shape: &Shape) -> u64 {
        let (df, escapes) = (u64::from(self.df), u64::from(self.escapes));
        shape.directory_bytes(self.kind) as u64
            + match self.kind {
                Kind::Plain => df * 8,
                Kind::Rare => df * 6,
                Kind::Sparse => df * 4 + escapes * 6,
                Kind::Dense => df * 2 + escapes * 6,
            }
    }

    /// Prefetches the first bytes of the term's postings; of a dense term, the levels of the first
    /// [`kernels::AHEAD`] chunks.
    #[inline]
    pub(crate) fn fetch_start(&self, bytes: &[u8], shape: &Shape) {
        let blob = self.blob as usize;
        kernels::fetch(bytes, blob);
        if self.kind == Kind::Dense {
            (1..kernels::AHEAD.min(shape.chunks))
                .for_each(|chunk| kernels::fetch(bytes, blob + chunk * CHUNK_LEVELS));
        }
        if self.kind == Kind::Sparse {
            kernels::fetch(bytes, blob + shape.windows_bytes());
            kernels::fetch(bytes, self.impacts_at(shape));
        }
    }

    /// Offset in the file of a dense term's level codes; `None` for other layouts.
    fn codes_at(&self, shape: &Shape) -> Option<usize> {
        (self.kind == Kind::Dense).then(|| self.impacts_at(shape) - CODES)
    }

    /// Prefetches the level codes of a dense term.
    pub(crate) fn fetch_codes(&self, bytes: &[u8], shape: &Shape) {
        self.codes_at(shape).into_iter().for_each(|at| kernels::fetch(bytes, at));
    }

    /// Level codes of a dense term whose record was validated; all 0 for other layouts.
    pub(crate) fn codes(&self, bytes: &[u8], shape: &Shape) -> [u8; CODES] {
        let codes = self.codes_at(shape).and_then(|at| slice(bytes, at, CODES).first_chunk().copied());
        codes.unwrap_or_default()
    }

    /// Whether the record's counts and offsets are possible for a file with this footer.
    pub(crate) fn is_valid(&self, footer: &Footer, shape: &Shape) -> bool {
        let max_ok = match self.kind {
            Kind::Plain => true,
            _ => (1..=0x7BFF).contains(&self.max),
        };
        max_ok
            && self.df >= 1
            && self.df <= footer.num_docs
            && self.escapes <= self.df
            && self.blob >= HEADER_BYTES as u64
            && self.blob.checked_add(self.blob_bytes(shape)).is_some_and(|end| end <= footer.postings_end)
    }
}
