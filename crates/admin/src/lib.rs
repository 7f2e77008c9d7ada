//! The operations that look after indices and the cluster: indices with their settings, mappings, aliases and templates, pipelines,
//! `_cat`, statistics, health, and the settings of the cluster.

pub mod alias_api;
pub mod alias_reads;
pub mod analyze;
pub mod cat;
pub mod cluster;
pub mod field_mapping;
pub mod index;
pub mod lanes;
pub mod lifecycle;
pub mod pipelines;
pub mod resize;
pub mod rollover;
pub mod stats;
pub mod templates;
pub mod upgrade;

use sparrow_catalog::Node;
use sparrow_request::operation::Operation;
use sparrow_search::SearchService;
use sparrow_snapshots::SnapshotService;
use std::sync::Arc;

/// The operations of this crate that need the node.
pub const OPERATIONS: &[&[Operation<Node>]] = &[
    alias_api::OPERATIONS,
    alias_reads::OPERATIONS,
    analyze::OPERATIONS,
    cat::OPERATIONS,
    cat::node::OPERATIONS,
    cat::overview::OPERATIONS,
    cat::shards::OPERATIONS,
    cluster::health::OPERATIONS,
    cluster::info::OPERATIONS,
    cluster::settings::OPERATIONS,
    cluster::state::OPERATIONS,
    field_mapping::OPERATIONS,
    index::OPERATIONS,
    lifecycle::OPERATIONS,
    pipelines::OPERATIONS,
    resize::OPERATIONS,
    rollover::OPERATIONS,
    stats::OPERATIONS,
    stats::segments::OPERATIONS,
    templates::api::OPERATIONS,
    templates::legacy::OPERATIONS,
];

/// Those that go on in a task of their own.
pub const UPGRADES: &[Operation<Arc<Node>>] = upgrade::OPERATIONS;

/// Those that search.
pub const SEARCHES: &[Operation<SearchService>] = cat::overview::SEARCHES;

/// Those that look at repositories.
pub const SNAPSHOTS: &[Operation<Arc<SnapshotService>>] = cat::snapshots::OPERATIONS;
