//! Scores the most promising blocks first, which gives nearly the final threshold.

use super::candidates::TopKCandidates;
use super::plan::{Plan, add_terms};
use super::scratch::BlockScratch;
use super::search::Search;
use crate::kernels;

/// Number of blocks that are scored first.
const SEEDS: usize = 64;
/// Number of blocks that are scored first when there is already a threshold.
const FEW_SEEDS: usize = 16;
/// Terms that are added between attempts to raise the threshold from partial sums.
const TERMS_BETWEEN: usize = 3;

/// Scores the best block of each of the best groups of 32 blocks of all segments, and adds the documents
/// found to the candidates.
pub(super) fn score(
    searches: &[Search<'_, '_, '_>],
    plans: &[Plan<'_, '_>],
    block_scratch: &mut BlockScratch,
    candidates: &mut TopKCandidates<'_>,
) {
    let (Some(first), Some(Plan { unit, .. })) = (searches.first(), plans.first()) else { return };
    let k = first.request.k;
    // What other segments found is a threshold already.
    let wanted = if candidates.need() > 0 { FEW_SEEDS } else { SEEDS.max(k * 2) };
    choose(block_scratch, candidates.coarse(*unit), wanted);
    let mut seeds = block_scratch.take_blocks(plans.len());
    let mut end_of_segment = 0;
    for (plan, blocks) in plans.iter().zip(&mut seeds) {
        let (start, end) = (plan.blocks().start as u32, plan.blocks().end as u32);
        let first = end_of_segment;
        end_of_segment += block_scratch.selected[end_of_segment..].partition_point(|id| *id < end);
        block_scratch.selected[first..end_of_segment].iter_mut().for_each(|id| *id -= start);
        plan.start_blocks(block_scratch, &block_scratch.selected[first..end_of_segment], blocks);
        // None is looked at again.
        for id in &block_scratch.selected[first..end_of_segment] {
            block_scratch.totals[(start + id) as usize] = 0;
            block_scratch.wanted.as_flattened_mut()[(start + id) as usize] = 0;
        }
    }
    let best = &mut block_scratch.best;
    let seeds_now = &mut seeds[..plans.len()];
    add_terms(plans, seeds_now, |i, seeds| {
        if i % TERMS_BETWEEN == TERMS_BETWEEN - 1 {
            best.clear();
            seeds.iter().for_each(|blocks| best.extend_from_slice(blocks.tops()));
            // Documents of different blocks: what was added up is no more than their estimates will be.
            if let Some(place) = best.len().checked_sub(k) {
                let (_, kth, _) = best.select_nth_unstable(place);
                candidates.raise_to(*kth);
            }
        }
        Some(candidates.needed())
    });
    searches.iter().zip(&*seeds_now).for_each(|(search, blocks)| search.take(blocks, candidates));
    block_scratch.blocks = seeds;
}

/// Selects the best block of each of the `wanted` best groups of 32 whose bound reaches `floor`.
fn choose(block_scratch: &mut BlockScratch, floor: Option<u16>, wanted: usize) {
    let BlockScratch { totals, highest, selected, .. } = block_scratch;
    selected.clear();
    let most = highest.iter().copied().max().unwrap_or(0);
    let Some(floor) = floor.map(|floor| floor.max(1)) else { return };
    if most < floor {
        return;
    }
    // Groups by their bound, in 128 to 256 steps.
    let shift = (16 - most.leading_zeros()).saturating_sub(8);
    let mut counts = [0_u32; 256];
    highest.iter().for_each(|highest| counts[usize::from(highest >> shift) & 255] += 1);
    let (mut step, mut above) = (usize::from(most >> shift), 0);
    while step > 0 && above + counts[step] as usize <= wanted {
        above += counts[step] as usize;
        step -= 1;
    }
    // All groups above the step, and of it as many as are wanted.
    let mut room = wanted - above.min(wanted);
    for (group, highest) in (0..).zip(&*highest) {
        let step_of_group = usize::from(highest >> shift);
        if step_of_group < step || *highest < floor {
            continue;
        }
        if step_of_group == step {
            if room == 0 {
                continue;
            }
            room -= 1;
        }
        selected.push(group);
    }
    kernels::chosen().first_highest(totals, highest, selected);
}
