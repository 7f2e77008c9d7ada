//! NEON: 4 components at a time.

use std::arch::aarch64::*;

use super::{Implementation, scalar};

const LANES: usize = 4;

/// This implementation, when the machine has the instructions.
pub(super) fn implementation() -> Option<Implementation> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(Implementation {
        name: "neon",
        dot,
        squared_distance,
    })
}

fn dot(query: &[f32], row: &[u8]) -> f32 {
    let whole = whole_lanes(query, row);
    // SAFETY: implementation() handed this function out only after it found the instructions.
    let lanes = unsafe { dot_lanes(&query[..whole], &row[..whole * 4]) };
    lanes + scalar::dot(&query[whole..], &row[whole * 4..])
}

fn squared_distance(query: &[f32], row: &[u8]) -> f32 {
    let whole = whole_lanes(query, row);
    // SAFETY: as in dot.
    let lanes = unsafe { squared_distance_lanes(&query[..whole], &row[..whole * 4]) };
    lanes + scalar::squared_distance(&query[whole..], &row[whole * 4..])
}

/// Components that fill whole vectors, by the shorter of the two.
fn whole_lanes(query: &[f32], row: &[u8]) -> usize {
    query.len().min(row.len() / 4) / LANES * LANES
}

#[target_feature(enable = "neon")]
fn dot_lanes(query: &[f32], row: &[u8]) -> f32 {
    // Four sums, because one addition has to wait for the one before it.
    let mut sums = [vdupq_n_f32(0.0); 4];
    for (number, (q, v)) in query.chunks_exact(LANES).zip(row.chunks_exact(LANES * 4)).enumerate() {
        // SAFETY: both chunks hold LANES f32, and the loads need no alignment.
        let (q, v) = unsafe { (vld1q_f32(q.as_ptr()), vld1q_f32(v.as_ptr().cast())) };
        sums[number % 4] = vfmaq_f32(sums[number % 4], q, v);
    }
    total(sums)
}

#[target_feature(enable = "neon")]
fn squared_distance_lanes(query: &[f32], row: &[u8]) -> f32 {
    let mut sums = [vdupq_n_f32(0.0); 4];
    for (number, (q, v)) in query.chunks_exact(LANES).zip(row.chunks_exact(LANES * 4)).enumerate() {
        // SAFETY: as in dot_lanes.
        let (q, v) = unsafe { (vld1q_f32(q.as_ptr()), vld1q_f32(v.as_ptr().cast())) };
        let difference = vsubq_f32(q, v);
        sums[number % 4] = vfmaq_f32(sums[number % 4], difference, difference);
    }
    total(sums)
}

#[target_feature(enable = "neon")]
fn total(sums: [float32x4_t; 4]) -> f32 {
    vaddvq_f32(vaddq_f32(vaddq_f32(sums[0], sums[1]), vaddq_f32(sums[2], sums[3])))
}
