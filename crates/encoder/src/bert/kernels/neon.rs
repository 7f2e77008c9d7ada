//! NEON (every 64-bit ARM): 12 rows of 8 sums in 24 registers.

use std::arch::aarch64::*;

use super::generic::Lanes;
use super::{Kernels, kernels};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    std::arch::is_aarch64_feature_detected!("neon").then_some(&KERNELS)
}

// SAFETY: the intrinsics do what the trait says, on 4 numbers.
unsafe impl Lanes for float32x4_t {
    const LANES: usize = 4;
    const ROWS: usize = 12;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the processor has NEON by the caller's promise, here and below.
        unsafe { vdupq_n_f32(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: `from` holds 4 numbers.
        unsafe { vld1q_f32(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: `to` holds 4 numbers.
        unsafe { vst1q_f32(to, self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { vaddq_f32(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { vsubq_f32(self, other) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { vmulq_f32(self, other) }
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { vdivq_f32(self, other) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
        // SAFETY: as above.
        unsafe { vfmaq_f32(plus, self, by) }
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { vmaxq_f32(self, other) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { vminq_f32(self, other) }
    }

    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        // SAFETY: as above.
        unsafe {
            let biased = vaddq_s32(vcvtnq_s32_f32(self), vdupq_n_s32(127));
            vreinterpretq_f32_s32(vshlq_n_s32::<23>(biased))
        }
    }

    #[inline(always)]
    unsafe fn widen<const UPPER: bool>(high: *const i16, low: *const u8) -> Self {
        // SAFETY: `high` holds 4 numbers and `low` 4 bytes.
        unsafe {
            let high = vshll_n_s16::<4>(vld1_s16(high));
            let four = vcreate_u8(u64::from(low.cast::<u32>().read_unaligned()));
            let four = if UPPER { vshr_n_u8::<4>(four) } else { vand_u8(four, vdup_n_u8(15)) };
            let low = vmovl_u16(vget_low_u16(vmovl_u8(four)));
            vcvtq_f32_s32(vorrq_s32(high, vreinterpretq_s32_u32(low)))
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: as above.
        unsafe { vaddvq_f32(self) }
    }

    #[inline(always)]
    unsafe fn largest(self) -> f32 {
        // SAFETY: as above.
        unsafe { vmaxvq_f32(self) }
    }
}

kernels!("neon", float32x4_t, "neon");
