//! Which documents have a dense term, and where their postings are.

use sparrow_types::DocId;

use super::{BLOCK, chosen, fetch};
use crate::bytes::{u16_at, u32_at};
use crate::layout::{RANKED, REGION};

/// The documents of a dense term, as `record` lays them out.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bitmap<'a> {
    pub(crate) bits: &'a [u8],
    pub(crate) ranks: &'a [u8],
    pub(crate) regions: &'a [u8],
}

impl Bitmap<'_> {
    /// Has the line with the first regions' postings fetched: with most regions of 1,000,000 documents.
    #[inline]
    pub(crate) fn fetch_regions(&self) {
        fetch(self.regions, 0);
    }

    /// Has a document's bits and its rank fetched: what is read of it beside its region.
    #[inline]
    pub(crate) fn fetch(&self, doc: DocId) {
        fetch(self.bits, doc as usize / BLOCK);
        fetch(self.ranks, (doc / RANKED) as usize * 2);
    }

    /// Whether every read of an implementation for a block below `blocks` stays inside the slices.
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

    /// Bits of a group of 128 documents; none behind the last.
    #[inline]
    pub(super) fn group(&self, group: usize) -> [u8; 16] {
        self.bits.get(group * 16..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default()
    }

    /// Postings before a document.
    #[inline]
    pub(crate) fn rank(&self, doc: DocId) -> u32 {
        let group = (doc / RANKED) as usize;
        self.before(group).wrapping_add(chosen().rank(&self.group(group), doc % RANKED))
    }

    /// Position of a document's posting.
    #[inline]
    pub(crate) fn find(&self, doc: DocId) -> Option<u32> {
        let byte = self.bits.get(doc as usize / BLOCK)?;
        (byte >> (doc as usize % BLOCK) & 1 == 1).then(|| self.rank(doc))
    }
}
