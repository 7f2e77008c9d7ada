//! Products of floats by `tdpbf16ps`, which multiplies numbers of 16 bits (bf16: a float without the lower half of its fraction). Each
//! float is nearly the sum of two of them, so that three products, `high · high`, `high · low` and `low · high`, are off by at most 2⁻¹⁵ of a
//! product, and by 2⁻¹⁸ in the root mean square.

use std::arch::asm;

use super::{Config, ROWS, configure};

/// Numbers of bf16 in a row of a tile: the numbers that one instruction multiplies and adds up for each sum.
pub(crate) const DEPTH: usize = 32;
/// Bytes of a tile.
pub(crate) const TILE: usize = ROWS * ROW_BYTES;
/// Bytes that one step takes of an operand: the high parts of two tiles, and then their low parts.
pub(crate) const STEP: usize = 4 * TILE;
/// Where the low parts begin in a step.
pub(crate) const LOW: usize = 2 * TILE;

/// Bytes of a row of a tile.
pub(crate) const ROW_BYTES: usize = 64;

/// Operands and result of a product.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    /// Pointer to the rows, `[steps][high, low][2 tiles][16 rows][32]`.
    pub(crate) rows: *const u8,
    /// Whether the second tile of rows counts.
    pub(crate) two: bool,
    /// Pointer to the columns, `[steps][high, low][2 tiles][16 pairs of numbers][16 columns][2]`.
    pub(crate) columns: *const u8,
    pub(crate) steps: usize,
    /// Pointer to the sums that are written, 32 of each row.
    pub(crate) out: *mut f32,
    /// Distance from one row of the sums to the next, in bytes.
    pub(crate) apart: usize,
}

/// Configures whole tiles for [`multiply`], which the caller must [`release`](super::release) after the last product.
///
/// # Safety
/// The processor has the instructions and the system lets this process use them.
pub(crate) unsafe fn prepare() {
    // SAFETY: the caller's promise.
    unsafe { configure(&Config::new(ROWS, ROW_BYTES)) };
}

/// Multiplies 16 or 32 rows with 32 columns and stores their dot products.
///
/// # Safety
/// [`prepare`] was called, and nothing else was configured since. The pointers are to as much as [`Product`] says, with at least one step.
#[inline]
pub(crate) unsafe fn multiply(job: &Product) {
    // SAFETY: reads and writes what the caller promises, and changes no other registers than are named.
    unsafe {
        if job.two {
            multiply_two(job);
        } else {
            multiply_one(job);
        }
    }
}

/// [`multiply`] for 32 rows.
///
/// # Safety
/// As `multiply`.
#[inline]
unsafe fn multiply_two(job: &Product) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            // The high parts of both.
            "tileloadd tmm4, [{rows} + {row}]",
            "tileloadd tmm6, [{columns} + {row}]",
            "tileloadd tmm7, [{columns} + {row} + {tile}]",
            "tileloadd tmm5, [{rows} + {row} + {tile}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            // The low parts of the columns.
            "tileloadd tmm6, [{columns} + {row} + {low}]",
            "tileloadd tmm7, [{columns} + {row} + {low} + {tile}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            // The low parts of the rows.
            "tileloadd tmm4, [{rows} + {row} + {low}]",
            "tileloadd tmm6, [{columns} + {row}]",
            "tileloadd tmm7, [{columns} + {row} + {tile}]",
            "tileloadd tmm5, [{rows} + {row} + {low} + {tile}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "tdpbf16ps tmm3, tmm5, tmm7",
            "add {rows}, {step}",
            "add {columns}, {step}",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{out} + {apart}], tmm0",
            "tilestored [{out} + {apart} + 64], tmm1",
            "tilestored [{below} + {apart}], tmm2",
            "tilestored [{below} + {apart} + 64], tmm3",
            rows = inout(reg) job.rows => _,
            columns = inout(reg) job.columns => _,
            steps = inout(reg) job.steps => _,
            row = in(reg) ROW_BYTES,
            tile = const TILE,
            low = const LOW,
            step = const STEP,
            out = in(reg) job.out,
            below = in(reg) job.out.wrapping_byte_add(ROWS * job.apart),
            apart = in(reg) job.apart,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// [`multiply`] for 16 rows.
///
/// # Safety
/// As `multiply`.
#[inline]
unsafe fn multiply_one(job: &Product) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "2:",
            "tileloadd tmm4, [{rows} + {row}]",
            "tileloadd tmm6, [{columns} + {row}]",
            "tileloadd tmm7, [{columns} + {row} + {tile}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tileloadd tmm2, [{columns} + {row} + {low}]",
            "tileloadd tmm3, [{columns} + {row} + {low} + {tile}]",
            "tdpbf16ps tmm0, tmm4, tmm2",
            "tdpbf16ps tmm1, tmm4, tmm3",
            "tileloadd tmm5, [{rows} + {row} + {low}]",
            "tdpbf16ps tmm0, tmm5, tmm6",
            "tdpbf16ps tmm1, tmm5, tmm7",
            "add {rows}, {step}",
            "add {columns}, {step}",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{out} + {apart}], tmm0",
            "tilestored [{out} + {apart} + 64], tmm1",
            rows = inout(reg) job.rows => _,
            columns = inout(reg) job.columns => _,
            steps = inout(reg) job.steps => _,
            row = in(reg) ROW_BYTES,
            tile = const TILE,
            low = const LOW,
            step = const STEP,
            out = in(reg) job.out,
            apart = in(reg) job.apart,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}
