//! Kernels with AVX2: comparisons yield one bit per sum, and the bits that are set are then visited.

use std::arch::x86_64::*;

use super::{Candidates, GROUP, Implementation};

pub(super) fn implementation() -> Option<Implementation> {
    let found = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt");
    found.then_some(Implementation { name: "avx2", count, collect })
}

/// Bit mask of the sums in a group that are at least `floor`.
#[inline]
#[target_feature(enable = "avx2")]
fn reaching(sums: &[f32; GROUP], floor: __m256) -> u32 {
    // SAFETY: a group has 16 numbers.
    let (low, high) = unsafe { (_mm256_loadu_ps(sums.as_ptr()), _mm256_loadu_ps(sums.as_ptr().add(8))) };
    let bits = |some| _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GE_OQ>(some, floor)).cast_unsigned();
    bits(low) | bits(high) << 8
}

fn count(sums: &[[f32; GROUP]], floor: f32) -> usize {
    // SAFETY: implementation() found the instructions.
    unsafe { count_vectors(sums, floor) }
}

#[target_feature(enable = "avx2,popcnt")]
fn count_vectors(sums: &[[f32; GROUP]], floor: f32) -> usize {
    let floor = _mm256_set1_ps(floor);
    sums.iter().map(|sums| reaching(sums, floor).count_ones() as usize).sum()
}

fn collect(sums: &mut [[f32; GROUP]], floor: f32, start: u32, found: &mut Candidates) {
    // SAFETY: implementation() found the instructions.
    unsafe { collect_vectors(sums, floor, start, found) }
}

#[target_feature(enable = "avx2,bmi1")]
fn collect_vectors(sums: &mut [[f32; GROUP]], floor: f32, start: u32, found: &mut Candidates) {
    let floor = _mm256_set1_ps(floor);
    let mut len = 0;
    for (first, sums) in (start..).step_by(GROUP).zip(sums) {
        let mut bits = reaching(sums, floor);
        while bits != 0 {
            let at = bits.trailing_zeros();
            (found.docs[len], found.sums[len]) = (first + at, sums[at as usize]);
            len += 1;
            bits &= bits - 1;
        }
        *sums = [0.0; GROUP];
    }
    found.len = len;
}
