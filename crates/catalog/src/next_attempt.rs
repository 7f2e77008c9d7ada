//! When indices that could not be opened are tried again.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// First and longest pause between two attempts, each of which reads the segments.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// When the next attempt to open indices may be made. At most one runs, on its own thread: reading an index takes long, and the
/// other indices need their refreshes meanwhile.
pub(super) struct NextAttempt {
    wait: Mutex<Wait>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
}

struct Wait {
    /// When the next attempt may begin; `None` while one is running.
    until: Option<Instant>,
    pause: Duration,
}

impl Default for NextAttempt {
    fn default() -> Self {
        let wait = Wait { until: Some(Instant::now() + PAUSES.0), pause: PAUSES.0 };
        Self { wait: Mutex::new(wait), thread: Mutex::default() }
    }
}

impl NextAttempt {
    /// Whether it is time for an attempt; if so, it counts as running from now on.
    pub(super) fn begin(&self) -> bool {
        let mut wait = self.wait.lock();
        let is_time = wait.until.is_some_and(|moment| Instant::now() >= moment);
        if is_time {
            wait.until = None;
        }
        is_time
    }

    /// Notes that the attempt has ended, and doubles the pause before the next one.
    pub(super) fn end(&self) {
        let mut wait = self.wait.lock();
        wait.pause = (wait.pause * 2).min(PAUSES.1);
        wait.until = Some(Instant::now() + wait.pause);
    }

    /// Waits until a running attempt has ended. No new one may be started meanwhile.
    pub(super) fn finish(&self) {
        let Some(thread) = self.thread.lock().take() else { return };
        // The attempt itself may have been the last that used the engine.
        if thread.thread().id() != thread::current().id() {
            // A panic there was logged by the panic hook.
            let _ = thread.join();
        }
    }
}
