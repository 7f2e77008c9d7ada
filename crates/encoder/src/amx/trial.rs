//! Products by tiles against plain loops, before the first use: nobody has run these on every processor that has the instructions.

use std::sync::OnceLock;

use super::{DIM_STEP, PANEL, allows_tiles, products, release};

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
    let right = SHAPES.iter().all(|&(dims, rows)| unsafe { is_right(dims, rows) });
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
