//! AVX-512, VBMI, VBMI2 and VPOPCNTDQ: scores of blocks of 8 documents, eight blocks at a time.
//!
//! One vector has a byte per document of eight blocks, two have their sums.

use std::arch::x86_64::*;

use super::Bitmap;
use super::blocks::{BlockTerm, Blocks};
use super::x86::multiply_high_512;
use crate::layout::BLOCK;

/// Number of 8-document blocks that fill a 64-byte vector, one byte per document.
const EIGHT: usize = 8;

/// Array of a closure's results for blocks 0 to 7. Unrolled by hand: closures that take vectors are not
/// always inlined, which costs 2% of a search.
macro_rules! each {
    ($of:ident) => {
        [$of(0), $of(1), $of(2), $of(3), $of(4), $of(5), $of(6), $of(7)]
    };
}

/// A run of consecutive blocks that are being scored: eight if `WHOLE`, so that masks are compiled away;
/// otherwise fewer.
#[derive(Clone, Copy)]
struct Batch<const WHOLE: bool> {
    first: usize,
    /// Number of blocks, 1 to 8.
    count: usize,
}

impl<const WHOLE: bool> Batch<WHOLE> {
    fn count(self) -> usize {
        if WHOLE { EIGHT } else { self.count }
    }

    /// Mask with a bit set per block of the batch.
    fn mask(self) -> __mmask8 {
        0xff >> (EIGHT - self.count())
    }
}

/// Splits `blocks` blocks into whole batches of eight and a shorter last one.
fn batches(blocks: usize) -> (impl Iterator<Item = Batch<true>>, Option<Batch<false>>) {
    let whole = (0..blocks / EIGHT).map(|batch| Batch { first: batch * EIGHT, count: EIGHT });
    let count = blocks % EIGHT;
    (whole, (count > 0).then_some(Batch { first: blocks - count, count }))
}

pub(super) fn find_blocks(term: &BlockTerm<'_>, next: Option<&BlockTerm<'_>>, blocks: &mut Blocks) {
    let next = next.unwrap_or(term);
    let (whole, rest) = batches(blocks.ids.len());
    // SAFETY: implementation() found the instructions; Implementation::find_blocks checked that the term
    // covers all blocks.
    unsafe {
        whole.for_each(|batch| find_in_blocks(term, next, blocks, batch));
        rest.into_iter().for_each(|batch| find_in_blocks(term, next, blocks, batch));
    }
}

pub(super) fn add_blocks(term: &BlockTerm<'_>, blocks: &mut Blocks, unit: u32, need: u32) {
    let (whole, rest) = batches(blocks.ids.len());
    let mut kept = 0;
    // SAFETY: implementation() found the instructions; Implementation::add_found checked that the term
    // covers all blocks and that their places were found in no more impacts than it has. No more blocks are kept than were
    // looked at.
    unsafe {
        whole.for_each(|batch| kept += add_to_blocks(term, blocks, batch, kept, unit, need));
        rest.into_iter().for_each(|batch| kept += add_to_blocks(term, blocks, batch, kept, unit, need));
    }
    blocks.truncate(kept);
}

/// Finds the bits and impacts of the batch's blocks, and prefetches the impacts and the next term's bits, so
/// that later steps do not wait for memory block by block.
///
/// # Safety
/// The batch is among the blocks, `bits` and `places` are as many, and the term covers all.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,popcnt,bmi1,bmi2"
)]
unsafe fn find_in_blocks<const WHOLE: bool>(
    term: &BlockTerm<'_>,
    next: &BlockTerm<'_>,
    blocks: &mut Blocks,
    batch: Batch<WHOLE>,
) {
    let (first, count, some) = (batch.first, batch.count(), batch.mask());
    let Bitmap { bits, ranks, regions } = term.bitmap;
    // SAFETY: the caller promises the blocks, and that the term's slices cover each: its group of 16 and its region. For
    // blocks that a short batch lacks, bytes of the last one are read; what is computed of them is not stored. Fetching touches no
    // memory, whatever the address. Unaligned.
    unsafe {
        let ids = blocks.ids.as_ptr().add(first);
        let id = |i: usize| *ids.add(i.min(count - 1)) as usize;
        let group = |i: usize| _mm_loadu_si128(bits.as_ptr().add(id(i) & !15).cast());
        let low_groups = quarters([group(0), group(1), group(2), group(3)]);
        let high_groups = quarters([group(4), group(5), group(6), group(7)]);

        // Which of the 16 bytes of its group is a block's: four numbers of 32 bits, and each in all bytes of a quarter.
        let block_ids = _mm256_maskz_loadu_epi32(some, ids.cast());
        let numbers = _mm256_and_si256(block_ids, _mm256_set1_epi32(15));
        let low_numbers = in_quarters(_mm256_castsi256_si128(numbers));
        let high_numbers = in_quarters(_mm256_extracti128_si256(numbers, 1));
        // A byte of each quarter of both.
        let first_bytes = i64::from_le_bytes([0, 16, 32, 48, 64, 80, 96, 112]);
        let bits = _mm512_permutex2var_epi8(
            _mm512_shuffle_epi8(low_groups, low_numbers),
            _mm512_castsi128_si512(_mm_cvtsi64_si128(first_bytes)),
            _mm512_shuffle_epi8(high_groups, high_numbers),
        );
        let bits_at = blocks.bits.as_mut_ptr().add(first);
        _mm_mask_storeu_epi8(bits_at.cast(), u16::from(some), _mm512_castsi512_si128(bits));

        // Postings before a block: of its group, of its region before the group, and before the region.
        let (low, high) = (bits_before(low_groups, low_numbers), bits_before(high_groups, high_numbers));
        let in_group = _mm512_add_epi64(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
        let before_group =
            |i: usize| i32::from(ranks.as_ptr().cast::<u16>().add(id(i) / 16).read_unaligned());
        let before_region = |i: usize| regions.as_ptr().cast::<i32>().add(id(i) / 8192).read_unaligned();
        let region = _mm256_set1_epi32((id(0) / 8192) as i32);
        let before_regions =
            if _mm256_mask_cmpneq_epi32_mask(some, _mm256_srli_epi32(block_ids, 13), region) == 0 {
                _mm256_set1_epi32(before_region(0))
            } else {
                let before: [i32; EIGHT] = each!(before_region);
                _mm256_loadu_si256(before.as_ptr().cast())
            };
        let before_groups = _mm256_cvtepu16_epi32(words(each!(before_group)));
        let places = _mm256_add_epi32(in_order(in_group), before_groups);
        let places = _mm256_add_epi32(places, before_regions);
        let last = _mm256_set1_epi32((term.impacts.len() - BLOCK) as i32);
        let places_at = blocks.places.as_mut_ptr().add(first);
        _mm256_mask_storeu_epi32(places_at.cast(), some, _mm256_min_epu32(places, last));

        for i in 0..count {
            let place = *places_at.add(i) as usize;
            _mm_prefetch::<_MM_HINT_T0>(term.impacts.as_ptr().add(place).cast());
            _mm_prefetch::<_MM_HINT_T0>(next.bitmap.bits.as_ptr().wrapping_add(id(i)).cast());
            _mm_prefetch::<_MM_HINT_T0>(next.bitmap.ranks.as_ptr().wrapping_add(id(i) / 16 * 2).cast());
        }
    }
}

/// Adds a term to the sums of the batch's blocks and moves the surviving blocks to index `kept` and after;
/// returns how many survive.
///
/// # Safety
/// The batch is among the blocks, as are `kept` of those before it; the term covers all, and the places are at least 8 bytes
/// before the end of its impacts.
#[inline]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq,popcnt,bmi1,bmi2"
)]
unsafe fn add_to_blocks<const WHOLE: bool>(
    term: &BlockTerm<'_>,
    blocks: &mut Blocks,
    batch: Batch<WHOLE>,
    kept: usize,
    unit: u32,
    need: u32,
) -> usize {
    let (first, count, some) = (batch.first, batch.count(), batch.mask());
    let others = u64::from_le_bytes([blocks.others(); EIGHT]);
    // The sums of a block are two of the eight 64-bit numbers of a vector.
    let (low_sums, high_sums) = twice(some);
    // SAFETY: the caller promises the blocks, 8 impacts at each place, and that the term has a level for each block. For blocks
    // that a short batch lacks, the last one's place and the level of block 0 are read. Stores end where the batch does, of which
    // everything was read before. Unaligned.
    unsafe {
        let ids = blocks.ids.as_mut_ptr();
        let (rests, tops) = (blocks.rest.as_mut_ptr(), blocks.tops.as_mut_ptr());
        let (sums, wanted) = (blocks.sums.as_mut_ptr(), blocks.wanted.as_mut_ptr());
        let bytes = |of: *const u8| _mm_maskz_loadu_epi8(u16::from(some), of.add(first).cast());
        let bits = _mm_cvtsi128_si64(bytes(blocks.bits.as_ptr())) as u64;
        let wanted_bits = _mm_cvtsi128_si64(bytes(wanted)) as u64;

        let place = |i: usize| *blocks.places.as_ptr().add(first + i.min(count - 1)) as usize;
        let impacts = |i: usize| term.impacts.as_ptr().add(place(i)).cast::<i64>().read_unaligned();
        let pair = |i: usize| _mm_set_epi64x(impacts(i + 1), impacts(i));
        let impacts = quarters([pair(0), pair(2), pair(4), pair(6)]);
        let impacts = _mm512_maskz_shuffle_epi8(bits & wanted_bits, impacts, impact_bytes(bits));
        let (low, high) = products(impacts, term.factor);
        let low = _mm512_add_epi16(_mm512_maskz_loadu_epi64(low_sums, sums.add(first).cast()), low);
        let high =
            _mm512_add_epi16(_mm512_maskz_loadu_epi64(high_sums, sums.wrapping_add(first + 4).cast()), high);
        let top = highest_of_each(low, high);

        // What the terms after this can add.
        let block_ids = _mm256_maskz_loadu_epi32(some, ids.add(first).cast());
        let at = level_bytes(block_ids);
        let level = |i: usize| i32::from(*term.levels.as_ptr().add(at[i] as usize));
        let levels = bytes_of(each!(level));
        let is_upper = _mm256_test_epi32_mask(block_ids, _mm256_set1_epi32(64));
        let levels = _mm_mask_blend_epi8(u16::from(is_upper), levels, _mm_srli_epi16(levels, 4));
        let levels = _mm_and_si128(levels, _mm_set1_epi8(15));
        let counts = _mm_cvtsi64_si128((bits & (wanted_bits | others)) as i64);
        let counts = _mm_test_epi8_mask(counts, counts);
        let bounds = _mm_loadu_si128(term.bounds.as_ptr().cast());
        let bound = _mm_cvtepu8_epi16(_mm_maskz_shuffle_epi8(counts, bounds, levels));
        let rest = _mm_sub_epi16(_mm_maskz_loadu_epi16(some, rests.add(first).cast()), bound);

        let reached = _mm256_mullo_epi32(_mm256_cvtepu16_epi32(rest), _mm256_set1_epi32(unit as i32));
        let reached = _mm256_add_epi32(reached, top);
        let stays = _mm256_mask_cmpge_epu32_mask(some, reached, _mm256_set1_epi32(need as i32));
        // What is behind those that stay is overwritten by the next, or cut off.
        _mm256_mask_storeu_epi32(ids.add(kept).cast(), some, _mm256_maskz_compress_epi32(stays, block_ids));
        _mm_mask_storeu_epi16(rests.add(kept).cast(), some, _mm_maskz_compress_epi16(stays, rest));
        let top = _mm_maskz_compress_epi16(stays, _mm256_cvtepi32_epi16(top));
        _mm_mask_storeu_epi16(tops.add(kept).cast(), some, top);
        let wanted_bits = _mm_maskz_compress_epi8(u16::from(stays), _mm_cvtsi64_si128(wanted_bits as i64));
        _mm_mask_storeu_epi8(wanted.add(kept).cast(), u16::from(some), wanted_bits);
        let (low_stays, high_stays) = twice(stays);
        let low = _mm512_maskz_compress_epi64(low_stays, low);
        _mm512_mask_storeu_epi64(sums.add(kept).cast(), low_sums, low);
        let behind = kept + (stays & 15).count_ones() as usize;
        let high = _mm512_maskz_compress_epi64(high_stays, high);
        _mm512_mask_storeu_epi64(sums.add(behind).cast(), high_sums, high);
        stays.count_ones() as usize
    }
}

/// Duplicates each bit: the mask of the first four blocks, two bits per block, and that of the other four.
#[target_feature(enable = "bmi2")]
fn twice(blocks: __mmask8) -> (__mmask8, __mmask8) {
    let [low, high] = ((_pdep_u32(u32::from(blocks), 0x5555) * 3) as u16).to_le_bytes();
    (low, high)
}

/// Per document of eight blocks, the byte index of its impact in the 16 bytes that hold its block's and a
/// neighbour's impacts: the number of postings before it in its block, plus 8 in the second block of each
/// pair.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,avx512vpopcntdq")]
fn impact_bytes(bits: u64) -> __m512i {
    let lower = |blocks: u32| !(-1 << (blocks * 8));
    let lower = _mm512_setr_epi64(0, lower(1), lower(2), lower(3), lower(4), lower(5), lower(6), lower(7));
    let second = i64::from_ne_bytes([8; 8]);
    let halves = _mm512_setr_epi64(0, second, 0, second, 0, second, 0, second);
    // Postings before a document, less those before its block, from where its block's begin.
    // SAFETY: 64 bytes; unaligned.
    let counting = unsafe { _mm512_loadu_si512(COUNTING.as_ptr().cast()) };
    let before = _mm512_maskz_expand_epi8(bits, counting);
    let before_block = _mm512_popcnt_epi64(_mm512_and_si512(_mm512_set1_epi64(bits as i64), lower));
    let before_block = _mm512_shuffle_epi8(before_block, halves);
    _mm512_add_epi8(before, _mm512_sub_epi8(halves, before_block))
}

/// Contributions of eight blocks' impacts to their sums: those of blocks 0 to 3, and those of blocks 4 to 7.
#[target_feature(enable = "avx512f,avx512bw")]
fn products(impacts: __m512i, factor: u16) -> (__m512i, __m512i) {
    let (zero, factor) = (_mm512_setzero_si512(), _mm512_set1_epi16(factor as i16));
    // Of blocks 0, 2, 4, 6 and of blocks 1, 3, 5, 7.
    let even = multiply_high_512(_mm512_unpacklo_epi8(zero, impacts), factor);
    let odd = multiply_high_512(_mm512_unpackhi_epi8(zero, impacts), factor);
    let low = _mm512_permutex2var_epi64(even, _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), odd);
    let high = _mm512_permutex2var_epi64(even, _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15), odd);
    (low, high)
}

/// The highest sum of each block.
#[target_feature(enable = "avx512f,avx512bw")]
fn highest_of_each(low: __m512i, high: __m512i) -> __m256i {
    let top = _mm512_max_epu16(_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
    let top = _mm512_max_epu16(top, _mm512_shuffle_epi32(top, 0b10_11_00_01));
    let top = _mm512_max_epu16(top, _mm512_srli_epi32(top, 16));
    _mm256_and_si256(in_order(top), _mm256_set1_epi32(0xffff))
}

/// Low 32-bit halves of eight 64-bit numbers, in block order; in the input, even numbers belong to blocks 0
/// to 3, odd ones to blocks 4 to 7.
#[target_feature(enable = "avx512f")]
fn in_order(numbers: __m512i) -> __m256i {
    let order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, numbers))
}

/// Byte offset of each block's level; whether it is the low or the high half of that byte, see
/// `BlockTerm::level_at`.
#[target_feature(enable = "avx2")]
fn level_bytes(ids: __m256i) -> [u32; EIGHT] {
    // id / 128 * 64, id % 32 * 2, id / 32 % 2
    let chunk = _mm256_and_si256(_mm256_srli_epi32(ids, 1), _mm256_set1_epi32(!63));
    let pair = _mm256_and_si256(_mm256_slli_epi32(ids, 1), _mm256_set1_epi32(62));
    let second = _mm256_and_si256(_mm256_srli_epi32(ids, 5), _mm256_set1_epi32(1));
    let at = _mm256_or_si256(_mm256_or_si256(chunk, pair), second);
    let mut bytes = [0; EIGHT];
    // SAFETY: eight numbers are a vector; unaligned.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), at) }
    bytes
}

/// Per 128-bit quarter of `groups`, the number of bits set in its first `n` bytes, as two 64-bit partial
/// counts; `n` is what every byte of that quarter of `numbers` holds.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn bits_before(groups: __m512i, numbers: __m512i) -> __m512i {
    // SAFETY: more than 16 bytes; unaligned.
    let counting = unsafe { _mm_loadu_si128(COUNTING.as_ptr().cast()) };
    let before = _mm512_cmplt_epu8_mask(_mm512_broadcast_i32x4(counting), numbers);
    _mm512_popcnt_epi64(_mm512_maskz_mov_epi8(before, groups))
}

/// Broadcasts the lowest byte of each of four 32-bit numbers over a quarter of its own.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn in_quarters(numbers: __m128i) -> __m512i {
    const fn of(byte: u8) -> i64 {
        i64::from_ne_bytes([byte; 8])
    }
    let lowest_bytes = _mm512_setr_epi64(of(0), of(0), of(4), of(4), of(8), of(8), of(12), of(12));
    _mm512_shuffle_epi8(_mm512_broadcast_i32x4(numbers), lowest_bytes)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn quarters([a, b, c, d]: [__m128i; 4]) -> __m512i {
    let (low, high) = (_mm256_set_m128i(b, a), _mm256_set_m128i(d, c));
    _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1)
}

#[inline]
#[target_feature(enable = "avx2")]
fn bytes_of([a, b, c, d, e, f, g, h]: [i32; EIGHT]) -> __m128i {
    let bytes = _mm_insert_epi8(_mm_cvtsi32_si128(a), b, 1);
    let bytes = _mm_insert_epi8(_mm_insert_epi8(bytes, c, 2), d, 3);
    let bytes = _mm_insert_epi8(_mm_insert_epi8(bytes, e, 4), f, 5);
    _mm_insert_epi8(_mm_insert_epi8(bytes, g, 6), h, 7)
}

#[inline]
#[target_feature(enable = "avx2")]
fn words([a, b, c, d, e, f, g, h]: [i32; EIGHT]) -> __m128i {
    let words = _mm_insert_epi16(_mm_cvtsi32_si128(a), b, 1);
    let words = _mm_insert_epi16(_mm_insert_epi16(words, c, 2), d, 3);
    let words = _mm_insert_epi16(_mm_insert_epi16(words, e, 4), f, 5);
    _mm_insert_epi16(_mm_insert_epi16(words, g, 6), h, 7)
}

/// The numbers 0 to 63.
static COUNTING: [u8; 64] = {
    let mut counting = [0; 64];
    let mut i = 0;
    while i < 64 {
        counting[i] = i as u8;
        i += 1;
    }
    counting
};
