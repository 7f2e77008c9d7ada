//! One tantivy index with sparse postings and dense vectors as segment plugins.
//!
//! A [`SparrowIndex`] is written through [`SparrowIndex::add`] and
//! [`SparrowIndex::delete`], made searchable by [`SparrowIndex::refresh`] and durable by
//! [`SparrowIndex::flush`]; a [`Snapshot`] is what a search reads. Sequence numbers, versions and the
//! WAL belong to the engine: this crate stores the numbers it is given.

mod forced_merge;
mod index;
mod merge_policy;
mod nested;
mod open_document;
mod options;
pub mod query;
mod schema_extension;
mod segment_snapshot;
mod slots;
mod snapshot;
mod stats;
mod upgrade;
mod values;
mod writer;

pub use index::SparrowIndex;
pub use open_document::OpenDocument;
pub use options::{IndexOptions, WriteDocument};
pub use segment_snapshot::SegmentSnapshot;
pub use snapshot::{DocMeta, Snapshot, StoredDoc};
pub use sparrow_postings::Format;
pub use sparrow_segments::filter_cache::{FilterCache, FilterCacheStats};
pub use sparrow_segments::nested::Blocks;
pub use sparrow_segments::plugins::MAX_TERM_BYTES;
pub use sparrow_segments::salvage::{SalvagedDoc, SalvagedIndex, salvage};
pub use sparrow_segments::{CommitFile, Damage, IndexError, IndexSchema, MergeStats, plugins, schema};
pub use stats::{IndexStats, SegmentStats};
pub use tantivy::DocAddress;
pub use upgrade::{RewriteProgress, RewriteStats};
pub use values::invert_texts;
pub use writer::BuiltDocument;
