//! NEON (every 64-bit ARM): 12 rows of 8 sums in 24 registers.

use std::arch::aarch64::*;

use super::int8::Whole;
use super::lanes::Lanes;
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
    unsafe fn bytes(from: *const i8) -> Self {
        // SAFETY: `from` holds 4 bytes.
        unsafe {
            let bytes = vcreate_s8(u64::from(from.cast::<u32>().read_unaligned()));
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))))
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

/// Multiplies signed bytes to 16-bit numbers (`smull`) and adds adjacent ones to 32-bit sums (`sadalp`), of which each column has two. 128
/// is subtracted from the numbers of a row to make them signed.
struct Pairs;

// SAFETY: the intrinsics do what the trait says, on 4 sums.
unsafe impl Whole for Pairs {
    type Floats = float32x4_t;
    type Sums = [int32x4_t; 2];
    type Weights = int8x16_t;
    const GROUP: usize = 4;
    const SHIFT: u8 = 128;
    const WHOLE_ROWS: usize = 4;

    #[inline(always)]
    unsafe fn sums(from: *const i32) -> [int32x4_t; 2] {
        // SAFETY: the processor has the instructions and `from` holds 4 numbers, by the caller's promise.
        unsafe {
            let (sums, none) = (vld1q_s32(from), vdupq_n_s32(0));
            [vzip1q_s32(sums, none), vzip2q_s32(sums, none)]
        }
    }

    #[inline(always)]
    unsafe fn weights(from: *const i8) -> int8x16_t {
        // SAFETY: as above, 16 bytes.
        unsafe { vld1q_s8(from) }
    }

    #[inline(always)]
    unsafe fn word(from: *const i32) -> int8x16_t {
        // SAFETY: as above, one number.
        unsafe { vreinterpretq_s8_s32(vdupq_n_s32(*from)) }
    }

    #[inline(always)]
    unsafe fn add_products(sums: [int32x4_t; 2], word: int8x16_t, weights: int8x16_t) -> [int32x4_t; 2] {
        // SAFETY: the processor has the instructions.
        unsafe {
            let low = vmull_s8(vget_low_s8(word), vget_low_s8(weights));
            [vpadalq_s16(sums[0], low), vpadalq_s16(sums[1], vmull_high_s8(word, weights))]
        }
    }

    #[inline(always)]
    unsafe fn of_sums(sums: [int32x4_t; 2]) -> float32x4_t {
        // SAFETY: as above.
        unsafe { vcvtq_f32_s32(vpaddq_s32(sums[0], sums[1])) }
    }

    #[inline(always)]
    unsafe fn put(numbers: float32x4_t, to: *mut i32) {
        // SAFETY: `to` holds 4 bytes.
        unsafe {
            let whole = vsubq_s32(vcvtnq_s32_f32(numbers), vdupq_n_s32(i32::from(Self::SHIFT)));
            let bytes = vqmovn_s16(vcombine_s16(vqmovn_s32(whole), vdup_n_s16(0)));
            to.write(vget_lane_s32::<0>(vreinterpret_s32_s8(bytes)));
        }
    }
}

kernels!("neon", float32x4_t, Pairs, "neon");
