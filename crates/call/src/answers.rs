//! Parts that the answers of several operations have in common.

use serde::Serialize;

/// `_shards` of an answer without skipped shards. An index is one shard, and where one fails, the answer is an error instead.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ShardCounts {
    total: usize,
    successful: usize,
    failed: usize,
}

impl ShardCounts {
    /// The operation was for `total` shards, of which `successful` exist and took part; others are replicas without a node.
    pub fn new(total: usize, successful: usize) -> Self {
        Self { total, successful, failed: 0 }
    }

    /// All `total` shards took part.
    pub fn all(total: usize) -> Self {
        Self::new(total, total)
    }
}
