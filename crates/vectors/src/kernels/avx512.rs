//! AVX-512: 16 components at a time.

use std::arch::x86_64::*;

use super::{Implementation, scalar};

const LANES: usize = 16;

/// This implementation, when the machine has the instructions.
pub(super) fn implementation() -> Option<Implementation> {
    is_x86_feature_detected!("avx512f").then_some(Implementation { name: "avx512", dot, squared_distance })
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

#[target_feature(enable = "avx512f")]
fn dot_lanes(query: &[f32], row: &[u8]) -> f32 {
    // Four sums, because one addition has to wait for the one before it.
    let mut sums = [_mm512_setzero_ps(); 4];
    for (number, (q, v)) in query.chunks_exact(LANES).zip(row.chunks_exact(LANES * 4)).enumerate() {
        // SAFETY: both chunks hold LANES f32, and the loads need no alignment.
        let (q, v) = unsafe { (_mm512_loadu_ps(q.as_ptr()), _mm512_loadu_ps(v.as_ptr().cast())) };
        sums[number % 4] = _mm512_fmadd_ps(q, v, sums[number % 4]);
    }
    total(sums)
}

#[target_feature(enable = "avx512f")]
fn squared_distance_lanes(query: &[f32], row: &[u8]) -> f32 {
    let mut sums = [_mm512_setzero_ps(); 4];
    for (number, (q, v)) in query.chunks_exact(LANES).zip(row.chunks_exact(LANES * 4)).enumerate() {
        // SAFETY: as in dot_lanes.
        let (q, v) = unsafe { (_mm512_loadu_ps(q.as_ptr()), _mm512_loadu_ps(v.as_ptr().cast())) };
        let difference = _mm512_sub_ps(q, v);
        sums[number % 4] = _mm512_fmadd_ps(difference, difference, sums[number % 4]);
    }
    total(sums)
}

#[target_feature(enable = "avx512f")]
fn total(sums: [__m512; 4]) -> f32 {
    _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])))
}
