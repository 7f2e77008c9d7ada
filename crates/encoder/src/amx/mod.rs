//! AMX: `tdpbusd` multiplies 16 rows × 64 dimensions by 64 dimensions × 16 columns of weights; 32 rows × 32 columns accumulate in four
//! tiles.
//!
//! Only the matrix products are here, which the SPLADE head and the forward pass share. The weight panels of their AVX-512 kernels already
//! have the layout of tiles: the four bytes of each column that one instruction takes are a row of a tile. The instructions are written in
//! assembly because Rust's intrinsics for them are not stable.
#![expect(unsafe_code, reason = "instructions in assembly; each function states what its callers owe")]

use std::arch::asm;
use std::mem::MaybeUninit;

pub(crate) mod floats;
mod system;
mod trial;

#[cfg(test)]
mod emulator;
#[cfg(test)]
mod tests;

pub(crate) use system::allows_tiles;
#[cfg(test)]
use system::has_tiles;
pub(crate) use trial::tiles_work;
#[cfg(test)]
pub(crate) use {emulator::with_error, tests::configured};

/// Columns of a panel.
const PANEL: usize = 32;
/// Consecutive bytes (dimensions) of one column that lie next to each other in a panel.
const DIM_STEP: usize = 4;

/// For the tests: whether AMX products can be computed, emulated on a processor that has only AVX-512 with VNNI.
#[cfg(test)]
pub(crate) fn runs() -> bool {
    is_x86_feature_detected!("avx512vnni") && (allows_tiles() || !has_tiles() && emulator::install())
}

/// Rows of a tile: tokens, or groups of four dimensions of the weights.
pub(crate) const ROWS: usize = 16;

/// Bytes from one row to the next: of a panel's weights, and of the integer dot products of a token.
const STRIDE: usize = PANEL * DIM_STEP;

/// The integer dot products of two tiles of tokens with a panel's terms.
#[repr(align(64))]
struct Dots(MaybeUninit<[[i32; PANEL]; 2 * ROWS]>);

/// Panels are asked for ahead while the one before is multiplied, by each of this many pairs of tiles one part.
const PARTS: usize = 4;

/// Configures tiles for [`products`] of so many rows and dimensions, unless they are: successive panels need the same configuration. The
/// caller must call [`release`] after its last product.
///
/// # Safety
/// The processor has the instructions and the system lets this process use them.
#[inline]
pub(crate) unsafe fn prepare(rows: usize, dims: usize) {
    // There is no empty tile.
    if rows > 0 {
        // SAFETY: the caller's promise; at most 16 rows, and steps of at most 64 bytes.
        unsafe { configure(&Config::new(rows.min(ROWS), step(dims))) };
    }
}

/// Multiplies rows of bytes with a panel of weights, `[dims / 4][PANEL][4]`, tile by tile. `hand_on` is called with the first row of a
/// tile, its number of rows, and a pointer to their sums, `[rows][PANEL]`. The last tile may overlap the one before. The panel that follows
/// in memory, if any, is asked for ahead.
///
/// # Safety
/// [`prepare`] was called for these numbers of rows and dimensions, and nothing else was configured since; `values` holds `rows × dims`
/// bytes, and `weights` a panel of `dims`, a multiple of 4 above 0.
#[inline(always)]
pub(crate) unsafe fn products(
    (values, rows): (*const u8, usize),
    (weights, dims): (*const i8, usize),
    mut hand_on: impl FnMut(usize, usize, *const i32),
) {
    if rows == 0 {
        // There is no empty tile.
        return;
    }
    let (own, step) = (rows.min(ROWS), step(dims));
    let mut dots = Dots(MaybeUninit::uninit());
    let dots: *mut i32 = dots.0.as_mut_ptr().cast();
    let panel = dims * PANEL;
    // The last tile begins so early that it is as long as the others, which have the same configuration.
    let first = |tile: usize| (tile * ROWS).min(rows - own);
    let tiles = rows.div_ceil(ROWS);
    for tile in (0..tiles).step_by(2) {
        let both = [first(tile), first(tile + 1)];
        let both = if tile + 1 < tiles { &both[..] } else { &both[..1] };
        let next = weights.wrapping_add(panel + tile / 2 % PARTS * (panel / PARTS));
        let job = Job { weights, next, dims, step, dots };
        // SAFETY: `own` rows of `dims` values exist from each place on, as the weights of `dims` dimensions do; the tiles are
        // configured for them, and `dots` has room for two tiles of rows.
        unsafe {
            let values = |first: usize| values.add(first * dims);
            match *both {
                [one, two] => multiply_two(&job, values(one), values(two)),
                _ => multiply_one(&job, values(both[0])),
            }
        }
        for (half, &first) in both.iter().enumerate() {
            // SAFETY: the sums of `own` rows have just been written.
            hand_on(first, own, unsafe { dots.add(half * ROWS * PANEL) });
        }
    }
}

/// Bytes of a token that one instruction takes, a multiple of 4 and at most 64: the largest that divides `dims`.
fn step(dims: usize) -> usize {
    let fours = dims / DIM_STEP;
    let most = (1..=ROWS).rev().find(|most| fours.is_multiple_of(*most));
    most.unwrap_or(1) * DIM_STEP
}

/// The arguments that all products with one panel share.
struct Job {
    /// Pointer to the panel's weights, `[dims / 4][PANEL][4]`.
    weights: *const i8,
    /// Pointer to the part of the next panel that is asked for ahead, valid or not.
    next: *const i8,
    dims: usize,
    step: usize,
    /// Pointer to the sums that are written, `[2 × ROWS][PANEL]`.
    dots: *mut i32,
}

/// Asks for eight cache lines from `next` on, and advances it by `ahead` bytes: what a step of 64 bytes asks for of the next panel.
macro_rules! ask_ahead {
    () => {
        "prefetcht0 [{next}]
        prefetcht0 [{next} + 64]
        prefetcht0 [{next} + 128]
        prefetcht0 [{next} + 192]
        prefetcht0 [{next} + 256]
        prefetcht0 [{next} + 320]
        prefetcht0 [{next} + 384]
        prefetcht0 [{next} + 448]
        add {next}, {ahead}"
    };
}

/// Multiplies two tiles of tokens with a panel and stores their dot products.
///
/// # Safety
/// The processor has the features; the pointers are to as much as [`Job`] says, `one` and `two` to as many tokens of `dims` values
/// as tiles are configured for, with `step` bytes, a divisor of `dims`.
#[inline]
unsafe fn multiply_two(job: &Job, one: *const u8, two: *const u8) {
    // SAFETY: reads and writes what the caller promises, and changes no other registers than are named.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            "tileloadd tmm4, [{one} + {dims}]",
            "tileloadd tmm6, [{weights} + {stride}]",
            "tileloadd tmm7, [{weights} + {stride} + 64]",
            "tileloadd tmm5, [{two} + {dims}]",
            ask_ahead!(),
            "tdpbusd tmm0, tmm4, tmm6",
            "tdpbusd tmm1, tmm4, tmm7",
            "tdpbusd tmm2, tmm5, tmm6",
            "tdpbusd tmm3, tmm5, tmm7",
            "add {one}, {step}",
            "add {two}, {step}",
            "add {weights}, {column}",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{dots} + {stride}], tmm0",
            "tilestored [{dots} + {stride} + 64], tmm1",
            "tilestored [{dots} + {stride} + {half}], tmm2",
            "tilestored [{dots} + {stride} + {half} + 64], tmm3",
            one = inout(reg) one => _,
            two = inout(reg) two => _,
            weights = inout(reg) job.weights => _,
            steps = inout(reg) job.dims / job.step => _,
            dims = in(reg) job.dims,
            step = in(reg) job.step,
            column = in(reg) job.step * PANEL,
            next = inout(reg) job.next => _,
            ahead = in(reg) job.step * PANEL / PARTS,
            stride = in(reg) STRIDE,
            dots = in(reg) job.dots,
            half = const ROWS * STRIDE,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// Multiplies one tile of tokens with a panel and stores the dot products.
///
/// # Safety
/// As [`multiply_two`].
#[inline]
unsafe fn multiply_one(job: &Job, one: *const u8) {
    // SAFETY: as above.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "2:",
            "tileloadd tmm4, [{one} + {dims}]",
            "tileloadd tmm6, [{weights} + {stride}]",
            "tileloadd tmm7, [{weights} + {stride} + 64]",
            ask_ahead!(),
            "tdpbusd tmm0, tmm4, tmm6",
            "tdpbusd tmm1, tmm4, tmm7",
            "add {one}, {step}",
            "add {weights}, {column}",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{dots} + {stride}], tmm0",
            "tilestored [{dots} + {stride} + 64], tmm1",
            one = inout(reg) one => _,
            weights = inout(reg) job.weights => _,
            steps = inout(reg) job.dims / job.step => _,
            dims = in(reg) job.dims,
            step = in(reg) job.step,
            column = in(reg) job.step * PANEL,
            next = inout(reg) job.next => _,
            ahead = in(reg) job.step * PANEL / PARTS,
            stride = in(reg) STRIDE,
            dots = in(reg) job.dots,
            out("tmm0") _, out("tmm1") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        );
    }
}

/// The 64 bytes that `ldtilecfg` loads: the palette in byte 0, the bytes of a row from byte 16 on (two for each tile), and the rows of each
/// tile from byte 48 on.
#[derive(PartialEq)]
#[repr(align(64))]
struct Config([u8; 64]);

impl Config {
    /// The configuration for tiles of `rows` tokens, of which one instruction takes `step` bytes.
    fn new(rows: usize, step: usize) -> Self {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        // Dot products in the first four, then tokens in two and weights in two.
        let shapes = [(rows, 64); 4].into_iter().chain([(rows, step); 2]).chain([(step / DIM_STEP, 64); 2]);
        for (tile, (rows, bytes_of_row)) in shapes.enumerate() {
            bytes[16 + 2 * tile] = bytes_of_row as u8;
            bytes[48 + tile] = rows as u8;
        }
        Self(bytes)
    }
}

/// Configures the tiles, unless they have this configuration already: successive panels need the same one, and configuring clears all
/// tiles.
///
/// # Safety
/// The processor has the features and the system lets this process use them; the configuration is one of palette 1.
#[inline]
unsafe fn configure(wanted: &Config) {
    let mut now = Config([0; 64]);
    // SAFETY: writes 64 bytes.
    unsafe { asm!("sttilecfg [{}]", in(reg) &raw mut now.0, options(nostack, preserves_flags)) };
    if now != *wanted {
        // SAFETY: reads 64 bytes.
        unsafe {
            asm!(
                "ldtilecfg [{}]",
                in(reg) &raw const wanted.0,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack, preserves_flags, readonly),
            );
        }
    }
}

/// Releases tiles and configuration (`tilerelease`), so that the system saves 8 KiB less when it switches threads.
///
/// # Safety
/// As [`configure`].
pub(crate) unsafe fn release() {
    // SAFETY: touches no memory.
    unsafe {
        asm!(
            "tilerelease",
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack, preserves_flags, nomem),
        );
    }
}
