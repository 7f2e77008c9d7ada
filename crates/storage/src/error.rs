//! What can go wrong with files of ours.

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
    /// A file of ours does not hold what was written.
    #[error("{} is damaged: {detail}", path.display())]
    Corrupt { path: PathBuf, detail: String },
    /// The write-ahead log lost records that had been acknowledged.
    #[error("write-ahead log {} is damaged at byte {offset}, before records that were durable", path.display())]
    WalCorrupt { path: PathBuf, offset: u64 },
    /// A file was written by a newer version.
    #[error("{} has format version {found}, this version reads up to {supported}", path.display())]
    NewerFormat { path: PathBuf, found: u32, supported: u32 },
    /// An earlier write or fsync failed, so nothing more can be promised until the log is opened anew.
    #[error("write-ahead log is closed for writes after a failure: {reason}")]
    Poisoned { reason: String },
    /// A record exceeds what the log can frame.
    #[error("record of {bytes} bytes exceeds the limit of {limit} bytes")]
    RecordTooLarge { bytes: usize, limit: usize },
    /// A value is nested so deep that it could be written, but not read again.
    #[error("objects and arrays would be nested more than [{limit}] levels deep")]
    TooDeep { limit: usize },
    /// A store name holds characters that are not allowed in one.
    #[error("invalid store name [{name}]")]
    InvalidName { name: String },
}

impl StorageError {
    /// Makes an error of the system one of this crate: what was tried (an infinitive, as in "cannot open") and on which file or
    /// folder.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

/// Errors of files and sockets among an error and its causes, the outermost first.
fn io_errors<'a>(error: &'a (dyn std::error::Error + 'static)) -> impl Iterator<Item = &'a std::io::Error> {
    std::iter::successors(Some(error), |error| error.source()).filter_map(|error| error.downcast_ref())
}

/// Why an operation on files failed, as the operating system says it and without the path: for sentences that clients see. What no
/// system call has refused is called by its kind, or says it in its own words.
pub fn io_reason(error: &(dyn std::error::Error + 'static)) -> String {
    let Some(io) = io_errors(error).next() else { return "an error that is in the log".to_owned() };
    match (io.raw_os_error(), io.kind()) {
        // An error of the process's own layer may hold the path; its number does not.
        (Some(code), _) => std::io::Error::from_raw_os_error(code).to_string(),
        (None, std::io::ErrorKind::Other) => io.to_string(),
        (None, kind) => kind.to_string(),
    }
}

/// Whether an error says, at its end or in the middle, that the disk is full or a quota is used up.
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
