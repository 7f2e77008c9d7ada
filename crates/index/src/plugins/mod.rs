//! Sparse postings and dense vectors as parts of tantivy segments.

mod container;
mod gauge;
mod merges;
mod passages;
mod plugin;
mod reader;
mod term_ids;
mod vectors;

pub use container::{ContainerError, ContainerWriter, Part, PartKind, read_parts};
pub(crate) use gauge::Gauge;
pub use merges::MergeStats;
pub(crate) use merges::{MergeFailures, on_merge_thread};
pub use passages::PassageMap;
pub(crate) use passages::encode_passages;
pub(crate) use plugin::{SegmentParts, encode_tokens};
pub use reader::{DenseGraph, DenseReader, SegmentPlugins, SparseReader};
pub use vectors::MIN_GRAPH_VECTORS;
pub(crate) use vectors::{VectorSettings, encode_vector};

/// Extension of the container file.
pub const EXTENSION: &str = "spw";

/// The container as a tantivy segment component.
pub(crate) fn component() -> tantivy::index::SegmentComponent {
    tantivy::index::SegmentComponent::Custom(EXTENSION.to_owned())
}
