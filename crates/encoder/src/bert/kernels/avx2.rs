//! AVX2: 6 rows of 16 sums in 12 registers.

use std::arch::x86_64::*;

use super::int8::Whole;
use super::lanes::Lanes;
use super::{Kernels, kernels};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(&KERNELS)
}

// SAFETY: the intrinsics do what the trait says, on 8 numbers.
unsafe impl Lanes for __m256 {
    const LANES: usize = 8;
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: the processor has AVX2 and FMA by the caller's promise, here and below.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: `from` holds 8 numbers.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: `to` holds 8 numbers.
        unsafe { _mm256_storeu_ps(to, self) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_add_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_sub_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_mul_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_div_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_fmadd_ps(self, by, plus) }
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_max_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { _mm256_min_ps(self, other) }
    }

    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        // SAFETY: as above.
        unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(self), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        }
    }

    #[inline(always)]
    unsafe fn bytes(from: *const i8) -> Self {
        // SAFETY: `from` holds 8 bytes.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) }
    }

    #[inline(always)]
    unsafe fn widen<const UPPER: bool>(high: *const i16, low: *const u8) -> Self {
        // SAFETY: `high` holds 8 numbers and `low` 8 bytes.
        unsafe {
            let high = _mm256_slli_epi32::<4>(_mm256_cvtepi16_epi32(_mm_loadu_si128(high.cast())));
            let low = _mm256_cvtepu8_epi32(_mm_loadl_epi64(low.cast()));
            let low = if UPPER {
                _mm256_srli_epi32::<4>(low)
            } else {
                _mm256_and_si256(low, _mm256_set1_epi32(15))
            };
            _mm256_cvtepi32_ps(_mm256_or_si256(high, low))
        }
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: as above.
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
        }
    }

    #[inline(always)]
    unsafe fn largest(self) -> f32 {
        // SAFETY: as above.
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(self), _mm256_extractf128_ps::<1>(self));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)))
        }
    }
}

/// Multiplies two by two 16-bit numbers and adds both products (`vpmaddwd`); `vpmaddubsw`, which does it for bytes, would overflow at two
/// products of 255 by 128.
struct Pairs;

// SAFETY: the intrinsics do what the trait says, on 8 sums.
unsafe impl Whole for Pairs {
    type Floats = __m256;
    type Sums = __m256i;
    type Weights = __m256i;
    const GROUP: usize = 2;
    const SHIFT: u8 = 0;
    const WHOLE_ROWS: usize = 6;

    #[inline(always)]
    unsafe fn sums(from: *const i32) -> __m256i {
        // SAFETY: the processor has the instructions and `from` holds 8 numbers, by the caller's promise.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn weights(from: *const i8) -> __m256i {
        // SAFETY: as above, 16 bytes.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn word(from: *const i32) -> __m256i {
        // SAFETY: as above, one number.
        unsafe { _mm256_set1_epi32(*from) }
    }

    #[inline(always)]
    unsafe fn add_products(sums: __m256i, word: __m256i, weights: __m256i) -> __m256i {
        // SAFETY: the processor has the instructions.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(word, weights)) }
    }

    #[inline(always)]
    unsafe fn of_sums(sums: __m256i) -> __m256 {
        // SAFETY: as above.
        unsafe { _mm256_cvtepi32_ps(sums) }
    }

    #[inline(always)]
    unsafe fn put(numbers: __m256, to: *mut i32) {
        // SAFETY: `to` holds 8 numbers of 16 bits.
        unsafe {
            let whole = _mm256_cvtps_epi32(numbers);
            let both = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256::<1>(whole));
            _mm_storeu_si128(to.cast(), both);
        }
    }
}

kernels!("avx2", __m256, Pairs, "avx2,fma");
