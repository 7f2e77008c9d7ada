//! AVX2 with BMI2: bytes expanded 8 at a time by PDEP, multiplied 16 at a time.

use std::arch::x86_64::*;

use super::x86::{LANES, bits_of, multiply_high_256};
use super::{DenseTerm, GROUP, Implementation, avx2_blocks, avx2_documents, documents, scalar};

/// AVX2 implementation, or `None` if this machine lacks the instructions.
pub(super) fn implementation() -> Option<Implementation> {
    let has = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    has.then_some(Implementation {
        name: "avx2",
        scanned_share: 0.35,
        add_dense,
        to_lanes: scalar::to_lanes,
        nonzero,
        at_least,
        rank,
        scatter,
        mask,
        mark,
        coarse_bounds: avx2_blocks::coarse_bounds,
        bounds: avx2_blocks::bounds,
        wanted_bounds: scalar::wanted_bounds,
        scopes: false,
        start: avx2_blocks::start,
        select: avx2_blocks::select,
        first_highest: avx2_blocks::first_highest,
        find_blocks: avx2_blocks::find_blocks,
        add_blocks: avx2_blocks::add_blocks,
        count: avx2_documents::count,
        find_dense: avx2_documents::find_dense,
        find_sparse: avx2_documents::find_sparse,
        list: documents::list,
        highest: documents::highest,
        bound_documents: documents::bound_documents,
        strict: 48,
    })
}

fn add_dense(sums: &mut [u16], wanted: &[u64], terms: &[DenseTerm<'_>]) {
    for term in terms {
        // SAFETY: implementation() found the instructions; Implementation::add_dense checked that
        // `sums` is whole groups and that the term covers them.
        unsafe { pass(sums, wanted, term) }
    }
}

/// # Safety
/// `sums` holds whole groups; the term's bitmap has a word per group and its impacts 64 bytes per
/// group and 64 more.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
unsafe fn pass(sums: &mut [u16], wanted: &[u64], term: &DenseTerm<'_>) {
    let bitmap = term.bitmap.as_ptr().cast::<u64>();
    let mut impacts = term.impacts.as_ptr();
    let factor = _mm256_set1_epi16(term.factor as i16);
    let high = _mm256_set1_epi16(0xff00_u16 as i16);
    for (group, (sums, wanted)) in sums.chunks_exact_mut(GROUP).zip(wanted).enumerate() {
        // SAFETY: the caller promises a word per group.
        let mask = unsafe { bitmap.add(group).read_unaligned() };
        if *wanted == 0 || mask == 0 {
            // SAFETY: at most 64 impacts per group are consumed.
            impacts = unsafe { impacts.add(mask.count_ones() as usize) };
            continue;
        }
        let mut expanded = [0_u64; 8];
        for (byte, slot) in mask.to_le_bytes().into_iter().zip(&mut expanded) {
            // A byte of ones for every bit of the mask.
            let places = _pdep_u64(u64::from(byte), 0x0101_0101_0101_0101) * 0xff;
            // SAFETY: before group g at most 64·g impacts were consumed, and at most 8 per step
            // since, so 8 bytes from here are inside the slice.
            unsafe {
                *slot = _pdep_u64(impacts.cast::<u64>().read_unaligned(), places);
                impacts = impacts.add(byte.count_ones() as usize);
            }
        }
        let sums: *mut __m256i = sums.as_mut_ptr().cast();
        for half in 0..2 {
            // SAFETY: `expanded` is two vectors, a group four: the even lanes of both halves, then
            // the odd ones; unaligned loads and stores.
            unsafe {
                let bytes = _mm256_loadu_si256(expanded.as_ptr().cast::<__m256i>().add(half));
                let low = multiply_high_256(_mm256_slli_epi16(bytes, 8), factor);
                let top = multiply_high_256(_mm256_and_si256(bytes, high), factor);
                let (even, odd) = (sums.add(half), sums.add(half + 2));
                _mm256_storeu_si256(even, _mm256_add_epi16(_mm256_loadu_si256(even), low));
                _mm256_storeu_si256(odd, _mm256_add_epi16(_mm256_loadu_si256(odd), top));
            }
        }
    }
}

fn nonzero(sums: &[u16], bits: &mut [u64]) {
    at_least(sums, 1, bits);
}

fn at_least(sums: &[u16], floor: u16, bits: &mut [u64]) {
    // SAFETY: implementation() found the instructions.
    unsafe { at_least_groups(sums, floor, bits) }
}

#[target_feature(enable = "avx2,bmi2")]
fn at_least_groups(sums: &[u16], floor: u16, bits: &mut [u64]) {
    let floor = _mm256_set1_epi16(floor as i16);
    for (sums, word) in sums.chunks_exact(GROUP).zip(bits) {
        let sums: *const __m256i = sums.as_ptr().cast();
        let reached = |at: usize| {
            // SAFETY: a group is four vectors; unaligned load.
            let sums = unsafe { _mm256_loadu_si256(sums.add(at)) };
            _mm256_cmpeq_epi16(_mm256_max_epu16(sums, floor), sums)
        };
        let even = bits_of(reached(0), reached(1));
        let odd = bits_of(reached(2), reached(3));
        *word = if even | odd == 0 {
            0
        } else {
            _pdep_u64(even, 0x5555_5555_5555_5555) | _pdep_u64(odd, 0xAAAA_AAAA_AAAA_AAAA)
        };
    }
}

pub(super) fn rank(block: &[u8; 16], end: u32) -> u32 {
    // SAFETY: implementation() found the instructions.
    unsafe { rank_in_block(block, end) }
}

#[target_feature(enable = "popcnt,bmi1,bmi2")]
fn rank_in_block(block: &[u8; 16], end: u32) -> u32 {
    let bits = u128::from_le_bytes(*block);
    let (low, high) = (bits as u64, (bits >> 64) as u64);
    // Bits at and above an index of 64 or more are none.
    _bzhi_u64(low, end.min(64)).count_ones() + _bzhi_u64(high, end.saturating_sub(64)).count_ones()
}

pub(super) fn scatter(ids: &[[u8; 2]], impacts: &[u8], factor: u16, sums: &mut [u16; 1 << 16]) {
    // Vectors of products only wait for the additions, one by one, and for memory between them: they
    // took half as long again.
    super::scalar::scatter(ids, impacts, factor, sums);
    // The term's next window follows, and comes after this window of the other terms.
    for line in 0..4 {
        let (ids, impacts) = (ids.as_ptr_range().end, impacts.as_ptr_range().end);
        // SAFETY: fetching touches no memory, whatever the address; every x86-64 has the instruction.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(ids.cast::<i8>().wrapping_add(line * 64));
            if line % 2 == 0 {
                _mm_prefetch::<_MM_HINT_T0>(impacts.cast::<i8>().wrapping_add(line * 32));
            }
        }
    }
}

pub(super) fn mask(wanted: &[u8], sums: &mut [u16]) {
    for (bits, sums) in wanted.iter().zip(sums.as_chunks_mut::<8>().0) {
        // SAFETY: every x86-64 has these instructions; 16 bytes each, unaligned.
        unsafe {
            let lanes = _mm_loadu_si128(LANES[usize::from(*bits)].as_ptr().cast());
            let sums: *mut __m128i = sums.as_mut_ptr().cast();
            _mm_storeu_si128(sums, _mm_and_si128(_mm_loadu_si128(sums), lanes));
        }
    }
}

pub(super) fn mark(sums: &[u16], bits: &mut [u64]) {
    // SAFETY: implementation() found the instructions.
    unsafe { mark_groups(sums, bits) }
}

#[target_feature(enable = "avx2")]
fn mark_groups(sums: &[u16], bits: &mut [u64]) {
    for (sums, word) in sums.as_chunks::<GROUP>().0.iter().zip(bits) {
        let sums: *const __m256i = sums.as_ptr().cast();
        let none = |at: usize| {
            // SAFETY: a group is four vectors; unaligned load.
            _mm256_cmpeq_epi16(unsafe { _mm256_loadu_si256(sums.add(at)) }, _mm256_setzero_si256())
        };
        *word |= !(bits_of(none(0), none(1)) | bits_of(none(2), none(3)) << 32);
    }
}
