//! AVX-512: 12 rows of 32 sums in 24 registers.

use std::arch::x86_64::*;

use super::int8::Whole;
use super::lanes::Lanes;
use super::{Kernels, kernels};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    (is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni"))
    .then_some(&KERNELS)
}

// SAFETY: the intrinsics do what the trait says, on 16 numbers.
unsafe impl Lanes for __m512 {
    const LANES: usize = 16;
    const ROWS: usize = 12;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the processor has AVX-512 by the caller's promise, here and below.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: `from` holds 16 numbers.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: `to` holds 16 numbers.
        unsafe { _mm512_storeu_ps(to, self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_add_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_sub_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_mul_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            // A division takes 16 cycles, and these four instructions about four. The first quotient is off by 2⁻¹⁴ of itself; what is left
            // over corrects it. The estimate is the only number here that processors of different makers may round differently.
            let inverse = _mm512_rcp14_ps(other);
            let quotient = _mm512_mul_ps(self, inverse);
            _mm512_fmadd_ps(_mm512_fnmadd_ps(quotient, other, self), inverse, quotient)
        }
    }

    #[inline(always)]
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_fmadd_ps(self, by, plus) }
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_max_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_min_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        // SAFETY: as above.
        unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(self), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }
    }

    #[inline(always)]
    unsafe fn times_power_of_two(self, power: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm512_scalef_ps(self, power) }
    }

    #[inline(always)]
    unsafe fn bytes(from: *const i8) -> Self {
        // SAFETY: `from` holds 16 bytes.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn widen<const UPPER: bool>(high: *const i16, low: *const u8) -> Self {
        // SAFETY: `high` holds 16 numbers and `low` 16 bytes.
        unsafe {
            let high = _mm512_slli_epi32::<4>(_mm512_cvtepi16_epi32(_mm256_loadu_si256(high.cast())));
            let low = _mm512_cvtepu8_epi32(_mm_loadu_si128(low.cast()));
            let whole = if UPPER {
                _mm512_or_si512(high, _mm512_srli_epi32::<4>(low))
            } else {
                // `high | low & 15`
                _mm512_ternarylogic_epi32::<0xF8>(high, low, _mm512_set1_epi32(15))
            };
            _mm512_cvtepi32_ps(whole)
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: as above.
        unsafe { _mm512_reduce_add_ps(self) }
    }

    #[inline(always)]
    unsafe fn largest(self) -> f32 {
        // SAFETY: as above.
        unsafe { _mm512_reduce_max_ps(self) }
    }

    #[inline(always)]
    unsafe fn transpose(rows: impl Fn(usize) -> *const f32, to: *mut f32, apart: usize) {
        // SAFETY: the rows and columns exist by the caller's promise.
        unsafe {
            // Four numbers of a column, of four rows: in place `4 * rows / 4 + c` those of the columns c, 4 + c, 8 + c, 12 + c.
            let mut fours = [_mm512_setzero_ps(); 16];
            for four in (0..16).step_by(4) {
                let row = |at: usize| _mm512_loadu_ps(rows(four + at));
                let low = |a, b| _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
                let high = |a, b| _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
                let (first, second) = (low(row(0), row(1)), low(row(2), row(3)));
                fours[four] = _mm512_castpd_ps(_mm512_unpacklo_pd(first, second));
                fours[four + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(first, second));
                let (first, second) = (high(row(0), row(1)), high(row(2), row(3)));
                fours[four + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(first, second));
                fours[four + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(first, second));
            }
            for c in 0..4 {
                let even = |a, b| _mm512_shuffle_f32x4::<0b10_00_10_00>(a, b);
                let odd = |a, b| _mm512_shuffle_f32x4::<0b11_01_11_01>(a, b);
                let (a, b) = (even(fours[c], fours[4 + c]), even(fours[8 + c], fours[12 + c]));
                even(a, b).store(to.add(c * apart));
                odd(a, b).store(to.add((8 + c) * apart));
                let (a, b) = (odd(fours[c], fours[4 + c]), odd(fours[8 + c], fours[12 + c]));
                even(a, b).store(to.add((4 + c) * apart));
                odd(a, b).store(to.add((12 + c) * apart));
            }
        }
    }
}

/// `vpdpbusd` multiplies four unsigned by four signed bytes and adds them to a sum of 32 bits.
pub(super) struct Vnni;

// SAFETY: the intrinsics do what the trait says, on 16 sums.
unsafe impl Whole for Vnni {
    type Floats = __m512;
    type Sums = __m512i;
    type Weights = __m512i;
    const GROUP: usize = 4;
    const SHIFT: u8 = 0;
    const WHOLE_ROWS: usize = 12;

    #[inline(always)]
    unsafe fn sums(from: *const i32) -> __m512i {
        // SAFETY: the processor has the instructions and `from` holds 16 numbers, by the caller's promise.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn weights(from: *const i8) -> __m512i {
        // SAFETY: as above, 64 bytes.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn word(from: *const i32) -> __m512i {
        // SAFETY: as above, one number.
        unsafe { _mm512_set1_epi32(*from) }
    }

    #[inline(always)]
    unsafe fn add_products(sums: __m512i, word: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: the processor has the instructions.
        unsafe { _mm512_dpbusd_epi32(sums, word, weights) }
    }

    #[inline(always)]
    unsafe fn of_sums(sums: __m512i) -> __m512 {
        // SAFETY: as above.
        unsafe { _mm512_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn put(numbers: __m512, to: *mut i32) {
        // SAFETY: `to` holds 16 bytes.
        unsafe { _mm_storeu_si128(to.cast(), _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(numbers))) }
    }
}

kernels!("avx512", __m512, Vnni, "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");
