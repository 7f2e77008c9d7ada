//! Limits the rate at which bytes are copied.

use std::time::{Duration, Instant};

use sparrow_request::error::EngineError;

/// Longest time until a sleeping copy checks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// Rate limit in bytes per second, with a cancellation check.
pub(super) struct Pace<'a> {
    bytes_per_second: Option<u64>,
    stop: &'a (dyn Fn() -> bool + Sync),
    /// Earliest time at which the next byte may be copied.
    next: Instant,
    /// Total time slept because of the limit.
    pub throttled: Duration,
}

impl<'a> Pace<'a> {
    /// A limiter of `bytes_per_second`, or without limit if `None`; `stop` returns true when the copy is
    /// cancelled.
    pub fn new(bytes_per_second: Option<u64>, stop: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { bytes_per_second, stop, next: Instant::now(), throttled: Duration::ZERO }
    }

    /// Fails if the copy was cancelled.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`].
    pub fn check(&self) -> Result<(), EngineError> {
        if (self.stop)() { Err(EngineError::Cancelled) } else { Ok(()) }
    }

    /// Registers `bytes` copied bytes, and sleeps until the rate permits more.
    ///
    /// # Errors
    /// [`EngineError::Cancelled`].
    pub fn copied(&mut self, bytes: usize) -> Result<(), EngineError> {
        self.check()?;
        let Some(rate) = self.bytes_per_second else { return Ok(()) };
        let began = Instant::now();
        let due = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
        self.next = self.next.max(began) + due;
        while let Some(left) = self.next.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
        {
            std::thread::sleep(left.min(LOOK));
            self.check()?;
        }
        self.throttled += began.elapsed();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_kept_and_a_stop_ends_it() {
        let go = || false;
        let mut pace = Pace::new(Some(1_000_000), &go);
        let began = Instant::now();
        for _ in 0..10 {
            pace.copied(10_000).unwrap();
        }
        assert!(began.elapsed() >= Duration::from_millis(99), "{:?}", began.elapsed());
        let stop = || true;
        let mut pace = Pace::new(Some(1), &stop);
        assert!(matches!(pace.copied(1_000_000), Err(EngineError::Cancelled)));
    }
}
