//! HNSW graphs over the vectors of one field of one segment.
//!
//! The graphs are built by the library `usearch`; laid out, checked and searched here. Why: `docs/design/vectors/`.

mod build;
mod format;
mod search;
#[cfg(test)]
mod tests;

pub use build::{GraphOptions, GraphSource, MAX_BLOCK, write_graph};
pub use format::GraphReader;
pub(crate) use search::BeamSearch;
