//! Groups of statistics: what the searches that named a group (`stats` in a search body) did with one index.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::timed::Timed;

/// Most groups that are counted for one index. Names come from requests, and what has been counted stays until the index is closed.
const MOST_GROUPS: usize = 1_000;

/// What the searches of one group did.
#[derive(Debug, Default)]
pub struct SearchGroup {
    pub query: Timed,
    pub query_failure: AtomicU64,
    pub fetch: Timed,
}

/// The groups of one index, by name.
#[derive(Debug, Default)]
pub struct SearchGroups(Mutex<BTreeMap<String, Arc<SearchGroup>>>);

impl SearchGroups {
    /// The groups with these names. A new one beyond the bound is left out: its searches are counted with all others only.
    pub fn named(&self, names: &[String]) -> Vec<Arc<SearchGroup>> {
        if names.is_empty() {
            return Vec::new();
        }
        let mut groups = self.0.lock();
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            if let Some(group) = groups.get(name) {
                found.push(Arc::clone(group));
            } else if groups.len() < MOST_GROUPS {
                found.push(Arc::clone(groups.entry(name.clone()).or_default()));
            }
        }
        found
    }

    /// All groups with their names, in the order of these.
    pub fn all(&self) -> Vec<(String, Arc<SearchGroup>)> {
        self.0.lock().iter().map(|(name, group)| (name.clone(), Arc::clone(group))).collect()
    }
}

impl SearchGroup {
    /// Counts a search of the group that failed.
    pub fn failed(&self) {
        self.query_failure.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_bounded_in_number() {
        let groups = SearchGroups::default();
        let names: Vec<String> = (0..=MOST_GROUPS).map(|n| format!("g{n}")).collect();
        assert_eq!(groups.named(&names).len(), MOST_GROUPS);
        assert!(groups.named(&names[MOST_GROUPS..]).is_empty());
        assert_eq!((groups.named(&names[..1]).len(), groups.all().len()), (1, MOST_GROUPS));
    }
}
