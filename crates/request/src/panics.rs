//! Catching panics of work that must not take down more than itself.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`; returns its result, or the message with which it panicked.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    })
}
