//! The indices that a search looks at, and the hits in them.

use std::sync::Arc;

use sparrow_catalog::SearchLimits;
use sparrow_catalog::counters::{Counters, OpenContext};
use sparrow_catalog::search_groups::SearchGroup;
use sparrow_catalog::slow_log::SlowSearches;
use sparrow_mapping::Mapping;
use sparrow_runtime::work;
use sparrow_tantivy_index::{DocAddress, Snapshot};

use super::error::{SearchError, Shard};

/// An index that a search looks at, as of one moment.
#[derive(Clone)]
pub struct Target {
    /// Name, UUID and node of the index, shown in errors and hits.
    pub shard: Box<Shard>,
    /// The documents of the index at that moment.
    pub snapshot: Arc<Snapshot>,
    /// Limits of the index on what one search may ask for.
    pub limits: SearchLimits,
    /// Fields to search for query strings that name none (`index.query.default_field`); empty for all.
    pub default_fields: Vec<String>,
    /// Whether hits show their sources without vectors, unless the request says otherwise
    /// (`index.mapping.exclude_source_vectors`).
    pub excludes_vectors: bool,
    /// Counters of the operations on the index, for its statistics.
    pub counters: Arc<Counters>,
    /// Thresholds from which a search of the index is logged as slow; `None` if none ever is.
    pub slow: Option<Box<SlowSearches>>,
}

impl Target {
    /// The error of a request that must stop while it looks at the index.
    pub fn stopped(&self, stopped: work::Stopped) -> SearchError {
        SearchError::Query { shard: self.shard.clone(), source: stopped.into() }
    }
}

/// The groups of statistics that a search names, in each index that it looks at.
pub fn stats_groups(targets: &[Target], names: &[String]) -> Vec<Vec<Arc<SearchGroup>>> {
    targets.iter().map(|target| target.counters.groups.named(names)).collect()
}

/// The mapping of each target's snapshot: the one that its index is searched with.
pub fn mappings(targets: &[Target]) -> Vec<Arc<Mapping>> {
    targets.iter().map(|target| Arc::clone(target.snapshot.mapping())).collect()
}

/// Counts a scroll or a point in time as open in the statistics of its indices until the result is dropped.
pub fn open_context(targets: &[Target], scroll: bool) -> OpenContext {
    OpenContext::new(targets.iter().map(|target| Arc::clone(&target.counters)).collect(), scroll)
}

/// A hit whose stored document has not been read yet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Position of the hit's index in the list of targets.
    pub target: usize,
    /// Segment and number of the document within its index.
    pub addr: DocAddress,
    /// Sequence number of the document's last write.
    pub seq_no: u64,
    /// Relevance score of the hit; NaN where none was computed.
    pub score: f32,
    /// Rank in a fused list, from 1; `None` for other lists.
    pub rank: Option<u32>,
}
