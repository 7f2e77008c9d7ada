//! The blocks that are scored first, which gives nearly the final threshold.

use std::ops::Deref;

use super::blocks::{BlockScratch, MAXIMUM_BLOCKS, Plan};
use super::pruned::Search;
use crate::kernels;

/// Blocks scored first.
const SEEDS: usize = 64;
/// Blocks scored first when there is a threshold.
const FEW_SEEDS: usize = 16;
/// Terms between two looks at what the blocks have so far.
const TERMS_BETWEEN: usize = 3;

/// Scores the best block of each of the best groups of all segments, and takes what it finds as candidates.
pub(super) fn score<B>(searches: &mut [Search<'_, '_, B>], plans: &[Plan<'_>], own: &mut BlockScratch)
where
    B: Deref<Target = [u8]> + Clone + Send + Sync,
{
    let (Some(first), Some(Plan { unit, .. })) = (searches.first(), plans.first()) else { return };
    let (k, unit) = (first.request.k, *unit);
    // What other segments found is a threshold already.
    let seeds = if first.need > 0 { FEW_SEEDS } else { SEEDS.max(k * 2) };
    choose(own, (first.need.max(1) as u64).div_ceil(u64::from(unit)), seeds);
    let mut seeds = std::mem::take(&mut own.seeds);
    seeds.resize_with(seeds.len().max(plans.len()), Default::default);
    let mut rest = &own.selected[..];
    for ((search, plan), blocks) in searches.iter_mut().zip(plans).zip(&mut seeds) {
        let (start, end) = (plan.blocks().start as u32, plan.blocks().end as u32);
        let (ids, others) = rest.split_at(rest.partition_point(|id| *id < end));
        rest = others;
        search.seeds.extend(ids.iter().map(|id| id - start));
        own.start_blocks(plan, &search.seeds, blocks);
    }
    let kernels = kernels::chosen();
    let terms = plans.iter().map(|plan| plan.dense.len()).max().unwrap_or(0);
    for i in 0..terms {
        if i % TERMS_BETWEEN == TERMS_BETWEEN - 1 {
            own.best.clear();
            seeds[..plans.len()].iter().for_each(|blocks| own.best.extend_from_slice(blocks.tops()));
            // Documents of different blocks: what was added up is no more than their estimates will be.
            if let Some(place) = own.best.len().checked_sub(k) {
                let (_, kth, _) = own.best.select_nth_unstable(place);
                searches[0].raise_need_to(*kth);
            }
        }
        let need = searches[0].need.clamp(0, i64::from(u32::MAX)) as u32;
        // All places first: what they need is then fetched together.
        for (plan, blocks) in plans.iter().zip(&mut seeds) {
            if let Some(term) = plan.dense.get(i) {
                kernels.find_blocks(term, plan.dense.get(i + 1), blocks);
            }
        }
        for (plan, blocks) in plans.iter().zip(&mut seeds) {
            if let Some(term) = plan.dense.get(i) {
                kernels.add_found(term, blocks, unit, need);
            }
        }
    }
    Search::one_after_another(searches, |at, search| search.take(&seeds[at]));
    own.selected.iter().for_each(|id| own.totals[*id as usize] = 0);
    own.seeds = seeds;
}

/// Selects the best block of each of the `wanted` best groups of 32, of those whose bound reaches `floor`.
fn choose(own: &mut BlockScratch, floor: u64, wanted: usize) {
    let BlockScratch { totals, highest, selected, .. } = own;
    selected.clear();
    let most = highest.iter().copied().max().unwrap_or(0);
    let Ok(floor) = u16::try_from(floor) else { return };
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
    for (group, highest) in highest.iter().enumerate() {
        let own_step = usize::from(highest >> shift);
        if own_step < step || *highest < floor {
            continue;
        }
        if own_step == step {
            if room == 0 {
                continue;
            }
            room -= 1;
        }
        let (first, len) = (group * MAXIMUM_BLOCKS, selected.len());
        let totals = &totals[first..first + MAXIMUM_BLOCKS];
        kernels::chosen().select(totals, &[*highest], *highest, first as u32, selected);
        selected.truncate(len + 1);
    }
}
