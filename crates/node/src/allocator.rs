//! The addon's allocator.

/// Documents are made by the threads that parse them and freed by those that index them: glibc's allocator lets the one
/// wait for the other's arena, which a bulk request feels (`benches/results/commits-full.json`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[allow(unsafe_code, reason = "the crate has no function for it")]
mod library {
    unsafe extern "C" {
        /// mimalloc's `void mi_collect(bool force)`.
        pub(super) fn mi_collect(force: bool);
    }
}

/// Gives back to the system what was freed of large blocks some time ago and, if `idle`, all that this thread freed. A thread's
/// allocator does that by itself while the thread goes on allocating, and not when it becomes idle.
#[allow(unsafe_code, reason = "a function of a C library")]
pub(crate) fn release_memory(idle: bool) {
    // SAFETY: it may be called by any thread at any time, and frees nothing that is in use.
    unsafe { library::mi_collect(idle) }
}
