//! What can go wrong with a shard.

use sparrow_index::IndexError;
use sparrow_storage::StorageError;
pub use sparrow_storage::disk_is_full;

/// A failure of a shard's write path.
#[derive(Debug, thiserror::Error)]
pub enum ShardError {
    /// The shard was deleted or shut down.
    #[error("the shard is closed")]
    Closed,
    /// The log cannot take writes until there is room, or the disk works, again.
    #[error("the shard is read-only: {reason}")]
    ReadOnly {
        /// What failed first.
        reason: String,
        /// Whether it was for want of space.
        disk_full: bool,
    },
    /// A refresh that somebody waited for failed.
    #[error("the refresh failed: {reason}")]
    Refresh {
        /// What failed.
        reason: String,
        /// Whether it was for want of space.
        disk_full: bool,
    },
    /// A log record is of a kind that this version does not know.
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
    /// The refusal of writes that a failure of the log leads to.
    pub fn read_only(cause: &Self) -> Self {
        Self::ReadOnly { reason: cause.to_string(), disk_full: cause.is_disk_full() }
    }

    /// The failure of a refresh that an error of the segments leads to.
    pub(crate) fn refresh(cause: &IndexError) -> Self {
        Self::Refresh { reason: cause.to_string(), disk_full: disk_is_full(cause) }
    }

    /// Whether there was no space for what was to be written.
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
