//! Cache of encodings, keyed by the hash of the text, with a limit in bytes; the least recently used are
//! dropped first.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};

/// A vector as the workers produce it: with term ids instead of strings, so that a cached text takes one
/// kilobyte rather than seven.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Vector {
    Sparse(Arc<[(u32, f32)]>),
    Dense(Arc<[f32]>),
    /// That of a sparse head and that of the dense model below it.
    Hybrid(Arc<[(u32, f32)]>, Arc<[f32]>),
}

/// A vector, with the token counts of its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Encoding {
    pub(crate) vector: Vector,
    pub(crate) token_count: u32,
    pub(crate) truncated: u32,
}

impl Encoding {
    fn bytes(&self) -> usize {
        let content = match &self.vector {
            Vector::Sparse(pairs) => std::mem::size_of_val(&**pairs),
            Vector::Dense(values) => std::mem::size_of_val(&**values),
            Vector::Hybrid(pairs, values) => {
                std::mem::size_of_val(&**pairs) + std::mem::size_of_val(&**values)
            }
        };
        // The reference counts, the slot and the hash table's entry with its spare room.
        content + 16 + std::mem::size_of::<Slot>() + 2 * std::mem::size_of::<(Key, u32)>()
    }
}

/// Hash of a text and the model that encodes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key([u64; 2]);

impl Key {
    /// Hashes a text to half of a SHA-256 digest. Two texts with the same key would silently get the same
    /// vector, so no weaker hash will do.
    pub(crate) fn new(fingerprint: &str, text: &str) -> Self {
        let digest = Sha256::new_with_prefix(fingerprint).chain_update([0]).chain_update(text).finalize();
        Self::of(&digest)
    }

    /// Hashes pairs of a question and a text, which a model reads together; such a key never equals that of a
    /// text alone. The question is hashed once for all texts.
    pub(crate) fn of_pairs(fingerprint: &str, question: &str) -> impl Fn(&str) -> Self + use<> {
        let asked = Sha256::new_with_prefix(fingerprint)
            .chain_update([1])
            .chain_update((question.len() as u64).to_le_bytes())
            .chain_update(question);
        move |text| Self::of(&asked.clone().chain_update(text).finalize())
    }

    fn of(digest: &[u8]) -> Self {
        let word =
            |at: usize| digest[at..at + 8].iter().fold(0u64, |word, byte| (word << 8) | u64::from(*byte));
        Key([word(0), word(8)])
    }
}

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Slot {
    key: Key,
    encoding: Option<Encoding>,
    newer: u32,
    older: u32,
}

/// A hash map whose entries also form a linked list, newest first.
#[derive(Debug)]
pub(crate) struct Cache {
    budget: usize,
    used: usize,
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_key: FxHashMap<Key, u32>,
    newest: u32,
    oldest: u32,
}

impl Cache {
    /// An empty cache of at most `budget` bytes; with 0 it stays empty.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            used: 0,
            slots: Vec::new(),
            free: Vec::new(),
            by_key: FxHashMap::default(),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Memory in use, in bytes; an upper estimate.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Whether the cache can hold anything.
    pub(crate) fn enabled(&self) -> bool {
        self.budget > 0
    }

    /// Looks up an encoding, which thereby becomes the newest.
    pub(crate) fn get(&mut self, key: &Key) -> Option<Encoding> {
        let at = *self.by_key.get(key)?;
        self.unlink(at);
        self.link_newest(at);
        self.slots[at as usize].encoding.clone()
    }

    /// Stores an encoding, and drops the oldest ones until it fits. An encoding larger than the whole budget
    /// is not stored.
    pub(crate) fn insert(&mut self, key: Key, encoding: Encoding) {
        let bytes = encoding.bytes();
        if bytes > self.budget || self.by_key.contains_key(&key) {
            return;
        }
        while self.used + bytes > self.budget {
            self.evict_oldest();
        }
        self.used += bytes;
        let slot = Slot { key, encoding: Some(encoding), newer: NONE, older: NONE };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.by_key.insert(key, at);
        self.link_newest(at);
    }

    fn evict_oldest(&mut self) {
        let at = self.oldest;
        self.unlink(at);
        let slot = &mut self.slots[at as usize];
        let bytes = slot.encoding.take().map_or(0, |encoding| encoding.bytes());
        let key = slot.key;
        self.used -= bytes;
        self.by_key.remove(&key);
        self.free.push(at);
    }

    fn unlink(&mut self, at: u32) {
        let (newer, older) = (self.slots[at as usize].newer, self.slots[at as usize].older);
        match newer {
            NONE => self.newest = older,
            _ => self.slots[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            _ => self.slots[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, at: u32) {
        let second = self.newest;
        self.slots[at as usize].newer = NONE;
        self.slots[at as usize].older = second;
        match second {
            NONE => self.oldest = at,
            _ => self.slots[second as usize].newer = at,
        }
        self.newest = at;
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, Encoding, Key, Vector};

    fn encoding(terms: usize) -> Encoding {
        Encoding { vector: Vector::Sparse(vec![(1, 1.0); terms].into()), token_count: 3, truncated: 0 }
    }

    fn key(text: &str) -> Key {
        Key::new("model", text)
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let one = encoding(10).bytes();
        let mut cache = Cache::new(3 * one);
        for text in ["a", "b", "c"] {
            cache.insert(key(text), encoding(10));
        }
        assert_eq!(cache.used(), 3 * one);
        assert_eq!(cache.get(&key("a")), Some(encoding(10)));
        cache.insert(key("d"), encoding(10));
        assert_eq!(cache.get(&key("b")), None);
        for text in ["a", "c", "d"] {
            assert!(cache.get(&key(text)).is_some(), "{text}");
        }
        // A larger one pushes out two: "a" and "c" are the oldest now.
        cache.insert(key("e"), encoding(11));
        assert!(cache.get(&key("a")).is_none() && cache.get(&key("c")).is_none());
        assert!(cache.get(&key("d")).is_some() && cache.get(&key("e")).is_some());
        assert!(cache.used() <= 3 * one);
    }

    #[test]
    fn nothing_above_the_budget_is_kept() {
        let mut cache = Cache::new(encoding(10).bytes());
        cache.insert(key("a"), encoding(10));
        cache.insert(key("b"), encoding(1000));
        assert!(cache.get(&key("a")).is_some());
        assert!(cache.get(&key("b")).is_none());
        let mut none = Cache::new(0);
        none.insert(key("a"), encoding(0));
        assert_eq!((none.used(), none.enabled()), (0, false));
    }

    #[test]
    fn keys_tell_models_and_texts_apart() {
        assert_ne!(Key::new("m", "a"), Key::new("m", "b"));
        assert_ne!(Key::new("m", "a"), Key::new("n", "a"));
        assert_eq!(Key::new("m", "a"), Key::new("m", "a"));
        let pair = |question, text| Key::of_pairs("m", question)(text);
        assert_eq!(pair("a", "b"), pair("a", "b"));
        assert_ne!(pair("a", "bc"), pair("ab", "c"));
        assert_ne!(pair("", "a"), Key::new("m", "a"));
    }
}
