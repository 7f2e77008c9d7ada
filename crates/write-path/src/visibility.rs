//! Lets requests wait for the refresh that shows their writes.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use sparrow_runtime::processors::pause;

use crate::error::ShardError;

/// How often a waiting request checks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// Why a refresh failed.
#[derive(Debug, Clone)]
struct Failure {
    reason: String,
    disk_full: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Whether there are writes that no refresh has taken.
    dirty: bool,
    /// Number of refreshes started; also the number of the latest.
    begun: u64,
    /// Number of the last refresh that took all writes.
    taken: u64,
    /// Number of the last refresh that succeeded.
    done: u64,
    /// Number of the last refresh that failed, and why.
    failed: Option<(u64, Failure)>,
    closed: bool,
    waiting: usize,
}

impl State {
    /// Number of the refresh that shows all writes so far.
    fn covering(&self) -> u64 {
        let ended = self.failed.as_ref().map_or(self.done, |(number, _)| self.done.max(*number));
        match self.dirty {
            false => self.taken,
            // It runs, and takes it before it ends.
            true if self.begun > ended && self.taken < self.begun => self.begun,
            true => self.begun + 1,
        }
    }
}

/// Numbers refreshes, so that a request can wait for the one that shows its write.
#[derive(Debug, Default)]
pub(crate) struct Visibility {
    state: Mutex<State>,
    changed: Condvar,
}

impl Visibility {
    /// Registers the start of a refresh; returns its number.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        state.begun += 1;
        state.begun
    }

    /// Registers a write. The caller holds the write lock.
    pub(crate) fn note_write(&self) {
        self.state.lock().dirty = true;
    }

    /// Whether there are writes that no refresh has taken.
    pub(crate) fn is_dirty(&self) -> bool {
        self.state.lock().dirty
    }

    /// Registers that a running refresh has taken all writes so far. The caller holds the write lock.
    pub(crate) fn take(&self, number: u64) {
        let mut state = self.state.lock();
        state.dirty = false;
        state.taken = number;
    }

    /// Registers the end of a refresh and wakes those who wait. Refreshes run one at a time.
    pub(crate) fn end(&self, number: u64, result: &Result<(), ShardError>) {
        let mut state = self.state.lock();
        match result {
            Ok(()) => state.done = number,
            Err(error) => {
                let failure = Failure { reason: error.to_string(), disk_full: error.is_disk_full() };
                // A refusal may have ended a later one already.
                if state.failed.as_ref().is_none_or(|(before, _)| *before <= number) {
                    state.failed = Some((number, failure));
                }
            }
        }
        self.changed.notify_all();
    }

    /// Registers that there will be no further refresh, and wakes those who wait.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// Number of the last refresh that succeeded; it counts failed ones before it, too.
    pub(crate) fn done(&self) -> u64 {
        self.state.lock().done
    }

    /// Waits for the refresh that shows all writes made before the call. Returns false, without waiting, when
    /// `most` requests already wait; the caller should refresh then.
    ///
    /// # Errors
    /// [`ShardError::Refresh`] when that refresh fails, [`ShardError::Closed`] when there will be none,
    /// [`ShardError::Cancelled`] when `cancelled` returns true.
    pub(crate) fn wait(&self, most: usize, cancelled: &dyn Fn() -> bool) -> Result<bool, ShardError> {
        let mut state = self.state.lock();
        let wanted = state.covering();
        if state.done >= wanted {
            return Ok(true);
        }
        if state.waiting >= most {
            return Ok(false);
        }
        state.waiting += 1;
        let result = loop {
            if state.done >= wanted {
                break Ok(true);
            }
            if let Some((number, failure)) = &state.failed
                && *number >= wanted
            {
                let Failure { reason, disk_full } = failure.clone();
                break Err(ShardError::Refresh { reason, disk_full });
            }
            if state.closed {
                break Err(ShardError::Closed);
            }
            if cancelled() {
                break Err(ShardError::Cancelled);
            }
            pause(|| self.changed.wait_for(&mut state, LOOK));
        };
        state.waiting -= 1;
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Instant;

    use sparrow_runtime::processors::{self, Busy};

    use super::*;

    fn waiting(
        visibility: &Arc<Visibility>,
        cancelled: &Arc<AtomicBool>,
    ) -> std::thread::JoinHandle<Result<bool, ShardError>> {
        let (own, flag) = (visibility.clone(), cancelled.clone());
        let thread = std::thread::spawn(move || own.wait(2, &|| flag.load(Ordering::SeqCst)));
        while visibility.state.lock().waiting == 0 {
            std::thread::yield_now();
        }
        thread
    }

    /// Starts a refresh that takes all writes and has not ended yet.
    fn taking(visibility: &Visibility) -> u64 {
        let number = visibility.begin();
        visibility.take(number);
        number
    }

    #[test]
    fn what_is_written_while_a_refresh_ends_waits_for_the_next() {
        let (visibility, flag) = (Arc::new(Visibility::default()), Arc::default());
        let running = taking(&visibility);
        visibility.note_write();
        let waiter = waiting(&visibility, &flag);
        visibility.end(running, &Ok(()));
        std::thread::sleep(LOOK * 3);
        assert!(!waiter.is_finished());
        let next = taking(&visibility);
        visibility.end(next, &Ok(()));
        assert!(waiter.join().unwrap().unwrap());
    }

    /// A request that waited for the next refresh instead might wait for one that never comes.
    #[test]
    fn what_a_running_refresh_takes_waits_for_that_one() {
        for takes_first in [true, false] {
            let (visibility, flag) = (Arc::new(Visibility::default()), Arc::default());
            visibility.note_write();
            let running = visibility.begin();
            if takes_first {
                visibility.take(running);
            }
            let waiter = waiting(&visibility, &flag);
            visibility.take(running);
            visibility.end(running, &Ok(()));
            assert!(waiter.join().unwrap().unwrap());
            assert!(visibility.wait(0, &|| true).unwrap(), "nothing is left to wait for");
        }
    }

    #[test]
    fn a_failure_of_the_past_is_not_the_answer() {
        let (visibility, flag) = (Arc::new(Visibility::default()), Arc::default());
        visibility.note_write();
        let failing = visibility.begin();
        visibility.end(failing, &Err(ShardError::UnknownRecord));
        let waiter = waiting(&visibility, &flag);
        let next = taking(&visibility);
        visibility.end(next, &Ok(()));
        assert!(waiter.join().unwrap().unwrap());
    }

    #[test]
    fn a_failure_the_end_and_a_caller_that_went_away_end_the_wait() {
        for case in 0..3 {
            let (visibility, flag) = (Arc::new(Visibility::default()), Arc::new(AtomicBool::new(false)));
            visibility.note_write();
            let waiter = waiting(&visibility, &flag);
            match case {
                0 => {
                    let number = visibility.begin();
                    visibility.end(number, &Err(ShardError::UnknownRecord));
                }
                1 => visibility.close(),
                _ => flag.store(true, Ordering::SeqCst),
            }
            let error = waiter.join().unwrap().unwrap_err();
            assert!(match case {
                0 => matches!(error, ShardError::Refresh { .. }),
                1 => matches!(error, ShardError::Closed),
                _ => matches!(error, ShardError::Cancelled),
            });
        }
    }

    #[test]
    fn who_waits_does_not_count_as_busy() {
        let visibility = Visibility::default();
        visibility.note_write();
        let counted = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _busy = Busy::begin();
                counted.store(processors::idle() < processors::available(), Ordering::SeqCst);
                visibility.wait(2, &|| false)
            });
            while visibility.state.lock().waiting == 0 {
                std::thread::yield_now();
            }
            let end = Instant::now() + Duration::from_secs(10);
            let is_counted = || processors::idle() < processors::available();
            while is_counted() && Instant::now() < end {
                std::thread::yield_now();
            }
            let still_counted = is_counted();
            visibility.close();
            assert!(!still_counted);
        });
        assert!(counted.into_inner(), "it counts before it waits");
    }

    #[test]
    fn beyond_the_most_nobody_waits() {
        let (visibility, flag) = (Arc::new(Visibility::default()), Arc::new(AtomicBool::new(false)));
        visibility.note_write();
        let waiters = [waiting(&visibility, &flag), waiting(&visibility, &flag)];
        while visibility.state.lock().waiting < 2 {
            std::thread::yield_now();
        }
        assert!(!visibility.wait(2, &|| false).unwrap());
        flag.store(true, Ordering::SeqCst);
        waiters.into_iter().for_each(|waiter| assert!(waiter.join().unwrap().is_err()));
    }
}
