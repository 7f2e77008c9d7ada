//! AVX-512 with VNNI: `vpdpbusd` takes 64 multiplications; 12 tokens × 32 terms accumulate in 24 registers.

use std::arch::x86_64::*;

use super::{DIM_STEP, Document, Kernels, PANEL, Pair, Panel, ROW_STEP, Rows, keep, thresholds};

/// `vpdpbusd` multiplies unsigned by signed bytes.
pub(super) const SHIFT: u8 = 128;

pub(super) static KERNELS: Kernels = Kernels {
    name: "avx512",
    levels: 127,
    shift: SHIFT,
    // SAFETY: `detect` hands these functions out only where the processor has the features; `Kernels` checked that the
    // lengths agree.
    screen: |panel, document, masks| unsafe { screen(panel, document, masks) },
    // SAFETY: as above.
    collect: |masks, first, found| unsafe { collect(masks, first, found) },
    // SAFETY: as above.
    refine: |rows, document, pairs| unsafe { refine(rows, document, pairs) },
    release: || {},
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

/// Tokens of one block.
const ROWS: usize = 12;

/// # Safety
/// The processor has the features, `document.values` holds `tokens × panel.dims()` values and there are `tokens` masks.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn screen(panel: &Panel<'_>, document: &Document<'_>, masks: &mut [u32]) {
    let limits = thresholds(panel.bounds, &document.limits, SHIFT);
    // SAFETY: 32 numbers are two whole registers.
    let limits = unsafe {
        [_mm512_loadu_si512(limits.as_ptr().cast()), _mm512_loadu_si512(limits.as_ptr().add(16).cast())]
    };
    let dims = panel.dims();
    let tokens = document.tokens;
    let mut first = 0;
    while first < tokens {
        // As even as possible, so that no block is left with one token.
        let left = tokens - first;
        let rows = left.div_ceil(left.div_ceil(ROWS));
        // SAFETY: rows `first .. first + rows` exist, each of `dims` values, by the caller's promise.
        unsafe {
            let values = document.values.as_ptr().add(first * dims);
            let masks = masks.as_mut_ptr().add(first);
            match rows {
                1 => block::<1>(panel, values, &limits, masks),
                2 => block::<2>(panel, values, &limits, masks),
                3 => block::<3>(panel, values, &limits, masks),
                4 => block::<4>(panel, values, &limits, masks),
                5 => block::<5>(panel, values, &limits, masks),
                6 => block::<6>(panel, values, &limits, masks),
                7 => block::<7>(panel, values, &limits, masks),
                8 => block::<8>(panel, values, &limits, masks),
                9 => block::<9>(panel, values, &limits, masks),
                10 => block::<10>(panel, values, &limits, masks),
                11 => block::<11>(panel, values, &limits, masks),
                _ => block::<12>(panel, values, &limits, masks),
            }
        }
        first += rows;
    }
}

/// # Safety
/// The processor has the features; `values` is `[ROWS][panel.dims()]`, `masks` is `[ROWS]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn block<const ROWS: usize>(
    panel: &Panel<'_>,
    values: *const u8,
    thresholds: &[__m512i; 2],
    masks: *mut u32,
) {
    let dims = panel.dims();
    let mut dots = [[_mm512_setzero_si512(); 2]; ROWS];
    for (step, column) in panel.weights.chunks_exact(PANEL * DIM_STEP).enumerate() {
        // SAFETY: the column has 128 bytes: two registers.
        let (low, high) = unsafe {
            (_mm512_loadu_si512(column.as_ptr().cast()), _mm512_loadu_si512(column.as_ptr().add(64).cast()))
        };
        for (row, dots) in dots.iter_mut().enumerate() {
            // SAFETY: there are `dims / 4` columns, so `step * 4 + 4 <= dims`, and `row < ROWS`.
            let four = unsafe { values.add(row * dims + step * DIM_STEP).cast::<i32>().read_unaligned() };
            let four = _mm512_set1_epi32(four);
            dots[0] = _mm512_dpbusd_epi32(dots[0], four, low);
            dots[1] = _mm512_dpbusd_epi32(dots[1], four, high);
        }
    }
    for (row, dots) in dots.iter().enumerate() {
        let low = _mm512_cmpgt_epi32_mask(dots[0], thresholds[0]);
        let high = _mm512_cmpgt_epi32_mask(dots[1], thresholds[1]);
        // SAFETY: `row < ROWS`.
        unsafe { _store_mask32(masks.add(row), _mm512_kunpackw(u32::from(high), u32::from(low))) };
    }
}

/// # Safety
/// The processor has the features.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn collect(masks: &[u32], first: u32, found: &mut Vec<Pair>) {
    found.reserve(masks.len() * PANEL);
    let mut len = found.len();
    let out = found.as_mut_ptr();
    for (sixteen, masks) in masks.chunks(16).enumerate() {
        let there = (1u32 << masks.len()) - 1;
        // SAFETY: masks beyond the last are not loaded.
        let vector = unsafe { _mm512_maskz_loadu_epi32(there as u16, masks.as_ptr().cast()) };
        // Most tokens have no pair: a branch for each would be foreseen badly.
        let mut some = _mm512_test_epi32_mask(vector, vector);
        while some != 0 {
            let place = some.trailing_zeros() as usize;
            some &= some - 1;
            let token = (sixteen * 16 + place) as u32;
            let mut left = masks[place];
            while left != 0 {
                // SAFETY: there is room for a pair of each bit.
                unsafe { out.add(len).write(Pair { term: first + left.trailing_zeros(), token }) };
                len += 1;
                left &= left - 1;
            }
        }
    }
    // SAFETY: that many have been written.
    unsafe { found.set_len(len) };
}

/// # Safety
/// The processor has the features.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn refine(rows: &Rows<'_>, document: &Document<'_>, pairs: &mut [Pair]) -> usize {
    keep(rows, document, SHIFT, pairs, |row, values| {
        let mut dots = _mm512_setzero_si512();
        for (row, values) in row.chunks_exact(ROW_STEP).zip(values.chunks_exact(ROW_STEP)) {
            // SAFETY: chunks of 64 bytes are one register.
            unsafe {
                let values = _mm512_loadu_si512(values.as_ptr().cast());
                dots = _mm512_dpbusd_epi32(dots, values, _mm512_loadu_si512(row.as_ptr().cast()));
            }
        }
        _mm512_reduce_add_epi32(dots)
    })
}
