//! The loops of the forward pass over any vector type; each instruction set compiles its own copy.
//!
//! Everything here is `#[inline(always)]`: the bodies end up inside the `#[target_feature]` functions of the instruction
//! sets, and only there do the vector operations become single instructions.

use crate::numbers::LINE;
use crate::table::{GROUP, Row};

use super::{Attention, Epilogue, Gemm, Norm, Panels};

/// A vector of f32 and what the loops need of it.
///
/// # Safety
/// Of all methods: the processor has the instructions of the implementation, and pointers hold `LANES` numbers.
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
    unsafe fn div(self, other: Self) -> Self;
    /// `self · by + plus`.
    unsafe fn mul_add(self, by: Self, plus: Self) -> Self;
    unsafe fn max(self, other: Self) -> Self;
    unsafe fn min(self, other: Self) -> Self;
    /// Whole numbers of 20 bits: the upper 16, and a byte for each with the lower 4 in its lower or `UPPER` half.
    unsafe fn widen<const UPPER: bool>(high: *const i16, low: *const u8) -> Self;
    /// Asks for what will be read soon, wherever it is, into the second-level cache.
    #[inline(always)]
    unsafe fn prefetch(_: *const f32) {}
    /// 2 to the power of whole numbers in −126..=127.
    unsafe fn power_of_two(self) -> Self;
    unsafe fn sum(self) -> f32;
    unsafe fn largest(self) -> f32;
}

/// Adding and subtracting this rounds a number below 2²² to a whole one.
const ROUNDER: f32 = 12_582_912.0;

/// e to the power of numbers up to 0, within 2 units in the last place; below −87 it is e⁻⁸⁷, which no sum of a softmax
/// notices. Cody and Waite's reduction, Cephes' polynomial.
#[inline(always)]
unsafe fn exp<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        let x = x.max(V::splat(-87.0));
        let whole = x.mul_add(V::splat(std::f32::consts::LOG2_E), V::splat(ROUNDER)).sub(V::splat(ROUNDER));
        let rest = whole.mul_add(V::splat(-0.693_359_4), x);
        let rest = whole.mul_add(V::splat(2.121_944_4e-4), rest);
        let mut p = V::splat(1.987_569_1e-4);
        for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
            p = p.mul_add(rest, V::splat(coefficient));
        }
        let value = p.mul_add(rest.mul(rest), rest.add(V::splat(1.0)));
        value.mul(whole.power_of_two())
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

/// `x/2 · (1 + erf(x/√2))`.
#[inline(always)]
unsafe fn gelu<V: Lanes>(x: V) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        let half = x.mul(V::splat(0.5));
        half.mul_add(erf(x.mul(V::splat(std::f32::consts::FRAC_1_SQRT_2))), half)
    }
}

/// How a tile gets at its columns: they are f32.
const SINGLE: u8 = 0;
/// They are whole numbers of 20 bits, and become f32 for the tiles of the rows after it: that one pass is enough, and it waits for
/// memory while it multiplies.
const WIDEN: u8 = 1;
/// They are what `WIDEN` has left. Meanwhile the next panel is asked for.
const WIDENED: u8 = 2;

/// Pointers into a matrix product: rows of `a` are `lda` apart and so on.
#[derive(Clone, Copy)]
struct Tile {
    a: *const f32,
    lda: usize,
    b: *const f32,
    ldb: usize,
    c: *mut f32,
    ldc: usize,
    depth: usize,
    /// Two vectors, or null for zeros.
    bias: *const f32,
    whole: Whole,
}

/// What a tile needs of whole numbers of 20 bits.
#[derive(Clone, Copy)]
struct Whole {
    /// `[depth][2 · LANES]`.
    high: *const i16,
    /// `[depth][LANES]`.
    low: *const u8,
    /// Two vectors.
    scale: *const f32,
    /// What is asked for, in each step of the depth `step` numbers further on; perhaps beyond the end of the weights.
    ahead: *const i16,
    step: usize,
}

impl Whole {
    const NONE: Self = Self {
        high: std::ptr::null(),
        low: std::ptr::null(),
        scale: std::ptr::null(),
        ahead: std::ptr::null(),
        step: 0,
    };
}

/// `c[R][2 · LANES] = bias + scale · a[R][depth] · b[depth][2 · LANES]`, the sums in registers; there is a scale for whole numbers
/// only. With `WIDEN`, `b` is written, not read, or null if no tile comes after it.
#[inline(always)]
unsafe fn tile<V: Lanes, const R: usize, const GELU: bool, const FROM: u8>(at: Tile) {
    // SAFETY: the caller's promise that all rows exist.
    unsafe {
        let bias = if at.bias.is_null() {
            [V::splat(0.0); 2]
        } else {
            [V::load(at.bias), V::load(at.bias.add(V::LANES))]
        };
        let mut sums = [if FROM == SINGLE { bias } else { [V::splat(0.0); 2] }; R];
        let (mut a, mut b) = (at.a, at.b);
        let Whole { mut high, mut low, mut ahead, .. } = at.whole;
        for _ in 0..at.depth {
            let columns = if FROM == WIDEN {
                let columns = [V::widen::<false>(high, low), V::widen::<true>(high.add(V::LANES), low)];
                if !at.b.is_null() {
                    columns[0].store(b.cast_mut());
                    columns[1].store(b.add(V::LANES).cast_mut());
                }
                high = high.add(2 * V::LANES);
                low = low.add(V::LANES);
                columns
            } else {
                [V::load(b), V::load(b.add(V::LANES))]
            };
            if FROM == WIDENED {
                V::prefetch(ahead.cast());
                ahead = ahead.wrapping_add(at.whole.step);
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let value = V::splat(*a.add(row * at.lda));
                sums[0] = value.mul_add(columns[0], sums[0]);
                sums[1] = value.mul_add(columns[1], sums[1]);
            }
            a = a.add(1);
            b = b.wrapping_add(at.ldb);
        }
        let scale = if FROM == SINGLE {
            [V::splat(1.0); 2]
        } else {
            [V::load(at.whole.scale), V::load(at.whole.scale.add(V::LANES))]
        };
        for (row, sums) in sums.into_iter().enumerate() {
            let out = at.c.add(row * at.ldc);
            let sums = if FROM == SINGLE {
                sums
            } else {
                [sums[0].mul_add(scale[0], bias[0]), sums[1].mul_add(scale[1], bias[1])]
            };
            let sums = if GELU { [gelu(sums[0]), gelu(sums[1])] } else { sums };
            sums[0].store(out);
            sums[1].store(out.add(V::LANES));
        }
    }
}

/// [`tile`] for a number of rows that is known when it runs, at most `ROWS`.
#[inline(always)]
unsafe fn some_rows<V: Lanes, const GELU: bool, const FROM: u8>(rows: usize, at: Tile) {
    // SAFETY: the caller's promise.
    unsafe {
        match rows {
            1 => tile::<V, 1, GELU, FROM>(at),
            2 => tile::<V, 2, GELU, FROM>(at),
            3 => tile::<V, 3, GELU, FROM>(at),
            4 => tile::<V, 4, GELU, FROM>(at),
            5 => tile::<V, 5, GELU, FROM>(at),
            6 => tile::<V, 6, GELU, FROM>(at),
            // Instruction sets with few registers never come here: the compiler sees it.
            _ if V::ROWS <= 6 => {}
            7 => tile::<V, 7, GELU, FROM>(at),
            8 => tile::<V, 8, GELU, FROM>(at),
            9 => tile::<V, 9, GELU, FROM>(at),
            10 => tile::<V, 10, GELU, FROM>(at),
            11 => tile::<V, 11, GELU, FROM>(at),
            _ => tile::<V, 12, GELU, FROM>(at),
        }
    }
}

/// Rows of the next tile: as even as possible, so that no tile is left with one row.
#[inline(always)]
fn next_rows(left: usize, most: usize) -> usize {
    left.div_ceil(left.div_ceil(most))
}

/// # Safety
/// The processor has the instructions of `V`; `job` was checked by [`Kernels::linear`](super::Kernels::linear).
#[inline(always)]
pub(super) unsafe fn gemm<V: Lanes>(job: &Gemm<'_>, scratch: &mut Vec<f32>, out: &mut [f32]) {
    // SAFETY: the caller's promise.
    unsafe {
        match job.epilogue {
            Epilogue::None => product::<V, false>(job, scratch, out),
            Epilogue::Gelu => product::<V, true>(job, scratch, out),
        }
    }
}

#[inline(always)]
unsafe fn product<V: Lanes, const GELU: bool>(job: &Gemm<'_>, scratch: &mut Vec<f32>, out: &mut [f32]) {
    let width = 2 * V::LANES;
    let linear = job.linear;
    let widened = match &linear.panels {
        Panels::Fixed { .. } if job.rows > V::ROWS => place(scratch, width * linear.depth),
        Panels::Fixed { .. } | Panels::F32(_) => std::ptr::null(),
    };
    // The tiles of all rows but the first ask for a share of the next panel each.
    let sharers = job.rows.div_ceil(V::ROWS).saturating_sub(1).max(1);
    let step = width.div_ceil(sharers);
    // A panel of weights stays in the first-level cache, or the second, while all rows pass by.
    for panel in 0..linear.columns / width {
        let (start, column) = (panel * width * linear.depth, panel * width);
        let mut row = 0;
        let mut ahead = start + width * linear.depth;
        while row < job.rows {
            let rows = next_rows(job.rows - row, V::ROWS);
            // SAFETY: `linear` has seen `rows × depth` inputs and `rows × columns` outputs; the panels hold
            // `depth × width` numbers each, bias and scales `columns`. What is asked for is not read.
            unsafe {
                let at = Tile {
                    a: job.input.as_ptr().add(row * job.stride),
                    lda: job.stride,
                    b: widened,
                    ldb: width,
                    c: out.as_mut_ptr().add(row * linear.columns + column),
                    ldc: linear.columns,
                    depth: linear.depth,
                    bias: linear.bias.as_ptr().add(column),
                    whole: Whole::NONE,
                };
                match &linear.panels {
                    Panels::F32(numbers) => {
                        let b = numbers.as_ptr().add(start);
                        some_rows::<V, GELU, SINGLE>(rows, Tile { b, ..at });
                    }
                    Panels::Fixed { numbers, scales } => {
                        let whole = Whole {
                            high: numbers.high.as_ptr().add(start),
                            low: numbers.low.as_ptr().add(start / 2),
                            scale: scales.as_ptr().add(column),
                            ahead: numbers.high.as_ptr().wrapping_add(ahead),
                            step,
                        };
                        if row == 0 {
                            some_rows::<V, GELU, WIDEN>(rows, Tile { whole, ..at });
                        } else {
                            some_rows::<V, GELU, WIDENED>(rows, Tile { whole, ..at });
                            ahead += step * linear.depth;
                        }
                    }
                }
            }
            row += rows;
        }
    }
}

/// Memory for as many numbers, from a cache line on.
fn place(scratch: &mut Vec<f32>, length: usize) -> *const f32 {
    let line = LINE / size_of::<f32>();
    if scratch.len() < length + line {
        scratch.resize(length + line, 0.0);
    }
    let lead = scratch.as_ptr().align_offset(LINE).min(line);
    // It is written through this.
    scratch[lead..].as_mut_ptr()
}

/// The dot product of rows of the same length: four sums side by side, and the rest that is no whole vector one by one.
///
/// # Safety
/// The processor has the instructions of `V`; the rows were checked by [`Kernels::dot`](super::Kernels::dot).
#[inline(always)]
pub(super) unsafe fn dot<V: Lanes>(a: Row<'_>, b: &[f32]) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        match a {
            Row::F32(a) => dot_f32::<V>(a, b),
            Row::Fixed { high, low, scale } => dot_whole::<V>(high, low, b) * scale,
        }
    }
}

#[inline(always)]
unsafe fn dot_f32<V: Lanes>(a: &[f32], b: &[f32]) -> f32 {
    let whole = a.len() / V::LANES * V::LANES;
    // SAFETY: both rows hold `whole` numbers, a multiple of LANES.
    let sum = unsafe {
        let mut sums = [V::splat(0.0); 4];
        for at in (0..whole).step_by(V::LANES) {
            let sum = &mut sums[at / V::LANES % 4];
            *sum = V::load(a.as_ptr().add(at)).mul_add(V::load(b.as_ptr().add(at)), *sum);
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    };
    a[whole..].iter().zip(&b[whole..]).fold(sum, |sum, (a, b)| sum + a * b)
}

#[inline(always)]
unsafe fn dot_whole<V: Lanes>(high: &[i16], low: &[u8], b: &[f32]) -> f32 {
    const HALF: usize = GROUP / 2;
    // SAFETY: the rows hold whole groups, and half of one is a whole number of vectors.
    unsafe {
        let mut sums = [V::splat(0.0); 4];
        for group in 0..b.len() / GROUP {
            let (high, low) = (high.as_ptr().add(group * GROUP), low.as_ptr().add(group * HALF));
            let b = b.as_ptr().add(group * GROUP);
            for lane in (0..HALF).step_by(V::LANES) {
                let first = V::widen::<false>(high.add(lane), low.add(lane));
                let second = V::widen::<true>(high.add(HALF + lane), low.add(lane));
                let sum = (2 * lane / V::LANES + 2 * group) % 4;
                sums[sum] = first.mul_add(V::load(b.add(lane)), sums[sum]);
                sums[sum + 1] = second.mul_add(V::load(b.add(HALF + lane)), sums[sum + 1]);
            }
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}

/// # Safety
/// The processor has the instructions of `V`; `job` was checked by [`Norm::check`].
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
/// The processor has the instructions of `V`; `job` was checked by [`Attention::check`].
#[inline(always)]
pub(super) unsafe fn attention<V: Lanes>(job: &Attention<'_>, scratch: &mut Vec<f32>, out: &mut [f32]) {
    let Attention { qkv, tokens, width, heads } = *job;
    let step = 2 * V::LANES;
    let padded = tokens.next_multiple_of(step);
    let depth = width / heads;
    // The keys of a head, transposed, `[padded / step][depth][step]`; its values, `[depth / step][tokens][step]`; and the
    // scores of a tile of queries. The copies keep what a tile reads in neighbouring cache lines: rows of `qkv` would fall
    // into few sets of the cache.
    scratch.clear();
    scratch.resize((2 * depth + V::ROWS) * padded, 0.0);
    let (keys, rest) = scratch.split_at_mut(depth * padded);
    let (values, scores) = rest.split_at_mut(depth * padded);
    for head in 0..heads {
        let base = head * depth;
        for (token, row) in qkv.chunks_exact(3 * width).enumerate() {
            let column = token / step * depth * step + token % step;
            for (dim, value) in row[width + base..][..depth].iter().enumerate() {
                keys[column + dim * step] = *value;
            }
            for (panel, part) in row[2 * width + base..][..depth].chunks_exact(step).enumerate() {
                values[(panel * tokens + token) * step..][..step].copy_from_slice(part);
            }
        }
        let mut first = 0;
        while first < tokens {
            let rows = next_rows(tokens - first, V::ROWS);
            // SAFETY: `check` has seen `tokens × 3 · width` inputs and `tokens × width` outputs; `keys` and `values` hold
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
                for row in scores[..rows * padded].chunks_exact_mut(padded) {
                    softmax::<V>(row, tokens);
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

/// Softmax of the first `count` numbers of a row that is padded to whole vectors.
#[inline(always)]
unsafe fn softmax<V: Lanes>(row: &mut [f32], count: usize) {
    row[count..].fill(f32::NEG_INFINITY);
    // SAFETY: the row is a whole number of vectors.
    unsafe {
        let mut largest = V::splat(f32::NEG_INFINITY);
        for lane in (0..row.len()).step_by(V::LANES) {
            largest = largest.max(V::load(row.as_ptr().add(lane)));
        }
        let largest = V::splat(largest.largest());
        let mut sums = V::splat(0.0);
        for lane in (0..row.len()).step_by(V::LANES) {
            let value = exp(V::load(row.as_ptr().add(lane)).sub(largest));
            // The padding would add e⁻⁸⁷ a place, far below the rounding of a sum that is at least 1.
            sums = sums.add(value);
            value.store(row.as_mut_ptr().add(lane));
        }
        let inverse = V::splat(1.0 / sums.sum());
        for lane in (0..row.len()).step_by(V::LANES) {
            V::load(row.as_ptr().add(lane)).mul(inverse).store(row.as_mut_ptr().add(lane));
        }
    }
}

/// For the tests: a function of one number.
#[cfg(test)]
#[inline(always)]
pub(super) unsafe fn map<V: Lanes>(function: super::Function, values: &mut [f32]) {
    for lane in values.chunks_exact_mut(V::LANES) {
        // SAFETY: a chunk is one vector.
        unsafe {
            let value = V::load(lane.as_ptr());
            let value = match function {
                super::Function::Exp => exp(value),
                super::Function::Gelu => gelu(value),
            };
            value.store(lane.as_mut_ptr());
        }
    }
}
