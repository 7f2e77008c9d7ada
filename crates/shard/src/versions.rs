//! Versions of documents that no snapshot shows yet.
//!
//! A write needs the current version of its document, and a get by id sees writes at once; both look here
//! before they look into the index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

/// What is known of one document.
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

/// Bytes that a document takes besides its id and source: a place of the hash table, and one in the list of deletions or the
/// reference count of its source.
const ENTRY_BYTES: usize = 2 * (size_of::<(String, LiveVersion)>() + 16);

/// Versions since the last refresh, those that a refresh is just making visible, and recent deletions.
#[derive(Debug, Default)]
pub struct LiveVersions {
    current: FxHashMap<String, LiveVersion>,
    refreshing: FxHashMap<String, LiveVersion>,
    tombstones: FxHashMap<String, (LiveVersion, Instant)>,
    /// Bytes that `current` takes.
    current_bytes: usize,
    /// Bytes that a running refresh is making visible.
    refreshing_bytes: usize,
    /// When expired deletions were looked for the last time.
    swept: Option<Instant>,
    /// How long the version of a deleted document is remembered (`index.gc_deletes`).
    tombstone_lifetime: Option<Duration>,
}

/// Most deletions that are remembered, however long they are to be: each takes about 200 bytes besides its id.
const MOST_TOMBSTONES: usize = 200_000;

/// How long the version of a deleted document is remembered where nothing else is asked for.
const TOMBSTONE_LIFETIME: Duration = Duration::from_secs(60);

impl LiveVersions {
    /// Sets how long the version of a deleted document is remembered; without it, a minute.
    pub fn remember_deletions_for(&mut self, lifetime: Option<Duration>) {
        self.tombstone_lifetime = lifetime;
    }

    /// Forgets all writes and deletions, as after a restart: segments that were opened anew show those that were acknowledged, and
    /// the others never happened.
    pub fn forget_writes(&mut self) {
        self.current = FxHashMap::default();
        self.refreshing = FxHashMap::default();
        self.tombstones = FxHashMap::default();
        self.current_bytes = 0;
        self.refreshing_bytes = 0;
    }

    pub fn get(&self, id: &str) -> Option<&LiveVersion> {
        self.current.get(id).or_else(|| self.refreshing.get(id)).or_else(|| {
            let (version, since) = self.tombstones.get(id)?;
            (since.elapsed() < self.tombstone_lifetime()).then_some(version)
        })
    }

    pub fn insert(&mut self, id: String, version: LiveVersion) {
        if version.source.is_some() {
            self.tombstones.remove(&id);
        } else {
            self.tombstones.insert(id.clone(), (version.clone(), Instant::now()));
            if self.tombstones.len() > MOST_TOMBSTONES {
                self.forget_older_deletions();
            }
        }
        let (id_bytes, bytes) = (id.len(), version.bytes());
        self.current_bytes += bytes;
        match self.current.insert(id, version) {
            Some(replaced) => self.current_bytes -= replaced.bytes(),
            None => self.current_bytes += id_bytes + ENTRY_BYTES,
        }
    }

    /// Forgets the older half of the deletions that a search would not find any more, as if they had been made before a restart.
    fn forget_older_deletions(&mut self) {
        let mut times: Vec<Instant> = self.tombstones.values().map(|(_, since)| *since).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.tombstones.retain(|_, (_, since)| *since > median);
    }

    /// Bytes held since the last refresh that succeeded or runs: sources, ids, and what each entry takes besides, deletions too.
    pub fn bytes(&self) -> usize {
        self.current_bytes
    }

    /// A refresh begins: what is here now will be in the snapshot when it ends.
    pub fn start_refresh(&mut self) {
        // After a failed refresh the earlier half is still needed.
        let current = std::mem::take(&mut self.current);
        self.refreshing.extend(current);
        self.refreshing_bytes += std::mem::take(&mut self.current_bytes);
    }

    /// A refresh failed: what it was to show is still held, and counts again.
    pub fn keep_refreshing(&mut self) {
        self.current_bytes += std::mem::take(&mut self.refreshing_bytes);
    }

    /// The snapshot shows what was here when the refresh began.
    pub fn finish_refresh(&mut self) {
        self.refreshing = FxHashMap::default();
        self.refreshing_bytes = 0;
        self.sweep();
    }

    /// Forgets deletions that were remembered long enough, also where nothing is written any more. Between two looks at all of them
    /// goes by as long as each is remembered, so that asking is cheap.
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
        self.tombstones.retain(|_, (_, since)| since.elapsed() < lifetime);
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

    #[test]
    fn a_write_during_a_refresh_outlives_it() {
        let mut versions = LiveVersions::default();
        versions.insert("a".into(), version(1, false));
        versions.insert("gone".into(), version(2, true));
        versions.start_refresh();
        versions.insert("a".into(), version(3, false));
        versions.insert("b".into(), version(4, false));
        assert_eq!(versions.get("a").unwrap().seq_no, 3);
        versions.finish_refresh();
        assert_eq!(versions.get("a").unwrap().seq_no, 3);
        assert_eq!(versions.get("b").unwrap().seq_no, 4);
        assert!(versions.get("gone").unwrap().source.is_none(), "deletions are remembered for a while");
        versions.start_refresh();
        versions.finish_refresh();
        assert!(versions.get("a").is_none());
    }

    #[test]
    fn so_many_deletions_are_remembered_the_newest_ones() {
        let mut versions = LiveVersions::default();
        versions.remember_deletions_for(Some(Duration::from_secs(1 << 30)));
        for number in 0..=MOST_TOMBSTONES as u64 {
            versions.insert(number.to_string(), version(number, true));
        }
        versions.start_refresh();
        versions.finish_refresh();
        assert!(versions.tombstones.len() <= MOST_TOMBSTONES / 2 + 1);
        assert!(versions.get("0").is_none());
        assert!(versions.get(&MOST_TOMBSTONES.to_string()).is_some());
    }

    #[test]
    fn a_deletion_is_forgotten_in_time_also_where_nothing_is_written_any_more() {
        let mut versions = LiveVersions::default();
        versions.remember_deletions_for(Some(Duration::from_millis(30)));
        versions.insert("gone".into(), version(1, true));
        versions.start_refresh();
        versions.finish_refresh();
        versions.forget_old_deletions();
        assert!(versions.get("gone").is_some());
        std::thread::sleep(Duration::from_millis(40));
        assert!(versions.get("gone").is_none(), "no longer than it is to be remembered");
        versions.forget_old_deletions();
        assert!(versions.tombstones.is_empty());
    }

    #[test]
    fn deletions_take_bytes_and_what_is_replaced_gives_them_back() {
        let mut versions = LiveVersions::default();
        versions.insert("a".into(), version(1, false));
        let one = versions.bytes();
        versions.insert("a".into(), version(2, false));
        assert_eq!(versions.bytes(), one, "a source that was replaced is held no longer");
        versions.insert("a".into(), version(3, true));
        assert_eq!(versions.bytes(), one - 2);
        for number in 0..1000 {
            versions.insert(format!("deleted-{number}"), version(4, true));
        }
        assert!(versions.bytes() > 1000 * "deleted-0".len());
        versions.start_refresh();
        assert_eq!(versions.bytes(), 0);
        versions.keep_refreshing();
        assert!(versions.bytes() > 1000 * "deleted-0".len(), "a refresh that failed holds them still");
    }
}
