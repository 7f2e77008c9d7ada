//! Records snapshots that were requested but not created.
//!
//! A client need not wait for a snapshot, and one that fails leaves nothing in its repository. So it is
//! recorded here with the reason, until a snapshot of the same name is created or it is deleted. Running
//! creations are recorded too, so that one that the end of the server interrupts counts as failed after the
//! next start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sparrow_write_ahead_log::{DataDir, stores};

use super::creation::Creation;
use super::manifest::Info;
use sparrow_catalog::now_millis;
use sparrow_request::error::EngineError;

/// Name of the store with the records.
const STORE: &str = "failed_snapshots";
/// Most records that are kept; beyond that, the oldest finished ones are dropped.
const MOST: usize = 100;
/// Reason recorded for a creation that the end of the server interrupted.
const CUT_SHORT: &str = "the server ended before the snapshot was complete";

/// Record of a snapshot whose creation is running or has failed.
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
    /// Why the creation failed; `None` while it is running.
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

    /// Why the creation failed; empty while it is running.
    pub fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or_default()
    }

    /// The record in the form of a snapshot that contains no index, for listings.
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

/// All records, kept in a store of the data directory.
#[derive(Debug)]
pub(super) struct FailedSnapshots {
    data: Arc<DataDir>,
    all: Mutex<Vec<Failed>>,
}

impl FailedSnapshots {
    /// Reads the records. Creations that were running when the server ended become failed.
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

    /// Adds the record of a creation that starts; an earlier record of the same name is removed.
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

    /// Removes the record of a snapshot that was created, or that was deleted during its creation.
    pub fn forget(&self, creation: &Creation) {
        self.change(|all| all.retain(|failed| failed.uuid != creation.uuid));
    }

    /// Marks the record of a creation as failed.
    pub fn fail(&self, creation: &Creation, reason: String) {
        self.change(|all| {
            for failed in all.iter_mut().filter(|failed| failed.uuid == creation.uuid) {
                (failed.reason, failed.end) = (Some(reason.clone()), now_millis().max(failed.start));
            }
        });
    }

    /// Failed snapshots of a repository, without those whose name `made` contains.
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

    /// Removes records of failed snapshots from the repository folder `location`, by snapshot name.
    pub fn delete(&self, location: &Path, names: &[String]) {
        let named = |failed: &Failed| {
            failed.reason.is_some() && failed.location == location && names.contains(&failed.snapshot)
        };
        if self.all.lock().iter().any(named) {
            self.change(|all| all.retain(|failed| !named(failed)));
        }
    }

    /// Removes the failed snapshots of repositories that are no longer registered.
    pub fn keep(&self, is_registered: impl Fn(&str) -> bool) {
        let gone = |failed: &Failed| failed.reason.is_some() && !is_registered(&failed.repository);
        if self.all.lock().iter().any(gone) {
            self.change(|all| all.retain(|failed| !gone(failed)));
        }
    }

    /// Changes the records and saves them. A write error is only logged: it does not prevent a snapshot, but
    /// the next start will lack the change.
    fn change(&self, change: impl FnOnce(&mut Vec<Failed>)) {
        let mut all = self.all.lock();
        change(&mut all);
        if let Err(error) = self.data.write_json(STORE, &json!(*all)) {
            tracing::warn!(%error, "which snapshots failed is not written down");
        }
    }
}
