//! Rate limit of a job, in documents per second, which can be changed while the job runs.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use sparrow_request::error::EngineError;
use sparrow_request::request::Request;

/// A rate limit, with the time that was slept because of it.
#[derive(Debug)]
pub struct Throttle {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    requests_per_second: f64,
    throttled: Duration,
    /// End of the current sleep; `None` while not sleeping.
    until: Option<Instant>,
}

impl Throttle {
    /// A limit in documents per second; infinity for no limit.
    pub fn new(requests_per_second: f64) -> Self {
        Self {
            state: Mutex::new(State { requests_per_second, throttled: Duration::ZERO, until: None }),
            changed: Condvar::new(),
        }
    }

    /// Changes the limit. A higher one shortens the current sleep, a lower one applies from the next batch
    /// on.
    pub fn change(&self, requests_per_second: f64) {
        let mut state = self.state.lock();
        if requests_per_second > state.requests_per_second
            && let Some(until) = state.until
        {
            let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
            let shorter = left * state.requests_per_second / requests_per_second;
            state.until = Some(Instant::now() + Duration::from_secs_f64(shorter));
        }
        state.requests_per_second = requests_per_second;
        self.changed.notify_all();
    }

    /// Sleeps after a batch of documents that was started at `began`, until the limit permits the next batch,
    /// or until `stop` returns true (called whenever the limit changes, and every 100 ms).
    pub fn pause(&self, documents: usize, began: Instant, stop: &dyn Fn() -> bool) {
        let mut state = self.state.lock();
        if !state.requests_per_second.is_finite() || documents == 0 {
            return;
        }
        #[expect(clippy::cast_precision_loss, reason = "a batch has far fewer documents than 2^52")]
        let due = Duration::try_from_secs_f64(documents as f64 / state.requests_per_second)
            .unwrap_or(Duration::MAX);
        let Some(until) = began.checked_add(due) else { return };
        let start = Instant::now();
        state.until = Some(until);
        while let Some(until) = state.until
            && Instant::now() < until
            && !stop()
        {
            let next = until.min(Instant::now() + Duration::from_millis(100));
            self.changed.wait_until(&mut state, next);
        }
        state.until = None;
        state.throttled += start.elapsed();
    }

    /// The limit in documents per second; infinity for no limit.
    pub fn requests_per_second(&self) -> f64 {
        self.state.lock().requests_per_second
    }

    /// Time slept so far, in milliseconds.
    pub fn throttled_millis(&self) -> f64 {
        self.state.lock().throttled.as_secs_f64() * 1000.0
    }

    /// Rest of the current sleep, in milliseconds; 0 while not sleeping.
    pub fn throttled_until_millis(&self) -> f64 {
        let until = self.state.lock().until;
        until.map_or(0.0, |until| until.saturating_duration_since(Instant::now()).as_secs_f64() * 1000.0)
    }
}

/// Parses the parameter `requests_per_second`: infinity for -1, `None` if it is missing.
///
/// # Errors
/// Illegal argument for anything but a positive number or -1.
pub fn requests_per_second(request: &Request) -> Result<Option<f64>, EngineError> {
    let Some(text) = request.params().get("requests_per_second") else { return Ok(None) };
    match text.parse::<f64>() {
        Ok(pace) if pace.to_bits() == (-1.0_f64).to_bits() => Ok(Some(f64::INFINITY)),
        Ok(pace) if pace > 0.0 && pace.is_finite() => Ok(Some(pace)),
        _ => Err(EngineError::illegal_argument(
            "[requests_per_second] must be a float greater than 0. Use -1 to disable throttling.",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::Throttle;

    #[test]
    fn a_batch_is_followed_by_a_sleep() {
        let throttle = Throttle::new(1000.0);
        let began = Instant::now();
        throttle.pause(100, began, &|| false);
        assert!(began.elapsed() >= Duration::from_millis(99), "{:?}", began.elapsed());
        assert!(throttle.throttled_millis() >= 90.0);
        assert!(throttle.throttled_until_millis().abs() < f64::EPSILON);
    }

    #[test]
    fn no_pace_no_sleep() {
        let throttle = Throttle::new(f64::INFINITY);
        throttle.pause(1_000_000, Instant::now(), &|| false);
        assert!(throttle.throttled_millis().abs() < f64::EPSILON);
    }

    #[test]
    fn a_faster_pace_and_a_stop_end_the_sleep() {
        let throttle = Arc::new(Throttle::new(0.1));
        let began = Instant::now();
        let sleeper = {
            let throttle = Arc::clone(&throttle);
            std::thread::spawn(move || throttle.pause(1000, began, &|| false))
        };
        while throttle.throttled_until_millis() < 1.0 {
            std::thread::yield_now();
        }
        throttle.change(f64::INFINITY);
        sleeper.join().unwrap();
        // The sleep would have taken 10,000 seconds.
        assert!(throttle.throttled_millis() < 5_000_000.0);
        let throttle = Throttle::new(0.1);
        throttle.pause(1000, Instant::now(), &|| true);
        assert!(throttle.throttled_millis() < 1000.0);
    }
}
