//! The thread that looks after adaptive deployments. It runs only where there are any.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::ModelOptions;
use super::deployments::Deployments;

/// How often it is asked whether texts wait for a deployment that sleeps: a request wakes it by itself, so this is for
/// the one that comes in the moment of falling asleep.
const GLANCE: Duration = Duration::from_millis(500);

/// The thread, once it was started.
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

    /// Ends the thread.
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
