//! Counts the changes of indices, their settings, mappings and aliases.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CHANGES: AtomicU64 = AtomicU64::new(1);

/// Counts one change of an index, its settings, mapping or aliases.
pub(super) fn note() {
    CHANGES.fetch_add(1, Relaxed);
}

/// Number of changes since the process started.
pub(super) fn count() -> u64 {
    CHANGES.load(Relaxed)
}
