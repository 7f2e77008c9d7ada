//! The loops of the forward pass over any vector type; each instruction set compiles its own copy.
//!
//! Everything here is `#[inline(always)]`: the bodies end up inside the `#[target_feature]` functions of the instruction
//! sets, and only there do the vector operations become single instructions.

use crate::numbers::room;

use super::jobs::{Attention, Norm};
use super::lanes::{Lanes, exp};
use super::product::{SINGLE, Tile, Whole, next_rows, some_rows};

/// Adds `residual` to rows and normalises them in place.
///
/// # Safety
/// The processor has the instructions of `V`; `job` was checked by [`Kernels::normalize`](super::Kernels::normalize).
#[inline(always)]
pub(super) unsafe fn normalize<V: Lanes>(job: &Norm<'_>, rows: &mut [f32], residual: &[f32]) {
    let width = job.scale.len();
    let share = 1.0 / width as f32;
    for (at, row) in rows.chunks_exact_mut(width).enumerate() {
        // SAFETY: rows, scale and shift are `width` long, a multiple of LANES; `residual` is empty or as long as `rows`.
        unsafe {
            let mut sum = V::splat(0.0);
            for lane in (0..width).step_by(V::LANES) {
                let mut value = V::load(row.as_ptr().add(lane));
                if !residual.is_empty() {
                    value = value.add(V::load(residual.as_ptr().add(at * width + lane)));
                    value.store(row.as_mut_ptr().add(lane));
                }
                sum = sum.add(value);
            }
            let mean = V::splat(sum.sum() * share);
            let mut squares = V::splat(0.0);
            for lane in (0..width).step_by(V::LANES) {
                let value = V::load(row.as_ptr().add(lane)).sub(mean);
                squares = value.mul_add(value, squares);
            }
            let inverse = V::splat(1.0 / (squares.sum() * share + job.epsilon).sqrt());
            for lane in (0..width).step_by(V::LANES) {
                let value = V::load(row.as_ptr().add(lane)).sub(mean).mul(inverse);
                let scale = V::load(job.scale.as_ptr().add(lane));
                value.mul_add(scale, V::load(job.shift.as_ptr().add(lane))).store(row.as_mut_ptr().add(lane));
            }
        }
    }
}

/// One text's attention, head by head.
///
/// # Safety
/// The processor has the instructions of `V`; `job` was checked by [`Kernels::attention`](super::Kernels::attention).
#[inline(always)]
pub(super) unsafe fn attention<V: Lanes>(job: &Attention<'_>, scratch: &mut Vec<f32>, out: &mut [f32]) {
    let Attention { qkv, tokens, width, heads, .. } = *job;
    let step = 2 * V::LANES;
    let padded = tokens.next_multiple_of(step);
    let depth = width / heads;
    // The keys of a head, transposed, `[padded / step][depth][step]`; its values, `[depth / step][tokens][step]`; and the
    // scores of a tile of queries. The copies keep what a tile reads in neighbouring cache lines: rows of `qkv` would fall
    // into few sets of the cache.
    let scratch = room(scratch, (2 * depth + V::ROWS) * padded);
    let (keys, rest) = scratch.split_at_mut(depth * padded);
    let (values, scores) = rest.split_at_mut(depth * padded);
    for head in 0..heads {
        let base = head * depth;
        for token in (0..tokens).step_by(V::LANES) {
            for dim in (0..depth).step_by(V::LANES) {
                // Beyond the last token its keys are repeated up to a whole vector. Softmax overwrites these scores.
                let row = |row: usize| (token + row).min(tokens - 1) * 3 * width + width + base + dim;
                let column = token / step * depth * step + token % step;
                // SAFETY: `Kernels::attention` has seen a row of `3 × width` inputs for each token, and `keys` holds `depth` rows of
                // `step` numbers for every `step` tokens.
                unsafe {
                    let to = keys.as_mut_ptr().add(column + dim * step);
                    V::transpose(|at| qkv.as_ptr().add(row(at)), to, step);
                }
            }
        }
        if tokens.next_multiple_of(V::LANES) < padded {
            // Half a panel has no tokens. Whatever an earlier call left there may be no normal numbers, which are slow to multiply.
            let last = &mut keys[(padded - step) * depth..];
            last.chunks_exact_mut(step).for_each(|row| row[V::LANES..].fill(0.0));
        }
        for (token, row) in qkv.chunks_exact(3 * width).enumerate() {
            for (panel, part) in row[2 * width + base..][..depth].chunks_exact(step).enumerate() {
                values[(panel * tokens + token) * step..][..step].copy_from_slice(part);
            }
        }
        let mut first = 0;
        while first < tokens {
            let rows = next_rows(tokens - first, V::ROWS);
            // SAFETY: `Kernels::attention` has seen `tokens × 3 · width` inputs and `tokens × width` outputs; `keys` and `values` hold
            // `depth × padded` numbers and `scores` `ROWS × padded`.
            unsafe {
                for column in (0..padded).step_by(step) {
                    let at = Tile {
                        a: qkv.as_ptr().add(first * 3 * width + base),
                        lda: 3 * width,
                        b: keys.as_ptr().add(column * depth),
                        ldb: step,
                        c: scores.as_mut_ptr().add(column),
                        ldc: padded,
                        depth,
                        bias: std::ptr::null(),
                        whole: Whole::NONE,
                    };
                    some_rows::<V, false, SINGLE>(rows, at);
                }
                for (at, row) in scores[..rows * padded].chunks_exact_mut(padded).enumerate() {
                    job.hide(first + at, row);
                    softmax::<V>(row);
                }
                for column in (0..depth).step_by(step) {
                    let at = Tile {
                        a: scores.as_ptr(),
                        lda: padded,
                        b: values.as_ptr().add(column * tokens),
                        ldb: step,
                        c: out.as_mut_ptr().add(first * width + base + column),
                        ldc: width,
                        depth: tokens,
                        bias: std::ptr::null(),
                        whole: Whole::NONE,
                    };
                    some_rows::<V, false, SINGLE>(rows, at);
                }
            }
            first += rows;
        }
    }
}

/// Softmax over a row of whole vectors; what is minus infinity becomes nearly 0.
#[inline(always)]
unsafe fn softmax<V: Lanes>(row: &mut [f32]) {
    // SAFETY: the row is a whole number of vectors.
    unsafe {
        let mut largest = V::splat(f32::NEG_INFINITY);
        for lane in (0..row.len()).step_by(V::LANES) {
            largest = largest.max(V::load(row.as_ptr().add(lane)));
        }
        let largest = V::splat(largest.largest());
        let least = V::splat(-60.0);
        let mut sums = V::splat(0.0);
        for lane in (0..row.len()).step_by(V::LANES) {
            // Tokens outside of the window add e⁻⁶⁰ each, far below the rounding of a sum that is at least 1. With less, the product below
            // would be no normal number, which takes a processor a hundred times as long. NaN stays what it is: of two numbers that cannot be
            // compared, `max` gives the second.
            let value = exp(least.max(V::load(row.as_ptr().add(lane)).sub(largest)));
            sums = sums.add(value);
            value.store(row.as_mut_ptr().add(lane));
        }
        let inverse = V::splat(1.0 / sums.sum());
        for lane in (0..row.len()).step_by(V::LANES) {
            V::load(row.as_ptr().add(lane)).mul(inverse).store(row.as_mut_ptr().add(lane));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scalar::Four;
    use super::softmax;

    #[test]
    fn softmax_makes_no_numbers_that_are_slow_to_multiply() {
        for seen in [0..8, 0..5, 3..4, 2..8] {
            let mut row = [0.0, -200.0, 3.0, 60.0, -0.5, -88.0, 1.0, 2.0];
            (0..row.len()).filter(|at| !seen.contains(at)).for_each(|at| row[at] = f32::NEG_INFINITY);
            // SAFETY: scalar vectors need no instructions, and the row is two of them.
            unsafe { softmax::<Four>(&mut row) };
            assert!(row.iter().all(|number| number.is_normal()), "{seen:?}: {row:?}");
            let sum: f32 = row[seen.clone()].iter().sum();
            assert!((sum - 1.0).abs() < 1e-6, "{seen:?}: {sum}");
            assert!(row.iter().enumerate().all(|(at, number)| seen.contains(&at) || *number < 1e-25));
        }
    }
}
