//! NEON (every 64-bit ARM): widening byte products, 2 tokens × 16 terms in sixteen accumulators.

use std::arch::aarch64::*;

use super::{DIM_STEP, Document, Kernels, PANEL, Panel, select};

static KERNELS: Kernels = Kernels {
    name: "neon",
    #[cfg(test)]
    maxima,
    candidates,
};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(&KERNELS)
}

#[cfg(test)]
fn maxima(panel: &Panel<'_>, document: &Document<'_>, out: &mut [i32; PANEL]) {
    // SAFETY: `detect` hands this function out only where the processor has NEON; `Kernels` checked that panel and
    // document agree.
    unsafe { maxima_neon(panel, document, out) }
}

fn candidates(panel: &Panel<'_>, document: &Document<'_>) -> u32 {
    // SAFETY: `detect` hands this function out only where the processor has the features; `Kernels` checked that panel
    // and document agree.
    unsafe { candidates_neon(panel, document) }
}

/// # Safety
/// The processor has NEON, and `document.values` holds `tokens × panel.dims()` values.
#[target_feature(enable = "neon")]
unsafe fn candidates_neon(panel: &Panel<'_>, document: &Document<'_>) -> u32 {
    let mut out = [i32::MIN; PANEL];
    // SAFETY: the caller's promise.
    unsafe { maxima_neon(panel, document, &mut out) };
    select(&out, panel, &document.limits)
}

/// # Safety
/// As [`candidates_neon`].
#[inline]
#[target_feature(enable = "neon")]
unsafe fn maxima_neon(panel: &Panel<'_>, document: &Document<'_>, out: &mut [i32; PANEL]) {
    let dims = panel.dims();
    let tokens = document.tokens();
    for half in 0..2 {
        let out = &mut out[half * 16..][..16];
        let mut first = 0;
        while first < tokens {
            let rows = (tokens - first).min(2);
            // SAFETY: rows `first .. first + rows` exist, each of `dims` values, by the caller's promise.
            unsafe {
                let values = document.values.as_ptr().add(first * dims);
                match rows {
                    1 => block::<1>(panel, half, values, out),
                    _ => block::<2>(panel, half, values, out),
                }
            }
            first += rows;
        }
    }
}

/// # Safety
/// The processor has NEON; `values` is `[ROWS][panel.dims()]`, `half` is 0 or 1, `out` holds 16 numbers.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn block<const ROWS: usize>(panel: &Panel<'_>, half: usize, values: *const i8, out: &mut [i32]) {
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
    for dots in &dots {
        for quarter in 0..4 {
            let sums = vpaddq_s32(dots[quarter * 2], dots[quarter * 2 + 1]);
            let out = &mut out[quarter * 4..][..4];
            // SAFETY: `out` holds four numbers.
            unsafe { vst1q_s32(out.as_mut_ptr(), vmaxq_s32(vld1q_s32(out.as_ptr()), sums)) };
        }
    }
}
