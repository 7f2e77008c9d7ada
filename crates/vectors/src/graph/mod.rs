//! HNSW graphs over the vectors of one field of one segment.
//!
//! Why they are built here and not by a library: `docs/design/vectors/`.

mod beam;
mod build;
mod copies;
mod format;
mod insert;
mod packed;
mod search;
#[cfg(test)]
mod tests;

pub use build::{GraphSource, MAX_BLOCK, write_graph};
pub use format::GraphOptions;
pub use format::GraphReader;
pub(crate) use search::{BeamSearch, Compared};
