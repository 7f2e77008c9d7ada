//! AMX on a processor without it: a handler of `SIGILL` decodes the instruction that the processor refused, performs it on tiles in
//! memory, one set for each thread, and goes on behind it. All other refused instructions go to the handler that was installed before.
//!
//! The system delivers a signal below the red zone of the interrupted function and restores all of its registers but those that
//! are changed here, so that the handler may be compiled like any function. It runs on the stack that it interrupts.

use std::cell::{Cell, UnsafeCell};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use decode::{Instruction, decode};
use tiles::Tiles;

pub(super) mod decode;
pub(super) mod tiles;

thread_local! {
    static TILES: UnsafeCell<Tiles> = const { UnsafeCell::new(Tiles::INIT) };
    static WRONG: Cell<i32> = const { Cell::new(0) };
}

static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Installs the `SIGILL` handler, once per process; false without AVX-512, which the kernels need as well.
pub(super) fn install() -> bool {
    static INSTALLED: OnceLock<bool> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        if !is_x86_feature_detected!("avx512vnni") {
            return false;
        }
        let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks for the handler there is.
        let asked = unsafe { libc::sigaction(libc::SIGILL, std::ptr::null(), previous.as_mut_ptr()) };
        assert_eq!(asked, 0, "the handler of SIGILL is not known");
        // SAFETY: written by the system, and zero is one.
        PREVIOUS.get_or_init(|| unsafe { previous.assume_init() });
        // SAFETY: zero is a valid value of all fields.
        let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        ours.sa_sigaction = handle as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO;
        // SAFETY: the handler has the signature that the flag promises.
        let installed = unsafe { libc::sigaction(libc::SIGILL, &raw const ours, std::ptr::null_mut()) };
        assert_eq!(installed, 0, "no handler of SIGILL");
        true
    })
}

/// Starts a thread as Linux does: with a copy of the starting thread's configuration, and with empty tiles. Where the processor
/// has tiles, the system itself hands the configuration on and the emulated copy is never looked at.
pub(super) fn spawn<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    // SAFETY: the thread's own, and nothing in here is emulated.
    let config = TILES.with(|tiles| unsafe { (*tiles.get()).config() });
    std::thread::spawn(move || {
        // SAFETY: as above.
        let inherited = TILES.with(|tiles| unsafe { (*tiles.get()).configure(config) });
        inherited.expect("a configuration that is in force is valid");
        run()
    })
}

/// Calls `run` with an emulated processor that is wrong: each product of tiles of this thread adds `error` to all of its dot products.
pub(crate) fn with_error<T>(error: i32, run: impl FnOnce() -> T) -> T {
    WRONG.set(error);
    let result = run();
    WRONG.set(0);
    result
}

/// The `SIGILL` handler: executes the refused instruction if it is an AMX instruction, or passes the signal on.
///
/// # Safety
/// Only the system may call it, as a handler with `SA_SIGINFO`.
unsafe extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: what the system hands over with `SA_SIGINFO`.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let at = registers[libc::REG_RIP as usize] as usize;
    // SAFETY: the processor has just read an instruction there.
    let Some((instruction, next)) = (unsafe { decode(at, registers) }) else {
        // SAFETY: as this function was called.
        return unsafe { pass_on(signal, info, context) };
    };
    let done = TILES.with(|tiles| {
        // SAFETY: the thread's own, and no emulated instruction is met in here.
        let tiles = unsafe { &mut *tiles.get() };
        tiles.wrong = WRONG.get();
        // SAFETY: the memory is what the interrupted program names; what it may not touch faults, as it would there.
        unsafe { perform(tiles, &instruction) }
    });
    if let Err(fault) = done {
        for part in ["AMX emulator: ", fault, "\n"] {
            // SAFETY: reads the text. Nothing else may be called in a handler.
            unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
        }
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
    registers[libc::REG_RIP as usize] = next as i64;
}

/// Executes one instruction on a thread's emulated tiles.
///
/// # Safety
/// The memory that the instruction names can be read or written.
unsafe fn perform(tiles: &mut Tiles, instruction: &Instruction) -> Result<(), tiles::Fault> {
    match *instruction {
        // SAFETY: the caller's promise, here and below.
        Instruction::LoadConfig(from) => tiles.configure(unsafe { from.cast::<[u8; 64]>().read() }),
        Instruction::StoreConfig(to) => {
            // SAFETY: as above.
            unsafe { to.cast::<[u8; 64]>().write(tiles.config()) };
            Ok(())
        }
        Instruction::Release => {
            tiles.release();
            Ok(())
        }
        Instruction::Zero(tile) => tiles.zero(tile),
        // SAFETY: as above.
        Instruction::Load(tile, from, stride) => unsafe { tiles.load(tile, from, stride) },
        // SAFETY: as above.
        Instruction::Store(tile, to, stride) => unsafe { tiles.store(tile, to, stride) },
        Instruction::Multiply(sum, left, right) => tiles.multiply(sum, left, right),
        Instruction::MultiplyFloats(sum, left, right) => tiles.multiply_floats(sum, left, right),
    }
}

/// Passes a signal to the handler that was installed before this one.
///
/// # Safety
/// The arguments are those of a handler.
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    type Plain = extern "C" fn(libc::c_int);
    type Informed = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    let Some(previous) = PREVIOUS.get() else { return };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // The instruction is met again, and ends the process.
            // SAFETY: what the system handed out.
            unsafe { libc::sigaction(signal, &raw const *previous, std::ptr::null_mut()) };
        }
        handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler with this flag has this signature.
            (unsafe { std::mem::transmute::<usize, Informed>(handler) })(signal, info, context);
        }
        // SAFETY: a handler without the flag has this one.
        handler => (unsafe { std::mem::transmute::<usize, Plain>(handler) })(signal),
    }
}
