//! How and when each index was opened.

use std::time::{Duration, Instant};

use super::now_millis;

/// Where a restored index came from.
#[derive(Debug, Clone)]
pub struct RestoredFrom {
    pub repository: String,
    pub snapshot: String,
    /// Name of the index in the snapshot.
    pub index: String,
    /// Uuid of the restore operation that created the index.
    pub restore_uuid: String,
    pub files: u64,
    pub bytes: u64,
}

/// How and when an index was opened, and what was replayed from its log.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Whether the index was created then, instead of being read from the disk.
    pub created: bool,
    /// Time when opening began, in milliseconds since the Unix epoch.
    pub millis: u64,
    pub took: Duration,
    /// Writes that were applied again from the log.
    pub replayed: u64,
    /// Number of replayed documents of which the current mapping cannot index some fields.
    pub replayed_in_part: u64,
    pub at: Instant,
    /// Number of files in the segments' folder when it was opened.
    pub files: u64,
    /// Total size in bytes of the files in the segments' folder when it was opened.
    pub bytes: u64,
    /// The snapshot that the index was restored from, if that happened in this process.
    pub restored: Option<RestoredFrom>,
}

impl Opened {
    /// For an index that was created now.
    pub fn created() -> Self {
        Self {
            created: true,
            millis: now_millis(),
            took: Duration::ZERO,
            replayed: 0,
            replayed_in_part: 0,
            at: Instant::now(),
            files: 0,
            bytes: 0,
            restored: None,
        }
    }

    /// For an index that has just been read from `folder`; `began` is when opening it began.
    pub fn existing(
        began: Instant,
        replayed: sparrow_write_path::Replayed,
        folder: &std::path::Path,
    ) -> Self {
        let took = began.elapsed();
        let files: Vec<u64> = sparrow_file_system::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()))
            .collect();
        Self {
            created: false,
            millis: now_millis().saturating_sub(took.as_millis() as u64),
            took,
            replayed: replayed.records,
            replayed_in_part: replayed.incomplete_documents,
            at: Instant::now(),
            files: files.len() as u64,
            bytes: files.iter().sum(),
            restored: None,
        }
    }

    /// What the shard was recovered from, as the API names it: `SNAPSHOT`, `EMPTY_STORE` or `EXISTING_STORE`.
    pub fn source(&self) -> &'static str {
        match self.restored {
            Some(_) => "SNAPSHOT",
            None if self.created => "EMPTY_STORE",
            None => "EXISTING_STORE",
        }
    }
}
