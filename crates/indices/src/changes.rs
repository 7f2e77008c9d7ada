//! How often the indices, their settings, mappings and aliases changed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CHANGES: AtomicU64 = AtomicU64::new(1);

/// Notes that something about an index changed.
pub(super) fn note() {
    CHANGES.fetch_add(1, Relaxed);
}

/// How many changes there were in this process.
pub(super) fn count() -> u64 {
    CHANGES.load(Relaxed)
}
