//! AVX-512 with VNNI: `vpdpbusd` takes 64 multiplications; 12 tokens × 32 terms accumulate in 24 registers.

use std::arch::x86_64::*;

use super::{DIM_STEP, Document, Kernels, PANEL, Panel, select};

static KERNELS: Kernels = Kernels {
    name: "avx512",
    #[cfg(test)]
    maxima,
    candidates,
};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    (is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni"))
    .then_some(&KERNELS)
}

#[cfg(test)]
fn maxima(panel: &Panel<'_>, document: &Document<'_>, out: &mut [i32; PANEL]) {
    // SAFETY: `detect` hands this function out only where the processor has the features; `Kernels` checked that panel
    // and document agree.
    unsafe { maxima_vnni(panel, document, out) }
}

fn candidates(panel: &Panel<'_>, document: &Document<'_>) -> u32 {
    // SAFETY: `detect` hands this function out only where the processor has the features; `Kernels` checked that panel
    // and document agree.
    unsafe { candidates_vnni(panel, document) }
}

/// # Safety
/// The processor has the features, and `document.values` holds `tokens × panel.dims()` values.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn candidates_vnni(panel: &Panel<'_>, document: &Document<'_>) -> u32 {
    let mut out = [i32::MIN; PANEL];
    // SAFETY: the caller's promise.
    unsafe { maxima_vnni(panel, document, &mut out) };
    select(&out, panel, &document.limits)
}

/// # Safety
/// As [`candidates_vnni`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn maxima_vnni(panel: &Panel<'_>, document: &Document<'_>, out: &mut [i32; PANEL]) {
    // SAFETY: `out` holds 32 numbers: two whole registers.
    let mut max =
        unsafe { [_mm512_loadu_si512(out.as_ptr().cast()), _mm512_loadu_si512(out.as_ptr().add(16).cast())] };
    let dims = panel.dims();
    let tokens = document.tokens();
    let mut first = 0;
    while first < tokens {
        let rows = (tokens - first).min(12);
        // SAFETY: rows `first .. first + rows` exist, each of `dims` values, by the caller's promise.
        unsafe {
            let values = document.values.as_ptr().add(first * dims);
            let corrections = document.corrections.as_ptr().add(first);
            match rows {
                1 => block::<1>(panel, values, corrections, &mut max),
                2 => block::<2>(panel, values, corrections, &mut max),
                3 => block::<3>(panel, values, corrections, &mut max),
                4 => block::<4>(panel, values, corrections, &mut max),
                5 => block::<5>(panel, values, corrections, &mut max),
                6 => block::<6>(panel, values, corrections, &mut max),
                7 => block::<7>(panel, values, corrections, &mut max),
                8 => block::<8>(panel, values, corrections, &mut max),
                9 => block::<9>(panel, values, corrections, &mut max),
                10 => block::<10>(panel, values, corrections, &mut max),
                11 => block::<11>(panel, values, corrections, &mut max),
                _ => block::<12>(panel, values, corrections, &mut max),
            }
        }
        first += rows;
    }
    // SAFETY: as for the loads.
    unsafe {
        _mm512_storeu_si512(out.as_mut_ptr().cast(), max[0]);
        _mm512_storeu_si512(out.as_mut_ptr().add(16).cast(), max[1]);
    }
}

/// # Safety
/// The processor has the features; `values` is `[ROWS][panel.dims()]`, `corrections` is `[ROWS]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn block<const ROWS: usize>(
    panel: &Panel<'_>,
    values: *const i8,
    corrections: *const i32,
    max: &mut [__m512i; 2],
) {
    let dims = panel.dims();
    // `vpdpbusd` multiplies unsigned by signed bytes: 128 is added to each weight (flipping its sign bit), and each
    // token starts from −128 × the sum of its values, which undoes it.
    let flip = _mm512_set1_epi8(-128);
    let mut dots = [[_mm512_setzero_si512(); 2]; ROWS];
    for (row, dots) in dots.iter_mut().enumerate() {
        // SAFETY: `row < ROWS`.
        let start = _mm512_set1_epi32(unsafe { *corrections.add(row) });
        *dots = [start, start];
    }
    for (step, column) in panel.weights.chunks_exact(PANEL * DIM_STEP).enumerate() {
        // SAFETY: the column has 128 bytes: two registers.
        let (low, high) = unsafe {
            (_mm512_loadu_si512(column.as_ptr().cast()), _mm512_loadu_si512(column.as_ptr().add(64).cast()))
        };
        let (low, high) = (_mm512_xor_si512(low, flip), _mm512_xor_si512(high, flip));
        for (row, dots) in dots.iter_mut().enumerate() {
            // SAFETY: there are `dims / 4` columns, so `step * 4 + 4 <= dims`, and `row < ROWS`.
            let four = unsafe { values.add(row * dims + step * DIM_STEP).cast::<i32>().read_unaligned() };
            let four = _mm512_set1_epi32(four);
            dots[0] = _mm512_dpbusd_epi32(dots[0], low, four);
            dots[1] = _mm512_dpbusd_epi32(dots[1], high, four);
        }
    }
    for dots in &dots {
        max[0] = _mm512_max_epi32(max[0], dots[0]);
        max[1] = _mm512_max_epi32(max[1], dots[1]);
    }
}
