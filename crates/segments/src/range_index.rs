//! The documents of a segment sorted by their values in one column, so that the documents of any range are
//! found without scanning the column.
//!
//! A range is the difference of two prefixes of the order. The bitmaps of some prefixes, one slot of
//! documents apart, are kept; any other prefix differs from the nearest of them by at most half a slot, whose
//! documents are toggled one by one.

use std::ops::RangeInclusive;

use tantivy::DocId;
use tantivy::columnar::{Cardinality, Column, ColumnType};

use crate::doc_bits::DocBits;

/// Number of slots that the sorted order is divided into. Twice as many halve the documents to be toggled and
/// double the memory of the bitmaps.
const SLOTS: usize = if cfg!(test) { 4 } else { 32 };
/// Number of bits of a value that one pass of the radix sort looks at.
const DIGIT: u32 = 11;

/// Documents sorted by value, deleted ones included.
pub struct RangeIndex {
    column: Column<u64>,
    column_type: ColumnType,
    /// Numbers of the documents that have a value, by ascending value, then by number.
    order: Vec<DocId>,
    /// Number of documents in a slot; the last slot may have fewer.
    slot: usize,
    /// Value of the first document of each slot.
    firsts: Vec<u64>,
    /// For each slot, the set of documents before it; the last entry has all documents.
    prefixes: Vec<DocBits>,
}

impl RangeIndex {
    /// Sorts the documents of a column; `None` where a document may have several values.
    pub fn new(column: Column<u64>, column_type: ColumnType, max_doc: u32) -> Option<Self> {
        if column.get_cardinality() == Cardinality::Multivalued {
            return None;
        }
        let mut values = vec![0; column.values.num_vals() as usize];
        column.values.get_range(0, &mut values);
        let mut docs: Vec<DocId> = (0..column.values.num_vals()).collect();
        column.index.select_batch_in_place(0, &mut docs);
        // Of a sound column neither can be.
        if docs.len() != values.len() || docs.iter().any(|doc| *doc >= max_doc) {
            return None;
        }
        let sorted = sorted_by_value(values.into_iter().zip(docs).collect());
        let slot = sorted.len().div_ceil(SLOTS).max(1);
        let mut prefix = DocBits::empty(max_doc);
        let (mut firsts, mut prefixes) = (Vec::with_capacity(SLOTS), Vec::with_capacity(SLOTS + 1));
        prefixes.push(prefix.clone());
        for slot in sorted.chunks(slot) {
            firsts.extend(slot.first().map(|(value, _)| *value));
            slot.iter().for_each(|(_, doc)| prefix.insert(*doc));
            prefixes.push(prefix.clone());
        }
        let order = sorted.into_iter().map(|(_, doc)| doc).collect();
        Some(Self { column, column_type, order, slot, firsts, prefixes })
    }

    /// Type of the column's values.
    pub fn column_type(&self) -> ColumnType {
        self.column_type
    }

    /// Memory that the sorted order takes, in bytes.
    pub fn bytes(&self) -> usize {
        let prefixes: usize = self.prefixes.iter().map(|prefix| prefix.words().len() * 8).sum();
        self.order.len() * size_of::<DocId>() + prefixes + Self::FIXED_BYTES
    }

    /// Upper bound on [`Self::bytes`] for a segment with `max_doc` documents.
    pub fn most_bytes(max_doc: u32) -> usize {
        let prefixes = (SLOTS + 1) * max_doc.div_ceil(64) as usize * 8;
        max_doc as usize * size_of::<DocId>() + prefixes + Self::FIXED_BYTES
    }

    /// Memory that does not depend on the number of documents, in bytes.
    const FIXED_BYTES: usize =
        size_of::<Self>() + SLOTS * size_of::<u64>() + (SLOTS + 1) * size_of::<DocBits>();

    /// The documents with a value in the range; `None` if there are none.
    pub fn find(&self, values: &RangeInclusive<u64>) -> Option<DocBits> {
        let from = self.rank(*values.start());
        let to = values.end().checked_add(1).map_or(self.order.len(), |end| self.rank(end));
        if from >= to {
            return None;
        }
        let (before, below) = (self.nearest(from), self.nearest(to));
        let flips = self.place(before).abs_diff(from) + self.place(below).abs_diff(to);
        let mut docs;
        if to - from <= flips {
            docs = self.prefixes[0].clone();
            docs.flip(&self.order[from..to]);
        } else {
            docs = self.prefixes[below].difference(&self.prefixes[before]);
            for (rank, place) in [(from, self.place(before)), (to, self.place(below))] {
                docs.flip(&self.order[rank.min(place)..rank.max(place)]);
            }
        }
        Some(docs)
    }

    /// Number of documents whose value is lower than `value`.
    fn rank(&self, value: u64) -> usize {
        let Some(slot) = self.firsts.partition_point(|first| *first < value).checked_sub(1) else { return 0 };
        let start = slot * self.slot;
        let end = self.order.len().min(start + self.slot);
        let lower = |doc: &DocId| self.column.first(*doc).is_some_and(|first| first < value);
        start + self.order[start..end].partition_point(lower)
    }

    /// Number of the kept prefix whose length is nearest to `rank` documents.
    fn nearest(&self, rank: usize) -> usize {
        // Behind the last place, which a whole slot may be missing to, the last is the nearest.
        ((rank + self.slot / 2) / self.slot).min(self.prefixes.len() - 1)
    }

    /// Number of documents in a kept prefix.
    fn place(&self, prefix: usize) -> usize {
        self.order.len().min(prefix * self.slot)
    }
}

impl std::fmt::Debug for RangeIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RangeIndex").field("docs", &self.order.len()).finish_non_exhaustive()
    }
}

/// Sorts by value with a radix sort, from the lowest digit up; documents with the same value keep their
/// order.
fn sorted_by_value(mut pairs: Vec<(u64, DocId)>) -> Vec<(u64, DocId)> {
    if pairs.is_sorted_by_key(|(value, _)| *value) {
        return pairs;
    }
    let least = pairs.iter().map(|(value, _)| *value).min().unwrap_or(0);
    let most = pairs.iter().map(|(value, _)| *value).max().unwrap_or(0);
    let mut moved = vec![(0, 0); pairs.len()];
    for shift in (0..u64::BITS - (most - least).leading_zeros()).step_by(DIGIT as usize) {
        let digit = |value: u64| ((value - least) >> shift) as usize % (1 << DIGIT);
        let mut places = [0; 1 << DIGIT];
        for (value, _) in &pairs {
            places[digit(*value)] += 1;
        }
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for pair in &pairs {
            let place = &mut places[digit(pair.0)];
            moved[*place] = *pair;
            *place += 1;
        }
        std::mem::swap(&mut pairs, &mut moved);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use tantivy::columnar::column_values::VecColumn;
    use tantivy::columnar::{ColumnIndex, ColumnValues};

    use super::*;

    fn column(values: Vec<u64>) -> Column<u64> {
        let values: Arc<dyn ColumnValues<u64>> = Arc::new(VecColumn::from(values));
        Column { index: ColumnIndex::Full, values }
    }

    /// Values that many or few documents share, near the ends of the range of `u64` and far from them.
    fn value() -> impl Strategy<Value = u64> {
        prop_oneof![0..4_u64, 1000..1200_u64, any::<u64>(), u64::MAX - 3..=u64::MAX, Just(1 << 63)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn every_range_is_what_a_scan_finds(
            values in proptest::collection::vec(value(), 0..300),
            others in proptest::collection::vec((value(), value()), 1..20),
        ) {
            let max_doc = values.len() as u32;
            let index = RangeIndex::new(column(values.clone()), ColumnType::U64, max_doc).unwrap();
            prop_assert!(index.bytes() <= RangeIndex::most_bytes(max_doc));
            // Bounds that are values too, and such that are none.
            let near = values.iter().zip(values.iter().rev()).map(|(a, b)| (*a, *b));
            for (from, to) in near.chain(others).chain([(0, u64::MAX)]) {
                let mut expected = DocBits::empty(max_doc);
                for (doc, value) in (0..).zip(&values) {
                    if (from..=to).contains(value) {
                        expected.insert(doc);
                    }
                }
                let found = index.find(&(from..=to));
                prop_assert!(found.as_ref().is_none_or(|found| !found.is_empty()));
                prop_assert_eq!(found.unwrap_or(DocBits::empty(max_doc)), expected, "{}..={}", from, to);
            }
        }

        #[test]
        fn the_sort_is_stable(values in proptest::collection::vec(value(), 0..300)) {
            let pairs: Vec<(u64, DocId)> = values.into_iter().zip(0..).collect();
            let mut expected = pairs.clone();
            expected.sort_by_key(|(value, _)| *value);
            prop_assert_eq!(sorted_by_value(pairs), expected);
        }
    }
}
