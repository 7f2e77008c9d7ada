//! Retrying to open indices that could not be opened at the start because the disk refused: replaying a log needs space for
//! segments.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use sparrow_tantivy_index::IndexError;
use sparrow_write_ahead_log::StorageError;
use sparrow_write_path::disk_is_full;

use super::handle::{IndexHandle, remove_folder};
use super::metadata::{self, Metadata};
use super::next_attempt::NextAttempt;
use super::{Indices, check_log, opened};
use sparrow_request::error::EngineError;

/// Whether opening an index may succeed later after this error: a refusal of the disk passes, damage does not.
pub(super) fn may_open_later(error: &EngineError) -> bool {
    let refused = matches!(
        error,
        EngineError::Storage(StorageError::Io { .. })
            | EngineError::Index(
                IndexError::Io { .. } | IndexError::RolledBack { .. } | IndexError::Poisoned { .. }
            )
    );
    refused || disk_is_full(error)
}

/// Ends the attempt when it is dropped, also after a panic.
struct Attempt<'a>(&'a NextAttempt);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Indices {
    /// Starts an attempt to open the indices that the disk refused, if it is time for one. Returns at once.
    pub(super) fn try_again(self: Arc<Self>) {
        let owner = self.clone();
        let next = &owner.next_attempt;
        if !next.begin() {
            return;
        }
        let open = move || self.open_refused();
        match thread::Builder::new().name("sparrow-reopen".to_owned()).spawn(open) {
            Ok(thread) => *next.thread.lock() = Some(thread),
            Err(error) => {
                tracing::error!(%error, "no thread for opening indices again");
                next.end();
            }
        }
    }

    /// Tries to open each index that the disk refused; the attempt has been marked as running.
    fn open_refused(&self) {
        let _attempt = Attempt(&self.next_attempt);
        let names = self.names();
        let uuids: BTreeSet<&String> =
            names.broken.values().filter(|broken| broken.may_open_later).map(|broken| &broken.uuid).collect();
        for uuid in uuids {
            let reopened = opened(|| {
                let Some(metadata) = Metadata::load(&self.data, &metadata::store_name(uuid))? else {
                    return Ok(None);
                };
                check_log(&self.data.index_dir(uuid))?;
                self.open_one(metadata).map(Some)
            });
            match reopened {
                Ok(Some(handle)) => self.put_in_place(uuid, handle),
                Ok(None) => {}
                Err(error) => tracing::warn!(uuid, %error, "the index still cannot be opened"),
            }
        }
    }

    /// Adds a reopened index to the registry, unless it was deleted meanwhile: opening it takes long, and other requests can delete
    /// and create indices in that time.
    fn put_in_place(&self, uuid: &str, handle: IndexHandle) {
        let _one = self.admin.lock();
        let names = self.names();
        let is_missed = names.broken.values().any(|broken| broken.uuid == uuid);
        if !is_missed || names.indices.contains_key(&handle.name) {
            handle.shard.close();
            drop(handle);
            if !is_missed {
                remove_folder(&self.data.index_dir(uuid));
            }
            return;
        }
        tracing::warn!(index = handle.name, "the index is open: the disk no longer refuses");
        self.registry.change(|names| {
            names.broken.retain(|_, broken| broken.uuid != uuid);
            names.indices.insert(handle.name.clone(), Arc::new(handle));
        });
    }
}
