//! Products by tiles against plain loops, before the first use: nobody has run these on every processor that has the instructions.

use std::sync::OnceLock;

use super::floats::{self, Product};
use super::{DIM_STEP, PANEL, ROWS, allows_tiles, prepare, products, release};

/// Dimensions and rows: one tile, part of one, several, and several steps.
const SHAPES: [(usize, usize); 5] = [(4, 1), (68, 5), (128, 16), (128, 37), (768, 33)];

/// Whether the processor has tiles, the system lets this process use them, and products by them are right. Tried once.
pub(crate) fn tiles_work() -> bool {
    static WORK: OnceLock<bool> = OnceLock::new();
    *WORK.get_or_init(|| {
        // SAFETY: there are tiles for this process.
        allows_tiles() && unsafe { are_right() }
    })
}

/// Whether products are those of plain loops; says so in the log if they are not.
///
/// # Safety
/// The processor has the instructions and the system lets this process use them.
pub(super) unsafe fn are_right() -> bool {
    // SAFETY: the caller's promise.
    let right = SHAPES.iter().all(|&(dims, rows)| unsafe { is_right(dims, rows) })
        // SAFETY: as above.
        && [false, true].into_iter().all(|two| unsafe { floats_are_right(two) });
    // SAFETY: as above.
    unsafe { release() };
    if !right {
        tracing::warn!("AMX gives wrong products on this processor and is not used");
    }
    right
}

/// Whether each product of `rows` rows with a panel of `dims` dimensions is right, and none is missing.
///
/// # Safety
/// As [`are_right`].
unsafe fn is_right(dims: usize, rows: usize) -> bool {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    let weights: Vec<i8> = (0..dims * PANEL).map(|_| next() as i8).collect();
    let values: Vec<u8> = (0..dims * rows).map(|_| next()).collect();
    let weight = |column: usize, dim: usize| {
        i32::from(weights[(dim / DIM_STEP * PANEL + column) * DIM_STEP + dim % DIM_STEP])
    };
    let wanted = |row: usize, column: usize| -> i32 {
        (0..dims).map(|dim| i32::from(values[row * dims + dim]) * weight(column, dim)).sum()
    };
    let mut seen = vec![false; rows];
    let mut same = true;
    // SAFETY: the caller's promise, and there are as many bytes as is said.
    unsafe {
        prepare(rows, dims);
        products((values.as_ptr(), rows), (weights.as_ptr(), dims), |first, own, dots| {
            for row in 0..own {
                seen[first + row] = true;
                same &=
                    (0..PANEL).all(|column| *dots.add(row * PANEL + column) == wanted(first + row, column));
            }
        });
    }
    same && seen.iter().all(|seen| *seen)
}

/// Whether products of floats, of 16 rows or, with `two`, of 32, with 32 columns are those of plain loops. The numbers are whole and small,
/// so that all sums are exact.
///
/// # Safety
/// As [`are_right`].
pub(super) unsafe fn floats_are_right(two: bool) -> bool {
    const STEPS: usize = 3;
    const WORDS: usize = STEPS * floats::STEP / size_of::<u16>();
    /// The numbers of bf16 in a tile.
    const HALVES: usize = floats::TILE / size_of::<u16>();
    #[repr(align(64))]
    struct Operand([u16; WORDS]);
    let (mut rows, mut columns) = (Operand([0; WORDS]), Operand([0; WORDS]));
    // Numbers from −8 to 8 have four bits.
    let number = |at: usize, by: usize| (at * by % 17) as f32 - 8.0;
    for at in 0..WORDS {
        rows.0[at] = (number(at, 7).to_bits() >> 16) as u16;
        columns.0[at] = (number(at, 5).to_bits() >> 16) as u16;
    }
    let (count, mut out) = (if two { 2 * ROWS } else { ROWS }, [[f32::NAN; PANEL]; 2 * ROWS]);
    let product = Product {
        rows: rows.0.as_ptr().cast(),
        two,
        columns: columns.0.as_ptr().cast(),
        steps: STEPS,
        out: out.as_mut_ptr().cast(),
        apart: size_of_val(&out[0]),
    };
    // SAFETY: the caller's promise, and the operands and the result are of these sizes.
    unsafe {
        floats::prepare();
        floats::multiply(&product);
    }
    // Where the numbers of a part of a row and of a column are.
    let row = |step: usize, part: usize, row: usize, at: usize| {
        step * 4 * HALVES + part * 2 * HALVES + row * floats::DEPTH + at
    };
    let column = |step: usize, part: usize, column: usize, at: usize| {
        step * 4 * HALVES
            + part * 2 * HALVES
            + column / ROWS * HALVES
            + at / 2 * floats::DEPTH
            + column % ROWS * 2
            + at % 2
    };
    let wanted = |of_row: usize, of_column: usize| -> f32 {
        let all = (0..STEPS).flat_map(|step| (0..floats::DEPTH).map(move |at| (step, at)));
        all.flat_map(|(step, at)| [(0, 0), (0, 1), (1, 0)].map(|parts| (step, at, parts)))
            .map(|(step, at, (left, right))| {
                number(row(step, left, of_row, at), 7) * number(column(step, right, of_column, at), 5)
            })
            .sum()
    };
    (0..count).all(|of_row| (0..PANEL).all(|of_column| out[of_row][of_column] == wanted(of_row, of_column)))
}
