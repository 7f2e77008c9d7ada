//! Stopping requests at each of their checks, for tests.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

thread_local! {
    static PROBE: RefCell<Option<Arc<Probe>>> = const { RefCell::new(None) };
}

/// The probe of the requests that begin on the current thread.
pub(super) fn current() -> Option<Arc<Probe>> {
    PROBE.with_borrow(Clone::clone)
}

/// Counts how often requests check whether they must stop, and stops them at one of these checks. With it, tests find places
/// that go on after they were stopped.
#[derive(Debug)]
pub struct Probe {
    stop_at: u64,
    checks: AtomicU64,
    /// When the last check was, and the longest time between two.
    pace: Mutex<(Instant, Duration)>,
}

impl Probe {
    /// A probe that stops requests at the check with this number, counted from 1.
    pub fn new(stop_at: u64) -> Arc<Self> {
        Arc::new(Self {
            stop_at,
            checks: AtomicU64::new(0),
            pace: Mutex::new((Instant::now(), Duration::ZERO)),
        })
    }

    /// Applies to the requests that begin on the current thread, until it is set to `None`.
    pub fn set(probe: Option<Arc<Self>>) {
        PROBE.set(probe);
    }

    /// Number of checks so far.
    pub fn checks(&self) -> u64 {
        self.checks.load(Relaxed)
    }

    /// The longest time between two checks, by whichever threads.
    pub fn longest_gap(&self) -> Duration {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    pub(super) fn see(&self, stop: &AtomicBool) {
        if self.checks.fetch_add(1, Relaxed) + 1 >= self.stop_at {
            stop.store(true, Relaxed);
        }
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let (last, longest) = *pace;
        *pace = (now, longest.max(now - last));
    }
}
