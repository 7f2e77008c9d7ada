//! Operations on vectors that several files of x86 use, and tables of bytes for shuffling them.
//!
//! The multiplications are hidden from the compiler: it turns a 16-bit multiply-high whose operands it knows to be bytes into 32-bit
//! multiplications, 3.5 times slower.

use std::arch::asm;
use std::arch::x86_64::*;

/// `_mm_mulhi_epu16`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn multiply_high_128(a: __m128i, b: __m128i) -> __m128i {
    let product;
    // SAFETY: one instruction on registers, of the feature enabled here.
    unsafe {
        asm!(
            "vpmulhuw {product}, {a}, {b}",
            product = lateout(xmm_reg) product,
            a = in(xmm_reg) a,
            b = in(xmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}

/// `_mm256_mulhi_epu16`.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn multiply_high_256(a: __m256i, b: __m256i) -> __m256i {
    let product;
    // SAFETY: one instruction on registers, of the feature enabled here.
    unsafe {
        asm!(
            "vpmulhuw {product}, {a}, {b}",
            product = lateout(ymm_reg) product,
            a = in(ymm_reg) a,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}

/// `_mm512_mulhi_epu16`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn multiply_high_512(a: __m512i, b: __m512i) -> __m512i {
    let product;
    // SAFETY: one instruction on registers, of the features enabled here.
    unsafe {
        asm!(
            "vpmulhuw {product}, {a}, {b}",
            product = lateout(zmm_reg) product,
            a = in(zmm_reg) a,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    product
}

/// Packs two comparison results of sixteen 16-bit lanes each into one bit per lane, in order.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn bits_of(first: __m256i, second: __m256i) -> u64 {
    // Packing works within 128-bit halves; the permutation puts the quarters back in order.
    let packed = _mm256_permute4x64_epi64(_mm256_packs_epi16(first, second), 0b11_01_10_00);
    u64::from(_mm256_movemask_epi8(packed) as u32)
}

/// For every byte of a bitmap, a byte shuffle that moves each document's impact to the high byte of its
/// 16-bit lane and zeroes the low byte and lanes without a posting.
pub(super) static PLACES: [[u8; 16]; 256] = {
    let mut places = [[0x80; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut bit, mut next) = (0, 0);
        while bit < 8 {
            if mask >> bit & 1 == 1 {
                places[mask][bit * 2 + 1] = next;
                next += 1;
            }
            bit += 1;
        }
        mask += 1;
    }
    places
};

/// For every byte, a mask of eight 16-bit lanes: all ones where its bit is set.
pub(super) static LANES: [[u8; 16]; 256] = {
    let mut lanes = [[0; 16]; 256];
    let mut at = 0;
    while at < 256 * 8 {
        let (byte, bit) = (at / 8, at % 8);
        let lane = if byte >> bit & 1 == 1 { 255 } else { 0 };
        (lanes[byte][bit * 2], lanes[byte][bit * 2 + 1]) = (lane, lane);
        at += 1;
    }
    lanes
};
