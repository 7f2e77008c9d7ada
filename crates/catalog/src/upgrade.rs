//! Upgrading an index from an older postings format to the current one: [`sparrow_write_path`]'s rewrite of the segments, and the
//! metadata that says which folder holds them.
//!
//! The folder that is no longer used is removed at the next start, if not before.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use sparrow_tantivy_index::{Format, RewriteProgress, RewriteStats};
use sparrow_write_ahead_log::durable;
use sparrow_write_path::ShardError;

use super::Indices;
use super::handle::{IndexHandle, remove_folder};
use sparrow_request::error::EngineError;

/// How often an upgrade that waits for another one looks whether it is cancelled.
const CANCEL_EVERY: Duration = Duration::from_millis(50);

impl Indices {
    /// Rewrites an index in the current format. `None` when it has that already.
    ///
    /// # Errors
    /// When it is cancelled, deleted meanwhile, or cannot be read or written. It is then what it was.
    pub fn upgrade(
        &self,
        handle: &IndexHandle,
        progress: &mut dyn FnMut(RewriteProgress),
        cancel: &AtomicBool,
    ) -> Result<Option<RewriteStats>, EngineError> {
        // Another upgrade may have been faster: what counts is the format under the lock.
        let _one = loop {
            if let Some(turn) = self.upgrading.try_lock_for(CANCEL_EVERY) {
                break turn;
            }
            if cancel.load(Relaxed) {
                return Err(EngineError::Cancelled);
            }
        };
        if !handle.needs_upgrade() {
            return Ok(None);
        }
        let old_folder = handle.metadata.read().folder.clone();
        let folder = next_folder(&old_folder);
        let target = handle.root().join(&folder);
        // The disk may still name the folder of an earlier attempt.
        handle.settle_folder()?;
        durable::remove_dir_all(&target)?;
        let result = handle.shard.rewrite::<Failure>(&target, progress, cancel, |writer| {
            let noted = handle.replace_metadata(writer, |metadata| {
                folder.clone_into(&mut metadata.folder);
                Ok(())
            });
            noted.map_err(Failure::Engine)
        });
        match result {
            Ok(stats) => {
                remove_folder(&handle.root().join(old_folder));
                Ok(Some(stats))
            }
            Err(error) => {
                Err(match error {
                    Failure::Shard(error) => {
                        remove_folder(&target);
                        handle.failed(error)
                    }
                    // The metadata on the disk may name either folder: the next start knows which one can go.
                    Failure::Engine(error) => error,
                })
            }
        }
    }
}

/// Why a rewrite failed.
enum Failure {
    Shard(ShardError),
    Engine(EngineError),
}

impl From<ShardError> for Failure {
    fn from(error: ShardError) -> Self {
        Self::Shard(error)
    }
}

impl IndexHandle {
    /// Saves again which folder is in use, after an upgrade that could not be recorded in the metadata, and removes the folder of
    /// that upgrade, since the metadata on the disk may name it all the same.
    pub(super) fn settle_folder(&self) -> Result<(), EngineError> {
        let changer = self.changer()?;
        if self.shard.is_folder_uncertain() {
            self.replace_metadata(&changer, |_| Ok(()))?;
            remove_folder(&self.root().join(next_folder(&self.metadata.read().folder)));
        }
        Ok(())
    }

    /// Whether the index is in an older format.
    pub fn needs_upgrade(&self) -> bool {
        self.index().format() != Format::CURRENT
    }
}

/// Name of the folder for the next upgrade: `segments-2` after `segments-1`.
fn next_folder(folder: &str) -> String {
    let number = folder.rsplit('-').next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(1);
    format!("segments-{}", number + 1)
}
