//! One open index: its log, its segments, and what is written but not searchable yet.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use sparrow_mapping::Mapping;
use sparrow_mapping::passages::{self, StoredParts};
use sparrow_tantivy_index::{Snapshot, SparrowIndex};
use sparrow_write_ahead_log::{DataDir, StorageError, durable};
use sparrow_write_path::{LiveVersion, Shard, ShardError, Writer};

use super::background::Semaphores;
use super::blocks;
use super::counters::Counters;
use super::disk::Flooded;
use super::doubts::Doubts;
use super::flattened_keys::FlattenedKeys;
use super::metadata::Metadata;
use super::model_change::Filling;
use super::models_link::ModelsLink;
use super::opened::Opened;
use super::settings::Settings;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::request::CancelFlag;
use sparrow_runtime::{attempt, work};

/// The metadata of an index in force: replaced as a whole, and shared with the layers below that read settings from it.
pub type SharedMetadata = Arc<RwLock<Arc<Metadata>>>;

/// A document found by its id.
#[derive(Debug, Clone)]
pub struct StoredDocument {
    pub seq_no: u64,
    pub version: u64,
    /// The JSON source of the document, byte for byte as it is stored.
    pub source: Arc<[u8]>,
    /// The encoded passages of its `semantic_text` fields, if it has any.
    pub passages: Option<Vec<u8>>,
    /// The routing that the document was written with.
    pub routing: Option<String>,
}

/// One index that requests can be made of: its metadata, its shard, and what is counted and done in the background for it.
pub struct IndexHandle {
    pub name: String,
    pub uuid: String,
    pub data: Arc<DataDir>,
    pub models: ModelsLink,
    pub metadata: SharedMetadata,
    /// The index's log, its segments, and what was written but is not searchable yet.
    pub shard: Shard,
    last_refresh: Mutex<Instant>,
    /// How many searches, writes, refreshes and other operations there were since the index was opened, and how long they took.
    pub counters: Arc<Counters>,
    pub opened: Opened,
    /// Names (32 hexadecimal digits) of the segments in the last durable commit; a crash would lose newer ones, and recovery would
    /// make them again from the log.
    pub durable_segments: Mutex<HashSet<String>>,
    /// Which background tasks of the index are running, and when one that failed is tried again.
    pub(super) background: Semaphores,
    refusals: Refusals,
    last_flush: Mutex<Instant>,
    pub(super) flattened_keys: FlattenedKeys,
    /// The task that gives documents vectors of a second model, while it runs.
    pub filling: Mutex<Option<Arc<Filling>>>,
    /// Why filling stopped, where the disk took no note of it.
    pub unwritten_failure: Mutex<Option<String>>,
}

/// State shared by all indices that can make them refuse writes.
pub(super) struct Refusals {
    pub(super) flooded: Flooded,
    pub(super) doubts: Arc<Doubts>,
}

impl IndexHandle {
    pub(super) fn new(
        data: Arc<DataDir>,
        models: ModelsLink,
        metadata: SharedMetadata,
        shard: Shard,
        opened: Opened,
        refusals: Refusals,
    ) -> Self {
        let current = metadata.read().clone();
        // What a replay wrote is in no durable commit.
        let durable = if opened.replayed == 0 { segment_names(&shard.index()) } else { HashSet::new() };
        Self {
            name: current.name.clone(),
            uuid: current.uuid.clone(),
            data,
            models,
            metadata,
            shard,
            last_refresh: Mutex::new(Instant::now()),
            counters: Arc::default(),
            opened,
            durable_segments: Mutex::new(durable),
            background: Semaphores::default(),
            refusals,
            last_flush: Mutex::new(Instant::now()),
            flattened_keys: FlattenedKeys::default(),
            filling: Mutex::default(),
            unwritten_failure: Mutex::default(),
        }
    }

    /// Time since the last flush, or since the index was opened.
    pub fn since_flush(&self) -> std::time::Duration {
        self.last_flush.lock().elapsed()
    }

    /// Whether writes are refused because the disk is nearly full.
    pub fn is_flooded(&self) -> bool {
        self.refusals.flooded.load(Relaxed)
    }

    /// Whether the next start may remove the index, as the disk failed while it was to be removed.
    pub fn may_be_removed(&self) -> bool {
        self.refusals.doubts.may_remove(&self.uuid)
    }

    /// Whether the index takes no writes until the disk works again.
    pub fn refuses_writes(&self) -> bool {
        self.may_be_removed() || self.shard.refuses_writes()
    }

    /// The settings in force.
    pub fn settings(&self) -> Settings {
        self.metadata.read().settings.clone()
    }

    /// Whether the index is closed.
    pub fn is_closed(&self) -> bool {
        self.metadata.read().closed
    }

    /// How the shard came to be, as the API names it: `EXISTING_STORE` for a closed index, as closing reopens its shard.
    pub fn source_of_recovery(&self) -> &'static str {
        if self.is_closed() { "EXISTING_STORE" } else { self.opened.source() }
    }

    /// The only shard of this index, in the form that listings of shards show; `node` is the id of the node.
    pub fn primary_shard(&self, node: &str) -> Value {
        json!({
            "state": "STARTED", "primary": true, "node": node, "relocating_node": null, "shard": 0,
            "index": self.name, "allocation_id": {"id": self.uuid}, "relocation_failure_info": {"failed_attempts": 0},
        })
    }

    /// The mapping in force.
    pub fn mapping(&self) -> Arc<Mapping> {
        self.index().mapping()
    }

    /// The index's segments, open for searching and writing.
    pub fn index(&self) -> Arc<SparrowIndex> {
        self.shard.index()
    }

    /// The searchable state of the index at this moment.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.index().searcher()
    }

    /// Fingerprint of the model whose vectors the field at `path`, or the one that `path` is an alias of, holds; none if it holds none.
    pub fn field_model(&self, path: &str) -> Option<String> {
        let mapping = self.mapping();
        self.metadata.read().field_models.get(&*mapping.concrete(path)).cloned()
    }

    /// Folder of the index in the data directory.
    pub fn root(&self) -> PathBuf {
        self.data.index_dir(&self.uuid)
    }

    /// A document by its id; sees writes that are not searchable yet.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<StoredDocument>, EngineError> {
        if let Some(LiveVersion { seq_no, version, source }) = self.shard.live_version(id) {
            if attempt::give_up_document(source.as_ref().map_or(0, |stored| stored.len())) {
                return Err(EngineError::Cancelled);
            }
            return Ok(source.map(|stored| {
                let StoredParts { json, passages, routing } = passages::split(&stored);
                let is_whole = json.len() == stored.len();
                StoredDocument {
                    seq_no,
                    version,
                    passages: passages.map(<[u8]>::to_vec),
                    routing: routing.map(str::to_owned),
                    source: if is_whole { Arc::clone(&stored) } else { Arc::from(json) },
                }
            }));
        }
        self.get_searchable(id)
    }

    /// Reads a document by its id, as of the last refresh.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn get_searchable(&self, id: &str) -> Result<Option<StoredDocument>, EngineError> {
        let snapshot = self.snapshot();
        let Some(visible) = snapshot.lookup(id)? else { return Ok(None) };
        let stored = snapshot.fetch(visible.addr)?;
        Ok(Some(StoredDocument {
            seq_no: stored.seq_no,
            version: stored.version,
            source: Arc::from(stored.source.as_slice()),
            passages: stored.passages,
            routing: stored.routing,
        }))
    }

    /// Checks that a request for the document `id` has a routing, if the mapping requires one.
    ///
    /// # Errors
    /// `routing_missing_exception`
    pub fn check_routing(&self, id: &str, routing: Option<&str>) -> Result<(), EngineError> {
        check_routing(&self.metadata.read().mapping, &self.name, id, routing)
    }

    /// Time since the last refresh.
    pub fn since_refresh(&self) -> std::time::Duration {
        self.last_refresh.lock().elapsed()
    }

    /// The error of this index that an error of its shard means.
    pub fn failed(&self, error: ShardError) -> EngineError {
        match error {
            // Whatever failed, it was for want of the files of an index that is gone.
            _ if self.shard.is_closed() => EngineError::IndexNotFound { name: self.name.clone() },
            ShardError::Closed => EngineError::IndexNotFound { name: self.name.clone() },
            ShardError::Cancelled => EngineError::Cancelled,
            error if error.is_disk_full() => blocks::flooded(&self.name),
            ShardError::Index(error) => error.into(),
            ShardError::Storage(error) => error.into(),
            ShardError::ReadOnly { reason, .. } => StorageError::Poisoned { reason }.into(),
            other => EngineError::internal(other.to_string()),
        }
    }

    /// Makes all writes so far searchable.
    ///
    /// # Errors
    /// When the segments cannot be written. The writes are not lost.
    pub fn refresh(&self) -> Result<(), EngineError> {
        let _running = self.counters.refresh.begin();
        // The buffered documents come from many requests, so this request does not pay for writing them.
        let _nobody = work::leave_behind();
        self.shard.refresh().map_err(|error| self.failed(error))?;
        *self.last_refresh.lock() = Instant::now();
        Ok(())
    }

    /// Commits all writes so far to durable segments, and trims the log.
    ///
    /// # Errors
    /// When the disk refuses; the log then keeps everything.
    pub fn flush(&self) -> Result<(), EngineError> {
        let running = self.counters.flush.begin();
        let _nobody = work::leave_behind();
        self.shard.flush().map_err(|error| self.failed(error))?;
        drop(running);
        *self.durable_segments.lock() = segment_names(&self.index());
        *self.last_flush.lock() = Instant::now();
        *self.last_refresh.lock() = Instant::now();
        Ok(())
    }

    /// Waits until a refresh has shown all writes made before the call: the next periodic one, or, without periodic refreshes
    /// (interval −1), one that this runs itself.
    ///
    /// # Errors
    /// When that refresh fails, the index is deleted or the request is cancelled.
    pub fn wait_for_refresh(&self, cancel: &CancelFlag) -> Result<(), EngineError> {
        let regular = self.settings().refresh_interval().is_some();
        let cancelled = || cancel.is_cancelled();
        self.shard.wait_for_refresh(regular, &cancelled).map_err(|error| self.failed(error))
    }

    /// Replaces the metadata, on the disk first. The caller holds the right to change it, so that the index is not deleted
    /// meanwhile, and no other change comes between what `change` sees and what is saved.
    ///
    /// # Errors
    /// What `change` returns, or a failure of the disk; the metadata in force is then unchanged.
    pub fn replace_metadata(
        &self,
        _: &Writer<'_>,
        change: impl FnOnce(&mut Metadata) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut changed = Metadata::clone(&self.metadata.read().clone());
        change(&mut changed)?;
        // Readers go on with what is in force until the new one is durable.
        changed.save(&self.data)?;
        *self.metadata.write() = Arc::new(changed);
        self.shard.folder_is_certain();
        super::changes::note();
        Ok(())
    }

    /// Makes sure that the disk holds the metadata in force, and no change that was refused: for requests that are acknowledged
    /// without changing anything.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn settle_metadata(&self) -> Result<(), EngineError> {
        Ok(self.data.settle_store(&super::metadata::store_name(&self.uuid))?)
    }

    /// Waits for the exclusive right to change metadata.
    ///
    /// # Errors
    /// When the index was deleted.
    pub fn changer(&self) -> Result<Writer<'_>, EngineError> {
        self.shard.changer().map_err(|error| self.failed(error))
    }

    /// Saves which models filled which fields; `filled` has pairs of field path and fingerprint.
    pub fn note_models(&self, filled: &[(String, String)]) -> Result<(), EngineError> {
        let has_all = {
            let metadata = self.metadata.read();
            filled.iter().all(|(field, model)| metadata.field_models.get(field) == Some(model))
        };
        if has_all {
            return self.settle_metadata();
        }
        self.replace_metadata(&self.changer()?, |metadata| {
            metadata.field_models.extend(filled.iter().cloned());
            Ok(())
        })
    }

    /// Applies the saved mapping to the segments if an earlier attempt failed: a change based on the mapping still in force would
    /// undo what was saved, such as the slots of a model.
    ///
    /// # Errors
    /// When it fails again.
    pub fn settle_mapping(&self, writer: &mut Writer<'_>) -> Result<(), EngineError> {
        if !writer.may_lag() {
            return Ok(());
        }
        let saved = self.metadata.read().mapping.clone();
        match saved == *self.mapping() {
            true => Ok(()),
            false => writer.widen(&saved).map_err(|error| self.failed(error)),
        }
    }

    /// Saves a wider mapping and then applies it to the segments. It has to be based on the mapping in force after
    /// [`IndexHandle::settle_mapping`].
    pub fn widen_mapping(&self, writer: &mut Writer<'_>, mapping: &Mapping) -> Result<(), EngineError> {
        self.replace_metadata(writer, |metadata| {
            metadata.mapping = mapping.clone();
            Ok(())
        })?;
        writer.widen(mapping).map_err(|error| self.failed(error))
    }

    /// Removes the index's metadata and then its files. Searches that still hold a snapshot can finish.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn delete(&self) -> Result<(), NotDeleted> {
        let as_before = |error| NotDeleted { error, half: false };
        // None while the engine closes.
        let changer = self.changer().ok();
        super::claim::withdraw(&self.root()).map_err(as_before)?;
        let removed = self.data.remove(&super::metadata::store_name(&self.uuid));
        // Its metadata may be gone all the same when that failed.
        let kept =
            |changer: &Writer<'_>| removed.is_err() && self.replace_metadata(changer, |_| Ok(())).is_ok();
        let gone = changer.as_ref().is_some_and(|changer| !kept(changer));
        if gone && let Some(changer) = changer {
            changer.close();
        }
        if let Err(error) = removed {
            if !gone {
                super::claim::mark(&self.root());
            }
            return Err(NotDeleted { error: error.into(), half: gone });
        }
        remove_folder(&self.root());
        Ok(())
    }
}

/// Why an index was not deleted.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotDeleted {
    pub error: EngineError,
    /// Whether its metadata may be gone and could not be written again: the index is then closed, and what is left of it has to be
    /// removed. Otherwise the index is as before.
    pub half: bool,
}

/// Names of the searchable segments.
fn segment_names(index: &SparrowIndex) -> HashSet<String> {
    index.searcher().segment_names().collect()
}

/// Removes a folder that nothing refers to any more; what is left of it goes at the next start.
pub fn remove_folder(path: &std::path::Path) {
    if let Err(error) = durable::remove_dir_all(path) {
        tracing::warn!(%error, "a folder is left behind until the next start");
    }
}

/// Checks that a request for the document `id` of an index with this mapping has a routing, if the mapping requires one.
///
/// # Errors
/// `routing_missing_exception`
pub fn check_routing(
    mapping: &Mapping,
    index: &str,
    id: &str,
    routing: Option<&str>,
) -> Result<(), EngineError> {
    if routing.is_some() || !mapping.requires_routing() {
        return Ok(());
    }
    let exception =
        Exception::new("routing_missing_exception", format!("routing is required for [{index}]/[{id}]"))
            .with("index_uuid", "_na_")
            .with("index", index);
    Err(EngineError::api(400, exception))
}
