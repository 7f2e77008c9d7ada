//! Bitmaps of the documents of dense terms, with the positions of their postings.

use sparrow_runtime::DocId;

use super::chosen;
use super::prefetch::fetch;
use crate::bytes::{u16_at, u32_at};
use crate::layout::{BLOCK, RANKED, REGION};

/// Bitmap of a dense term's documents with its rank directory, laid out as `record` describes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bitmap<'a> {
    pub(crate) bits: &'a [u8],
    pub(crate) ranks: &'a [u8],
    pub(crate) regions: &'a [u8],
}

impl Bitmap<'_> {
    /// Prefetches the first cache line of the region counts, which holds most regions of 1,000,000 documents.
    #[inline]
    pub(crate) fn fetch_regions(&self) {
        fetch(self.regions, 0);
    }

    /// Prefetches a document's bits and the rank of its group of 128.
    #[inline]
    pub(crate) fn fetch(&self, doc: DocId) {
        fetch(self.bits, doc as usize / BLOCK);
        fetch(self.ranks, (doc / RANKED) as usize * 2);
    }

    /// Whether the slices cover everything that an implementation reads for blocks below `blocks`.
    pub(super) fn covers(&self, blocks: usize) -> bool {
        self.bits.len() >= blocks.next_multiple_of(16)
            && self.ranks.len() >= blocks.div_ceil(16) * 2
            && self.regions.len() >= blocks.div_ceil(8192) * 4
    }

    /// Postings before a document's group of 128.
    #[inline]
    pub(super) fn before(&self, group: usize) -> u32 {
        let region = u32_at(self.regions, group / (REGION / RANKED) as usize * 4);
        region.wrapping_add(u32::from(u16_at(self.ranks, group * 2)))
    }

    /// Bits of a group of 128 documents; all 0 after the last.
    #[inline]
    pub(super) fn group(&self, group: usize) -> [u8; 16] {
        self.bits.get(group * 16..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
    }

    /// Number of postings before a document.
    #[inline]
    pub(crate) fn rank(&self, doc: DocId) -> u32 {
        let group = (doc / RANKED) as usize;
        self.before(group).wrapping_add(chosen().rank(&self.group(group), doc % RANKED))
    }

    /// Position of a document's posting; `None` if it does not have the term.
    #[inline]
    pub(crate) fn find(&self, doc: DocId) -> Option<u32> {
        let byte = self.bits.get(doc as usize / BLOCK)?;
        (byte >> (doc as usize % BLOCK) & 1 == 1).then(|| self.rank(doc))
    }
}
