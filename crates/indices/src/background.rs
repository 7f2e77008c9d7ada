//! Which work in the background may begin on an index.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// First and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// What one index grants to workers in the background: a semaphore for its refreshes, one for its flushes, syncs and recoveries.
pub(super) struct Semaphores {
    pub(super) refresh: Semaphore,
    pub(super) upkeep: Semaphore,
    /// When a log that nobody waits for was last synced, or opened.
    pub(super) synced: Mutex<Instant>,
}

impl Default for Semaphores {
    fn default() -> Self {
        Self {
            refresh: Semaphore::default(),
            upkeep: Semaphore::default(),
            synced: Mutex::new(Instant::now()),
        }
    }
}

/// A binary semaphore: one worker at a time has it, and after a failure there is a pause.
#[derive(Default)]
pub(super) struct Semaphore {
    taken: AtomicBool,
    /// Not before this moment, and how long the pause was.
    pause: Mutex<Option<(Instant, Duration)>>,
}

impl Semaphore {
    /// Takes it, if nobody has it and no pause is on.
    pub(super) fn try_acquire(&self) -> bool {
        let paused = self.pause.lock().is_some_and(|(until, _)| Instant::now() < until);
        !paused && !self.taken.swap(true, SeqCst)
    }

    /// Lets the next worker have it: at once, or after a pause that doubles with each failure in a row.
    pub(super) fn release(&self, succeeded: bool) {
        let mut pause = self.pause.lock();
        *pause = (!succeeded).then(|| {
            let length = pause.map_or(PAUSES.0, |(_, length)| (length * 2).min(PAUSES.1));
            (Instant::now() + length, length)
        });
        self.taken.store(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semaphore_after_a_failure_pauses_longer_each_time() {
        let semaphore = Semaphore::default();
        assert!(semaphore.try_acquire());
        assert!(!semaphore.try_acquire(), "it is taken");
        semaphore.release(true);
        assert!(semaphore.try_acquire());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            semaphore.release(false);
            assert!(!semaphore.try_acquire(), "there is a pause");
            let (_, length) = semaphore.pause.lock().unwrap();
            pauses.push(length);
        }
        assert_eq!((pauses[0], pauses[1], pauses[7]), (PAUSES.0, PAUSES.0 * 2, PAUSES.1));
        semaphore.release(true);
        assert!(semaphore.try_acquire());
    }
}
