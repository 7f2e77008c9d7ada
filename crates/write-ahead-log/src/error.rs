//! Errors of the data directory and the write-ahead log.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A failure of the data directory or the write-ahead log.
#[derive(Debug, Error)]
pub enum StorageError {
    /// An operation of the file system failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb: `open`, `write`, `sync`.
        action: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Another process owns the data directory.
    #[error("data directory {} is in use by another process", path.display())]
    Locked { path: PathBuf },
    /// The data directory lies where this process may not write, or nobody can.
    #[error("the data directory {} cannot be written: {source}", path.display())]
    NotWritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file differs from what this server wrote.
    #[error("{} is damaged: {detail}", path.display())]
    Corrupt { path: PathBuf, detail: String },
    /// The write-ahead log lost records that had been acknowledged.
    #[error("write-ahead log {} is damaged at byte {offset}, before records that were durable", path.display())]
    WalCorrupt { path: PathBuf, offset: u64 },
    /// A file was written by a newer version.
    #[error("{} has format version {found}, this version reads up to {supported}", path.display())]
    NewerFormat { path: PathBuf, found: u32, supported: u32 },
    /// An earlier write or fsync failed, so durability cannot be guaranteed until the log is reopened.
    #[error("write-ahead log is closed for writes after a failure: {reason}")]
    Poisoned { reason: String },
    /// A record is larger than the log's format allows.
    #[error("record of {bytes} bytes exceeds the limit of {limit} bytes")]
    RecordTooLarge { bytes: usize, limit: usize },
    /// A value is nested so deeply that it could be written, but not read again.
    #[error("objects and arrays would be nested more than [{limit}] levels deep")]
    TooDeep { limit: usize },
    /// A store name contains characters that are not allowed.
    #[error("invalid store name [{name}]")]
    InvalidName { name: String },
}

impl StorageError {
    /// Returns a function that wraps an I/O error with the attempted action (an infinitive, as in "cannot
    /// open") and the path.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// I/O errors among an error and its sources, outermost first.
fn io_errors<'a>(error: &'a (dyn std::error::Error + 'static)) -> impl Iterator<Item = &'a std::io::Error> {
    std::iter::successors(Some(error), |error| error.source()).filter_map(|error| error.downcast_ref())
}

/// Reason of a failed file operation, in the operating system's words and without the path, for messages to
/// clients. Errors without a system error number are described by their kind or their own text.
pub fn io_reason(error: &(dyn std::error::Error + 'static)) -> String {
    let Some(io) = io_errors(error).next() else { return "an error that is in the log".to_owned() };
    match (io.raw_os_error(), io.kind()) {
        // An error of the process's own layer may hold the path; its number does not.
        (Some(code), _) => std::io::Error::from_raw_os_error(code).to_string(),
        (None, std::io::ErrorKind::Other) => io.to_string(),
        (None, kind) => kind.to_string(),
    }
}

/// Whether an error, or one of its sources, reports a full disk or an exhausted quota.
pub fn disk_is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    if io_errors(error).any(|io| matches!(io.kind(), StorageFull | QuotaExceeded)) {
        return true;
    }
    // A closed log and some libraries keep only the sentence: numbers 28 and 122 are those of Linux, 112 that of Windows. The last
    // two are what Rust says of a kind without a number; anywhere but at the end they may be somebody's name of a field.
    let sentence = error.to_string();
    let numbers = ["(os error 28)", "(os error 122)", "(os error 112)"];
    numbers.iter().any(|number| sentence.contains(number))
        || ["No space left on device", "no storage space", "quota exceeded"]
            .iter()
            .any(|words| sentence.ends_with(words))
}
