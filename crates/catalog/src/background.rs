//! The kinds of background work on an index, and which of them may begin.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// First and longest pause after a failure; each failure in a row doubles it.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// A kind of work that an index needs from time to time without any request for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Refresh,
    Flush,
    /// Syncing a log whose writes were acknowledged without waiting for the disk.
    Sync,
    /// Reopening the log or the segments after the disk failed, and saving again which folder an upgrade left in use.
    Recovery,
    /// Giving back the memory and threads that only writing needs.
    Rest,
    Merge,
}

impl Task {
    pub const ALL: [Self; 6] =
        [Self::Refresh, Self::Flush, Self::Sync, Self::Recovery, Self::Rest, Self::Merge];

    pub fn name(self) -> &'static str {
        match self {
            Self::Refresh => "refresh",
            Self::Flush => "flush",
            Self::Sync => "sync",
            Self::Recovery => "recovery",
            Self::Rest => "rest",
            Self::Merge => "merge",
        }
    }
}

/// How often each task failed since the start, over all indices, those that are gone included.
#[derive(Default)]
pub(super) struct Failures([AtomicU64; Task::ALL.len()]);

impl Failures {
    pub(super) fn add(&self, task: Task, count: u64) {
        self.0[task as usize].fetch_add(count, Relaxed);
    }

    pub(super) fn of(&self, task: Task) -> u64 {
        self.0[task as usize].load(Relaxed)
    }
}

/// Which background work one index allows now: a semaphore for its refreshes, and one for all other tasks.
pub(super) struct Semaphores {
    pub(super) refresh: Semaphore,
    pub(super) upkeep: Semaphore,
    /// When the log was last synced in the background, or opened.
    pub(super) synced: Mutex<Instant>,
    /// Number of this index's failed merges that are in the counts already.
    pub(super) merges: AtomicU64,
}

impl Default for Semaphores {
    fn default() -> Self {
        Self {
            refresh: Semaphore::default(),
            upkeep: Semaphore::default(),
            synced: Mutex::new(Instant::now()),
            merges: AtomicU64::default(),
        }
    }
}

impl Semaphores {
    /// The semaphore that a task needs.
    pub(super) fn of(&self, task: Task) -> &Semaphore {
        if task == Task::Refresh { &self.refresh } else { &self.upkeep }
    }

    /// The tasks that failed when they were last tried.
    pub(super) fn failing(&self) -> impl Iterator<Item = Task> {
        [&self.refresh, &self.upkeep].into_iter().filter_map(Semaphore::failing)
    }
}

/// A binary semaphore: one worker at a time has it, and after a failure there is a pause.
#[derive(Default)]
pub(super) struct Semaphore {
    taken: AtomicBool,
    pause: Mutex<Option<Pause>>,
}

/// Why a semaphore cannot be acquired, and until when.
#[derive(Clone, Copy)]
struct Pause {
    failed: Task,
    until: Instant,
    length: Duration,
}

impl Semaphore {
    /// Acquires the semaphore; `false` if another worker holds it or a pause is on.
    pub(super) fn try_acquire(&self) -> bool {
        let paused = self.pause.lock().is_some_and(|pause| Instant::now() < pause.until);
        !paused && !self.taken.swap(true, SeqCst)
    }

    /// Releases the semaphore: for the next worker at once, or after a failure of the given task only when a pause has passed,
    /// which doubles with each failure in a row.
    pub(super) fn release(&self, result: Result<(), Task>) {
        let mut pause = self.pause.lock();
        *pause = result.err().map(|failed| {
            let length = pause.map_or(PAUSES.0, |pause| (pause.length * 2).min(PAUSES.1));
            Pause { failed, until: Instant::now() + length, length }
        });
        self.taken.store(false, SeqCst);
    }

    /// Ends the pause, since the task that failed is no longer due.
    pub(super) fn nothing_is_due(&self) {
        if !self.taken.load(SeqCst) {
            *self.pause.lock() = None;
        }
    }

    /// What failed when it was last held.
    fn failing(&self) -> Option<Task> {
        self.pause.lock().map(|pause| pause.failed)
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
        semaphore.release(Ok(()));
        assert!(semaphore.try_acquire());
        let mut pauses = Vec::new();
        for _ in 0..8 {
            semaphore.release(Err(Task::Flush));
            assert!(!semaphore.try_acquire(), "there is a pause");
            assert_eq!(semaphore.failing(), Some(Task::Flush));
            pauses.push(semaphore.pause.lock().unwrap().length);
        }
        assert_eq!((pauses[0], pauses[1], pauses[7]), (PAUSES.0, PAUSES.0 * 2, PAUSES.1));
        semaphore.release(Ok(()));
        assert_eq!(semaphore.failing(), None);
        assert!(semaphore.try_acquire());
    }
}
