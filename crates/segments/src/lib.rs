//! Contents of an index's segments and commits: the schema, sparse postings and dense vectors as tantivy
//! plugins, tantivy's directory over our files, the list of files with their checksums, and the check of that
//! list.

pub mod directory;
pub mod doc_bits;
mod error;
pub mod filter_cache;
pub mod manifest;
pub mod nested;
pub mod plugins;
pub mod range_index;
pub mod salvage;
pub mod schema;
pub mod scripts;
pub mod segment_docs;
mod stored_documents;
pub mod verify;

pub use self::directory::CommitFile;
pub use self::error::IndexError;
pub use self::plugins::MergeStats;
pub use self::schema::IndexSchema;
pub use self::verify::Damage;
