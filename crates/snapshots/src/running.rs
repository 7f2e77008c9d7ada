//! Snapshots that are being made or restored now, and the locks under which repositories change.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::creation::Creation;
use super::errors;
use super::failed::FailedSnapshots;
use sparrow_request::error::EngineError;

/// How often somebody who waits for a lock looks whether he still wants it.
const LOOK: Duration = Duration::from_millis(50);

/// A snapshot that is being read: the directory of its repository, and its uuid.
type Reading = (PathBuf, String);

#[derive(Debug, Default)]
struct State {
    creations: Vec<Arc<Creation>>,
    readings: Vec<Reading>,
}

/// Running creations and restores of snapshots.
#[derive(Debug, Default)]
pub(super) struct Running {
    state: Mutex<State>,
    ended: Condvar,
    /// Held while a repository's folder changes; one for each folder.
    folder_locks: Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>,
}

/// Guard that keeps a creation in the list of running ones.
pub(super) struct CreationGuard {
    running: Arc<Running>,
    failed: Arc<FailedSnapshots>,
    pub creation: Arc<Creation>,
}

impl Drop for CreationGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.failed.fail(&self.creation, "the server failed while it made the snapshot".to_owned());
        }
        self.running.state.lock().creations.retain(|other| !Arc::ptr_eq(other, &self.creation));
        self.running.ended.notify_all();
    }
}

/// Guard that prevents a snapshot from being deleted.
pub(super) struct ReadingGuard {
    running: Arc<Running>,
    reading: Reading,
}

impl Drop for ReadingGuard {
    fn drop(&mut self) {
        let mut state = self.running.state.lock();
        if let Some(at) = state.readings.iter().position(|other| *other == self.reading) {
            state.readings.swap_remove(at);
        }
    }
}

impl Running {
    /// Snapshots that are being created, in one repository or in all.
    pub fn creations(&self, repository: Option<&str>) -> Vec<Arc<Creation>> {
        let state = self.state.lock();
        let of_it = |creation: &&Arc<Creation>| repository.is_none_or(|name| creation.repository == name);
        state.creations.iter().filter(of_it).cloned().collect()
    }

    /// Snapshots that are being created in a directory, under whatever repository name.
    pub fn creations_in(&self, location: &Path) -> Vec<Arc<Creation>> {
        let state = self.state.lock();
        state.creations.iter().filter(|creation| creation.location == location).cloned().collect()
    }

    /// What a directory is in use for, `snapshot` or `restore`; `None` if it is not in use.
    pub fn use_of(&self, location: &Path) -> Option<&'static str> {
        let state = self.state.lock();
        if state.creations.iter().any(|creation| creation.location == location) {
            return Some("snapshot");
        }
        state.readings.iter().any(|(folder, _)| folder == location).then_some("restore")
    }

    /// Registers a creation.
    ///
    /// # Errors
    /// When a snapshot of the same name is already being created.
    pub fn begin(
        self: &Arc<Self>,
        failed: &Arc<FailedSnapshots>,
        creation: Creation,
    ) -> Result<CreationGuard, EngineError> {
        let creation = Arc::new(creation);
        let mut state = self.state.lock();
        let same = |other: &Arc<Creation>| {
            other.location == creation.location && other.snapshot == creation.snapshot
        };
        if state.creations.iter().any(same) {
            return Err(errors::name_in_use(
                &creation.repository,
                &creation.snapshot,
                "snapshot with the same name is already in-progress",
            ));
        }
        state.creations.push(creation.clone());
        Ok(CreationGuard { running: Arc::clone(self), failed: Arc::clone(failed), creation })
    }

    /// Registers that a snapshot is being read, which prevents its deletion.
    pub fn read(self: &Arc<Self>, location: &Path, uuid: &str) -> ReadingGuard {
        let reading = (location.to_path_buf(), uuid.to_owned());
        self.state.lock().readings.push(reading.clone());
        ReadingGuard { running: Arc::clone(self), reading }
    }

    /// Whether a restore is reading a snapshot.
    pub fn is_read(&self, location: &Path, uuid: &str) -> bool {
        self.state.lock().readings.iter().any(|(folder, other)| folder == location && other == uuid)
    }

    /// Waits until a creation has ended, successfully or not.
    pub fn wait_for(&self, creation: &Arc<Creation>) {
        let mut state = self.state.lock();
        while state.creations.iter().any(|other| Arc::ptr_eq(other, creation)) {
            self.ended.wait(&mut state);
        }
    }

    /// The lock of a folder, to be waited for with [`wait_for_lock`].
    pub fn folder_lock(&self, location: &Path) -> Arc<Mutex<()>> {
        let mut locks = self.folder_locks.lock();
        // Folders of repositories that come and go would stay for ever.
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        locks.entry(location.to_path_buf()).or_default().clone()
    }
}

/// Waits for a lock.
///
/// # Errors
/// [`EngineError::Cancelled`] when `stop` says so before.
pub(super) fn wait_for_lock<'a>(
    lock: &'a Mutex<()>,
    stop: &dyn Fn() -> bool,
) -> Result<MutexGuard<'a, ()>, EngineError> {
    loop {
        if stop() {
            return Err(EngineError::Cancelled);
        }
        if let Some(guard) = lock.try_lock_for(LOOK) {
            return Ok(guard);
        }
    }
}
