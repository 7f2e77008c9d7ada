//! Who waits for a refresh, and for which one.

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::ShardError;

/// How often a waiting request looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
struct State {
    /// Refreshes that have begun.
    begun: u64,
    /// Number of the last one that succeeded.
    done: u64,
    /// The last one that failed, and why.
    failed: Option<(u64, String)>,
    closed: bool,
    waiting: usize,
}

/// Numbers refreshes, so that a request can wait for one that begins after its write.
#[derive(Debug, Default)]
pub(crate) struct Visibility {
    state: Mutex<State>,
    changed: Condvar,
}

impl Visibility {
    /// A refresh begins; gives its number.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.state.lock();
        state.begun += 1;
        state.begun
    }

    /// A refresh ended. They run one after another.
    pub(crate) fn end(&self, number: u64, result: &Result<(), ShardError>) {
        let mut state = self.state.lock();
        match result {
            Ok(()) => state.done = number,
            Err(error) => state.failed = Some((number, error.to_string())),
        }
        self.changed.notify_all();
    }

    /// There will be no refresh any more.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_all();
    }

    /// How many refreshes succeeded, failed ones before the last success included.
    pub(crate) fn done(&self) -> u64 {
        self.state.lock().done
    }

    /// Waits for a refresh that begins from now on. `false`: as many as `most` wait already, and the caller should refresh.
    ///
    /// # Errors
    /// [`ShardError::Refresh`] when that refresh fails, [`ShardError::Closed`] when there will be none, [`ShardError::Cancelled`]
    /// when `cancelled` says so.
    pub(crate) fn wait(&self, most: usize, cancelled: &dyn Fn() -> bool) -> Result<bool, ShardError> {
        let mut state = self.state.lock();
        if state.waiting >= most {
            return Ok(false);
        }
        let wanted = state.begun + 1;
        state.waiting += 1;
        let result = loop {
            if state.done >= wanted {
                break Ok(true);
            }
            if let Some((number, reason)) = &state.failed
                && *number >= wanted
            {
                break Err(ShardError::Refresh { reason: reason.clone() });
            }
            if state.closed {
                break Err(ShardError::Closed);
            }
            if cancelled() {
                break Err(ShardError::Cancelled);
            }
            self.changed.wait_for(&mut state, LOOK);
        };
        state.waiting -= 1;
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

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

    #[test]
    fn a_refresh_that_had_begun_is_not_the_one_that_is_waited_for() {
        let (visibility, flag) = (Arc::new(Visibility::default()), Arc::default());
        let running = visibility.begin();
        let waiter = waiting(&visibility, &flag);
        visibility.end(running, &Ok(()));
        std::thread::sleep(LOOK * 3);
        assert!(!waiter.is_finished());
        let next = visibility.begin();
        visibility.end(next, &Ok(()));
        assert!(waiter.join().unwrap().unwrap());
    }

    #[test]
    fn a_failure_the_end_and_a_caller_that_went_away_end_the_wait() {
        for case in 0..3 {
            let (visibility, flag) = (Arc::new(Visibility::default()), Arc::new(AtomicBool::new(false)));
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
    fn beyond_the_most_nobody_waits() {
        let (visibility, flag) = (Arc::new(Visibility::default()), Arc::new(AtomicBool::new(false)));
        let waiters = [waiting(&visibility, &flag), waiting(&visibility, &flag)];
        while visibility.state.lock().waiting < 2 {
            std::thread::yield_now();
        }
        assert!(!visibility.wait(2, &|| false).unwrap());
        flag.store(true, Ordering::SeqCst);
        waiters.into_iter().for_each(|waiter| assert!(waiter.join().unwrap().is_err()));
    }
}
