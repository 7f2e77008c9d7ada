//! Documents that filter clauses match, kept per segment.
//!
//! A clause in filter context has no score, and a segment never changes: what it matches there is worked
//! out once and kept as a bitmap, deleted documents included, so that deletions do not touch it. Entries
//! belong to a [`SegmentFilters`], which lives as long as any snapshot shows its segment; the
//! [`FilterCache`] bounds the memory of all of them together and evicts what was not used for longest.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::query::DocBits;

/// Bytes kept unless told otherwise. A bitmap takes an eighth of a byte a document: this holds two
/// hundred filters over a million documents.
const DEFAULT_BUDGET: usize = 32 << 20;
/// What an entry takes besides its key and bitmap, roughly.
const ENTRY_OVERHEAD: usize = 128;

/// Figures of a [`FilterCache`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilterCacheStats {
    /// Bytes in use.
    pub bytes: u64,
    /// Look-ups, per clause and segment, that found their documents.
    pub hits: u64,
    /// Look-ups that did not.
    pub misses: u64,
    /// Entries dropped for want of room.
    pub evictions: u64,
}

/// The bound over all segments of the indices that share it.
#[derive(Debug)]
pub struct FilterCache {
    budget: usize,
    used: AtomicUsize,
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
    segments: Mutex<Vec<Weak<SegmentFilters>>>,
}

impl Default for FilterCache {
    fn default() -> Self {
        Self::new(DEFAULT_BUDGET)
    }
}

impl FilterCache {
    /// A cache of at most `budget` bytes; 0 keeps nothing.
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            used: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            segments: Mutex::default(),
        }
    }

    /// Figures of now.
    pub fn stats(&self) -> FilterCacheStats {
        FilterCacheStats {
            bytes: self.used.load(Ordering::Relaxed) as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }

    /// The filters of one more segment.
    pub(crate) fn segment(self: &Arc<Self>) -> Arc<SegmentFilters> {
        let filters = Arc::new(SegmentFilters { cache: self.clone(), entries: Mutex::default() });
        let mut segments = self.segments.lock();
        segments.retain(|segment| segment.strong_count() > 0);
        segments.push(Arc::downgrade(&filters));
        filters
    }

    /// Drops entries, longest unused first, until a quarter of the budget is free: the next evictions
    /// are then far off, and sorting all entries each time costs little.
    fn make_room(&self) {
        let segments: Vec<Arc<SegmentFilters>> =
            self.segments.lock().iter().filter_map(Weak::upgrade).collect();
        let mut entries: Vec<(u64, usize, Arc<[u8]>)> = Vec::new();
        for (number, segment) in segments.iter().enumerate() {
            let kept = segment.entries.lock();
            entries.extend(kept.iter().map(|(key, entry)| (entry.last_used, number, key.clone())));
        }
        entries.sort_unstable_by_key(|(last_used, ..)| *last_used);
        for (_, number, key) in entries {
            if self.used.load(Ordering::Relaxed) <= self.budget / 4 * 3 {
                break;
            }
            if let Some(entry) = segments[number].entries.lock().remove(&key) {
                self.used.fetch_sub(entry.bytes, Ordering::Relaxed);
                self.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// What a clause matches in one segment.
#[derive(Debug, Clone)]
pub(crate) struct Cached {
    pub(crate) docs: SegmentDocs,
    /// Clauses that the query counts for it.
    pub(crate) clauses: usize,
}

/// Documents of one segment that a filter leaves, deleted ones included.
#[derive(Debug, Clone)]
pub(crate) enum SegmentDocs {
    All,
    None,
    Some(Arc<DocBits>),
}

#[derive(Debug)]
struct Entry {
    cached: Cached,
    last_used: u64,
    bytes: usize,
}

/// The cached filters of one segment.
#[derive(Debug)]
pub(crate) struct SegmentFilters {
    cache: Arc<FilterCache>,
    entries: Mutex<FxHashMap<Arc<[u8]>, Entry>>,
}

impl SegmentFilters {
    /// What is known of the clause with this key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Cached> {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(key) else {
            self.cache.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        entry.last_used = self.cache.clock.fetch_add(1, Ordering::Relaxed);
        self.cache.hits.fetch_add(1, Ordering::Relaxed);
        Some(entry.cached.clone())
    }

    /// Keeps what the clause with this key matches.
    pub(crate) fn insert(&self, key: &Arc<[u8]>, cached: Cached) {
        let cache = &self.cache;
        let bitmap = match &cached.docs {
            SegmentDocs::All | SegmentDocs::None => 0,
            SegmentDocs::Some(bits) => bits.words().len() * 8,
        };
        let bytes = ENTRY_OVERHEAD + key.len() + bitmap;
        // One entry may not displace most others.
        if bytes > cache.budget / 4 {
            return;
        }
        let last_used = cache.clock.fetch_add(1, Ordering::Relaxed);
        let before = self.entries.lock().insert(key.clone(), Entry { cached, last_used, bytes });
        if let Some(before) = before {
            cache.used.fetch_sub(before.bytes, Ordering::Relaxed);
        }
        if cache.used.fetch_add(bytes, Ordering::Relaxed) + bytes > cache.budget {
            cache.make_room();
        }
    }
}

impl Drop for SegmentFilters {
    fn drop(&mut self) {
        let bytes: usize = self.entries.get_mut().values().map(|entry| entry.bytes).sum();
        self.cache.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Arc<[u8]> {
        Arc::from(number.to_le_bytes().as_slice())
    }

    fn documents(max_doc: u32) -> Cached {
        Cached { docs: SegmentDocs::Some(Arc::new(DocBits::empty(max_doc))), clauses: 1 }
    }

    #[test]
    fn the_longest_unused_goes_first_and_the_bound_holds() {
        let cache = Arc::new(FilterCache::new(20_000));
        let (left, right) = (cache.segment(), cache.segment());
        for number in 0..100 {
            let segment = if number % 2 == 0 { &left } else { &right };
            segment.insert(&key(number), documents(8000));
            // The first of all stays in use.
            assert!(left.get(&key(0)).is_some());
            assert!(cache.stats().bytes <= 20_000);
        }
        assert!(left.get(&key(2)).is_none());
        assert!(right.get(&key(99)).is_some());
        assert!(cache.stats().evictions > 0);
    }

    #[test]
    fn a_segment_takes_its_entries_with_it() {
        let cache = Arc::new(FilterCache::new(20_000));
        let segment = cache.segment();
        segment.insert(&key(1), documents(800));
        segment.insert(&key(1), documents(1600));
        assert_eq!(cache.stats().bytes, (ENTRY_OVERHEAD + 8 + 200) as u64);
        drop(segment);
        assert_eq!(cache.stats().bytes, 0);
    }

    #[test]
    fn an_entry_that_would_displace_the_others_is_not_kept() {
        let cache = Arc::new(FilterCache::new(10_000));
        let segment = cache.segment();
        segment.insert(&key(1), documents(1_000_000));
        assert!(segment.get(&key(1)).is_none());
        assert_eq!(cache.stats(), FilterCacheStats { misses: 1, ..FilterCacheStats::default() });
    }
}
