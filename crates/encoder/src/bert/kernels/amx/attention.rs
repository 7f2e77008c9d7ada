//! Attention by tiles: 32 queries at a time against 32 keys, and what softmax makes of that against the values. Queries, keys, values and
//! weights are floats as sums of two numbers of bf16 ([`floats`]), so that the result is nearly that of floats.

use std::arch::x86_64::*;

use crate::amx::floats::{self, DEPTH, LOW, Product, ROW_BYTES, STEP, TILE};
use crate::amx::{ROWS, release};
use crate::numbers::aligned_room;

use super::super::jobs::Attention;
use super::super::lanes::Lanes;

/// Queries, keys or dimensions that are computed at once: two tiles.
const BOTH: usize = 2 * ROWS;
/// Numbers in a vector.
const LANES: usize = 16;

/// What the heads of a text have in common.
struct Text<'a> {
    job: &'a Attention<'a>,
    /// Dimensions of a head.
    depth: usize,
    /// Keys, up to whole tiles.
    padded: usize,
    /// Distance from one query's scores to the next one's, in numbers: not a power of two, so that they do not fall into few sets of the
    /// cache.
    apart: usize,
    memory: Memory,
}

/// Pointers to scratch memory, each to whole cache lines.
struct Memory {
    /// `[padded / 32]` operands of `depth / 32` steps.
    keys: *mut u8,
    /// `[depth / 32]` operands of `padded / 32` steps.
    values: *mut u8,
    /// 32 queries, `depth / 32` steps.
    queries: *mut u8,
    /// 32 queries, `padded / 32` steps.
    weights: *mut u8,
    /// `[32][apart]`.
    scores: *mut f32,
    /// `[32][32]`.
    context: *mut f32,
}

/// One text's attention, head by head; `out` is `[tokens][width]`.
///
/// # Safety
/// The processor has the features, AMX-BF16 among them, and the system lets this process use tiles; `job` was checked by
/// [`Kernels::attention`](super::super::Kernels::attention).
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn attention(job: &Attention<'_>, scratch: &mut Vec<f32>, out: &mut [f32]) {
    let Attention { tokens, width, heads, .. } = *job;
    if tokens == 0 {
        return;
    }
    let depth = width / heads;
    let padded = tokens.next_multiple_of(BOTH);
    let apart = padded + LANES;
    // A number is as large in its two parts as before. All parts are whole cache lines.
    let parts = [depth * padded, depth * padded, BOTH * depth, BOTH * padded, BOTH * apart, BOTH * BOTH];
    let mut next = aligned_room(scratch, parts.iter().sum()).as_mut_ptr();
    let [keys, values, queries, weights, scores, context] = parts.map(|length| {
        let place = next;
        next = next.wrapping_add(length);
        place
    });
    let memory = Memory {
        keys: keys.cast(),
        values: values.cast(),
        queries: queries.cast(),
        weights: weights.cast(),
        scores,
        context,
    };
    let text = Text { job, depth, padded, apart, memory };
    // SAFETY: the caller's promise; `out` has a row of `width` numbers for each token.
    unsafe {
        floats::prepare();
        for head in 0..heads {
            text.put_keys(head);
            text.put_values(head);
            for first in (0..tokens).step_by(BOTH) {
                let rows = (tokens - first).min(BOTH);
                text.put_queries(head, first, rows);
                text.score(rows);
                let sums = text.weigh(first, rows);
                text.gather(rows, &sums, out.as_mut_ptr().add(first * width + head * depth));
            }
        }
        release();
    }
}

/// For all methods: the processor has the features of [`attention`], tiles are prepared, and heads and rows are those of the text.
impl Text<'_> {
    /// Pointer to a token's numbers of a head: of its query (`part` 0), key (1) or value (2).
    unsafe fn row(&self, token: usize, part: usize, head: usize) -> *const f32 {
        let width = self.job.width;
        // SAFETY: a token has `3 × width` numbers.
        unsafe { self.job.qkv.as_ptr().add((token * 3 + part) * width + head * self.depth) }
    }

    /// Splits the keys of a head into columns of tiles.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn put_keys(&self, head: usize) {
        let steps = self.depth / DEPTH;
        let mut parts = [[[0f32; LANES]; 2]; ROWS];
        for first in (0..self.job.tokens).step_by(ROWS) {
            for step in 0..steps {
                // SAFETY: the promise of all methods; each place is inside of its part of the memory.
                unsafe {
                    for (at, parts) in parts.iter_mut().enumerate() {
                        // Beyond the last token its key is repeated, and a second tile without tokens is left as it is. Softmax overwrites
                        // the scores of both.
                        let token = (first + at).min(self.job.tokens - 1);
                        let [high, low] = both(self.row(token, 1, head).add(step * DEPTH));
                        _mm512_storeu_si512(parts[0].as_mut_ptr().cast(), high);
                        _mm512_storeu_si512(parts[1].as_mut_ptr().cast(), low);
                    }
                    let panel = self.memory.keys.add((first / BOTH * steps + step) * STEP);
                    let tile = panel.add(first % BOTH / ROWS * TILE);
                    // Two numbers of a key are one word, and a word of each key is a row of the tile.
                    <__m512>::transpose(|at| parts[at][0].as_ptr(), tile.cast(), LANES);
                    <__m512>::transpose(|at| parts[at][1].as_ptr(), tile.add(LOW).cast(), LANES);
                }
            }
        }
    }

    /// Splits the values of a head into columns of tiles, with zeros beyond the last token.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn put_values(&self, head: usize) {
        let steps = self.padded / DEPTH;
        for pair in 0..self.padded / 2 {
            for dim in (0..self.depth).step_by(LANES) {
                // SAFETY: the promise of all methods; each place is inside of its part of the memory.
                unsafe {
                    let value = |token: usize| {
                        let is_there = token < self.job.tokens;
                        split(if is_there {
                            _mm512_loadu_ps(self.row(token, 2, head).add(dim))
                        } else {
                            _mm512_setzero_ps()
                        })
                    };
                    let (even, odd) = (value(2 * pair), value(2 * pair + 1));
                    let step = dim / BOTH * steps + pair / ROWS;
                    let tile = self.memory.values.add(step * STEP + dim % BOTH / LANES * TILE);
                    let row = tile.add(pair % ROWS * ROW_BYTES);
                    for (even, odd, low) in [(even[0], odd[0], 0), (even[1], odd[1], LOW)] {
                        let above = _mm512_and_si512(odd, _mm512_set1_epi32(HIGH));
                        let words = _mm512_or_si512(_mm512_srli_epi32::<16>(even), above);
                        _mm512_storeu_si512(row.add(low).cast(), words);
                    }
                }
            }
        }
    }

    /// Splits `rows` queries of a head, from `first` on, into rows of tiles.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn put_queries(&self, head: usize, first: usize, rows: usize) {
        for row in 0..rows {
            for step in 0..self.depth / DEPTH {
                // SAFETY: the promise of all methods; each place is inside of its part of the memory.
                unsafe {
                    let [high, low] = both(self.row(first + row, 0, head).add(step * DEPTH));
                    let to = self.memory.queries.add(step * STEP + row * ROW_BYTES);
                    _mm512_storeu_si512(to.cast(), high);
                    _mm512_storeu_si512(to.add(LOW).cast(), low);
                }
            }
        }
    }

    /// Multiplies the queries with all keys.
    #[inline]
    unsafe fn score(&self, rows: usize) {
        let steps = self.depth / DEPTH;
        for panel in 0..self.padded / BOTH {
            // SAFETY: the promise of all methods; the operands are whole, whatever is in rows that do not count.
            unsafe {
                floats::multiply(&Product {
                    rows: self.memory.queries,
                    two: rows > ROWS,
                    columns: self.memory.keys.add(panel * steps * STEP),
                    steps,
                    out: self.memory.scores.add(panel * BOTH),
                    apart: self.apart * size_of::<f32>(),
                });
            }
        }
    }

    /// Makes weights of the scores: e to their power, of which the sums are returned. Tokens that are not seen get nearly 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn weigh(&self, first: usize, rows: usize) -> [f32; BOTH] {
        let mut all = [1f32; BOTH];
        for (row, all) in all[..rows].iter_mut().enumerate() {
            // SAFETY: the promise of all methods; a row has `padded` scores, whole vectors.
            unsafe {
                let scores = self.memory.scores.add(row * self.apart);
                self.job.hide(first + row, std::slice::from_raw_parts_mut(scores, self.padded));
                let mut largest = _mm512_set1_ps(f32::NEG_INFINITY);
                for lane in (0..self.padded).step_by(LANES) {
                    largest = largest.max(<__m512>::load(scores.add(lane)));
                }
                let largest = _mm512_set1_ps(largest.largest());
                let mut sum = _mm512_setzero_ps();
                for step in 0..self.padded / DEPTH {
                    let weight =
                        |lane: usize| power(<__m512>::load(scores.add(step * DEPTH + lane)), largest);
                    let (first, second) = (weight(0), weight(LANES));
                    sum = sum.add(first.add(second));
                    let [high, low] = pack(split(first), split(second));
                    let to = self.memory.weights.add(step * STEP + row * ROW_BYTES);
                    _mm512_storeu_si512(to.cast(), high);
                    _mm512_storeu_si512(to.add(LOW).cast(), low);
                }
                *all = sum.sum();
            }
        }
        all
    }

    /// Multiplies the weights with the values, divides by the sums of the weights, and writes rows of `out`, `width` numbers apart.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    unsafe fn gather(&self, rows: usize, sums: &[f32; BOTH], out: *mut f32) {
        let steps = self.padded / DEPTH;
        for dims in (0..self.depth).step_by(BOTH) {
            // SAFETY: the promise of all methods, and `out` has place for the rows.
            unsafe {
                floats::multiply(&Product {
                    rows: self.memory.weights,
                    two: rows > ROWS,
                    columns: self.memory.values.add(dims / BOTH * steps * STEP),
                    steps,
                    out: self.memory.context,
                    apart: BOTH * size_of::<f32>(),
                });
                for (row, sum) in sums[..rows].iter().enumerate() {
                    let inverse = _mm512_set1_ps(1.0 / sum);
                    for lane in (0..BOTH).step_by(LANES) {
                        let value = <__m512>::load(self.memory.context.add(row * BOTH + lane));
                        value.mul(inverse).store(out.add(row * self.job.width + dims + lane));
                    }
                }
            }
        }
    }
}

/// e to the power of a score minus the largest one, `2^((score − largest) · log₂e)`, with a relative error below 2⁻¹⁸ for those that count
/// in a sum. Scores far below the largest give e⁻⁶⁰, as in the other kernels' softmax: with less, products would be no normal numbers. NaN
/// stays NaN.
#[inline]
#[target_feature(enable = "avx512f")]
fn power(score: __m512, largest: __m512) -> __m512 {
    let power = _mm512_mul_ps(_mm512_sub_ps(score, largest), _mm512_set1_ps(std::f32::consts::LOG2_E));
    // Of two numbers that cannot be compared, this gives the second.
    let power = _mm512_max_ps(_mm512_set1_ps(-60.0 * std::f32::consts::LOG2_E), power);
    let whole = _mm512_roundscale_ps::<0>(power);
    let fraction = _mm512_sub_ps(power, whole);
    // The polynomial of degree 5 that is nearest to 2^x on -0.5..=0.5, relative to it.
    let mut value = _mm512_set1_ps(1.327_647_1e-3);
    for coefficient in [9.675_541e-3, 0.055_507_13, 0.240_221_2, 0.693_146_94, 1.000_000_1] {
        value = _mm512_fmadd_ps(value, fraction, _mm512_set1_ps(coefficient));
    }
    _mm512_scalef_ps(value, whole)
}

/// The upper half of a word.
const HIGH: i32 = 0xFFFF_0000u32 as i32;

/// Rounds numbers to bf16, and what that leaves to bf16 too; both are the upper halves of words. Of the lower halves, those of the first
/// are zero. Infinity and the NaN that arithmetic makes give NaN; other NaNs, whose fraction is all ones, would not.
#[inline]
#[target_feature(enable = "avx512f")]
fn split(numbers: __m512) -> [__m512i; 2] {
    let half = _mm512_set1_epi32(0x8000);
    let high =
        _mm512_and_si512(_mm512_add_epi32(_mm512_castps_si512(numbers), half), _mm512_set1_epi32(HIGH));
    let low = _mm512_sub_ps(numbers, _mm512_castsi512_ps(high));
    [high, _mm512_add_epi32(_mm512_castps_si512(low), half)]
}

/// The upper halves of the words of two vectors, one after the other: of their high parts, and of their low parts.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn pack(first: [__m512i; 2], second: [__m512i; 2]) -> [__m512i; 2] {
    let mut places = [0i16; 2 * LANES];
    for (at, place) in places.iter_mut().enumerate() {
        *place = 2 * at as i16 + 1;
    }
    // SAFETY: 32 numbers of 16 bits are a vector.
    let places = unsafe { _mm512_loadu_si512(places.as_ptr().cast()) };
    let halves = |part: usize| _mm512_permutex2var_epi16(first[part], places, second[part]);
    [halves(0), halves(1)]
}

/// The high and the low parts of 32 numbers.
///
/// # Safety
/// `from` holds them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn both(from: *const f32) -> [__m512i; 2] {
    // SAFETY: the caller's promise.
    let numbers = |lane: usize| split(unsafe { _mm512_loadu_ps(from.add(lane)) });
    pack(numbers(0), numbers(LANES))
}
