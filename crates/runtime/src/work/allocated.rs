//! Counts the memory that the process and each request has allocated, in the allocator itself.
//!
//! [`Counted`] wraps the allocator of a binary. A thread adds up what it allocates and frees, and settles the sum with
//! the process's total and with the account of the request that it works on whenever the sum has grown
//! to [`PIECE`] bytes, when it enters or leaves a request, and when it ends. In a binary without [`Counted`] everything
//! stays at 0, so nothing is limited.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;

use super::process::LIVE;

/// Bytes up to which a thread's sum may be off before it settles: 64 KiB. Where the end of a thread goes unnoticed,
/// every operation is settled at once, since what a thread had not settled would be lost.
pub(crate) const PIECE: isize = if cfg!(unix) { 64 << 10 } else { 1 };

/// What a thread starts with: more than any operation takes off.
const UNKNOWN: isize = isize::MAX / 2;

/// What one thread has to settle.
struct Tally {
    /// Bytes allocated less bytes freed since the thread last settled. It begins at [`UNKNOWN`] so that the first operation
    /// of a thread takes the slow path, which arranges for its end to be noticed.
    pending: Cell<isize>,
    is_known: Cell<bool>,
}

thread_local! {
    // Without a destructor: the allocator may be called before such a value can be registered, and after it is destroyed.
    static TALLY: Tally = const { Tally { pending: Cell::new(UNKNOWN), is_known: Cell::new(false) } };
}

/// Bytes that the current thread has allocated, less what it freed, since it last settled.
pub(crate) fn pending() -> isize {
    TALLY.with(|tally| if tally.is_known.get() { tally.pending.get() } else { 0 })
}

/// Settles what the current thread has allocated and freed.
pub(crate) fn settle() {
    TALLY.with(|tally| {
        if tally.is_known.get() {
            settle_tally(tally);
        }
    });
}

/// Settles at the end of the current thread. What it frees afterwards, as other destructors run, makes the end be noticed again.
#[cfg(unix)]
fn settle_for_good() {
    settle();
    TALLY.with(|tally| {
        if tally.is_known.replace(false) {
            tally.pending.set(tally.pending.get().wrapping_add(UNKNOWN));
        }
    });
}

#[inline]
fn add(bytes: isize) {
    TALLY.with(|tally| {
        let pending = tally.pending.get().wrapping_add(bytes);
        tally.pending.set(pending);
        if pending.unsigned_abs() >= PIECE.unsigned_abs() {
            settle_piece(tally);
        }
    });
}

#[cold]
fn settle_piece(tally: &Tally) {
    if !tally.is_known.replace(true) {
        tally.pending.set(tally.pending.get().wrapping_sub(UNKNOWN));
        end::notice();
        return;
    }
    settle_tally(tally);
}

fn settle_tally(tally: &Tally) {
    let bytes = tally.pending.get();
    // An account that is in use by this very thread takes the bytes later.
    if super::settle(bytes) {
        tally.pending.set(tally.pending.get() - bytes);
        LIVE.fetch_add(bytes, Relaxed);
    }
}

/// Has a thread settle when it ends.
#[cfg(unix)]
mod end {
    use std::ffi::c_void;
    use std::sync::OnceLock;

    extern "C" fn settle(_: *mut c_void) {
        super::settle_for_good();
    }

    /// Arranges for the current thread to settle when it ends. By a key of the system's and not by a `thread_local!` with a
    /// destructor: registering such a value may allocate, and this is called by the allocator.
    #[expect(unsafe_code, reason = "the standard library has no keys of threads")]
    pub(super) fn notice() {
        static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
        let key = KEY.get_or_init(|| {
            let mut key = 0;
            // SAFETY: the key is written before it is read, and the destructor may be called by any thread that ends.
            (unsafe { libc::pthread_key_create(&raw mut key, Some(settle)) } == 0).then_some(key)
        });
        if let Some(key) = key {
            // SAFETY: the key exists and is never deleted. The value is not a pointer to anything; it is only not null, as the
            // destructor is not called for null.
            unsafe { libc::pthread_setspecific(*key, (&raw const KEY).cast()) };
        }
    }
}

#[cfg(not(unix))]
mod end {
    /// The end of a thread goes unnoticed.
    pub(super) fn notice() {}
}

/// An allocator that counts what is allocated through another.
#[derive(Debug)]
pub struct Counted<A>(pub A);

/// Counts bytes, unless the allocation failed.
#[inline]
fn counted(memory: *mut u8, bytes: isize) -> *mut u8 {
    if !memory.is_null() {
        add(bytes);
    }
    memory
}

/// Size in bytes from which on mimalloc maps each block by itself, as large as was asked for: 16 MiB.
pub const HUGE: usize = 16 << 20;

/// Bytes that mimalloc takes for so many: below [`HUGE`], its blocks have four sizes between one power of two and the next, all
/// multiples of 16 (`mi_bin` in its `page-queue.c`). What a request makes has many sizes, so it takes a tenth more than it asks for.
fn taken(bytes: usize) -> isize {
    let rounded = if bytes > HUGE {
        bytes
    } else {
        let last = bytes.saturating_sub(1);
        let step = ((last | 63).ilog2() - 2).max(4);
        ((last >> step) + 1) << step
    };
    // Layouts are never larger than `isize::MAX`.
    rounded.cast_signed()
}

#[expect(unsafe_code, reason = "the interface of an allocator")]
// SAFETY: all memory comes from the inner allocator and goes back to it with the layout that it came with. Counting neither
// allocates nor panics: `super::settle` only moves numbers.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the inner allocator asks for.
        counted(unsafe { self.0.alloc(layout) }, taken(layout.size()))
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        counted(unsafe { self.0.alloc_zeroed(layout) }, taken(layout.size()))
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        add(-taken(layout.size()));
        // SAFETY: as in `alloc`.
        unsafe { self.0.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        counted(unsafe { self.0.realloc(memory, layout, new_size) }, taken(new_size) - taken(layout.size()))
    }
}

#[cfg(test)]
mod tests {
    use super::{HUGE, taken};

    #[test]
    fn blocks_are_a_quarter_of_a_power_of_two_apart() {
        for (bytes, block) in [
            (0, 16),
            (1, 16),
            (16, 16),
            (17, 32),
            (64, 64),
            (65, 80),
            (81, 96),
            (1000, 1024),
            (1025, 1280),
            (614_012, 655_360),
            (1 << 20, 1 << 20),
            (HUGE, 16 << 20),
            (HUGE + 1, (16 << 20) + 1),
        ] {
            assert_eq!(taken(bytes), block, "{bytes}");
        }
    }
}
