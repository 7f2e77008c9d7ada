//! Tests of the AMX emulator against Intel's manual, of products on several threads and signal stacks, and of refused instructions that are
//! not AMX. The kernels that use AMX compare their results with the other kernels' in their own tests.

use std::arch::asm;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use super::emulator::decode::{Instruction, decode};
use super::emulator::{self, tiles::Tiles};
use super::{Config, configure, floats, release, runs, step, system, trial};

/// Whether AMX products can be computed here, really or emulated; prints the reason if not.
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn can_run() -> bool {
    let can = runs();
    if !can {
        eprintln!("skipped: AMX is neither here nor emulated, which takes a processor with AVX-512 and VNNI");
    }
    can
}

/// Whether AMX products of sample bytes equal those of a plain loop.
fn agrees() -> bool {
    // SAFETY: the caller has a processor with tiles, or has installed the emulator.
    unsafe { trial::are_right() }
}

#[test]
fn products_are_those_of_plain_loops() {
    if can_run() {
        assert!(agrees());
    }
}

#[test]
fn the_trial_finds_a_processor_that_adds_one() {
    if !can_run() || system::allows_tiles() {
        return;
    }
    for error in [1, -1] {
        assert!(!emulator::with_error(error, agrees));
        for two in [false, true] {
            // SAFETY: the emulator is installed.
            let of_floats = || unsafe { trial::floats_are_right(two) };
            assert!(!emulator::with_error(error, of_floats), "floats");
            assert!(of_floats());
        }
    }
    assert!(agrees(), "the error is gone");
}

#[test]
fn steps_divide_all_dimensions() {
    for dims in (4..2000).step_by(4) {
        let step = step(dims);
        assert!(step.is_multiple_of(4) && dims.is_multiple_of(step) && (4..=64).contains(&step), "{dims}");
    }
    assert_eq!([64, 128, 768, 312, 68].map(step), [64, 64, 64, 52, 4]);
}

/// This thread's current tile configuration, as `sttilecfg` stores it.
pub(crate) fn configured() -> [u8; 64] {
    let mut now = Config([0; 64]);
    // SAFETY: writes 64 bytes.
    unsafe { asm!("sttilecfg [{}]", in(reg) &raw mut now.0, options(nostack)) };
    now.0
}

#[test]
fn a_thread_starts_with_its_starters_configuration_and_then_has_its_own() {
    if !can_run() {
        return;
    }
    // SAFETY: there are tiles. Another test may have left some on this thread.
    unsafe { release() };
    assert_eq!(configured(), [0; 64]);
    let config = Config::new(3, 20);
    // SAFETY: there are tiles, and these are such.
    unsafe { configure(&config) };
    assert_eq!(configured(), config.0);
    let (handed_on, released) = emulator::spawn(|| {
        let handed_on = configured();
        // SAFETY: there are tiles.
        unsafe { release() };
        (handed_on, configured())
    })
    .join()
    .unwrap();
    assert_eq!((handed_on, released), (config.0, [0; 64]));
    assert_eq!(configured(), config.0, "another thread's release is its own");
    // SAFETY: as above.
    unsafe { release() };
    assert_eq!(configured(), [0; 64]);
    assert_eq!(emulator::spawn(configured).join().unwrap(), [0; 64], "nothing is handed on after a release");
}

/// Rows and columns of a tile beyond the configured ones become zero, whatever they held before.
#[test]
fn what_is_beyond_a_tile_is_zero() {
    let mut tiles = Tiles::INIT;
    assert!(tiles.zero(0).is_err(), "no tile is configured");
    tiles.configure(Config::new(16, 64).0).unwrap();
    let ones = [1u8; 1024];
    // SAFETY: a whole tile.
    unsafe { tiles.load(4, ones.as_ptr(), 64).unwrap() };
    assert_eq!(tiles.data[4], [[1; 64]; 16]);
    tiles.configure(Config::new(2, 8).0).unwrap();
    assert_eq!(tiles.data[4], [[0; 64]; 16], "a configuration clears all tiles");
    tiles.data = [[[7; 64]; 16]; 8];
    // SAFETY: two rows of 8 and two of 64 bytes.
    unsafe {
        tiles.load(4, ones.as_ptr(), 8).unwrap();
        tiles.load(6, ones.as_ptr(), 64).unwrap();
    }
    let mut row = [0; 64];
    row[..8].fill(1);
    assert_eq!((tiles.data[4][0], tiles.data[4][1], tiles.data[4][2]), (row, row, [0; 64]));
    tiles.multiply(0, 4, 6).unwrap();
    // 8 products of ones, on top of what was there.
    let sum = (i32::from_le_bytes([7; 4]) + 8).to_le_bytes();
    assert_eq!(tiles.data[0][1].as_chunks().0, [sum; 16]);
    assert_eq!(tiles.data[0][2..], [[0; 64]; 14]);
    let mut out = [9u8; 4 * 64];
    // SAFETY: two rows, 128 bytes apart.
    unsafe { tiles.store(0, out.as_mut_ptr(), 128).unwrap() };
    assert_eq!((&out[128..132], &out[64..128], &out[192..]), (&sum[..], &[9; 64][..], &[9; 64][..]));
    tiles.zero(0).unwrap();
    assert_eq!(tiles.data[0], [[0; 64]; 16]);
}

#[test]
fn bytes_have_the_signs_of_their_sides_and_sums_wrap() {
    let mut tiles = Tiles::INIT;
    tiles.configure(Config::new(1, 4).0).unwrap();
    tiles.data[4][0][..4].copy_from_slice(&[255, 1, 128, 0]);
    tiles.data[6][0][..4].copy_from_slice(&[-128i8 as u8, 255, 2, 9]);
    tiles.data[0][0][..4].copy_from_slice(&i32::MIN.to_le_bytes());
    tiles.multiply(0, 4, 6).unwrap();
    let sum = i32::from_le_bytes(*tiles.data[0][0].first_chunk().unwrap());
    assert_eq!(sum, i32::MIN.wrapping_add(255 * -128 - 1 + 256));
}

/// Numbers that are not normal count as zeros, and the sums of even and odd places are added up apart from each other.
#[test]
fn floats_are_multiplied_as_the_manual_says() {
    let mut tiles = Tiles::INIT;
    tiles.configure(Config::new(1, 12).0).unwrap();
    let bf16 = |numbers: &[f32]| -> Vec<u8> {
        numbers.iter().flat_map(|number| ((number.to_bits() >> 16) as u16).to_le_bytes()).collect()
    };
    let (large, subnormal) = (2f32.powi(30), f32::from_bits(1 << 16));
    tiles.data[4][0][..12].copy_from_slice(&bf16(&[large, 1.0, -large, 2.0, subnormal, 0.0]));
    for (row, pair) in [[1.0, 1.0], [1.0, 1.0], [2f32.powi(127), 0.0]].iter().enumerate() {
        tiles.data[6][row][..4].copy_from_slice(&bf16(pair));
    }
    tiles.data[0][0][..4].copy_from_slice(&7f32.to_le_bytes());
    tiles.multiply_floats(0, 4, 6).unwrap();
    let sum = f32::from_le_bytes(*tiles.data[0][0].first_chunk().unwrap());
    // One sum for all places would lose 1 beside the large number, and the number that is not normal would add 1/64.
    assert_eq!(sum, 10.0);
}

/// The emulator's products of normal floats are the processor's, bit for bit, wherever there is one to compare with.
#[test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn the_emulator_multiplies_floats_as_a_processor_does() {
    if !system::allows_tiles() {
        eprintln!("skipped: the processor has no AMX to compare with");
        return;
    }
    let mut state = 5u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Signs, fractions, and exponents from tiny to large.
        let exponent = 117 + (state >> 40) % 20;
        ((state >> 33) & 0x8000 | exponent << 7 | (state >> 20) & 0x7F) as u16
    };
    let mut operand = || -> Vec<u16> { (0..2 * floats::STEP / 2).map(|_| next()).collect() };
    let (rows, columns) = (operand(), operand());
    let mut out = [[0f32; 32]; 32];
    let product = floats::Product {
        rows: rows.as_ptr().cast(),
        two: true,
        columns: columns.as_ptr().cast(),
        steps: 2,
        out: out.as_mut_ptr().cast(),
        apart: 128,
    };
    // SAFETY: there are tiles, and operands of two steps.
    unsafe {
        floats::prepare();
        floats::multiply(&product);
        release();
    }
    let mut tiles = Tiles::INIT;
    tiles.configure(Config::new(16, 64).0).unwrap();
    for step in 0..2 {
        for (left, right) in [(0, 0), (0, 1), (1, 0)] {
            for tile in 0..4 {
                let place =
                    |part: usize, tile: usize| step * floats::STEP + part * floats::LOW + tile * floats::TILE;
                // SAFETY: whole tiles of the operands.
                unsafe {
                    tiles.load(4, rows.as_ptr().cast::<u8>().add(place(left, tile / 2)), 64).unwrap();
                    tiles.load(6, columns.as_ptr().cast::<u8>().add(place(right, tile % 2)), 64).unwrap();
                }
                tiles.multiply_floats(tile, 4, 6).unwrap();
            }
        }
    }
    for (row, out) in out.iter().enumerate() {
        for (column, found) in out.iter().enumerate() {
            let tile = &tiles.data[row / 16 * 2 + column / 16][row % 16];
            let wanted = f32::from_le_bytes(tile.as_chunks().0[column % 16]);
            assert_eq!(found.to_bits(), wanted.to_bits(), "{row} {column}: {found} and {wanted}");
        }
    }
}

#[test]
fn products_are_decoded() {
    for (code, wanted) in [
        ([0xC4u8, 0xE2, 0x49, 0x5E, 0xC4], Instruction::Multiply(0, 4, 6)),
        ([0xC4, 0xE2, 0x42, 0x5C, 0xDD], Instruction::MultiplyFloats(3, 5, 7)),
    ] {
        let at = code.as_ptr() as usize;
        // SAFETY: a whole instruction.
        let found = unsafe { decode(at, &[0; 23]) };
        assert_eq!(found, Some((wanted, at + 5)));
    }
}

#[test]
fn what_a_processor_refuses_is_refused() {
    let good = Config::new(16, 64).0;
    let mut tiles = Tiles::INIT;
    for (at, value) in
        [(0, 2), (2, 1), (15, 1), (16, 65), (17, 1), (16, 0), (32, 1), (48, 17), (48, 0), (56, 1)]
    {
        let mut bad = good;
        bad[at] = value;
        assert!(tiles.configure(bad).is_err(), "byte {at} of {value}");
    }
    tiles.configure(good).unwrap();
    for [sum, left, right] in [[0, 0, 6], [0, 4, 4], [0, 4, 0]] {
        assert!(tiles.multiply(sum, left, right).is_err());
    }
    let mut other = good;
    other[48] = 5;
    tiles.configure(other).unwrap();
    assert!(tiles.multiply(0, 4, 6).is_err(), "5 rows of sums for 16 of tokens");
    tiles.configure([0; 64]).unwrap();
    assert!(tiles.multiply(0, 4, 6).is_err(), "no palette, no tiles");
}

/// The signal handler works on any stack: on Rust's alternate signal stack, on another alternate stack, and without one.
#[test]
fn stacks_for_signals_make_no_difference() {
    if !can_run() {
        return;
    }
    let on_all_stacks = || {
        assert!(agrees());
        let mut memory = vec![0u8; 1 << 16];
        let stack = |flags| libc::stack_t {
            ss_sp: memory.as_ptr().cast_mut().cast(),
            ss_flags: flags,
            ss_size: memory.len(),
        };
        let mut before = MaybeUninit::<libc::stack_t>::zeroed();
        // SAFETY: the memory outlives its use as a stack.
        assert_eq!(unsafe { libc::sigaltstack(&stack(0), before.as_mut_ptr()) }, 0);
        assert!(agrees());
        // SAFETY: as above.
        assert_eq!(unsafe { libc::sigaltstack(&stack(libc::SS_DISABLE), std::ptr::null_mut()) }, 0);
        assert!(agrees());
        // SAFETY: the system has written the one before, and its owner still has it.
        assert_eq!(unsafe { libc::sigaltstack(before.as_ptr(), std::ptr::null_mut()) }, 0);
        memory.fill(1);
    };
    std::thread::scope(|scope| (0..4).for_each(|_| _ = scope.spawn(on_all_stacks)));
}

/// After an emulated instruction, all registers and the red zone below the stack pointer are unchanged.
#[test]
fn the_interrupted_function_notices_nothing() {
    if !can_run() {
        return;
    }
    let config = Config::new(16, 64);
    let mut now = Config([0; 64]);
    let (kept, below, lanes): (u64, u64, u64);
    // SAFETY: writes 64 bytes of `now`, and the red zone, which is free without `nostack`'s promise of the opposite.
    unsafe {
        asm!(
            "mov [rsp - 120], {value}",
            "vpbroadcastq zmm17, {value}",
            "stc",
            "ldtilecfg [{config}]",
            "sbb {kept}, {kept}",
            "sttilecfg [{now}]",
            "tilerelease",
            "mov {below}, [rsp - 120]",
            "vmovq {lanes}, xmm17",
            value = in(reg) 0x0123_4567_89AB_CDEFu64,
            config = in(reg) &raw const config.0,
            now = in(reg) &raw mut now.0,
            kept = out(reg) kept,
            below = out(reg) below,
            lanes = out(reg) lanes,
            out("zmm17") _,
        );
    }
    assert_eq!((kept, below, lanes), (u64::MAX, 0x0123_4567_89AB_CDEF, 0x0123_4567_89AB_CDEF));
    assert!(now == config);
}

const ROLE: &str = "SPARROW_TEST_SIGILL";

extern "C" fn ended(_: libc::c_int) {
    // SAFETY: ends the process.
    unsafe { libc::_exit(42) };
}

/// Not a test by itself: the code that [`other_refused_instructions_go_to_the_handler_before`] runs in child processes.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    if role == "handled" {
        // SAFETY: the handler has the signature that goes without flags.
        unsafe { libc::signal(libc::SIGILL, ended as *const () as usize) };
    }
    assert!(emulator::install() && agrees());
    if role == "fault" {
        // SAFETY: this one has no tiles: the emulator ends the process.
        unsafe { asm!("tilerelease", "tilezero tmm0") };
    }
    // SAFETY: ends the process, one way or the other.
    unsafe { asm!("ud2") };
}

#[test]
fn other_refused_instructions_go_to_the_handler_before() {
    if !can_run() || system::allows_tiles() {
        return;
    }
    let run = |role| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "amx::tests::child", "--nocapture"]).env(ROLE, role);
        command.output().unwrap()
    };
    assert_eq!(run("handled").status.code(), Some(42));
    assert_eq!(run("default").status.signal(), Some(libc::SIGILL));
    let fault = run("fault");
    assert_eq!(fault.status.signal(), Some(libc::SIGABRT));
    assert!(String::from_utf8_lossy(&fault.stderr).contains("#UD: tiles are not configured"));
}
