//! Documents that filter clauses match, kept per segment.
//!
//! A clause in filter context has no score, and a segment never changes: the documents it matches there are
//! computed once and kept as a bitmap, deleted documents included, so that deletions do not touch it. Entries
//! belong to a [`SegmentFilters`], which lives as long as any snapshot shows its segment; the [`FilterCache`]
//! bounds the memory of all of them together and evicts the least recently used entries.
//!
//! The sorted columns with which ranges are found ([`RangeIndex`]) are kept beside them, under the same
//! bound.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};
use sparrow_runtime::attempt;

use crate::range_index::RangeIndex;
use crate::segment_docs::SegmentDocs;

/// Default size of the cache, in bytes. A bitmap takes one bit per document: this holds two hundred filters
/// over a million documents.
const DEFAULT_BUDGET: usize = 32 << 20;
/// Estimated overhead of a cache entry in bytes, besides its key and bitmap.
const ENTRY_OVERHEAD: usize = 128;
/// Number of scans of a column that take as long as sorting it.
const SCANS_BEFORE_SORT: u32 = 8;
/// Number of slots, per segment, that remember cheap clauses seen once.
const SEEN_ONCE: usize = 64;

/// Usage statistics of a [`FilterCache`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct FilterCacheStats {
    /// Bytes in use.
    pub bytes: u64,
    /// Look-ups, one per clause and segment, that found a cached result.
    pub hits: u64,
    /// Look-ups that found no cached result.
    pub misses: u64,
    /// Entries evicted to make room.
    pub evictions: u64,
}

/// A cache of filter results with one memory limit for all segments of the indices that share it.
#[derive(Debug)]
pub struct FilterCache {
    budget: usize,
    scans_before_sort: u32,
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
            scans_before_sort: SCANS_BEFORE_SORT,
            used: AtomicUsize::new(0),
            clock: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            segments: Mutex::default(),
        }
    }

    /// Has columns sorted after another number of scans.
    #[must_use]
    pub fn sorting_after(self, scans: u32) -> Self {
        Self { scans_before_sort: scans, ..self }
    }

    /// Current usage statistics.
    pub fn stats(&self) -> FilterCacheStats {
        FilterCacheStats {
            bytes: self.used.load(Ordering::Relaxed) as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }

    /// Adds a segment, and returns the store for its filter results.
    pub fn segment(self: &Arc<Self>) -> Arc<SegmentFilters> {
        let filters = Arc::new(SegmentFilters { cache: self.clone(), filters: Mutex::default() });
        let mut segments = self.segments.lock();
        segments.retain(|segment| segment.strong_count() > 0);
        segments.push(Arc::downgrade(&filters));
        filters
    }

    /// The next value of a logical clock, later than any before.
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Drops entries, least recently used first, until a quarter of the budget is free: the next evictions
    /// are then far off, and sorting all entries each time costs little.
    fn make_room(&self) {
        let segments: Vec<Arc<SegmentFilters>> =
            self.segments.lock().iter().filter_map(Weak::upgrade).collect();
        let mut entries: Vec<(u64, usize, Arc<[u8]>)> = Vec::new();
        for (number, segment) in segments.iter().enumerate() {
            let filters = segment.filters.lock();
            entries.extend(filters.entries.iter().map(|(key, entry)| (entry.last_used, number, key.clone())));
        }
        entries.sort_unstable_by_key(|(last_used, ..)| *last_used);
        for (_, number, key) in entries {
            if self.used.load(Ordering::Relaxed) <= self.budget / 4 * 3 {
                break;
            }
            if let Some(entry) = segments[number].filters.lock().entries.remove(&key) {
                self.used.fetch_sub(entry.bytes, Ordering::Relaxed);
                self.evictions.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The result of a clause in one segment.
#[derive(Debug, Clone)]
pub struct Cached {
    pub docs: SegmentDocs,
    /// Number of clauses that the query counts for this one, against its limit.
    pub clauses: usize,
}

/// How to find the documents whose value in a column lies in a range.
#[derive(Debug)]
pub enum RangeAccess {
    /// By scanning all values of the column.
    Scan,
    /// By scanning, or by sorting the column first: past scans have cost as much as sorting would.
    Sort,
    Sorted(Arc<RangeIndex>),
}

#[derive(Debug)]
enum Value {
    Clause(Cached),
    /// A column that has not been sorted: number of scans since the last time sorting it was suggested.
    Scanned(u32),
    Sorted(Arc<RangeIndex>),
}

#[derive(Debug)]
struct Entry {
    value: Value,
    last_used: u64,
    bytes: usize,
}

#[derive(Debug)]
struct CachedFilters {
    entries: FxHashMap<Arc<[u8]>, Entry>,
    /// Hashes of the keys of cheap clauses; the hash modulo the length is the slot.
    seen_once: [u64; SEEN_ONCE],
}

impl Default for CachedFilters {
    fn default() -> Self {
        Self { entries: FxHashMap::default(), seen_once: [0; SEEN_ONCE] }
    }
}

/// Cached filter results of one segment.
#[derive(Debug)]
pub struct SegmentFilters {
    cache: Arc<FilterCache>,
    filters: Mutex<CachedFilters>,
}

impl SegmentFilters {
    /// The cached result of the clause with this key, if there is one.
    pub fn get(&self, key: &[u8]) -> Option<Cached> {
        let mut filters = self.filters.lock();
        let Some(Entry { value: Value::Clause(cached), last_used, .. }) = filters.entries.get_mut(key) else {
            self.cache.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        *last_used = self.cache.tick();
        self.cache.hits.fetch_add(1, Ordering::Relaxed);
        Some(cached.clone())
    }

    /// Caches the result of the clause with this key. A result that is `cheap` to compute is only cached the
    /// second time: ranges that are searched once would displace everything else.
    pub fn insert(&self, key: &Arc<[u8]>, cached: Cached, cheap: bool) {
        if cheap && self.is_first(key) {
            return;
        }
        let bytes = match &cached.docs {
            SegmentDocs::All | SegmentDocs::None => 0,
            SegmentDocs::Some(bits) => bits.words().len() * 8,
        };
        self.put(key, Value::Clause(cached), bytes);
    }

    /// Whether no clause with this key has been seen recently; remembers it.
    fn is_first(&self, key: &[u8]) -> bool {
        let hash = FxBuildHasher.hash_one(key);
        let seen = &mut self.filters.lock().seen_once[hash as usize % SEEN_ONCE];
        std::mem::replace(seen, hash) != hash
    }

    /// The key of a column for [`SegmentFilters::ranges`]. It differs from the keys of all clauses, which
    /// begin with the number of a mapping.
    pub fn column_key(column: &str) -> Arc<[u8]> {
        [&u64::MAX.to_le_bytes(), column.as_bytes()].concat().into()
    }

    /// Whether the cache may take an entry of `bytes` bytes: at most a quarter of its size, so that no entry
    /// displaces most others.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        ENTRY_OVERHEAD + bytes <= self.cache.budget / 4
    }

    /// How to find ranges over the column with this key. Of several searches with `may_sort`, only one is
    /// told to sort ([`RangeAccess::Sort`]).
    pub fn ranges(&self, key: &Arc<[u8]>, may_sort: bool) -> RangeAccess {
        if let Some(entry) = self.filters.lock().entries.get_mut(key) {
            entry.last_used = self.cache.tick();
            match &mut entry.value {
                Value::Sorted(index) => return RangeAccess::Sorted(index.clone()),
                Value::Scanned(scans) if *scans >= self.cache.scans_before_sort && may_sort => {
                    // An attempt on the event loop leaves the sorting to the thread that carries out the search after it.
                    if attempt::give_up() {
                        return RangeAccess::Scan;
                    }
                    *scans = 0;
                    return RangeAccess::Sort;
                }
                Value::Scanned(scans) => *scans += 1,
                Value::Clause(_) => {}
            }
            return RangeAccess::Scan;
        }
        self.put(key, Value::Scanned(1), 0);
        RangeAccess::Scan
    }

    /// Caches the sorted column with this key.
    pub fn keep_ranges(&self, key: &Arc<[u8]>, index: &Arc<RangeIndex>) {
        self.put(key, Value::Sorted(index.clone()), index.bytes());
    }

    /// Caches an entry of `bytes` bytes (its key not counted), if there is room.
    fn put(&self, key: &Arc<[u8]>, value: Value, bytes: usize) {
        let cache = &self.cache;
        let bytes = key.len() + bytes;
        if !self.has_room_for(bytes) {
            return;
        }
        let bytes = ENTRY_OVERHEAD + bytes;
        let entry = Entry { value, last_used: cache.tick(), bytes };
        // Before others can evict the entry, and take its bytes off.
        let used = cache.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let before = self.filters.lock().entries.insert(key.clone(), entry).map_or(0, |before| before.bytes);
        cache.used.fetch_sub(before, Ordering::Relaxed);
        if used.saturating_sub(before) > cache.budget {
            cache.make_room();
        }
    }
}

impl Drop for SegmentFilters {
    fn drop(&mut self) {
        let bytes: usize = self.filters.get_mut().entries.values().map(|entry| entry.bytes).sum();
        self.cache.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tantivy::columnar::column_values::VecColumn;
    use tantivy::columnar::{Column, ColumnIndex, ColumnType, ColumnValues};

    use super::*;
    use crate::doc_bits::DocBits;

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
            segment.insert(&key(number), documents(8000), false);
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
        segment.insert(&key(1), documents(800), false);
        segment.insert(&key(1), documents(1600), false);
        assert_eq!(cache.stats().bytes, (ENTRY_OVERHEAD + 8 + 200) as u64);
        drop(segment);
        assert_eq!(cache.stats().bytes, 0);
    }

    #[test]
    fn what_is_cheap_is_kept_when_it_comes_again() {
        let cache = Arc::new(FilterCache::new(20_000));
        let segment = cache.segment();
        segment.insert(&key(1), documents(800), true);
        segment.insert(&key(2), documents(800), true);
        assert_eq!(cache.stats().bytes, 0);
        segment.insert(&key(1), documents(800), true);
        assert!(segment.get(&key(1)).is_some() && segment.get(&key(2)).is_none());
    }

    #[test]
    fn one_of_those_who_may_is_told_to_sort_a_column() {
        let cache = Arc::new(FilterCache::new(20_000));
        let segment = cache.segment();
        let column = SegmentFilters::column_key("a");
        let scans = |key: &Arc<[u8]>, may_sort| matches!(segment.ranges(key, may_sort), RangeAccess::Scan);
        for _ in 0..SCANS_BEFORE_SORT {
            assert!(scans(&column, true));
        }
        assert!(scans(&column, false));
        assert!(matches!(segment.ranges(&column, true), RangeAccess::Sort));
        // The one who was told may fail.
        assert!(scans(&column, true));
        assert!(scans(&SegmentFilters::column_key("b"), true));
        assert!(segment.get(&column).is_none());
        let values: Arc<dyn ColumnValues> = Arc::new(VecColumn::from(vec![3, 1, 2]));
        let order = RangeIndex::new(Column { index: ColumnIndex::Full, values }, ColumnType::U64, 3);
        let order = Arc::new(order.unwrap());
        let before = cache.stats().bytes;
        segment.keep_ranges(&column, &order);
        assert_eq!(cache.stats().bytes, before + order.bytes() as u64);
        assert!(matches!(segment.ranges(&column, false), RangeAccess::Sorted(_)));
        drop(segment);
        assert_eq!(cache.stats().bytes, 0);
    }

    #[test]
    fn an_entry_that_would_displace_the_others_is_not_kept() {
        let cache = Arc::new(FilterCache::new(10_000));
        let segment = cache.segment();
        segment.insert(&key(1), documents(1_000_000), false);
        assert!(segment.get(&key(1)).is_none());
        assert_eq!(cache.stats(), FilterCacheStats { misses: 1, ..FilterCacheStats::default() });
    }
}
