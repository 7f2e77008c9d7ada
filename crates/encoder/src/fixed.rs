//! Numbers of 20 bits, for the weights of large models: those are read from memory for each batch, and f32 takes 1.6 times as
//! much of it.
//!
//! A number is a whole one of −524,287..=524,287 times a scale that the weights of one output share (a column of a linear map, a
//! row of a decoder), so that it is off by about 2⁻²⁰ of the largest of them at most. That is what a sum of some hundred products
//! in f32 is off by anyway; 16 bits, of floating or fixed point, would be seen in the results.

use crate::numbers::AlignedSlice;

/// The largest whole number.
const LARGEST: f64 = 524_287.0;

/// Which numbers weights are kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// As they are.
    F32,
    /// 20 bits.
    Fixed,
    /// 8 bits, and products of rows in 8 bits with them.
    Int8,
}

/// Whole numbers of 20 bits, in groups of the same even length: the upper 16 bits of all; and for the lower 4 bits a byte for each two,
/// of which the first is in the first half of the group and the other at the same place of the second half.
#[derive(Debug, PartialEq)]
pub(crate) struct Fixed {
    /// `[groups][length]`.
    pub(crate) high: AlignedSlice<i16>,
    /// `[groups][length / 2]`.
    pub(crate) low: AlignedSlice<u8>,
}

impl Fixed {
    /// As many zeros, an even number.
    pub(crate) fn zeros(length: usize) -> Self {
        Self { high: AlignedSlice::zeros(length), low: AlignedSlice::zeros(length / 2) }
    }

    /// What was packed; `None` if it is not `length` numbers.
    pub(crate) fn of(high: AlignedSlice<i16>, low: AlignedSlice<u8>, length: usize) -> Option<Self> {
        (high.len() == length && low.len() == length / 2).then_some(Self { high, low })
    }

    /// Sets the group that begins at `start`.
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

/// Appends the whole numbers of some groups, each times `scale`.
pub(crate) fn append(high: &[i16], low: &[u8], group: usize, scale: f32, out: &mut Vec<f32>) {
    for (high, low) in high.chunks_exact(group).zip(low.chunks_exact(group / 2)) {
        let nibbles = low.iter().map(|byte| byte & 15).chain(low.iter().map(|byte| byte >> 4));
        let whole = high.iter().zip(nibbles).map(|(high, low)| i32::from(*high) << 4 | i32::from(low));
        out.extend(whole.map(|whole| whole as f32 * scale));
    }
}

/// The scale of some numbers: the largest of them, without its sign, becomes the largest whole number.
pub(crate) fn scale(numbers: impl Iterator<Item = f32>) -> f32 {
    let largest = numbers.fold(0f32, |largest, number| largest.max(number.abs()));
    let scale = ((f64::from(largest) / LARGEST) as f32).max(f32::MIN_POSITIVE);
    // Rounded up, the largest f32 would become infinite.
    if (scale * LARGEST as f32).is_finite() { scale } else { f32::from_bits(scale.to_bits() - 1) }
}

/// As [`scale`] for bytes: the largest number becomes 127.
pub(crate) fn byte_scale(numbers: impl Iterator<Item = f32>) -> f32 {
    let largest = numbers.fold(0f32, |largest, number| largest.max(number.abs()));
    (largest / 127.0).max(f32::MIN_POSITIVE)
}

/// A number as the nearest byte of this scale.
pub(crate) fn byte(value: f32, scale: f32) -> i8 {
    (value / scale).round().clamp(-127.0, 127.0) as i8
}

/// A number as the nearest whole number of this scale.
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
