//! AVX2: byte products through `vpmaddubsw`, 4 tokens × 16 terms in eight accumulators.

use std::arch::x86_64::*;

use super::{DIM_STEP, Document, Kernels, PANEL, Panel, select};

static KERNELS: Kernels = Kernels {
    name: "avx2",
    #[cfg(test)]
    maxima,
    candidates,
};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(&KERNELS)
}

#[cfg(test)]
fn maxima(panel: &Panel<'_>, document: &Document<'_>, out: &mut [i32; PANEL]) {
    // SAFETY: `detect` hands this function out only where the processor has the features; `Kernels` checked that panel
    // and document agree.
    unsafe { maxima_avx2(panel, document, out) }
}

fn candidates(panel: &Panel<'_>, document: &Document<'_>) -> u32 {
    // SAFETY: `detect` hands this function out only where the processor has the features; `Kernels` checked that panel
    // and document agree.
    unsafe { candidates_avx2(panel, document) }
}

/// # Safety
/// The processor has the features, and `document.values` holds `tokens × panel.dims()` values.
#[target_feature(enable = "avx2,fma")]
unsafe fn candidates_avx2(panel: &Panel<'_>, document: &Document<'_>) -> u32 {
    let mut out = [i32::MIN; PANEL];
    // SAFETY: the caller's promise.
    unsafe { maxima_avx2(panel, document, &mut out) };
    select(&out, panel, &document.limits)
}

/// # Safety
/// As [`candidates_avx2`].
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn maxima_avx2(panel: &Panel<'_>, document: &Document<'_>, out: &mut [i32; PANEL]) {
    let dims = panel.dims();
    let tokens = document.tokens();
    for half in 0..2 {
        let out = &mut out[half * 16..][..16];
        // SAFETY: `out` holds 16 numbers: two registers.
        let mut max = unsafe {
            [_mm256_loadu_si256(out.as_ptr().cast()), _mm256_loadu_si256(out.as_ptr().add(8).cast())]
        };
        let mut first = 0;
        while first < tokens {
            let rows = (tokens - first).min(4);
            // SAFETY: rows `first .. first + rows` exist, each of `dims` values, by the caller's promise.
            unsafe {
                let values = document.values.as_ptr().add(first * dims);
                match rows {
                    1 => block::<1>(panel, half, values, &mut max),
                    2 => block::<2>(panel, half, values, &mut max),
                    3 => block::<3>(panel, half, values, &mut max),
                    _ => block::<4>(panel, half, values, &mut max),
                }
            }
            first += rows;
        }
        // SAFETY: as for the loads.
        unsafe {
            _mm256_storeu_si256(out.as_mut_ptr().cast(), max[0]);
            _mm256_storeu_si256(out.as_mut_ptr().add(8).cast(), max[1]);
        }
    }
}

/// # Safety
/// The processor has the features; `values` is `[ROWS][panel.dims()]`, `half` is 0 or 1.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn block<const ROWS: usize>(
    panel: &Panel<'_>,
    half: usize,
    values: *const i8,
    max: &mut [__m256i; 2],
) {
    let dims = panel.dims();
    let ones = _mm256_set1_epi16(1);
    let mut dots = [[_mm256_setzero_si256(); 2]; ROWS];
    for (step, column) in panel.weights.chunks_exact(PANEL * DIM_STEP).enumerate() {
        // SAFETY: the column has 128 bytes, and each half has 64 of them: two registers.
        let weights = unsafe {
            let start = column.as_ptr().add(half * 64);
            [_mm256_loadu_si256(start.cast()), _mm256_loadu_si256(start.add(32).cast())]
        };
        // |w| · (h with the sign of w): the unsigned operand of `vpmaddubsw` stays at most 127, so that a pair sum is
        // at most 2 · 127², which fits 16 bits: no saturation.
        let sizes = [_mm256_abs_epi8(weights[0]), _mm256_abs_epi8(weights[1])];
        for (row, dots) in dots.iter_mut().enumerate() {
            // SAFETY: there are `dims / 4` columns, so `step * 4 + 4 <= dims`, and `row < ROWS`.
            let four = unsafe { values.add(row * dims + step * DIM_STEP).cast::<i32>().read_unaligned() };
            let four = _mm256_set1_epi32(four);
            for part in 0..2 {
                let pairs = _mm256_maddubs_epi16(sizes[part], _mm256_sign_epi8(four, weights[part]));
                dots[part] = _mm256_add_epi32(dots[part], _mm256_madd_epi16(pairs, ones));
            }
        }
    }
    for dots in &dots {
        max[0] = _mm256_max_epi32(max[0], dots[0]);
        max[1] = _mm256_max_epi32(max[1], dots[1]);
    }
}
