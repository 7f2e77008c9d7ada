//! A snapshot that is being created, and how far it is.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use serde_json::{Map, Value};

/// A snapshot that is being created.
#[derive(Debug)]
pub(super) struct Creation {
    pub repository: String,
    pub location: PathBuf,
    pub snapshot: String,
    pub uuid: String,
    pub indices: Vec<String>,
    pub include_global_state: bool,
    pub metadata: Option<Map<String, Value>>,
    /// Start time in milliseconds since the epoch.
    pub start: u64,
    /// Set when the snapshot is deleted during its creation.
    pub aborted: AtomicBool,
    /// Files in all indices; `total_bytes` is their size, `done_*` is what has been copied.
    pub total_files: AtomicU64,
    pub total_bytes: AtomicU64,
    pub done_files: AtomicU64,
    pub done_bytes: AtomicU64,
    /// Number of indices that are copied completely.
    pub done_indices: AtomicU64,
}

impl Creation {
    pub fn add_total(&self, files: u64, bytes: u64) {
        self.total_files.fetch_add(files, Relaxed);
        self.total_bytes.fetch_add(bytes, Relaxed);
    }

    pub fn add_done(&self, bytes: u64) {
        self.done_files.fetch_add(1, Relaxed);
        self.done_bytes.fetch_add(bytes, Relaxed);
    }
}
