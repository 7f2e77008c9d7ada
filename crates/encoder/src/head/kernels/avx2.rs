//! AVX2: byte products through `vpmaddubsw`, 4 tokens × 16 terms in eight accumulators.
//!
//! With 7-bit numbers on both sides two pairs of products fit 16 bits, so that widening to 32 bits is needed once for eight
//! dimensions: 10 instructions for 128 multiplications, where 8-bit numbers took 16. The coarser numbers let more terms
//! through to the exact step, which costs a tenth of what this saves.

use std::arch::x86_64::*;

use super::{
    DIM_STEP, Document, Kernels, Levels, PANEL, Pair, Panel, ROW_STEP, Rows, keep, quantisers, scalar,
    thresholds,
};

/// Shift of a document's values, since `vpmaddubsw` multiplies unsigned by signed bytes.
const SHIFT: u8 = 64;

static KERNELS: Kernels = Kernels {
    name: "avx2",
    levels: Levels { most: 63, shift: SHIFT },
    // SAFETY: `detect` hands these functions out only where the processor has the features; `Kernels` checked that the
    // lengths agree.
    quantise: |hidden, dims, padded, levels| unsafe { quantise(hidden, dims, padded, levels) },
    // SAFETY: as above.
    quantise_turned: |tokens, levels| unsafe { quantise_turned(tokens, levels) },
    // SAFETY: as above.
    screen: |panel, document, masks| unsafe { screen(panel, document, masks) },
    collect: scalar::collect,
    // SAFETY: as above.
    refine: |rows, document, pairs| unsafe { refine(rows, document, pairs) },
    release: || {},
};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(&KERNELS)
}

quantisers!("avx2,fma");

/// The AVX2 implementation of [`Kernels::screen`]: one mask for each token.
///
/// # Safety
/// The processor has the features, `document.values` holds `tokens × panel.dims()` values and there are `tokens` masks.
#[target_feature(enable = "avx2,fma")]
unsafe fn screen(panel: &Panel<'_>, document: &Document<'_>, masks: &mut [u32]) {
    let dims = panel.dims();
    let tokens = document.tokens;
    let limits = thresholds(panel.bounds, &document.limits, SHIFT);
    for half in 0..2 {
        // SAFETY: a half of the limits is two registers.
        let limits = unsafe {
            let start = limits.as_ptr().add(half * 16);
            [_mm256_loadu_si256(start.cast()), _mm256_loadu_si256(start.add(8).cast())]
        };
        let mut first = 0;
        while first < tokens {
            let rows = (tokens - first).min(4);
            // SAFETY: rows `first .. first + rows` exist, each of `dims` values, by the caller's promise.
            unsafe {
                let values = document.values.as_ptr().add(first * dims);
                let masks = masks.as_mut_ptr().add(first);
                match rows {
                    1 => block::<1>(panel, half, values, &limits, masks),
                    2 => block::<2>(panel, half, values, &limits, masks),
                    3 => block::<3>(panel, half, values, &limits, masks),
                    _ => block::<4>(panel, half, values, &limits, masks),
                }
            }
            first += rows;
        }
    }
}

/// Computes the masks of `ROWS` tokens for half a panel.
///
/// # Safety
/// The processor has the features; `values` is `[ROWS][panel.dims()]`, `half` is 0 or 1, `masks` is `[ROWS]`.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn block<const ROWS: usize>(
    panel: &Panel<'_>,
    half: usize,
    values: *const u8,
    thresholds: &[__m256i; 2],
    masks: *mut u32,
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
    for (row, dots) in dots.iter().enumerate() {
        let mut mask = 0;
        for part in 0..2 {
            let above = _mm256_cmpgt_epi32(dots[part], thresholds[part]);
            mask |= (_mm256_movemask_ps(_mm256_castsi256_ps(above)) as u32) << (part * 8);
        }
        // SAFETY: `row < ROWS`. The first half sets the mask, the second adds to it.
        unsafe {
            let whole = masks.add(row);
            *whole = if half == 0 { mask } else { *whole | mask << 16 };
        }
    }
}

/// The AVX2 implementation of [`Kernels::refine`].
///
/// # Safety
/// The processor has the features.
#[target_feature(enable = "avx2,fma")]
unsafe fn refine(rows: &Rows<'_>, document: &Document<'_>, pairs: &mut [Pair]) -> usize {
    let ones = _mm256_set1_epi16(1);
    keep(rows, document, SHIFT, pairs, |row, values| {
        let mut dots = _mm256_setzero_si256();
        for (row, values) in row.chunks_exact(ROW_STEP).zip(values.chunks_exact(ROW_STEP)) {
            // SAFETY: chunks of 64 bytes are two registers.
            let products = unsafe {
                let product = |at: usize| {
                    let values = _mm256_loadu_si256(values.as_ptr().add(at).cast());
                    _mm256_maddubs_epi16(values, _mm256_loadu_si256(row.as_ptr().add(at).cast()))
                };
                // At most 4 · 127 · 63 = 32,004: no saturation.
                _mm256_add_epi16(product(0), product(32))
            };
            dots = _mm256_add_epi32(dots, _mm256_madd_epi16(products, ones));
        }
        let dots = _mm_add_epi32(_mm256_castsi256_si128(dots), _mm256_extracti128_si256::<1>(dots));
        let dots = _mm_add_epi32(dots, _mm_shuffle_epi32::<0b01_00_11_10>(dots));
        _mm_cvtsi128_si32(_mm_add_epi32(dots, _mm_shuffle_epi32::<0b10_11_00_01>(dots)))
    })
}
