//! Measures where the time of a call goes. Only calls that ask for it are timed.

use std::time::{Duration, Instant};

/// Time spent in the phases of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// Number of texts in the call.
    pub texts: usize,
    /// Number of texts found in the cache.
    pub cached: usize,
    /// Time to tokenize the texts.
    pub tokenize: Duration,
    /// Time from queuing the first text until the first batch that has one of them begins.
    pub queue: Duration,
    /// Time of all batches with a text of the call; other calls may share them.
    pub infer: Duration,
}

/// Measurements of a call in progress.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    tokenize: Duration,
    queued: Option<Instant>,
    started: Option<Instant>,
    last: Option<Instant>,
    infer: Duration,
}

impl Clock {
    /// Adds the time that it took to tokenize a text.
    pub(crate) fn tokenized(&mut self, took: Duration) {
        self.tokenize += took;
    }

    /// Notes that texts are about to wait in the queue; the first time counts.
    pub(crate) fn queued(&mut self) {
        self.queued.get_or_insert_with(Instant::now);
    }

    /// Adds the time of a batch with a text of the call; called once for each of its texts, but counted once.
    pub(crate) fn batch(&mut self, started: Instant, busy: Duration) {
        self.started.get_or_insert(started);
        if self.last != Some(started) {
            self.last = Some(started);
            self.infer += busy;
        }
    }

    /// Timings of the phases so far.
    pub(crate) fn timings(&self, texts: usize, cached: usize) -> Timings {
        let queue = match (self.queued, self.started) {
            (Some(queued), Some(started)) => started.saturating_duration_since(queued),
            _ => Duration::ZERO,
        };
        Timings { texts, cached, tokenize: self.tokenize, queue, infer: self.infer }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Clock;

    #[test]
    fn a_batch_counts_once_for_all_its_texts() {
        let mut clock = Clock::default();
        clock.tokenized(Duration::from_millis(2));
        clock.tokenized(Duration::from_millis(3));
        let asked = Instant::now();
        clock.queued();
        let first = Instant::now();
        clock.batch(first, Duration::from_millis(10));
        clock.batch(first, Duration::from_millis(10));
        let second = first + Duration::from_millis(20);
        clock.batch(second, Duration::from_millis(5));
        let timings = clock.timings(3, 0);
        assert_eq!(timings.tokenize, Duration::from_millis(5));
        assert_eq!(timings.infer, Duration::from_millis(15));
        assert!(timings.queue <= first - asked);
        assert_eq!(Clock::default().timings(1, 1).queue, Duration::ZERO);
    }
}
