//! Dense vectors of one field of one segment: built into bytes, read from borrowed bytes, scanned exactly.
//!
//! Knows nothing of files or of the index: whoever holds the bytes (a memory map, a buffer) opens a
//! [`VectorsReader`] over them.

mod builder;
mod error;
mod format;
mod kernels;
mod merge;
mod reader;
mod similarity;
mod top_k;

pub use builder::VectorsBuilder;
pub use error::VectorsError;
pub use kernels::implementation_name;
pub use merge::{DROPPED, MergeSource, merge_vectors};
pub use reader::VectorsReader;
pub use similarity::Similarity;
pub use top_k::TopKRequest;
