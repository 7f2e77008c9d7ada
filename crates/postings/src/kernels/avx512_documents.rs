//! AVX-512 with VBMI (byte permutations across two registers): 64 single documents at a time.

use std::arch::x86_64::*;

use super::blocks::BlockTerm;
use super::x86::multiply_high_512;

/// How many chunks ahead bitmaps, and the levels read with them, are prefetched: with a million documents,
/// two is too late, and with four they evict each other from the L1 cache.
const BITMAPS_AHEAD: usize = 3;

/// Prefetches the part of a bitmap that is [`BITMAPS_AHEAD`] chunks after `at`.
#[inline]
pub(super) fn fetch_ahead(bitmap: &[u8], at: usize) {
    let ahead = bitmap.as_ptr().wrapping_add(at + BITMAPS_AHEAD * 128);
    // SAFETY: fetching touches no memory, whatever the address; every x86-64 has the instruction.
    unsafe {
        _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
        _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64).cast());
    }
}

/// The numbers 0 to 31, one per lane.
static LANES: [u16; 32] = {
    let mut lanes = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        lanes[lane] = lane as u16;
        lane += 1;
    }
    lanes
};
static BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0];

pub(super) fn count(words: &[u64]) -> u64 {
    // SAFETY: avx512::implementation() found the instructions.
    unsafe { count_words(words) }
}

#[target_feature(enable = "avx512f,avx512vpopcntdq,popcnt")]
fn count_words(words: &[u64]) -> u64 {
    let (eights, rest) = words.as_chunks::<8>();
    let mut counts = _mm512_setzero_si512();
    for words in eights {
        // SAFETY: 8 words are a vector; unaligned.
        let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
        counts = _mm512_add_epi64(counts, _mm512_popcnt_epi64(words));
    }
    _mm512_reduce_add_epi64(counts) as u64 + rest.iter().map(|word| u64::from(word.count_ones())).sum::<u64>()
}

pub(super) fn list(words: &[u64], ids: &mut Vec<u16>) {
    // SAFETY: avx512::implementation() found the instructions; Implementation::list made room for the
    // bits of all words and 64 ids more.
    unsafe { list_words(words, ids) }
}

/// # Safety
/// `ids` has room for as many ids as the words have bits, and 64 more.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
unsafe fn list_words(words: &[u64], ids: &mut Vec<u16>) {
    let mut len = ids.len();
    // SAFETY: 32 numbers.
    let lanes = unsafe { _mm512_loadu_si512(LANES.as_ptr().cast()) };
    for (number, word) in words.iter().enumerate() {
        if *word == 0 {
            continue;
        }
        let first = _mm512_add_epi16(lanes, _mm512_set1_epi16((number * 64) as i16));
        let second = _mm512_add_epi16(first, _mm512_set1_epi16(32));
        for (half, lanes) in [(*word as u32, first), ((*word >> 32) as u32, second)] {
            // SAFETY: `len` grows by the bits of the words; the caller made room for a vector behind.
            unsafe {
                let packed = _mm512_maskz_compress_epi16(half, lanes);
                _mm512_storeu_si512(ids.as_mut_ptr().add(len).cast(), packed);
            }
            len += half.count_ones() as usize;
        }
    }
    // SAFETY: all of them were written.
    unsafe { ids.set_len(len) }
}

pub(super) fn highest(numbers: &[u16], highest: &mut [u16]) {
    // SAFETY: avx512::implementation() found the instructions.
    unsafe { highest_of_32(numbers, highest) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn highest_of_32(numbers: &[u16], highest: &mut [u16]) {
    for (highest, numbers) in highest.iter_mut().zip(numbers.as_chunks::<32>().0) {
        // SAFETY: 32 numbers are a vector; unaligned.
        let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
        let numbers =
            _mm256_max_epu16(_mm512_castsi512_si256(numbers), _mm512_extracti64x4_epi64(numbers, 1));
        let numbers = _mm_max_epu16(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
        let lowest = _mm_minpos_epu16(_mm_xor_si128(numbers, _mm_set1_epi8(-1)));
        *highest = !(_mm_cvtsi128_si32(lowest) as u16);
    }
}

pub(super) fn bound_documents(
    terms: &[BlockTerm<'_>],
    chunk: usize,
    ids: &[u16],
    sums: &[u16],
    inverse: u16,
    totals: &mut [u16],
) -> u32 {
    // SAFETY: avx512::implementation() found the instructions; Implementation::bound_documents checked that
    // the slices are equally long and that the terms cover the chunk.
    unsafe { bound(terms, chunk, ids, sums, inverse, totals) }
}

/// # Safety
/// `ids`, `sums` and `totals` are equally long; every term's bitmap and levels cover the chunk.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,popcnt")]
unsafe fn bound(
    terms: &[BlockTerm<'_>],
    chunk: usize,
    ids: &[u16],
    sums: &[u16],
    inverse: u16,
    totals: &mut [u16],
) -> u32 {
    let (one, four) = (_mm512_set1_epi16(1), _mm512_set1_epi8(15));
    let inverse = _mm512_set1_epi16(inverse as i16);
    // SAFETY: 16 bytes.
    let bits = _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(BITS.as_ptr().cast()) });
    let mut matched = 0;
    for term in terms {
        let levels = term.levels.as_ptr().wrapping_add((chunk + BITMAPS_AHEAD) * 64);
        _mm_prefetch::<_MM_HINT_T0>(levels.cast());
        fetch_ahead(term.bitmap.bits, chunk * 128);
    }
    for at in (0..ids.len()).step_by(64) {
        let lanes = u64::MAX >> (64 - (ids.len() - at).min(64));
        let (first, second) = (lanes as u32, (lanes >> 32) as u32);
        // SAFETY: masked; what is behind the last document is not read.
        let load = |numbers: &[u16]| unsafe {
            let numbers = numbers.as_ptr().add(at);
            (
                _mm512_maskz_loadu_epi16(first, numbers.cast()),
                _mm512_maskz_loadu_epi16(second, numbers.wrapping_add(32).cast()),
            )
        };
        let narrow = |a: __m512i, b: __m512i| {
            let a = _mm512_castsi256_si512(_mm512_cvtepi16_epi8(a));
            _mm512_inserti64x4(a, _mm512_cvtepi16_epi8(b), 1)
        };
        let (a, b) = load(ids);
        let bit = _mm512_shuffle_epi8(bits, _mm512_and_si512(narrow(a, b), _mm512_set1_epi8(7)));
        let block = |ids: __m512i| _mm512_and_si512(_mm512_srli_epi16(ids, 3), _mm512_set1_epi16(127));
        let (a, b) = (block(a), block(b));
        // Of the level (see `level_place`): the byte is block % 32 * 2 + block / 32 % 2.
        let byte = |block: __m512i| {
            _mm512_add_epi16(
                _mm512_slli_epi16(_mm512_and_si512(block, _mm512_set1_epi16(31)), 1),
                _mm512_and_si512(_mm512_srli_epi16(block, 5), one),
            )
        };
        let byte = narrow(byte(a), byte(b));
        let block = narrow(a, b);
        let high = _mm512_test_epi8_mask(block, _mm512_set1_epi8(64));
        let (a, b) = load(sums);
        let mut has_any = u64::from(_mm512_test_epi16_mask(a, a));
        has_any |= u64::from(_mm512_test_epi16_mask(b, b)) << 32;
        // Sums of all bytes' even and odd lanes together, and of the odd alone.
        let (mut both, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
        for term in terms {
            // SAFETY: the caller promises 64 bytes of levels and 128 of the bitmap; the array has 16.
            let (levels, head, tail, table) = unsafe {
                let bitmap = term.bitmap.bits.as_ptr().add(chunk * 128);
                (
                    _mm512_loadu_si512(term.levels.as_ptr().add(chunk * 64).cast()),
                    _mm512_loadu_si512(bitmap.cast()),
                    _mm512_loadu_si512(bitmap.add(64).cast()),
                    _mm512_broadcast_i32x4(_mm_loadu_si128(term.bounds.as_ptr().cast())),
                )
            };
            let has = _mm512_test_epi8_mask(_mm512_permutex2var_epi8(head, block, tail), bit);
            let levels = _mm512_permutexvar_epi8(byte, levels);
            let levels = _mm512_mask_blend_epi8(high, levels, _mm512_srli_epi16(levels, 4));
            let bounds = _mm512_maskz_shuffle_epi8(has, table, _mm512_and_si512(levels, four));
            both = _mm512_add_epi16(both, bounds);
            odd = _mm512_add_epi16(odd, _mm512_srli_epi16(bounds, 8));
            has_any |= has;
        }
        matched += (has_any & lanes).count_ones();
        let even = _mm512_sub_epi16(both, _mm512_slli_epi16(odd, 8));
        // Eight documents at a time back in order: the first of every 16, and the others.
        let (low, other) = (_mm512_unpacklo_epi16(even, odd), _mm512_unpackhi_epi16(even, odd));
        let head = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), other);
        let tail = _mm512_permutex2var_epi64(low, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), other);
        let total = |sum: __m512i, levels: __m512i| {
            let sum = _mm512_add_epi16(multiply_high_512(sum, inverse), _mm512_min_epu16(sum, one));
            _mm512_add_epi16(sum, levels)
        };
        // SAFETY: masked; what is behind the last document is not written.
        unsafe {
            let totals = totals.as_mut_ptr().add(at);
            _mm512_mask_storeu_epi16(totals.cast(), first, total(a, head));
            _mm512_mask_storeu_epi16(totals.wrapping_add(32).cast(), second, total(b, tail));
        }
    }
    matched
}
