//! The time limit of a search: when it is over, the flag is set that the layers below poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};

use sparrow_request::error::EngineError;
use sparrow_request::request::CancelFlag;
use sparrow_runtime::attempt;

/// How often the watching thread checks whether the request was cancelled.
const POLL: Duration = Duration::from_millis(5);

/// Watches over the time limit of one search. Without a limit it costs nothing, as the request's own flag is used.
pub struct Deadline {
    flag: Arc<AtomicBool>,
    caller: Arc<AtomicBool>,
    timed_out: Arc<AtomicBool>,
    /// Ends the watching thread when it is dropped with the search.
    _watch: Option<Sender<()>>,
}

impl Deadline {
    /// Starts the clock if there is a time limit.
    pub fn start(timeout: Option<Duration>, caller: &CancelFlag) -> Self {
        let timed_out = Arc::new(AtomicBool::new(false));
        let Some(timeout) = timeout else {
            let flag = Arc::clone(caller.flag());
            return Self { caller: Arc::clone(&flag), flag, timed_out, _watch: None };
        };
        // Cancellation would be noticed late.
        attempt::give_up();
        let flag = Arc::new(AtomicBool::new(caller.is_cancelled()));
        let (sender, ended) = bounded::<()>(0);
        let end = Instant::now() + timeout;
        let of_caller = Arc::clone(caller.flag());
        let (stop, ran_out, caller) = (Arc::clone(&flag), Arc::clone(&timed_out), caller.clone());
        let watch = move || {
            loop {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    ran_out.store(true, Relaxed);
                }
                if left.is_zero() || caller.is_cancelled() {
                    stop.store(true, Relaxed);
                    return;
                }
                match ended.recv_timeout(left.min(POLL)) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let started = std::thread::Builder::new().name("search-timeout".to_owned()).spawn(watch);
        if let Err(error) = started {
            tracing::warn!(%error, "a search runs without its time limit");
        }
        Self { flag, caller: of_caller, timed_out, _watch: Some(sender) }
    }

    /// The flag to poll: set when the request is cancelled or the time is over.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.flag
    }

    /// The flag that is set only when the request is cancelled, not when the time is over.
    pub fn caller(&self) -> &Arc<AtomicBool> {
        &self.caller
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.timed_out.load(Relaxed)
    }
}

/// Whether a request ended because it had to stop.
pub fn is_cancelled(error: &EngineError) -> bool {
    error.es_type() == "task_cancelled_exception"
        || matches!(error, EngineError::Api(error) if error.root_causes.iter().any(|root| root.kind == "task_cancelled_exception"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::{Duration, Instant};

    use super::Deadline;
    use sparrow_request::request::CancelFlag;

    fn wait_for(deadline: &Deadline) {
        let start = Instant::now();
        while !deadline.flag().load(Relaxed) {
            assert!(start.elapsed() < Duration::from_secs(10), "the flag is never set");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_flag_is_set_when_time_is_over() {
        let deadline = Deadline::start(Some(Duration::from_millis(5)), &CancelFlag::default());
        wait_for(&deadline);
        assert!(deadline.is_over() && !deadline.caller().load(Relaxed));
    }

    #[test]
    fn the_caller_can_still_cancel() {
        let caller = CancelFlag::default();
        let deadline = Deadline::start(Some(Duration::from_secs(3600)), &caller);
        caller.cancel();
        wait_for(&deadline);
        assert!(!deadline.is_over() && deadline.caller().load(Relaxed));
        let unlimited = Deadline::start(None, &caller);
        assert!(unlimited.flag().load(Relaxed) && !unlimited.is_over());
    }
}
