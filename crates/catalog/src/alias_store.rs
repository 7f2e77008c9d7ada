//! The store of aliases on the disk, and whether it agrees with the aliases in force.
//!
//! A save that fails may have happened all the same: the file has its new content, and only the folder was not synced. The next
//! start would then carry out what was refused, and remove indices that have been written to since. So what is in force is written
//! back. While the disk refuses that too, it is tried again, and indices that the file may list as removed take no writes.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use parking_lot::Mutex;
use sparrow_write_ahead_log::DataDir;

use super::aliases::Stored;
use super::doubts::Doubts;
use super::leftovers::Leftovers;
use super::registry::{IndexNames, Registry};
use sparrow_request::error::EngineError;

/// Saves aliases, and the list of removed indices with them. The caller serialises changes.
pub(super) struct AliasStore {
    data: Arc<DataDir>,
    leftovers: Arc<Leftovers>,
    doubts: Arc<Doubts>,
}

impl AliasStore {
    pub(super) fn new(data: Arc<DataDir>, leftovers: Arc<Leftovers>) -> Self {
        Self { data, leftovers, doubts: Arc::default() }
    }

    /// What may be wrong in the store; shared with the indices, which consult it before each write.
    pub(super) fn doubts(&self) -> Arc<Doubts> {
        self.doubts.clone()
    }

    /// The content of the store for these names.
    pub(super) fn of(&self, names: &IndexNames) -> Stored {
        // What could not be removed yet must not be there after a restart, whatever else is saved.
        let mut stored = Stored { removed: self.leftovers.uuids(), ..Stored::default() };
        for (alias, indices) in &*names.aliases {
            for (index, spec) in &**indices {
                if let Some(uuid) = names.uuid(index) {
                    let of_index = stored.by_index.entry(uuid.to_owned()).or_default();
                    of_index.insert(alias.clone(), spec.clone());
                }
            }
        }
        stored
    }

    /// Replaces the store, durably and atomically, and with it whatever a save that failed left there.
    ///
    /// # Errors
    /// When the disk refuses; the file holds the old or the new content then.
    pub(super) fn save(&self, stored: &Stored) -> Result<(), EngineError> {
        stored.save(&self.data)?;
        self.doubts.removed.lock().clear();
        self.doubts.with.lock().clear();
        self.doubts.exist.store(false, SeqCst);
        Ok(())
    }

    /// Writes the aliases in force back after a failed save that would have removed the indices `removed`. If that fails too, it is
    /// tried again later, and these indices take no writes until then.
    pub(super) fn put_back(&self, names: &IndexNames, removed: impl Iterator<Item = String>) {
        // Before anything else is tried: writes that come meanwhile are refused.
        self.doubts.removed.lock().extend(removed);
        self.doubts.exist.store(true, SeqCst);
        if let Err(error) = self.save(&self.of(names)) {
            tracing::error!(%error, "the store of aliases may hold a change that was refused; it is written again as soon as the disk lets it");
        }
    }

    /// Saves the aliases in force without the entries that depend on the indices `with`, so that they stay when one of these
    /// indices is deleted. If the disk refuses, the file still stands for the same aliases as long as these indices exist.
    pub(super) fn resolve(&self, names: &IndexNames, with: impl Iterator<Item = String>) {
        if let Err(error) = self.save(&self.of(names)) {
            self.doubts.with.lock().extend(with);
            self.doubts.exist.store(true, SeqCst);
            tracing::warn!(%error, "the store of aliases still says what came into force with an index; it is written again as soon as the disk lets it");
        }
    }

    /// Makes sure that the file agrees with the aliases in force before an index is deleted that was created together with changes
    /// to other indices' aliases.
    ///
    /// # Errors
    /// When the disk refuses. Any other index can be deleted on a full disk, whatever the file says.
    pub(super) fn certain_without(&self, uuid: &str, names: &IndexNames) -> Result<(), EngineError> {
        if self.doubts.with.lock().contains(uuid) { self.certain(names) } else { Ok(()) }
    }

    /// Makes sure that the file agrees with the aliases in force, for a request that is acknowledged without changing anything.
    ///
    /// # Errors
    /// When the disk refuses.
    pub(super) fn certain(&self, names: &IndexNames) -> Result<(), EngineError> {
        if !self.doubts.exist.load(SeqCst) {
            return Ok(());
        }
        self.save(&self.of(names))
    }

    /// Saves the aliases in force again if the file may differ from them. Gives up at once while names are being changed.
    pub(super) fn settle(&self, admin: &Mutex<()>, registry: &Registry) {
        if !self.doubts.exist.load(SeqCst) {
            return;
        }
        let Some(_one) = admin.try_lock() else { return };
        match self.save(&self.of(&registry.names())) {
            Ok(()) => tracing::warn!("the store of aliases holds what is in force again"),
            Err(error) => tracing::debug!(%error, "the store of aliases still cannot be written"),
        }
    }
}
