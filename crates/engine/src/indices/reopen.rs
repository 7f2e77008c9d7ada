//! Opening indices once more that the disk refused at the start: replaying a log needs room for segments.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sparrow_index::IndexError;
use sparrow_shard::disk_is_full;
use sparrow_storage::StorageError;

use super::metadata::{self, Metadata};
use super::{Indices, check_log, opened};
use crate::error::EngineError;

/// First and longest pause between two attempts, each of which reads the segments.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Whether an index that could not be opened may open later. What the disk refused passes, damage does not.
pub(super) fn may_open_later(error: &EngineError) -> bool {
    let refused = matches!(
        error,
        EngineError::Storage(StorageError::Io { .. })
            | EngineError::Index(
                IndexError::Io { .. } | IndexError::RolledBack { .. } | IndexError::Poisoned
            )
    );
    refused || disk_is_full(error)
}

/// When the next attempt may be made, and how long the pause before it is.
pub(super) struct NextAttempt {
    moment: Instant,
    pause: Duration,
}

impl Default for NextAttempt {
    fn default() -> Self {
        Self { moment: Instant::now() + PAUSES.0, pause: PAUSES.0 }
    }
}

impl Indices {
    /// Opens the indices that the disk refused, if it is time to try again.
    pub(crate) fn open_refused(&self) {
        {
            let mut next = self.next_attempt.lock();
            if Instant::now() < next.moment {
                return;
            }
            next.pause = (next.pause * 2).min(PAUSES.1);
            next.moment = Instant::now() + next.pause;
        }
        // Nobody deletes one, or gives its name away, meanwhile.
        let _one = self.admin.lock();
        let names = self.names();
        let uuids: BTreeSet<&String> =
            names.broken.values().filter(|broken| broken.may_open_later).map(|broken| &broken.uuid).collect();
        for uuid in uuids {
            let found = opened(|| {
                let Some(found) = Metadata::load(&self.data, &metadata::store_name(uuid))? else {
                    return Ok(None);
                };
                check_log(&self.data.index_dir(uuid))?;
                self.open_one(found).map(Some)
            });
            match found {
                Ok(Some(handle)) if !names.indices.contains_key(&handle.name) => {
                    tracing::warn!(index = handle.name, "the index is open: the disk no longer refuses");
                    self.registry.change(|names| {
                        names.broken.retain(|_, broken| broken.uuid != *uuid);
                        names.indices.insert(handle.name.clone(), Arc::new(handle));
                    });
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(uuid, %error, "the index still cannot be opened"),
            }
        }
    }
}
