//! Errors of an index, except those caused by documents and mappings.

use std::path::PathBuf;

/// Failure of an index operation. Variants carry data; the engine turns them into messages.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// tantivy reported an error.
    #[error("index storage failed: {0}")]
    Tantivy(#[from] tantivy::TantivyError),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    /// A file that this crate writes is damaged or has an unknown version.
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
    /// Buffered writes were lost and rolled back: all writes with a sequence number above `replay_after`
    /// (`None`: all writes) must be applied again from the write-ahead log.
    #[error("buffered writes were rolled back: {source}")]
    RolledBack { replay_after: Option<u64>, source: Box<dyn std::error::Error + Send + Sync> },
    /// A disk failure prevented the segments from being made durable: they can still be read, but this
    /// process will never flush them again.
    #[error("segments have to be opened anew: {reason}")]
    Poisoned {
        /// What failed first, as text.
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
    /// Returns a function that wraps an I/O error with the path of its file.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> IndexError {
        let path = path.into();
        move |source| IndexError::Io { path, source }
    }
}
