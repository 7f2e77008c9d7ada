//! Indices whose metadata may lie on the disk though they are not there: writing it down failed when they were made, perhaps when
//! the file had its name already, or removing it when they were removed. After a restart such an index would be there, in the place
//! of one that got the same name since.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use sparrow_storage::DataDir;

use super::{claim, handle, metadata};
use sparrow_call::error::EngineError;

/// The uuids of indices whose making was refused, or whose deletion failed half-way, and whose files have not been removed for
/// certain.
#[derive(Default)]
pub(super) struct Leftovers(Mutex<Vec<String>>);

impl Leftovers {
    /// Removes what an index that was not made, or is no longer there, has on the disk: now if the disk lets it, else as soon as it does, and before the
    /// next index is made. None of its files may be in use.
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

    /// Removes what was left, if the disk lets it now.
    pub(super) fn retry(&self, data: &DataDir) {
        if !self.0.lock().is_empty() && self.clear(data).is_ok() {
            tracing::info!("what was left of an index is removed");
        }
    }

    /// Removes what was left. As long as that fails no index may be made: what is left could take its name.
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
