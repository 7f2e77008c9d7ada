//! Sizes in the layout of a dense term's postings, and what kernels look for and find there. See [`crate::record`]
//! for the whole layout.

use sparrow_runtime::DocId;

/// Documents of a block, for which an upper bound of their scores is kept.
pub(crate) const BLOCK: usize = 8;
/// Documents of a chunk of a dense term.
pub(crate) const CHUNK: u32 = 1024;
/// Bytes of a chunk's levels and of its bitmap.
pub(crate) const CHUNK_LEVELS: usize = 64;
pub(crate) const CHUNK_BITMAP: usize = 128;
/// Bytes of a chunk's ranks.
pub(crate) const CHUNK_RANKS: usize = 16;
/// Number of levels of a dense term, each with a code byte.
pub(crate) const CODES: usize = 16;
/// Number of consecutive documents whose ranks have a common base.
pub(crate) const REGION: u32 = 65_536;
/// Documents that share a rank.
pub(crate) const RANKED: u32 = 128;

/// Location of the level of an 8-document block (0 to 127) in a chunk's levels: the byte index, and the bit shift in
/// that byte.
///
/// The even bytes hold the first 32 of every 64 blocks, so that widening to 16 bits keeps blocks in order.
#[inline]
pub(crate) fn level_place(block: usize) -> (usize, u32) {
    ((block % 32) * 2 + block / 32 % 2, (block / 64) as u32 * 4)
}

/// A document, and its location in the windows of a segment's sparse terms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) doc: DocId,
    pub(crate) window: u32,
    /// Id of the document within its window.
    pub(crate) id: u16,
    /// Fraction of the window's documents that precede it, in units of 1/65,536.
    pub(crate) share: u32,
}

/// A posting that a lookup found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Posting {
    /// Key given by the caller: the index of the document among those looked up, plus what identifies the term.
    pub(crate) of: u32,
    /// Index of the posting within the term's postings.
    pub(crate) position: u32,
}
