//! Which indices and aliases there are, as of one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::RwLock;

use super::aliases::{AliasSpec, OfIndex};
use super::changes;
use super::handle::IndexHandle;
use sparrow_request::error::{EngineError, Exception};

/// An index whose files cannot be opened. Its name is taken, and every request for it is answered with the reason.
#[derive(Debug)]
pub struct Broken {
    pub name: String,
    pub uuid: String,
    pub reason: String,
    /// Whether the cause was a refusal of the disk, so that opening the index may succeed later.
    pub may_open_later: bool,
}

impl Broken {
    /// The error for a request that uses this index: status 503 with the reason.
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

/// Names of an alias's indices → its properties for each.
pub type OfAlias = BTreeMap<String, Arc<AliasSpec>>;

/// All indices and aliases at one moment: a snapshot that does not change while it is used.
#[derive(Default, Clone)]
pub struct IndexNames {
    pub indices: BTreeMap<String, Arc<IndexHandle>>,
    pub broken: BTreeMap<String, Arc<Broken>>,
    /// Alias → its indices. There may be very many, so that copies which do not change them share them.
    pub aliases: Arc<BTreeMap<String, Arc<OfAlias>>>,
}

impl IndexNames {
    /// The aliases of one index, with their properties for it.
    pub fn aliases_of(&self, index: &str) -> OfIndex {
        self.aliases
            .iter()
            .filter_map(|(alias, indices)| Some((alias.clone(), indices.get(index)?.clone())))
            .collect()
    }

    /// Index → its aliases, in the order of their names. Cheaper than [`IndexNames::aliases_of`] for many indices.
    pub fn aliases_by_index(&self) -> HashMap<&str, Vec<(&String, &AliasSpec)>> {
        let mut by_index: HashMap<&str, Vec<(&String, &AliasSpec)>> = HashMap::new();
        for (alias, indices) in &*self.aliases {
            for (index, spec) in &**indices {
                by_index.entry(index).or_default().push((alias, spec));
            }
        }
        by_index
    }

    /// Adds an index to an alias, which is created if it is new.
    pub(super) fn add_alias(&mut self, alias: String, index: String, spec: Arc<AliasSpec>) {
        let indices = Arc::make_mut(&mut self.aliases).entry(alias).or_default();
        Arc::make_mut(indices).insert(index, spec);
    }

    /// Removes an index, also from its aliases.
    pub(super) fn remove(&mut self, index: &str) {
        self.indices.remove(index);
        self.broken.remove(index);
        if !self.aliases.values().any(|indices| indices.contains_key(index)) {
            return;
        }
        Arc::make_mut(&mut self.aliases).retain(|_, indices| {
            if indices.contains_key(index) {
                Arc::make_mut(indices).remove(index);
            }
            !indices.is_empty()
        });
    }

    /// Number of open indices, including those that could not be opened.
    pub fn open_indices(&self) -> usize {
        self.indices.values().filter(|handle| !handle.is_closed()).count() + self.broken.len()
    }

    /// Uuid of the index with this name, even if it cannot be opened.
    pub fn uuid(&self, index: &str) -> Option<&str> {
        let open = self.indices.get(index).map(|handle| handle.uuid.as_str());
        open.or_else(|| self.broken.get(index).map(|broken| broken.uuid.as_str()))
    }
}

/// The indices and aliases that exist now.
#[derive(Default)]
pub struct Registry(RwLock<Arc<IndexNames>>);

impl Registry {
    /// A snapshot of the indices and aliases that exist now.
    pub fn names(&self) -> Arc<IndexNames> {
        self.0.read().clone()
    }

    /// Replaces the current names by changed ones in one step. The caller serialises changes.
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
