//! NEON: 4 components at a time.

use std::arch::aarch64::*;

use super::lanes::implementation;
use super::rows::{Rows, with_prefetch};
use super::{Implementation, PLANES, scalar};

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

/// Dot products of an i8 vector with codes of four bits.
fn dots_int4(query: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    let (first, second) = query.split_at(query.len() / 2);
    let whole = first.len() / 16 * 16;
    for (number, out) in with_prefetch(rows, numbers).zip(out) {
        let (row, rest) = rows.row(number)[..first.len()].split_at(whole);
        // SAFETY: implementation() handed this function out only after it found the instructions.
        let lanes = unsafe { dot_int4_lanes(&first[..whole], &second[..whole], row) };
        *out = lanes + scalar::dot_int4_halves(&first[whole..], &second[whole..], rest);
    }
}

#[target_feature(enable = "neon")]
fn dot_int4_lanes(first: &[u8], second: &[u8], row: &[u8]) -> i32 {
    let mut sum = vdupq_n_s32(0);
    for ((first, second), row) in
        first.chunks_exact(16).zip(second.chunks_exact(16)).zip(row.chunks_exact(16))
    {
        // SAFETY: all chunks hold 16 bytes, and the loads need no alignment.
        let (first, second, row) = unsafe {
            (vld1q_s8(first.as_ptr().cast()), vld1q_s8(second.as_ptr().cast()), vld1q_u8(row.as_ptr()))
        };
        let low = vreinterpretq_s8_u8(vandq_u8(row, vdupq_n_u8(15)));
        let high = vreinterpretq_s8_u8(vshrq_n_u8::<4>(row));
        sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(low), vget_low_s8(first)));
        sum = vpadalq_s16(sum, vmull_high_s8(low, first));
        sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(high), vget_low_s8(second)));
        sum = vpadalq_s16(sum, vmull_high_s8(high, second));
    }
    vaddvq_s32(sum)
}

/// Dot products of a vector in planes with rows of bits.
fn dots_bits(planes: &[u8], rows: Rows<'_>, numbers: &[u32], out: &mut [i32]) {
    let length = planes.len() / PLANES;
    let whole = length / 16 * 16;
    for (number, out) in with_prefetch(rows, numbers).zip(out) {
        let (row, rest) = rows.row(number)[..length].split_at(whole);
        // SAFETY: implementation() handed this function out only after it found the instructions.
        let lanes = unsafe { dot_bits_lanes(planes, length, row) };
        *out = lanes + scalar::dot_bits(&planes[whole..], length, rest);
    }
}

/// Product of a vector, whose planes begin `stride` bytes apart, with a row of bits that is as long as a multiple of 16 bytes.
#[target_feature(enable = "neon")]
fn dot_bits_lanes(planes: &[u8], stride: usize, row: &[u8]) -> i32 {
    let (mut plus, mut minus) = (vdupq_n_u32(0), vdupq_n_u32(0));
    for (at, row) in row.chunks_exact(16).enumerate() {
        // SAFETY: the chunk holds 16 bytes, and the load needs no alignment.
        let bits = unsafe { vld1q_u8(row.as_ptr()) };
        let common: [uint8x16_t; PLANES] = std::array::from_fn(|plane| {
            let start = plane * stride + at * 16;
            // SAFETY: the slice holds 16 bytes, and the load needs no alignment.
            let plane = unsafe { vld1q_u8(planes[start..start + 16].as_ptr()) };
            vcntq_u8(vandq_u8(bits, plane))
        });
        let [a, b, c, d] = common;
        // At most 8 + 2 · 8 + 4 · 8 bits.
        let low = vaddq_u8(vaddq_u8(a, vshlq_n_u8::<1>(b)), vshlq_n_u8::<2>(c));
        plus = vpadalq_u16(plus, vpaddlq_u8(low));
        minus = vpadalq_u16(minus, vpaddlq_u8(d));
    }
    vaddvq_u32(plus) as i32 - 8 * vaddvq_u32(minus) as i32
}
