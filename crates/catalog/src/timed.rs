//! Counting how often operations run, and how long they take.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use sparrow_runtime::attempt;

/// How often an operation has run, how long all runs took together, and how many are running now.
#[derive(Debug, Default)]
pub struct Timed {
    count: AtomicU64,
    nanos: AtomicU64,
    pub(super) current: AtomicU64,
}

impl Timed {
    /// Counts `count` runs that took `time` together. What ends in an attempt that has been given up is not counted: it is repeated.
    pub fn add(&self, count: u64, time: Duration) {
        if attempt::is_given_up() {
            return;
        }
        self.count.fetch_add(count, Relaxed);
        self.nanos.fetch_add(time.as_nanos() as u64, Relaxed);
    }

    /// Counts a run that begins now, and that ends when the returned value is dropped.
    pub fn begin(&self) -> Running<'_> {
        self.current.fetch_add(1, Relaxed);
        Running { timed: self, began: Instant::now() }
    }

    /// Takes back the run that has just ended, should the attempt that it belongs to be given up before the returned value is dropped.
    pub fn take_back_if_repeated(&self) -> Repeatable<'_> {
        Repeatable((!attempt::is_given_up()).then_some(self))
    }

    pub fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    pub fn millis(&self) -> u64 {
        self.nanos.load(Relaxed) / 1_000_000
    }

    pub fn current(&self) -> u64 {
        self.current.load(Relaxed)
    }
}

/// A run of a counted operation, which ends when this is dropped.
pub struct Running<'a> {
    timed: &'a Timed,
    began: Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.timed.current.fetch_sub(1, Relaxed);
        self.timed.add(1, self.began.elapsed());
    }
}

/// A run that has been counted and may be repeated.
pub struct Repeatable<'a>(Option<&'a Timed>);

impl Drop for Repeatable<'_> {
    fn drop(&mut self) {
        if let Some(timed) = self.0
            && attempt::is_given_up()
        {
            timed.count.fetch_sub(1, Relaxed);
        }
    }
}
