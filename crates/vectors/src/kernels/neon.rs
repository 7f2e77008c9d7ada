//! NEON: 4 components at a time.

use std::arch::aarch64::*;

use super::lanes::implementation;
use super::rows::{Rows, with_prefetch};
use super::{Implementation, scalar};

const LANES: usize = 4;
type Vector = float32x4_t;

implementation!("neon", "neon", std::arch::is_aarch64_feature_detected!("neon"));

#[target_feature(enable = "neon")]
fn zero() -> Vector {
    vdupq_n_f32(0.0)
}

/// # Safety
/// `LANES` f32 must be readable from `at`, at any alignment.
#[target_feature(enable = "neon")]
unsafe fn load(at: *const f32) -> Vector {
    // SAFETY: the caller's promise.
    unsafe { vld1q_f32(at) }
}

#[target_feature(enable = "neon")]
fn add(a: Vector, b: Vector) -> Vector {
    vaddq_f32(a, b)
}

#[target_feature(enable = "neon")]
fn subtract(a: Vector, b: Vector) -> Vector {
    vsubq_f32(a, b)
}

#[target_feature(enable = "neon")]
fn multiply_add(sum: Vector, a: Vector, b: Vector) -> Vector {
    vfmaq_f32(sum, a, b)
}

#[target_feature(enable = "neon")]
fn total(sum: Vector) -> f32 {
    vaddvq_f32(sum)
}

/// Dot product of two i8 vectors, 16 components at a time.
fn dot_i8(a: &[u8], b: &[u8]) -> i32 {
    let whole = a.len().min(b.len()) / 16 * 16;
    // SAFETY: implementation() handed this function out only after it found the instructions.
    let lanes = unsafe { dot_i8_lanes(&a[..whole], &b[..whole]) };
    lanes + scalar::dot_i8(&a[whole..], &b[whole..])
}

/// Dot products of an i8 vector with each of some rows.
fn dots_i8(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    for (number, out) in with_prefetch(rows, numbers).zip(out) {
        *out = dot_i8(query, rows.row(number));
    }
}

#[target_feature(enable = "neon")]
fn dot_i8_lanes(a: &[u8], b: &[u8]) -> i32 {
    let mut sum = vdupq_n_s32(0);
    for (a, b) in a.chunks_exact(16).zip(b.chunks_exact(16)) {
        // SAFETY: both chunks hold 16 bytes, and the loads need no alignment.
        let (a, b) = unsafe { (vld1q_s8(a.as_ptr().cast()), vld1q_s8(b.as_ptr().cast())) };
        sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(a), vget_low_s8(b)));
        sum = vpadalq_s16(sum, vmull_high_s8(a, b));
    }
    vaddvq_s32(sum)
}
