//! Which indices and aliases there are, as of one moment.

use std::collections::{BTreeMap, HashMap};
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

/// The indices of an alias, by name.
pub type OfAlias = BTreeMap<String, Arc<AliasSpec>>;

/// All names of one moment. Whoever looks keeps what was there, whatever happens meanwhile.
#[derive(Default, Clone)]
pub struct IndexNames {
    pub indices: BTreeMap<String, Arc<IndexHandle>>,
    pub broken: BTreeMap<String, Arc<Broken>>,
    /// Alias → its indices. There may be very many: what changes nothing in them shares them.
    pub aliases: Arc<BTreeMap<String, Arc<OfAlias>>>,
}

impl IndexNames {
    /// The aliases of an index.
    pub fn aliases_of(&self, index: &str) -> OfIndex {
        self.aliases
            .iter()
            .filter_map(|(alias, indices)| Some((alias.clone(), indices.get(index)?.clone())))
            .collect()
    }

    /// The aliases of each index that has any, in their order: for whoever asks for many indices.
    pub fn aliases_by_index(&self) -> HashMap<&str, Vec<(&String, &AliasSpec)>> {
        let mut by_index: HashMap<&str, Vec<(&String, &AliasSpec)>> = HashMap::new();
        for (alias, indices) in &*self.aliases {
            for (index, spec) in &**indices {
                by_index.entry(index).or_default().push((alias, spec));
            }
        }
        by_index
    }

    /// Lets an alias stand for an index too.
    pub(super) fn add_alias(&mut self, alias: String, index: String, spec: Arc<AliasSpec>) {
        let indices = Arc::make_mut(&mut self.aliases).entry(alias).or_default();
        Arc::make_mut(indices).insert(index, spec);
    }

    /// Takes an index out, with its part in aliases.
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
