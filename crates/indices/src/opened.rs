//! How each index came to be open.

use std::time::{Duration, Instant};

use super::now_millis;

/// Where a restored index came from.
#[derive(Debug, Clone)]
pub struct RestoredFrom {
    pub repository: String,
    pub snapshot: String,
    /// Name of the index in the snapshot.
    pub index: String,
    /// Uuid of the restore that brought the index.
    pub restore_uuid: String,
    pub files: u64,
    pub bytes: u64,
}

/// How an index was opened.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Whether it was made then, and not read from the disk.
    pub created: bool,
    /// Milliseconds since the epoch.
    pub millis: u64,
    pub took: Duration,
    /// Writes that were applied again from the log.
    pub replayed: u64,
    /// Documents of them that today's mapping cannot take whole.
    pub replayed_in_part: u64,
    pub at: Instant,
    /// Files that were there.
    pub files: u64,
    /// Bytes of the files that were there.
    pub bytes: u64,
    /// What brought it, if that was a restore in this process.
    pub restored: Option<RestoredFrom>,
}

impl Opened {
    /// An index that is made now.
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

    /// An index that was read from `folder`, which began at `began`.
    pub fn existing(began: Instant, replayed: sparrow_shard::Replayed, folder: &std::path::Path) -> Self {
        let took = began.elapsed();
        let files: Vec<u64> = sparrow_files::read_dir(folder)
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

    /// Where it came from, in Elasticsearch's words.
    pub fn source(&self) -> &'static str {
        match self.restored {
            Some(_) => "SNAPSHOT",
            None if self.created => "EMPTY_STORE",
            None => "EXISTING_STORE",
        }
    }
}
