//! One tantivy index with sparse postings and dense vectors as segment plugins.
//!
//! The only crate that knows tantivy. A [`SparrowIndex`] is written through [`SparrowIndex::add`] and
//! [`SparrowIndex::delete`], made searchable by [`SparrowIndex::refresh`] and durable by
//! [`SparrowIndex::flush`]; a [`Snapshot`] is what a search reads. Sequence numbers, versions and the
//! WAL belong to the engine: this crate stores the numbers it is given.

pub mod aggregations;
mod directory;
mod error;
mod filter_cache;
mod index;
mod manifest;
mod merge_policy;
pub mod plugins;
pub mod query;
mod salvage;
pub mod schema;
mod snapshot;
mod upgrade;
mod values;
mod verify;
mod widen;
mod writer;

pub use directory::CommitFile;
pub use error::IndexError;
pub use filter_cache::{FilterCache, FilterCacheStats};
pub use index::{BuiltDocument, IndexOptions, IndexStats, SegmentStats, SparrowIndex, WriteDocument};
pub use plugins::MergeStats;
pub use salvage::{SalvagedDoc, SalvagedIndex};
pub use schema::IndexSchema;
pub use snapshot::{DocMeta, SegmentSnapshot, Snapshot, StoredDoc};
pub use sparrow_postings::Format;
pub use tantivy::DocAddress;
pub use upgrade::{RewriteProgress, RewriteStats};
pub use verify::Damage;
