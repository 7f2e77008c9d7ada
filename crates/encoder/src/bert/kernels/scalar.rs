//! The implementation in plain arrays: always compiled, and the fallback on every processor.

use super::int8::Whole;
use super::kernels;
use super::lanes::{Lanes, ROUNDER};

/// A vector of four numbers, which compilers put into one register if the processor has such.
#[derive(Clone, Copy)]
pub(super) struct Four([f32; 4]);

impl Four {
    #[inline(always)]
    fn zip(self, other: Self, with: impl Fn(f32, f32) -> f32) -> Self {
        let (a, b) = (self.0, other.0);
        Self([with(a[0], b[0]), with(a[1], b[1]), with(a[2], b[2]), with(a[3], b[3])])
    }
}

// SAFETY: plain arithmetic on 4 numbers.
unsafe impl Lanes for Four {
    const LANES: usize = 4;
    const ROWS: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: `from` holds 4 numbers.
        Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: `to` holds 4 numbers.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }

    #[inline(always)]
    unsafe fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }

    #[inline(always)]
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self {
        // Two roundings: a fused multiplication is a library call where there is no instruction for it.
        self.zip(by, |a, b| a * b).zip(plus, |a, b| a + b)
    }

    #[inline(always)]
    unsafe fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    unsafe fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    unsafe fn power_of_two(self) -> Self {
        Self(self.0.map(|whole| f32::from_bits(((whole as i32 + 127) << 23) as u32)))
    }

    #[inline(always)]
    unsafe fn bytes(from: *const i8) -> Self {
        // SAFETY: `from` holds 4 bytes.
        Self(unsafe { from.cast::<[i8; 4]>().read_unaligned() }.map(f32::from))
    }

    #[inline(always)]
    unsafe fn widen<const UPPER: bool>(high: *const i16, low: *const u8) -> Self {
        // SAFETY: `high` holds 4 numbers and `low` 4 bytes.
        let (high, low) =
            unsafe { (high.cast::<[i16; 4]>().read_unaligned(), low.cast::<[u8; 4]>().read_unaligned()) };
        let shift = if UPPER { 4 } else { 0 };
        let whole = |at: usize| (i32::from(high[at]) << 4 | i32::from(low[at] >> shift & 15)) as f32;
        Self([whole(0), whole(1), whole(2), whole(3)])
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        (self.0[0] + self.0[2]) + (self.0[1] + self.0[3])
    }

    #[inline(always)]
    unsafe fn largest(self) -> f32 {
        self.0.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
}

/// The definition, four products at a time.
struct Plain;

// SAFETY: plain arithmetic on 4 sums.
unsafe impl Whole for Plain {
    type Floats = Four;
    type Sums = [i32; 4];
    type Weights = [[i8; 4]; 4];
    const GROUP: usize = 4;
    const SHIFT: u8 = 128;
    const WHOLE_ROWS: usize = 4;

    #[inline(always)]
    unsafe fn sums(from: *const i32) -> [i32; 4] {
        // SAFETY: `from` holds 4 numbers.
        unsafe { from.cast::<[i32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn weights(from: *const i8) -> [[i8; 4]; 4] {
        // SAFETY: `from` holds 16 numbers.
        unsafe { from.cast::<[[i8; 4]; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn word(from: *const i32) -> [[i8; 4]; 4] {
        // SAFETY: `from` holds 4 bytes.
        [unsafe { from.cast::<[i8; 4]>().read_unaligned() }; 4]
    }

    #[inline(always)]
    unsafe fn add_products(mut sums: [i32; 4], word: [[i8; 4]; 4], weights: [[i8; 4]; 4]) -> [i32; 4] {
        for (sum, (word, weights)) in sums.iter_mut().zip(word.iter().zip(&weights)) {
            for (value, weight) in word.iter().zip(weights) {
                *sum += i32::from(*value) * i32::from(*weight);
            }
        }
        sums
    }

    #[inline(always)]
    unsafe fn of_sums(sums: [i32; 4]) -> Four {
        Four(sums.map(|sum| sum as f32))
    }

    #[inline(always)]
    unsafe fn put(numbers: Four, to: *mut i32) {
        // The sum's last bits are the whole number, rounded to even.
        let byte = |number: f32| ((number + ROUNDER).to_bits() as u8).wrapping_sub(Self::SHIFT);
        // SAFETY: `to` holds 4 bytes.
        unsafe { to.cast::<[u8; 4]>().write_unaligned(numbers.0.map(byte)) }
    }
}

kernels!("scalar", Four, Plain,);
