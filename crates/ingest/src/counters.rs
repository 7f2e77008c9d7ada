//! Counters of documents that pass through pipelines and processors, and of the time that it takes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use serde_json::{Value, json};

/// Counters of one pipeline or processor.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    count: AtomicU64,
    failed: AtomicU64,
    current: AtomicU64,
    nanos: AtomicU64,
}

/// A run of documents that has begun and is not counted yet.
pub(super) struct Running<'c> {
    counters: &'c Counters,
    documents: u64,
    started: Instant,
}

impl Counters {
    /// Begins a run with `documents` documents.
    pub(super) fn enter(&self, documents: usize) -> Running<'_> {
        let documents = documents as u64;
        self.current.fetch_add(documents, Relaxed);
        Running { counters: self, documents, started: Instant::now() }
    }

    /// Adds the counters to `sum`: documents, failures, documents in progress, and time in nanoseconds.
    pub(super) fn add_to(&self, sum: &mut [u64; 4]) {
        let counters = [&self.count, &self.failed, &self.current, &self.nanos];
        for (sum, counter) in sum.iter_mut().zip(counters) {
            *sum += counter.load(Relaxed);
        }
    }

    /// The counters in the form of node statistics.
    pub(super) fn shown(&self) -> Value {
        let mut sum = [0; 4];
        self.add_to(&mut sum);
        shown(sum)
    }
}

impl Running<'_> {
    /// Ends the run and counts its documents, of which `failed` failed.
    pub(super) fn leave(self, failed: usize) {
        let Counters { count, failed: failures, current, nanos } = self.counters;
        count.fetch_add(self.documents, Relaxed);
        failures.fetch_add(failed as u64, Relaxed);
        nanos.fetch_add(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX), Relaxed);
        current.fetch_sub(self.documents, Relaxed);
    }
}

/// Sums of [`Counters::add_to`] as statistics show them.
pub(super) fn shown([count, failed, current, nanos]: [u64; 4]) -> Value {
    json!({"count": count, "time_in_millis": nanos / 1_000_000, "current": current, "failed": failed})
}
