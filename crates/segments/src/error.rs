//! What can go wrong in an index, apart from bad documents and mappings.

use std::path::PathBuf;

/// Failure of an index operation. Variants carry data; the engine makes the sentences.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// tantivy reported an error.
    #[error("index storage failed: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    /// A file of ours is damaged or from an unknown version.
    #[error("{path}: {reason}")]
    Corrupt { path: PathBuf, reason: String },
    /// A file was written by a newer version.
    #[error("{path}: it has format version {found}, this version reads up to {supported}")]
    NewerFormat { path: PathBuf, found: u64, supported: u64 },
    /// Sparse postings inside a segment are damaged.
    #[error("sparse field [{field}] of segment {segment}: {source}")]
    Postings { field: String, segment: String, source: sparrow_postings::PostingsError },
    /// Dense vectors inside a segment are damaged.
    #[error("dense field [{field}] of segment {segment}: {source}")]
    Vectors { field: String, segment: String, source: sparrow_vectors::VectorsError },
    /// Buffered writes were lost and rolled back: every write with a sequence number above
    /// `replay_after` (all, if `None`) has to be applied again from the WAL.
    #[error("buffered writes were rolled back: {source}")]
    RolledBack { replay_after: Option<u64>, source: Box<dyn std::error::Error + Send + Sync> },
    /// The disk failed while the segments were made durable: they can be read, but never flushed again by this process.
    #[error("segments have to be opened anew: {reason}")]
    Poisoned {
        /// What failed.
        reason: String,
    },
    /// The caller cancelled a long operation.
    #[error("cancelled")]
    Cancelled,
    /// The field is not in the index or holds another kind of value.
    #[error("no such field [{field}]")]
    UnknownField { field: String },
}

impl IndexError {
    /// Builds an I/O error that names its file.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> IndexError {
        let path = path.into();
        move |source| IndexError::Io { path, source }
    }
}
