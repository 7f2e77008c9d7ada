//! Scalar reference implementation: the simplest correct loops.

use super::blocks::{MAXIMUM_BLOCKS, Scope, coarse};
use super::{BlockTerm, Blocks, DenseTerm, GROUP, Implementation, SparseIds, documents, lane};
use crate::bytes::u64_at;
use crate::layout::{BLOCK, Place, Posting, level_place};

pub(super) fn implementation() -> Implementation {
    Implementation {
        name: "scalar",
        scanned_share: 0.35,
        add_dense,
        to_lanes,
        nonzero,
        at_least,
        rank,
        scatter,
        mask,
        mark,
        bounds,
        wanted_bounds,
        scopes: false,
        coarse_bounds,
        start,
        select,
        first_highest,
        find_blocks,
        add_blocks,
        count: documents::count,
        find_dense: documents::find_dense,
        find_sparse,
        list: documents::list,
        highest: documents::highest,
        bound_documents: documents::bound_documents,
        strict: 16,
    }
}

fn add_dense(sums: &mut [u16], wanted: &[u64], terms: &[DenseTerm<'_>]) {
    for term in terms {
        let mut impacts = term.impacts.iter();
        for (group, (sums, wanted)) in sums.chunks_exact_mut(GROUP).zip(wanted).enumerate() {
            let mut bits = u64_at(term.bitmap, group * 8);
            while bits != 0 {
                let lane = usize::from(lane(bits.trailing_zeros() as u16));
                let impact = impacts.next().copied().filter(|_| *wanted != 0).unwrap_or(0);
                sums[lane] =
                    sums[lane].wrapping_add(((u32::from(impact) * u32::from(term.factor)) >> 8) as u16);
                bits &= bits - 1;
            }
        }
    }
}

pub(super) fn to_lanes(sums: &[[u16; GROUP]], lanes: &mut [[u16; GROUP]]) {
    for (sums, lanes) in sums.iter().zip(lanes) {
        let (even, odd) = lanes.split_at_mut(GROUP / 2);
        for ((pair, even), odd) in sums.as_chunks::<2>().0.iter().zip(even).zip(odd) {
            (*even, *odd) = (pair[0], pair[1]);
        }
    }
}

fn nonzero(sums: &[u16], bits: &mut [u64]) {
    at_least(sums, 1, bits);
}

fn at_least(sums: &[u16], floor: u16, bits: &mut [u64]) {
    for (sums, word) in sums.chunks_exact(GROUP).zip(bits) {
        *word = 0;
        for document in 0..GROUP {
            *word |= u64::from(sums[usize::from(lane(document as u16))] >= floor) << document;
        }
    }
}

pub(super) fn find_sparse(
    list: &SparseIds<'_>,
    places: &[Place],
    first: u32,
    found: &mut [Posting],
) -> usize {
    documents::find_sparse(list, places, first, found, |near, length, id| {
        let at = near[..length].partition_point(|bytes| u16::from_le_bytes(*bytes) < id);
        if near.get(at) == Some(&id.to_le_bytes()) { 1 << at } else { 0 }
    })
}

fn rank(block: &[u8; 16], end: u32) -> u32 {
    (u128::from_le_bytes(*block) & ((1 << end) - 1)).count_ones()
}

pub(super) fn scatter(ids: &[[u8; 2]], impacts: &[u8], factor: u16, sums: &mut [u16; 1 << 16]) {
    let mut add = |id: [u8; 2], impact: u8| {
        let sum = &mut sums[usize::from(u16::from_le_bytes(id))];
        *sum = sum.wrapping_add(((u32::from(impact) * u32::from(factor) + 255) >> 8) as u16);
    };
    // Eight at a time: a loop of one or two lies across a line of instructions by chance, and then takes a quarter
    // longer.
    let postings = ids.len().min(impacts.len());
    let (ids, last_ids) = ids[..postings].as_chunks::<8>();
    let (impacts, last_impacts) = impacts[..postings].as_chunks::<8>();
    ids.iter().zip(impacts).for_each(|(ids, impacts)| (0..8).for_each(|i| add(ids[i], impacts[i])));
    last_ids.iter().zip(last_impacts).for_each(|(id, impact)| add(*id, *impact));
}

fn mask(wanted: &[u8], sums: &mut [u16]) {
    for (bits, sums) in wanted.iter().zip(sums.as_chunks_mut::<BLOCK>().0) {
        sums.iter_mut().enumerate().filter(|(lane, _)| bits >> lane & 1 == 0).for_each(|(_, sum)| *sum = 0);
    }
}

fn mark(sums: &[u16], bits: &mut [u64]) {
    for (sums, word) in sums.as_chunks::<GROUP>().0.iter().zip(bits) {
        *word |= sums.iter().enumerate().map(|(i, sum)| u64::from(*sum != 0) << i).sum::<u64>();
    }
}

fn bounds(
    terms: &[BlockTerm<'_>],
    first: usize,
    sums: &[u16],
    inverse: u16,
    wanted: &[u8],
    totals: &mut [u16],
    highest: &mut [u16],
) {
    // Both blocks of a byte at once: the first in the low half of 32 bits, the second in the high one.
    let tables: Vec<[u32; 256]> = terms
        .iter()
        .map(|term| term.bounds.map(u32::from))
        .map(|bounds| {
            let mut table = [0; 256];
            for (row, second) in table.as_chunks_mut::<16>().0.iter_mut().zip(bounds) {
                row.iter_mut().zip(bounds).for_each(|(pair, first)| *pair = first | second << 16);
            }
            table
        })
        .collect();
    let chunks = totals.as_chunks_mut::<128>().0.iter_mut().zip(sums.as_chunks::<1024>().0);
    for (chunk, (totals, sums)) in chunks.enumerate() {
        let mut pairs = [0_u32; 64];
        for (term, table) in terms.iter().zip(&tables) {
            for (pair, byte) in pairs.iter_mut().zip(&term.levels[(first + chunk) * 64..][..64]) {
                *pair = pair.wrapping_add(table[usize::from(*byte)]);
            }
        }
        for (block, (total, sums)) in totals.iter_mut().zip(sums.as_chunks::<BLOCK>().0).enumerate() {
            let (byte, shift) = level_place(block);
            let levels = (pairs[byte] >> (shift * 4)) as u16;
            *total = levels.wrapping_add(coarse(sums.iter().copied().fold(0, u16::max), inverse));
        }
    }
    totals.iter_mut().zip(wanted).filter(|(_, wanted)| **wanted == 0).for_each(|(total, _)| *total = 0);
    for (highest, totals) in highest.iter_mut().zip(totals.chunks_exact(32)) {
        *highest = totals.iter().copied().fold(0, u16::max);
    }
}

/// Upper bounds of blocks for their wanted documents only; the reference for vector implementations.
#[expect(clippy::too_many_arguments, reason = "all that a bound is made of")]
pub(super) fn wanted_bounds(
    terms: &[BlockTerm<'_>],
    first: usize,
    sums: &[u16],
    inverse: u16,
    wanted: &[u8],
    levels: bool,
    totals: &mut [u16],
    highest: &mut [u16],
) {
    let blocks = totals.iter_mut().zip(sums.as_chunks::<BLOCK>().0).zip(wanted);
    for (block, ((total, sums), wanted)) in blocks.enumerate() {
        let block = first * 128 + block;
        let (byte, shift) = BlockTerm::level_at(block);
        *total = coarse(highest_wanted(sums, *wanted), inverse);
        for term in terms.iter().filter(|term| !levels || term.bitmap.bits[block] & wanted != 0) {
            let level = term.levels[byte] >> shift & 15;
            *total = total.wrapping_add(u16::from(term.bounds[usize::from(level)]));
        }
        *total *= u16::from(*wanted != 0);
    }
    for (highest, totals) in highest.iter_mut().zip(totals.chunks_exact(32)) {
        *highest = totals.iter().copied().fold(0, u16::max);
    }
}

fn highest_wanted(sums: &[u16; BLOCK], wanted: u8) -> u16 {
    sums.iter().enumerate().map(|(lane, sum)| sum * u16::from(wanted >> lane & 1)).fold(0, u16::max)
}

fn start(totals: &[u16], sums: &[[u16; BLOCK]], inverse: u16, blocks: &mut Blocks) {
    let masked = blocks.scope != Scope::All;
    let Blocks { ids, rest, sums: block_sums, wanted, .. } = blocks;
    for (((id, rest), block_sums), wanted) in ids.iter().zip(rest).zip(block_sums).zip(wanted) {
        *block_sums = sums[*id as usize];
        let of_all = block_sums.iter().copied().fold(0, u16::max);
        mask(&[*wanted], block_sums);
        let highest = if masked { block_sums.iter().copied().fold(0, u16::max) } else { of_all };
        *rest = totals[*id as usize].wrapping_sub(coarse(highest, inverse));
    }
}

#[inline(always)]
pub(super) fn coarse_bounds(codes: &[u8; 16], factor: u16, unit: u32) -> [u8; 16] {
    // Exact in single precision, in which every instruction set has vectors: products are below 2^24, and a quotient of
    // numbers below 2^17 is further from the next whole number than it is rounded.
    let (factor, unit, above) = (f32::from(factor) / 256.0, unit as f32, (unit - 1) as f32);
    codes.map(|code| {
        let fine = (f32::from(code) * factor) as i32 as f32;
        ((fine + above) / unit) as i32 as u8
    })
}

fn select(totals: &[u16], highest: &[u16], floor: u16, first: u32, selected: &mut Vec<u32>) {
    for (group, (totals, highest)) in totals.as_chunks::<32>().0.iter().zip(highest).enumerate() {
        if *highest >= floor {
            let blocks = (first + group as u32 * 32..).zip(totals);
            selected.extend(blocks.filter(|(_, total)| **total >= floor).map(|(block, _)| block));
        }
    }
}

fn first_highest(totals: &[[u16; MAXIMUM_BLOCKS]], highest: &[u16], groups: &mut [u32]) {
    for group in groups {
        let place = *group as usize;
        let first = totals[place].iter().position(|total| *total == highest[place]);
        *group = *group * MAXIMUM_BLOCKS as u32 + first.unwrap_or(0) as u32;
    }
}

fn find_blocks(term: &BlockTerm<'_>, _: Option<&BlockTerm<'_>>, blocks: &mut Blocks) {
    let last = (term.impacts.len() - BLOCK) as u32;
    for (id, place) in blocks.ids.iter().zip(&mut blocks.places) {
        let group = *id as usize / 16;
        let rank = rank(&term.bitmap.group(group), id % 16 * 8);
        *place = term.bitmap.before(group).wrapping_add(rank).min(last);
    }
}

fn add_blocks(term: &BlockTerm<'_>, blocks: &mut Blocks, unit: u32, need: u32) {
    let others = blocks.others();
    let mut kept = 0;
    for i in 0..blocks.ids.len() {
        let id = blocks.ids[i];
        let (byte, shift) = BlockTerm::level_at(id as usize);
        let bound = term.bounds[usize::from(term.levels[byte] >> shift & 15)];
        let counts = term.bitmap.bits[id as usize] & (blocks.wanted[i] | others) != 0;
        let rest = blocks.rest[i].wrapping_sub(if counts { u16::from(bound) } else { 0 });
        let mut sums = blocks.sums[i];
        let mut position = blocks.places[i] as usize;
        let mut bits = term.bitmap.bits[id as usize];
        while bits != 0 {
            let lane = bits.trailing_zeros() as usize;
            if blocks.wanted[i] >> lane & 1 == 1 {
                let impact = u32::from(term.impacts[position]);
                sums[lane] = sums[lane].wrapping_add(((impact * u32::from(term.factor)) >> 8) as u16);
            }
            position += 1;
            bits &= bits - 1;
        }
        let highest = sums.into_iter().fold(0, u16::max);
        (blocks.ids[kept], blocks.rest[kept], blocks.sums[kept]) = (id, rest, sums);
        (blocks.wanted[kept], blocks.tops[kept]) = (blocks.wanted[i], highest);
        kept += usize::from(u32::from(highest) + u32::from(rest) * unit >= need);
    }
    blocks.truncate(kept);
}
