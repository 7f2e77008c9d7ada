//! Statistics of a deployment, since its start and over the last minute.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

/// Statistics of one deployment, since its start and over the last minute.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeploymentStats {
    /// Number of texts answered, cache hits included.
    pub inference_count: u64,
    /// Number of texts that failed in the tokenizer or the runtime.
    pub error_count: u64,
    /// Number of texts rejected because the queue was full.
    pub rejected_execution_count: u64,
    /// Number of texts whose caller's time limit was reached.
    pub timeout_count: u64,
    /// Number of texts answered from the encoding cache.
    pub cache_hit_count: u64,
    /// Number of texts answered from the encoding cache in the last minute.
    pub cache_hit_count_last_minute: u64,
    /// Number of texts that wait in the queue now.
    pub pending: u64,
    /// Number of texts of which only the first tokens were encoded.
    pub truncated_texts: u64,
    /// Number of tokens that were cut off (a lower bound for very long texts).
    pub truncated_tokens: u64,
    /// Number of tokens that were encoded.
    pub encoded_tokens: u64,
    /// Number of batches that the workers ran.
    pub batches: u64,
    /// Time spent in batches, summed over all workers.
    pub busy: Duration,
    /// Mean time per text in a worker, in milliseconds; cache hits count as 0.
    pub average_inference_time_ms: f64,
    /// Mean time per text in a worker, in milliseconds, without cache hits.
    pub average_inference_time_ms_excluding_cache_hits: f64,
    /// Average time of an inference over the last minute, in milliseconds.
    pub average_inference_time_ms_last_minute: f64,
    /// Number of texts answered in the last minute.
    pub throughput_last_minute: u64,
    /// Highest number of texts answered in any one minute.
    pub peak_throughput_per_minute: u64,
    /// Start of the deployment, milliseconds since the epoch.
    pub start_time_ms: u64,
    /// Last time a text was answered, milliseconds since the epoch; none before the first.
    pub last_access_ms: Option<u64>,
    /// Current number of worker threads.
    pub allocations: usize,
    /// Number of threads inside one worker.
    pub threads_per_allocation: usize,
    /// Highest number of texts that may wait at the same time.
    pub queue_capacity: usize,
    /// Size limit of the encoding cache, in bytes.
    pub cache_bytes: usize,
    /// Memory of the encoding cache in use, in bytes.
    pub cache_used_bytes: usize,
}

/// Length of the window of the `last_minute` statistics, in seconds.
const WINDOW: usize = 60;

/// Counters for one second.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    /// Seconds since the start of the deployment, plus one; 0 for a slot that has never been used.
    number: u64,
    texts: u64,
    hits: u64,
    busy: Duration,
}

#[derive(Debug, Default)]
struct Counters {
    texts: u64,
    hits: u64,
    errors: u64,
    rejected: u64,
    timed_out: u64,
    truncated_texts: u64,
    truncated_tokens: u64,
    tokens: u64,
    batches: u64,
    busy: Duration,
    peak: u64,
    last_access_ms: Option<u64>,
    ring: Vec<Second>,
}

impl Counters {
    fn none() -> Self {
        Self { ring: vec![Second::default(); WINDOW], ..Self::default() }
    }
}

/// Collects the statistics of a deployment.
#[derive(Debug)]
pub(crate) struct Recorder {
    started: Instant,
    start_time_ms: u64,
    counters: Mutex<Counters>,
}

impl Recorder {
    /// A recorder with all counters at 0.
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), start_time_ms: now_ms(), counters: Mutex::new(Counters::none()) }
    }

    /// Forgets what was counted.
    pub(crate) fn reset(&self) {
        *self.counters.lock() = Counters::none();
    }

    /// Counts a batch of texts that a worker answered in the time `busy`: their tokens, and how many texts
    /// and tokens were truncated.
    pub(crate) fn answered(&self, texts: u64, busy: Duration, tokens: u64, cut: (u64, u64)) {
        let mut counters = self.counters.lock();
        counters.tokens += tokens;
        counters.batches += 1;
        counters.truncated_texts += cut.0;
        counters.truncated_tokens += cut.1;
        counters.busy += busy;
        self.count(&mut counters, texts, 0, busy);
    }

    /// Counts texts answered from the cache.
    pub(crate) fn hits(&self, texts: u64) {
        self.count(&mut self.counters.lock(), texts, texts, Duration::ZERO);
    }

    /// Counts texts that failed.
    pub(crate) fn failed(&self, texts: u64) {
        self.counters.lock().errors += texts;
    }

    /// Counts texts rejected because the queue was full.
    pub(crate) fn rejected(&self, texts: u64) {
        self.counters.lock().rejected += texts;
    }

    /// Counts texts whose caller's time limit was reached.
    pub(crate) fn timed_out(&self, texts: u64) {
        self.counters.lock().timed_out += texts;
    }

    /// The statistics so far; those that the recorder does not know are 0.
    pub(crate) fn snapshot(&self) -> DeploymentStats {
        self.snapshot_at(self.second())
    }

    fn snapshot_at(&self, second: u64) -> DeploymentStats {
        let counters = self.counters.lock();
        let minute = last_minute(&counters.ring, second);
        let mean = |busy: Duration, texts: u64| busy.as_secs_f64() * 1000.0 / texts.max(1) as f64;
        DeploymentStats {
            inference_count: counters.texts,
            error_count: counters.errors,
            rejected_execution_count: counters.rejected,
            timeout_count: counters.timed_out,
            cache_hit_count: counters.hits,
            cache_hit_count_last_minute: minute.hits,
            truncated_texts: counters.truncated_texts,
            truncated_tokens: counters.truncated_tokens,
            encoded_tokens: counters.tokens,
            batches: counters.batches,
            busy: counters.busy,
            average_inference_time_ms: mean(counters.busy, counters.texts),
            average_inference_time_ms_excluding_cache_hits: mean(
                counters.busy,
                counters.texts - counters.hits,
            ),
            average_inference_time_ms_last_minute: mean(minute.busy, minute.texts),
            throughput_last_minute: minute.texts,
            peak_throughput_per_minute: counters.peak,
            start_time_ms: self.start_time_ms,
            last_access_ms: counters.last_access_ms,
            ..DeploymentStats::default()
        }
    }

    fn second(&self) -> u64 {
        self.started.elapsed().as_secs() + 1
    }

    fn count(&self, counters: &mut Counters, texts: u64, hits: u64, busy: Duration) {
        let second = self.second();
        counters.texts += texts;
        counters.hits += hits;
        counters.last_access_ms = Some(now_ms());
        let slot = &mut counters.ring[second as usize % WINDOW];
        if slot.number != second {
            *slot = Second { number: second, ..Second::default() };
        }
        slot.texts += texts;
        slot.hits += hits;
        slot.busy += busy;
        counters.peak = counters.peak.max(last_minute(&counters.ring, second).texts);
    }
}

fn last_minute(ring: &[Second], now: u64) -> Second {
    let mut sum = Second::default();
    for second in ring.iter().filter(|second| second.number > 0 && second.number + WINDOW as u64 > now) {
        sum.texts += second.texts;
        sum.hits += second.hits;
        sum.busy += second.busy;
    }
    sum
}

fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Recorder;

    #[test]
    fn averages_and_the_last_minute() {
        let recorder = Recorder::new();
        recorder.answered(4, Duration::from_millis(40), 100, (1, 7));
        recorder.hits(4);
        recorder.rejected(2);
        let stats = recorder.snapshot();
        assert_eq!((stats.inference_count, stats.cache_hit_count, stats.rejected_execution_count), (8, 4, 2));
        assert_eq!((stats.truncated_texts, stats.truncated_tokens, stats.encoded_tokens), (1, 7, 100));
        assert!((stats.average_inference_time_ms - 5.0).abs() < 1e-9);
        assert!((stats.average_inference_time_ms_excluding_cache_hits - 10.0).abs() < 1e-9);
        assert_eq!((stats.throughput_last_minute, stats.peak_throughput_per_minute), (8, 8));
        assert!(stats.last_access_ms.is_some_and(|last| last >= stats.start_time_ms));
        let later = recorder.snapshot_at(70);
        assert_eq!((later.throughput_last_minute, later.cache_hit_count_last_minute), (0, 0));
        assert_eq!((later.inference_count, later.peak_throughput_per_minute), (8, 8));
        recorder.reset();
        let again = recorder.snapshot();
        assert_eq!((again.inference_count, again.encoded_tokens, again.last_access_ms), (0, 0, None));
    }
}
