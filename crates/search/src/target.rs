//! The indices that a search looks at, and the hits in them.

use std::sync::Arc;

use sparrow_index::{DocAddress, Snapshot};
use sparrow_indices::SearchLimits;
use sparrow_indices::counters::Counters;
use sparrow_indices::slow_log::SlowSearches;
use sparrow_mapping::Mapping;

use super::error::Shard;

/// An index that a search looks at, as of one moment.
#[derive(Clone)]
pub struct Target {
    /// Name, uuid and node, for errors and hits.
    pub shard: Box<Shard>,
    /// Documents of the index at that moment.
    pub snapshot: Arc<Snapshot>,
    /// What a search of it may ask for.
    pub limits: SearchLimits,
    /// Fields for query strings that name none (`index.query.default_field`); empty for all.
    pub default_fields: Vec<String>,
    /// Counts of the operations on the index, for its statistics.
    pub counters: Arc<Counters>,
    /// When a search of it counts as slow; none if never.
    pub slow: Option<Box<SlowSearches>>,
}

/// The mappings that indices are searched by: those of their snapshots.
pub fn mappings(targets: &[Target]) -> Vec<Arc<Mapping>> {
    targets.iter().map(|target| Arc::clone(target.snapshot.mapping())).collect()
}

/// A hit before its document is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Position of its index in the list of targets.
    pub target: usize,
    /// Where the document is.
    pub addr: DocAddress,
    /// Sequence number of its last write.
    pub seq_no: u64,
    /// Score of the hit.
    pub score: f32,
    /// Rank in a fused list, from 1.
    pub rank: Option<u32>,
}
