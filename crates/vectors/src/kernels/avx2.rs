//! AVX2 with FMA: 8 components at a time.

use std::arch::x86_64::*;

use super::lanes::implementation;
use super::rows::{Rows, with_prefetch};
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

/// Dot product of two i8 vectors, 16 components at a time.
fn dot_i8(a: &[u8], b: &[u8]) -> i32 {
    let whole = a.len().min(b.len()) / 16 * 16;
    // SAFETY: only implementations that found AVX2 hand this function out.
    let lanes = unsafe { dot_i8_lanes(&a[..whole], &b[..whole]) };
    lanes + scalar::dot_i8(&a[whole..], &b[whole..])
}

/// Dot products of an i8 vector with each of some rows.
pub(super) fn dots_i8(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    for (number, out) in with_prefetch(rows, numbers).zip(out) {
        *out = dot_i8(query, rows.row(number));
    }
}

#[target_feature(enable = "avx2,fma")]
fn dot_i8_lanes(a: &[u8], b: &[u8]) -> i32 {
    let mut sums = [_mm256_setzero_si256(); 2];
    for (number, (a, b)) in a.chunks_exact(16).zip(b.chunks_exact(16)).enumerate() {
        // SAFETY: both chunks hold 16 bytes, and the loads need no alignment.
        let (a, b) = unsafe {
            (
                _mm256_cvtepi8_epi16(_mm_loadu_si128(a.as_ptr().cast())),
                _mm256_cvtepi8_epi16(_mm_loadu_si128(b.as_ptr().cast())),
            )
        };
        sums[number % 2] = _mm256_add_epi32(sums[number % 2], _mm256_madd_epi16(a, b));
    }
    let mut lanes = [0_i32; 8];
    // SAFETY: the array holds 8 i32, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), _mm256_add_epi32(sums[0], sums[1])) };
    lanes.iter().sum()
}
