//! Sets of documents of one segment, as bitmaps of 64-bit words.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::postings::BlockSegmentPostings;
use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, TERMINATED};

/// Number of buffers of documents between two checks of a cancel flag.
const BUFFERS: usize = 64;

/// A set of documents of one segment as a bitmap: document `d` is bit `d % 64` of word `d / 64`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocBits {
    words: Vec<u64>,
    max_doc: u32,
}

impl DocBits {
    /// The empty set, for a segment with `max_doc` documents.
    pub fn empty(max_doc: u32) -> Self {
        Self { words: vec![0; max_doc.div_ceil(64) as usize], max_doc }
    }

    /// The set of all documents of `docset` from its current position on; incomplete if `cancel` is set
    /// meanwhile.
    pub fn from_docset(docset: &mut dyn DocSet, max_doc: u32, cancel: Option<&AtomicBool>) -> Self {
        let mut bits = Self::empty(max_doc);
        while !cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
            if bits.insert_some(docset, BUFFERS) {
                break;
            }
        }
        bits
    }

    /// Adds all documents of `docset` from its current position on.
    pub fn insert_all(&mut self, docset: &mut dyn DocSet) {
        while !self.insert_some(docset, usize::MAX) {}
    }

    /// Adds up to `buffers` buffers of documents; returns true when there are no more.
    fn insert_some(&mut self, docset: &mut dyn DocSet, buffers: usize) -> bool {
        let mut buffer = [0; tantivy::COLLECT_BLOCK_BUFFER_LEN];
        for _ in 0..buffers {
            let filled = docset.fill_buffer(&mut buffer);
            for &doc in &buffer[..filled] {
                self.insert(doc);
            }
            if filled < buffer.len() {
                return true;
            }
        }
        false
    }

    /// Adds all documents of a posting list, a block at a time.
    pub fn insert_postings(&mut self, postings: &mut BlockSegmentPostings) {
        while !postings.docs().is_empty() {
            self.insert_sorted(postings.docs());
            postings.advance();
        }
    }

    /// Adds documents in ascending order. Documents that share a word are combined in a register: writing
    /// each of them to memory costs three times as much.
    pub fn insert_sorted(&mut self, docs: &[DocId]) {
        let (Some(&first), Some(&last)) = (docs.first(), docs.last()) else { return };
        debug_assert!(last < self.max_doc && docs.is_sorted());
        if (last - first) as usize > docs.len() * 16 {
            for &doc in docs {
                self.words[(doc / 64) as usize] |= 1 << (doc % 64);
            }
            return;
        }
        let (mut at, mut word) = (first / 64, 0_u64);
        for &doc in docs {
            if doc / 64 != at {
                self.words[at as usize] |= word;
                (at, word) = (doc / 64, 0);
            }
            word |= 1 << (doc % 64);
        }
        self.words[at as usize] |= word;
    }

    /// Toggles documents: adds those that are not in the set, and removes those that are.
    pub fn flip(&mut self, docs: &[DocId]) {
        for &doc in docs {
            self.words[(doc / 64) as usize] ^= 1 << (doc % 64);
        }
    }

    /// The 64-bit words of the bitmap.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Adds a document.
    pub fn insert(&mut self, doc: DocId) {
        debug_assert!(doc < self.max_doc);
        self.words[(doc / 64) as usize] |= 1 << (doc % 64);
    }

    /// Whether `doc` is in the set.
    pub fn contains(&self, doc: DocId) -> bool {
        contains(&self.words, doc)
    }

    /// Keeps the documents that are in both sets.
    pub fn intersect(&mut self, other: &DocBits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// The documents that are in both sets.
    pub fn intersection(&self, other: &DocBits) -> Self {
        self.combined(other, |word, other| word & other)
    }

    /// The documents that are in this set but not in `other`.
    pub fn difference(&self, other: &DocBits) -> Self {
        self.combined(other, |word, other| word & !other)
    }

    /// Combines two sets word by word in a single pass; copying one and changing it would take two.
    fn combined(&self, other: &DocBits, combine: impl Fn(u64, u64) -> u64) -> Self {
        let words = self.words.iter().zip(&other.words).map(|(word, other)| combine(*word, *other));
        Self { words: words.collect(), max_doc: self.max_doc }
    }

    /// Adds the documents of `other`.
    pub fn unite(&mut self, other: &DocBits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Removes the documents of `other`.
    pub fn subtract(&mut self, other: &DocBits) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= !other;
        }
    }

    /// The documents of the segment that are not in the set.
    pub fn complement(mut self) -> Self {
        for word in &mut self.words {
            *word = !*word;
        }
        let used = self.max_doc % 64;
        if let (Some(last), true) = (self.words.last_mut(), used != 0) {
            *last &= (1 << used) - 1;
        }
        self
    }

    /// Whether the set has no documents.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Whether the set has every document of the segment.
    pub fn is_full(&self) -> bool {
        let (last, words) = match self.words.split_last() {
            Some((last, words)) if !self.max_doc.is_multiple_of(64) => {
                (last.count_ones() == self.max_doc % 64, words)
            }
            _ => (true, &self.words[..]),
        };
        last && words.iter().all(|word| *word == u64::MAX)
    }

    /// Number of documents.
    pub fn count(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Lowest document in the set at or after `from`, or [`TERMINATED`].
    pub fn next(&self, from: DocId) -> DocId {
        next_in(&self.words, from)
    }
}

/// Whether a bitmap has `doc`.
pub fn contains(words: &[u64], doc: DocId) -> bool {
    words.get((doc / 64) as usize).is_some_and(|word| word >> (doc % 64) & 1 == 1)
}

/// Lowest document of a bitmap at or after `from`, or [`TERMINATED`].
pub fn next_in(words: &[u64], from: DocId) -> DocId {
    let mut index = (from / 64) as usize;
    let Some(word) = words.get(index) else { return TERMINATED };
    let mut word = word & (u64::MAX << (from % 64));
    while word == 0 {
        index += 1;
        match words.get(index) {
            Some(next) => word = *next,
            None => return TERMINATED,
        }
    }
    index as u32 * 64 + word.trailing_zeros()
}

/// Highest document of a bitmap below `end`; `None` where all of its documents are at or after `end`.
pub fn last_before(words: &[u64], end: DocId) -> Option<DocId> {
    let mut index = (end as usize / 64).min(words.len());
    let below = |index: usize| match index == end as usize / 64 {
        true => (1u64 << (end % 64)) - 1,
        false => u64::MAX,
    };
    loop {
        let word = words.get(index).map_or(0, |word| word & below(index));
        if word != 0 {
            return Some(index as u32 * 64 + 63 - word.leading_zeros());
        }
        index = index.checked_sub(1)?;
    }
}

/// A scorer over a [`DocBits`] that gives every document the same score.
pub struct BitsScorer {
    bits: Arc<DocBits>,
    doc: DocId,
    /// Number of documents, counted on demand.
    size: OnceCell<u32>,
    score: f32,
    cheap: bool,
}

impl BitsScorer {
    /// A scorer at the first document of the set.
    pub fn new(bits: impl Into<Arc<DocBits>>, score: f32) -> Self {
        let bits = bits.into();
        Self { doc: bits.next(0), size: OnceCell::new(), bits, score, cheap: false }
    }

    /// A scorer over a set that is faster to compute again than to cache.
    pub fn cheap(bits: DocBits, score: f32) -> Self {
        Self { cheap: true, ..Self::new(bits, score) }
    }

    /// Whether the set is faster to compute again than to cache, so that it is not worth caching after a
    /// single use.
    pub fn is_cheap(&self) -> bool {
        self.cheap
    }

    /// The underlying set, for callers that do not need a scorer.
    pub fn bits(&self) -> Arc<DocBits> {
        self.bits.clone()
    }
}

impl DocSet for BitsScorer {
    fn advance(&mut self) -> DocId {
        if self.doc != TERMINATED {
            self.doc = self.bits.next(self.doc + 1);
        }
        self.doc
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if target > self.doc {
            self.doc = if target >= TERMINATED { TERMINATED } else { self.bits.next(target) };
        }
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        *self.size.get_or_init(|| self.bits.count())
    }
}

impl Scorer for BitsScorer {
    fn score(&mut self) -> f32 {
        self.score
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;
    use tantivy::{DocSet, TERMINATED};

    use super::{BitsScorer, DocBits, last_before, next_in};

    fn bits(max_doc: u32, docs: &[u32]) -> DocBits {
        let mut bits = DocBits::empty(max_doc);
        for &doc in docs {
            bits.insert(doc);
        }
        bits
    }

    #[test]
    fn a_set_flag_ends_the_reading_of_documents() {
        let all = DocBits::empty(50_000).complement();
        let read = |flag: bool| {
            let mut scorer = BitsScorer::new(all.clone(), 1.0);
            DocBits::from_docset(&mut scorer, 50_000, Some(&AtomicBool::new(flag))).count()
        };
        assert_eq!((read(false), read(true)), (50_000, 0));
    }

    #[test]
    fn neighbours_are_found_over_empty_words() {
        let mut words = [0u64; 5];
        for doc in [3, 63, 64, 255] {
            words[doc / 64] |= 1 << (doc % 64);
        }
        let next: Vec<u32> = [0, 3, 4, 63, 64, 65, 255, 256, 900].map(|from| next_in(&words, from)).to_vec();
        assert_eq!(next, [3, 3, 63, 63, 64, 255, 255, TERMINATED, TERMINATED]);
        let last: Vec<Option<u32>> =
            [0, 3, 4, 64, 65, 255, 256, 900].map(|end| last_before(&words, end)).to_vec();
        assert_eq!(last, [None, None, Some(3), Some(63), Some(64), Some(64), Some(255), Some(255)]);
    }

    #[test]
    fn complement_stays_inside_the_segment() {
        let all = DocBits::empty(70).complement();
        assert_eq!(all.count(), 70);
        assert!(all.contains(69) && !all.contains(70));
        assert_eq!(all.complement().count(), 0);
    }

    #[test]
    fn full_and_empty_are_told_from_nearly_so() {
        for max_doc in [1, 63, 64, 65, 130] {
            let (empty, full) = (DocBits::empty(max_doc), DocBits::empty(max_doc).complement());
            assert!(empty.is_empty() && !empty.is_full() && full.is_full() && !full.is_empty());
            for doc in 0..max_doc {
                let (mut one, mut but_one) = (empty.clone(), full.clone());
                one.flip(&[doc]);
                but_one.flip(&[doc]);
                assert!(!one.is_empty() && one.contains(doc) && one.is_full() == (max_doc == 1));
                assert!(!but_one.is_full() && !but_one.contains(doc) && but_one.is_empty() == (max_doc == 1));
            }
        }
    }

    proptest! {
        #[test]
        fn scorer_walks_and_seeks_like_a_sorted_list(
            docs in proptest::collection::btree_set(0u32..300, 0..80),
            target in 0u32..310,
        ) {
            let docs: Vec<u32> = docs.into_iter().collect();
            let mut scorer = BitsScorer::new(bits(300, &docs), 1.0);
            prop_assert_eq!(DocBits::from_docset(&mut scorer, 300, None), bits(300, &docs));
            let mut scorer = BitsScorer::new(bits(300, &docs), 1.0);
            let expected = docs.iter().copied().find(|&doc| doc >= target).unwrap_or(TERMINATED);
            prop_assert_eq!(scorer.seek(target).max(target), expected.max(target));
        }

        #[test]
        fn sorted_documents_are_inserted_as_one_by_one(
            docs in proptest::collection::btree_set(0u32..5000, 0..200),
            dense in 0u32..4000,
        ) {
            let mut docs = docs;
            docs.extend(dense..dense + 90);
            let docs: Vec<u32> = docs.into_iter().collect();
            for chunk in [128, 7] {
                let mut sorted = DocBits::empty(5000);
                docs.chunks(chunk).for_each(|docs| sorted.insert_sorted(docs));
                prop_assert_eq!(&sorted, &bits(5000, &docs));
            }
        }

        #[test]
        fn set_operations(
            left in proptest::collection::btree_set(0u32..200, 0..80),
            right in proptest::collection::btree_set(0u32..200, 0..80),
        ) {
            let l: Vec<u32> = left.iter().copied().collect();
            let r: Vec<u32> = right.iter().copied().collect();
            let mut both = bits(200, &l);
            both.intersect(&bits(200, &r));
            let mut any = bits(200, &l);
            any.unite(&bits(200, &r));
            let mut minus = bits(200, &l);
            minus.subtract(&bits(200, &r));
            prop_assert_eq!(&bits(200, &l).intersection(&bits(200, &r)), &both);
            prop_assert_eq!(&bits(200, &l).difference(&bits(200, &r)), &minus);
            for doc in 0..200 {
                prop_assert_eq!(both.contains(doc), left.contains(&doc) && right.contains(&doc));
                prop_assert_eq!(any.contains(doc), left.contains(&doc) || right.contains(&doc));
                prop_assert_eq!(minus.contains(doc), left.contains(&doc) && !right.contains(&doc));
            }
        }
    }
}
