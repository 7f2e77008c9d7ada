//! Vectors of f32, and functions of each of their numbers.
//!
//! Everything here is `#[inline(always)]`, for the reason that `generic.rs` gives.

/// A vector of f32 and what the loops need of it.
///
/// # Safety
/// For all methods: the processor has the instructions of the implementation, and each pointer points to `LANES` numbers.
pub(super) unsafe trait Lanes: Copy {
    /// Numbers in a vector.
    const LANES: usize;
    /// Rows of one register tile, two vectors wide.
    const ROWS: usize;

    unsafe fn splat(value: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// The quotient of normal numbers, within two units in the last place.
    unsafe fn div(self, other: Self) -> Self;
    /// `self · by + plus`.
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self;
    /// The larger one; where either is NaN, `other` or NaN.
    unsafe fn max(self, other: Self) -> Self;
    unsafe fn min(self, other: Self) -> Self;
    /// The values of 20-bit integers: `high` points to the upper 16 bits of each, `low` to a byte for each that has the lower 4 bits in its
    /// lower half, or in its upper half with `UPPER`.
    unsafe fn widen<const UPPER: bool>(high: *const i16, low: *const u8) -> Self;
    /// The values of bytes.
    unsafe fn bytes(from: *const i8) -> Self;
    /// 2 to the power of each lane, an integer in −126..=127.
    unsafe fn power_of_two(self) -> Self;
    /// `self · 2^power`, where no result is below the smallest normal number.
    #[inline(always)]
    unsafe fn times_power_of_two(self, power: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.mul(power.power_of_two()) }
    }
    unsafe fn sum(self) -> f32;
    unsafe fn largest(self) -> f32;

    /// Transposes a square of numbers: writes `LANES` rows of `LANES` numbers as columns, which start `apart` numbers from each other.
    #[inline(always)]
    unsafe fn transpose(rows: impl Fn(usize) -> *const f32, to: *mut f32, apart: usize) {
        for row in 0..Self::LANES {
            for column in 0..Self::LANES {
                // SAFETY: the caller's promise.
                unsafe { to.add(column * apart + row).write(rows(row).add(column).read()) };
            }
        }
    }
}

/// Adding and subtracting this rounds a number below 2²² to a whole one.
pub(super) const ROUNDER: f32 = 12_582_912.0;

/// e to the power of each lane, which is at most 0, within 2 units in the last place; below −87 the result is e⁻⁸⁷, which makes no
/// difference to the sum of a softmax. NaN stays NaN. Cody and Waite's range reduction, Cephes' polynomial.
#[inline(always)]
pub(super) unsafe fn exp<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        let x = V::splat(-87.0).max(x);
        let whole = x.mul_add(V::splat(std::f32::consts::LOG2_E), V::splat(ROUNDER)).sub(V::splat(ROUNDER));
        let fraction = whole.mul_add(V::splat(-0.693_359_4), x);
        let fraction = whole.mul_add(V::splat(2.121_944_4e-4), fraction);
        let mut p = V::splat(1.987_569_1e-4);
        for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
            p = p.mul_add(fraction, V::splat(coefficient));
        }
        let value = p.mul_add(fraction.mul(fraction), fraction.add(V::splat(1.0)));
        value.times_power_of_two(whole)
    }
}

/// The error function within 3·10⁻⁷: a rational approximation on −4..4, and ±1 beyond (the one of Eigen and XLA).
#[inline(always)]
unsafe fn erf<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        let x = x.max(V::splat(-4.0)).min(V::splat(4.0));
        let square = x.mul(x);
        let mut above = V::splat(-2.726_142_3e-10);
        for coefficient in
            [2.770_681_3e-8, -2.101_024e-6, -5.692_506_4e-5, -7.349_906_3e-4, -2.954_6e-3, -1.609_603_4e-2]
        {
            above = above.mul_add(square, V::splat(coefficient));
        }
        let mut below = V::splat(-1.456_607_2e-5);
        for coefficient in [-2.133_740_5e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2] {
            below = below.mul_add(square, V::splat(coefficient));
        }
        x.mul(above).div(below)
    }
}

/// The Gaussian error linear unit: `x/2 · (1 + erf(x/√2))`.
#[inline(always)]
pub(super) unsafe fn gelu<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        let half = x.mul(V::splat(0.5));
        half.mul_add(erf(x.mul(V::splat(std::f32::consts::FRAC_1_SQRT_2))), half)
    }
}

/// For the tests: applies a function to each number.
#[cfg(test)]
#[inline(always)]
pub(super) unsafe fn map<V: Lanes>(function: super::jobs::Function, values: &mut [f32]) {
    for lane in values.chunks_exact_mut(V::LANES) {
        // SAFETY: a chunk is one vector.
        unsafe {
            let value = V::load(lane.as_ptr());
            let value = match function {
                super::jobs::Function::Exp => exp(value),
                super::jobs::Function::Gelu => gelu(value),
            };
            value.store(lane.as_mut_ptr());
        }
    }
}
