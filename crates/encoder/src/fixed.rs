//! Fixed-point numbers of 20 bits, for the weights of large models: these are read from memory for each
//! batch, and f32 would take 1.6 times as much.
//!
//! A number is an integer in −524,287..=524,287 times a scale that the weights of one output share (a column
//! of a linear map, a row of a decoder), so that its error is at most about 2⁻²⁰ of the largest of them. A
//! sum of some hundred products in f32 has that error anyway; 16 bits, floating or fixed point, would show in
//! the results.

use crate::numbers::AlignedSlice;

/// The largest 20-bit integer used; its negative is the smallest.
const LARGEST: f64 = 524_287.0;

/// Precision in which weights are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// 32-bit floating point, unchanged.
    F32,
    /// 20-bit fixed point ([`Fixed`]).
    Fixed,
    /// 8-bit integers; products of rows are computed in 8 bits as well.
    Int8,
}

/// 20-bit integers, in groups of the same even length: an array of the upper 16 bits, and one that packs the
/// lower 4 bits of two integers in a byte, one from the first half of the group and one from the same place
/// of the second half.
#[derive(Debug, PartialEq)]
pub(crate) struct Fixed {
    /// Upper 16 bits, `[groups][length]`.
    pub(crate) high: AlignedSlice<i16>,
    /// Lower 4 bits, two in a byte, `[groups][length / 2]`.
    pub(crate) low: AlignedSlice<u8>,
}

impl Fixed {
    /// `length` zeros; `length` must be even.
    pub(crate) fn zeros(length: usize) -> Self {
        Self { high: AlignedSlice::zeros(length), low: AlignedSlice::zeros(length / 2) }
    }

    /// The integers from their packed arrays; `None` if these do not hold `length` integers.
    pub(crate) fn of(high: AlignedSlice<i16>, low: AlignedSlice<u8>, length: usize) -> Option<Self> {
        (high.len() == length && low.len() == length / 2).then_some(Self { high, low })
    }

    /// Packs a group of integers into the place that begins at `start`.
    pub(crate) fn set(&mut self, start: usize, group: &[i32]) {
        let half = group.len() / 2;
        let high = &mut self.high.own()[start..][..group.len()];
        high.iter_mut().zip(group).for_each(|(high, whole)| *high = (whole >> 4) as i16);
        let low = &mut self.low.own()[start / 2..][..half];
        for (low, (first, second)) in low.iter_mut().zip(group[..half].iter().zip(&group[half..])) {
            *low = (first & 15 | (second & 15) << 4) as u8;
        }
    }
}

/// Unpacks groups of integers, multiplies each by `scale` and appends them to `out`.
pub(crate) fn append(high: &[i16], low: &[u8], group: usize, scale: f32, out: &mut Vec<f32>) {
    for (high, low) in high.chunks_exact(group).zip(low.chunks_exact(group / 2)) {
        let nibbles = low.iter().map(|byte| byte & 15).chain(low.iter().map(|byte| byte >> 4));
        let whole = high.iter().zip(nibbles).map(|(high, low)| i32::from(*high) << 4 | i32::from(low));
        out.extend(whole.map(|whole| whole as f32 * scale));
    }
}

/// The scale for a set of numbers: maps the largest absolute value to the largest 20-bit integer.
pub(crate) fn scale(numbers: impl Iterator<Item = f32>) -> f32 {
    let largest = numbers.fold(0f32, |largest, number| largest.max(number.abs()));
    let scale = ((f64::from(largest) / LARGEST) as f32).max(f32::MIN_POSITIVE);
    // Rounded up, the largest f32 would become infinite.
    if (scale * LARGEST as f32).is_finite() { scale } else { f32::from_bits(scale.to_bits() - 1) }
}

/// As [`scale`], for 8 bits: maps the largest absolute value to 127.
pub(crate) fn byte_scale(numbers: impl Iterator<Item = f32>) -> f32 {
    let largest = numbers.fold(0f32, |largest, number| largest.max(number.abs()));
    (largest / 127.0).max(f32::MIN_POSITIVE)
}

/// A number divided by `scale` and rounded to an integer in −127..=127.
pub(crate) fn byte(value: f32, scale: f32) -> i8 {
    (value / scale).round().clamp(-127.0, 127.0) as i8
}

/// A number divided by `scale` and rounded to a 20-bit integer.
pub(crate) fn whole(value: f32, scale: f32) -> i32 {
    (f64::from(value) / f64::from(scale)).round().clamp(-LARGEST, LARGEST) as i32
}

#[cfg(test)]
mod tests {
    use super::{Fixed, append, scale, whole};
    use crate::testing::numbers;

    #[test]
    fn numbers_are_off_by_half_a_step_of_the_largest() {
        let mut next = numbers(3);
        for size in [0.0, f32::MIN_POSITIVE, 1e-30, 0.03, 1.0, 1e30, f32::MAX] {
            let mut values: Vec<f32> = (0..96).map(|_| next() * size).collect();
            values[..2].copy_from_slice(&[size, -size]);
            let scale = scale(values.iter().copied());
            let mut fixed = Fixed::zeros(96);
            for (at, group) in values.chunks_exact(32).enumerate() {
                let group: Vec<i32> = group.iter().map(|value| whole(*value, scale)).collect();
                fixed.set(at * 32, &group);
            }
            let mut found = Vec::new();
            append(&fixed.high, &fixed.low, 32, scale, &mut found);
            for (found, value) in found.iter().zip(&values) {
                let step = f64::from(size) * 2f64.powi(-20) * 1.1;
                let off = (f64::from(*found) - f64::from(*value)).abs();
                assert!(off <= step.max(f64::from(f32::MIN_POSITIVE)), "{value} became {found}");
            }
        }
    }
}
