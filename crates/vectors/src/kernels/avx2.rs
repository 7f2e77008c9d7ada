//! AVX2 with FMA: 8 components at a time.

use std::arch::x86_64::*;

use super::lanes::implementation;
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
