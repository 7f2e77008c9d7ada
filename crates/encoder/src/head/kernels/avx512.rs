//! AVX-512 with VNNI: `vpdpbusd` takes 64 multiplications; 12 tokens × 32 terms accumulate in 24 registers.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use super::{
    DIM_STEP, Document, Kernels, Levels, PANEL, Pair, Panel, ROW_STEP, Rows, keep, quantisers, thresholds,
};

/// Shift of a document's values, since `vpdpbusd` multiplies unsigned by signed bytes.
pub(super) const SHIFT: u8 = 128;

pub(super) static KERNELS: Kernels = Kernels {
    name: "avx512",
    levels: Levels { most: 127, shift: SHIFT },
    // SAFETY: `detect` hands these functions out only where the processor has the features; `Kernels` checked that the
    // lengths agree.
    quantise: |hidden, dims, padded, levels| unsafe { quantise(hidden, dims, padded, levels) },
    // SAFETY: as above.
    quantise_turned: |tokens, levels| unsafe { quantise_turned(tokens, levels) },
    // SAFETY: as above.
    screen: |panel, document, masks| unsafe { screen(panel, document, masks) },
    // SAFETY: as above.
    collect: |masks, first, found| unsafe { collect(masks, first, found) },
    // SAFETY: as above.
    refine: |rows, document, pairs| unsafe { refine(rows, document, pairs) },
    release: || {},
};

/// The kernels, if the processor has all instructions that they use.
pub(super) fn detect() -> Option<&'static Kernels> {
    (is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt"))
    .then_some(&KERNELS)
}

/// Tokens of one block.
const ROWS: usize = 12;

quantisers!("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni");

/// The AVX-512 implementation of [`Kernels::screen`]: one mask for each token.
///
/// # Safety
/// The processor has the features, `document.values` holds `tokens × panel.dims()` values and there are `tokens` masks.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn screen(panel: &Panel<'_>, document: &Document<'_>, masks: &mut [u32]) {
    let start = starts(panel, document);
    let dims = panel.dims();
    let tokens = document.tokens;
    let mut first = 0;
    while first < tokens {
        // As even as possible, so that no block is left with one token.
        let left = tokens - first;
        let rows = left.div_ceil(left.div_ceil(ROWS));
        // SAFETY: rows `first .. first + rows` exist, each of `dims` values, by the caller's promise.
        unsafe {
            let values = document.values.as_ptr().add(first * dims);
            let masks = masks.as_mut_ptr().add(first);
            match rows {
                1 => block::<1>(panel, values, &start, masks),
                2 => block::<2>(panel, values, &start, masks),
                3 => block::<3>(panel, values, &start, masks),
                4 => block::<4>(panel, values, &start, masks),
                5 => block::<5>(panel, values, &start, masks),
                6 => block::<6>(panel, values, &start, masks),
                7 => block::<7>(panel, values, &start, masks),
                8 => block::<8>(panel, values, &start, masks),
                9 => block::<9>(panel, values, &start, masks),
                10 => block::<10>(panel, values, &start, masks),
                11 => block::<11>(panel, values, &start, masks),
                _ => block::<12>(panel, values, &start, masks),
            }
        }
        first += rows;
    }
}

/// Computes the masks of `ROWS` tokens for a panel.
///
/// # Safety
/// The processor has the features; `values` is `[ROWS][panel.dims()]`, `masks` is `[ROWS]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn block<const ROWS: usize>(
    panel: &Panel<'_>,
    values: *const u8,
    start: &[__m512i; 2],
    masks: *mut u32,
) {
    let dims = panel.dims();
    let mut dots = [*start; ROWS];
    for (step, column) in panel.weights.chunks_exact(PANEL * DIM_STEP).enumerate() {
        // SAFETY: the column has 128 bytes: two registers.
        let (low, high) = unsafe {
            (_mm512_loadu_si512(column.as_ptr().cast()), _mm512_loadu_si512(column.as_ptr().add(64).cast()))
        };
        for (row, dots) in dots.iter_mut().enumerate() {
            // SAFETY: there are `dims / 4` columns, so `step * 4 + 4 <= dims`, and `row < ROWS`.
            let four = unsafe { values.add(row * dims + step * DIM_STEP).cast::<i32>().read_unaligned() };
            let four = _mm512_set1_epi32(four);
            dots[0] = _mm512_dpbusd_epi32(dots[0], four, low);
            dots[1] = _mm512_dpbusd_epi32(dots[1], four, high);
        }
    }
    for (row, dots) in dots.iter().enumerate() {
        // SAFETY: `row < ROWS`.
        unsafe { masks.add(row).write(not_negative(dots)) };
    }
}

/// Initial values of the sums of a panel's 32 terms, such that a sum above its threshold ends at 0 or more. Sums may overflow on the way
/// but not in the end, as thresholds and dot products (without the shift) are within ±2³⁰.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn starts(panel: &Panel<'_>, document: &Document<'_>) -> [__m512i; 2] {
    let limits = thresholds(panel.bounds, &document.limits, SHIFT);
    // SAFETY: 32 numbers are two whole registers.
    let limits = unsafe {
        [_mm512_loadu_si512(limits.as_ptr().cast()), _mm512_loadu_si512(limits.as_ptr().add(16).cast())]
    };
    // −1 − x, without an overflow.
    limits.map(|limits| _mm512_xor_si512(limits, _mm512_set1_epi32(-1)))
}

/// A mask of the 32 sums that are 0 or more. Bits are in the order of [`term`], which takes half as many instructions as the order of the
/// terms.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn not_negative(sums: &[__m512i; 2]) -> u32 {
    // Of a number too large for 16 bits the sign stays.
    let words = _mm512_packs_epi32(sums[0], sums[1]);
    _mm512_cmpgt_epi16_mask(words, _mm512_set1_epi16(-1))
}

/// The lane in its panel of the term that a bit of [`not_negative`] stands for: packing takes four numbers from each register in turn.
#[inline(always)]
fn term(bit: u32) -> u32 {
    (bit >> 1 & 0b1100) | (bit & 0b11) | (bit << 2 & 0b1_0000)
}

/// Tokens whose masks are searched for set bits at once.
const MASKS: usize = 128;

/// A buffer of one number for each of these tokens, within one memory page: a store of 16 numbers across two pages is slow.
#[repr(align(512))]
struct Sparse([MaybeUninit<u32>; MASKS]);

impl Sparse {
    const NONE: Self = Self([MaybeUninit::uninit(); MASKS]);
}

/// Appends a pair for each set bit of the masks of consecutive tokens; `first` is the place of the panel's first term.
///
/// # Safety
/// The processor has the features.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,bmi1,popcnt")]
unsafe fn collect(masks: &[u32], first: u32, pairs: &mut Vec<Pair>) {
    pairs.reserve(masks.len() * PANEL);
    let mut len = pairs.len();
    let out = pairs.as_mut_ptr();
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let (mut some, mut tokens) = (Sparse::NONE, Sparse::NONE);
    for (chunk, masks) in masks.chunks(MASKS).enumerate() {
        // Most tokens have no pair, and one that has mostly one or two: branches would be foreseen badly.
        let mut count = 0;
        for (sixteen, masks) in masks.chunks(16).enumerate() {
            let there = (1u32 << masks.len()) - 1;
            let token = _mm512_add_epi32(_mm512_set1_epi32((chunk * MASKS + sixteen * 16) as i32), lanes);
            // SAFETY: masks beyond the last are not loaded; `count` is at most `sixteen * 16`, so there is room for 16 numbers.
            unsafe {
                let masks = _mm512_maskz_loadu_epi32(there as u16, masks.as_ptr().cast());
                let there = _mm512_test_epi32_mask(masks, masks);
                let store = |to: &mut Sparse, numbers| {
                    let numbers = _mm512_maskz_compress_epi32(there, numbers);
                    _mm512_storeu_si512(to.0.as_mut_ptr().add(count).cast(), numbers);
                };
                store(&mut some, masks);
                store(&mut tokens, token);
                count += there.count_ones() as usize;
            }
        }
        for (mask, token) in some.0[..count].iter().zip(&tokens.0) {
            // SAFETY: `count` numbers have been written.
            let (mask, token) = unsafe { (mask.assume_init(), token.assume_init()) };
            let rest = mask & mask.wrapping_sub(1);
            let pair = |bits: u32| Pair { term: first + term(bits.trailing_zeros()), token };
            // SAFETY: there is room for 32 pairs of each mask, so for a second one that is not there.
            unsafe {
                out.add(len).write(pair(mask));
                out.add(len + 1).write(pair(rest));
            }
            len += 1 + usize::from(rest != 0);
            let mut rest = rest & rest.wrapping_sub(1);
            while rest != 0 {
                // SAFETY: as above.
                unsafe { out.add(len).write(pair(rest)) };
                len += 1;
                rest &= rest - 1;
            }
        }
    }
    // SAFETY: that many have been written.
    unsafe { pairs.set_len(len) };
}

/// The AVX-512 implementation of [`Kernels::refine`].
///
/// # Safety
/// The processor has the features.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn refine(rows: &Rows<'_>, document: &Document<'_>, pairs: &mut [Pair]) -> usize {
    keep(rows, document, SHIFT, pairs, |row, values| {
        let mut dots = _mm512_setzero_si512();
        for (row, values) in row.chunks_exact(ROW_STEP).zip(values.chunks_exact(ROW_STEP)) {
            // SAFETY: chunks of 64 bytes are one register.
            unsafe {
                let values = _mm512_loadu_si512(values.as_ptr().cast());
                dots = _mm512_dpbusd_epi32(dots, values, _mm512_loadu_si512(row.as_ptr().cast()));
            }
        }
        _mm512_reduce_add_epi32(dots)
    })
}
