//! The shard: its state, and how it is opened, recovered and closed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard, RwLock};
use sparrow_mapping::Mapping;
use sparrow_tantivy_index::{DocMeta, IndexOptions, Snapshot, SparrowIndex};
use sparrow_write_ahead_log::{Replay, Wal};

use crate::error::ShardError;
use crate::recovery::{self, Replayed, Reread};
use crate::versions::{LiveVersion, LiveVersions};
use crate::visibility::Visibility;

/// Shortest time between attempts of writers to recover a read-only shard. After an attempt that took longer,
/// they wait as long as it took, because an attempt reads all segments.
const RECOVERY_PAUSE: Duration = Duration::from_millis(500);

/// Location and settings of a shard, and callbacks to its owner.
#[derive(Clone)]
pub struct ShardOptions {
    /// Name of the index, for log messages.
    pub name: Arc<str>,
    /// Directory of the index: the log is in `wal`, the segments in another directory beside it.
    pub root: PathBuf,
    pub index: IndexOptions,
    pub reread: Arc<Reread>,
    /// Returns the current mapping, with which segments are reopened.
    pub mapping: Arc<dyn Fn() -> Mapping + Send + Sync>,
    /// Returns whether writes are acknowledged before the log is durable. If so, recovery keeps the unsynced
    /// writes that it can read.
    pub acknowledges_early: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Result of looking a document up in the segments, with the snapshot that was searched; holding it keeps its
/// address from being reused.
pub struct LookedUp {
    snapshot: Arc<Snapshot>,
    found: Option<DocMeta>,
}

/// Whether a shard accepts writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Writes are accepted.
    Open,
    /// The log failed: writes are refused until there is disk space, or the disk works, again.
    ReadOnly {
        reason: String,
        disk_full: bool,
        /// Whether writes that are not durable were acknowledged nevertheless; they come back with the log if
        /// it can be read.
        keeps_unsynced: bool,
    },
    /// The shard was deleted or shut down: writes are refused for good.
    Closed,
}

impl Phase {
    /// Returns an error if writes are refused now.
    ///
    /// # Errors
    /// [`ShardError::Closed`], [`ShardError::ReadOnly`].
    pub(crate) fn takes_writes(&self) -> Result<(), ShardError> {
        match self {
            Self::Open => Ok(()),
            Self::Closed => Err(ShardError::Closed),
            Self::ReadOnly { reason, disk_full, .. } => {
                Err(ShardError::ReadOnly { reason: reason.clone(), disk_full: *disk_full })
            }
        }
    }
}

/// State protected by the write lock.
pub(crate) struct WriteState {
    pub(crate) phase: Phase,
    /// Set while the segments' buffer lacks writes of the log: those above the number, or all if `None`. Set
    /// before a repair is attempted, and cleared when a replay has succeeded.
    pub(crate) incomplete: Option<Option<u64>>,
    /// Whether the segments must be reopened, because replaying the log did not help.
    pub(crate) reopen: bool,
    /// Earliest time of the next attempt by a writer to recover the shard.
    pub(crate) next_recovery: Option<Instant>,
    /// Why the last recovery failed, and whether the cause was a full disk; `None` if it succeeded. Segments
    /// that were given up for a failed recovery take no writes.
    pub(crate) unrecovered: Option<(String, bool)>,
}

impl WriteState {
    /// Replaces the error of segments that were given up by the reason why they could not be reopened.
    fn reason_of(&self, error: ShardError) -> ShardError {
        match (&error, &self.unrecovered) {
            (
                ShardError::Index(sparrow_tantivy_index::IndexError::Poisoned { .. }),
                Some((reason, disk_full)),
            ) => ShardError::Refresh { reason: reason.clone(), disk_full: *disk_full },
            _ => error,
        }
    }
}

/// One index's write path. See the crate's documentation.
pub struct Shard {
    pub(crate) options: ShardOptions,
    /// The segments; replaced as a whole by a rewrite and by a recovery.
    pub(crate) index: RwLock<Arc<SparrowIndex>>,
    pub(crate) wal: Wal,
    pub(crate) flushing: Mutex<()>,
    pub(crate) refreshing: Mutex<()>,
    pub(crate) state: Mutex<WriteState>,
    pub(crate) versions: Mutex<LiveVersions>,
    pub(crate) visibility: Visibility,
    /// Set while a failed log is being reopened: the phase, which says why writes are refused.
    recovering: Mutex<Option<Phase>>,
    closed: AtomicBool,
    /// Set while a rewrite runs; the log is then not trimmed, as the new segments need it.
    pub(crate) rewriting: AtomicBool,
    /// Set when it is unknown whether the folder of a rewrite was recorded: after a restart the old or the
    /// new one may be used.
    pub(crate) folder_is_uncertain: AtomicBool,
    /// All writes with a lower sequence number are in a durable commit.
    pub(crate) flushed: AtomicU64,
    /// Sequence number of the next write; changes only under the write lock.
    pub(crate) next_seq_no: AtomicU64,
}

/// Segments that were just opened, with the log's writes applied.
struct Opened {
    index: SparrowIndex,
    replayed: Replayed,
    /// Sequence number after the highest in the commit or the log.
    next_seq_no: u64,
    /// Sequence number after the highest in the commit.
    flushed: u64,
}

impl Opened {
    fn open(
        options: &ShardOptions,
        folder: &Path,
        mapping: &Mapping,
        log: Replay,
    ) -> Result<Self, ShardError> {
        let (index, covered) = SparrowIndex::open(folder, mapping, &options.index)?;
        // Segments may have a write that was committed before the log was synced, and the log not; the replay may remove it.
        let highest = index.searcher().max_seq_no();
        let replayed = recovery::apply(log, &index, &*options.reread, covered)?;
        if replayed.records > 0 {
            index.refresh()?;
        }
        let after = |last: Option<u64>| last.map_or(0, |last| last + 1);
        Ok(Self {
            index,
            replayed,
            next_seq_no: after(covered.max(replayed.last_seq_no).max(highest)),
            flushed: after(covered),
        })
    }
}

impl Shard {
    /// Creates a shard over new segments without documents.
    ///
    /// # Errors
    /// When the log cannot be created.
    pub fn create(options: ShardOptions, index: SparrowIndex) -> Result<Self, ShardError> {
        let (wal, _) = Wal::open(&options.root.join("wal"))?;
        Ok(Self::new(options, index, wal, 0, 0))
    }

    /// Opens the segments in `folder` and applies the log.
    ///
    /// # Errors
    /// When segments or log are damaged or cannot be read.
    pub fn open(
        options: ShardOptions,
        folder: &Path,
        mapping: &Mapping,
    ) -> Result<(Self, Replayed), ShardError> {
        let (wal, log) = Wal::open(&options.root.join("wal"))?;
        let Opened { index, replayed, next_seq_no, flushed } = Opened::open(&options, folder, mapping, log)?;
        if replayed.records > 0 {
            tracing::info!(index = &*options.name, records = replayed.records, "replayed the log");
        }
        Ok((Self::new(options, index, wal, next_seq_no, flushed), replayed))
    }

    fn new(options: ShardOptions, index: SparrowIndex, wal: Wal, next_seq_no: u64, flushed: u64) -> Self {
        Self {
            options,
            index: RwLock::new(Arc::new(index)),
            wal,
            flushing: Mutex::new(()),
            refreshing: Mutex::new(()),
            state: Mutex::new(WriteState {
                phase: Phase::Open,
                incomplete: None,
                reopen: false,
                next_recovery: None,
                unrecovered: None,
            }),
            versions: Mutex::new(LiveVersions::default()),
            visibility: Visibility::default(),
            recovering: Mutex::default(),
            closed: AtomicBool::new(false),
            rewriting: AtomicBool::new(false),
            folder_is_uncertain: AtomicBool::new(false),
            flushed: AtomicU64::new(flushed),
            next_seq_no: AtomicU64::new(next_seq_no),
        }
    }

    /// The index over the current segments.
    pub fn index(&self) -> Arc<SparrowIndex> {
        self.index.read().clone()
    }

    /// The snapshot that new searches use.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.index().searcher()
    }

    /// Whether the shard accepts writes, and if not, why.
    pub fn phase(&self) -> Phase {
        self.state.lock().phase.clone()
    }

    /// Whether the shard was deleted or shut down.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Sequence number of the next write.
    pub fn next_seq_no(&self) -> u64 {
        self.next_seq_no.load(Ordering::Acquire)
    }

    /// Number of writes that are in the log but not in a durable commit.
    pub fn uncommitted(&self) -> u64 {
        self.next_seq_no().saturating_sub(self.flushed.load(Ordering::Acquire))
    }

    /// Bytes of the log that a flush would remove, including those not yet written. While the log is kept for
    /// a rewrite, older log files stay, and only the newest counts.
    pub fn log_bytes(&self) -> u64 {
        if self.keeps_log() { self.wal.bytes_since_roll() } else { self.wal.size_bytes() }
    }

    /// Whether the log is currently not trimmed by flushes.
    pub(crate) fn keeps_log(&self) -> bool {
        self.rewriting.load(Ordering::SeqCst) || self.folder_is_uncertain.load(Ordering::SeqCst)
    }

    /// Whether a restart may use another segment folder than the current one.
    pub fn is_folder_uncertain(&self) -> bool {
        self.folder_is_uncertain.load(Ordering::SeqCst)
    }

    /// Records that the current folder is the one a restart will use. After a rewrite whose folder could not
    /// be recorded that is unknown, and the log is kept for the other folder.
    pub fn folder_is_certain(&self) {
        self.folder_is_uncertain.store(false, Ordering::SeqCst);
    }

    /// Bytes held for reads by id until the next refresh.
    pub fn unrefreshed_bytes(&self) -> usize {
        self.versions.lock().bytes()
    }

    /// Forgets deletions that are older than the configured lifetime.
    pub fn forget_old_deletions(&self) {
        self.versions.lock().forget_old_deletions();
    }

    /// Sets for how long versions of deleted documents are remembered; `None` for the default, a minute.
    pub fn remember_deletions_for(&self, lifetime: Option<Duration>) {
        self.versions.lock().remember_deletions_for(lifetime);
    }

    /// Version of a document that was written or deleted since the last refresh.
    pub fn live_version(&self, id: &str) -> Option<LiveVersion> {
        self.versions.lock().get(id).cloned()
    }

    /// Looks a document up in the segments in advance, so that [`Shard::current_version`] need not do so
    /// under the write lock. `None` if the document was written since the last refresh, so that the segments
    /// are out of date.
    ///
    /// # Errors
    /// When the segments cannot be read.
    pub fn look_up(&self, id: &str) -> Result<Option<LookedUp>, ShardError> {
        if self.live_version(id).is_some() {
            return Ok(None);
        }
        let snapshot = self.snapshot();
        let found = snapshot.lookup(id)?;
        Ok(Some(LookedUp { snapshot, found }))
    }

    /// Version of a document, written or searchable; for a deleted one `Some` without a source. An earlier
    /// look-up is used if a search still sees the same segments; after a refresh the document is looked up
    /// again.
    ///
    /// # Errors
    /// When the segments cannot be read.
    pub fn current_version(
        &self,
        id: &str,
        before: Option<&LookedUp>,
    ) -> Result<Option<LiveVersion>, ShardError> {
        // In this order: what a refresh takes from here is in the segments already.
        if let Some(version) = self.live_version(id) {
            return Ok(Some(version));
        }
        let snapshot = self.snapshot();
        let found = match before {
            Some(before) if Arc::ptr_eq(&before.snapshot, &snapshot) => before.found,
            _ => snapshot.lookup(id)?,
        };
        // The source stays where it is: writers only want to know that there is one.
        Ok(found.map(|found| LiveVersion {
            seq_no: found.seq_no,
            version: found.version,
            source: Some(Arc::from(&[][..])),
        }))
    }

    /// Makes everything that was appended to the log durable.
    ///
    /// # Errors
    /// When the disk refuses; the shard is read-only then.
    pub fn sync_log(&self) -> Result<(), ShardError> {
        self.wal.sync_all().map_err(|error| self.log_failed(error.into()))
    }

    /// Whether the log holds writes that are not durable yet.
    pub fn has_unsynced(&self) -> bool {
        self.wal.has_unsynced()
    }

    /// Waits until a logged write is durable.
    ///
    /// # Errors
    /// [`ShardError::ReadOnly`]: the write may or may not be there after a restart and must not be acknowledged.
    pub fn sync(&self, lsn: sparrow_write_ahead_log::Lsn) -> Result<(), ShardError> {
        self.wal.sync(lsn).map_err(|error| self.log_failed(error.into()))
    }

    /// Makes the shard read-only if `error` has closed the log; returns the error to report.
    pub(crate) fn log_failed(&self, error: ShardError) -> ShardError {
        if !self.wal.is_poisoned() {
            return error;
        }
        self.log_failed_locked(&mut self.state.lock(), error)
    }

    /// Same as [`Shard::log_failed`], for callers that hold the write lock.
    pub(crate) fn log_failed_locked(&self, state: &mut WriteState, error: ShardError) -> ShardError {
        if !self.wal.is_poisoned() {
            return error;
        }
        self.became_read_only(state, &error);
        ShardError::read_only(&error)
    }

    fn became_read_only(&self, state: &mut WriteState, error: &ShardError) {
        if state.phase == Phase::Open {
            tracing::error!(index = &*self.options.name, %error, "writes are refused until the log can be opened again");
            // Once for this failure, whatever the settings say later.
            let keeps_unsynced = (self.options.acknowledges_early)();
            let (reason, disk_full) = (error.to_string(), error.is_disk_full());
            state.phase = Phase::ReadOnly { reason, disk_full, keeps_unsynced };
            if !keeps_unsynced {
                self.versions.lock().show_up_to(self.wal.durable());
            }
            // No refresh comes that they wait for.
            let failed = ShardError::read_only(error);
            self.visibility.end(self.visibility.begin(), &Err(failed));
        }
    }

    /// Makes the log durable up to everything in the segments' buffer, so that no commit contains a write
    /// that is refused in the end. Skipped where writes are acknowledged before they are durable.
    ///
    /// # Errors
    /// [`ShardError::ReadOnly`]: buffered writes may have been refused; they come back with the log, as far
    /// as it contains them. [`ShardError::Closed`].
    pub(crate) fn before_commit(&self, state: &mut WriteState) -> Result<(), ShardError> {
        match &state.phase {
            Phase::Closed => return Err(ShardError::Closed),
            Phase::ReadOnly { keeps_unsynced: false, .. } if self.is_dirty() => {
                return state.phase.takes_writes();
            }
            Phase::ReadOnly { .. } => return Ok(()),
            Phase::Open => {}
        }
        if (self.options.acknowledges_early)() {
            return Ok(());
        }
        self.wal.sync_all().map_err(|error| self.log_failed_locked(state, error.into()))
    }

    /// Whether the shard needs [`Shard::recover`]: its log has failed, its segments cannot be made durable,
    /// or their buffer lacks writes. Never blocks; returns false while the write lock is held.
    pub fn needs_recovery(&self) -> bool {
        let Some(state) = self.state.try_lock() else { return false };
        match state.phase {
            Phase::Closed => false,
            Phase::ReadOnly { .. } => true,
            Phase::Open => {
                state.reopen
                    || state.incomplete.is_some()
                    || self.wal.is_poisoned()
                    || self.index().is_poisoned()
            }
        }
    }

    /// Whether writes are refused because the log has failed. Never blocks.
    pub fn refuses_writes(&self) -> bool {
        self.recovering.lock().is_some()
            || self.wal.is_poisoned()
            || self.state.try_lock().is_some_and(|state| matches!(state.phase, Phase::ReadOnly { .. }))
    }

    /// Whether a refresh would be refused. Never blocks.
    pub fn refuses_refreshes(&self) -> bool {
        self.is_dirty() && self.refuses_writes() && !(self.options.acknowledges_early)()
    }

    /// Recovers a shard whose log or segments failed: reopens both and applies the log, if the disk permits.
    /// Searches continue on their snapshots. Does nothing to an intact shard.
    ///
    /// # Errors
    /// Why the attempt failed; the shard then still needs recovery.
    pub fn recover(&self) -> Result<(), ShardError> {
        self.recover_if(|_| true)
    }

    /// Same as [`Shard::recover`], if `is_wanted` returns true once the locks are held.
    fn recover_if(&self, is_wanted: impl FnOnce(&WriteState) -> bool) -> Result<(), ShardError> {
        let _flush = self.flushing.lock();
        let _refresh = self.refreshing.lock();
        let mut state = self.state.lock();
        if !is_wanted(&state) {
            return Ok(());
        }
        let began = Instant::now();
        // Also if it panics.
        state.next_recovery = Some(began + RECOVERY_PAUSE);
        let result = {
            let _recovering = Recovering::begin(self, &state);
            self.recover_locked(&mut state)
        };
        state.next_recovery = Some(Instant::now() + began.elapsed().max(RECOVERY_PAUSE));
        state.unrecovered = result.as_ref().err().map(|error| (error.to_string(), error.is_disk_full()));
        if let (Err(error), Phase::ReadOnly { reason, disk_full, .. }) = (&result, &mut state.phase) {
            // What keeps it from succeeding now is what a writer should know.
            (*reason, *disk_full) = (error.to_string(), error.is_disk_full());
        }
        result
    }

    fn recover_locked(&self, state: &mut WriteState) -> Result<(), ShardError> {
        if state.phase == Phase::Closed {
            return Err(ShardError::Closed);
        }
        let log_failed = self.wal.is_poisoned() || state.phase != Phase::Open;
        if !log_failed && !state.reopen && !self.index().is_poisoned() {
            let result = self.complete(state);
            // If the log cannot be applied to what is there, it is applied to what the disk has, next time.
            state.reopen = result.is_err();
            return result;
        }
        // The segments hold writes that were refused when the log failed: both begin again at the last durable commit.
        if log_failed {
            self.became_read_only(
                state,
                &ShardError::Storage(sparrow_write_ahead_log::StorageError::Poisoned {
                    reason: "the log failed".to_owned(),
                }),
            );
            let keeps_unsynced = matches!(state.phase, Phase::ReadOnly { keeps_unsynced: true, .. });
            self.wal.reopen(keeps_unsynced)?;
        }
        let old = self.index();
        old.retire();
        // Until the new segments are there, nothing may be committed.
        state.incomplete.get_or_insert(None);
        let new = Opened::open(&self.options, old.dir(), &(self.options.mapping)(), self.wal.replay()?)?;
        // A reader may have seen a write that was lost, and ask for its number when he writes: no other write may have it.
        self.next_seq_no.fetch_max(new.next_seq_no, Ordering::AcqRel);
        self.flushed.store(new.flushed, Ordering::Release);
        *self.index.write() = Arc::new(new.index);
        self.versions.lock().forget_writes();
        state.incomplete = None;
        state.reopen = false;
        state.phase = Phase::Open;
        tracing::warn!(
            index = &*self.options.name,
            records = new.replayed.records,
            "log and segments were opened anew; writes are taken again"
        );
        Ok(())
    }

    /// Applies the log again if the segments' buffer lacks writes.
    ///
    /// # Errors
    /// Why the replay failed; the buffer remains marked as incomplete.
    pub(crate) fn complete(&self, state: &mut WriteState) -> Result<(), ShardError> {
        let Some(replay_after) = state.incomplete else { return Ok(()) };
        let index = self.index();
        // What an attempt that failed left in the buffer is applied once more, which changes nothing.
        let log = self.wal.replay().map_err(|error| self.log_failed_locked(state, error.into()))?;
        let replayed = recovery::apply(log, &index, &*self.options.reread, replay_after)
            .map_err(|error| state.reason_of(error))?;
        state.incomplete = None;
        self.visibility.note_write();
        tracing::warn!(index = &*self.options.name, records = replayed.records, "log applied again");
        Ok(())
    }

    /// Handles an error of the segments: if their buffer was lost, marks it as incomplete and applies the log
    /// again; any other error is returned.
    ///
    /// # Errors
    /// `error` itself, or why the replay failed.
    pub(crate) fn rolled_back(
        &self,
        state: &mut WriteState,
        error: sparrow_tantivy_index::IndexError,
    ) -> Result<(), ShardError> {
        let sparrow_tantivy_index::IndexError::RolledBack { replay_after, .. } = &error else {
            return Err(state.reason_of(error.into()));
        };
        tracing::error!(index = &*self.options.name, %error, "applying writes again from the log");
        let before = state.incomplete.unwrap_or(*replay_after);
        state.incomplete = Some(before.min(*replay_after));
        self.complete(state)
    }

    /// Acquires the write lock, after trying to recover a failed shard; an error if writes are refused.
    pub(crate) fn lock_for_writing(&self) -> Result<MutexGuard<'_, WriteState>, ShardError> {
        self.wal.wait_for_room();
        // A writer that waited for the recovery would occupy a thread that writers of other indices need.
        if let Some(refused) = &*self.recovering.lock() {
            refused.takes_writes()?;
        }
        let mut state = self.state.lock();
        let failed =
            matches!(state.phase, Phase::ReadOnly { .. }) || state.reopen || self.index().is_poisoned();
        let is_time = |state: &WriteState| state.next_recovery.is_none_or(|moment| Instant::now() >= moment);
        if failed && is_time(&state) {
            drop(state);
            // Its failure is told below, where it keeps writes out. Writers that come meanwhile do not try once more each.
            let _ = self.recover_if(is_time);
            state = self.state.lock();
        }
        state.phase.takes_writes().map(|()| state)
    }

    /// Sets the phase and the flag together, because a request that is refused for the phase then checks the flag.
    pub(crate) fn mark_closed(&self, state: &mut WriteState) {
        state.phase = Phase::Closed;
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Closes the shard: later writes, refreshes and flushes are refused, and waiting requests are released.
    /// Searches that hold a snapshot can finish.
    pub fn close(&self) {
        self.mark_closed(&mut self.state.lock());
        self.visibility.close();
        self.index().retire();
    }
}

/// Guard that lets writers be refused at once, without waiting, while a failed log is being reopened and
/// read.
struct Recovering<'a>(&'a Shard);

impl<'a> Recovering<'a> {
    fn begin(shard: &'a Shard, state: &WriteState) -> Self {
        if matches!(state.phase, Phase::ReadOnly { .. }) {
            *shard.recovering.lock() = Some(state.phase.clone());
        }
        Self(shard)
    }
}

impl Drop for Recovering<'_> {
    fn drop(&mut self) {
        *self.0.recovering.lock() = None;
    }
}
