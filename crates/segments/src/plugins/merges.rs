//! Statistics of the merges of one index since it was opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::Mutex;
use sparrow_runtime::niceness;

/// Statistics of merges. Bytes and times cover sparse postings and dense vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MergeStats {
    /// Number of running merges.
    pub current: u64,
    /// Documents in running merges.
    pub current_docs: u64,
    /// Bytes read by running merges.
    pub current_bytes: u64,
    /// Number of ended merges, including failed ones.
    pub total: u64,
    /// Documents in ended merges.
    pub docs: u64,
    /// Bytes read by ended merges.
    pub bytes: u64,
    /// Total duration of ended merges, in nanoseconds.
    pub nanos: u64,
    /// Number of failed merges. Their segments are kept, and merged after the next commit.
    pub failed: u64,
}

/// Failed merges and the last reason. tantivy starts most merges itself and reports their errors to nobody,
/// so the directory and the segment plugin record them here.
#[derive(Debug, Default)]
pub struct MergeFailures {
    count: AtomicU64,
    /// The segment of the last failure and the reason; `None` after a successful merge.
    last: Mutex<Option<(String, String)>>,
}

impl MergeFailures {
    /// Records a failure, once per segment: closing the file of a failed merge fails as well.
    pub fn note(&self, segment: &str, reason: &dyn std::fmt::Display) {
        let mut last = self.last.lock();
        if last.as_ref().is_some_and(|(before, _)| before == segment) {
            return;
        }
        tracing::error!(segment, %reason, "a merge failed; it is tried again after the next commit");
        *last = Some((segment.to_owned(), reason.to_string()));
        self.count.fetch_add(1, Relaxed);
    }

    /// Clears the last failure, after a successful merge.
    pub fn mended(&self) {
        *self.last.lock() = None;
    }

    /// Reason of the last failed merge; `None` if a later one succeeded.
    pub fn last(&self) -> Option<String> {
        self.last.lock().as_ref().map(|(_, reason)| reason.clone())
    }
}

/// Whether the current thread is one of tantivy's merge threads.
pub(crate) fn on_merge_thread() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("merge_thread"))
}

/// Whether the current thread is one of tantivy's that build segments of new documents.
pub(crate) fn on_indexing_thread() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("thrd-tantivy-index"))
}

/// Merge counters, shared by the segment plugin, which updates them, and those who read them.
#[derive(Debug, Default)]
pub struct MergeCounters {
    current: AtomicU64,
    current_docs: AtomicU64,
    current_bytes: AtomicU64,
    total: AtomicU64,
    docs: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
    pub failures: Arc<MergeFailures>,
}

impl MergeCounters {
    /// Counters that record failures in `failures`, which the index's directory shares.
    pub fn with(failures: Arc<MergeFailures>) -> Self {
        Self { failures, ..Self::default() }
    }

    /// Registers the start of a merge; dropping the returned guard registers its end.
    pub fn begin(&self, docs: u64, bytes: u64) -> Merging<'_> {
        if on_merge_thread() {
            niceness::step_behind_writes();
        }
        self.current.fetch_add(1, Relaxed);
        self.current_docs.fetch_add(docs, Relaxed);
        self.current_bytes.fetch_add(bytes, Relaxed);
        Merging { counters: self, docs, bytes, began: Instant::now() }
    }

    pub fn stats(&self) -> MergeStats {
        MergeStats {
            current: self.current.load(Relaxed),
            current_docs: self.current_docs.load(Relaxed),
            current_bytes: self.current_bytes.load(Relaxed),
            total: self.total.load(Relaxed),
            docs: self.docs.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            nanos: self.nanos.load(Relaxed),
            failed: self.failures.count.load(Relaxed),
        }
    }
}

/// Guard of a running merge.
pub struct Merging<'a> {
    counters: &'a MergeCounters,
    docs: u64,
    bytes: u64,
    began: Instant,
}

impl Drop for Merging<'_> {
    fn drop(&mut self) {
        let counters = self.counters;
        counters.current.fetch_sub(1, Relaxed);
        counters.current_docs.fetch_sub(self.docs, Relaxed);
        counters.current_bytes.fetch_sub(self.bytes, Relaxed);
        counters.total.fetch_add(1, Relaxed);
        counters.docs.fetch_add(self.docs, Relaxed);
        counters.bytes.fetch_add(self.bytes, Relaxed);
        counters.nanos.fetch_add(self.began.elapsed().as_nanos() as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_is_current_until_it_ends() {
        let counters = MergeCounters::default();
        let merging = counters.begin(3, 40);
        let stats = counters.stats();
        assert_eq!((stats.current, stats.current_docs, stats.current_bytes, stats.total), (1, 3, 40, 0));
        drop(merging);
        let stats = counters.stats();
        assert_eq!((stats.current, stats.total, stats.docs, stats.bytes), (0, 1, 3, 40));
    }

    #[test]
    fn a_failure_counts_once_and_stands_until_a_merge_succeeds() {
        let counters = MergeCounters::default();
        let failures = counters.failures.clone();
        failures.note("a", &"no space");
        failures.note("a", &"no space, again");
        assert_eq!((counters.stats().failed, failures.last()), (1, Some("no space".to_owned())));
        failures.note("b", &"still none");
        failures.mended();
        assert_eq!((counters.stats().failed, failures.last()), (2, None));
    }
}
