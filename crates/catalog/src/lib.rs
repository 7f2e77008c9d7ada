//! The indices of the node: which ones exist, and how each is written, read and maintained.

mod access;
pub mod alias_changes;
mod alias_store;
pub mod aliases;
mod background;
pub mod blocks;
mod changes;
pub mod claim;
pub mod cluster_settings;
mod copy;
pub mod counters;
mod create;
pub mod date_math;
mod disk;
mod doubts;
mod expand;
mod flattened_keys;
mod gone;
mod handle;
mod identity;
mod ids;
mod known_settings;
mod leftovers;
mod maintenance;
pub mod memory;
mod memory_limits;
mod metadata;
pub mod model_change;
pub mod model_steps;
mod models_link;
pub mod names;
mod next_attempt;
mod node;
mod op;
pub mod opened;
mod planned;
mod prepare;
mod recovery;
mod registry;
mod reopen;
pub mod resolve;
mod resolve_options;
mod restored;
pub mod search_groups;
mod search_limits;
pub mod semantic;
pub mod settings;
pub mod slow_log;
mod startup;
pub mod templates;
pub mod texts;
mod timed;
mod upgrade;
mod watermark;
mod write;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use sparrow_mapping::SemanticText;
use sparrow_tantivy_index::{FilterCacheStats, Format, IndexOptions};
use sparrow_write_ahead_log::{DataDir, StorageError, durable};
use sparrow_write_path::{Shard, ShardError, ShardOptions};

use self::alias_store::AliasStore;
use self::aliases::Stored;
pub use self::cluster_settings::ClusterSettings;
pub use self::create::CreateIndex;
pub use self::date_math::resolve as concrete_name;
use self::disk::{DiskWatch, Flooded};
pub use self::expand::only_an_index;
pub use self::handle::{IndexHandle, StoredDocument, check_routing, remove_folder};
use self::handle::{NotDeleted, Refusals, SharedMetadata};
pub use self::identity::{new_uuid, now_millis};
pub use self::ids::generate_id;
use self::leftovers::Leftovers;
pub use self::maintenance::{Maintenance, Task as BackgroundTask};
pub use self::metadata::{Metadata, STORE_PREFIX as METADATA_PREFIX};
use self::models_link::ModelsLink;
use self::next_attempt::NextAttempt;
pub use self::node::Node;
pub use self::op::{ExternalVersion, Source, WriteKind, WriteOp, WriteOutcome, WriteResult};
use self::opened::Opened;
pub use self::opened::RestoredFrom;
pub use self::recovery::reread;
pub use self::registry::IndexNames;
use self::registry::Registry;
pub use self::resolve::Resolved;
pub use self::resolve_options::ResolveOptions;
pub use self::restored::Arrival;
pub use self::search_limits::SearchLimits;
pub use self::semantic::chunks_while;
pub use self::settings::{Settings, insert_nested};
pub use self::templates::TemplateSet;
use self::templates::{Body, Templates};
pub use self::write::PRIMARY_TERM;
use sparrow_models::Models;
use sparrow_models::endpoints::SemanticIndices;
use sparrow_request::caught;
use sparrow_request::error::EngineError;
use sparrow_request::rights::{Action, Right};
use sparrow_wire::shape::Named;
pub use sparrow_write_path::Record;

/// Name of the first folder of segments.
const FIRST_FOLDER: &str = "segments-1";

/// Parts of requests that have names of their own in the OpenAPI document, and what they hold.
pub fn schemas() -> [Named; 2] {
    [("Alias", aliases::AliasSpec::shape()), ("Settings", Settings::shape())]
}

/// The engine options that the indices need.
#[derive(Debug, Clone, Copy)]
pub struct IndicesOptions {
    /// Bytes that one indexing buffer may take before it becomes a segment.
    pub index_buffer_bytes: usize,
    /// Bytes of log after which an index is flushed.
    pub flush_threshold_bytes: u64,
    /// Layout of sparse postings in new indices.
    pub sparse_format: Format,
}

/// All indices of the node, with their aliases and templates.
pub struct Indices {
    data: Arc<DataDir>,
    registry: Arc<Registry>,
    /// Held while indices are created or deleted, or aliases changed.
    admin: Arc<Mutex<()>>,
    leftovers: Arc<Leftovers>,
    aliases: Arc<AliasStore>,
    next_attempt: NextAttempt,
    /// Held by the upgrade that runs: indices are upgraded one at a time.
    upgrading: Mutex<()>,
    /// How indices find the models that encode their texts.
    models: ModelsLink,
    /// How background work finds this object.
    shared: Arc<OnceLock<Weak<Self>>>,
    index_options: IndexOptions,
    flush_threshold: u64,
    flooded: Flooded,
    maintenance: Maintenance,
    pub templates: Templates,
    cluster: Arc<ClusterSettings>,
}

/// Runs `open`; a panic in it becomes an error of this index, so that the other indices can still be served.
fn opened<T>(open: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    caught(open).unwrap_or_else(|message| {
        Err(EngineError::internal(format!("opening it ended in a failure of the server: {message}")))
    })
}

/// Checks that the folder of an index's log exists, as it has since the index was created.
///
/// # Errors
/// When it is missing, so that nobody knows what was in it.
pub fn check_log(root: &Path) -> Result<(), EngineError> {
    let log = root.join("wal");
    if log.is_dir() {
        return Ok(());
    }
    let detail = "the folder of the log is missing".to_owned();
    Err(StorageError::Corrupt { path: log, detail }.into())
}

/// The text of an error, with paths relative to the data directory.
fn reason(error: &EngineError, data: &DataDir) -> String {
    error.to_string().replace(&format!("{}{}", data.path().display(), std::path::MAIN_SEPARATOR), "")
}

impl Indices {
    /// Opens every index that has metadata in the data directory, and replays its log. An index that cannot be read does not keep
    /// the others from being served: requests to it answer with the reason, and health is red.
    ///
    /// # Errors
    /// When the data directory itself cannot be read.
    pub fn open(
        data: Arc<DataDir>,
        options: &IndicesOptions,
        cluster: Arc<ClusterSettings>,
    ) -> Result<Self, EngineError> {
        let leftovers: Arc<Leftovers> = Arc::default();
        let indices = Self {
            data: data.clone(),
            registry: Arc::new(Registry::default()),
            admin: Arc::default(),
            aliases: Arc::new(AliasStore::new(data.clone(), leftovers.clone())),
            leftovers,
            next_attempt: NextAttempt::default(),
            upgrading: Mutex::new(()),
            models: ModelsLink::default(),
            shared: Arc::default(),
            index_options: IndexOptions {
                memory_budget: options.index_buffer_bytes,
                sparse_format: options.sparse_format,
                ..IndexOptions::default()
            },
            flush_threshold: options.flush_threshold_bytes,
            flooded: Flooded::default(),
            maintenance: Maintenance::default(),
            templates: Templates::open(data.clone())?,
            cluster,
        };
        let stored = Stored::load(&data)?;
        for uuid in &stored.removed {
            claim::withdraw(&data.index_dir(uuid))?;
            data.remove(&metadata::store_name(uuid))?;
        }
        let (mut names, uuids) = indices.open_stored()?;
        let with: Vec<String> = stored.with.keys().cloned().collect();
        for (uuid, aliases) in stored.in_force(&uuids) {
            let of = |name: &&String| names.uuid(name) == Some(uuid.as_str());
            let Some(index) = names.indices.keys().chain(names.broken.keys()).find(of).cloned() else {
                continue;
            };
            for (alias, spec) in aliases {
                names.add_alias(alias, index.clone(), spec);
            }
        }
        indices.registry.change(|it| *it = names);
        if !with.is_empty() {
            indices.aliases.resolve(&indices.names(), with.into_iter());
        }
        leftovers::clear_folders(&data, &uuids)?;
        Ok(indices)
    }

    /// Tells the indices which models encode their texts.
    pub fn link(self: &Arc<Self>, models: &Arc<Models>) {
        // They are opened once.
        let _ = self.models.set(Arc::downgrade(models));
        let _ = self.shared.set(Arc::downgrade(self));
    }

    /// Number of changes of indices, their settings, mappings and aliases since the process started.
    pub fn changes(&self) -> u64 {
        changes::count()
    }

    /// Size and hit counts of the filter cache that all indices share.
    pub fn filter_cache_stats(&self) -> FilterCacheStats {
        self.index_options.filter_cache.stats()
    }

    /// How often a background task has failed since the start, over all indices.
    pub fn background_failures(&self, task: BackgroundTask) -> u64 {
        self.maintenance.failures().of(task)
    }

    /// The indices and aliases that exist now.
    pub fn names(&self) -> Arc<IndexNames> {
        self.registry.names()
    }

    fn open_one(&self, metadata: Metadata) -> Result<IndexHandle, EngineError> {
        let began = Instant::now();
        let root = self.data.index_dir(&metadata.uuid);
        let options = self.options(&metadata.name, &metadata.settings)?;
        let folder = root.join(&metadata.folder);
        let mapping = metadata.mapping.clone();
        let metadata: SharedMetadata = Arc::new(RwLock::new(Arc::new(metadata)));
        let (shard, replayed) =
            Shard::open(shard_options(root.clone(), options, &metadata), &folder, &mapping)
                .map_err(opening)?;
        // Folders of an upgrade that was cut short, or whose old form was not removed any more: only once it is certain that they
        // are not needed.
        for other in durable::list_dir(&root)? {
            if other.starts_with("segments-") && root.join(&other) != folder {
                handle::remove_folder(&root.join(other));
            }
        }
        let opened = Opened::existing(began, replayed, &folder);
        Ok(self.handle(metadata, shard, opened))
    }

    fn handle(&self, metadata: SharedMetadata, shard: Shard, opened: Opened) -> IndexHandle {
        shard.remember_deletions_for(metadata.read().settings.gc_deletes());
        let refusals = Refusals { flooded: self.flooded.clone(), doubts: self.aliases.doubts() };
        IndexHandle::new(self.data.clone(), self.models.clone(), metadata, shard, opened, refusals)
    }

    /// The options for opening an index with these settings.
    fn options(&self, name: &str, settings: &Settings) -> Result<IndexOptions, EngineError> {
        Ok(IndexOptions { analysis: settings.analysis()?, name: name.into(), ..self.index_options.clone() })
    }

    /// Removes the files of indices that could not be created, one of which could take the place of a closed index.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn clear_leftovers(&self) -> Result<(), EngineError> {
        self.leftovers.clear(&self.data)
    }

    /// Starts the background work; `on_tick` is called about once a second.
    pub fn start_maintenance(&self, on_tick: impl Fn() + Send + 'static) {
        let disk = DiskWatch::new(self.data.clone(), self.cluster.clone(), self.flooded.clone());
        disk.look();
        let (leftovers, data) = (self.leftovers.clone(), self.data.clone());
        let (registry, shared) = (self.registry.clone(), self.shared.clone());
        let (aliases, admin) = (self.aliases.clone(), self.admin.clone());
        let housekeeping = move || {
            disk.look();
            data.settle();
            leftovers.retry(&data);
            aliases.settle(&admin, &registry);
            on_tick();
            if registry.names().broken.values().any(|broken| broken.may_open_later)
                && let Some(indices) = shared.get().and_then(Weak::upgrade)
            {
                indices.try_again();
            }
        };
        self.maintenance.start(&self.registry, self.flush_threshold, Box::new(housekeeping));
    }

    /// Ends the background work and flushes everything.
    pub fn close(&self) {
        self.maintenance.stop();
        self.next_attempt.finish();
        self.aliases.settle(&self.admin, &self.registry);
        for handle in self.registry.all() {
            if let Err(error) = handle.flush() {
                tracing::error!(index = handle.name, %error, "flush at the end failed; the log keeps the writes");
            }
            handle.shard.close();
        }
    }

    /// The index to write to; if the name is free, the index is created, as in Elasticsearch, provided that the caller may do that.
    ///
    /// # Errors
    /// 403; [`EngineError::InvalidIndexName`], or the errors of creation; an alias without a write index.
    pub fn get_or_create(&self, name: &str, right: Right<'_>) -> Result<Arc<IndexHandle>, EngineError> {
        let resolved = date_math::resolve(name)?;
        right.check([resolved.as_str()])?;
        if self.names().write_index(&resolved)?.is_some() {
            return self.write_target(&resolved, right);
        }
        let making = right.instead(Action::AutoCreate);
        making.check([resolved.as_str()])?;
        self.cluster.check_auto_create(&resolved)?;
        match self
            .planned_as(&resolved, name, &Body::default())
            .and_then(|planned| self.create(planned, making))
        {
            // Another writer made it in between.
            Err(EngineError::IndexAlreadyExists { .. }) => self.write_target(&resolved, right),
            other => other,
        }
    }

    /// Deletes an index and removes it from its aliases.
    ///
    /// # Errors
    /// [`EngineError::IndexNotFound`], or a failure of the disk: the index then exists as before; or, if the disk does not even let
    /// its metadata be written again, no longer exists, and its files are removed as soon as the disk allows it.
    pub fn delete(&self, name: &str) -> Result<(), EngineError> {
        let _one = self.admin.lock();
        // One of them could take the place of the index, and then have its name.
        self.leftovers.clear(&self.data)?;
        let before = self.names();
        let Some(uuid) = before.uuid(name) else {
            return Err(EngineError::IndexNotFound { name: name.to_owned() });
        };
        self.aliases.certain_without(uuid, &before)?;
        let half = match self.remove_files(&before, name) {
            Ok(()) => None,
            Err(failed) if failed.half => Some(failed.error),
            Err(failed) => return Err(failed.error),
        };
        self.registry.change(|names| names.remove(name));
        if half.is_some() {
            self.leftovers.add(&self.data, uuid);
        }
        let after = self.names();
        if !Arc::ptr_eq(&after.aliases, &before.aliases)
            && let Err(error) = self.aliases.save(&self.aliases.of(&after))
        {
            // What is left of them names an index that is not there.
            tracing::warn!(index = name, %error, "aliases of a deleted index are left in the store");
        }
        half.map_or(Ok(()), Err)
    }

    /// Removes what an index has on the disk, its metadata first.
    fn remove_files(&self, names: &IndexNames, name: &str) -> Result<(), NotDeleted> {
        if let Some(handle) = names.indices.get(name) {
            return handle.delete();
        }
        if let Some(broken) = names.broken.get(name) {
            let as_before = |error| NotDeleted { error, half: false };
            claim::withdraw(&self.data.index_dir(&broken.uuid)).map_err(as_before)?;
            self.data.remove(&metadata::store_name(&broken.uuid)).map_err(|error| as_before(error.into()))?;
            handle::remove_folder(&self.data.index_dir(&broken.uuid));
        }
        Ok(())
    }
}

impl SemanticIndices for Indices {
    fn with_field(&self, condition: &dyn Fn(&SemanticText) -> bool) -> Vec<String> {
        let has = |handle: &IndexHandle| {
            let mapping = handle.mapping();
            mapping.slots().any(|slot| condition(slot.settings))
        };
        let names = self.names();
        names.indices.values().filter(|handle| has(handle)).map(|handle| handle.name.clone()).collect()
    }
}

/// The options of an index's shard: its folder, and how it reads logged documents, the mapping and settings.
fn shard_options(root: PathBuf, index: IndexOptions, metadata: &SharedMetadata) -> ShardOptions {
    let (settings, mapped) = (metadata.clone(), metadata.clone());
    // Chosen when the index is created.
    let ignore_malformed = metadata.read().settings.limits().ignore_malformed;
    ShardOptions {
        name: metadata.read().name.as_str().into(),
        root,
        index,
        reread: Arc::new(move |mapping, id, logged| reread(mapping, ignore_malformed, id, logged)),
        mapping: Arc::new(move || mapped.read().mapping.clone()),
        acknowledges_early: Arc::new(move || settings.read().settings.is_async()),
    }
}

/// An error of opening or creating a shard.
fn opening(error: ShardError) -> EngineError {
    match error {
        ShardError::Index(error) => error.into(),
        ShardError::Storage(error) => error.into(),
        other => EngineError::internal(other.to_string()),
    }
}
