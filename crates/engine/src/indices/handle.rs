//! One open index: its log, its segments, and what is written but not searchable yet.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::{Condvar, Mutex, RwLock};
use sparrow_index::mapping::Mapping;
use sparrow_index::passages;
use sparrow_index::{DocMeta, IndexError, Snapshot, SparrowIndex};
use sparrow_storage::{DataDir, Wal, durable};

use super::metadata::Metadata;
use super::settings::Settings;
use super::stats::{Counters, Opened};
use super::versions::{LiveVersion, LiveVersions};
use crate::error::EngineError;
use crate::semantic::EngineLink;

/// State that only a writer touches; its lock makes writes to one index an ordered sequence.
pub(crate) struct WriteState {
    pub(crate) next_seq_no: u64,
    /// Set when the index was deleted: writes that waited for the lock must not revive it.
    pub(crate) closed: bool,
}

/// A document found by its id.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) seq_no: u64,
    pub(crate) version: u64,
    /// What is stored, byte for byte.
    pub(crate) source: Arc<[u8]>,
    /// The payload of its passages, if it has any.
    pub(crate) passages: Option<Vec<u8>>,
}

/// An open index.
pub(crate) struct IndexHandle {
    pub(crate) name: String,
    pub(crate) uuid: String,
    pub(crate) data: Arc<DataDir>,
    pub(crate) engine: EngineLink,
    pub(crate) metadata: RwLock<Arc<Metadata>>,
    /// Replaced as a whole by an upgrade.
    pub(crate) index: RwLock<Arc<SparrowIndex>>,
    pub(crate) wal: Wal,
    pub(crate) write: Mutex<WriteState>,
    pub(crate) versions: Mutex<LiveVersions>,
    /// Counts refreshes, for those who wait for the next one.
    pub(crate) refreshes: Mutex<u64>,
    pub(crate) refreshed: Condvar,
    refresh_lock: Mutex<()>,
    /// Held by the swap of an upgrade too: a flush that trims the log must have committed the form that stays.
    pub(super) flush_lock: Mutex<()>,
    dirty: AtomicBool,
    last_refresh: Mutex<Instant>,
    /// While an upgrade runs, the log keeps what the new segments do not have yet.
    pub(crate) keep_log: AtomicBool,
    /// What was done with it since it is open.
    pub(crate) counters: Arc<Counters>,
    pub(crate) opened: Opened,
    /// Names of the segments of the last durable commit.
    pub(crate) durable_segments: Mutex<HashSet<String>>,
    last_flush: Mutex<Instant>,
}

impl IndexHandle {
    pub(super) fn new(
        data: Arc<DataDir>,
        engine: EngineLink,
        metadata: Metadata,
        index: SparrowIndex,
        wal: Wal,
        next_seq_no: u64,
        opened: Opened,
    ) -> Self {
        let counters = Counters::default();
        counters.uncommitted.store(opened.replayed, Relaxed);
        // What a replay wrote is in no durable commit.
        let durable = if opened.replayed == 0 { segment_names(&index) } else { HashSet::new() };
        Self {
            name: metadata.name.clone(),
            uuid: metadata.uuid.clone(),
            data,
            engine,
            metadata: RwLock::new(Arc::new(metadata)),
            index: RwLock::new(Arc::new(index)),
            wal,
            write: Mutex::new(WriteState { next_seq_no, closed: false }),
            versions: Mutex::new(LiveVersions::default()),
            refreshes: Mutex::new(0),
            refreshed: Condvar::new(),
            refresh_lock: Mutex::new(()),
            flush_lock: Mutex::new(()),
            dirty: AtomicBool::new(false),
            last_refresh: Mutex::new(Instant::now()),
            keep_log: AtomicBool::new(false),
            counters: Arc::new(counters),
            opened,
            durable_segments: Mutex::new(durable),
            last_flush: Mutex::new(Instant::now()),
        }
    }

    /// Time since the last flush, or since the index was opened.
    pub(crate) fn since_flush(&self) -> std::time::Duration {
        self.last_flush.lock().elapsed()
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> Settings {
        self.metadata.read().settings.clone()
    }

    /// Whether the index is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.metadata.read().closed
    }

    /// How its shard came to be, in Elasticsearch's words: closing an index opens its shard anew.
    pub(crate) fn source_of_recovery(&self) -> &'static str {
        if self.is_closed() { "EXISTING_STORE" } else { self.opened.source() }
    }

    /// The mapping in force.
    pub(crate) fn mapping(&self) -> Arc<Mapping> {
        self.index().mapping()
    }

    /// The segments.
    pub(crate) fn index(&self) -> Arc<SparrowIndex> {
        self.index.read().clone()
    }

    /// What a search sees.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.index().searcher()
    }

    /// Fingerprint of the model that filled a field.
    pub(crate) fn field_model(&self, path: &str) -> Option<String> {
        self.metadata.read().field_models.get(path).cloned()
    }

    /// Folder of the index in the data directory.
    pub(crate) fn root(&self) -> PathBuf {
        self.data.index_dir(&self.uuid)
    }

    /// Version of a document, written or searchable. A deletion is `Some` without a source.
    pub(crate) fn current_version(&self, id: &str) -> Result<Option<LiveVersion>, EngineError> {
        if let Some(version) = self.versions.lock().get(id) {
            return Ok(Some(version.clone()));
        }
        let found: Option<DocMeta> = self.snapshot().lookup(id)?;
        // The source stays where it is: writers only want to know that there is one.
        Ok(found.map(|found| LiveVersion {
            seq_no: found.seq_no,
            version: found.version,
            source: Some(Arc::from(&[][..])),
        }))
    }

    /// A document by its id; sees writes that are not searchable yet.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub(crate) fn get(&self, id: &str) -> Result<Option<Found>, EngineError> {
        if let Some(version) = self.versions.lock().get(id) {
            let (seq_no, version, source) = (version.seq_no, version.version, version.source.clone());
            return Ok(source.map(|stored| match passages::split(&stored) {
                (_, None) => Found { seq_no, version, source: stored, passages: None },
                (source, Some(payload)) => {
                    Found { seq_no, version, source: Arc::from(source), passages: Some(payload.to_vec()) }
                }
            }));
        }
        self.get_searchable(id)
    }

    /// A document by its id, as searches see it.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub(crate) fn get_searchable(&self, id: &str) -> Result<Option<Found>, EngineError> {
        let snapshot = self.snapshot();
        let Some(found) = snapshot.lookup(id)? else { return Ok(None) };
        let stored = snapshot.fetch(found.addr)?;
        Ok(Some(Found {
            seq_no: stored.seq_no,
            version: stored.version,
            source: Arc::from(stored.source.as_slice()),
            passages: stored.passages,
        }))
    }

    /// Notes that something was written.
    pub(crate) fn mark_dirty(&self) {
        self.dirty.store(true, Relaxed);
    }

    /// Whether a refresh would show something new.
    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty.load(Relaxed)
    }

    /// Time since the last refresh.
    pub(crate) fn since_refresh(&self) -> std::time::Duration {
        self.last_refresh.lock().elapsed()
    }

    /// Makes everything written searchable.
    ///
    /// # Errors
    /// When the index cannot commit; the writes are then applied again from the log.
    pub(crate) fn refresh(&self) -> Result<(), EngineError> {
        let _one = self.refresh_lock.lock();
        let _running = self.counters.refresh.begin();
        let index = {
            // Under the write lock, so that every version taken here is in the index's buffer.
            let _writers = self.write.lock();
            self.dirty.store(false, Relaxed);
            self.versions.lock().start_refresh();
            self.index()
        };
        if let Err(error) = index.refresh() {
            self.mark_dirty();
            self.reapply_log(&error)?;
        }
        self.versions.lock().finish_refresh();
        *self.last_refresh.lock() = Instant::now();
        *self.refreshes.lock() += 1;
        self.refreshed.notify_all();
        Ok(())
    }

    /// Makes everything written durable in segments, and trims the log.
    ///
    /// # Errors
    /// When the disk refuses; the log then keeps everything.
    pub(crate) fn flush(&self) -> Result<(), EngineError> {
        let _one = self.flush_lock.lock();
        let (generation, covered, index) = {
            let state = self.write.lock();
            if state.closed {
                return Ok(());
            }
            (self.wal.roll()?, state.next_seq_no.checked_sub(1), self.index())
        };
        let running = self.counters.flush.begin();
        let covered_writes = self.counters.uncommitted.load(Relaxed);
        if let Err(error) = index.flush(covered) {
            self.reapply_log(&error)?;
            return Err(error.into());
        }
        if !self.keep_log.load(std::sync::atomic::Ordering::SeqCst) {
            self.wal.trim_before(generation)?;
            self.counters.uncommitted.fetch_sub(covered_writes, Relaxed);
        }
        *self.durable_segments.lock() = segment_names(&index);
        *self.last_flush.lock() = Instant::now();
        drop(running);
        // The flush committed, so its documents can be shown as well.
        self.refresh()
    }

    /// After a commit failed, buffered writes are gone from the index: applies them again from the log.
    pub(crate) fn reapply_log(&self, error: &IndexError) -> Result<(), EngineError> {
        let IndexError::RolledBack { replay_after, .. } = error else {
            return Err(EngineError::internal(error.to_string()));
        };
        let _writers = self.write.lock();
        let index = self.index();
        self.reapply(&index, &self.mapping(), error, *replay_after)?;
        index.refresh()?;
        Ok(())
    }

    /// Applies the log's writes after `replay_after` again to an index that rolled back because of `error`.
    ///
    /// The caller holds the write lock.
    pub(super) fn reapply(
        &self,
        index: &SparrowIndex,
        mapping: &Mapping,
        error: &dyn std::fmt::Display,
        replay_after: Option<u64>,
    ) -> Result<(), EngineError> {
        tracing::error!(index = self.name, %error, "applying writes again from the log");
        let replayed =
            super::recovery::apply(self.wal.replay()?, index, mapping, &self.settings(), replay_after)?;
        tracing::warn!(index = self.name, records = replayed.records, "log applied again");
        Ok(())
    }

    /// Waits for a refresh that shows everything written before the call. The regular refresh does it; without
    /// one (interval −1) this does it itself.
    pub(crate) fn wait_for_refresh(&self) -> Result<(), EngineError> {
        if self.settings().refresh_interval().is_none() {
            return self.refresh();
        }
        let mut count = self.refreshes.lock();
        // A refresh that is running may have begun before the write: the one after it has not.
        let target = *count + if self.refresh_lock.is_locked() { 2 } else { 1 };
        while *count < target && (self.is_dirty() || self.refresh_lock.is_locked()) {
            self.refreshed.wait_for(&mut count, std::time::Duration::from_millis(100));
        }
        Ok(())
    }

    /// Replaces metadata, durably first.
    pub(crate) fn replace_metadata(&self, change: impl FnOnce(&mut Metadata)) -> Result<(), EngineError> {
        let mut current = self.metadata.write();
        let mut changed = (**current).clone();
        change(&mut changed);
        changed.save(&self.data)?;
        *current = Arc::new(changed);
        super::registry::note_change();
        Ok(())
    }

    /// Remembers which models filled which fields.
    pub(crate) fn note_models(&self, filled: &[(String, String)]) -> Result<(), EngineError> {
        let known = {
            let metadata = self.metadata.read();
            filled.iter().all(|(field, model)| metadata.field_models.get(field) == Some(model))
        };
        if known {
            return Ok(());
        }
        self.replace_metadata(|metadata| metadata.field_models.extend(filled.iter().cloned()))
    }

    /// Puts a wider mapping in force: durable first, then in the index.
    ///
    /// The caller holds the write lock.
    pub(crate) fn widen_mapping(&self, mapping: &Mapping) -> Result<(), EngineError> {
        self.replace_metadata(|metadata| metadata.mapping = mapping.clone())?;
        let index = self.index();
        match index.update_mapping(mapping) {
            Ok(()) => Ok(()),
            Err(IndexError::RolledBack { replay_after, source }) => {
                self.reapply(&index, mapping, &source, replay_after)?;
                index.update_mapping(mapping)?;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets the index and removes its files. Searches that still hold a snapshot finish.
    pub(crate) fn delete(&self) -> Result<(), EngineError> {
        self.write.lock().closed = true;
        self.data.remove(&super::metadata::store_name(&self.uuid))?;
        remove_folder(&self.root());
        Ok(())
    }
}

/// Names of the searchable segments.
fn segment_names(index: &SparrowIndex) -> HashSet<String> {
    index.searcher().segment_names().collect()
}

/// Removes a folder that nothing refers to any more; what is left of it goes at the next start.
pub(crate) fn remove_folder(path: &std::path::Path) {
    if let Err(error) = durable::remove_dir_all(path) {
        tracing::warn!(%error, "a folder is left behind until the next start");
    }
}
