//! What one index has done since it was opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::op::{WriteKind, WriteOutcome};
use super::search_groups::SearchGroups;
pub use super::timed::{Repeatable, Running, Timed};
use sparrow_request::error::EngineError;

/// How often one index has run each kind of operation since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    pub index: Timed,
    pub index_failed: AtomicU64,
    pub conflicts: AtomicU64,
    pub delete: Timed,
    pub noop: AtomicU64,
    /// Batches of writes; a single write is a batch of one.
    pub bulk: Timed,
    pub bulk_bytes: AtomicU64,
    pub get_exists: Timed,
    pub get_missing: Timed,
    pub query: Timed,
    pub query_failure: AtomicU64,
    pub fetch: Timed,
    pub fetch_failure: AtomicU64,
    /// Counts and times of searches by the names that requests give in `stats`.
    pub groups: SearchGroups,
    pub scroll: Timed,
    /// Number of scrolls and points in time that are open now.
    pub open_contexts: AtomicU64,
    pub refresh: Timed,
    /// All flushes, whatever caused them.
    pub flush: Timed,
    /// Flushes that background work started: for a long log, many files to remove, or a minute without a flush.
    pub periodic_flush: AtomicU64,
}

impl Counters {
    /// Counts a batch of writes. Its time is divided between index operations and deletions by their numbers.
    pub fn wrote(
        &self,
        kinds: &[WriteKind],
        results: &[Result<WriteOutcome, EngineError>],
        bytes: usize,
        time: Duration,
    ) {
        let deletes = kinds.iter().filter(|kind| **kind == WriteKind::Delete).count() as u32;
        let all = kinds.len() as u32;
        if all == 0 {
            return;
        }
        let (mut indexed, mut deleted) = (0, 0);
        for (kind, result) in kinds.iter().zip(results) {
            match (kind, result) {
                (WriteKind::Delete, Ok(_)) => deleted += 1,
                (_, Ok(_)) => indexed += 1,
                (WriteKind::Delete, Err(_)) => {}
                (_, Err(error)) => {
                    self.index_failed.fetch_add(1, Relaxed);
                    if matches!(error, EngineError::VersionConflict { .. }) {
                        self.conflicts.fetch_add(1, Relaxed);
                    }
                }
            }
        }
        self.delete.add(deleted, time * deletes / all);
        self.index.add(indexed, time * (all - deletes) / all);
        self.bulk.add(1, time);
        self.bulk_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts a read of a document by its id.
    pub fn got(&self, exists: bool, time: Duration) {
        if exists { self.get_exists.add(1, time) } else { self.get_missing.add(1, time) }
    }
}

/// Counts a scroll or a point in time as open until it is dropped.
#[derive(Debug)]
pub struct OpenContext {
    counters: Vec<Arc<Counters>>,
    scroll: bool,
    began: Instant,
}

impl OpenContext {
    pub fn new(counters: Vec<Arc<Counters>>, scroll: bool) -> Self {
        for one in &counters {
            one.open_contexts.fetch_add(1, Relaxed);
            if scroll {
                one.scroll.current.fetch_add(1, Relaxed);
            }
        }
        Self { counters, scroll, began: Instant::now() }
    }
}

impl Drop for OpenContext {
    fn drop(&mut self) {
        for one in &self.counters {
            one.open_contexts.fetch_sub(1, Relaxed);
            if self.scroll {
                one.scroll.current.fetch_sub(1, Relaxed);
                one.scroll.add(1, self.began.elapsed());
            }
        }
    }
}
