//! The shard itself: what it holds, and how it is opened and closed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard, RwLock};
use sparrow_index::{DocMeta, IndexOptions, Snapshot, SparrowIndex};
use sparrow_mapping::Mapping;
use sparrow_storage::{Replay, Wal};

use crate::error::ShardError;
use crate::recovery::{self, Replayed, Reread};
use crate::versions::{LiveVersion, LiveVersions};
use crate::visibility::Visibility;

/// Shortest time between two attempts of writers to bring a read-only shard back. After one that took longer they leave it alone
/// for as long as that took: an attempt reads all segments.
const RECOVERY_PAUSE: Duration = Duration::from_millis(500);

/// Where a shard is and how it reads what it logged.
#[derive(Clone)]
pub struct ShardOptions {
    /// Name of the index, for log messages.
    pub name: Arc<str>,
    /// Folder of the index: the log is in `wal`, the segments in a folder of their own beside it.
    pub root: PathBuf,
    pub index: IndexOptions,
    pub reread: Arc<Reread>,
    /// The mapping in force, which segments that are opened anew get.
    pub mapping: Arc<dyn Fn() -> Mapping + Send + Sync>,
    /// Whether writes are acknowledged before the log is durable. A recovery then keeps what it can read of them.
    pub acknowledges_early: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// What the segments said of a document, and the segments that did: nothing newer can have their address while it lives.
pub struct LookedUp {
    snapshot: Arc<Snapshot>,
    found: Option<DocMeta>,
}

/// What a shard does with writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It takes them.
    Open,
    /// The log failed: they are refused until there is room, or the disk works, again.
    ReadOnly {
        reason: String,
        disk_full: bool,
        /// Whether writes that are not durable were acknowledged all the same, and come back with the log if it can be read.
        keeps_unsynced: bool,
    },
    /// It was deleted or shut down: they are refused for good.
    Closed,
}

impl Phase {
    /// Why writes are refused now, or nothing.
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

/// What only one writer at a time touches.
pub(crate) struct WriteState {
    pub(crate) phase: Phase,
    /// The segments' buffer lacks writes of the log: all above the number, or all. Set before anything is tried to mend it, and
    /// cleared when a replay has succeeded.
    pub(crate) incomplete: Option<Option<u64>>,
    /// Replaying did not help: the segments have to be opened anew.
    pub(crate) reopen: bool,
    /// Before this moment no writer tries to bring the shard back.
    pub(crate) next_recovery: Option<Instant>,
    /// Why the last attempt to bring it back failed, and whether that was for want of space: segments that were given up for it take
    /// nothing.
    pub(crate) unrecovered: Option<(String, bool)>,
}

impl WriteState {
    /// An error of the segments, or what keeps those from being opened that are to take their place.
    fn reason_of(&self, error: ShardError) -> ShardError {
        match (&error, &self.unrecovered) {
            (ShardError::Index(sparrow_index::IndexError::Poisoned { .. }), Some((reason, disk_full))) => {
                ShardError::Refresh { reason: reason.clone(), disk_full: *disk_full }
            }
            _ => error,
        }
    }
}

/// One index's write path. See the crate's documentation.
pub struct Shard {
    pub(crate) options: ShardOptions,
    /// Replaced as a whole by a rewrite in another format and by a recovery.
    pub(crate) index: RwLock<Arc<SparrowIndex>>,
    pub(crate) wal: Wal,
    pub(crate) flushing: Mutex<()>,
    pub(crate) refreshing: Mutex<()>,
    pub(crate) state: Mutex<WriteState>,
    pub(crate) versions: Mutex<LiveVersions>,
    pub(crate) visibility: Visibility,
    /// While a log that was closed is opened anew: why writes are refused.
    recovering: Mutex<Option<Phase>>,
    closed: AtomicBool,
    /// Set while a rewrite runs: the log keeps what the new segments do not have yet.
    pub(crate) rewriting: AtomicBool,
    /// Set when the folder of a rewrite could not be noted: a restart may find the old one noted, or the new one.
    pub(crate) folder_is_uncertain: AtomicBool,
    /// Writes with a lower number are in a durable commit.
    pub(crate) flushed: AtomicU64,
    /// Changes only under the write lock.
    pub(crate) next_seq_no: AtomicU64,
}

/// Segments as the disk has them, with the log's writes applied.
struct Opened {
    index: SparrowIndex,
    replayed: Replayed,
    /// The number after the last one that the commit or the log has.
    next_seq_no: u64,
    /// The number after the last one that the commit covers.
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
    /// A shard with newly made segments and no documents.
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

    /// The segments.
    pub fn index(&self) -> Arc<SparrowIndex> {
        self.index.read().clone()
    }

    /// What a search sees.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.index().searcher()
    }

    /// What the shard does with writes.
    pub fn phase(&self) -> Phase {
        self.state.lock().phase.clone()
    }

    /// Whether the shard was deleted or shut down.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The number that the next write gets.
    pub fn next_seq_no(&self) -> u64 {
        self.next_seq_no.load(Ordering::Acquire)
    }

    /// Writes that are in the log and in no durable commit.
    pub fn uncommitted(&self) -> u64 {
        self.next_seq_no().saturating_sub(self.flushed.load(Ordering::Acquire))
    }

    /// Bytes of the log that a flush takes away, those that wait to be written included. While the log is kept for another form
    /// of the segments, older files stay whatever is flushed, and only the newest counts.
    pub fn log_bytes(&self) -> u64 {
        if self.keeps_log() { self.wal.bytes_since_roll() } else { self.wal.size_bytes() }
    }

    /// Whether a flush leaves the log as it is.
    pub(crate) fn keeps_log(&self) -> bool {
        self.rewriting.load(Ordering::SeqCst) || self.folder_is_uncertain.load(Ordering::SeqCst)
    }

    /// Whether a restart may find another folder noted than the one in use.
    pub fn is_folder_uncertain(&self) -> bool {
        self.folder_is_uncertain.load(Ordering::SeqCst)
    }

    /// Tells that the disk names the folder in use for certain. After a rewrite whose folder could not be noted it may name either
    /// one, and the log is kept for the other.
    pub fn folder_is_certain(&self) {
        self.folder_is_uncertain.store(false, Ordering::SeqCst);
    }

    /// Bytes that are held for reads by id until the next refresh.
    pub fn unrefreshed_bytes(&self) -> usize {
        self.versions.lock().bytes()
    }

    /// Forgets deletions that were remembered long enough.
    pub fn forget_old_deletions(&self) {
        self.versions.lock().forget_old_deletions();
    }

    /// Sets how long the versions of deleted documents are remembered.
    pub fn remember_deletions_for(&self, lifetime: Option<Duration>) {
        self.versions.lock().remember_deletions_for(lifetime);
    }

    /// A document that was written, or deleted, since the last refresh.
    pub fn live_version(&self, id: &str) -> Option<LiveVersion> {
        self.versions.lock().get(id).cloned()
    }

    /// Looks a document up in the segments, so that this need not be done by [`Shard::current_version`] while nobody else may
    /// write. `None` if it was written since the last refresh, and segments say nothing of it.
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

    /// Version of a document, written or searchable. A deletion is `Some` without a source. What was looked up before counts if a
    /// search sees the same segments now: after a refresh in between it is looked up again.
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
    pub fn sync(&self, lsn: sparrow_storage::Lsn) -> Result<(), ShardError> {
        self.wal.sync(lsn).map_err(|error| self.log_failed(error.into()))
    }

    /// Notes that the log is closed for writes.
    pub(crate) fn log_failed(&self, error: ShardError) -> ShardError {
        if !self.wal.is_poisoned() {
            return error;
        }
        self.log_failed_locked(&mut self.state.lock(), error)
    }

    /// As [`Shard::log_failed`], for whoever has the write lock.
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

    /// Lets segments be committed: everything that they have is durable in the log then, where a write is acknowledged only when it
    /// is. So no commit shows or keeps a write that is refused after all.
    ///
    /// # Errors
    /// [`ShardError::ReadOnly`]: what is buffered may have been refused. It comes back with the log, as far as that has it.
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

    /// Whether the shard needs [`Shard::recover`]: its log is closed for writes, its segments cannot be made durable, or their
    /// buffer lacks writes. Answers at once: `false` while somebody writes.
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

    /// Whether the log is closed for writes. Answers at once, also while somebody writes or opens the log anew.
    pub fn refuses_writes(&self) -> bool {
        self.recovering.lock().is_some()
            || self.wal.is_poisoned()
            || self.state.try_lock().is_some_and(|state| matches!(state.phase, Phase::ReadOnly { .. }))
    }

    /// Whether a refresh would be refused. Answers at once, as [`Shard::refuses_writes`] does.
    pub fn refuses_refreshes(&self) -> bool {
        self.is_dirty() && self.refuses_writes() && !(self.options.acknowledges_early)()
    }

    /// Brings a shard back whose log or segments failed: opens both anew and applies the log, if the disk lets it. Searches go on
    /// with what they saw. Does nothing to a shard that is well.
    ///
    /// # Errors
    /// What still fails; the shard is as it was.
    pub fn recover(&self) -> Result<(), ShardError> {
        self.recover_if(|_| true)
    }

    /// As [`Shard::recover`], if `is_wanted` still says so when nobody else is at it.
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
                &ShardError::Storage(sparrow_storage::StorageError::Poisoned {
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

    /// Applies the log again, if the segments' buffer lacks writes of it.
    ///
    /// # Errors
    /// What keeps it from succeeding; the buffer is remembered as incomplete.
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

    /// Remembers that the segments' buffer was lost, and applies the log again. An error of another kind is given back.
    ///
    /// # Errors
    /// `error` itself, or what keeps the replay from succeeding.
    pub(crate) fn rolled_back(
        &self,
        state: &mut WriteState,
        error: sparrow_index::IndexError,
    ) -> Result<(), ShardError> {
        let sparrow_index::IndexError::RolledBack { replay_after, .. } = &error else {
            return Err(state.reason_of(error.into()));
        };
        tracing::error!(index = &*self.options.name, %error, "applying writes again from the log");
        let before = state.incomplete.unwrap_or(*replay_after);
        state.incomplete = Some(before.min(*replay_after));
        self.complete(state)
    }

    /// The write lock, for whoever may write now.
    pub(crate) fn lock_for_writing(&self) -> Result<MutexGuard<'_, WriteState>, ShardError> {
        self.wal.wait_for_room();
        // Whoever waited for it would keep a thread from the writers of other indices.
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

    /// Both at once: whoever is refused because of the phase asks the other why.
    pub(crate) fn mark_closed(&self, state: &mut WriteState) {
        state.phase = Phase::Closed;
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Ends the shard: writes, refreshes and flushes that come later are refused, and nobody waits any longer. Searches that hold
    /// a snapshot finish.
    pub fn close(&self) {
        self.mark_closed(&mut self.state.lock());
        self.visibility.close();
        self.index().retire();
    }
}

/// Lets writers be refused at once while a log that is closed for them is opened anew, which takes as long as reading it does.
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
