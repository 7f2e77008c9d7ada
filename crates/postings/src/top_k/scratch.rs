//! Buffers that searches leave to those after them.

use std::ops::Range;

use super::candidates::CandidateScratch;
use super::single::Scored;
use crate::kernels::{Blocks, MAXIMUM_BLOCKS};
use crate::layout::BLOCK;

/// Blocks per chunk.
pub(super) const CHUNK_BLOCKS: usize = 128;
/// Documents past the start of its window that a damaged 16-bit id can address.
pub(super) const OVERRUN: usize = 1 << 16;

/// Accumulators of a window. There are 65,536 of them, so that no 16-bit id, even a damaged one, is out of
/// bounds; only the window's part is used.
#[repr(align(64))]
pub(super) struct Sums(pub(super) [u16; 1 << 16]);

/// Buffers of a search in whichever way, reused by the next.
pub(super) struct Scratch {
    pub(super) sums: Box<Sums>,
    pub(super) allowed: Vec<u64>,
    pub(super) matches: Vec<u64>,
    pub(super) scored: Vec<Scored>,
    pub(super) blocks: BlockScratch,
    pub(super) documents: DocumentScratch,
    pub(super) candidates: CandidateScratch,
}

impl Scratch {
    pub(super) fn new() -> Self {
        Self {
            sums: Box::new(Sums([0; 1 << 16])),
            allowed: Vec::new(),
            matches: Vec::new(),
            scored: Vec::new(),
            blocks: BlockScratch::default(),
            documents: DocumentScratch::default(),
            candidates: CandidateScratch::default(),
        }
    }
}

/// Sums and wanted bits of the documents of a window.
#[derive(Clone, Copy)]
pub(super) struct WindowState<'k> {
    /// Per document, the sum of the sparse terms' contributions, in document order.
    pub(super) sums: &'k [u16],
    /// Bit per document that is live and passes the filter.
    pub(super) wanted: &'k [[u8; 8]],
}

/// Buffers of a search by bounds of blocks, reused by the next. The segments follow each other, each in whole chunks.
#[derive(Default)]
pub(super) struct BlockScratch {
    /// Per document, the sum of its sparse terms' contributions, in estimate units.
    pub(super) sums: Vec<u16>,
    /// Upper bound of each block, in coarse units.
    pub(super) totals: Vec<u16>,
    /// Maximum of every 32 bounds of `totals`.
    pub(super) highest: Vec<u16>,
    /// Bit per document that is live and passes the filter.
    pub(super) wanted: Vec<[u8; 8]>,
    pub(super) selected: Vec<u32>,
    /// Highest sum of each block that is being scored.
    pub(super) best: Vec<u16>,
    /// Blocks that are being scored together; one entry per segment.
    pub(super) blocks: Vec<Blocks>,
}

impl BlockScratch {
    /// Takes [`Self::blocks`] out, extended to at least one entry per segment; the caller puts it back.
    pub(super) fn take_blocks(&mut self, segments: usize) -> Vec<Blocks> {
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.resize_with(blocks.len().max(segments), Default::default);
        blocks
    }

    /// Resizes the buffers for this many chunks; existing contents stay.
    pub(super) fn resize(&mut self, chunks: usize) {
        let docs = chunks * CHUNK_BLOCKS * BLOCK;
        if self.sums.len() < docs + OVERRUN {
            self.sums.resize(docs + OVERRUN, 0);
        }
        self.totals.resize(chunks * CHUNK_BLOCKS, 0);
        self.highest.resize(chunks * CHUNK_BLOCKS / MAXIMUM_BLOCKS, 0);
        self.wanted.resize(chunks * CHUNK_BLOCKS / 8, [0; 8]);
    }

    /// Sums and wanted bits of a range of documents (whole words), numbered from the first document of the
    /// first segment.
    pub(super) fn state(&self, docs: Range<usize>) -> WindowState<'_> {
        let words = docs.start / 64..docs.end / 64;
        WindowState { sums: &self.sums[docs], wanted: &self.wanted[words] }
    }

    /// Sums of a range of documents, numbered from the first document of the first segment; empty if out of
    /// range.
    pub(super) fn sums_of(&self, docs: Range<usize>) -> &[u16] {
        self.sums.get(docs).unwrap_or(&[])
    }
}

/// Buffers of a search by bounds of documents, reused by the next. `ids`, `sums` and `totals` have an entry per wanted document,
/// ascending.
#[derive(Default)]
pub(super) struct DocumentScratch {
    /// Number of the document in its window.
    pub(super) ids: Vec<u16>,
    /// Sum of the sparse terms' contributions to the document's estimate.
    pub(super) sums: Vec<u16>,
    /// Upper bound of the document's estimate, in coarse units; padded with 0 to whole groups.
    pub(super) totals: Vec<u16>,
    /// Maximum of every group of `totals`.
    pub(super) highest: Vec<u16>,
    /// Per window, its first document and the index of its first wanted one in `ids`.
    pub(super) windows: Vec<(u32, u32)>,
    /// Copy of the numbers from which the k-th highest is selected.
    pub(super) best: Vec<u16>,
    pub(super) selected: Vec<u32>,
    /// Documents that are being scored, each with an upper bound, in coarse units, of what the remaining
    /// dense terms can add.
    pub(super) scored: Vec<Scored>,
}
