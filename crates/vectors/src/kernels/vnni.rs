//! AVX-512 with VNNI: one instruction multiplies and adds four bytes per 32-bit lane. Where there is VPOPCNTDQ too, another
//! counts the bits of a 64-bit lane.

use std::arch::x86_64::*;

use super::rows::{Rows, TOGETHER, in_fours};
use super::{Implementation, PLANES, avx512};

const BYTES: usize = 64;

/// AVX-512 VNNI implementation, or `None` if this machine lacks the instructions.
pub(super) fn implementation() -> Option<Implementation> {
    let detected = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni");
    let floats = avx512::implementation().filter(|_| detected)?;
    let counts = is_x86_feature_detected!("avx512vpopcntdq");
    let dots_bits = if counts { dots_bits } else { floats.dots_bits };
    Some(Implementation { name: "avx512_vnni", dots_i8, dots_int4, dots_bits, ..floats })
}

fn dots_i8(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // SAFETY: implementation() handed this function out only after it found the instructions.
    unsafe { dots_i8_lanes(query, rows, numbers, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dots_i8_lanes(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // The instruction wants one side without signs: rows are moved up by 128, which the sums take back.
    let moved = 128 * query.iter().map(|code| i32::from(*code as i8)).sum::<i32>();
    in_fours(rows, numbers, out, |four| sums(query, four).map(|sum| sum - moved));
}

/// Dot products of the query with rows of the same length, whose components are offset by 128.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sums(query: &[u8], rows: [&[u8]; TOGETHER]) -> [i32; TOGETHER] {
    let length = rows.iter().fold(query.len(), |length, row| length.min(row.len()));
    let up = _mm512_set1_epi8(-128);
    let mut sums = [_mm512_setzero_si512(); TOGETHER];
    let mut at = 0;
    while at + BYTES <= length {
        // SAFETY: BYTES bytes from `at` on are within the query and each row, and the loads need no alignment.
        unsafe {
            let q = _mm512_loadu_si512(query.as_ptr().add(at).cast());
            for (sum, row) in sums.iter_mut().zip(rows) {
                let row = _mm512_xor_si512(_mm512_loadu_si512(row.as_ptr().add(at).cast()), up);
                *sum = _mm512_dpbusd_epi32(*sum, row, q);
            }
        }
        at += BYTES;
    }
    if at < length {
        let tail_mask = (1_u64 << (length - at)) - 1;
        // SAFETY: the mask leaves only bytes within the query and each row; the others are not read.
        unsafe {
            let q = _mm512_maskz_loadu_epi8(tail_mask, query.as_ptr().add(at).cast());
            for (sum, row) in sums.iter_mut().zip(rows) {
                let row =
                    _mm512_xor_si512(_mm512_maskz_loadu_epi8(tail_mask, row.as_ptr().add(at).cast()), up);
                *sum = _mm512_dpbusd_epi32(*sum, row, q);
            }
        }
    }
    sums.map(|sum| _mm512_reduce_add_epi32(sum))
}

fn dots_int4(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // SAFETY: as in dots_i8.
    unsafe { dots_int4_lanes(query, rows, numbers, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn dots_int4_lanes(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    let (first, second) = query.split_at(query.len() / 2);
    in_fours(rows, numbers, out, |four| sums_int4(first, second, four));
}

/// Dot products of both halves of a query with the lower and the upper bits of rows that are as long as a half.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn sums_int4(first: &[u8], second: &[u8], rows: [&[u8]; TOGETHER]) -> [i32; TOGETHER] {
    let length = rows.iter().fold(first.len().min(second.len()), |length, row| length.min(row.len()));
    let low = _mm512_set1_epi8(15);
    let mut sums = [_mm512_setzero_si512(); TOGETHER];
    let mut at = 0;
    while at < length {
        let mask = if length - at >= BYTES { u64::MAX } else { (1 << (length - at)) - 1 };
        // SAFETY: the mask leaves only bytes within both halves and each row; the others are not read.
        let load = |bytes: &[u8]| unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().add(at).cast()) };
        let (first, second) = (load(first), load(second));
        for (sum, row) in sums.iter_mut().zip(rows) {
            let codes = load(row);
            let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(codes), low);
            *sum = _mm512_dpbusd_epi32(*sum, _mm512_and_si512(codes, low), first);
            *sum = _mm512_dpbusd_epi32(*sum, upper, second);
        }
        at += BYTES;
    }
    sums.map(|sum| _mm512_reduce_add_epi32(sum))
}

fn dots_bits(planes: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // SAFETY: implementation() handed this function out only after it found the instructions.
    unsafe { dots_bits_lanes(planes, rows, numbers, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn dots_bits_lanes(planes: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    in_fours(rows, numbers, out, |four| sums_bits(planes, four));
}

/// Dot products of a vector in planes with four rows, which are at least as long as a plane.
#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
fn sums_bits(planes: &[u8], rows: [&[u8]; TOGETHER]) -> [i32; TOGETHER] {
    let stride = planes.len() / PLANES;
    let length = rows.iter().fold(stride, |length, row| length.min(row.len()));
    let mut sums = [_mm512_setzero_si512(); TOGETHER];
    let mut at = 0;
    while at < length {
        let mask = if length - at >= BYTES { u64::MAX } else { (1 << (length - at)) - 1 };
        // SAFETY: the mask leaves only bytes within each plane and each row; the others are not read.
        let load = |bytes: &[u8]| unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().add(at).cast()) };
        let query: [__m512i; PLANES] = std::array::from_fn(|plane| load(&planes[plane * stride..]));
        for (sum, row) in sums.iter_mut().zip(rows) {
            let bits = load(row);
            let [a, b, c, d] = query.map(|plane| _mm512_popcnt_epi64(_mm512_and_si512(bits, plane)));
            let low = _mm512_add_epi64(a, _mm512_slli_epi64::<1>(b));
            let high = _mm512_sub_epi64(_mm512_slli_epi64::<2>(c), _mm512_slli_epi64::<3>(d));
            *sum = _mm512_add_epi64(*sum, _mm512_add_epi64(low, high));
        }
        at += BYTES;
    }
    totals(sums)
}

/// The sum of the 64-bit lanes of each vector, where it fits 32 bits.
#[target_feature(enable = "avx512f")]
fn totals([a, b, c, d]: [__m512i; TOGETHER]) -> [i32; TOGETHER] {
    let pairs = |a, b| _mm512_add_epi64(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    // a, c, b and d in turn, of 32 bits each.
    let all = _mm512_mask_blend_epi32(0xaaaa, pairs(a, b), _mm512_slli_epi64::<32>(pairs(c, d)));
    let half = _mm256_add_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64::<1>(all));
    let sums = _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
    let mut lanes = [0; TOGETHER];
    // SAFETY: the array holds four i32, and the store needs no alignment.
    unsafe { _mm_storeu_si128(lanes.as_mut_ptr().cast(), sums) };
    let [a, c, b, d] = lanes;
    [a, b, c, d]
}
