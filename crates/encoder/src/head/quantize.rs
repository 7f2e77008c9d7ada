//! Quantises rows of f32 to integers of a byte, with the norms that bound the quantisation error.

use super::basis::TURNED_STEP;
use super::kernels::{Document, Levels, Limits};

/// Hidden states held a NaN or an infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotFinite;

/// One document's hidden states, `[tokens][dims, padded]`, one scale for all of them, so that a term has one threshold.
#[derive(Debug)]
pub(super) struct Quantized {
    dims: usize,
    tokens: usize,
    /// The quantised values, with [`Levels::shift`] added to each.
    values: Vec<u8>,
    pub(super) limits: Limits,
}

/// Adding this to a number below 2²² rounds it to an integer, which then stands in the low bits. The plain `round` is a
/// library call on processors without SSE 4.1, which the compiler has to assume.
const ROUNDER: f32 = 12_582_912.0;

/// Sums of one row, or of a part of it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Sums {
    /// Sum of the quantised values.
    pub(super) values: i32,
    /// Sum of the squared rounding errors.
    pub(super) lost: f32,
    /// Sum of the squared original values.
    pub(super) square: f32,
}

/// The scale that takes the largest absolute value to `levels`, enlarged a little so that no number times its inverse exceeds `levels`.
/// Below 10⁻³⁰ the inverse would overflow: all numbers then become 0 and the quantisation error accounts for them.
pub(super) fn scale(largest: f32, levels: i8) -> f32 {
    if largest > 1e-30 { largest * (1.0 + 2f32.powi(-20)) / f32::from(levels) } else { 1.0 }
}

/// Rounds numbers to whole ones of a scale; `out` may be longer.
#[inline(always)]
pub(super) fn quantise(numbers: &[f32], scale: f32, out: &mut [i8]) -> Sums {
    let inverse = 1.0 / scale;
    let (mut lost, mut square, mut values) = ([0f32; LANES], [0f32; LANES], [0i32; LANES]);
    let mut one = |lane: usize, value: f32, out: &mut i8| {
        let shifted = value * inverse + ROUNDER;
        let quantised = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()) as i8;
        *out = quantised;
        values[lane] += i32::from(quantised);
        let missed = value - (shifted - ROUNDER) * scale;
        lost[lane] += missed * missed;
        square[lane] += value * value;
    };
    let (eights, last) = numbers.as_chunks::<LANES>();
    let (outs, last_outs) = out[..numbers.len()].as_chunks_mut::<LANES>();
    for (eight, out) in eights.iter().zip(outs) {
        for lane in 0..LANES {
            one(lane, eight[lane], &mut out[lane]);
        }
    }
    for (lane, (&value, out)) in last.iter().zip(last_outs).enumerate() {
        one(lane, value, out);
    }
    Sums { values: values.iter().sum(), lost: sum(&lost), square: sum(&square) }
}

/// Number of partial sums that are added up side by side, as many as most processors have in a vector.
const LANES: usize = 8;

/// Adds up the partial sums pairwise, so that fewer additions depend on one another.
#[inline(always)]
fn sum(of: &[f32; LANES]) -> f32 {
    let four: [f32; 4] = std::array::from_fn(|lane| of[lane] + of[lane + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// The largest absolute value; NaNs are ignored.
#[inline(always)]
fn largest(numbers: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b.abs() > a { b.abs() } else { a };
    let mut most = [0f32; 4 * LANES];
    let (chunks, last) = numbers.as_chunks::<{ 4 * LANES }>();
    for chunk in chunks {
        for lane in 0..4 * LANES {
            most[lane] = larger(most[lane], chunk[lane]);
        }
    }
    most.iter().chain(last).fold(0.0, |most, &number| larger(most, number))
}

/// Adds the shift of the kernels to quantised values.
#[inline(always)]
fn shifted(values: Vec<i8>, shift: u8) -> Vec<u8> {
    values.into_iter().map(|value| (value as u8).wrapping_add(shift)).collect()
}

/// Upper bounds of the norms of a row and of its quantisation error, given their squares. The sums of [`quantise`] are off by at most (dims
/// / 8 + 8) roundings; an error by two roundings of its value.
pub(super) fn norms(square: f32, lost: f32, dims: usize) -> (f32, f32) {
    let norm = root(square, dims);
    (norm, root(lost, dims) + norm * 2f32.powi(-22))
}

/// Upper bound of the norm of `dims` numbers, given the sum of their squares: numbers below 10⁻¹⁹ have squares that lose digits, and may
/// be 0.
fn root(square: f32, dims: usize) -> f32 {
    (square + dims as f32 * UNDERFLOW).sqrt() * inflation(dims)
}

/// Twice the smallest positive number: more than a square and its addition to others lose below the range of normal numbers.
const UNDERFLOW: f32 = f32::from_bits(2);

/// Factor that makes up for the rounding errors in a norm of `dims` numbers, and for a few more.
fn inflation(dims: usize) -> f32 {
    1.0 + 2f32.powi(-10) + dims as f32 * 2f32.powi(-23)
}

/// A norm as a multiple of `scale`, rounded up; at most `levels` if the [`scale`] was made for a number as large.
pub(super) fn round_up(norm: f32, scale: f32) -> u8 {
    // A norm was enlarged by more than this multiplication is off.
    (norm * (1.0 / scale)) as u8 + u8::from(norm > 0.0)
}

/// Tokens in another basis, to be quantised.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turned<'a> {
    /// Tokens in the new basis, `[tokens][dims]`.
    pub(super) tokens: &'a [f32],
    pub(super) dims: usize,
    /// Numbers of dimensions, ascending, multiples of [`TURNED_STEP`], at most `dims`.
    pub(super) looks: &'a [usize],
    /// The document's [`Limits::reach`].
    pub(super) reach: f32,
}

impl Quantized {
    /// Quantises hidden states, `[tokens][dims]`, into rows of `padded` bytes for one implementation. Inlined into each implementation
    /// ([`Kernels::quantise`](super::kernels::Kernels::quantise)) so that it is compiled with its instruction set, as is [`Quantized::turned`].
    #[inline(always)]
    pub(super) fn whole(
        hidden: &[f32],
        dims: usize,
        padded: usize,
        levels: Levels,
    ) -> Result<Self, NotFinite> {
        let largest = largest(hidden);
        if !largest.is_finite() {
            return Err(NotFinite);
        }
        let scale = scale(largest, levels.most);
        let tokens = hidden.len() / dims;
        let mut values = vec![0i8; tokens * padded];
        let (mut square, mut lost) = (0f32, 0f32);
        for (token, out) in hidden.chunks_exact(dims).zip(values.chunks_exact_mut(padded)) {
            let sums = quantise(token, scale, out);
            // NaN fails here, whatever the comparisons above made of it.
            if !sums.square.is_finite() {
                return Err(NotFinite);
            }
            (square, lost) = (square.max(sums.square), lost.max(sums.lost));
        }
        let (norm, error) = norms(square, lost, dims);
        let values = shifted(values, levels.shift);
        Ok(Self { dims: padded, tokens, values, limits: Limits { scale, error, norm, reach: 0.0 } })
    }

    /// Quantises tokens in the new basis once for each number of dimensions in `looks`: all values but the last are leading dimensions of a
    /// token, the last is the norm of its remaining ones, rounded up. As a norm is not negative, it needs no shift and has, where there is
    /// one, as many levels more: that norm is often the largest number, which determines the scale.
    #[inline(always)]
    pub(super) fn turned(job: &Turned<'_>, levels: Levels) -> Result<Vec<Self>, NotFinite> {
        let Turned { tokens, dims, looks, reach } = *job;
        let count = tokens.len() / dims;
        let blocks = dims / TURNED_STEP;
        // The rest of each token, for each number of dimensions, from the squares of blocks.
        let mut rests = vec![0f32; looks.len() * count];
        let mut most = 0f32;
        let share = f32::from(levels.most) / (f32::from(levels.most) + f32::from(levels.shift));
        let mut squares = vec![0f32; blocks + 1];
        for (at, token) in tokens.chunks_exact(dims).enumerate() {
            for (square, block) in squares.iter_mut().zip(token.as_chunks::<TURNED_STEP>().0) {
                *square = sum(&block.map(|value| value * value));
            }
            for block in (0..blocks).rev() {
                squares[block] += squares[block + 1];
            }
            if !squares[0].is_finite() {
                return Err(NotFinite);
            }
            for (look, &first) in looks.iter().enumerate() {
                let tail_norm = squares[first / TURNED_STEP] + token[first - 1] * token[first - 1];
                let tail_norm = root(tail_norm, dims);
                rests[look * count + at] = tail_norm;
                most = most.max(tail_norm * share);
            }
        }
        let scale = scale(most.max(largest(tokens)), levels.most);
        let mut whole = vec![0i8; tokens.len()];
        let mut parts = vec![Sums::default(); count * blocks];
        let rows = tokens.as_chunks::<TURNED_STEP>().0.iter().zip(whole.as_chunks_mut::<TURNED_STEP>().0);
        for ((block, out), sums) in rows.zip(&mut parts) {
            *sums = quantise(block, scale, out);
        }
        let whole = shifted(whole, levels.shift);
        let mut all = Vec::with_capacity(looks.len());
        for (look, &first) in looks.iter().enumerate() {
            let mut values = vec![0u8; count * first];
            let (mut square, mut lost) = (0f32, 0f32);
            for (at, out) in values.chunks_exact_mut(first).enumerate() {
                let token_values = whole[at * dims..][..first].as_chunks::<TURNED_STEP>().0;
                out.as_chunks_mut::<TURNED_STEP>()
                    .0
                    .iter_mut()
                    .zip(token_values)
                    .for_each(|(out, step)| *out = *step);
                let mut sums = Sums::default();
                for part in &parts[at * blocks..][..first / TURNED_STEP] {
                    sums.lost += part.lost;
                    sums.square += part.square;
                }
                out[first - 1] = round_up(rests[look * count + at], scale);
                (square, lost) = (square.max(sums.square), lost.max(sums.lost));
            }
            let (norm, error) = norms(square, lost, dims);
            let limits = Limits { scale, error, norm, reach };
            all.push(Self { dims: first, tokens: count, values, limits });
        }
        Ok(all)
    }

    pub(super) fn view(&self) -> Document<'_> {
        Document::new(&self.values, self.tokens, self.dims, self.limits)
    }
}

#[cfg(test)]
mod tests {
    use super::{Quantized, Turned};
    use crate::head::kernels::{Kernels, available};

    /// The scalar ones: 127 levels, no shift.
    fn kernels() -> &'static Kernels {
        available().last().unwrap()
    }

    fn turned(tokens: &[f32], looks: &[usize]) -> Vec<Quantized> {
        kernels().quantise_turned(&Turned { tokens, dims: 32, looks, reach: 0.0 }).unwrap()
    }

    #[test]
    fn values_are_rounded_and_the_norms_bound_the_error() {
        let hidden = [1.0f32, -0.5, 0.25, 0.0, 127.0, -127.0, 63.4, 0.6];
        let quantised = kernels().quantise(&hidden, 8, 8).unwrap();
        assert_eq!(quantised.values, [1, 0, 0, 0, 127, -127i8 as u8, 63, 1]);
        let lost = (0.5f32 * 0.5 + 0.25 * 0.25 + 0.4 * 0.4 + 0.4 * 0.4).sqrt();
        assert!(quantised.limits.error >= lost && quantised.limits.error < lost * 1.01);
    }

    #[test]
    fn norms_bound_the_error_of_numbers_whose_squares_underflow() {
        for size in [1e-19f32, 1e-20, 1e-21, 1e-22, 1e-23, 1e-28] {
            let hidden: Vec<f32> = (0..64).map(|at| size * ((at * 37 % 64) as f32 / 32.0 - 1.0)).collect();
            let Quantized { values, limits, .. } = kernels().quantise(&hidden, 64, 64).unwrap();
            let norm = |numbers: &mut dyn Iterator<Item = f64>| {
                numbers.map(|number| number * number).sum::<f64>().sqrt()
            };
            let missed = |(value, quantised): (&f32, &u8)| {
                f64::from(*value) - f64::from(*quantised as i8) * f64::from(limits.scale)
            };
            assert!(
                f64::from(limits.norm) >= norm(&mut hidden.iter().map(|value| f64::from(*value))),
                "{size}"
            );
            assert!(f64::from(limits.error) >= norm(&mut hidden.iter().zip(&values).map(missed)), "{size}");
        }
    }

    #[test]
    fn all_zero_states_are_fine() {
        let quantised = kernels().quantise(&[0.0; 6], 3, 4).unwrap();
        assert_eq!(quantised.values, [0; 8]);
        assert!(quantised.limits.norm < 1e-20);
        let turned = turned(&[0.0; 64], &[8, 32]);
        // The last value is the bound of a norm, which is above 0.
        assert_eq!([&turned[0].values[..7], &turned[0].values[8..15]], [&[0; 7]; 2]);
    }

    #[test]
    fn the_last_dimension_of_a_turned_token_is_the_norm_of_its_rest() {
        let token: Vec<f32> = (0..32).map(|dim| if dim < 7 { 10.0 } else { 2.0 }).collect();
        for (first, rest) in [(8, 10.0f32), (16, 68f32.sqrt()), (32, 2.0)] {
            let turned = &turned(&token, &[first])[0];
            let norm = f32::from(turned.values[first - 1]) * turned.limits.scale;
            assert!(norm >= rest && norm < rest + 2.0 * turned.limits.scale, "{first}: {norm} {rest}");
        }
    }
}
