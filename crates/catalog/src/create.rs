//! Creating an index, and the changes of aliases that come with it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use parking_lot::RwLock;
use sparrow_mapping::Mapping;
use sparrow_tantivy_index::{IndexOptions, SparrowIndex};
use sparrow_write_ahead_log::durable;
use sparrow_write_path::Shard;

use super::alias_changes::AliasChange;
use super::aliases::{AliasSpec, OfIndex};
use super::handle::SharedMetadata;
use super::opened::Opened;
use super::registry::{IndexNames, OfAlias};
use super::{
    FIRST_FOLDER, IndexHandle, Indices, Metadata, Settings, alias_changes, claim, date_math, handle, names,
    new_uuid, now_millis, opening, shard_options,
};
use sparrow_request::error::EngineError;
use sparrow_request::rights::Right;

/// An index to be created.
pub struct CreateIndex {
    /// Name of the index, date math resolved.
    pub name: String,
    /// Name of the index as the request gave it, date math included.
    pub provided_name: String,
    pub settings: Settings,
    pub mapping: Mapping,
    pub aliases: BTreeMap<String, AliasSpec>,
}

/// Decides, from the names at the moment of creation, which aliases of other indices change together with a new index, and which
/// aliases it gets itself.
type Plan<'a> =
    &'a dyn Fn(&IndexNames) -> Result<(Vec<AliasChange>, BTreeMap<String, AliasSpec>), EngineError>;

impl Indices {
    /// Creates an index with its aliases; durable when this returns. `right` covers only the name of the index: the right to its
    /// aliases has to be checked by the caller that lets a request define them.
    ///
    /// # Errors
    /// 403; [`EngineError::InvalidIndexName`], [`EngineError::IndexAlreadyExists`], aliases that clash, or a failure of the disk.
    pub fn create(&self, wanted: CreateIndex, right: Right<'_>) -> Result<Arc<IndexHandle>, EngineError> {
        self.create_and_change(wanted, right, &|_| Ok((Vec::new(), BTreeMap::new())))
    }

    /// Creates an index, and changes aliases of others with it: after a crash both have happened or neither.
    ///
    /// # Errors
    /// As [`Indices::create`]; what `plan` says.
    pub fn create_and_change(
        &self,
        wanted: CreateIndex,
        right: Right<'_>,
        plan: Plan<'_>,
    ) -> Result<Arc<IndexHandle>, EngineError> {
        let name = wanted.name;
        right.check([name.as_str()])?;
        names::check(&name)?;
        let _one = self.admin.lock();
        self.leftovers.clear(&self.data)?;
        let before = self.names();
        before.check_free(&name)?;
        self.cluster.check_shards(before.open_indices(), 1)?;
        let options = self.options(&name, &wanted.settings)?;
        wanted.mapping.check_analyzers(&options.analysis)?;
        wanted.mapping.check_similarities(|name| wanted.settings.defines_similarity(name))?;
        let metadata = Metadata {
            name: name.clone(),
            uuid: new_uuid(),
            creation_millis: now_millis(),
            folder: FIRST_FOLDER.to_owned(),
            closed: false,
            provided_name: Some(wanted.provided_name),
            settings: wanted.settings,
            mapping: wanted.mapping,
            field_models: BTreeMap::new(),
            model_change: None,
            replaces: None,
        };
        let mut after = IndexNames::clone(&before);
        let (changes, aliases) = plan(&before)?;
        let changed = after.change(changes)?;
        for (alias, spec) in wanted.aliases.into_iter().chain(aliases) {
            let alias = date_math::resolve(&alias)?;
            after.add_alias(alias, name.clone(), Arc::new(spec));
        }
        let of_index = match Arc::ptr_eq(&after.aliases, &before.aliases) {
            true => OfIndex::new(),
            false => after.aliases_of(&name),
        };
        for alias in of_index.keys().chain(&changed) {
            if *alias == name {
                let problem = "an index or data stream exists with the same name as the alias";
                return Err(names::invalid_alias(alias, problem));
            }
            alias_changes::check(&after, alias)?;
        }
        let uuid = metadata.uuid.clone();
        let root = self.data.index_dir(&uuid);
        let metadata: SharedMetadata = Arc::new(RwLock::new(Arc::new(metadata)));
        let shard = made(&root, options, &metadata).inspect_err(|_| handle::remove_folder(&root))?;
        let changes_elsewhere = after.changed_since(&before, &uuid);
        if !of_index.is_empty() || !changes_elsewhere.is_empty() {
            // Aliases of an index that is not there count for nothing, and neither does what comes with it, so they can come first.
            let mut stored = self.aliases.of(&before);
            stored.by_index.insert(uuid.clone(), of_index);
            stored.with.insert(uuid.clone(), changes_elsewhere.clone());
            if let Err(error) = self.aliases.save(&stored) {
                shard.close();
                drop(shard);
                handle::remove_folder(&root);
                return Err(error);
            }
        }
        // The index exists from here on; a crash before leaves a folder that the next start removes.
        if let Err(error) = metadata.read().save(&self.data) {
            shard.close();
            drop(shard);
            self.leftovers.add(&self.data, &uuid);
            return Err(error);
        }
        claim::mark(&root);
        let handle = Arc::new(self.handle(metadata, shard, Opened::created()));
        self.registry.change(|names| {
            names.indices.insert(name, handle.clone());
            names.aliases = after.aliases;
        });
        if !changes_elsewhere.is_empty() {
            self.aliases.resolve(&self.names(), std::iter::once(uuid));
        }
        Ok(handle)
    }
}

/// Creates an empty shard in the folder `root`, durably.
fn made(root: &Path, options: IndexOptions, metadata: &SharedMetadata) -> Result<Shard, EngineError> {
    durable::create_dir_all(root)?;
    let index = SparrowIndex::create(&root.join(FIRST_FOLDER), &metadata.read().mapping, &options)?;
    let shard =
        Shard::create(shard_options(root.to_path_buf(), options, metadata), index).map_err(opening)?;
    if let Err(error) = durable::sync_dir(root) {
        shard.close();
        return Err(error.into());
    }
    Ok(shard)
}

impl IndexNames {
    /// Index uuid → its aliases, for the indices whose aliases differ from `before`.
    fn changed_since(&self, before: &Self, new: &str) -> BTreeMap<String, OfIndex> {
        if Arc::ptr_eq(&self.aliases, &before.aliases) {
            return BTreeMap::new();
        }
        let mut touched: BTreeSet<&str> = BTreeSet::new();
        for alias in self.aliases.keys().chain(before.aliases.keys()) {
            let (now, then) = (self.aliases.get(alias), before.aliases.get(alias));
            if now.zip(then).is_some_and(|(now, then)| Arc::ptr_eq(now, then)) {
                continue;
            }
            let spec_of =
                |of: Option<&'_ Arc<OfAlias>>, index: &str| of.and_then(|of| of.get(index).cloned());
            let indices = [now, then].into_iter().flatten().flat_map(|of| of.keys());
            touched.extend(
                indices.filter(|index| spec_of(now, index) != spec_of(then, index)).map(String::as_str),
            );
        }
        touched
            .into_iter()
            .filter_map(|index| Some((self.uuid(index)?.to_owned(), self.aliases_of(index))))
            .filter(|(uuid, _)| uuid != new)
            .collect()
    }
}
