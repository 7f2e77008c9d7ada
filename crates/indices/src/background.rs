//! Work in the background on an index: its kinds, and which of them may begin.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// First and longest pause after a failure.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// A kind of work that an index needs now and then without anybody asking for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Refresh,
    Flush,
    /// Making a log durable that nobody waits for.
    Sync,
    /// Opening log or segments anew after the disk failed, and noting the folder of an upgrade.
    Recovery,
    /// Giving back what only writing needs.
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

/// What one index grants to workers in the background: a semaphore for its refreshes, one for its flushes, syncs and recoveries.
pub(super) struct Semaphores {
    pub(super) refresh: Semaphore,
    pub(super) upkeep: Semaphore,
    /// When a log that nobody waits for was last synced, or opened.
    pub(super) synced: Mutex<Instant>,
    /// Failed merges that were counted.
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

    /// What failed when it was last tried.
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
    /// Takes it, if nobody has it and no pause is on.
    pub(super) fn try_acquire(&self) -> bool {
        let paused = self.pause.lock().is_some_and(|pause| Instant::now() < pause.until);
        !paused && !self.taken.swap(true, SeqCst)
    }

    /// Lets the next worker have it: at once, or after a pause that doubles with each failure in a row.
    pub(super) fn release(&self, result: Result<(), Task>) {
        let mut pause = self.pause.lock();
        *pause = result.err().map(|failed| {
            let length = pause.map_or(PAUSES.0, |pause| (pause.length * 2).min(PAUSES.1));
            Pause { failed, until: Instant::now() + length, length }
        });
        self.taken.store(false, SeqCst);
    }

    /// Nothing is due: what failed was done by somebody else, or is of no use any more.
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
