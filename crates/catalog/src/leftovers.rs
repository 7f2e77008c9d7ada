//! Indices that do not exist but whose metadata may still be on the disk: either saving it failed when they were created, perhaps
//! after the file had got its name, or removing it failed when they were deleted. After a restart such an index would exist again,
//! in place of one that has got the same name since. And folders of indices without metadata.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use sparrow_write_ahead_log::{DataDir, durable};

use super::{claim, handle, metadata};
use sparrow_request::error::EngineError;

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

/// Marks the folders of indices, logs those whose metadata is missing, and removes the remains of indices whose creation or
/// deletion was cut short.
///
/// # Errors
/// When the folder of the indices cannot be listed.
pub(crate) fn clear_folders(data: &DataDir, uuids: &[String]) -> Result<(), EngineError> {
    uuids.iter().for_each(|uuid| claim::mark(&data.index_dir(uuid)));
    let orphans = claim::orphans(data, &|uuid| uuids.iter().any(|other| other == uuid))?;
    for uuid in &orphans {
        if !claim::is_marked(data, uuid) {
            tracing::warn!(
                folder = uuid,
                "a folder among those of the indices is not Sparrow's: it is left alone"
            );
            continue;
        }
        tracing::error!(
            uuid,
            "an index is not served, as its metadata [store/{}.json] is missing: its files are left where they are, bring the \
             metadata back or restore a snapshot",
            metadata::store_name(uuid)
        );
    }
    // Other folders without metadata are of an index whose creation or deletion was cut short.
    for uuid in durable::list_dir(&data.path().join("indices"))? {
        if !uuids.contains(&uuid) && !orphans.contains(&uuid) {
            handle::remove_folder(&data.index_dir(&uuid));
        }
    }
    Ok(())
}
