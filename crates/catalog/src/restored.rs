//! Indices whose files come from a snapshot or another index: the files are put together in a folder that belongs to no index yet,
//! and then all indices get their names in one step.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use sparrow_write_ahead_log::durable;

use super::aliases::{AliasSpec, OfIndex};
use super::model_change::ChangeState;
use super::opened::RestoredFrom;
use super::registry::IndexNames;
use super::{FIRST_FOLDER, IndexHandle, Indices, Metadata, alias_changes, claim, handle, new_uuid};
use sparrow_request::error::EngineError;

/// An index that is being put together from files, in a folder of its own. The folder is removed when this is dropped, unless the
/// index was installed.
pub struct Arrival {
    name: String,
    uuid: String,
    root: PathBuf,
    folder: PathBuf,
    /// The aliases that the index will have; `None` to take those of the index that it replaces.
    aliases: Option<OfIndex>,
    opened: Option<(Metadata, IndexHandle)>,
    installed: bool,
}

impl Arrival {
    /// The folder into which the index's segments have to be put.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets the aliases that the index will have, by name.
    pub fn set_aliases(&mut self, aliases: OfIndex) {
        self.aliases = Some(aliases);
    }

    /// Sets the aliases that the index will have from their description in a snapshot.
    ///
    /// # Errors
    /// When a name or a definition is invalid.
    pub fn parse_aliases(&mut self, aliases: &Map<String, Value>) -> Result<(), EngineError> {
        let parse = |(alias, spec): (&String, &Value)| {
            super::names::check_alias(alias)?;
            Ok((alias.clone(), Arc::new(AliasSpec::parse(alias, spec)?)))
        };
        self.set_aliases(aliases.iter().map(parse).collect::<Result<_, EngineError>>()?);
        Ok(())
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        if !self.installed {
            // Its files are closed before they go.
            self.opened = None;
            handle::remove_folder(&self.root);
        }
    }
}

impl IndexNames {
    /// Checks that an index may be restored under this name: it has to be free, or that of a closed index.
    ///
    /// # Errors
    /// `refuse` of the reason why not.
    pub fn check_restorable(
        &self,
        from: &str,
        name: &str,
        refuse: &dyn Fn(&str) -> EngineError,
    ) -> Result<(), EngineError> {
        let is_open = match self.indices.get(name) {
            Some(handle) => !handle.is_closed(),
            // A broken index is not replaced: a user who does not need what is left of it can delete it.
            None => self.broken.contains_key(name),
        };
        if is_open {
            return Err(refuse(&format!(
                "cannot restore index [{name}] because an open index with same name already exists in the cluster. \
                 Either close or delete the existing index or restore the index under a different name by providing a \
                 rename pattern and replacement name"
            )));
        }
        if self.aliases.contains_key(name) {
            return Err(refuse(&format!(
                "cannot rename index [{from}] into [{name}] because of conflict with an alias with the same name"
            )));
        }
        Ok(())
    }
}

impl Indices {
    /// Makes a folder for an index that will get this name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn arrival(&self, name: &str) -> Result<Arrival, EngineError> {
        let uuid = new_uuid();
        let root = self.data.index_dir(&uuid);
        let folder = root.join(FIRST_FOLDER);
        durable::create_dir_all(&folder)?;
        durable::sync_dir(&root)?;
        Ok(Arrival {
            name: name.to_owned(),
            uuid,
            root,
            folder,
            aliases: None,
            opened: None,
            installed: false,
        })
    }

    /// Opens the index whose files are complete; `from` is the snapshot that they came from, if any.
    ///
    /// # Errors
    /// When the files are not an index that fits `metadata`.
    pub fn open_arrival(
        &self,
        arrival: &mut Arrival,
        metadata: Metadata,
        from: Option<RestoredFrom>,
    ) -> Result<(), EngineError> {
        let metadata = Metadata {
            name: arrival.name.clone(),
            uuid: arrival.uuid.clone(),
            folder: FIRST_FOLDER.to_owned(),
            closed: false,
            replaces: None,
            ..metadata
        };
        let mut metadata = metadata;
        if let Some(change) =
            metadata.model_change.as_mut().filter(|change| change.state == ChangeState::Filling)
        {
            change.failure =
                Some("the index was copied in the middle of the change: the same request goes on".to_owned());
        }
        let options = self.options(&metadata.name, &metadata.settings)?;
        metadata.mapping.check_analyzers(&options.analysis)?;
        metadata.mapping.check_names()?;
        let mut handle = self.open_one(metadata.clone())?;
        durable::sync_dir(&arrival.root)?;
        handle.opened.restored = from;
        arrival.opened = Some((metadata, handle));
        Ok(())
    }

    /// Gives indices their names, in place of closed ones; all of them or none, and durable when this returns. After a crash in the
    /// middle, for each of them either it exists or the index that it replaces.
    ///
    /// # Errors
    /// What `check` returns for a name, given the current names; aliases that clash; a failure of the disk.
    pub fn install(
        &self,
        arrivals: Vec<Arrival>,
        check: &dyn Fn(&IndexNames, &str) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let _one = self.admin.lock();
        self.leftovers.clear(&self.data)?;
        let before = self.names();
        let mut after = IndexNames::clone(&before);
        let mut replaced: Vec<Arc<IndexHandle>> = Vec::new();
        for arrival in &arrivals {
            check(&before, &arrival.name)?;
            let kept = before.aliases_of(&arrival.name);
            after.remove(&arrival.name);
            replaced.extend(before.indices.get(&arrival.name).cloned());
            for (alias, spec) in arrival.aliases.clone().unwrap_or(kept) {
                after.add_alias(alias, arrival.name.clone(), spec);
            }
        }
        // Nobody opens them in between.
        let guards = replaced.iter().map(|old| old.changer()).collect::<Result<Vec<_>, _>>()?;
        for arrival in &arrivals {
            check(&before, &arrival.name)?;
        }
        let mut arrivals = arrivals;
        let mut installed = Vec::with_capacity(arrivals.len());
        for arrival in &mut arrivals {
            let Some((mut metadata, handle)) = arrival.opened.take() else {
                return Err(EngineError::internal("an index was to be installed before it was opened"));
            };
            metadata.replaces = before.uuid(&arrival.name).map(str::to_owned);
            *handle.metadata.write() = Arc::new(metadata.clone());
            let handle = Arc::new(handle);
            after.indices.insert(arrival.name.clone(), handle.clone());
            installed.push((metadata, handle));
        }
        // Aliases of indices that are not there count for nothing, so they can come first; those of the old ones stay
        // until they are gone.
        let mut stored = self.aliases.of(&before);
        stored.by_index.extend(self.aliases.of(&after).by_index);
        let mut changed =
            after.aliases.keys().filter(|alias| after.aliases.get(*alias) != before.aliases.get(*alias));
        let named = changed.try_for_each(|alias| alias_changes::check(&after, alias));
        if let Err(error) = named.and_then(|()| self.aliases.save(&stored)) {
            // Nothing works on files that are about to go.
            installed.iter().for_each(|(_, handle)| handle.shard.close());
            return Err(error);
        }
        for (at, (metadata, _)) in installed.iter().enumerate() {
            if let Err(error) = metadata.save(&self.data) {
                installed.iter().for_each(|(_, handle)| handle.shard.close());
                for ((saved, _), arrival) in installed[..=at].iter().zip(&mut arrivals) {
                    // Its files go after its metadata, never before.
                    arrival.installed = true;
                    self.leftovers.add(&self.data, &saved.uuid);
                }
                return Err(error);
            }
        }
        for arrival in &mut arrivals {
            arrival.installed = true;
            claim::mark(&arrival.root);
        }
        self.registry.change(|names| *names = after);
        drop(guards);
        for old in replaced {
            if let Err(error) = old.delete() {
                tracing::error!(index = old.name, %error, "files of a replaced index are left until the disk lets them go");
                self.leftovers.add(&self.data, &old.uuid);
            }
        }
        if let Err(error) = self.aliases.save(&self.aliases.of(&self.names())) {
            tracing::warn!(%error, "aliases of replaced indices are left in the store");
        }
        Ok(())
    }
}
