//! Background work on indices: regular refreshes, flushes, syncs of logs that nobody waits for, and bringing back what a disk
//! without room stopped.
//!
//! One thread looks what is due and hands it to workers. An index is worked on by one refresh and one other piece of work at a
//! time, so that one which has to wait for the disk keeps none of the others waiting; whatever fails, panics included, is tried
//! again, less and less often.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use parking_lot::Mutex;

use super::background::{Semaphore, Semaphores};
use super::handle::IndexHandle;
use super::registry::Registry;
use sparrow_call::caught;
use sparrow_call::error::EngineError;

const TICK: Duration = Duration::from_millis(50);
/// Ticks between two looks at logs and left-over files.
const UPKEEP_TICKS: u64 = 4;
/// Ticks between two looks at the disk.
const DISK_TICKS: u64 = 20;
const REFRESH_WORKERS: usize = 3;
const UPKEEP_WORKERS: usize = 2;

/// Bytes of the log, and of files that wait for a flush to be removed, from which on an index is flushed when its segments take less
/// than them.
const SMALL: u64 = 16 << 20;
/// Time without a flush after which what lies in the log is flushed, and without a write after which an index gives back what
/// only writing needs.
const IDLE: Duration = Duration::from_secs(60);

/// Work for all indices about once a second: how full the disk is, and files that could not be removed.
pub(super) type Housekeeping = Box<dyn Fn() + Send>;

type Work = (Arc<IndexHandle>, fn(&IndexHandle, u64) -> bool, fn(&Semaphores) -> &Semaphore);

/// The threads that do it, as long as the engine is open.
#[derive(Default)]
pub struct Maintenance {
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Maintenance {
    pub(super) fn start(&self, registry: &Arc<Registry>, flush_threshold: u64, housekeeping: Housekeeping) {
        let (refreshes, refresh_work) = unbounded::<Work>();
        let (upkeep, upkeep_work) = unbounded::<Work>();
        let (registry, stop) = (registry.clone(), self.stop.clone());
        let mut work: Vec<(String, Box<dyn FnOnce() + Send>)> = vec![(
            "sparrow-clock".into(),
            Box::new(move || clock(&registry, &stop, &refreshes, &upkeep, flush_threshold, &housekeeping)),
        )];
        for number in 0..REFRESH_WORKERS {
            let queue = refresh_work.clone();
            work.push((
                format!("sparrow-refresh-{number}"),
                Box::new(move || work_off(&queue, flush_threshold)),
            ));
        }
        for number in 0..UPKEEP_WORKERS {
            let queue = upkeep_work.clone();
            work.push((
                format!("sparrow-flush-{number}"),
                Box::new(move || work_off(&queue, flush_threshold)),
            ));
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

/// Looks what is due and hands it out. The workers end when this does.
fn clock(
    registry: &Registry,
    stop: &AtomicBool,
    refreshes: &Sender<Work>,
    upkeep: &Sender<Work>,
    flush_threshold: u64,
    housekeeping: &Housekeeping,
) {
    for tick in 0_u64.. {
        if stop.load(Relaxed) {
            return;
        }
        thread::sleep(TICK);
        // A bug in looking must not end all of it.
        let looked = caught(|| {
            for handle in registry.all() {
                if refresh_is_due(&handle) && handle.background.refresh.try_acquire() {
                    let _ = refreshes.send((handle.clone(), refresh, |background| &background.refresh));
                }
                if tick.is_multiple_of(UPKEEP_TICKS)
                    && upkeep_is_due(&handle, flush_threshold)
                    && handle.background.upkeep.try_acquire()
                {
                    let _ = upkeep.send((handle, keep_up, |background| &background.upkeep));
                }
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

fn work_off(queue: &Receiver<Work>, flush_threshold: u64) {
    while let Ok((handle, work, semaphore)) = queue.recv() {
        let succeeded = caught(|| work(&handle, flush_threshold)).unwrap_or_else(|message| {
            tracing::error!(
                index = handle.name,
                message,
                "background work on the index panicked; it is tried again"
            );
            false
        });
        semaphore(&handle.background).release(succeeded);
    }
}

fn refresh_is_due(handle: &IndexHandle) -> bool {
    handle.shard.is_dirty()
        && handle.settings().refresh_interval().is_some_and(|interval| handle.since_refresh() >= interval)
}

fn refresh(handle: &IndexHandle, _: u64) -> bool {
    match handle.refresh() {
        Err(error) if !handle.shard.is_closed() => {
            tracing::error!(index = handle.name, %error, "refresh failed");
            false
        }
        _ => true,
    }
}

fn upkeep_is_due(handle: &IndexHandle, flush_threshold: u64) -> bool {
    handle.shard.needs_recovery()
        || handle.shard.is_folder_uncertain()
        || flush_is_due(handle, flush_threshold)
        || sync_is_due(handle)
        || handle.index().is_idle(IDLE)
}

/// A log is replayed at the next start, and files that a durable commit names stay until the next one: both are bounded by what
/// the index takes itself.
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
    settings.is_async() && handle.background.synced.lock().elapsed() >= settings.sync_interval()
}

fn keep_up(handle: &IndexHandle, flush_threshold: u64) -> bool {
    let result = if handle.shard.needs_recovery() {
        handle.shard.recover().map_err(|error| handle.failed(error))
    } else if handle.shard.is_folder_uncertain() {
        handle.settle_folder()
    } else if flush_is_due(handle, flush_threshold) {
        handle.flush().map(|()| _ = handle.counters.periodic_flush.fetch_add(1, Relaxed))
    } else if sync_is_due(handle) {
        *handle.background.synced.lock() = Instant::now();
        handle.shard.sync_log().map_err(|error| handle.failed(error))
    } else {
        handle.index().rest(IDLE).map_err(EngineError::from)
    };
    match result {
        Err(error) if !handle.shard.is_closed() => {
            tracing::error!(index = handle.name, %error, "keeping the index up failed; it is tried again");
            false
        }
        _ => true,
    }
}
