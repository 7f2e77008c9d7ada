//! The first look with AMX: products by [`crate::amx`], everything else by the AVX-512 kernels, which every processor with AMX can run.

use std::arch::x86_64::*;

use crate::amx;

use super::{Document, Kernels, PANEL, Panel, avx512};

#[cfg(test)]
mod tests;

static KERNELS: Kernels = Kernels {
    name: "amx",
    // SAFETY: `detect` hands this function out only where the processor has the features and the system allows their use;
    // `Kernels` checked that the lengths agree.
    screen: |panel, document, masks| unsafe { screen(panel, document, masks) },
    // SAFETY: as above.
    release: || unsafe { amx::release() },
    ..avx512::KERNELS
};

/// The kernels, if the processor has what they take besides tiles, which [`crate::instructions::tiles`] allows.
pub(super) fn beside_tiles() -> Option<&'static Kernels> {
    avx512::detect().is_some().then_some(&KERNELS)
}

/// For the tests: the AMX kernels, emulated on a processor that has only AVX-512.
#[cfg(test)]
pub(super) fn available() -> Option<&'static Kernels> {
    (avx512::detect().is_some() && amx::runs()).then_some(&KERNELS)
}

/// The AMX implementation of [`Kernels::screen`]: one mask for each token.
///
/// # Safety
/// The processor has the features and the system lets this process use them; `document.values` holds `tokens × panel.dims()`
/// values and there are `tokens` masks.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn screen(panel: &Panel<'_>, document: &Document<'_>, masks: &mut [u32]) {
    let (dims, tokens) = (panel.dims(), document.tokens);
    if dims == 0 || tokens == 0 {
        return (avx512::KERNELS.screen)(panel, document, masks);
    }
    let start = avx512::starts(panel, document);
    // SAFETY: the caller's promise, and a panel has its weights in steps of four dimensions; the products of `rows` tokens are there
    // when they are handed on.
    unsafe {
        amx::prepare(tokens, dims);
        amx::products(
            (document.values.as_ptr(), tokens),
            (panel.weights.as_ptr(), dims),
            |first, rows, dots| {
                for (row, mask) in masks[first..first + rows].iter_mut().enumerate() {
                    *mask = above(dots.add(row * PANEL), &start);
                }
            },
        );
    }
}

/// Which of a token's integer dot products are above the thresholds, as [`avx512::not_negative`] has it.
///
/// # Safety
/// The processor has the features; `dots` is `[PANEL]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn above(dots: *const i32, start: &[__m512i; 2]) -> u32 {
    // SAFETY: 32 numbers are two registers.
    let dots = unsafe { [_mm512_loadu_si512(dots.cast()), _mm512_loadu_si512(dots.add(16).cast())] };
    let sum = |half: usize| _mm512_add_epi32(dots[half], start[half]);
    avx512::not_negative(&[sum(0), sum(1)])
}
