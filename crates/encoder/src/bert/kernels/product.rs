//! Products of matrices and rows over any vector type; as in `generic.rs`, each instruction set compiles its own copy.

use crate::nibbles;
use crate::numbers::{aligned_room, prefetch_line};
use crate::table::{GROUP, Row};

use super::jobs::{Epilogue, Gemm};
use super::lanes::{Lanes, gelu};
use super::linear::Panels;

/// Value of a tile's parameter `FROM`: the weights of its columns are f32.
pub(super) const SINGLE: u8 = 0;
/// Value of `FROM`: the weights are 20-bit integers, which the tile also converts to f32 for the tiles of the following rows, so that they
/// are converted once; the multiplications overlap with waiting for memory.
const WIDEN: u8 = 1;
/// Value of `FROM`: the weights are the f32 numbers that a tile with `WIDEN` left. The upper bits of the next panel, most of its bytes, are
/// prefetched meanwhile.
const WIDENED: u8 = 2;

/// Pointers to the operands and the result of one register tile: rows of `a` are `lda` numbers apart, those of `b` and `c` likewise.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) a: *const f32,
    pub(super) lda: usize,
    pub(super) b: *const f32,
    pub(super) ldb: usize,
    pub(super) c: *mut f32,
    pub(super) ldc: usize,
    pub(super) depth: usize,
    /// Two vectors, or null for zeros.
    pub(super) bias: *const f32,
    pub(super) whole: Whole,
}

/// Pointers to the 20-bit weights of a panel.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    /// The upper 16 bits of the weights, `[depth][2 · LANES]`.
    high: *const i16,
    /// The lower 4 bits of the weights, two to a byte, `[depth][LANES]`.
    low: *const u8,
    /// The scales of two vectors of columns.
    scale: *const f32,
    /// Address to prefetch from, `step` numbers further in each step of the depth; it may be beyond the end of the weights.
    ahead: *const i16,
    step: usize,
}

impl Whole {
    pub(super) const NONE: Self = Self {
        high: std::ptr::null(),
        low: std::ptr::null(),
        scale: std::ptr::null(),
        ahead: std::ptr::null(),
        step: 0,
    };
}

/// Computes one register tile, `c[R][2 · LANES] = bias + scale · a[R][depth] · b[depth][2 · LANES]`, with the sums in registers; only
/// 20-bit weights have a scale. With `WIDEN`, `b` is not read but written, or null if no tile follows.
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
                prefetch_line::<false>(ahead.cast());
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

/// Calls [`tile`] for a number of rows that is known only at run time, at most `ROWS`.
#[inline(always)]
pub(super) unsafe fn some_rows<V: Lanes, const GELU: bool, const FROM: u8>(rows: usize, at: Tile) {
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

/// Number of rows of the next tile when `left` rows remain and a tile takes at most `most`: as even as possible, so that no tile is left
/// with a single row.
#[inline(always)]
pub(super) fn next_rows(left: usize, most: usize) -> usize {
    left.div_ceil(left.div_ceil(most))
}

/// Multiplies the rows of `job` with weights of f32 or 20 bits.
///
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
        Panels::Fixed { .. } if job.rows > V::ROWS => {
            // It is written through this.
            aligned_room(scratch, width * linear.depth).as_mut_ptr().cast_const()
        }
        Panels::Fixed { .. } | Panels::F32(_) | Panels::Bytes(_) => std::ptr::null(),
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
                    Panels::Bytes(_) => unreachable!("bytes have a product of their own"),
                }
            }
            row += rows;
        }
    }
}

/// The dot product of two rows of the same length: four vectors of sums side by side, and the remaining numbers, less than a vector, one by
/// one.
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
            Row::Bytes { numbers, scale } => dot_bytes::<V>(numbers, b) * scale,
            Row::Nibbles { bytes, scales } => dot_nibbles::<V>(bytes, scales, b),
        }
    }
}

/// No model that is known decodes with 4-bit rows, so they are only unpacked, one group after another.
#[inline(always)]
unsafe fn dot_nibbles<V: Lanes>(bytes: &[u8], scales: &[f32], b: &[f32]) -> f32 {
    let mut whole = [0.0; nibbles::GROUP];
    let groups = bytes.chunks_exact(nibbles::BYTES).zip(scales).zip(b.chunks_exact(nibbles::GROUP));
    groups.fold(0.0, |sum, ((group, scale), b)| {
        whole.iter_mut().zip(nibbles::numbers(group)).for_each(|(whole, number)| *whole = number);
        // SAFETY: the caller's promise; both are of one group.
        sum + unsafe { dot_f32::<V>(&whole, b) } * scale
    })
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

#[inline(always)]
unsafe fn dot_bytes<V: Lanes>(numbers: &[i8], b: &[f32]) -> f32 {
    // SAFETY: the rows hold whole groups, which are whole numbers of vectors.
    unsafe {
        let mut sums = [V::splat(0.0); 4];
        for at in (0..b.len()).step_by(V::LANES) {
            let sum = &mut sums[at / V::LANES % 4];
            *sum = V::bytes(numbers.as_ptr().add(at)).mul_add(V::load(b.as_ptr().add(at)), *sum);
        }
        sums[0].add(sums[1]).add(sums[2].add(sums[3])).sum()
    }
}
