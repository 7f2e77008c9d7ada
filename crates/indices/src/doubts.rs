//! Which indices the store of aliases may call removed although they are there.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use parking_lot::Mutex;

/// What the store of aliases may say though it is not in force.
#[derive(Default)]
pub(super) struct Doubts {
    /// Whether the file may differ from what is in force at all.
    pub(super) exist: AtomicBool,
    /// Uuids of indices that it may call removed.
    pub(super) removed: Mutex<BTreeSet<String>>,
    /// Uuids of indices that changes of others' aliases came with, which the file takes back as soon as the index is not there.
    pub(super) with: Mutex<BTreeSet<String>>,
}

impl Doubts {
    /// Whether the next start may remove the index: nothing may be acknowledged for it.
    pub(super) fn may_remove(&self, uuid: &str) -> bool {
        self.exist.load(SeqCst) && self.removed.lock().contains(uuid)
    }
}
