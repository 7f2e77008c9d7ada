//! Half-precision weights as an 8-bit impact, good enough for bounds, and an 8-bit residual that
//! restores the half exactly.
//!
//! The impact of a weight `w` in a list with the maximum `m` is `w / step` rounded, at least 1,
//! where `step = m / 255`. The halves that round to one impact lie close together, so the distance
//! of `w` from the lowest of them, in units of the last place, mostly fits a byte; where it does
//! not (weights far below the maximum), the residual is [`ESCAPE`] and the half is kept in a side
//! list of the term.

use half::f16;

/// Residual that marks an escaped weight: its half-precision value is in the term's list of escapes.
pub(crate) const ESCAPE: u8 = 255;

/// The weight that the index keeps for `weight`, or `None` when none is stored (zero, negative or NaN).
///
/// Rounded to half precision (11 significant bits); above the largest half 65,504, below the
/// smallest positive half 2⁻²⁴.
pub fn stored_weight(weight: f32) -> Option<f32> {
    half_bits(weight).map(half_value)
}

/// The stored weight of `weight` as the bits of its half-precision value; `None` as for [`stored_weight`].
pub(crate) fn half_bits(weight: f32) -> Option<u16> {
    if weight.is_nan() || weight <= 0.0 {
        return None;
    }
    let rounded = f16::from_f32(weight.min(65_504.0)).to_bits();
    Some(rounded.max(1))
}

/// Value of a positive, finite half.
#[inline]
pub(crate) fn half_value(bits: u16) -> f32 {
    // The same exponent and fraction as f32, whose exponents start 112 lower. Exact, and without the
    // call that the conversion otherwise is.
    f32::from_bits(u32::from(bits) << 13) * f32::from_bits(0x7780_0000)
}

/// Bits of the half nearest to a positive number of at most 65,504, ties to even; avoids the function call
/// that a general conversion compiles to.
#[inline]
fn nearest_half(value: f32) -> u16 {
    // The least normal half is 2^-14. Below it, halves count in 2^-24, as numbers from 1/2 to 1 do.
    let normal = {
        let bits = value.to_bits();
        (bits + 0x0FFF + (bits >> 13 & 1)).wrapping_sub(112 << 23) >> 13
    };
    let small = (value + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits());
    (if value < f32::from_bits(0x3880_0000) { small } else { normal }) as u16
}

/// Maps one term's weights to impacts: the highest weight is impact 255, one impact is `step` of weight.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) max: f32,
    pub(crate) step: f32,
}

impl Scale {
    /// Scale of a term whose highest weight has the half-precision bits `max`.
    #[inline]
    pub(crate) fn new(max: u16) -> Self {
        let max = half_value(max);
        Self { max, step: max / 255.0 }
    }

    /// Impact of a weight, 1 to 255, within `step / 2` of it (`step` below for impact 1).
    #[inline]
    pub(crate) fn impact(&self, bits: u16) -> u8 {
        (half_value(bits) * (255.0 / self.max)).round().clamp(1.0, 255.0) as u8
    }

    /// Half bits a little below the lowest weight with this impact.
    #[inline]
    fn base(&self, impact: u8) -> i32 {
        i32::from(nearest_half(((f32::from(impact) - 0.5) * self.step).max(0.0))) - 1
    }

    pub(crate) fn residual(&self, impact: u8, bits: u16) -> u8 {
        let distance = i32::from(bits) - self.base(impact);
        if (0..i32::from(ESCAPE)).contains(&distance) { distance as u8 } else { ESCAPE }
    }

    /// Weight that an impact and a residual (other than [`ESCAPE`]) encode.
    #[inline]
    pub(crate) fn restore(&self, impact: u8, residual: u8) -> f32 {
        half_value((self.base(impact) + i32::from(residual)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_is_restored_under_every_kind_of_maximum() {
        for max in [1_u16, 2, 3, 255, 256, 1023, 1024, 0x2E66, 0x3C00, 0x4123, 0x7BFF] {
            let scale = Scale::new(max);
            for bits in 1..=max {
                let impact = scale.impact(bits);
                let residual = scale.residual(impact, bits);
                if residual != ESCAPE {
                    assert_eq!(scale.restore(impact, residual), half_value(bits), "max {max} bits {bits}");
                }
                let error = half_value(bits) - f32::from(impact) * scale.step;
                let below = if impact == 1 { scale.step } else { scale.step * 0.5001 };
                assert!(error <= scale.step * 0.5001 && error >= -below, "max {max} bits {bits}");
            }
        }
    }

    #[test]
    fn the_nearest_half_is_that_of_the_conversion() {
        for bits in (0..65_504_f32.to_bits()).step_by(61).chain(0x3300_0000..0x3300_0100) {
            let value = f32::from_bits(bits);
            assert_eq!(nearest_half(value), f16::from_f32(value).to_bits(), "{value}");
        }
        for half in 0..0x7BFF_u16 {
            let (low, high) = (half_value(half), half_value(half + 1));
            for value in [low, (low + high) / 2.0, high] {
                assert_eq!(nearest_half(value), f16::from_f32(value).to_bits(), "{value}");
            }
        }
    }

    #[test]
    fn halves_have_their_values() {
        for bits in 0..=0x7BFF {
            assert_eq!(half_value(bits).to_bits(), f16::from_bits(bits).to_f32().to_bits());
        }
    }

    #[test]
    fn weights_are_clamped_to_positive_halves() {
        assert_eq!(stored_weight(0.0), None);
        assert_eq!(stored_weight(-1.0), None);
        assert_eq!(stored_weight(f32::NAN), None);
        assert_eq!(stored_weight(f32::INFINITY), Some(65_504.0));
        assert_eq!(stored_weight(1e9), Some(65_504.0));
        assert_eq!(stored_weight(1e-30), Some(2_f32.powi(-24)));
        assert_eq!(stored_weight(0.5), Some(0.5));
    }
}
