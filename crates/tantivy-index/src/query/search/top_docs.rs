//! Collects the best hits over all segments, by whichever algorithm they are found.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tantivy::DocAddress;

use crate::query::{ScoredDoc, TopDocs, TotalHits, TotalRelation};
use sparrow_runtime::{Executors, SeqNo};

/// A hit in the heap; worse hits compare as greater, so that the top of the heap is the one to drop.
struct Candidate(ScoredDoc);

impl Candidate {
    fn compare(a: &ScoredDoc, b: &ScoredDoc) -> Ordering {
        // Objects of a document have one sequence number, and follow each other as they do in it.
        b.score.total_cmp(&a.score).then(a.seq_no.cmp(&b.seq_no)).then(a.addr.cmp(&b.addr))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        Candidate::compare(&self.0, &other.0)
    }
}

/// Keeps the best `size` hits: highest score first, equal scores by sequence number, then by address, also where hits are cut off.
pub(crate) struct TopCollector {
    size: usize,
    heap: BinaryHeap<Candidate>,
}

impl TopCollector {
    pub(crate) fn new(size: usize) -> Self {
        Self { size, heap: BinaryHeap::with_capacity(size.min(10_000) + 1) }
    }

    /// Number of hits kept.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Number of hits to keep.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Scores of the hits kept, in no particular order.
    pub(crate) fn scores(&self) -> impl Iterator<Item = f32> + '_ {
        self.heap.iter().map(|candidate| candidate.0.score)
    }

    /// The score that a hit must reach to be kept; with exactly this score it may still be dropped.
    pub(crate) fn threshold(&self) -> f32 {
        if self.heap.len() < self.size {
            return f32::NEG_INFINITY;
        }
        self.heap.peek().map_or(f32::INFINITY, |worst| worst.0.score)
    }

    /// Offers a hit. `seq_no` is only called when the score is high enough.
    pub(crate) fn offer(&mut self, addr: DocAddress, score: f32, seq_no: impl FnOnce() -> SeqNo) {
        if score < self.threshold() || self.size == 0 {
            return;
        }
        let hit = Candidate(ScoredDoc { addr, score, seq_no: seq_no() });
        if self.heap.len() < self.size {
            self.heap.push(hit);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && hit < *worst
        {
            *worst = hit;
        }
    }

    /// The hits, in no particular order.
    pub(crate) fn into_hits(self) -> impl Iterator<Item = ScoredDoc> {
        self.heap.into_iter().map(|candidate| candidate.0)
    }

    /// The hits in order, with the number of all matches in the form that `track` asks for.
    pub(crate) fn finish(self, matched: u64, track: TotalHits) -> TopDocs {
        let hits: Vec<ScoredDoc> =
            self.heap.into_sorted_vec().into_iter().map(|candidate| candidate.0).collect();
        let (total, relation) = match track {
            TotalHits::Exact => (matched, TotalRelation::Eq),
            TotalHits::UpTo(limit) if matched > limit => (limit, TotalRelation::Gte),
            TotalHits::UpTo(_) => (matched, TotalRelation::Eq),
            TotalHits::Off => (0, TotalRelation::Gte),
        };
        let max_score = hits.first().map(|hit| hit.score);
        TopDocs { hits, total, relation, max_score, executors: Executors::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tantivy::DocAddress;

    use super::TopCollector;
    use crate::query::{TotalHits, TotalRelation};

    proptest! {
        #[test]
        fn keeps_what_a_full_sort_would(
            scores in proptest::collection::vec(0u8..5, 0..60),
            size in 0usize..20,
        ) {
            let mut top = TopCollector::new(size);
            // Sequence numbers that do not follow the order of arrival.
            let seq_no = |doc: usize| (doc * 7919 % 61) as u64;
            for (doc, score) in scores.iter().enumerate() {
                top.offer(DocAddress::new(0, doc as u32), f32::from(*score), || seq_no(doc));
            }
            let mut expected: Vec<(u8, u64)> =
                scores.iter().enumerate().map(|(doc, score)| (*score, seq_no(doc))).collect();
            expected.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
            expected.truncate(size);
            let found = top.finish(scores.len() as u64, TotalHits::UpTo(30));
            let found_hits: Vec<(u8, u64)> =
                found.hits.iter().map(|hit| (hit.score as u8, hit.seq_no)).collect();
            prop_assert_eq!(found_hits, expected);
            prop_assert_eq!(found.total, scores.len().min(30) as u64);
            prop_assert_eq!(found.relation == TotalRelation::Gte, scores.len() > 30);
        }
    }
}
