//! Changing aliases: any number of actions at once, all of them or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::aliases::AliasSpec;
use super::registry::IndexNames;
use super::{Indices, claim, names};
use sparrow_request::error::{EngineError, Exception};

/// One action of a request that changes aliases.
#[derive(Debug, Clone)]
pub enum AliasChange {
    Add { index: String, alias: String, spec: Arc<AliasSpec> },
    Remove { index: String, alias: String, must_exist: bool },
    RemoveIndex { index: String },
}

impl Indices {
    /// Carries out the changes that `plan` derives from the current names; no other request changes names meanwhile. `plan` may be
    /// called twice.
    ///
    /// The changes are durable when this returns, and readers see all of them or none.
    ///
    /// # Errors
    /// What `plan` returns; names that clash; an alias with two write indices; a failure of the disk.
    pub fn change_aliases<T>(
        &self,
        plan: impl Fn(&IndexNames) -> Result<(Vec<AliasChange>, T), EngineError>,
    ) -> Result<T, EngineError> {
        // Patterns take time, in which nobody else has to wait. Names seldom change meanwhile.
        let seen = self.names();
        let planned = plan(&seen)?;
        let _one = self.admin.lock();
        let before = self.names();
        let (changes, result) = if Arc::ptr_eq(&seen, &before) { planned } else { plan(&before)? };
        let mut after = IndexNames::clone(&before);
        let mut removed = Vec::new();
        // Indices go first, so that an alias can take the name of one.
        for change in &changes {
            if let AliasChange::RemoveIndex { index } = change {
                after.remove(index);
                removed.push(index.clone());
            }
        }
        let touched = after.change(changes)?;
        for alias in &touched {
            check(&after, alias)?;
        }
        let mut stored = self.aliases.of(&after);
        stored.removed.extend(removed.iter().filter_map(|index| Some(before.uuid(index)?.to_owned())));
        if removed.is_empty() && after.aliases == before.aliases {
            self.aliases.certain(&before)?;
            return Ok(result);
        }
        let roots: Vec<_> =
            removed.iter().filter_map(|index| Some(self.data.index_dir(before.uuid(index)?))).collect();
        roots.iter().try_for_each(|root| claim::withdraw(root))?;
        // All of it is done from here on: a crash leaves only files behind, which the next start removes.
        if let Err(error) = self.aliases.save(&stored) {
            let uuids = removed.iter().filter_map(|index| before.uuid(index).map(str::to_owned));
            self.aliases.put_back(&before, uuids);
            roots.iter().for_each(|root| claim::mark(root));
            return Err(error);
        }
        self.registry.change(|names| *names = after);
        for index in &removed {
            let Err(error) = self.remove_files(&before, index) else { continue };
            tracing::error!(index, %error, "files of a removed index are left until the disk lets them go");
            if let Some(handle) = before.indices.get(index) {
                handle.shard.close();
            }
            if let Some(uuid) = before.uuid(index) {
                self.leftovers.add(&self.data, uuid);
            }
        }
        if !removed.is_empty() {
            stored.removed = self.leftovers.uuids();
            if let Err(error) = self.aliases.save(&stored) {
                tracing::warn!(%error, "the list of removed indices is left until the next change");
            }
        }
        Ok(result)
    }
}

impl IndexNames {
    /// Carries out the changes to aliases, but not the removals of indices. Gives the names of the aliases concerned.
    ///
    /// # Errors
    /// When an index, or an alias that must exist, does not exist.
    pub(super) fn change(&mut self, changes: Vec<AliasChange>) -> Result<BTreeSet<String>, EngineError> {
        let mut touched = BTreeSet::new();
        for change in changes {
            match change {
                AliasChange::RemoveIndex { .. } => {}
                AliasChange::Add { index, alias, spec } => {
                    if self.uuid(&index).is_none() {
                        return Err(EngineError::IndexNotFound { name: index });
                    }
                    touched.insert(alias.clone());
                    self.add_alias(alias, index, spec);
                }
                AliasChange::Remove { index, alias, must_exist } => {
                    let exists = self.aliases.get(&alias).is_some_and(|indices| indices.contains_key(&index));
                    if exists && let Some(indices) = Arc::make_mut(&mut self.aliases).get_mut(&alias) {
                        Arc::make_mut(indices).remove(&index);
                    }
                    if !exists && must_exist {
                        return Err(EngineError::resource_not_found(format!(
                            "required alias [{alias}] does not exist"
                        )));
                    }
                    touched.insert(alias);
                }
            }
        }
        if self.aliases.values().any(|indices| indices.is_empty()) {
            Arc::make_mut(&mut self.aliases).retain(|_, indices| !indices.is_empty());
        }
        Ok(touched)
    }
}

/// Checks what has to hold for an alias across all of its indices: no index has its name, at most one is its write index, and it is
/// hidden for all of them or for none.
pub(super) fn check(after: &IndexNames, alias: &str) -> Result<(), EngineError> {
    let Some(indices) = after.aliases.get(alias) else { return Ok(()) };
    if after.uuid(alias).is_some() {
        return Err(names::invalid_alias(
            alias,
            "an index or data stream exists with the same name as the alias",
        ));
    }
    let with = |wanted: &dyn Fn(&AliasSpec) -> bool| -> Vec<&str> {
        indices.iter().filter(|(_, spec)| wanted(spec)).map(|(index, _)| index.as_str()).collect()
    };
    let illegal_state =
        |reason: String| EngineError::api(500, Exception::new("illegal_state_exception", reason));
    let writers = with(&|spec| spec.is_write_index == Some(true));
    if writers.len() > 1 {
        return Err(illegal_state(format!(
            "alias [{alias}] has more than one write index [{}]",
            writers.join(",")
        )));
    }
    let hidden = with(&|spec| spec.is_hidden == Some(true));
    if !hidden.is_empty() && hidden.len() < indices.len() {
        let shown = with(&|spec| spec.is_hidden != Some(true));
        return Err(illegal_state(format!(
            "alias [{alias}] has is_hidden set to true on indices [{}] but does not have is_hidden set to true on \
             indices [{}]; alias must have the same is_hidden setting on all indices",
            hidden.join(","),
            shown.join(",")
        )));
    }
    Ok(())
}
