//! Background work: regular refreshes, flushes of long logs, syncs of `async` indices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Registry;

const TICK: Duration = Duration::from_millis(50);
const SYNC_INTERVAL: Duration = Duration::from_secs(5);

/// The thread that does it, as long as the engine is open.
#[derive(Default)]
pub(crate) struct Maintenance {
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Maintenance {
    pub(super) fn start(&self, registry: &Arc<Registry>, flush_threshold: u64) {
        let refresher = {
            let (registry, stop) = (registry.clone(), self.stop.clone());
            move || {
                while !stop.load(Relaxed) {
                    thread::sleep(TICK);
                    refresh_due(&registry);
                }
            }
        };
        // A flush waits for the disk, so it has a thread of its own: refreshes stay on time.
        let flusher = {
            let (registry, stop) = (registry.clone(), self.stop.clone());
            move || {
                let mut synced = Instant::now();
                while !stop.load(Relaxed) {
                    thread::sleep(TICK * 4);
                    let sync = synced.elapsed() >= SYNC_INTERVAL;
                    flush_due(&registry, flush_threshold, sync);
                    if sync {
                        synced = Instant::now();
                    }
                }
            }
        };
        let mut threads = self.threads.lock();
        for (name, work) in [
            ("sparrow-refresh", Box::new(refresher) as Box<dyn FnOnce() + Send>),
            ("sparrow-flush", Box::new(flusher)),
        ] {
            match thread::Builder::new().name(name.into()).spawn(work) {
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

fn refresh_due(registry: &Registry) {
    for handle in registry.all() {
        let due =
            handle.settings().refresh_interval().is_some_and(|interval| handle.since_refresh() >= interval);
        if due
            && handle.is_dirty()
            && let Err(error) = handle.refresh()
        {
            tracing::error!(index = handle.name, %error, "refresh failed");
        }
    }
}

fn flush_due(registry: &Registry, threshold: u64, sync: bool) {
    for handle in registry.all() {
        let size = handle.wal.size_bytes();
        if size > threshold && !handle.wal.is_poisoned() {
            match handle.flush() {
                Ok(()) => _ = handle.counters.periodic_flush.fetch_add(1, Relaxed),
                Err(error) => tracing::error!(index = handle.name, %error, "flush failed"),
            }
        } else if sync
            && handle.settings().is_async()
            && !handle.wal.is_poisoned()
            && let Err(error) = handle.wal.sync_all()
        {
            tracing::error!(index = handle.name, %error, "sync failed");
        }
    }
}
