//! Prefetching of what will be read soon.

use crate::trace;

/// Size of a cache line, in bytes.
const LINE: usize = 64;

/// Prefetches the cache line of `bytes[at]`, if `at` is in bounds.
#[inline]
pub(crate) fn fetch(bytes: &[u8], at: usize) {
    trace::touch(bytes, at..at.saturating_add(1));
    if let Some(byte) = bytes.get(at) {
        fetch_line(byte);
    }
}

/// Prefetches all cache lines of a slice that is not part of a field.
#[inline]
pub(crate) fn fetch_all<T>(values: &[T]) {
    let bytes = size_of_val(values);
    // Where the last one's line begins is not known.
    for at in (0..bytes).step_by(LINE).chain(bytes.checked_sub(1)) {
        fetch_line(values.as_ptr().cast::<u8>().wrapping_add(at));
    }
}

/// Prefetches the cache line at an address. Nothing is read, so that any address is allowed.
#[inline]
fn fetch_line(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: fetching touches no memory; every x86-64 has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
