//! Errors of a shard.

use sparrow_tantivy_index::IndexError;
use sparrow_write_ahead_log::StorageError;
pub use sparrow_write_ahead_log::disk_is_full;

/// A failure of a shard's write path.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The shard was deleted or shut down.
    #[error("the shard is closed")]
    Closed,
    /// The log failed: no writes are accepted until there is disk space, or the disk works, again.
    #[error("the shard is read-only: {reason}")]
    ReadOnly {
        /// What failed first, as text.
        reason: String,
        /// Whether the cause was a full disk.
        disk_full: bool,
    },
    /// A refresh that a request waited for failed.
    #[error("the refresh failed: {reason}")]
    Refresh {
        /// What failed, as text.
        reason: String,
        /// Whether the cause was a full disk.
        disk_full: bool,
    },
    /// A log record has a kind that this version does not know.
    #[error("a log record is not readable by this version")]
    UnknownRecord,
    /// The caller cancelled the operation.
    #[error("cancelled")]
    Cancelled,
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl ShardError {
    /// The error with which writes are refused after a failure of the log.
    pub fn read_only(cause: &Self) -> Self {
        Self::ReadOnly { reason: cause.to_string(), disk_full: cause.is_disk_full() }
    }

    /// The error of a refresh that failed because of the segments.
    pub(crate) fn refresh(cause: &IndexError) -> Self {
        Self::Refresh { reason: cause.to_string(), disk_full: disk_is_full(cause) }
    }

    /// Whether the cause was a full disk.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::ReadOnly { disk_full, .. } | Self::Refresh { disk_full, .. } => *disk_full,
            other => disk_is_full(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_recognised_through_the_layers() {
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        let storage = StorageError::Io { action: "write", path: "x".into(), source: full() };
        assert!(ShardError::from(storage).is_disk_full());
        let index = IndexError::Io { path: "x".into(), source: full() };
        assert!(ShardError::from(index).is_disk_full());
        let number =
            StorageError::Poisoned { reason: "write x: No space left on device (os error 28)".into() };
        assert!(ShardError::from(number).is_disk_full());
        for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded] {
            let kept = StorageError::Io { action: "sync", path: "x".into(), source: kind.into() }.to_string();
            assert!(ShardError::from(StorageError::Poisoned { reason: kept }).is_disk_full());
        }
        assert!(!ShardError::Closed.is_disk_full());
        let other = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let other = StorageError::Io { action: "write", path: "x".into(), source: other };
        assert!(!ShardError::from(other).is_disk_full());
    }
}
