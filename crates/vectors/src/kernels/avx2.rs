//! AVX2 with FMA: 8 components at a time.

use std::arch::x86_64::*;

use super::lanes::implementation;
use super::rows::{Rows, TOGETHER, in_fours, with_prefetch};
use super::{Implementation, PLANES, scalar};

const LANES: usize = 8;
type Vector = __m256;

implementation!("avx2", "avx2,fma", (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")));

#[target_feature(enable = "avx2,fma")]
fn zero() -> Vector {
    _mm256_setzero_ps()
}

/// # Safety
/// `LANES` f32 must be readable from `at`, at any alignment.
#[target_feature(enable = "avx2,fma")]
unsafe fn load(at: *const f32) -> Vector {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_ps(at) }
}

#[target_feature(enable = "avx2,fma")]
fn add(a: Vector, b: Vector) -> Vector {
    _mm256_add_ps(a, b)
}

#[target_feature(enable = "avx2,fma")]
fn subtract(a: Vector, b: Vector) -> Vector {
    _mm256_sub_ps(a, b)
}

#[target_feature(enable = "avx2,fma")]
fn multiply_add(sum: Vector, a: Vector, b: Vector) -> Vector {
    _mm256_fmadd_ps(a, b, sum)
}

#[target_feature(enable = "avx2,fma")]
fn total(sum: Vector) -> f32 {
    let mut lanes = [0.0; LANES];
    // SAFETY: the array holds LANES f32, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
    lanes.iter().sum()
}

/// Components of i8 vectors that are multiplied at a time.
const BYTES: usize = 16;

/// Dot products of an i8 vector with each of some rows.
pub(super) fn dots_i8(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // SAFETY: only implementations that found AVX2 and FMA hand this function out.
    unsafe { dots_i8_lanes(query, rows, numbers, out) }
}

#[target_feature(enable = "avx2,fma")]
fn dots_i8_lanes(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    let whole = query.len() / BYTES * BYTES;
    in_fours(rows, numbers, out, |four| {
        let sums = totals(sums_i8(&query[..whole], four));
        if whole == query.len() {
            return sums;
        }
        std::array::from_fn(|at| sums[at] + scalar::dot_i8(&query[whole..], &four[at][whole..]))
    });
}

/// Products of an i8 vector with four rows, which are at least as long, added up to eight sums each. The length of the
/// vector is a multiple of [`BYTES`].
#[target_feature(enable = "avx2,fma")]
fn sums_i8(query: &[u8], rows: [&[u8]; TOGETHER]) -> [__m256i; TOGETHER] {
    let length = rows.iter().fold(query.len(), |length, row| length.min(row.len()));
    let mut sums = [_mm256_setzero_si256(); TOGETHER];
    let mut at = 0;
    while at + BYTES <= length {
        // SAFETY: BYTES bytes from `at` on are within the query and each row, and the loads need no alignment.
        let load =
            |bytes: &[u8]| unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes.as_ptr().add(at).cast())) };
        let q = load(query);
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(q, load(row)));
        }
        at += BYTES;
    }
    sums
}

/// The sum of the lanes of each vector.
#[target_feature(enable = "avx2,fma")]
fn totals([a, b, c, d]: [__m256i; TOGETHER]) -> [i32; TOGETHER] {
    let pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(a, b), _mm256_hadd_epi32(c, d));
    let sums = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
    let mut lanes = [0; TOGETHER];
    // SAFETY: the array holds four i32, and the store needs no alignment.
    unsafe { _mm_storeu_si128(lanes.as_mut_ptr().cast(), sums) };
    lanes
}

/// Bytes of codes of four bits that are multiplied at a time.
const NIBBLES: usize = 32;

/// Dot products of an i8 vector with codes of four bits.
pub(super) fn dots_int4(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // SAFETY: only implementations that found AVX2 and FMA hand this function out.
    unsafe { dots_int4_lanes(query, rows, numbers, out) }
}

#[target_feature(enable = "avx2,fma")]
fn dots_int4_lanes(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    let (first, second) = query.split_at(query.len() / 2);
    let whole = first.len() / NIBBLES * NIBBLES;
    in_fours(rows, numbers, out, |four| {
        let sums = totals(sums_int4(&first[..whole], &second[..whole], four));
        if whole == first.len() {
            return sums;
        }
        let rest = |row: &[u8]| scalar::dot_int4_halves(&first[whole..], &second[whole..], &row[whole..]);
        std::array::from_fn(|at| sums[at] + rest(four[at]))
    });
}

/// Products of both halves of a vector with four rows, which are at least as long, added up to eight sums each. The length of
/// a half is a multiple of [`NIBBLES`].
#[target_feature(enable = "avx2,fma")]
fn sums_int4(first: &[u8], second: &[u8], rows: [&[u8]; TOGETHER]) -> [__m256i; TOGETHER] {
    let length = rows.iter().fold(first.len().min(second.len()), |length, row| length.min(row.len()));
    let (low, ones) = (_mm256_set1_epi8(15), _mm256_set1_epi16(1));
    let mut sums = [_mm256_setzero_si256(); TOGETHER];
    let mut at = 0;
    while at + NIBBLES <= length {
        // SAFETY: NIBBLES bytes from `at` on are within both halves and each row, and the loads need no alignment.
        let load = |bytes: &[u8]| unsafe { _mm256_loadu_si256(bytes.as_ptr().add(at).cast()) };
        let (first, second) = (load(first), load(second));
        for (sum, row) in sums.iter_mut().zip(rows) {
            let codes = load(row);
            let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(codes), low);
            // Four products of at most 15 · 128 fit 16 bits.
            let products = _mm256_add_epi16(
                _mm256_maddubs_epi16(_mm256_and_si256(codes, low), first),
                _mm256_maddubs_epi16(upper, second),
            );
            *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(products, ones));
        }
        at += NIBBLES;
    }
    sums
}

/// Bytes of bits that are compared at a time, with two planes in one vector.
const BITS: usize = 16;

/// Dot products of a vector in planes with rows of bits.
pub(super) fn dots_bits(planes: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    // SAFETY: only implementations that found AVX2 and FMA hand this function out.
    unsafe { dots_bits_lanes(planes, rows, numbers, out) }
}

#[target_feature(enable = "avx2,fma")]
fn dots_bits_lanes(planes: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    let length = planes.len() / PLANES;
    let whole = length / BITS * BITS;
    in_fours(rows, numbers, out, |four| {
        let sums = sums_bits(planes, length, four);
        if whole == length {
            return sums;
        }
        let rest = |row: &[u8]| scalar::dot_bits(&planes[whole..], length, &row[whole..length]);
        std::array::from_fn(|at| sums[at] + rest(four[at]))
    });
}

/// Dot products of a vector, whose planes are `length` bytes long, with four rows, which are at least as long; only of as many
/// bytes as make whole vectors.
#[target_feature(enable = "avx2,fma")]
fn sums_bits(planes: &[u8], length: usize, rows: [&[u8]; TOGETHER]) -> [i32; TOGETHER] {
    let length = rows.iter().fold(length.min(planes.len() / PLANES), |length, row| length.min(row.len()));
    let stride = planes.len() / PLANES;
    let low = _mm256_set1_epi8(15);
    // The number of bits in each number of four bits.
    let counts = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    let mut sums = [[_mm256_setzero_si256(); 2]; TOGETHER];
    let mut at = 0;
    while at + BITS <= length {
        // SAFETY: BITS bytes from `at` on are within each plane and each row, and the loads need no alignment.
        let load = |bytes: &[u8]| unsafe { _mm_loadu_si128(bytes.as_ptr().add(at).cast()) };
        let two = |plane: usize| {
            let [first, second] = [plane, plane + 1].map(|plane| load(&planes[plane * stride..]));
            _mm256_set_m128i(second, first)
        };
        let query = [two(0), two(2)];
        for (sums, row) in sums.iter_mut().zip(rows) {
            let bits = _mm256_broadcastsi128_si256(load(row));
            for (sum, query) in sums.iter_mut().zip(query) {
                let common = _mm256_and_si256(bits, query);
                let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(common), low);
                let ones = _mm256_add_epi8(
                    _mm256_shuffle_epi8(counts, _mm256_and_si256(common, low)),
                    _mm256_shuffle_epi8(counts, upper),
                );
                *sum = _mm256_add_epi64(*sum, _mm256_sad_epu8(ones, _mm256_setzero_si256()));
            }
        }
        at += BITS;
    }
    sums.map(|sums| {
        let mut lanes = [0_i64; 8];
        for (sum, lanes) in sums.into_iter().zip(lanes.as_chunks_mut::<4>().0) {
            // SAFETY: the array holds four i64, and the store needs no alignment.
            unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sum) };
        }
        let [a, b, c, d, e, f, g, h] = lanes;
        (a + b + 2 * (c + d) + 4 * (e + f) - 8 * (g + h)) as i32
    })
}
