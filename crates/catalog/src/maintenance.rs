//! Background work on indices: periodic refreshes, flushes, syncs of logs that no request waits for, and recovery after the disk
//! was full.
//!
//! One thread determines what is due and hands it to workers. At most one refresh and one other task run on an index at a time, so
//! that one which has to wait for the disk holds up none of the others; whatever fails, panics included, is tried again after a
//! growing pause.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;

use super::background::Failures;
pub use super::background::Task;
use super::handle::IndexHandle;
use super::registry::Registry;
use sparrow_request::caught;
use sparrow_request::error::EngineError;
use sparrow_runtime::niceness;

const TICK: Duration = Duration::from_millis(50);
/// Ticks between two checks for due upkeep tasks.
const UPKEEP_TICKS: u64 = 4;
/// Ticks between two looks at the disk.
const DISK_TICKS: u64 = 20;
const REFRESH_WORKERS: usize = 3;
const UPKEEP_WORKERS: usize = 2;

/// Size in bytes above which a log, or files that wait for a flush to be removed, cause a flush if they are larger than the index's
/// segments.
const SMALL: u64 = 16 << 20;
/// Time since the last flush after which writes that are only in the log are flushed, and time since the last write after which an
/// index gives back the resources that only writing needs.
const IDLE: Duration = Duration::from_secs(60);

/// Work that is done for all indices about once a second: checking the disk's free space and removing left-over files.
pub(super) type Housekeeping = Box<dyn Fn() + Send>;

/// A task of an index that is due, and whose semaphore was acquired.
struct Work {
    handle: Arc<IndexHandle>,
    /// Kind of the task, which is counted as failed if it panics.
    task: Task,
}

/// The threads of the background work, which run as long as the engine is open.
#[derive(Default)]
pub struct Maintenance {
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    failures: Arc<Failures>,
}

impl Maintenance {
    /// How often background work failed.
    pub(super) fn failures(&self) -> &Failures {
        &self.failures
    }

    pub(super) fn start(&self, registry: &Arc<Registry>, flush_threshold: u64, housekeeping: Housekeeping) {
        let (refreshes, refresh_work) = unbounded::<Work>();
        let (upkeep, upkeep_work) = unbounded::<Work>();
        let (registry, stop, failures) = (registry.clone(), self.stop.clone(), self.failures.clone());
        let clock = Clock { registry, stop, refreshes, upkeep, flush_threshold, failures };
        let mut work: Vec<(String, Box<dyn FnOnce() + Send>)> =
            vec![("sparrow-clock".into(), Box::new(move || clock.run(&housekeeping)))];
        for number in 0..REFRESH_WORKERS {
            let (queue, failures) = (refresh_work.clone(), self.failures.clone());
            work.push((format!("sparrow-refresh-{number}"), Box::new(move || work_off(&queue, &failures))));
        }
        for number in 0..UPKEEP_WORKERS {
            let (queue, failures) = (upkeep_work.clone(), self.failures.clone());
            let work_off = move || {
                // tantivy's indexing thread, for which writes wait, is started by the one that commits and cannot be less nice.
                niceness::step_behind_searches();
                work_off(&queue, &failures);
            };
            work.push((format!("sparrow-flush-{number}"), Box::new(work_off)));
        }
        let mut threads = self.threads.lock();
        for (name, work) in work {
            match thread::Builder::new().name(name.clone()).spawn(work) {
                Ok(handle) => threads.push(handle),
                Err(error) => tracing::error!(%error, name, "a background thread cannot start"),
            }
        }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.lock().drain(..) {
            // A panic there was logged by the panic hook; closing goes on.
            let _ = thread.join();
        }
    }
}

/// Determines which tasks are due and hands them to the workers, which end when this is dropped.
struct Clock {
    registry: Arc<Registry>,
    stop: Arc<AtomicBool>,
    refreshes: Sender<Work>,
    upkeep: Sender<Work>,
    flush_threshold: u64,
    failures: Arc<Failures>,
}

impl Clock {
    fn run(&self, housekeeping: &Housekeeping) {
        for tick in 0_u64.. {
            if self.stop.load(Relaxed) {
                return;
            }
            thread::sleep(TICK);
            // A bug in looking must not end all of it.
            let looked = caught(|| {
                for handle in self.registry.all() {
                    self.look(&handle, tick);
                }
                if tick.is_multiple_of(DISK_TICKS) {
                    housekeeping();
                }
            });
            if let Err(message) = looked {
                tracing::error!(message, "looking for background work panicked");
            }
        }
    }

    fn look(&self, handle: &Arc<IndexHandle>, tick: u64) {
        if !refresh_is_due(handle) {
            handle.background.refresh.nothing_is_due();
        } else if handle.background.refresh.try_acquire() {
            let _ = self.refreshes.send(Work { handle: handle.clone(), task: Task::Refresh });
        }
        if !tick.is_multiple_of(UPKEEP_TICKS) {
            return;
        }
        handle.shard.forget_old_deletions();
        // Merges run on threads of their own, and are logged there.
        let failed = handle.index().merge_stats().failed;
        let before = handle.background.merges.swap(failed, Relaxed);
        self.failures.add(Task::Merge, if failed < before { failed } else { failed - before });
        let Some(task) = upkeep_due(handle, self.flush_threshold) else {
            handle.background.upkeep.nothing_is_due();
            return;
        };
        if handle.background.upkeep.try_acquire() {
            let _ = self.upkeep.send(Work { handle: handle.clone(), task });
        }
    }
}

fn work_off(queue: &Receiver<Work>, failures: &Failures) {
    while let Ok(Work { handle, task }) = queue.recv() {
        let semaphore = handle.background.of(task);
        let result = match caught(|| run(&handle, task)) {
            // Logged and counted where it failed.
            Ok(Ok(())) if task == Task::Merge && handle.index().merge_failure().is_some() => {
                semaphore.release(Err(task));
                continue;
            }
            Ok(Err(error)) if !handle.shard.is_closed() => {
                tracing::error!(index = handle.name, task = task.name(), %error, "background work on the index failed; it is tried again");
                Err(task)
            }
            Ok(_) => Ok(()),
            Err(message) => {
                tracing::error!(
                    index = handle.name,
                    task = task.name(),
                    message,
                    "background work on the index panicked; it is tried again"
                );
                Err(task)
            }
        };
        if result.is_err() {
            failures.add(task, 1);
        }
        semaphore.release(result);
    }
}

fn run(handle: &IndexHandle, task: Task) -> Result<(), EngineError> {
    match task {
        Task::Refresh => handle.refresh(),
        Task::Flush => handle.flush().map(|()| _ = handle.counters.periodic_flush.fetch_add(1, Relaxed)),
        Task::Sync => {
            *handle.background.synced.lock() = Instant::now();
            handle.shard.sync_log().map_err(|error| handle.failed(error))
        }
        Task::Recovery if handle.shard.needs_recovery() => {
            handle.shard.recover().map_err(|error| handle.failed(error))
        }
        Task::Recovery => handle.settle_folder(),
        Task::Rest => handle.index().rest(IDLE).map_err(EngineError::from),
        Task::Merge => handle.shard.retry_merges().map_err(|error| handle.failed(error)),
    }
}

fn refresh_is_due(handle: &IndexHandle) -> bool {
    handle.shard.is_dirty()
        && !handle.shard.refuses_refreshes()
        && handle.settings().refresh_interval().is_some_and(|interval| handle.since_refresh() >= interval)
}

/// The most urgent task of an index that is due, refreshes excepted; none if nothing is due.
fn upkeep_due(handle: &IndexHandle, flush_threshold: u64) -> Option<Task> {
    if handle.shard.needs_recovery() || handle.shard.is_folder_uncertain() {
        Some(Task::Recovery)
    } else if flush_is_due(handle, flush_threshold) {
        Some(Task::Flush)
    } else if sync_is_due(handle) {
        Some(Task::Sync)
    } else if handle.index().merge_failure().is_some() {
        Some(Task::Merge)
    } else {
        handle.index().is_idle(IDLE).then_some(Task::Rest)
    }
}

/// Whether a flush is due. The log is replayed at the next start, and files of the last durable commit stay until the next one: a
/// flush keeps both smaller than the index itself.
fn flush_is_due(handle: &IndexHandle, threshold: u64) -> bool {
    let log = handle.shard.log_bytes();
    if log > threshold || (handle.shard.uncommitted() > 0 && handle.since_flush() >= IDLE) {
        return true;
    }
    let garbage = handle.index().garbage_bytes();
    if log.max(garbage) <= SMALL {
        return false;
    }
    // An index that goes away meanwhile needs no flush.
    let bytes = handle.index().stats().map_or(u64::MAX, |stats| stats.bytes.saturating_sub(garbage));
    log.max(garbage) > bytes
}

fn sync_is_due(handle: &IndexHandle) -> bool {
    let settings = handle.settings();
    settings.is_async()
        && handle.shard.has_unsynced()
        && handle.background.synced.lock().elapsed() >= settings.sync_interval()
}

impl IndexHandle {
    /// Kinds of background work whose last run failed, each once.
    pub fn failing(&self) -> Vec<Task> {
        let merge = self.index().merge_failure().map(|_| Task::Merge);
        self.background.failing().filter(|task| *task != Task::Merge).chain(merge).collect()
    }

    /// `green`, or `yellow` for an index that is in trouble or asks for replicas, for which there is no other node.
    pub fn health(&self) -> &'static str {
        if self.settings().replicas() == 0 && !self.is_troubled() { "green" } else { "yellow" }
    }

    /// Whether a failure of the disk or an internal error keeps the index from taking writes or from being maintained: its health
    /// is then yellow.
    pub fn is_troubled(&self) -> bool {
        self.refuses_writes() || !self.failing().is_empty()
    }
}
