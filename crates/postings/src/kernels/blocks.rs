//! What the block kernels work on, and the checks that make them safe to call.
//!
//! A block is 8 documents, a chunk 128 blocks. Bounds of blocks count in coarse units, so that the
//! bound of any term fits a byte; sums of documents count in the fine ones of the window scan.

use super::{Bitmap, Implementation};
use crate::layout::{BLOCK, CHUNK_LEVELS, level_place};
use crate::trace;

/// Blocks per chunk.
pub(super) const CHUNK_BLOCKS: usize = 128;
/// How many chunks ahead levels are prefetched.
pub(crate) const AHEAD: usize = 4;
/// Blocks per group whose highest bound is stored.
pub(crate) const MAXIMUM_BLOCKS: usize = 32;

/// Upper bound, in coarse units, of a sum of `highest`; `inverse` is 65,536 / unit, rounded up.
#[inline]
pub(crate) fn coarse(highest: u16, inverse: u16) -> u16 {
    ((u32::from(highest) * u32::from(inverse)) >> 16) as u16 + highest.min(1)
}

/// Which documents of a block its upper bound covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All documents of the block.
    #[default]
    All,
    /// Only wanted documents as to sums, all documents as to levels.
    WantedSums,
    /// Only wanted documents; the level of a term counts if one of them has the term.
    Wanted,
}

/// Dense terms that block bounds are computed from, starting at chunk `first`.
#[derive(Clone, Copy)]
pub(crate) struct BoundTerms<'a> {
    pub(crate) terms: &'a [BlockTerm<'a>],
    pub(crate) first: usize,
    pub(crate) scope: Scope,
}

/// A dense term, with what computing block bounds and adding its postings to sums needs.
#[derive(Clone, Copy, Default)]
pub(crate) struct BlockTerm<'a> {
    pub(crate) bitmap: Bitmap<'a>,
    /// Levels of all the segment's chunks, 64 bytes per chunk.
    pub(crate) levels: &'a [u8],
    /// Impacts and the 8 bytes that follow them; so short that positions fit 32 bits.
    pub(crate) impacts: &'a [u8],
    /// Upper bound per level, in coarse units.
    pub(crate) bounds: [u8; 16],
    pub(crate) factor: u16,
}

impl BlockTerm<'_> {
    /// Prefetches what finding the postings of the blocks `ids` reads.
    pub(crate) fn fetch(&self, ids: &[u32]) {
        self.bitmap.fetch_regions();
        ids.iter().for_each(|id| self.bitmap.fetch(*id * BLOCK as u32));
    }

    /// Upper bound, in coarse units, of the term's contribution to a document that has it.
    #[inline]
    pub(crate) fn bound_of(&self, doc: u32) -> u8 {
        let (byte, shift) = Self::level_at(doc as usize / BLOCK);
        let level = self.levels.get(byte).copied().unwrap_or(0) >> shift & 15;
        self.bounds[usize::from(level)]
    }

    /// Whether the slices cover everything that an implementation reads for blocks below `blocks`.
    fn covers(&self, blocks: u32) -> bool {
        let blocks = blocks as usize;
        self.bitmap.covers(blocks)
            && self.levels.len() >= blocks.div_ceil(CHUNK_BLOCKS) * CHUNK_LEVELS
            && self.impacts.len() >= BLOCK
    }

    /// Index of the byte of `levels` that holds a block's level, and the shift of its 4 bits.
    #[inline]
    pub(super) fn level_at(block: usize) -> (usize, u32) {
        let (byte, shift) = level_place(block % CHUNK_BLOCKS);
        (block / CHUNK_BLOCKS * CHUNK_LEVELS + byte, shift)
    }
}

/// Blocks that are being scored, with the sums of their documents.
#[derive(Default)]
pub(crate) struct Blocks {
    /// Upper limit, exclusive, of the numbers in `ids`.
    limit: u32,
    pub(super) ids: Vec<u32>,
    /// Per block, an upper bound in coarse units of what the dense terms not yet added can contribute.
    pub(super) rest: Vec<u16>,
    pub(super) sums: Vec<[u16; BLOCK]>,
    /// Per block, a bit per document that is wanted. Sums of the others do not change.
    pub(super) wanted: Vec<u8>,
    /// Which documents the bounds behind `rest` cover.
    pub(super) scope: Scope,
    /// Highest sum of each block's wanted documents; 0 before the first term is added.
    pub(super) tops: Vec<u16>,
    /// Per block, the position of its first impact of the term found last. At least as long as `ids`, as is
    /// `bits`.
    pub(super) places: Vec<u32>,
    /// Per block, its byte of that term's bitmap; used by AVX-512 only.
    pub(super) bits: Vec<u8>,
    /// All `places` are at least 8 below this number of impacts; 0 when they were not computed.
    reach: usize,
}

impl Blocks {
    /// Starts over with the blocks `ids`, which are below `limit`, and their bytes of `wanted`; sums and
    /// bounds are not set.
    ///
    /// # Panics
    /// When a block is not below `limit`.
    fn start(&mut self, ids: &[u32], wanted: &[u8], limit: usize, scope: Scope) {
        assert!(ids.iter().all(|id| (*id as usize) < limit));
        self.scope = scope;
        self.limit = limit as u32;
        self.ids.clear();
        self.ids.extend_from_slice(ids);
        self.rest.resize(ids.len(), 0);
        self.sums.resize(ids.len(), [0; BLOCK]);
        self.places.resize(ids.len(), 0);
        self.bits.resize(ids.len(), 0);
        self.tops.clear();
        self.tops.resize(ids.len(), 0);
        self.reach = 0;
        self.wanted.clear();
        self.wanted.extend(ids.iter().map(|id| wanted[*id as usize]));
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bits to add to a block's wanted documents to get those whose terms reduce `rest`: none in
    /// [`Scope::Wanted`], otherwise all.
    pub(super) fn others(&self) -> u8 {
        if self.scope == Scope::Wanted { 0 } else { u8::MAX }
    }

    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    pub(crate) fn sums(&self) -> &[[u16; BLOCK]] {
        &self.sums
    }

    /// Highest sum of each block's wanted documents; all 0 before the first term.
    pub(crate) fn tops(&self) -> &[u16] {
        &self.tops
    }

    /// Keeps the first `len` blocks.
    pub(super) fn truncate(&mut self, len: usize) {
        self.ids.truncate(len);
        self.tops.truncate(len);
        self.rest.truncate(len);
        self.sums.truncate(len);
        self.wanted.truncate(len);
    }
}

impl Implementation {
    /// Adds `impact * factor / 256`, rounded up, to the sums of documents `ids`.
    pub(crate) fn scatter(&self, ids: &[[u8; 2]], impacts: &[u8], factor: u16, sums: &mut [u16; 1 << 16]) {
        trace::touch(ids.as_flattened(), 0..ids.len() * 2);
        trace::touch(impacts, 0..impacts.len());
        (self.scatter)(ids, impacts, factor, sums);
    }

    /// Zeroes the sums of documents whose bit in `wanted` is not set.
    pub(crate) fn mask(&self, wanted: &[u8], sums: &mut [u16]) {
        (self.mask)(wanted, sums);
    }

    /// Sets a bit per document whose sum is not 0, in words of 64.
    pub(crate) fn mark(&self, sums: &[u16], bits: &mut [u64]) {
        (self.mark)(sums, bits);
    }

    /// Writes an upper bound, in coarse units, of every block: the highest of its documents' `sums` plus the
    /// levels of all terms, as far as `scope` includes them, or 0 where the block's byte in `wanted` is 0.
    /// Writes the maximum of every 32 blocks to `highest`. Covers the whole chunks of `totals`. `inverse` is
    /// 65,536 / unit, rounded up.
    ///
    /// If the levels of one term are too short, no term is counted (the bytes were changed after they were
    /// checked).
    pub(crate) fn bounds(
        &self,
        BoundTerms { terms, first, scope }: BoundTerms<'_>,
        sums: &[u16],
        inverse: u16,
        wanted: &[u8],
        totals: &mut [u16],
        highest: &mut [u16],
    ) {
        let chunks = totals.len() / CHUNK_BLOCKS;
        let blocks = chunks * CHUNK_BLOCKS;
        let (totals, highest) = (&mut totals[..blocks], &mut highest[..blocks / MAXIMUM_BLOCKS]);
        let covered = |term: &BlockTerm<'_>| {
            term.levels.len() >= (first + chunks) * CHUNK_LEVELS
                && (scope != Scope::Wanted || term.bitmap.bits.len() >= (first + chunks) * CHUNK_BLOCKS)
        };
        let terms = if terms.iter().all(covered) { terms } else { &[] };
        if trace::ON {
            for chunk in first..first + chunks {
                terms.iter().for_each(|term| {
                    trace::touch(term.levels, chunk * CHUNK_LEVELS..(chunk + 1) * CHUNK_LEVELS)
                });
            }
        }
        let (sums, wanted) = (&sums[..blocks * BLOCK], &wanted[..blocks]);
        if scope == Scope::All {
            (self.bounds)(terms, first, sums, inverse, wanted, totals, highest);
        } else {
            (self.wanted_bounds)(
                terms,
                first,
                sums,
                inverse,
                wanted,
                scope == Scope::Wanted,
                totals,
                highest,
            );
        }
    }

    /// Upper bounds of the contribution of a term with this factor, one for each impact of `codes`: in coarse
    /// units of `unit` fine ones (2 to 2^16), rounded up, at most 255.
    pub(crate) fn coarse_bounds(&self, codes: &[u8; 16], factor: u16, unit: u32) -> [u8; 16] {
        (self.coarse_bounds)(codes, factor, unit)
    }

    /// Whether bounding only the wanted documents costs little more than bounding all.
    pub(crate) fn scopes(&self) -> bool {
        self.scopes
    }

    /// Starts scoring the blocks `ids`. Their sums are what the sparse terms contributed (`sums`, one per
    /// document); `rest` is what remains of the bounds `totals`, which were computed in `scope`. The sums of
    /// documents without a bit in `wanted` are 0 and stay so.
    ///
    /// # Panics
    /// When a block is not among `totals`, `sums` and `wanted`.
    #[expect(clippy::too_many_arguments, reason = "all that a bound was made of")]
    pub(crate) fn start(
        &self,
        ids: &[u32],
        totals: &[u16],
        sums: &[u16],
        wanted: &[u8],
        scope: Scope,
        inverse: u16,
        blocks: &mut Blocks,
    ) {
        let sums = sums.as_chunks::<BLOCK>().0;
        blocks.start(ids, wanted, totals.len().min(sums.len()), scope);
        (self.start)(totals, sums, inverse, blocks);
    }

    /// Appends the indexes, plus `first`, of the totals that are at least `floor`; `highest` holds the
    /// maximum of every 32.
    pub(crate) fn select(
        &self,
        totals: &[u16],
        highest: &[u16],
        floor: u16,
        first: u32,
        selected: &mut Vec<u32>,
    ) {
        (self.select)(totals, highest, floor, first, selected);
    }

    /// Replaces each number of a group of 32 totals by the index of the first total in it that equals the
    /// group's maximum, as [`Self::bounds`] wrote both.
    ///
    /// # Panics
    /// When a group is not among `totals` and `highest`.
    pub(crate) fn first_highest(&self, totals: &[u16], highest: &[u16], groups: &mut [u32]) {
        let totals = totals.as_chunks().0;
        let limit = totals.len().min(highest.len());
        assert!(groups.iter().all(|group| (*group as usize) < limit));
        (self.first_highest)(totals, highest, groups);
    }

    /// Adds a term to the sums of blocks and drops the blocks in which no document can reach `need`
    /// (fine) any more; a coarse unit is `unit` fine ones. `next` is the term that will be added next.
    ///
    /// Does nothing when the term's slices are too short (the bytes were changed after they were
    /// checked).
    pub(crate) fn add_blocks(
        &self,
        term: &BlockTerm<'_>,
        next: Option<&BlockTerm<'_>>,
        blocks: &mut Blocks,
        unit: u32,
        need: u32,
    ) {
        self.find_blocks(term, next, blocks);
        self.add_found(term, blocks, unit, need);
    }

    /// The first half of [`Self::add_blocks`]: finds the impacts and prefetches them and the next term's
    /// bits, so that the caller can find those of other blocks meanwhile.
    pub(crate) fn find_blocks(
        &self,
        term: &BlockTerm<'_>,
        next: Option<&BlockTerm<'_>>,
        blocks: &mut Blocks,
    ) {
        blocks.reach = 0;
        if term.covers(blocks.limit) {
            for id in blocks.ids.iter().filter(|_| trace::ON).map(|id| *id as usize) {
                trace::touch(term.bitmap.bits, id..id + 1);
                trace::touch(term.bitmap.ranks, id / 16 * 2..id / 16 * 2 + 2);
                trace::touch(term.bitmap.regions, id / 8192 * 4..id / 8192 * 4 + 4);
            }
            // Its other lines are the implementation's, block by block.
            next.into_iter().for_each(|next| next.bitmap.fetch_regions());
            (self.find_blocks)(term, next, blocks);
            blocks.reach = term.impacts.len();
        }
    }

    /// The second half of [`Self::add_blocks`]: adds the impacts that [`Self::find_blocks`] found for the
    /// same blocks and term.
    pub(crate) fn add_found(&self, term: &BlockTerm<'_>, blocks: &mut Blocks, unit: u32, need: u32) {
        let reach = std::mem::take(&mut blocks.reach);
        if reach > 0 && term.impacts.len() >= reach && term.covers(blocks.limit) {
            for place in blocks.places.iter().take(blocks.len()).filter(|_| trace::ON) {
                trace::touch(term.impacts, *place as usize..*place as usize + BLOCK);
            }
            (self.add_blocks)(term, blocks, unit, need);
        }
    }
}
