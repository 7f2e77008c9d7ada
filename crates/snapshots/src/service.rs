//! State that the snapshot operations work on.

use std::ops::Deref;
use std::sync::Arc;

use sparrow_catalog::Node;

use crate::Snapshots;

/// The node and its repositories.
pub struct SnapshotService {
    /// The node whose indices are saved and restored.
    pub node: Arc<Node>,
    /// Repositories, and the operations running on them.
    pub snapshots: Snapshots,
}

impl Deref for SnapshotService {
    type Target = Node;

    fn deref(&self) -> &Node {
        &self.node
    }
}
