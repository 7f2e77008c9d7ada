//! The thread that adapts the allocations of deployments; it runs only if any deployment is adaptive.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::ModelOptions;
use super::deployments::Deployments;

/// Interval at which the thread checks whether texts wait for a sleeping deployment. A request wakes the deployment
/// itself, so this is only for one that arrives at the moment when the deployment falls asleep.
const GLANCE: Duration = Duration::from_millis(500);

/// Handle of the thread; `None` until it is started.
#[derive(Debug, Default)]
pub(super) struct Monitor {
    thread: Mutex<Option<JoinHandle<()>>>,
    stopped: Arc<(Mutex<bool>, Condvar)>,
}

impl Monitor {
    /// Starts the thread, if it does not run.
    pub fn start(&self, deployments: &Arc<Deployments>, options: &ModelOptions) {
        let mut thread = self.thread.lock();
        if thread.is_some() || *self.stopped.0.lock() {
            return;
        }
        let (weak, options, stopped) =
            (Arc::downgrade(deployments), options.clone(), Arc::clone(&self.stopped));
        let spawned = std::thread::Builder::new().name("adaptive".into()).spawn(move || {
            let mut looked = Instant::now();
            loop {
                {
                    let mut end = stopped.0.lock();
                    if !*end {
                        stopped.1.wait_for(&mut end, GLANCE.min(options.adaptive.interval));
                    }
                    if *end {
                        return;
                    }
                }
                let Some(deployments) = weak.upgrade() else { return };
                let full = looked.elapsed() >= options.adaptive.interval;
                if full {
                    looked = Instant::now();
                }
                deployments.adapt(&options, full);
            }
        });
        match spawned {
            Ok(handle) => *thread = Some(handle),
            Err(error) => tracing::error!(%error, "allocations will not be adapted"),
        }
    }

    /// Stops the thread and waits for its end.
    pub fn stop(&self) {
        *self.stopped.0.lock() = true;
        self.stopped.1.notify_all();
        if let Some(handle) = self.thread.lock().take()
            && handle.join().is_err()
        {
            tracing::error!("the thread of adaptive allocations panicked");
        }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.stop();
    }
}
