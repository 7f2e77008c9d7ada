//! Which indices and aliases there are, as of one moment.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::aliases::{AliasSpec, OfIndex};
use super::changes;
use super::handle::IndexHandle;
use sparrow_call::error::{EngineError, Exception};

/// An index whose files cannot be opened. Its name is taken, and every use of it says why.
#[derive(Debug)]
pub struct Broken {
    pub name: String,
    pub uuid: String,
    pub reason: String,
    /// Whether the disk refused something, so that it may open later.
    pub may_open_later: bool,
}

impl Broken {
    /// The answer to whoever uses it.
    pub fn error(&self) -> EngineError {
        let reason = format!("index [{}] cannot be opened: {}", self.name, self.reason);
        EngineError::api(
            503,
            Exception::new("no_shard_available_action_exception", reason)
                .with("index_uuid", self.uuid.as_str())
                .with("shard", "0")
                .with("index", self.name.as_str()),
        )
    }
}

/// All names of one moment. Whoever looks keeps what was there, whatever happens meanwhile.
#[derive(Default, Clone)]
pub struct IndexNames {
    pub indices: BTreeMap<String, Arc<IndexHandle>>,
    pub broken: BTreeMap<String, Arc<Broken>>,
    /// Alias → its indices by name.
    pub aliases: BTreeMap<String, BTreeMap<String, Arc<AliasSpec>>>,
}

impl IndexNames {
    /// The aliases of an index.
    pub fn aliases_of(&self, index: &str) -> OfIndex {
        self.aliases
            .iter()
            .filter_map(|(alias, indices)| Some((alias.clone(), indices.get(index)?.clone())))
            .collect()
    }

    /// Takes an index out, with its part in aliases.
    pub(super) fn remove(&mut self, index: &str) {
        self.indices.remove(index);
        self.broken.remove(index);
        self.aliases.retain(|_, indices| {
            indices.remove(index);
            !indices.is_empty()
        });
    }

    /// How many indices are open; one that could not be opened counts.
    pub fn open_indices(&self) -> usize {
        self.indices.values().filter(|handle| !handle.is_closed()).count() + self.broken.len()
    }

    /// Uuid of an index, whether it can be opened or not.
    pub fn uuid(&self, index: &str) -> Option<&str> {
        let open = self.indices.get(index).map(|handle| handle.uuid.as_str());
        open.or_else(|| self.broken.get(index).map(|broken| broken.uuid.as_str()))
    }
}

/// The names in force.
#[derive(Default)]
pub struct Registry(RwLock<Arc<IndexNames>>);

impl Registry {
    /// The names as they are now.
    pub fn names(&self) -> Arc<IndexNames> {
        self.0.read().clone()
    }

    /// Puts other names in force, all at once. The caller serialises changes.
    pub(super) fn change(&self, change: impl FnOnce(&mut IndexNames)) {
        let mut names = IndexNames::clone(&self.names());
        change(&mut names);
        *self.0.write() = Arc::new(names);
        changes::note();
    }

    pub fn all(&self) -> Vec<Arc<IndexHandle>> {
        self.names().indices.values().cloned().collect()
    }
}
