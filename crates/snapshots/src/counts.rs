//! Counts created and restored snapshots, and failures.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{Value, json};

use sparrow_request::error::EngineError;

/// Numbers of created and restored snapshots, and of failures, since the start of the server.
#[derive(Debug, Default)]
pub struct Counts {
    made: AtomicU64,
    /// Number of snapshots that were created but lack indices; not included in `made`.
    partial: AtomicU64,
    failed: AtomicU64,
    restored: AtomicU64,
    restores_failed: AtomicU64,
    deletions_failed: AtomicU64,
}

impl Counts {
    /// Counts a finished snapshot: `Ok` with whether indices are missing, or the error. A cancelled one is
    /// not counted.
    pub(super) fn snapshot(&self, is_partial: Result<bool, &EngineError>) {
        match is_partial {
            Ok(true) => &self.partial,
            Ok(false) => &self.made,
            Err(EngineError::Cancelled) => return,
            Err(_) => &self.failed,
        }
        .fetch_add(1, Relaxed);
    }

    pub(super) fn restore(&self, result: &Result<(), EngineError>) {
        match result {
            Ok(()) => &self.restored,
            Err(EngineError::Cancelled) => return,
            Err(_) => &self.restores_failed,
        }
        .fetch_add(1, Relaxed);
    }

    pub(super) fn failed_deletion(&self) {
        self.deletions_failed.fetch_add(1, Relaxed);
    }

    /// The counts as a JSON object for `instruments`.
    pub fn to_json(&self) -> Value {
        let of = |count: &AtomicU64| count.load(Relaxed);
        json!({
            "made": of(&self.made),
            "partial": of(&self.partial),
            "failed": of(&self.failed),
            "restored": of(&self.restored),
            "restores_failed": of(&self.restores_failed),
            "deletions_failed": of(&self.deletions_failed),
        })
    }
}
