//! What scoring blocks of a segment needs: the terms, their units, and the segment's place among the others.

use std::ops::Range;

use super::scratch::{BlockScratch, CHUNK_BLOCKS};
use super::search::Clause;
use crate::kernels::{self, BlockTerm, Blocks, MAXIMUM_BLOCKS, Scope};
use crate::layout::BLOCK;

/// Inputs of a query's bounds and sums in one segment.
pub(super) struct Plan<'p, 'a> {
    /// The segment's range among the chunks of all segments.
    chunks: Range<usize>,
    pub(super) unit: u32,
    /// 65,536 / unit, rounded up.
    pub(super) inverse: u16,
    /// Which documents the block bounds cover.
    pub(super) scope: Scope,
    /// Dense terms, highest bound first.
    pub(super) dense: &'p [BlockTerm<'a>],
}

impl<'p, 'a> Plan<'p, 'a> {
    pub(super) fn new(unit: u32, chunks: Range<usize>, scope: Scope, dense: &'p [BlockTerm<'a>]) -> Self {
        Self { chunks, unit, inverse: 65_536_u32.div_ceil(unit) as u16, scope, dense }
    }

    /// The segment's range among the blocks of all segments.
    pub(super) fn blocks(&self) -> Range<usize> {
        self.chunks.start * CHUNK_BLOCKS..self.chunks.end * CHUNK_BLOCKS
    }

    /// Selects the blocks of a range of a segment (whole chunks) whose bounds reach `floor`, in coarse units.
    pub(super) fn select(&self, scratch: &mut BlockScratch, blocks: Range<usize>, floor: u16) {
        scratch.selected.clear();
        let range = self.blocks().start + blocks.start..self.blocks().start + blocks.end;
        let highest = &scratch.highest[range.start / MAXIMUM_BLOCKS..range.end / MAXIMUM_BLOCKS];
        let first = blocks.start as u32;
        kernels::chosen().select(&scratch.totals[range], highest, floor, first, &mut scratch.selected);
    }

    /// Starts scoring the blocks `ids` of a segment.
    pub(super) fn start_blocks(&self, scratch: &BlockScratch, ids: &[u32], blocks: &mut Blocks) {
        if let Some(term) = self.dense.first() {
            term.fetch(ids);
        }
        let docs = self.chunks.start * CHUNK_BLOCKS * BLOCK..self.chunks.end * CHUNK_BLOCKS * BLOCK;
        let totals = &scratch.totals[self.blocks()];
        let wanted = &scratch.wanted.as_flattened()[self.blocks()];
        kernels::chosen().start(ids, totals, &scratch.sums[docs], wanted, self.scope, self.inverse, blocks);
    }
}

/// Estimate units per coarse unit: the fewest for which every term's bound fits a byte, at least 2.
pub(super) fn coarse_unit<'s, 'a: 's>(clauses: impl Iterator<Item = &'s Clause<'a>>) -> u32 {
    clauses.map(|clause| clause.bound + 1).max().unwrap_or(1).div_ceil(255).max(2)
}

/// Adds all terms to the blocks of the segments, highest bound first. Before each, `need(number of the term,
/// blocks)` gives the estimate that a document must still reach; blocks that cannot are dropped, and `None`
/// stops.
pub(super) fn add_terms(
    plans: &[Plan<'_, '_>],
    blocks: &mut [Blocks],
    mut need: impl FnMut(usize, &[Blocks]) -> Option<u32>,
) {
    let kernels = kernels::chosen();
    let terms = plans.iter().map(|plan| plan.dense.len()).max().unwrap_or(0);
    for i in 0..terms {
        let Some(need) = need(i, blocks) else { return };
        // All places first: what they need is then fetched together.
        for (plan, blocks) in plans.iter().zip(&mut *blocks) {
            if let Some(term) = plan.dense.get(i).filter(|_| blocks.len() > 0) {
                kernels.find_blocks(term, plan.dense.get(i + 1), blocks);
            }
        }
        for (plan, blocks) in plans.iter().zip(&mut *blocks) {
            if let Some(term) = plan.dense.get(i).filter(|_| blocks.len() > 0) {
                kernels.add_found(term, blocks, plan.unit, need);
            }
        }
    }
}
