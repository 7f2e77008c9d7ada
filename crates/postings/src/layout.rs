//! The measures of a dense term's postings, and what kernels look for and find in them. See [`crate::record`] for the whole layout.

use sparrow_types::DocId;

/// Documents of a chunk of a dense term.
pub(crate) const CHUNK: u32 = 1024;
/// Bytes of a chunk's levels and of its bitmap.
pub(crate) const CHUNK_LEVELS: usize = 64;
pub(crate) const CHUNK_BITMAP: usize = 128;
/// Bytes of a chunk's ranks.
pub(crate) const CHUNK_RANKS: usize = 16;
/// Levels, and what each stands for.
pub(crate) const CODES: usize = 16;
/// Documents that share the base of their ranks.
pub(crate) const REGION: u32 = 65_536;
/// Documents that share a rank.
pub(crate) const RANKED: u32 = 128;

/// Where a chunk has the level of a block (0 to 127) of 8 documents: the byte, and the shift in it.
///
/// The even bytes have the first 32 of 64 blocks, so that widening to 16 bits leaves them in order.
#[inline]
pub(crate) fn level_place(block: usize) -> (usize, u32) {
    ((block % 32) * 2 + block / 32 % 2, (block / 64) as u32 * 4)
}

/// A document, and where the ids of a segment's sparse terms have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) doc: DocId,
    pub(crate) window: u32,
    /// In the window.
    pub(crate) id: u16,
    /// Share of the window's documents before it, of 65,536.
    pub(crate) share: u32,
}

/// A posting that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Posting {
    /// Whose: the place of the document among those that were looked for, and what the caller adds to tell the term.
    pub(crate) of: u32,
    /// In the term.
    pub(crate) position: u32,
}
