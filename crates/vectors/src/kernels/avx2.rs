//! AVX2 with FMA: 8 components at a time.

use std::arch::x86_64::*;

use super::lanes::implementation;
use super::rows::{Rows, TOGETHER, in_fours, with_prefetch};
use super::{Implementation, scalar};

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
