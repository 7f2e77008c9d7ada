//! AVX2: byte products through `vpmaddubsw`, 4 tokens × 16 terms in eight accumulators.
//!
//! With 7-bit numbers on both sides two pairs of products fit 16 bits, so that widening to 32 bits is needed once for eight
//! dimensions: 10 instructions for 128 multiplications, where 8-bit numbers took 16. The coarser numbers let more terms
//! through to the exact step, which costs a tenth of what this saves.

use std::arch::x86_64::*;

use super::{DIM_STEP, Document, Kernels, PANEL, Panel, select};

static KERNELS: Kernels = Kernels {
    name: "avx2",
    levels: 63,
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
    if tokens == 0 {
        return;
    }
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
                let values = document.shifted.as_ptr().add(first * dims);
                match rows {
                    1 => block::<1>(panel, half, values, &mut max),
                    2 => block::<2>(panel, half, values, &mut max),
                    3 => block::<3>(panel, half, values, &mut max),
                    _ => block::<4>(panel, half, values, &mut max),
                }
            }
            first += rows;
        }
        // The values came 64 too large: the same for all tokens of a term.
        let offset = shift(panel, half);
        max = [_mm256_sub_epi32(max[0], offset[0]), _mm256_sub_epi32(max[1], offset[1])];
        // SAFETY: as for the loads.
        unsafe {
            _mm256_storeu_si256(out.as_mut_ptr().cast(), max[0]);
            _mm256_storeu_si256(out.as_mut_ptr().add(8).cast(), max[1]);
        }
    }
}

/// 64 times the sum of each term's weights.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn shift(panel: &Panel<'_>, half: usize) -> [__m256i; 2] {
    let mut dots = [_mm256_setzero_si256(); 2];
    for column in panel.weights.chunks_exact(PANEL * DIM_STEP) {
        let column = &column[half * 64..][..64];
        for (part, dots) in dots.iter_mut().enumerate() {
            // SAFETY: 64 bytes are two registers.
            let weights = unsafe { _mm256_loadu_si256(column.as_ptr().add(part * 32).cast()) };
            let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), weights);
            *dots = _mm256_add_epi32(*dots, _mm256_madd_epi16(pairs, _mm256_set1_epi16(64)));
        }
    }
    dots
}

/// # Safety
/// The processor has the features; `values` is `[ROWS][panel.dims()]`, `half` is 0 or 1.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn block<const ROWS: usize>(
    panel: &Panel<'_>,
    half: usize,
    values: *const u8,
    max: &mut [__m256i; 2],
) {
    let dims = panel.dims();
    let ones = _mm256_set1_epi16(1);
    let mut dots = [[_mm256_setzero_si256(); 2]; ROWS];
    let (pairs, rest) = panel.weights.split_at(dims / 8 * 8 * PANEL);
    for (step, columns) in pairs.chunks_exact(2 * PANEL * DIM_STEP).enumerate() {
        // SAFETY: two columns of 128 bytes, and each half has 64 of either: four registers.
        let weights = unsafe {
            let start = columns.as_ptr().add(half * 64);
            let load = |at: usize| _mm256_loadu_si256(start.add(at).cast());
            [[load(0), load(128)], [load(32), load(160)]]
        };
        for (row, dots) in dots.iter_mut().enumerate() {
            // SAFETY: there are `dims / 8` pairs of columns, so `step * 8 + 8 <= dims`, and `row < ROWS`.
            let fours = unsafe {
                let at = values.add(row * dims + step * 2 * DIM_STEP).cast::<i32>();
                [_mm256_set1_epi32(at.read_unaligned()), _mm256_set1_epi32(at.add(1).read_unaligned())]
            };
            for (dots, weights) in dots.iter_mut().zip(&weights) {
                // At most 4 · 127 · 63 = 32,004: no saturation.
                let sums = _mm256_add_epi16(
                    _mm256_maddubs_epi16(fours[0], weights[0]),
                    _mm256_maddubs_epi16(fours[1], weights[1]),
                );
                *dots = _mm256_add_epi32(*dots, _mm256_madd_epi16(sums, ones));
            }
        }
    }
    for column in rest.chunks_exact(PANEL * DIM_STEP) {
        for (row, dots) in dots.iter_mut().enumerate() {
            // SAFETY: the last four dimensions of a row that exists.
            let four = unsafe { values.add(row * dims + dims - DIM_STEP).cast::<i32>().read_unaligned() };
            for (part, dots) in dots.iter_mut().enumerate() {
                // SAFETY: each half of a column has 64 bytes: two registers.
                let weights =
                    unsafe { _mm256_loadu_si256(column.as_ptr().add(half * 64 + part * 32).cast()) };
                let pairs = _mm256_maddubs_epi16(_mm256_set1_epi32(four), weights);
                *dots = _mm256_add_epi32(*dots, _mm256_madd_epi16(pairs, ones));
            }
        }
    }
    for dots in &dots {
        max[0] = _mm256_max_epi32(max[0], dots[0]);
        max[1] = _mm256_max_epi32(max[1], dots[1]);
    }
}
