//! AVX-512 and VBMI: upper bounds of blocks of 8 documents, and selection of the blocks whose bound reaches a
//! floor.

use std::arch::x86_64::*;

use super::BlockTerm;
use super::avx2_blocks::chunk_ahead;
use super::avx512_documents::fetch_ahead;
use super::x86::multiply_high_512;

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
    unsafe { bounds_of_chunks::<false, false>(terms, first, sums, inverse, wanted, totals, highest) }
}

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
    // SAFETY: as above; for `levels` it checked the bitmaps as well.
    unsafe {
        if levels {
            bounds_of_chunks::<true, true>(terms, first, sums, inverse, wanted, totals, highest);
        } else {
            bounds_of_chunks::<true, false>(terms, first, sums, inverse, wanted, totals, highest);
        }
    }
}

/// For each of the 64 level bytes of a chunk, the block (modulo 64) whose level it holds (see `level_place`).
static LEVEL_ORDER: [u8; 64] = {
    let mut order = [0; 64];
    let mut place = 0;
    while place < 64 {
        order[place] = (place / 2 + place % 2 * 32) as u8;
        place += 1;
    }
    order
};

/// # Safety
/// `totals` is whole chunks; `sums`, `wanted` and `highest` cover them, and the levels of all terms from chunk
/// `first` on, as do their bitmaps if only `LEVELS` of wanted documents count.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn bounds_of_chunks<const SUMS: bool, const LEVELS: bool>(
    terms: &[BlockTerm<'_>],
    first: usize,
    documents: &[u16],
    inverse: u16,
    wanted: &[u8],
    totals: &mut [u16],
    highest: &mut [u16],
) {
    let (four, one) = (_mm512_set1_epi8(15), _mm512_set1_epi16(1));
    let inverse = _mm512_set1_epi16(inverse as i16);
    // SAFETY: 64 bytes; unaligned.
    let order = unsafe { _mm512_loadu_si512(LEVEL_ORDER.as_ptr().cast()) };
    for chunk in 0..totals.len() / 128 {
        let ahead = chunk_ahead(terms, first + chunk);
        // Bytes of 64 blocks, in the order of levels.
        let ordered = |bytes: &[u8], chunk: usize, half: usize| {
            // SAFETY: only for what the caller promises to cover the chunk; unaligned.
            let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().add(chunk * 128 + half * 64).cast()) };
            _mm512_permutexvar_epi8(order, bytes)
        };
        let asked = if LEVELS { [0, 1].map(|half| ordered(wanted, chunk, half)) } else { [one; 2] };
        // Sums of all bytes' even and odd lanes together, and of the odd alone, for the low levels
        // and the high ones.
        let mut both = [_mm512_setzero_si512(); 2];
        let mut odd = [_mm512_setzero_si512(); 2];
        for term in terms {
            if LEVELS {
                fetch_ahead(term.bitmap.bits, (first + chunk) * 128);
            }
            // SAFETY: the caller promises 64 bytes of levels per chunk; the array has 16 bytes.
            let (levels, table) = unsafe {
                let levels = term.levels.as_ptr().add((first + chunk) * 64);
                _mm_prefetch::<_MM_HINT_T0>(term.levels.as_ptr().wrapping_add(ahead * 64).cast());
                (
                    _mm512_loadu_si512(levels.cast()),
                    _mm512_broadcast_i32x4(_mm_loadu_si128(term.bounds.as_ptr().cast())),
                )
            };
            let low = _mm512_and_si512(levels, four);
            let high = _mm512_and_si512(_mm512_srli_epi16(levels, 4), four);
            for (i, levels) in [low, high].into_iter().enumerate() {
                let bounds = if LEVELS {
                    let counts = _mm512_test_epi8_mask(ordered(term.bitmap.bits, first + chunk, i), asked[i]);
                    _mm512_maskz_shuffle_epi8(counts, table, levels)
                } else {
                    _mm512_shuffle_epi8(table, levels)
                };
                both[i] = _mm512_add_epi16(both[i], bounds);
                odd[i] = _mm512_add_epi16(odd[i], _mm512_srli_epi16(bounds, 8));
            }
        }
        for i in 0..2 {
            // SAFETY: 64 blocks from here are inside the chunk, which all cover; unaligned.
            unsafe {
                let at = chunk * 128 + i * 64;
                let lanes: *const __mmask32 = wanted.as_ptr().add(at).cast();
                let wanted = _mm512_loadu_si512(wanted.as_ptr().add(at).cast());
                let wanted = _mm512_test_epi8_mask(wanted, wanted);
                let even = _mm512_sub_epi16(both[i], _mm512_slli_epi16(odd[i], 8));
                for (part, sums) in [even, odd[i]].into_iter().enumerate() {
                    let lanes = lanes.add(part * 8);
                    let at = at + part * 32;
                    let top = highest_of_blocks::<SUMS>(documents.as_ptr().add(at * 8).cast(), lanes);
                    let top = _mm512_add_epi16(multiply_high_512(top, inverse), _mm512_min_epu16(top, one));
                    let sums = _mm512_maskz_add_epi16((wanted >> (part * 32)) as u32, sums, top);
                    _mm512_storeu_si512(totals.as_mut_ptr().add(at).cast(), sums);
                    let high = _mm512_extracti64x4_epi64(sums, 1);
                    let sums = _mm256_max_epu16(_mm512_castsi512_si256(sums), high);
                    let sums = _mm_max_epu16(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
                    let lowest = _mm_minpos_epu16(_mm_xor_si128(sums, _mm_set1_epi8(-1)));
                    *highest.get_unchecked_mut(at / 32) = !(_mm_cvtsi128_si32(lowest) as u16);
                }
            }
        }
    }
}

/// Maxima of every 8 of 256 numbers; if `MASKED`, only of those with a bit set in `lanes`.
///
/// # Safety
/// There are 8 vectors at `numbers` and 8 masks at `lanes`.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn highest_of_blocks<const MASKED: bool>(numbers: *const __m512i, lanes: *const __mmask32) -> __m512i {
    // The quarters of vector i have blocks 4·i to 4·i + 3; all steps stay inside quarters until the last.
    // SAFETY: the caller promises 8 vectors and masks; unaligned.
    let vector = |i: usize| unsafe {
        if MASKED {
            _mm512_maskz_loadu_epi16(lanes.add(i).read_unaligned(), numbers.add(i).cast())
        } else {
            _mm512_loadu_si512(numbers.add(i))
        }
    };
    // Four numbers each of two vectors.
    let of_two =
        |a: __m512i, b: __m512i| _mm512_max_epu16(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    // Two numbers each of four vectors.
    let of_four = |first: usize| {
        let a = _mm512_castsi512_ps(of_two(vector(first), vector(first + 1)));
        let b = _mm512_castsi512_ps(of_two(vector(first + 2), vector(first + 3)));
        let (even, odd) = (_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
        _mm512_max_epu16(_mm512_castps_si512(even), _mm512_castps_si512(odd))
    };
    // One each of eight: vectors 0, 4, 1, 5, 2, 6, 3, 7.
    let (a, b) = (of_four(0), of_four(4));
    let a = _mm512_max_epu16(a, _mm512_srli_epi32(a, 16));
    let b = _mm512_max_epu16(b, _mm512_slli_epi32(b, 16));
    // SAFETY: 64 bytes; unaligned.
    let order = unsafe { _mm512_loadu_si512(BLOCK_ORDER.as_ptr().cast()) };
    _mm512_permutexvar_epi16(order, _mm512_mask_mov_epi16(a, 0xaaaa_aaaa, b))
}

/// Per block, the index of its maximum before the last step of [`highest_of_blocks`]: in quarter `block % 4`,
/// at the position of its vector.
static BLOCK_ORDER: [u16; 32] = {
    let place = [0, 2, 4, 6, 1, 3, 5, 7];
    let mut order = [0; 32];
    let mut block = 0;
    while block < 32 {
        order[block] = (block % 4 * 8 + place[block / 4]) as u16;
        block += 1;
    }
    order
};

pub(super) fn select(totals: &[u16], highest: &[u16], floor: u16, first: u32, selected: &mut Vec<u32>) {
    // SAFETY: implementation() found the instructions.
    unsafe { select_groups(totals, highest, floor, first, selected) }
}

#[target_feature(enable = "avx512f,avx512bw,bmi1,popcnt")]
fn select_groups(totals: &[u16], highest: &[u16], floor: u16, first: u32, selected: &mut Vec<u32>) {
    let floors = _mm512_set1_epi16(floor as i16);
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let groups = totals.as_chunks::<32>().0;
    for (at, (groups, highest)) in groups.chunks(32).zip(highest.chunks(32)).enumerate() {
        let reached = u32::MAX >> (32 - groups.len().min(highest.len()));
        // SAFETY: lanes without a group are not read; unaligned load.
        let highest = unsafe { _mm512_maskz_loadu_epi16(reached, highest.as_ptr().cast()) };
        let mut reached = _mm512_mask_cmpge_epu16_mask(reached, highest, floors);
        while reached != 0 {
            let group = reached.trailing_zeros();
            reached &= reached - 1;
            // SAFETY: a group is one vector; unaligned load.
            let totals = unsafe { _mm512_loadu_si512(groups[group as usize].as_ptr().cast()) };
            let bits = _mm512_cmpge_epu16_mask(totals, floors);
            let start = first + (at as u32 * 32 + group) * 32;
            selected.reserve(32);
            for (start, bits) in [(start, bits as u16), (start + 16, (bits >> 16) as u16)] {
                let ids = _mm512_add_epi32(_mm512_set1_epi32(start as i32), lanes);
                let len = selected.len();
                // SAFETY: there is room for 32 more, of which the first half takes no more than 16: the
                // vector, of which the first so many numbers as bits are set count, fits behind either.
                unsafe {
                    let ids = _mm512_maskz_compress_epi32(bits, ids);
                    _mm512_storeu_si512(selected.as_mut_ptr().add(len).cast(), ids);
                    selected.set_len(len + bits.count_ones() as usize);
                }
            }
        }
    }
}
