//! Parts that the answers of several operations have in common.

use serde::Serialize;

/// The `_shards` object of a response without skipped shards. An index is one shard; if that fails, the response is
/// an error instead.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ShardCounts {
    total: usize,
    successful: usize,
    failed: usize,
}

impl ShardCounts {
    /// Counts for an operation on `total` shards, of which `successful` exist and took part; the others are replicas
    /// without a node.
    pub fn new(total: usize, successful: usize) -> Self {
        Self { total, successful, failed: 0 }
    }

    /// Counts for an operation in which all `total` shards took part.
    pub fn all(total: usize) -> Self {
        Self::new(total, total)
    }
}
