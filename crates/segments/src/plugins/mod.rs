//! Sparse postings and dense vectors as parts of tantivy segments, and the postings of texts while a segment is written.

mod container;
mod in_flight;
mod merges;
mod passages;
mod plugin;
mod reader;
mod term_ids;
mod texts;
mod values;
mod vectors;

pub use container::{
    ContainerError, ContainerWriter, DenseGraph, DenseReader, Part, PartKind, SparseReader, read_parts,
};
pub use in_flight::InFlightLimiter;
pub use merges::MergeFailures;
pub use merges::MergeStats;
pub(crate) use merges::on_merge_thread;
pub use passages::PassageMap;
pub use passages::encode_passages;
pub use plugin::SegmentParts;
pub use reader::SegmentPlugins;
pub use texts::{MAX_TERM_BYTES, TextInverter};
pub use values::{encode_tokens, encode_vector};
pub use vectors::{MIN_GRAPH_VECTORS, VectorSettings};

/// File extension of the container file.
pub const EXTENSION: &str = "spw";

/// The container file, declared as a tantivy segment component.
pub fn component() -> tantivy::index::SegmentComponent {
    tantivy::index::SegmentComponent::Custom(EXTENSION.to_owned())
}
