//! The memory allocator of the Node addon.

use sparrow_engine::Counted;

/// The process's memory allocator. Documents are allocated by the threads that parse them and freed by those that index them:
/// glibc's allocator makes the one thread wait for the other's arena, which slows bulk requests
/// (`benches/results/commits-full.json`).
#[global_allocator]
static ALLOCATOR: Counted<mimalloc::MiMalloc> = Counted(mimalloc::MiMalloc);

#[allow(unsafe_code, reason = "the crate has no function for it")]
mod library {
    unsafe extern "C" {
        /// mimalloc's `void mi_collect(bool force)`.
        pub(super) fn mi_collect(force: bool);
    }
}

/// Gives memory back to the system: large blocks that were freed some time ago and, if `idle`, everything that this thread freed. A
/// thread's allocator does that by itself while the thread goes on allocating, but not once it is idle.
#[allow(unsafe_code, reason = "a function of a C library")]
pub(crate) fn release_memory(idle: bool) {
    // SAFETY: it may be called by any thread at any time, and frees nothing that is in use.
    unsafe { library::mi_collect(idle) }
}
