//! Snapshots that were asked for and not made.
//!
//! Nobody may wait for a snapshot, and one that fails leaves nothing in its repository: so it is remembered here, with the reason,
//! until one of the same name is made or it is deleted. What is being made is noted too, and so a server that ends in the middle of it says so
//! after the next start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sparrow_storage::{DataDir, stores};

use super::manifest::Info;
use super::running::Creation;
use sparrow_call::error::EngineError;
use sparrow_indices::now_millis;

/// Name of the store.
const STORE: &str = "failed_snapshots";
/// Most that are remembered; the oldest go.
const MOST: usize = 100;
/// Why a snapshot failed that nobody has ended.
const CUT_SHORT: &str = "the server ended before the snapshot was complete";

/// A snapshot that is being made, or was not made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Failed {
    pub repository: String,
    location: PathBuf,
    pub snapshot: String,
    uuid: String,
    indices: Vec<String>,
    include_global_state: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "super::deep::read")]
    metadata: Option<Map<String, Value>>,
    start: u64,
    end: u64,
    /// Why it failed; none while it is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Failed {
    fn begun(creation: &Creation) -> Self {
        Self {
            repository: creation.repository.clone(),
            location: creation.location.clone(),
            snapshot: creation.snapshot.clone(),
            uuid: creation.uuid.clone(),
            indices: creation.indices.clone(),
            include_global_state: creation.include_global_state,
            metadata: creation.metadata.clone(),
            start: creation.start,
            end: creation.start,
            reason: None,
        }
    }

    fn is_called(&self, location: &Path, snapshot: &str) -> bool {
        self.location == location && self.snapshot == snapshot
    }

    /// Why it failed.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// As a listing shows it: no index is in it.
    pub fn info(&self) -> Info {
        Info {
            snapshot: self.snapshot.clone(),
            uuid: self.uuid.clone(),
            server: String::new(),
            include_global_state: self.include_global_state,
            has_keys: false,
            metadata: self.metadata.clone(),
            start: self.start,
            end: self.end,
            indices: Default::default(),
            failures: self.indices.iter().map(|name| (name.clone(), self.reason().to_owned())).collect(),
        }
    }
}

/// All of them, as the data directory keeps them.
#[derive(Debug)]
pub(super) struct FailedSnapshots {
    data: Arc<DataDir>,
    all: Mutex<Vec<Failed>>,
}

impl FailedSnapshots {
    /// Reads them. What was being made when the server ended has failed.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn open(data: Arc<DataDir>) -> Result<Self, EngineError> {
        let mut all: Vec<Failed> = match data.read_json(STORE)? {
            Some(stored) => serde_json::from_value(stored)
                .map_err(|error| stores::damaged(&data, STORE, error.to_string()))?,
            None => Vec::new(),
        };
        for failed in all.iter_mut().filter(|failed| failed.reason.is_none()) {
            tracing::warn!(repository = failed.repository, snapshot = failed.snapshot, "{CUT_SHORT}");
            (failed.reason, failed.end) = (Some(CUT_SHORT.to_owned()), now_millis());
        }
        Ok(Self { data, all: Mutex::new(all) })
    }

    /// A snapshot is being made: whatever became of an earlier one of its name is forgotten.
    pub fn begin(&self, creation: &Creation) {
        self.change(|all| {
            all.retain(|failed| !failed.is_called(&creation.location, &creation.snapshot));
            all.push(Failed::begun(creation));
            let ended = |failed: &Failed| failed.reason.is_some();
            while all.len() > MOST
                && let Some(oldest) = all.iter().position(ended)
            {
                all.remove(oldest);
            }
        });
    }

    /// A snapshot is made, or was deleted while it was being made.
    pub fn forget(&self, creation: &Creation) {
        self.change(|all| all.retain(|failed| failed.uuid != creation.uuid));
    }

    /// A snapshot was not made.
    pub fn fail(&self, creation: &Creation, reason: String) {
        self.change(|all| {
            for failed in all.iter_mut().filter(|failed| failed.uuid == creation.uuid) {
                (failed.reason, failed.end) = (Some(reason.clone()), now_millis().max(failed.start));
            }
        });
    }

    /// Those of a repository, but for those that a listing of it has.
    pub fn of(&self, repository: &str, location: &Path, made: &[Info]) -> Vec<Failed> {
        let all = self.all.lock();
        let is_shown = |failed: &&Failed| {
            failed.reason.is_some()
                && failed.repository == repository
                && failed.location == location
                && !made.iter().any(|info| info.snapshot == failed.snapshot)
        };
        all.iter().filter(is_shown).cloned().collect()
    }

    /// Forgets some that ended, of a folder of snapshots.
    pub fn delete(&self, location: &Path, names: &[String]) {
        let named = |failed: &Failed| {
            failed.reason.is_some() && failed.location == location && names.contains(&failed.snapshot)
        };
        if self.all.lock().iter().any(named) {
            self.change(|all| all.retain(|failed| !named(failed)));
        }
    }

    /// Forgets those of repositories that are not registered any more.
    pub fn keep(&self, is_registered: impl Fn(&str) -> bool) {
        let gone = |failed: &Failed| failed.reason.is_some() && !is_registered(&failed.repository);
        if self.all.lock().iter().any(gone) {
            self.change(|all| all.retain(|failed| !gone(failed)));
        }
    }

    /// What the disk refuses is no reason to make no snapshot: only the next start knows less then.
    fn change(&self, change: impl FnOnce(&mut Vec<Failed>)) {
        let mut all = self.all.lock();
        change(&mut all);
        if let Err(error) = self.data.write_json(STORE, &json!(*all)) {
            tracing::warn!(%error, "which snapshots failed is not written down");
        }
    }
}
