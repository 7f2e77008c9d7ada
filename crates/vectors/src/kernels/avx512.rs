//! AVX-512: 16 components at a time.

use std::arch::x86_64::*;

use super::avx2::{dots_bits, dots_i8, dots_int4};
use super::lanes::implementation;
use super::rows::{Rows, with_prefetch};
use super::{Implementation, scalar};

const LANES: usize = 16;
type Vector = __m512;

// Products of bytes and of shorter codes are AVX2's, as wider ones ask for more than the foundation.
implementation!(
    "avx512",
    "avx512f",
    (is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma"))
);

#[target_feature(enable = "avx512f")]
fn zero() -> Vector {
    _mm512_setzero_ps()
}

/// # Safety
/// `LANES` f32 must be readable from `at`, at any alignment.
#[target_feature(enable = "avx512f")]
unsafe fn load(at: *const f32) -> Vector {
    // SAFETY: the caller's promise.
    unsafe { _mm512_loadu_ps(at) }
}

#[target_feature(enable = "avx512f")]
fn add(a: Vector, b: Vector) -> Vector {
    _mm512_add_ps(a, b)
}

#[target_feature(enable = "avx512f")]
fn subtract(a: Vector, b: Vector) -> Vector {
    _mm512_sub_ps(a, b)
}

#[target_feature(enable = "avx512f")]
fn multiply_add(sum: Vector, a: Vector, b: Vector) -> Vector {
    _mm512_fmadd_ps(a, b, sum)
}

#[target_feature(enable = "avx512f")]
fn total(sum: Vector) -> f32 {
    _mm512_reduce_add_ps(sum)
}
