//! AVX2 with FMA: 8 components at a time.

use std::arch::x86_64::*;

use super::{Implementation, scalar};

const LANES: usize = 8;

/// This implementation, when the machine has the instructions.
pub(super) fn implementation() -> Option<Implementation> {
    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Implementation {
        name: "avx2",
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

#[target_feature(enable = "avx2,fma")]
fn dot_lanes(query: &[f32], row: &[u8]) -> f32 {
    // Four sums, because one addition has to wait for the one before it.
    let mut sums = [_mm256_setzero_ps(); 4];
    for (number, (q, v)) in query.chunks_exact(LANES).zip(row.chunks_exact(LANES * 4)).enumerate() {
        // SAFETY: both chunks hold LANES f32, and the loads need no alignment.
        let (q, v) = unsafe { (_mm256_loadu_ps(q.as_ptr()), _mm256_loadu_ps(v.as_ptr().cast())) };
        sums[number % 4] = _mm256_fmadd_ps(q, v, sums[number % 4]);
    }
    total(sums)
}

#[target_feature(enable = "avx2,fma")]
fn squared_distance_lanes(query: &[f32], row: &[u8]) -> f32 {
    let mut sums = [_mm256_setzero_ps(); 4];
    for (number, (q, v)) in query.chunks_exact(LANES).zip(row.chunks_exact(LANES * 4)).enumerate() {
        // SAFETY: as in dot_lanes.
        let (q, v) = unsafe { (_mm256_loadu_ps(q.as_ptr()), _mm256_loadu_ps(v.as_ptr().cast())) };
        let difference = _mm256_sub_ps(q, v);
        sums[number % 4] = _mm256_fmadd_ps(difference, difference, sums[number % 4]);
    }
    total(sums)
}

#[target_feature(enable = "avx2,fma")]
fn total(sums: [__m256; 4]) -> f32 {
    let sum = _mm256_add_ps(_mm256_add_ps(sums[0], sums[1]), _mm256_add_ps(sums[2], sums[3]));
    let mut lanes = [0.0; LANES];
    // SAFETY: the array holds LANES f32, and the store needs no alignment.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
    lanes.iter().sum()
}
