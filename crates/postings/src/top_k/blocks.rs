//! The search by bounds of blocks of 8 documents, in one segment or in several at once.
//!
//! 1. The sparse terms are added to the sums of all documents. Every block gets an upper bound of its
//!    documents' estimates: the highest of its sums, and the levels of the dense terms.
//! 2. The most promising blocks of all segments are scored, which gives nearly the final threshold (`seeds`).
//! 3. Part by part, the blocks whose bound reaches it are scored term by term, the highest terms
//!    first, and dropped as soon as sum and remaining bound fall below.
//!
//! Estimates are those of the window scan (see `pruned`), so that its error bounds hold here as well.
//! Bounds count in coarse units of `unit` estimate units, so that one term's bound fits a byte and
//! adding up the levels of 64 blocks is a table look-up in a register; they are rounded up. Both kinds of
//! unit are the same in all segments.

use std::ops::Range;

use super::candidates::{Errors, TopKCandidates};
use super::plan::{Plan, add_terms, coarse_unit};
use super::scratch::{BlockScratch, CHUNK_BLOCKS, OVERRUN, Scratch};
use super::search::{Clause, Search};
use super::threshold_priming;
use crate::kernels::{self, BlockTerm, Blocks, BoundTerms, MAXIMUM_BLOCKS, Scope};
use crate::layout::BLOCK;
use crate::record::Kind;

/// Highest `k` for which block bounds are used; for more hits, too many blocks have to be scored.
const MAX_K: usize = 1000;
/// Most query terms for which block bounds are used; the coarse sums could overflow with more.
const MAX_TERMS: usize = 256;
/// Blocks per part, whole windows. A part's blocks are selected and scored together: enough for their cache
/// misses to overlap, few enough for the sums of the remaining blocks to fit the L1 cache.
const PART: usize = (1 << 16) / BLOCK;
/// How many sparse terms ahead of the one that is being added are prefetched.
const FETCHED: usize = 3;

/// Whether bounds of blocks are likely to exclude most of them.
pub(super) fn are_useful(searches: &[Search<'_, '_, '_>]) -> bool {
    let docs: usize = searches.iter().map(|search| search.num_docs as usize).sum();
    searches.iter().all(|search| {
        let minimum = search.request.min_score.is_some_and(|minimum| minimum > 0.0);
        let k = search.request.k;
        k > 0
            && k <= MAX_K
            && k * 16 <= docs
            && search.clauses.len() <= MAX_TERMS
            // Judging every document by the minimum is the window scan's.
            && !(minimum && search.request.count_limit > 0)
    })
}

/// Collects the candidates of all segments. Returns false, with nothing collected, when there is no
/// threshold that excludes anything.
pub(super) fn collect(
    searches: &mut [Search<'_, '_, '_>],
    candidates: &mut TopKCandidates<'_>,
    scratch: &mut Scratch,
) -> bool {
    let mut block_scratch = std::mem::take(&mut scratch.blocks);
    let collected = collect_blocks(searches, &mut block_scratch, candidates, scratch);
    scratch.blocks = block_scratch;
    collected
}

fn collect_blocks(
    searches: &mut [Search<'_, '_, '_>],
    block_scratch: &mut BlockScratch,
    candidates: &mut TopKCandidates<'_>,
    scratch: &mut Scratch,
) -> bool {
    let unit = coarse_unit(searches.iter().flat_map(|search| search.clauses));
    let mut terms = Vec::with_capacity(searches.iter().map(|search| search.dense.len()).sum());
    searches.iter().for_each(|search| search.block_terms(unit, &mut terms));
    let (mut chunks, mut terms) = (0, &terms[..]);
    let mut plans = Vec::with_capacity(searches.len());
    for search in &mut *searches {
        let (of_segment, of_following) = terms.split_at(search.dense.len());
        terms = of_following;
        let first = chunks;
        chunks += (search.num_docs as usize).div_ceil(CHUNK_BLOCKS * BLOCK);
        search.sums_at = first * CHUNK_BLOCKS * BLOCK;
        plans.push(Plan::new(unit, first..chunks, search.scope(), of_segment));
    }
    block_scratch.resize(chunks);
    for (search, plan) in searches.iter_mut().zip(&plans) {
        if search.request.is_cancelled() {
            return true;
        }
        search.bound_blocks(plan, block_scratch, candidates.errors);
    }
    if let Some(first) = searches.first() {
        candidates.raise_to_score(first.request.floor());
    }
    threshold_priming::score(searches, &plans, block_scratch, candidates);
    if candidates.need() <= 0 {
        candidates.forget_from(0);
        return false;
    }
    collect_parts(searches, &plans, block_scratch, candidates, scratch);
    true
}

/// Selects and scores the blocks of all segments that can hold one of the best documents. Large segments are
/// processed part by part, small ones several at a time.
fn collect_parts(
    searches: &mut [Search<'_, '_, '_>],
    plans: &[Plan<'_, '_>],
    block_scratch: &mut BlockScratch,
    candidates: &mut TopKCandidates<'_>,
    scratch: &mut Scratch,
) {
    let mut next = 0;
    while next < plans.len() {
        let (first, mut blocks) = (next, 0);
        while next < plans.len() && (next == first || blocks + plans[next].blocks().len() <= PART) {
            blocks += plans[next].blocks().len();
            next += 1;
        }
        // Several have no more than one part's blocks together.
        for start in (0..blocks).step_by(PART) {
            let (searches, plans) = (&mut searches[first..next], &plans[first..next]);
            if !collect_part(searches, plans, start..start + PART, block_scratch, candidates, scratch) {
                return;
            }
        }
    }
}

/// Selects and scores a range of each segment's blocks. Returns whether later ranges can still hold one of
/// the best documents.
fn collect_part(
    searches: &mut [Search<'_, '_, '_>],
    plans: &[Plan<'_, '_>],
    range: Range<usize>,
    block_scratch: &mut BlockScratch,
    candidates: &mut TopKCandidates<'_>,
    scratch: &mut Scratch,
) -> bool {
    let mut all = block_scratch.take_blocks(plans.len());
    let scored = &mut all[..plans.len()];
    let mut goes_on = true;
    for ((search, plan), blocks) in searches.iter_mut().zip(plans).zip(&mut *scored) {
        let range = range.start..range.end.min(plan.blocks().len());
        block_scratch.selected.clear();
        match candidates.coarse(plan.unit).filter(|_| goes_on && !search.request.is_cancelled()) {
            Some(floor) => plan.select(block_scratch, range.clone(), floor),
            None => goes_on = false,
        }
        if block_scratch.selected.len() as f64 > range.len() as f64 * kernels::chosen().scanned_share() {
            search.scan_blocks(range, block_scratch, candidates, scratch);
            block_scratch.selected.clear();
        }
        plan.start_blocks(block_scratch, &block_scratch.selected, blocks);
    }
    add_terms(plans, scored, |_, blocks| {
        blocks.iter().any(|blocks| blocks.len() > 0).then(|| candidates.needed())
    });
    searches.iter().zip(&*scored).for_each(|(search, blocks)| search.take(blocks, candidates));
    block_scratch.blocks = all;
    candidates.share();
    goes_on
}

impl<'a> Search<'_, 'a, '_> {
    /// Scans all documents of a range of blocks, whole chunks.
    fn scan_blocks(
        &mut self,
        blocks: Range<usize>,
        block_scratch: &BlockScratch,
        candidates: &mut TopKCandidates<'_>,
        scratch: &mut Scratch,
    ) {
        let words = (self.num_docs as usize).div_ceil(64);
        let window = self.window_size as usize / 64;
        for start in (blocks.start / 8..(blocks.end / 8).min(words)).step_by(window) {
            let groups = window.min(words - start);
            let first = self.sums_at + start * 64;
            let state = block_scratch.state(first..first + groups * 64);
            self.window(start, groups, false, Some(state), candidates, scratch);
        }
    }

    /// Appends the dense terms in the form that the block kernels take, highest bound first.
    pub(super) fn block_terms(&self, unit: u32, terms: &mut Vec<BlockTerm<'a>>) {
        let kernels = kernels::chosen();
        terms.extend(self.dense.iter().map(|i| {
            let Clause { postings, factor, .. } = &self.clauses[*i];
            BlockTerm {
                bitmap: postings.bitmap(),
                levels: postings.levels(),
                impacts: postings.impacts(),
                bounds: kernels.coarse_bounds(&postings.codes, *factor, unit),
                factor: *factor,
            }
        }));
    }

    /// Adds up the sparse terms and computes the bounds of all blocks, window by window, so that the sums
    /// are still in the second level cache when they are read.
    fn bound_blocks(&mut self, plan: &Plan<'_, '_>, block_scratch: &mut BlockScratch, errors: Errors) {
        let blocks = plan.blocks();
        let BlockScratch { sums, totals, highest, wanted, .. } = block_scratch;
        let sums = &mut sums[blocks.start * BLOCK..];
        let totals = &mut totals[blocks.clone()];
        let highest = &mut highest[blocks.start / MAXIMUM_BLOCKS..blocks.end / MAXIMUM_BLOCKS];
        let wanted = &mut wanted[blocks.start / 8..blocks.end / 8];
        self.request.write_allowed(self.num_docs as usize, 0, wanted);
        let wanted = wanted.as_flattened();
        let window = self.window_size as usize;
        // Bounds of documents that are not wanted would keep many blocks.
        let masked = self.request.filter.is_some() && plan.scope == Scope::All;
        for (number, first) in (0..self.num_docs as usize).step_by(window).enumerate() {
            let end = (first + window).next_multiple_of(CHUNK_BLOCKS * BLOCK).min(blocks.len() * BLOCK);
            let Some(sums) = sums[first..].first_chunk_mut::<OVERRUN>() else { return };
            self.fetch_first_sparse(number);
            sums[..end - first].fill(0);
            self.scatter_sparse(number, sums);
            let range = first / BLOCK..end / BLOCK;
            if masked {
                kernels::chosen().mask(&wanted[range.clone()], &mut sums[..end - first]);
            }
            kernels::chosen().bounds(
                BoundTerms { terms: plan.dense, first: range.start / CHUNK_BLOCKS, scope: plan.scope },
                &sums[..end - first],
                plan.inverse,
                &wanted[range.clone()],
                &mut totals[range.clone()],
                &mut highest[range.start / MAXIMUM_BLOCKS..range.end / MAXIMUM_BLOCKS],
            );
        }
        if let Some(bounds) = self.bounds.as_deref_mut() {
            bounds.set(totals, plan.unit, errors.units, errors.above);
        }
    }

    /// Prefetches the postings of the first [`FETCHED`] sparse terms in a window.
    pub(super) fn fetch_first_sparse(&self, number: usize) {
        (0..FETCHED).for_each(|other| self.fetch_sparse(number, other));
    }

    /// Prefetches the postings of the `other`-th term that is not dense in a window, if it exists and is
    /// sparse.
    fn fetch_sparse(&self, number: usize, other: usize) {
        let clause = self.others.get(other).map(|i| &self.clauses[*i]);
        if let Some(Clause { postings, .. }) = clause.filter(|clause| clause.postings.kind() == Kind::Sparse)
        {
            postings.fetch_window(number);
        }
    }

    /// Adds the terms that are not dense to the sums of the documents of a window.
    pub(super) fn scatter_sparse(&self, number: usize, sums: &mut [u16; OVERRUN]) {
        for (at, i) in self.others.iter().enumerate() {
            self.fetch_sparse(number, at + FETCHED);
            let Clause { postings, factor, .. } = &self.clauses[*i];
            if postings.kind() == Kind::Sparse {
                let (ids, impacts) = postings.in_window(number);
                kernels::chosen().scatter(ids, impacts, *factor, sums);
                continue;
            }
            let first = number as u32 * self.window_size;
            postings.for_range(first, first.saturating_add(self.window_size), |doc, position| {
                if let Some(sum) = sums.get_mut(doc.wrapping_sub(first) as usize) {
                    let impact = u32::from(postings.impact_at(position));
                    *sum = sum.wrapping_add(((impact * u32::from(*factor) + 255) >> 8) as u16);
                }
            });
        }
    }

    /// Adds the scored documents that can be among the best to the candidates. Unwanted documents have the
    /// sum 0 and are skipped.
    pub(super) fn take(&self, blocks: &Blocks, candidates: &mut TopKCandidates<'_>) {
        for (id, sums) in blocks.ids().iter().zip(blocks.sums()) {
            if i64::from(sums.iter().copied().fold(0, u16::max)) < candidates.need() {
                continue;
            }
            for (doc, estimate) in (*id * BLOCK as u32..).zip(sums) {
                if *estimate > 0 && i64::from(*estimate) >= candidates.need() {
                    candidates.push(*estimate, self.segment, doc);
                }
            }
        }
    }
}
