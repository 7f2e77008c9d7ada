//! Indices that do not exist but whose metadata may still be on the disk: either saving it failed when they were created, perhaps
//! after the file had got its name, or removing it failed when they were deleted. After a restart such an index would exist again,
//! in place of one that has got the same name since.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use sparrow_storage::DataDir;

use super::{claim, handle, metadata};
use sparrow_call::error::EngineError;

/// Uuids of indices that could not be created, or were only half deleted, and whose files may still be on the disk.
#[derive(Default)]
pub(super) struct Leftovers(Mutex<Vec<String>>);

impl Leftovers {
    /// Removes the files of an index that was not created or no longer exists: now if the disk allows it, otherwise as soon as it
    /// does, and before the next index is created. None of its files may be in use.
    pub(super) fn add(&self, data: &DataDir, uuid: &str) {
        self.0.lock().push(uuid.to_owned());
        if let Err(error) = self.clear(data) {
            tracing::warn!(uuid, %error, "what is left of an index is removed as soon as the disk lets it");
        }
    }

    /// Uuids of the indices whose files are left.
    pub(super) fn uuids(&self) -> BTreeSet<String> {
        self.0.lock().iter().cloned().collect()
    }

    /// Removes the remaining files if the disk allows it now.
    pub(super) fn retry(&self, data: &DataDir) {
        if !self.0.lock().is_empty() && self.clear(data).is_ok() {
            tracing::info!("what was left of an index is removed");
        }
    }

    /// Removes the remaining files. While that fails no index may be created, as a leftover could take its name.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn clear(&self, data: &DataDir) -> Result<(), EngineError> {
        let mut left = self.0.lock();
        while let Some(uuid) = left.last() {
            claim::withdraw(&data.index_dir(uuid))?;
            data.remove(&metadata::store_name(uuid))?;
            handle::remove_folder(&data.index_dir(uuid));
            left.pop();
        }
        Ok(())
    }
}
