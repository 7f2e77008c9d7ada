//! Products of bytes over any vector type; as in `generic.rs`, each instruction set compiles its own copy.
//!
//! A number of a row, times its factor, is `scale · q + least` with a whole `q` of 0..=255, a scale and a least number of its own for each
//! row; a weight, divided by that factor, is `scale · w` with a whole `w` of −128..=127 and a scale of its column. The factors are 1 but
//! where some numbers of rows are far larger than the others, which one scale would round away. So an output is
//! `scale · scale · Σ q·w + least · scale · Σ w + bias`, of which `Σ w` is known beforehand. `Σ q·w` is a whole number without an overflow,
//! and the same on every instruction set, as the numbers `q` are: they are made by two multiplications, one subtraction and one rounding
//! to the nearest.

use crate::numbers::{LINE, aligned_room, prefetch_line};

use super::jobs::{Epilogue, Gemm};
use super::lanes::{Lanes, gelu};
use super::linear::Bytes;
use super::product::next_rows;

/// How an instruction set multiplies bytes; `LANES` are those of its vectors of f32.
///
/// # Safety
/// Every method needs a processor with the instructions of the implementation, and pointers to as many numbers as it says.
pub(super) unsafe trait Whole {
    /// The vectors of f32 of the same instruction set.
    type Floats: Lanes;
    /// `LANES` sums of 32 bits.
    type Sums: Copy;
    /// `LANES · GROUP` weights, or a word of a row as often as that takes.
    type Weights: Copy;
    /// Bytes of a row in a 32-bit word: the numbers that one instruction multiplies and adds up.
    const GROUP: usize;
    /// Number that is subtracted from each number of a row, so that it fits the instruction.
    const SHIFT: u8;
    /// Rows of one register tile, two vectors of sums wide.
    const WHOLE_ROWS: usize;

    /// Reads `LANES` sums.
    unsafe fn sums(from: *const i32) -> Self::Sums;
    /// Reads `LANES · GROUP` weights.
    unsafe fn weights(from: *const i8) -> Self::Weights;
    /// Reads one word of a row and repeats it in all lanes.
    unsafe fn word(from: *const i32) -> Self::Weights;
    /// `sums + Σ word · weights`.
    unsafe fn add_products(sums: Self::Sums, word: Self::Weights, weights: Self::Weights) -> Self::Sums;
    /// The sums as f32.
    unsafe fn of_sums(sums: Self::Sums) -> Self::Floats;
    /// Rounds numbers in 0..=255 to integers, ties to even, subtracts `SHIFT` from each, and writes them as `LANES / GROUP` words.
    unsafe fn put(numbers: Self::Floats, to: *mut i32);
}

/// Distance, in bytes, of the weights that are asked for ahead of those that are multiplied. A question has few rows, so that its products
/// wait for their weights. Between 512 and 4,096 it makes little difference.
const AHEAD: usize = 2048;

/// Number of f32 in a vector of the instruction set.
#[inline(always)]
const fn lanes<W: Whole>() -> usize {
    <W::Floats as Lanes>::LANES
}

/// The scale and the least number of a quantised row.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Span {
    pub(super) scale: f32,
    pub(super) least: f32,
}

/// Rows quantised to integers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    /// The integers as words, `[rows][depth / GROUP]`, aligned to a cache line.
    pub(super) words: *mut i32,
    /// Scale and least number of each row.
    pub(super) spans: *mut Span,
}

/// Reserves scratch memory for quantised rows with `group` integers in a word.
pub(super) fn place(scratch: &mut Vec<f32>, rows: usize, depth: usize, group: usize) -> Words {
    const WORDS_OF_SPAN: usize = size_of::<Span>() / size_of::<f32>();
    let words = rows * (depth / group);
    let (words, spans) = aligned_room(scratch, words + rows * WORDS_OF_SPAN).split_at_mut(words);
    Words { words: words.as_mut_ptr().cast(), spans: spans.as_mut_ptr().cast() }
}

/// Quantises rows of as many numbers as there are factors, each multiplied with its factor.
///
/// # Safety
/// The processor has the instructions of `W`; the number of factors is a multiple of `LANES`, and `to` has place for the rows.
#[inline(always)]
pub(super) unsafe fn quantise<W: Whole>(rows: &[f32], factors: &[f32], to: Words) {
    let depth = factors.len();
    for (at, row) in rows.chunks_exact(depth).enumerate() {
        // SAFETY: the caller's promise.
        unsafe {
            let (mut most, mut least) =
                (<W::Floats>::splat(f32::NEG_INFINITY), <W::Floats>::splat(f32::INFINITY));
            for lane in (0..depth).step_by(lanes::<W>()) {
                let value = <W::Floats>::load(row.as_ptr().add(lane))
                    .mul(<W::Floats>::load(factors.as_ptr().add(lane)));
                most = most.max(value);
                least = least.min(value);
            }
            let (most, least) = (most.largest(), -<W::Floats>::splat(0.0).sub(least).largest());
            let scale = (most - least) * (1.0 / 255.0);
            // Rows of one number, or nearly so, are all that.
            let inverse = if scale >= f32::MIN_POSITIVE { 1.0 / scale } else { 0.0 };
            let lowest = least;
            let (least, inverse) = (<W::Floats>::splat(lowest), <W::Floats>::splat(inverse));
            let words = to.words.add(at * (depth / W::GROUP));
            let mut sum = <W::Floats>::splat(0.0);
            for lane in (0..depth).step_by(lanes::<W>()) {
                let value = <W::Floats>::load(row.as_ptr().add(lane))
                    .mul(<W::Floats>::load(factors.as_ptr().add(lane)));
                let number = value.sub(least).mul(inverse);
                sum = sum.add(number);
                W::put(number, words.add(lane / W::GROUP));
            }
            // Neither the comparisons above nor whole numbers tell of a NaN, and infinity becomes one: all outputs of such a row are NaN.
            let scale = if sum.sum().is_nan() { f32::NAN } else { scale };
            to.spans.add(at).write(Span { scale, least: lowest });
        }
    }
}

/// Quantises the rows of `job` and multiplies them with weights of 8 bits.
///
/// # Safety
/// The processor has the instructions of `W`; `job` was checked by [`Kernels::linear`](super::Kernels::linear), and `bytes` are its
/// weights.
#[inline(always)]
pub(super) unsafe fn gemm<W: Whole>(job: &Gemm<'_>, bytes: &Bytes, scratch: &mut Vec<f32>, out: &mut [f32]) {
    let rows = place(scratch, job.rows, job.linear.depth, W::GROUP);
    // SAFETY: the caller's promise; the place is for these rows.
    unsafe {
        quantise::<W>(job.input, &bytes.factors, rows);
        match job.epilogue {
            Epilogue::None => product::<W, false>(job, bytes, rows, out),
            Epilogue::Gelu => product::<W, true>(job, bytes, rows, out),
        }
    }
}

/// Pointers to the operands and the result of one register tile.
#[derive(Clone, Copy)]
struct Tile {
    /// Rows are `depth / GROUP` words apart.
    words: *const i32,
    spans: *const Span,
    /// `[depth / GROUP][2 · LANES][GROUP]`.
    weights: *const i8,
    /// Words of a row.
    steps: usize,
    columns: Columns,
    out: *mut f32,
    /// Distance from one row of `out` to the next, in numbers.
    stride: usize,
}

/// Scales, totals and biases of two vectors of columns.
#[derive(Clone, Copy)]
pub(super) struct Columns {
    /// Initial values of the integer sums.
    pub(super) start: *const i32,
    pub(super) scale: *const f32,
    /// `scale · Σ w` for each column.
    pub(super) total: *const f32,
    pub(super) bias: *const f32,
}

impl Columns {
    /// Pointers to the numbers of the columns from `first` on.
    ///
    /// # Safety
    /// A panel of columns exists from `first` on.
    #[inline(always)]
    pub(super) unsafe fn of(bytes: &Bytes, bias: &[f32], first: usize) -> Self {
        // SAFETY: there is a number for each column.
        unsafe {
            Self {
                start: bytes.start.as_ptr().add(first),
                scale: bytes.scales.as_ptr().add(first),
                total: bytes.totals.as_ptr().add(first),
                bias: bias.as_ptr().add(first),
            }
        }
    }

    /// Writes the outputs of a row, given the sums of two vectors of columns.
    ///
    /// # Safety
    /// The processor has the instructions of `W`; there are two vectors of columns, and `out` has place for them.
    #[inline(always)]
    pub(super) unsafe fn put<W: Whole, const GELU: bool>(
        self,
        sums: [W::Sums; 2],
        span: Span,
        out: *mut f32,
    ) {
        // SAFETY: the caller's promise of the instructions.
        let (scale, least) = unsafe { (<W::Floats>::splat(span.scale), <W::Floats>::splat(span.least)) };
        for (half, sums) in sums.into_iter().enumerate() {
            let at = half * lanes::<W>();
            // SAFETY: the caller's promise.
            unsafe {
                let rest = least
                    .mul_add(<W::Floats>::load(self.total.add(at)), <W::Floats>::load(self.bias.add(at)));
                let scale = scale.mul(<W::Floats>::load(self.scale.add(at)));
                let value = W::of_sums(sums).mul_add(scale, rest);
                let value = if GELU { gelu(value) } else { value };
                value.store(out.add(at));
            }
        }
    }
}

/// Computes one register tile of `R` rows: the sums, `[R][2 · LANES]`, stay in registers.
#[inline(always)]
unsafe fn tile<W: Whole, const R: usize, const GELU: bool>(at: Tile) {
    // SAFETY: the caller's promise that all rows exist.
    unsafe {
        let start = [W::sums(at.columns.start), W::sums(at.columns.start.add(lanes::<W>()))];
        let mut sums = [start; R];
        let (mut words, mut weights) = (at.words, at.weights);
        for _ in 0..at.steps {
            let columns = [W::weights(weights), W::weights(weights.add(lanes::<W>() * W::GROUP))];
            for line in (0..2 * lanes::<W>() * W::GROUP).step_by(LINE) {
                prefetch_line::<true>(weights.wrapping_add(AHEAD + line).cast());
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let word = W::word(words.add(row * at.steps));
                sums[0] = W::add_products(sums[0], word, columns[0]);
                sums[1] = W::add_products(sums[1], word, columns[1]);
            }
            words = words.add(1);
            weights = weights.add(2 * lanes::<W>() * W::GROUP);
        }
        for (row, sums) in sums.into_iter().enumerate() {
            at.columns.put::<W, GELU>(sums, *at.spans.add(row), at.out.add(row * at.stride));
        }
    }
}

/// Calls [`tile`] for a number of rows that is known only at run time, at most `WHOLE_ROWS`.
#[inline(always)]
unsafe fn some_rows<W: Whole, const GELU: bool>(rows: usize, at: Tile) {
    // SAFETY: the caller's promise.
    unsafe {
        match rows {
            1 => tile::<W, 1, GELU>(at),
            2 => tile::<W, 2, GELU>(at),
            3 => tile::<W, 3, GELU>(at),
            4 => tile::<W, 4, GELU>(at),
            _ if W::WHOLE_ROWS <= 4 => {}
            5 => tile::<W, 5, GELU>(at),
            6 => tile::<W, 6, GELU>(at),
            // Instruction sets with few registers never come here: the compiler sees it.
            _ if W::WHOLE_ROWS <= 6 => {}
            7 => tile::<W, 7, GELU>(at),
            8 => tile::<W, 8, GELU>(at),
            9 => tile::<W, 9, GELU>(at),
            10 => tile::<W, 10, GELU>(at),
            11 => tile::<W, 11, GELU>(at),
            _ => tile::<W, 12, GELU>(at),
        }
    }
}

#[inline(always)]
unsafe fn product<W: Whole, const GELU: bool>(job: &Gemm<'_>, bytes: &Bytes, rows: Words, out: &mut [f32]) {
    let (linear, width) = (job.linear, 2 * lanes::<W>());
    let steps = linear.depth / W::GROUP;
    // A panel of weights stays in the first-level cache, or the second, while all rows pass by.
    for column in (0..linear.columns).step_by(width) {
        let mut row = 0;
        while row < job.rows {
            let some = next_rows(job.rows - row, W::WHOLE_ROWS);
            // SAFETY: `linear` has seen `rows × columns` outputs; there are `rows × depth` numbers in words, and panels of
            // `depth × width` weights.
            unsafe {
                some_rows::<W, GELU>(
                    some,
                    Tile {
                        words: rows.words.add(row * steps),
                        spans: rows.spans.add(row),
                        weights: bytes.numbers.as_ptr().add(column * linear.depth),
                        steps,
                        columns: Columns::of(bytes, &linear.bias, column),
                        out: out.as_mut_ptr().add(row * linear.columns + column),
                        stride: linear.columns,
                    },
                );
            }
            row += some;
        }
    }
}
