//! Dense vectors of one field of one segment: built into bytes, read from borrowed bytes, scanned exactly, by
//! codes, or by HNSW graphs.
//!
//! Independent of files and of the index: the owner of the bytes (a memory map, a buffer) opens a
//! [`VectorsReader`] over them, and a [`GraphReader`] over those of a graph.

mod builder;
mod code_error;
mod element;
mod error;
mod format;
mod graph;
mod kernels;
mod merge;
mod nearest;
mod quantise;
mod reader;
mod rescore;
mod rough;
mod scorer;
mod short;
mod similarity;
mod top_k;

pub use builder::VectorsBuilder;
pub use element::{Element, Metric};
pub use error::VectorsError;
pub use graph::{GraphOptions, GraphReader, GraphSource, MAX_BLOCK, write_graph};
pub use kernels::implementation_name;
pub use merge::{DROPPED, MergeSource, merge_vectors};
pub use nearest::{Effort, Method};
pub use quantise::{Codes, Int8, Short};
pub use reader::VectorsReader;
pub use similarity::Similarity;
pub use top_k::TopKRequest;
