//! NEON (every 64-bit ARM): widening byte products, 2 tokens × 16 terms in sixteen accumulators.

use std::arch::aarch64::*;

use crate::head::quantize::Quantized;

use super::{DIM_STEP, Document, Kernels, Levels, PANEL, Panel, scalar, thresholds};

static KERNELS: Kernels = Kernels {
    name: "neon",
    levels: Levels { most: 127, shift: 0 },
    quantise: Quantized::whole,
    quantise_turned: Quantized::turned,
    // SAFETY: `detect` hands this function out only where the processor has NEON; `Kernels` checked that the lengths agree.
    screen: |panel, document, masks| unsafe { screen(panel, document, masks) },
    collect: scalar::collect,
    refine: scalar::refine,
    release: || {},
};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(&KERNELS)
}

/// The NEON implementation of [`Kernels::screen`]: one mask for each token.
///
/// # Safety
/// The processor has NEON, `document.values` holds `tokens × panel.dims()` values and there are `tokens` masks.
#[target_feature(enable = "neon")]
unsafe fn screen(panel: &Panel<'_>, document: &Document<'_>, masks: &mut [u32]) {
    let thresholds = thresholds(panel.bounds, &document.limits, 0);
    let dims = panel.dims();
    for (pair, masks) in masks.chunks_mut(2).enumerate() {
        let mut dots = [[0; PANEL]; 2];
        for half in 0..2 {
            // SAFETY: there is a token for each mask, of `dims` values, by the caller's promise.
            unsafe {
                let values = document.values.as_ptr().add(2 * pair * dims).cast::<i8>();
                match masks.len() {
                    1 => block::<1>(panel, half, values, &mut dots),
                    _ => block::<2>(panel, half, values, &mut dots),
                }
            }
        }
        for (mask, dots) in masks.iter_mut().zip(&dots) {
            *mask = scalar::above(dots, &thresholds);
        }
    }
}

/// Computes the masks of `ROWS` tokens for half a panel.
///
/// # Safety
/// The processor has NEON; `values` is `[ROWS][panel.dims()]`, `half` is 0 or 1.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn block<const ROWS: usize>(
    panel: &Panel<'_>,
    half: usize,
    values: *const i8,
    out: &mut [[i32; PANEL]; 2],
) {
    let dims = panel.dims();
    // Each accumulator holds two terms, two partial sums each.
    let mut dots = [[vdupq_n_s32(0); 8]; ROWS];
    for (step, column) in panel.weights.chunks_exact(PANEL * DIM_STEP).enumerate() {
        let mut fours = [vdup_n_s8(0); ROWS];
        for (row, four) in fours.iter_mut().enumerate() {
            // SAFETY: there are `dims / 4` columns, so `step * 4 + 4 <= dims`, and `row < ROWS`.
            let bytes = unsafe { values.add(row * dims + step * DIM_STEP).cast::<i32>().read_unaligned() };
            *four = vreinterpret_s8_s32(vdup_n_s32(bytes));
        }
        for quarter in 0..4 {
            // SAFETY: the column has 128 bytes, each half has 64 of them: four registers.
            let weights = unsafe { vld1q_s8(column.as_ptr().add(half * 64 + quarter * 16)) };
            let (low, high) = (vget_low_s8(weights), vget_high_s8(weights));
            for (dots, four) in dots.iter_mut().zip(fours) {
                dots[quarter * 2] = vpadalq_s16(dots[quarter * 2], vmull_s8(low, four));
                dots[quarter * 2 + 1] = vpadalq_s16(dots[quarter * 2 + 1], vmull_s8(high, four));
            }
        }
    }
    for (dots, out) in dots.iter().zip(out) {
        for quarter in 0..4 {
            let sums = vpaddq_s32(dots[quarter * 2], dots[quarter * 2 + 1]);
            let out = &mut out[half * 16 + quarter * 4..][..4];
            // SAFETY: `out` holds four numbers.
            unsafe { vst1q_s32(out.as_mut_ptr(), sums) };
        }
    }
}
