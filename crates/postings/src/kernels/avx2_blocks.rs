//! AVX2 and BMI2: blocks of 8 documents, a vector of 128 bits each.

use std::arch::x86_64::*;

use super::blocks::{AHEAD, BlockTerm, Blocks, MAXIMUM_BLOCKS, Scope, coarse};
use super::x86::{LANES, PLACES, bits_of, multiply_high_128, multiply_high_256};
use crate::layout::CHUNK_LEVELS;

/// The chunk whose levels are prefetched while those of `chunk` are read; at most the last, since bitmaps
/// follow it, of which few blocks are read.
#[inline]
pub(super) fn chunk_ahead(terms: &[BlockTerm<'_>], chunk: usize) -> usize {
    let chunks = terms.first().map_or(0, |term| term.levels.len() / CHUNK_LEVELS);
    (chunk + AHEAD).min(chunks.saturating_sub(1))
}

pub(super) fn bounds(
    terms: &[BlockTerm<'_>],
    first: usize,
    sums: &[u16],
    inverse: u16,
    wanted: &[u8],
    totals: &mut [u16],
    highest: &mut [u16],
) {
    // SAFETY: implementation() found the instructions; Implementation::bounds checked that everything
    // covers the chunks of `totals`.
    unsafe { bounds_of_chunks(terms, first, sums, inverse, wanted, totals, highest) }
}

/// # Safety
/// `totals` is whole chunks; `sums`, `wanted` and `highest` cover them, and the levels of all terms from chunk
/// `first` on.
#[target_feature(enable = "avx2")]
unsafe fn bounds_of_chunks(
    terms: &[BlockTerm<'_>],
    first: usize,
    documents: &[u16],
    inverse: u16,
    wanted: &[u8],
    totals: &mut [u16],
    highest: &mut [u16],
) {
    let (four, one) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
    let inverse = _mm256_set1_epi16(inverse as i16);
    for chunk in 0..totals.len() / 128 {
        let ahead = chunk_ahead(terms, first + chunk);
        // A quarter of a chunk's levels at a time would spill nothing, half of them is as fast: 32
        // bytes hold the blocks 16·half and 32 + 16·half on, and those 64 behind.
        for half in 0..2 {
            // Sums of all bytes' even and odd lanes together, and of the odd alone.
            let mut both = [_mm256_setzero_si256(); 2];
            let mut odd = [_mm256_setzero_si256(); 2];
            for term in terms {
                // SAFETY: the caller promises 64 bytes of levels per chunk.
                let levels = unsafe {
                    let levels = term.levels.as_ptr();
                    _mm_prefetch::<_MM_HINT_T0>(levels.wrapping_add(ahead * 64 + half * 32).cast());
                    _mm256_loadu_si256(levels.add((first + chunk) * 64 + half * 32).cast())
                };
                // SAFETY: the array has 16 bytes.
                let table =
                    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(term.bounds.as_ptr().cast()) });
                let low = _mm256_and_si256(levels, four);
                let high = _mm256_and_si256(_mm256_srli_epi16(levels, 4), four);
                for (i, levels) in [low, high].into_iter().enumerate() {
                    let bounds = _mm256_shuffle_epi8(table, levels);
                    both[i] = _mm256_add_epi16(both[i], bounds);
                    odd[i] = _mm256_add_epi16(odd[i], _mm256_srli_epi16(bounds, 8));
                }
            }
            for i in 0..2 {
                let even = _mm256_sub_epi16(both[i], _mm256_slli_epi16(odd[i], 8));
                for (part, sums) in [even, odd[i]].into_iter().enumerate() {
                    let at = chunk * 128 + i * 64 + part * 32 + half * 16;
                    // SAFETY: `at + 16` is inside the chunk, which all cover; unaligned.
                    unsafe {
                        let wanted = _mm_loadu_si128(wanted.as_ptr().add(at).cast());
                        let unwanted = _mm256_cvtepi8_epi16(_mm_cmpeq_epi8(wanted, _mm_setzero_si128()));
                        let top = highest_of_blocks(documents.as_ptr().add(at * 8).cast());
                        let top =
                            _mm256_add_epi16(multiply_high_256(top, inverse), _mm256_min_epu16(top, one));
                        let total = _mm256_andnot_si256(unwanted, _mm256_add_epi16(sums, top));
                        _mm256_storeu_si256(totals.as_mut_ptr().add(at).cast(), total);
                    }
                }
            }
        }
    }
    for (highest, totals) in highest.iter_mut().zip(totals.as_chunks::<32>().0) {
        *highest = totals.iter().copied().fold(0, u16::max);
    }
}

/// Maxima of every 8 of 128 numbers.
///
/// # Safety
/// There are 8 vectors at `numbers`.
#[target_feature(enable = "avx2")]
unsafe fn highest_of_blocks(numbers: *const __m256i) -> __m256i {
    // Blocks 2·i and 2·i + 1 of vector i are in its halves; all steps stay inside halves until the last.
    // SAFETY: the caller promises 8 vectors.
    let vector = |i: usize| unsafe { _mm256_loadu_si256(numbers.add(i)) };
    // Four numbers each of two vectors.
    let of_two =
        |a: __m256i, b: __m256i| _mm256_max_epu16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
    // Two numbers each of four vectors.
    let of_four = |first: usize| {
        let a = _mm256_castsi256_ps(of_two(vector(first), vector(first + 1)));
        let b = _mm256_castsi256_ps(of_two(vector(first + 2), vector(first + 3)));
        let (even, odd) = (_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
        _mm256_max_epu16(_mm256_castps_si256(even), _mm256_castps_si256(odd))
    };
    // One each of eight: vectors 0, 4, 1, 5, 2, 6, 3, 7.
    let (a, b) = (of_four(0), of_four(4));
    let a = _mm256_max_epu16(a, _mm256_srli_epi32(a, 16));
    let b = _mm256_max_epu16(b, _mm256_slli_epi32(b, 16));
    let mixed = _mm256_blend_epi16(a, b, 0xaa);
    let order =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    let ordered = _mm256_shuffle_epi8(mixed, order);
    let (first, second) = (_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm256_set_m128i(_mm_unpackhi_epi16(first, second), _mm_unpacklo_epi16(first, second))
}

pub(super) fn coarse_bounds(codes: &[u8; 16], factor: u16, unit: u32) -> [u8; 16] {
    // SAFETY: implementation() found the instructions.
    unsafe { bounds_of_codes(codes, factor, unit) }
}

#[target_feature(enable = "avx2")]
fn bounds_of_codes(codes: &[u8; 16], factor: u16, unit: u32) -> [u8; 16] {
    let factor = _mm256_set1_epi32(i32::from(factor));
    let above = _mm256_set1_epi32(unit as i32 - 1);
    let unit = _mm256_set1_ps(unit as f32);
    // SAFETY: 16 bytes; unaligned.
    let codes = unsafe { _mm_loadu_si128(codes.as_ptr().cast()) };
    let half = |codes: __m128i| {
        let fine = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_cvtepu8_epi32(codes), factor), 8);
        // Exact: a quotient of numbers below 2^17 is further from the next whole number than it is rounded.
        _mm256_cvttps_epi32(_mm256_div_ps(_mm256_cvtepi32_ps(_mm256_add_epi32(fine, above)), unit))
    };
    let (low, high) = (half(codes), half(_mm_srli_si128(codes, 8)));
    // Packing works in halves of 128 bits: their order is put right in between.
    let words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0b11_01_10_00);
    let bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    let mut bounds = [0; 16];
    // SAFETY: 16 bytes; unaligned.
    unsafe { _mm_storeu_si128(bounds.as_mut_ptr().cast(), bytes) }
    bounds
}

pub(super) fn start(totals: &[u16], sums: &[[u16; 8]], inverse: u16, blocks: &mut Blocks) {
    // SAFETY: implementation() found the instructions; Implementation::start checked that all blocks
    // are among `totals` and `sums`.
    unsafe { start_blocks(totals, sums, inverse, blocks) }
}

/// # Safety
/// All blocks are among `totals` and `sums`.
#[target_feature(enable = "avx2")]
unsafe fn start_blocks(totals: &[u16], sums: &[[u16; 8]], inverse: u16, blocks: &mut Blocks) {
    let masked = blocks.scope != Scope::All;
    let Blocks { ids, rest, sums: block_sums, wanted, .. } = blocks;
    for (((id, rest), block_sums), wanted) in ids.iter().zip(rest).zip(block_sums).zip(wanted) {
        // SAFETY: the caller promises both; 8 sums are a vector, as 8 lanes are; unaligned.
        unsafe {
            let of_block = _mm_loadu_si128(sums.as_ptr().add(*id as usize).cast());
            let lanes = _mm_loadu_si128(LANES[usize::from(*wanted)].as_ptr().cast());
            let of_wanted = _mm_and_si128(of_block, lanes);
            _mm_storeu_si128(block_sums.as_mut_ptr().cast(), of_wanted);
            let of_block = if masked { of_wanted } else { of_block };
            let lowest = _mm_minpos_epu16(_mm_xor_si128(of_block, _mm_set1_epi8(-1)));
            let highest = !(_mm_cvtsi128_si32(lowest) as u16);
            *rest = totals.as_ptr().add(*id as usize).read().wrapping_sub(coarse(highest, inverse));
        }
    }
}

pub(super) fn select(totals: &[u16], highest: &[u16], floor: u16, first: u32, selected: &mut Vec<u32>) {
    // SAFETY: implementation() found the instructions.
    unsafe { select_groups(totals, highest, floor, first, selected) }
}

#[target_feature(enable = "avx2,bmi1")]
fn select_groups(totals: &[u16], highest: &[u16], floor: u16, first: u32, selected: &mut Vec<u32>) {
    let floors = _mm256_set1_epi16(floor as i16);
    for (group, (totals, highest)) in totals.as_chunks::<32>().0.iter().zip(highest).enumerate() {
        if *highest < floor {
            continue;
        }
        let totals: *const __m256i = totals.as_ptr().cast();
        let reached = |at: usize| {
            // SAFETY: a group is two vectors; unaligned load.
            let totals = unsafe { _mm256_loadu_si256(totals.add(at)) };
            _mm256_cmpeq_epi16(_mm256_max_epu16(totals, floors), totals)
        };
        let mut bits = bits_of(reached(0), reached(1)) as u32;
        while bits != 0 {
            selected.push(first + group as u32 * 32 + bits.trailing_zeros());
            bits &= bits - 1;
        }
    }
}

pub(super) fn first_highest(totals: &[[u16; MAXIMUM_BLOCKS]], highest: &[u16], groups: &mut [u32]) {
    // SAFETY: implementation() found the instructions; Implementation::first_highest checked that all groups are among
    // `totals` and `highest`.
    unsafe { first_of_groups(totals, highest, groups) }
}

/// # Safety
/// All groups are among `totals` and `highest`.
#[target_feature(enable = "avx2,bmi1")]
unsafe fn first_of_groups(totals: &[[u16; MAXIMUM_BLOCKS]], highest: &[u16], groups: &mut [u32]) {
    for group in groups {
        // SAFETY: the caller promises both; a group is two vectors, unaligned.
        let equal = unsafe {
            let wanted = _mm256_set1_epi16(*highest.as_ptr().add(*group as usize) as i16);
            let totals: *const __m256i = totals.as_ptr().add(*group as usize).cast();
            bits_of(
                _mm256_cmpeq_epi16(_mm256_loadu_si256(totals), wanted),
                _mm256_cmpeq_epi16(_mm256_loadu_si256(totals.add(1)), wanted),
            )
        };
        // One more bit, should none be equal.
        *group = *group * MAXIMUM_BLOCKS as u32 + (equal as u32 | 1 << 31).trailing_zeros();
    }
}

pub(super) fn find_blocks(term: &BlockTerm<'_>, next: Option<&BlockTerm<'_>>, blocks: &mut Blocks) {
    // SAFETY: implementation() found the instructions; Implementation::find_blocks checked that the
    // term covers all blocks.
    unsafe { find_in_blocks(term, next.unwrap_or(term), blocks) }
}

pub(super) fn add_blocks(term: &BlockTerm<'_>, blocks: &mut Blocks, unit: u32, need: u32) {
    // SAFETY: implementation() found the instructions; Implementation::add_found checked that the
    // term covers all blocks and that their places were found in no more impacts than it has.
    unsafe { add_to_blocks(term, blocks, unit, need) }
}

/// Finds where the impacts of all blocks are, and prefetches them and the next term's bits, so that later
/// steps do not wait for memory block by block.
///
/// # Safety
/// The term covers every block.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
unsafe fn find_in_blocks(term: &BlockTerm<'_>, next: &BlockTerm<'_>, blocks: &mut Blocks) {
    let last = (term.impacts.len() - 8) as u32;
    for (id, place) in blocks.ids.iter().zip(&mut blocks.places) {
        let (group, before) = (*id as usize / 16, id % 16 * 8);
        // SAFETY: the caller promises that the term's slices cover the block: its group of 16 and its
        // region. Fetching touches no memory, whatever the address.
        unsafe {
            let words: *const u64 = term.bitmap.bits.as_ptr().add(group * 16).cast();
            let rank = _bzhi_u64(words.read_unaligned(), before.min(64)).count_ones()
                + _bzhi_u64(words.add(1).read_unaligned(), before.saturating_sub(64)).count_ones();
            let base = term.bitmap.regions.as_ptr().cast::<u32>().add(*id as usize / 8192).read_unaligned();
            let near = term.bitmap.ranks.as_ptr().cast::<u16>().add(group).read_unaligned();
            *place = base.wrapping_add(u32::from(near)).wrapping_add(rank).min(last);
            _mm_prefetch::<_MM_HINT_T0>(term.impacts.as_ptr().add(*place as usize).cast());
            _mm_prefetch::<_MM_HINT_T0>(next.bitmap.bits.as_ptr().wrapping_add(*id as usize).cast());
            _mm_prefetch::<_MM_HINT_T0>(next.bitmap.ranks.as_ptr().wrapping_add(group * 2).cast());
        }
    }
}

/// # Safety
/// The term covers every block, and the blocks' places are at least 8 bytes before the end of its
/// impacts.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
unsafe fn add_to_blocks(term: &BlockTerm<'_>, blocks: &mut Blocks, unit: u32, need: u32) {
    let factor = _mm_set1_epi16(term.factor as i16);
    let len = blocks.ids.len();
    let (ids, rests, sums) = (blocks.ids.as_mut_ptr(), blocks.rest.as_mut_ptr(), blocks.sums.as_mut_ptr());
    let (wanted, others, tops) = (blocks.wanted.as_mut_ptr(), blocks.others(), blocks.tops.as_mut_ptr());
    let mut kept = 0;
    for (i, place) in blocks.places[..len].iter().enumerate() {
        // SAFETY: `i` and `kept` are below the length of all five; the caller promises that the
        // term's slices cover block `id` and 8 bytes at its place.
        unsafe {
            let id = *ids.add(i);
            let impacts = _mm_loadl_epi64(term.impacts.as_ptr().add(*place as usize).cast());
            let bits = *term.bitmap.bits.as_ptr().add(id as usize);
            let places = _mm_loadu_si128(PLACES[usize::from(bits)].as_ptr().cast());
            let added = multiply_high_128(_mm_shuffle_epi8(impacts, places), factor);
            let lanes = _mm_loadu_si128(LANES[usize::from(*wanted.add(i))].as_ptr().cast());
            let added = _mm_and_si128(added, lanes);
            let sum = _mm_add_epi16(_mm_loadu_si128(sums.add(i).cast()), added);
            let (byte, shift) = BlockTerm::level_at(id as usize);
            let level = *term.levels.as_ptr().add(byte) >> shift & 15;
            let counts = u16::from(bits & (*wanted.add(i) | others) != 0);
            let bound = u16::from(term.bounds[usize::from(level)]) & counts.wrapping_neg();
            let rest = (*rests.add(i)).wrapping_sub(bound);
            let lowest = _mm_minpos_epu16(_mm_xor_si128(sum, _mm_set1_epi8(-1)));
            let highest = 65_535 - (_mm_cvtsi128_si32(lowest) as u32 & 65_535);
            *wanted.add(kept) = *wanted.add(i);
            *ids.add(kept) = id;
            *rests.add(kept) = rest;
            *tops.add(kept) = highest as u16;
            _mm_storeu_si128(sums.add(kept).cast(), sum);
            kept += usize::from(highest + u32::from(rest) * unit >= need);
        }
    }
    blocks.truncate(kept);
}
