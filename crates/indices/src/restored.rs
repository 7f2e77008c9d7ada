//! Indices that come as files, from a snapshot or another index: brought together where no index is known, then named, all at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use sparrow_storage::durable;

use super::aliases::{AliasSpec, OfIndex};
use super::model_change::ChangeState;
use super::opened::RestoredFrom;
use super::registry::IndexNames;
use super::{FIRST_FOLDER, IndexHandle, Indices, Metadata, alias_changes, claim, handle, new_uuid};
use sparrow_call::error::EngineError;

/// An index on its way: files in a folder of their own, which is removed with it unless it was installed.
pub struct Arrival {
    name: String,
    uuid: String,
    root: PathBuf,
    folder: PathBuf,
    /// `None` for those of the index whose place it takes.
    aliases: Option<OfIndex>,
    opened: Option<(Metadata, IndexHandle)>,
    installed: bool,
}

impl Arrival {
    /// The folder for its segments.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives it these aliases, by name.
    pub fn set_aliases(&mut self, aliases: OfIndex) {
        self.aliases = Some(aliases);
    }

    /// Gives it the aliases that a snapshot describes, by name.
    ///
    /// # Errors
    /// When one of them has a name or a definition that none may have.
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
    /// Whether an index may come under this name: it is free, or that of a closed index.
    ///
    /// # Errors
    /// What `refuse` makes of the reason why not.
    pub fn check_restorable(
        &self,
        from: &str,
        name: &str,
        refuse: &dyn Fn(&str) -> EngineError,
    ) -> Result<(), EngineError> {
        let is_open = match self.indices.get(name) {
            Some(handle) => !handle.is_closed(),
            // Whoever wants to lose what is left of it deletes it.
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
    /// A folder for an index that comes under this name.
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

    /// Opens an index whose files are there; `from` says of which snapshot they are, if of one.
    ///
    /// # Errors
    /// When they are not an index that `metadata` suits.
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
        let mut handle = self.open_one(metadata.clone())?;
        durable::sync_dir(&arrival.root)?;
        handle.opened.restored = from;
        arrival.opened = Some((metadata, handle));
        Ok(())
    }

    /// Gives indices their names, in place of closed ones; all of them or none, and durable when this returns. After a
    /// crash in the middle each of them is there or not, and what it takes the place of the other way round.
    ///
    /// # Errors
    /// What `check` says of a name, given the names of the moment; aliases that clash; a failure of the disk.
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
