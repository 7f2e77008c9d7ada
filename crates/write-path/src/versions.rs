//! Versions of documents that are not in any snapshot yet.
//!
//! A write needs the current version of its document, and a get by id sees writes at once; both look here
//! before they look into the index.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use sparrow_write_ahead_log::Lsn;

/// Newest known version of one document.
#[derive(Debug, Clone)]
pub struct LiveVersion {
    pub seq_no: u64,
    pub version: u64,
    /// The stored source; `None` when the document was deleted.
    pub source: Option<Arc<[u8]>>,
}

impl LiveVersion {
    fn bytes(&self) -> usize {
        self.source.as_ref().map_or(0, |source| source.len())
    }
}

/// A version and its position in the log.
type Logged = (Lsn, LiveVersion);

/// The newest version of a document, and older ones to fall back to if the log loses it.
#[derive(Debug)]
struct VersionHistory {
    newest: Logged,
    /// Older versions that the log may be cut back to, oldest first: the newest durable one, if it was held,
    /// and all after it.
    older: Vec<Logged>,
}

impl VersionHistory {
    fn new(lsn: Lsn, version: LiveVersion) -> Self {
        Self { newest: (lsn, version), older: Vec::new() }
    }

    /// Replaces the history by a newer one, keeping the older versions that are still needed. `durable`
    /// returns the position up to which the log is durable.
    fn replace(&mut self, newer: Self, durable: &impl Fn() -> Lsn) {
        let Self { newest, mut older } = std::mem::replace(self, newer);
        older.push(newest);
        older.append(&mut self.older);
        let durable = durable();
        let unsynced = older.partition_point(|(lsn, _)| *lsn <= durable);
        older.drain(..unsynced.saturating_sub(1));
        self.older = older;
    }

    /// The newest version at or before a position of the log.
    fn up_to(&self, last: Lsn) -> Option<&LiveVersion> {
        let newest_first = std::iter::once(&self.newest).chain(self.older.iter().rev());
        newest_first.filter(|(lsn, _)| *lsn <= last).map(|(_, version)| version).next()
    }

    fn bytes(&self) -> usize {
        let older = self.older.iter().map(|(_, version)| size_of::<Logged>() + version.bytes());
        self.newest.1.bytes() + older.sum::<usize>()
    }
}

/// A deletion, remembered for longer than other writes.
#[derive(Debug)]
struct Tombstone {
    version: LiveVersion,
    lsn: Lsn,
    since: Instant,
}

/// Estimated bytes per document besides its id and sources: its slot in the hash table, and one in the table
/// of deletions or the reference count of its source.
const ENTRY_BYTES: usize = 2 * (size_of::<(String, VersionHistory)>() + 16);

/// Versions written since the last refresh, those that a running refresh is making visible, and recent
/// deletions.
#[derive(Debug, Default)]
pub struct LiveVersions {
    current: FxHashMap<String, VersionHistory>,
    refreshing: FxHashMap<String, VersionHistory>,
    tombstones: FxHashMap<String, Tombstone>,
    /// Position in the log up to which versions are shown to reads; `None`: all are.
    shown_up_to: Option<Lsn>,
    /// Bytes held by `current`.
    current_bytes: usize,
    /// Bytes held by `refreshing` while a refresh runs.
    refreshing_bytes: usize,
    /// When expired deletions were last removed.
    swept: Option<Instant>,
    /// For how long versions of deleted documents are remembered (`index.gc_deletes`); `None` for the
    /// default.
    tombstone_lifetime: Option<Duration>,
}

/// Most deletions that are remembered, whatever their lifetime; each takes about 200 bytes besides its id.
const MOST_TOMBSTONES: usize = 200_000;

/// Default lifetime of remembered deletions.
const TOMBSTONE_LIFETIME: Duration = Duration::from_secs(60);

impl LiveVersions {
    /// Sets for how long versions of deleted documents are remembered; `None` for the default, a minute.
    pub fn remember_deletions_for(&mut self, lifetime: Option<Duration>) {
        self.tombstone_lifetime = lifetime;
    }

    /// Forgets all writes and deletions, as after a restart: the reopened segments contain the acknowledged
    /// writes, and the others are undone.
    pub fn forget_writes(&mut self) {
        self.current = FxHashMap::default();
        self.refreshing = FxHashMap::default();
        self.tombstones = FxHashMap::default();
        self.shown_up_to = None;
        self.current_bytes = 0;
        self.refreshing_bytes = 0;
    }

    /// Hides versions after a position of the log, because they were refused: reads see older versions until
    /// all writes are forgotten.
    pub fn show_up_to(&mut self, last: Lsn) {
        self.shown_up_to = Some(last);
    }

    pub fn get(&self, id: &str) -> Option<&LiveVersion> {
        let last = self.shown_up_to.unwrap_or(Lsn::MAX);
        let held = [&self.current, &self.refreshing].into_iter().filter_map(|versions| versions.get(id));
        held.filter_map(|held| held.up_to(last)).next().or_else(|| {
            let Tombstone { version, lsn, since } = self.tombstones.get(id)?;
            (*lsn <= last && since.elapsed() < self.tombstone_lifetime()).then_some(version)
        })
    }

    /// Records a write at log position `lsn`. `durable` returns the position up to which the log is durable.
    pub fn insert(&mut self, id: String, version: LiveVersion, lsn: Lsn, durable: impl Fn() -> Lsn) {
        if version.source.is_some() {
            self.tombstones.remove(&id);
        } else {
            let deletion = Tombstone { version: version.clone(), lsn, since: Instant::now() };
            self.tombstones.insert(id.clone(), deletion);
            if self.tombstones.len() > MOST_TOMBSTONES {
                self.forget_older_deletions();
            }
        }
        let new = VersionHistory::new(lsn, version);
        match self.current.entry(id) {
            Entry::Vacant(place) => {
                self.current_bytes += place.key().len() + ENTRY_BYTES + new.bytes();
                place.insert(new);
            }
            Entry::Occupied(mut place) => {
                self.current_bytes -= place.get().bytes();
                place.get_mut().replace(new, &durable);
                self.current_bytes += place.get().bytes();
            }
        }
    }

    /// Forgets the older half of the remembered deletions, as a restart would.
    fn forget_older_deletions(&mut self) {
        let mut times: Vec<Instant> = self.tombstones.values().map(|deletion| deletion.since).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.tombstones.retain(|_, deletion| deletion.since > median);
    }

    /// Bytes held since the last refresh that succeeded or is running: sources, ids and an estimate per
    /// entry, including deletions.
    pub fn bytes(&self) -> usize {
        self.current_bytes
    }

    /// Starts a refresh, whose snapshot will contain all current versions. `durable` returns the position up
    /// to which the log is durable.
    pub fn start_refresh(&mut self, durable: impl Fn() -> Lsn) {
        let current = std::mem::take(&mut self.current);
        self.refreshing_bytes += std::mem::take(&mut self.current_bytes);
        if self.refreshing.is_empty() {
            self.refreshing = current;
            return;
        }
        // After a failed refresh the earlier half is still needed.
        for (id, newer) in current {
            match self.refreshing.entry(id) {
                Entry::Vacant(place) => drop(place.insert(newer)),
                Entry::Occupied(mut place) => place.get_mut().replace(newer, &durable),
            }
        }
    }

    /// Ends a failed refresh: the versions it was to show are kept, and counted again.
    pub fn keep_refreshing(&mut self) {
        self.current_bytes += std::mem::take(&mut self.refreshing_bytes);
    }

    /// Ends a successful refresh: forgets the versions that its snapshot contains. They are returned to be dropped
    /// without the lock under which this is called: there may be hundreds of thousands.
    pub fn finish_refresh(&mut self) -> impl Sized + use<> {
        self.refreshing_bytes = 0;
        self.sweep();
        std::mem::take(&mut self.refreshing)
    }

    /// Forgets deletions whose lifetime has passed. Scans them at most once per lifetime, so that frequent
    /// calls are cheap.
    pub fn forget_old_deletions(&mut self) {
        if !self.tombstones.is_empty()
            && self.swept.is_none_or(|at| at.elapsed() >= self.tombstone_lifetime())
        {
            self.sweep();
        }
    }

    fn sweep(&mut self) {
        let lifetime = self.tombstone_lifetime();
        self.swept = Some(Instant::now());
        self.tombstones.retain(|_, deletion| deletion.since.elapsed() < lifetime);
        if self.tombstones.len() < self.tombstones.capacity() / 4 {
            self.tombstones.shrink_to_fit();
        }
    }

    fn tombstone_lifetime(&self) -> Duration {
        self.tombstone_lifetime.unwrap_or(TOMBSTONE_LIFETIME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(seq_no: u64, deleted: bool) -> LiveVersion {
        LiveVersion { seq_no, version: 1, source: (!deleted).then(|| Arc::from(&b"{}"[..])) }
    }

    /// Inserts a version at the log position of its sequence number, with the log durable up to the position
    /// before.
    fn write(versions: &mut LiveVersions, id: &str, version: LiveVersion) {
        let lsn = version.seq_no;
        versions.insert(id.to_owned(), version, lsn, || lsn - 1);
    }

    #[test]
    fn a_write_during_a_refresh_outlives_it() {
        let mut versions = LiveVersions::default();
        write(&mut versions, "a", version(1, false));
        write(&mut versions, "gone", version(2, true));
        versions.start_refresh(|| 0);
        write(&mut versions, "a", version(3, false));
        write(&mut versions, "b", version(4, false));
        assert_eq!(versions.get("a").unwrap().seq_no, 3);
        versions.finish_refresh();
        assert_eq!(versions.get("a").unwrap().seq_no, 3);
        assert_eq!(versions.get("b").unwrap().seq_no, 4);
        assert!(versions.get("gone").unwrap().source.is_none(), "deletions are remembered for a while");
        versions.start_refresh(|| 0);
        versions.finish_refresh();
        assert!(versions.get("a").is_none());
    }

    /// Sequence number that a read sees of a document, and whether the document exists; `None` if nothing is
    /// known.
    fn told(versions: &LiveVersions, id: &str) -> Option<(u64, bool)> {
        versions.get(id).map(|version| (version.seq_no, version.source.is_some()))
    }

    #[test]
    fn of_writes_that_the_log_refused_reads_are_told_what_was_before() {
        let mut versions = LiveVersions::default();
        let durable = || 4;
        versions.insert("changed".into(), version(1, false), 1, durable);
        versions.insert("changed".into(), version(5, false), 5, durable);
        versions.insert("changed".into(), version(6, false), 6, durable);
        versions.insert("removed".into(), version(2, false), 2, durable);
        versions.insert("removed".into(), version(7, true), 7, durable);
        versions.insert("gone".into(), version(3, true), 3, durable);
        versions.insert("new".into(), version(8, false), 8, durable);
        versions.insert("found".into(), version(9, true), 9, durable);
        versions.insert("kept".into(), version(4, false), 4, durable);
        assert_eq!(told(&versions, "changed"), Some((6, true)));
        assert_eq!(told(&versions, "removed"), Some((7, false)));
        for refreshes in 0..3 {
            versions.show_up_to(4);
            assert_eq!(told(&versions, "changed"), Some((1, true)), "{refreshes}");
            assert_eq!(told(&versions, "removed"), Some((2, true)), "{refreshes}");
            assert_eq!(told(&versions, "gone"), Some((3, false)), "{refreshes}");
            assert_eq!(told(&versions, "new"), None, "{refreshes}");
            assert_eq!(told(&versions, "found"), None, "the segments have it still");
            assert_eq!(told(&versions, "kept"), Some((4, true)), "{refreshes}");
            // A refresh that fails.
            versions.start_refresh(durable);
            versions.keep_refreshing();
        }
        versions.forget_writes();
        versions.insert("new".into(), version(10, false), 10, durable);
        assert_eq!(told(&versions, "new"), Some((10, true)));
    }

    /// Concurrent writes share a sync: a version that was not durable when the next one came may be durable
    /// when the log fails.
    #[test]
    fn what_became_durable_before_the_failure_is_shown() {
        let mut versions = LiveVersions::default();
        versions.insert("a".into(), version(1, false), 1, || 1);
        versions.insert("a".into(), version(5, false), 5, || 4);
        versions.insert("a".into(), version(6, false), 6, || 4);
        versions.insert("gone".into(), version(3, false), 3, || 3);
        versions.insert("gone".into(), version(7, true), 7, || 4);
        versions.insert("gone".into(), version(8, false), 8, || 4);
        for (durable, a, gone) in [
            (4, (1, true), (3, true)),
            (5, (5, true), (3, true)),
            (7, (6, true), (7, false)),
            (8, (6, true), (8, true)),
        ] {
            versions.show_up_to(durable);
            assert_eq!((told(&versions, "a"), told(&versions, "gone")), (Some(a), Some(gone)), "{durable}");
        }
        let most = versions.bytes();
        versions.insert("a".into(), version(9, false), 9, || 8);
        assert!(versions.bytes() < most, "one durable version before it is enough");
    }

    #[test]
    fn what_was_durable_outlives_refreshes_that_fail() {
        let mut versions = LiveVersions::default();
        versions.insert("a".into(), version(1, false), 1, || 0);
        versions.start_refresh(|| 1);
        versions.keep_refreshing();
        versions.insert("a".into(), version(2, false), 2, || 1);
        versions.start_refresh(|| 1);
        versions.keep_refreshing();
        versions.show_up_to(1);
        assert_eq!(told(&versions, "a"), Some((1, true)));
    }

    #[test]
    fn so_many_deletions_are_remembered_the_newest_ones() {
        let mut versions = LiveVersions::default();
        versions.remember_deletions_for(Some(Duration::from_secs(1 << 30)));
        for number in 0..=MOST_TOMBSTONES as u64 {
            write(&mut versions, &number.to_string(), version(number + 1, true));
        }
        versions.start_refresh(|| 0);
        versions.finish_refresh();
        assert!(versions.tombstones.len() <= MOST_TOMBSTONES / 2 + 1);
        assert!(versions.get("0").is_none());
        assert!(versions.get(&MOST_TOMBSTONES.to_string()).is_some());
    }

    #[test]
    fn a_deletion_is_forgotten_in_time_also_where_nothing_is_written_any_more() {
        let mut versions = LiveVersions::default();
        versions.remember_deletions_for(Some(Duration::from_secs(3600)));
        write(&mut versions, "gone", version(1, true));
        versions.start_refresh(|| 0);
        versions.finish_refresh();
        versions.forget_old_deletions();
        assert!(versions.get("gone").is_some());
        versions.remember_deletions_for(Some(Duration::from_millis(30)));
        std::thread::sleep(Duration::from_millis(40));
        assert!(versions.get("gone").is_none(), "no longer than it is to be remembered");
        versions.forget_old_deletions();
        assert!(versions.tombstones.is_empty());
    }

    #[test]
    fn deletions_take_bytes_and_what_is_replaced_gives_them_back() {
        let mut versions = LiveVersions::default();
        write(&mut versions, "a", version(1, false));
        let one = versions.bytes();
        write(&mut versions, "a", version(2, false));
        let before = size_of::<Logged>() + 2;
        assert_eq!(versions.bytes(), one + before, "the one before is held as long as this one may be lost");
        write(&mut versions, "a", version(3, true));
        assert_eq!(versions.bytes(), one + before - 2, "and none but that");
        for number in 0..1000 {
            write(&mut versions, &format!("deleted-{number}"), version(4, true));
        }
        assert!(versions.bytes() > 1000 * "deleted-0".len());
        versions.start_refresh(|| 0);
        assert_eq!(versions.bytes(), 0);
        versions.keep_refreshing();
        assert!(versions.bytes() > 1000 * "deleted-0".len(), "a refresh that failed holds them still");
    }
}
