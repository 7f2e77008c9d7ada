//! Which existing indices the store of aliases may list as removed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use parking_lot::Mutex;

/// How the file of the store of aliases may differ from the aliases in force after a failed save.
#[derive(Default)]
pub(super) struct Doubts {
    /// Whether the file may differ at all.
    pub(super) exist: AtomicBool,
    /// Uuids of existing indices that the file may list as removed.
    pub(super) removed: Mutex<BTreeSet<String>>,
    /// Uuids of indices that were created together with changes to other indices' aliases. The file still ties these changes to the
    /// index, so that they would be undone once it no longer exists.
    pub(super) with: Mutex<BTreeSet<String>>,
}

impl Doubts {
    /// Whether the next start may remove this index, so that nothing may be acknowledged for it.
    pub(super) fn may_remove(&self, uuid: &str) -> bool {
        self.exist.load(SeqCst) && self.removed.lock().contains(uuid)
    }
}
