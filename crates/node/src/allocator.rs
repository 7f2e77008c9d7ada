//! The memory allocator of the Node addon, and the system call by which it gives memory back.

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;
use sparrow_engine::{Counted, HUGE};

/// The process's memory allocator. Documents are allocated by the threads that parse them and freed by those that index them:
/// glibc's allocator makes the one thread wait for the other's arena, which slows bulk requests
/// (`benches/results/commits-full.json`).
#[global_allocator]
static ALLOCATOR: Counted<Returning> = Counted(Returning);

/// mimalloc, whose huge blocks leave the process when they are freed. It leaves those that another thread frees to the system with
/// `MADV_FREE`, and answers are such: a worker makes them, and JavaScript's thread frees them when they are sent. They then count as
/// resident until some other process needs memory, which can be a gigabyte. Which thread made a block cannot be told here, so it is done
/// for all of them; a block that [`GlobalAlloc::realloc`] moves is freed within mimalloc, by the thread that grows it.
struct Returning;

#[allow(unsafe_code, reason = "the interface of an allocator")]
// SAFETY: all memory comes from mimalloc and goes back to it with the layout that it came with. The pages that lie within a block
// that is being freed are nobody's, so what they hold may be lost.
unsafe impl GlobalAlloc for Returning {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that mimalloc asks for.
        unsafe { MiMalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if layout.size() >= HUGE {
            // SAFETY: the block is the caller's until it is freed below.
            unsafe { library::return_pages(memory, layout.size()) }
        }
        // SAFETY: as in `alloc`.
        unsafe { MiMalloc.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe { MiMalloc.realloc(memory, layout, new_size) }
    }
}

#[allow(unsafe_code, reason = "the crate has no function for it")]
mod library {
    unsafe extern "C" {
        /// mimalloc's `void mi_collect(bool force)`.
        pub(super) fn mi_collect(force: bool);
        /// `int madvise(void *addr, size_t length, int advice)`.
        #[cfg(target_os = "linux")]
        fn madvise(address: *mut u8, bytes: usize, advice: i32) -> i32;
    }

    /// Linux's `MADV_DONTNEED`: the pages are given back, and are zero when they are next looked at.
    #[cfg(target_os = "linux")]
    const MADV_DONTNEED: i32 = 4;

    /// The largest size of pages that Linux has on the platforms that Sparrow is built for: 64 KiB.
    #[cfg(target_os = "linux")]
    const PAGE: usize = 64 << 10;

    /// Gives the whole pages within a block back to the system. Elsewhere than on Linux it does nothing.
    ///
    /// # Safety
    /// Nothing may read the block any more.
    pub(super) unsafe fn return_pages(block: *mut u8, bytes: usize) {
        #[cfg(target_os = "linux")]
        {
            let skipped = block.addr().next_multiple_of(PAGE) - block.addr();
            let whole = bytes.saturating_sub(skipped) & !(PAGE - 1);
            // SAFETY: the range lies within the block. If the call fails, the pages are still there.
            unsafe { madvise(block.add(skipped), whole, MADV_DONTNEED) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (block, bytes);
    }
}

/// Gives memory back to the system: large blocks that were freed some time ago and, if `idle`, everything that this thread freed. A
/// thread's allocator does that by itself while the thread goes on allocating, but not once it is idle.
#[allow(unsafe_code, reason = "a function of a C library")]
pub(crate) fn release_memory(idle: bool) {
    // SAFETY: it may be called by any thread at any time, and frees nothing that is in use.
    unsafe { library::mi_collect(idle) }
}
