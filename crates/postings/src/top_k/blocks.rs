//! The search by bounds of blocks of 8 documents.
//!
//! 1. The sparse terms are added to the sums of all documents. Every block gets an upper bound of its
//!    documents' estimates: the highest of its sums, and the levels of the dense terms.
//! 2. The most promising blocks ([`SEEDS`]) are scored, which gives nearly the final threshold.
//! 3. Window by window, the blocks whose bound reaches it are scored term by term, the highest terms
//!    first, and dropped as soon as sum and remaining bound fall below.
//!
//! Estimates are those of the window scan (see `pruned`), so that its error bounds hold here as well.
//! Bounds count in coarse units of `unit` estimate units, so that one term's bound fits a byte and
//! adding up the levels of 64 blocks is a table look-up in a register; they are rounded up.

use std::ops::Deref;

use super::pruned::{Clause, Search};
use crate::kernels::{self, BLOCK, BlockTerm, Blocks, BoundTerm, Scope};
use crate::term::Kind;

/// Blocks scored first.
const SEEDS: usize = 64;
/// Blocks scored first when there is a threshold.
const FEW_SEEDS: usize = 16;
/// With more hits wanted than this, the blocks that hold them are no small part of all.
const MAX_K: usize = 1000;
/// With more terms the coarse sums could overflow.
const MAX_TERMS: usize = 256;
/// A window of which more than this share of the blocks stays is scanned as a whole.
const SCANNED_SHARE: f64 = 0.35;
/// Blocks of a chunk.
const CHUNK_BLOCKS: usize = 128;
/// Blocks that share a maximum.
const MAXIMUM_BLOCKS: usize = 32;
/// Blocks of a part, whole windows: so many are selected and scored together, that fetching what they
/// need overlaps, and the sums of those that stay fit the first level cache.
const PART: usize = (1 << 16) / BLOCK;
/// Documents that a damaged id can point behind its window's first.
const OVERRUN: usize = 1 << 16;

/// Memory of a search, kept for the next.
#[derive(Default)]
pub(super) struct BlockScratch {
    /// Sums of the sparse terms, per document.
    sums: Vec<u16>,
    /// Coarse bound of a block.
    totals: Vec<u16>,
    /// Highest of 32 bounds.
    highest: Vec<u16>,
    /// Bit per document that may be found.
    wanted: Vec<[u8; 8]>,
    selected: Vec<u32>,
    /// Of every block that is being scored, the highest sum.
    best: Vec<u16>,
    blocks: Blocks,
}

impl BlockScratch {
    /// Starts scoring the selected blocks.
    fn start(&mut self, plan: &Plan<'_>) {
        let Self { sums, totals, wanted, selected, blocks, .. } = self;
        if let Some(term) = plan.dense.first() {
            term.fetch(selected);
        }
        kernels::chosen().start(
            selected,
            totals,
            sums,
            wanted.as_flattened(),
            plan.scope,
            plan.inverse,
            blocks,
        );
    }

    /// Sums of the documents of some words.
    pub(super) fn sums_of_words(&self, words: std::ops::Range<usize>) -> &[u16] {
        self.sums.get(words.start * 64..words.end * 64).unwrap_or(&[])
    }
}

/// What bounds and sums of this query are made of.
pub(super) struct Plan<'a> {
    pub(super) unit: u32,
    /// 65,536 / unit, rounded up.
    pub(super) inverse: u16,
    /// Which documents bounds are of.
    scope: Scope,
    bounds: Vec<BoundTerm<'a>>,
    /// Highest bound first.
    pub(super) dense: Vec<BlockTerm<'a>>,
}

impl<'a, B> Search<'a, '_, B>
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    /// Whether bounds of blocks are likely to exclude most of them.
    pub(super) fn has_useful_blocks(&self) -> bool {
        let minimum = self.request.min_score.is_some_and(|minimum| minimum > 0.0);
        let docs = self.reader.num_docs() as usize;
        let k = self.request.k;
        k > 0
            && k <= MAX_K
            && k * 16 <= docs
            && self.clauses.len() <= MAX_TERMS
            // Judging every document by the minimum is the window scan's.
            && !(minimum && self.request.count_limit > 0)
    }

    /// Collects the candidates. Returns false, with nothing collected, when there is no threshold that
    /// excludes anything.
    pub(super) fn collect_by_blocks(&mut self, scratch: &mut super::pruned::Scratch) -> bool {
        let mut own = std::mem::take(&mut scratch.blocks);
        let found = self.collect_blocks(&mut own, scratch);
        scratch.blocks = own;
        self.seeds.clear();
        found
    }

    fn collect_blocks(&mut self, own: &mut BlockScratch, scratch: &mut super::pruned::Scratch) -> bool {
        let plan = Plan { scope: self.scope(), ..self.plan() };
        let chunks = (self.reader.num_docs() as usize).div_ceil(CHUNK_BLOCKS * BLOCK);
        self.fill_wanted(chunks, &mut own.wanted);
        let docs = chunks * CHUNK_BLOCKS * BLOCK;
        if own.sums.len() < docs + OVERRUN {
            own.sums.resize(docs + OVERRUN, 0);
        }
        // Bounds of documents that are not wanted would keep many blocks.
        let masked = self.request.filter.is_some() && plan.scope == Scope::All;
        self.scatter_sparse(masked.then_some(own.wanted.as_flattened()), &mut own.sums);
        own.totals.resize(chunks * CHUNK_BLOCKS, 0);
        own.highest.resize(chunks * CHUNK_BLOCKS / MAXIMUM_BLOCKS, 0);
        kernels::chosen().bounds(
            &plan.bounds,
            &own.sums,
            plan.inverse,
            own.wanted.as_flattened(),
            plan.scope,
            &mut own.totals,
            &mut own.highest,
        );
        if let Some(bounds) = self.bounds.as_deref_mut() {
            bounds.set(&own.totals, plan.unit, self.errors.units, self.errors.above);
        }
        self.raise_need(self.request.floor());
        self.score_seeds(&plan, own);
        if self.need <= 0 {
            self.forget();
            return false;
        }
        let blocks = (self.reader.num_docs() as usize).div_ceil(BLOCK);
        for first in (0..blocks).step_by(PART) {
            if self.request.is_cancelled() {
                return true;
            }
            let end = (first + PART).min(own.totals.len());
            let range = first..end;
            // A bound is at most 65,535 units.
            let Ok(floor) = u16::try_from((self.need as u64).div_ceil(u64::from(plan.unit))) else {
                return true;
            };
            own.selected.clear();
            let groups = first / MAXIMUM_BLOCKS..end / MAXIMUM_BLOCKS;
            kernels::chosen().select(
                &own.totals[range.clone()],
                &own.highest[groups],
                floor,
                first as u32,
                &mut own.selected,
            );
            if own.selected.is_empty() {
                continue;
            }
            if own.selected.len() as f64 > range.len() as f64 * SCANNED_SHARE {
                let words = (self.reader.num_docs() as usize).div_ceil(64);
                let window = self.reader.window() as usize / 64;
                for start in (first / 8..(end / 8).min(words)).step_by(window) {
                    self.window(start, window.min(words - start), false, scratch);
                }
            } else {
                self.score_part(&plan, own);
                self.share();
            }
        }
        true
    }

    pub(super) fn plan(&self) -> Plan<'a> {
        let reader = self.reader;
        let highest = self.clauses.iter().map(|clause| clause.bound + 1).max().unwrap_or(1);
        let unit = highest.div_ceil(255).max(2);
        let inverse = 65_536_u32.div_ceil(unit) as u16;
        let mut plan = Plan { unit, inverse, scope: Scope::All, bounds: Vec::new(), dense: Vec::new() };
        for i in &self.dense {
            let Clause { postings, factor, .. } = &self.clauses[*i];
            let bound = |code: u8| ((u32::from(code) * u32::from(*factor)) >> 8).div_ceil(unit);
            let bounds = postings.codes.map(|code| bound(code).min(255) as u8);
            plan.bounds.push(BoundTerm { levels: postings.levels, bitmap: postings.docs, bounds });
            plan.dense.push(BlockTerm {
                bitmap: postings.docs,
                ranks: postings.ranks,
                regions: postings.directory,
                levels: postings.levels,
                impacts: reader.bytes().get(postings.impacts_at..).unwrap_or(&[]),
                bounds,
                factor: *factor,
            });
        }
        plan
    }

    /// Bit per document that is live and wanted; none behind the last document.
    fn fill_wanted(&self, chunks: usize, wanted: &mut Vec<[u8; 8]>) {
        wanted.clear();
        let docs = self.reader.num_docs() as usize;
        if self.request.live.is_none() && self.request.filter.is_none() {
            wanted.resize(docs.div_ceil(64), [u8::MAX; 8]);
        } else {
            let words = docs.div_ceil(64);
            let mut given = [self.request.filter, self.request.live].into_iter().flatten();
            wanted.extend(given.next().unwrap_or(&[]).iter().take(words).map(|word| word.to_le_bytes()));
            if let Some(more) = given.next() {
                wanted.truncate(more.len());
                for (word, more) in wanted.iter_mut().zip(more) {
                    *word = (u64::from_le_bytes(*word) & more).to_le_bytes();
                }
            }
            wanted.resize(words, [0; 8]);
        }
        if !docs.is_multiple_of(64)
            && let Some(last) = wanted.last_mut()
        {
            *last = (u64::from_le_bytes(*last) & (u64::MAX >> (64 - docs % 64))).to_le_bytes();
        }
        wanted.resize(chunks * CHUNK_BLOCKS / 8, [0; 8]);
    }

    /// Adds the sparse terms to the sums of their documents, of those with a bit in `wanted` alone (apart
    /// from rare terms).
    fn scatter_sparse(&self, wanted: Option<&[u8]>, sums: &mut [u16]) {
        let window = self.reader.window() as usize;
        for (number, first) in (0..self.reader.num_docs() as usize).step_by(window).enumerate() {
            let Some(sums) = sums[first..].first_chunk_mut::<OVERRUN>() else { return };
            sums[..window.next_multiple_of(CHUNK_BLOCKS * BLOCK)].fill(0);
            for i in &self.others {
                let Clause { postings, factor, .. } = &self.clauses[*i];
                if postings.kind == Kind::Sparse {
                    let range = postings.window_range(number);
                    let ids = postings.docs.get(range.start * 2..range.end * 2).unwrap_or(&[]);
                    let impacts = postings.impacts.get(range).unwrap_or(&[]);
                    kernels::chosen().scatter(ids.as_chunks::<2>().0, impacts, *factor, sums);
                }
            }
            // While they are in the first level cache.
            if let Some(wanted) = wanted {
                kernels::chosen().mask(&wanted[first / BLOCK..], &mut sums[..window]);
            }
        }
        for i in &self.others {
            let Clause { postings, factor, .. } = &self.clauses[*i];
            // The few of a rare term.
            for position in 0..if postings.kind == Kind::Sparse { 0 } else { postings.df as usize } {
                if let Some(sum) = sums.get_mut(postings.rare_doc_at(position) as usize) {
                    let impact = u32::from(postings.impact_at(position));
                    *sum = sum.wrapping_add(((impact * u32::from(*factor) + 255) >> 8) as u16);
                }
            }
        }
    }

    /// Scores the best block of each of the best groups, and takes what it finds as candidates.
    fn score_seeds(&mut self, plan: &Plan<'_>, own: &mut BlockScratch) {
        // What other segments found is a threshold already.
        let seeds = if self.need > 0 { FEW_SEEDS } else { SEEDS.max(self.request.k * 2) };
        let needed = self.need.max(1) as u64;
        let mut groups: Vec<u64> = (0_u64..)
            .zip(&own.highest)
            .filter(|(_, highest)| u64::from(**highest) * u64::from(plan.unit) >= needed)
            .map(|(group, highest)| u64::from(*highest) << 32 | group)
            .collect();
        if groups.len() > seeds {
            groups.select_nth_unstable_by(seeds, |a, b| b.cmp(a));
            groups.truncate(seeds);
        }
        own.selected.clear();
        for key in groups {
            let (highest, first) = ((key >> 32) as u16, (key & 0xffff_ffff) as usize * MAXIMUM_BLOCKS);
            let totals = &own.totals[first..first + MAXIMUM_BLOCKS];
            own.selected
                .extend(totals.iter().position(|total| *total == highest).map(|at| (first + at) as u32));
        }
        own.selected.sort_unstable();
        own.start(plan);
        for (i, term) in plan.dense.iter().enumerate() {
            if i % 3 == 2 {
                self.raise_need_by_sums(own);
            }
            let need = self.need.clamp(0, i64::from(u32::MAX)) as u32;
            kernels::chosen().add_blocks(term, plan.dense.get(i + 1), &mut own.blocks, plan.unit, need);
        }
        self.take(own);
        own.selected.iter().for_each(|id| own.totals[*id as usize] = 0);
        self.seeds.extend_from_slice(&own.selected);
    }

    /// Raises what is needed by documents of different blocks: what was added up is no more than their
    /// estimates will be.
    fn raise_need_by_sums(&mut self, own: &mut BlockScratch) {
        let wanted = own.wanted.as_flattened();
        let BlockScratch { best, blocks, .. } = own;
        best.clear();
        for (id, sums) in blocks.ids().iter().zip(blocks.sums()) {
            let bits = wanted[*id as usize];
            let sums =
                sums.iter().enumerate().map(|(lane, sum)| if bits >> lane & 1 == 1 { *sum } else { 0 });
            best.push(sums.fold(0, u16::max));
        }
        if let Some(place) = best.len().checked_sub(self.request.k) {
            let (_, kth, _) = best.select_nth_unstable(place);
            self.raise_need_to(*kth);
        }
    }

    /// Scores the selected blocks.
    fn score_part(&mut self, plan: &Plan<'_>, own: &mut BlockScratch) {
        own.start(plan);
        let need = self.need.clamp(0, i64::from(u32::MAX)) as u32;
        for (i, term) in plan.dense.iter().enumerate() {
            kernels::chosen().add_blocks(term, plan.dense.get(i + 1), &mut own.blocks, plan.unit, need);
            if own.blocks.len() == 0 {
                return;
            }
        }
        self.take(own);
    }

    /// Takes the scored documents that are wanted and can be among the best as candidates.
    fn take(&mut self, own: &BlockScratch) {
        let wanted = own.wanted.as_flattened();
        for (id, sums) in own.blocks.ids().iter().zip(own.blocks.sums()) {
            let mut bits = wanted[*id as usize];
            while bits != 0 {
                let lane = bits.trailing_zeros();
                bits &= bits - 1;
                let estimate = sums[lane as usize];
                if estimate > 0 && i64::from(estimate) >= self.need {
                    self.push(estimate, *id * BLOCK as u32 + lane);
                }
            }
        }
    }
}
