//! NEON: 4 components at a time.

use std::arch::aarch64::*;

use super::lanes::implementation;
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
