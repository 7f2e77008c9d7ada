//! Keeps the first documents of one segment by their sort keys.

use rustc_hash::FxHashMap;

/// A document with its sort keys, ordered as hits are: by keys, then in the order of writing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<const N: usize> {
    pub(super) keys: [u64; N],
    pub(super) seq_no: u64,
    pub(super) doc: u32,
    pub(super) score: f32,
}

impl<const N: usize> Entry<N> {
    fn place(&self) -> ([u64; N], u64) {
        (self.keys, self.seq_no)
    }
}

/// Keeps the first `size` documents. At most twice as many are held, and halved by selection, so that the
/// cost of an offer does not depend on `size`.
pub(super) struct Top<const N: usize> {
    size: usize,
    entries: Vec<Entry<N>>,
    /// Keys and sequence number of the last of the first `size` documents at the latest selection: documents
    /// behind it cannot be hits.
    worst: Option<([u64; N], u64)>,
}

impl<const N: usize> Top<N> {
    pub(super) fn new(size: usize) -> Self {
        Self { size, entries: Vec::new(), worst: None }
    }

    /// Whether a document with this first key can still be a hit.
    #[inline]
    pub(super) fn admits(&self, first: u64) -> bool {
        self.size > 0 && self.worst.is_none_or(|(worst, _)| first <= worst[0])
    }

    #[inline]
    pub(super) fn offer(&mut self, entry: Entry<N>) {
        if self.worst.is_some_and(|worst| entry.place() >= worst) {
            return;
        }
        self.entries.push(entry);
        if self.entries.len() >= 2 * self.size.max(8) {
            self.select();
        }
    }

    fn select(&mut self) {
        if self.size == 0 || self.entries.len() < self.size {
            return;
        }
        let (_, last, _) =
            self.entries.select_nth_unstable_by(self.size - 1, |a, b| a.place().cmp(&b.place()));
        self.worst = Some(last.place());
        self.entries.truncate(self.size);
    }

    pub(super) fn finish(mut self) -> Vec<Entry<N>> {
        self.select();
        self.entries.sort_unstable_by_key(Entry::place);
        self.entries.truncate(self.size);
        self.entries
    }
}

/// Keeps the first document of each group, for the first `size` groups.
pub(super) struct Groups<const N: usize> {
    size: usize,
    heads: FxHashMap<Option<u64>, Entry<N>>,
    worst: Option<([u64; N], u64)>,
}

impl<const N: usize> Groups<N> {
    pub(super) fn new(size: usize) -> Self {
        Self { size, heads: FxHashMap::default(), worst: None }
    }

    pub(super) fn offer(&mut self, group: Option<u64>, entry: Entry<N>) {
        // A document behind `size` heads leads no group of the result.
        if self.size == 0 || self.worst.is_some_and(|worst| entry.place() > worst) {
            return;
        }
        let head = self.heads.entry(group).or_insert(entry);
        if entry.place() < head.place() {
            *head = entry;
        }
        if self.heads.len() >= 2 * self.size.max(8) {
            let mut places: Vec<_> = self.heads.values().map(Entry::place).collect();
            let (_, last, _) = places.select_nth_unstable(self.size - 1);
            let last = *last;
            self.worst = Some(last);
            self.heads.retain(|_, head| head.place() <= last);
        }
    }

    pub(super) fn finish(self) -> Vec<(Option<u64>, Entry<N>)> {
        let mut heads: Vec<_> = self.heads.into_iter().collect();
        heads.sort_unstable_by_key(|head| head.1.place());
        heads.truncate(self.size);
        heads
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Entry, Groups, Top};

    proptest! {
        #[test]
        fn keep_what_a_full_sort_would(
            keys in proptest::collection::vec((0u64..6, 0u64..4, 0u64..9), 0..120),
            size in 0usize..15,
        ) {
            let entries: Vec<Entry<2>> = keys
                .iter()
                .enumerate()
                .map(|(doc, (a, b, _))| Entry {
                    keys: [*a, *b],
                    seq_no: (doc as u64 * 7919) % 127,
                    doc: doc as u32,
                    score: 0.0,
                })
                .collect();
            let mut sorted = entries.clone();
            sorted.sort_by_key(Entry::place);
            let mut top = Top::new(size);
            let mut groups = Groups::new(size);
            for entry in &entries {
                if top.admits(entry.keys[0]) {
                    top.offer(*entry);
                }
                groups.offer(Some(keys[entry.doc as usize].2), *entry);
            }
            let docs = |list: &[Entry<2>]| list.iter().map(|e| e.doc).collect::<Vec<_>>();
            prop_assert_eq!(docs(&top.finish()), docs(&sorted[..size.min(sorted.len())]));
            let mut seen = std::collections::BTreeSet::new();
            sorted.retain(|entry| seen.insert(keys[entry.doc as usize].2));
            sorted.truncate(size);
            let heads: Vec<Entry<2>> = groups.finish().into_iter().map(|(_, e)| e).collect();
            prop_assert_eq!(docs(&heads), docs(&sorted));
        }
    }
}
