//! The indices of the node: which there are, and each one's write path, reads and upkeep.

pub(crate) mod admin;
pub(crate) mod cat;
pub(crate) mod field_mapping;
mod handle;
mod maintenance;
mod metadata;
pub(crate) mod names;
mod record;
mod recovery;
mod settings;
mod upgrade;
mod versions;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use sparrow_index::mapping::Mapping;
use sparrow_index::{IndexOptions, SparrowIndex};
use sparrow_storage::{DataDir, Wal, durable};

pub(crate) use self::handle::{Found, IndexHandle};
pub(crate) use self::maintenance::Maintenance;
pub(crate) use self::metadata::Metadata;
pub(crate) use self::settings::Settings;
pub(crate) use self::write::{
    ExternalVersion, PRIMARY_TERM, Source, WriteKind, WriteOp, WriteOutcome, generate_id,
};
use crate::error::EngineError;
use crate::options::EngineOptions;
use crate::pattern;

/// Name of the first folder of segments.
const FIRST_FOLDER: &str = "segments-1";

/// The open indices by name.
#[derive(Default)]
pub(crate) struct Registry {
    by_name: RwLock<BTreeMap<String, Arc<IndexHandle>>>,
}

impl Registry {
    pub(crate) fn all(&self) -> Vec<Arc<IndexHandle>> {
        self.by_name.read().values().cloned().collect()
    }
}

/// All indices.
pub(crate) struct Indices {
    data: Arc<DataDir>,
    registry: Arc<Registry>,
    /// Serialises creation and deletion.
    admin: Mutex<()>,
    /// Indices are upgraded one at a time.
    upgrading: Mutex<()>,
    index_options: IndexOptions,
    flush_threshold: u64,
    maintenance: Maintenance,
}

/// How a multi-target expression treats what is not there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResolveOptions {
    pub(crate) ignore_unavailable: bool,
    pub(crate) allow_no_indices: bool,
}

impl Default for ResolveOptions {
    fn default() -> Self {
        Self { ignore_unavailable: false, allow_no_indices: true }
    }
}

impl ResolveOptions {
    /// Reads `ignore_unavailable` and `allow_no_indices`.
    pub(crate) fn from_params(params: &crate::params::Params<'_>) -> Result<Self, EngineError> {
        let default = Self::default();
        Ok(Self {
            ignore_unavailable: params.bool("ignore_unavailable", default.ignore_unavailable)?,
            allow_no_indices: params.bool("allow_no_indices", default.allow_no_indices)?,
        })
    }
}

impl Indices {
    /// Opens every index that the data directory knows, and replays its log.
    ///
    /// # Errors
    /// When one cannot be read: serving the rest would hide the loss.
    pub(crate) fn open(data: Arc<DataDir>, options: &EngineOptions) -> Result<Self, EngineError> {
        let indices = Self {
            data: data.clone(),
            registry: Arc::new(Registry::default()),
            admin: Mutex::new(()),
            upgrading: Mutex::new(()),
            index_options: IndexOptions {
                memory_budget: options.index_buffer_bytes,
                sparse_format: options.sparse_format,
                ..IndexOptions::default()
            },
            flush_threshold: options.flush_threshold_bytes,
            maintenance: Maintenance::default(),
        };
        let mut known = Vec::new();
        for store in data.list(metadata::STORE_PREFIX)? {
            if let Some(metadata) = Metadata::load(&data, &store)? {
                known.push(metadata.uuid.clone());
                let handle = Arc::new(indices.open_one(metadata)?);
                indices.registry.by_name.write().insert(handle.name.clone(), handle);
            }
        }
        // Folders without metadata: of an index whose creation or deletion was cut short.
        for uuid in durable::list_dir(&data.path().join("indices"))? {
            if !known.contains(&uuid) {
                handle::remove_folder(&data.index_dir(&uuid));
            }
        }
        Ok(indices)
    }

    fn open_one(&self, metadata: Metadata) -> Result<IndexHandle, EngineError> {
        let root = self.data.index_dir(&metadata.uuid);
        // Folders of an upgrade that was cut short, or whose old form was not removed any more.
        for folder in durable::list_dir(&root)? {
            if folder.starts_with("segments-") && folder != metadata.folder {
                handle::remove_folder(&root.join(folder));
            }
        }
        let (index, covered) =
            SparrowIndex::open(&root.join(&metadata.folder), &metadata.mapping, &self.index_options)?;
        let (wal, log) = Wal::open(&root.join("wal"))?;
        let replayed = recovery::apply(log, &index, &metadata.mapping, &metadata.settings, covered)?;
        if replayed.records > 0 {
            tracing::info!(index = metadata.name, records = replayed.records, "replayed the log");
            index.refresh()?;
        }
        let next_seq_no = covered.max(replayed.last_seq_no).map_or(0, |last| last + 1);
        Ok(IndexHandle::new(self.data.clone(), metadata, index, wal, next_seq_no))
    }

    /// Starts the background work.
    pub(crate) fn start_maintenance(&self) {
        self.maintenance.start(&self.registry, self.flush_threshold);
    }

    /// Ends the background work and flushes everything.
    pub(crate) fn close(&self) {
        self.maintenance.stop();
        for handle in self.registry.all() {
            if let Err(error) = handle.flush() {
                tracing::error!(index = handle.name, %error, "flush at the end failed; the log keeps the writes");
            }
        }
    }

    /// An index by its name.
    ///
    /// # Errors
    /// [`EngineError::IndexNotFound`].
    pub(crate) fn get(&self, name: &str) -> Result<Arc<IndexHandle>, EngineError> {
        let found = self.registry.by_name.read().get(name).cloned();
        found.ok_or_else(|| EngineError::IndexNotFound { name: name.to_owned() })
    }

    /// The index to write to: made with a dynamic mapping when it is not there, as Elasticsearch does.
    ///
    /// # Errors
    /// [`EngineError::InvalidIndexName`], or what creation says.
    pub(crate) fn get_or_create(&self, name: &str) -> Result<Arc<IndexHandle>, EngineError> {
        match self.get(name) {
            Ok(handle) => Ok(handle),
            Err(_) => match self.create(name, Settings::default(), Mapping::empty()) {
                // Another writer made it in between.
                Err(EngineError::IndexAlreadyExists { .. }) => self.get(name),
                other => other,
            },
        }
    }

    /// All indices, by name.
    pub(crate) fn all(&self) -> Vec<Arc<IndexHandle>> {
        self.registry.all()
    }

    /// The indices of an expression: names, patterns with `*`, `_all`, exclusions with `-`, separated by commas.
    ///
    /// # Errors
    /// [`EngineError::IndexNotFound`] for a name that is not there, unless it may be unavailable.
    pub(crate) fn resolve(
        &self,
        expression: &str,
        options: ResolveOptions,
    ) -> Result<Vec<Arc<IndexHandle>>, EngineError> {
        let mut found: BTreeMap<String, Arc<IndexHandle>> = BTreeMap::new();
        let mut has_pattern = expression.is_empty();
        for part in expression.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if let Some(excluded) = part.strip_prefix('-').filter(|_| has_pattern) {
                found.retain(|name, _| !pattern::matches(excluded, name));
            } else if part == "_all" || part.contains('*') {
                has_pattern = true;
                let pattern = if part == "_all" { "*" } else { part };
                for handle in self.all() {
                    // Hidden indices only answer to patterns that say so.
                    let hidden = handle.name.starts_with('.') && !pattern.starts_with('.');
                    if pattern::matches(pattern, &handle.name) && !hidden {
                        found.insert(handle.name.clone(), handle);
                    }
                }
            } else {
                match self.get(part) {
                    Ok(handle) => {
                        found.insert(handle.name.clone(), handle);
                    }
                    Err(_) if options.ignore_unavailable => {}
                    Err(error) => return Err(name_error(part).unwrap_or(error)),
                }
            }
        }
        if expression.is_empty() {
            found.extend(
                self.all().into_iter().filter(|h| !h.name.starts_with('.')).map(|h| (h.name.clone(), h)),
            );
        }
        if found.is_empty() && has_pattern && !options.allow_no_indices {
            return Err(EngineError::IndexNotFound { name: expression.to_owned() });
        }
        Ok(found.into_values().collect())
    }

    /// Creates an index; durable when this returns.
    ///
    /// # Errors
    /// [`EngineError::InvalidIndexName`], [`EngineError::IndexAlreadyExists`], or a failure of the disk.
    pub(crate) fn create(
        &self,
        name: &str,
        settings: Settings,
        mapping: Mapping,
    ) -> Result<Arc<IndexHandle>, EngineError> {
        names::check(name)?;
        let _one = self.admin.lock();
        if let Ok(existing) = self.get(name) {
            return Err(EngineError::IndexAlreadyExists {
                name: name.to_owned(),
                uuid: existing.uuid.clone(),
            });
        }
        let metadata = Metadata {
            name: name.to_owned(),
            uuid: new_uuid(),
            creation_millis: now_millis(),
            folder: FIRST_FOLDER.to_owned(),
            settings,
            mapping,
            field_models: BTreeMap::new(),
        };
        let root = self.data.index_dir(&metadata.uuid);
        durable::create_dir_all(&root)?;
        let index = SparrowIndex::create(&root.join(FIRST_FOLDER), &metadata.mapping, &self.index_options)?;
        let (wal, _) = Wal::open(&root.join("wal"))?;
        durable::sync_dir(&root)?;
        // The index exists from here on; a crash before leaves a folder that the next start removes.
        metadata.save(&self.data)?;
        let handle = Arc::new(IndexHandle::new(self.data.clone(), metadata, index, wal, 0));
        self.registry.by_name.write().insert(name.to_owned(), handle.clone());
        Ok(handle)
    }

    /// Deletes an index.
    ///
    /// # Errors
    /// [`EngineError::IndexNotFound`], or a failure of the disk, after which it is still there.
    pub(crate) fn delete(&self, name: &str) -> Result<(), EngineError> {
        let _one = self.admin.lock();
        let handle = self.get(name)?;
        handle.delete()?;
        self.registry.by_name.write().remove(name);
        Ok(())
    }
}

/// A name that could never exist is told as such.
fn name_error(name: &str) -> Option<EngineError> {
    name.starts_with('_').then(|| EngineError::InvalidIndexName {
        name: name.to_owned(),
        problem: "must not start with '_'.".to_owned(),
    })
}

/// Milliseconds since the epoch.
pub(crate) fn now_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

fn new_uuid() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(uuid::Uuid::new_v4().as_bytes())
}
