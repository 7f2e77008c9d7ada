//! Documents that filter clauses match, kept per segment.
//!
//! A clause in filter context has no score, and a segment never changes: what it matches there is worked
//! out once and kept as a bitmap, deleted documents included, so that deletions do not touch it. Entries
//! belong to a [`SegmentFilters`], which lives as long as any snapshot shows its segment; the
//! [`FilterCache`] bounds the memory of all of them together and evicts what was not used for longest.
//!
//! Beside them lie the orders of columns that ranges are found with ([`RangeIndex`]), under the same bound.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::query::{DocBits, RangeIndex};

/// Bytes kept unless told otherwise. A bitmap takes an eighth of a byte a document: this holds two
/// hundred filters over a million documents.
const DEFAULT_BUDGET: usize = 32 << 20;
/// What an entry takes besides its key and bitmap, roughly.
const ENTRY_OVERHEAD: usize = 128;
/// Scans of a column that take as long as sorting it.
const SCANS_BEFORE_SORT: u32 = if cfg!(test) { 2 } else { 8 };
/// Cheap clauses of a segment that are remembered as seen once.
const SEEN_ONCE: usize = 64;

/// Figures of a [`FilterCache`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
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
        let filters = Arc::new(SegmentFilters { cache: self.clone(), filters: Mutex::default() });
        let mut segments = self.segments.lock();
        segments.retain(|segment| segment.strong_count() > 0);
        segments.push(Arc::downgrade(&filters));
        filters
    }

    /// A time later than any before.
    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Drops entries, longest unused first, until a quarter of the budget is free: the next evictions
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

/// How the documents of a range over a column are found.
#[derive(Debug)]
pub(crate) enum RangeAccess {
    /// By looking at all its values.
    Scan,
    /// The same, or by sorting it first: scans have taken as long by now.
    Sort,
    Sorted(Arc<RangeIndex>),
}

#[derive(Debug)]
enum Value {
    Clause(Cached),
    /// A column, and how often it was scanned since it was last to be sorted.
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
    /// Hashes of keys of cheap clauses, each where its lower bits say.
    seen_once: [u64; SEEN_ONCE],
}

impl Default for CachedFilters {
    fn default() -> Self {
        Self { entries: FxHashMap::default(), seen_once: [0; SEEN_ONCE] }
    }
}

/// The cached filters of one segment.
#[derive(Debug)]
pub(crate) struct SegmentFilters {
    cache: Arc<FilterCache>,
    filters: Mutex<CachedFilters>,
}

impl SegmentFilters {
    /// What is known of the clause with this key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Cached> {
        let mut filters = self.filters.lock();
        let Some(Entry { value: Value::Clause(cached), last_used, .. }) = filters.entries.get_mut(key) else {
            self.cache.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        *last_used = self.cache.tick();
        self.cache.hits.fetch_add(1, Ordering::Relaxed);
        Some(cached.clone())
    }

    /// Keeps what the clause with this key matches. What is `cheap` to find is kept when it is found again: ranges
    /// that are asked once would displace all else.
    pub(crate) fn insert(&self, key: &Arc<[u8]>, cached: Cached, cheap: bool) {
        if cheap && self.is_first(key) {
            return;
        }
        let bytes = match &cached.docs {
            SegmentDocs::All | SegmentDocs::None => 0,
            SegmentDocs::Some(bits) => bits.words().len() * 8,
        };
        self.put(key, Value::Clause(cached), bytes);
    }

    /// Whether no clause with this key was seen lately.
    fn is_first(&self, key: &[u8]) -> bool {
        let hash = FxBuildHasher.hash_one(key);
        let seen = &mut self.filters.lock().seen_once[hash as usize % SEEN_ONCE];
        std::mem::replace(seen, hash) != hash
    }

    /// The key of a column for [`SegmentFilters::ranges`]: that of no clause, as these begin with the number of a
    /// mapping.
    pub(crate) fn column_key(column: &str) -> Arc<[u8]> {
        [&u64::MAX.to_le_bytes(), column.as_bytes()].concat().into()
    }

    /// Whether there may be an entry of so many bytes: one may not displace most others.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        ENTRY_OVERHEAD + bytes <= self.cache.budget / 4
    }

    /// How a range over the column with this key is to be found; [`RangeAccess::Sort`] is answered to one of those
    /// who ask and `may_sort`.
    pub(crate) fn ranges(&self, key: &Arc<[u8]>, may_sort: bool) -> RangeAccess {
        if let Some(entry) = self.filters.lock().entries.get_mut(key) {
            entry.last_used = self.cache.tick();
            match &mut entry.value {
                Value::Sorted(index) => return RangeAccess::Sorted(index.clone()),
                Value::Scanned(scans) if *scans >= SCANS_BEFORE_SORT && may_sort => {
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

    /// Keeps the order of the column with this key.
    pub(crate) fn keep_ranges(&self, key: &Arc<[u8]>, index: &Arc<RangeIndex>) {
        self.put(key, Value::Sorted(index.clone()), index.bytes());
    }

    /// Keeps an entry of so many bytes besides its key, if there is room.
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
