//! The documents that a sum of clauses matches, best found without looking at all of them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tantivy::query::Scorer;
use tantivy::{DocId, SegmentReader, TERMINATED};

use super::error::QueryError;
use super::max_score::MaxScoreDisjunction;
use super::window_at_a_time::WINDOW;

/// Documents of which whoever walks by windows has one bound.
pub(super) const BLOCK: usize = 8;
/// Documents between two looks at the cancel flag.
pub(super) const CANCEL_INTERVAL: u32 = 4096;

/// Walks the documents of one segment that a sum matches, ascending.
pub(super) struct DocumentAtATime<'c> {
    /// Parts by bound, lowest first, as all that follow.
    pub(super) scorers: Vec<Box<dyn Scorer>>,
    pub(super) heads: Vec<DocId>,
    /// Scores of the clauses for the current document; meaningless for clauses that stand at another one.
    pub(super) scores: Vec<f32>,
    /// Sum of the highest scores up to a part, itself included.
    pub(super) below: Vec<f32>,
    /// Where each part of the query stands in the lists above.
    pub(super) places: Vec<usize>,
    /// The other way round.
    pub(super) order: Vec<usize>,
    /// Parts of the query.
    pub(super) required: Vec<Range<usize>>,
    /// From here on, parts lead to documents.
    pub(super) essential: usize,
    pub(super) cancel: Option<&'c AtomicBool>,
    /// Documents until the next look at it.
    pub(super) until_poll: u32,
}

impl DocumentAtATime<'_> {
    /// Score of a document, `None` if no part matches, or a required clause does not. Documents must
    /// ascend over all calls.
    pub(super) fn score(&mut self, doc: DocId) -> Option<f32> {
        let mut score = None;
        for place in &self.places {
            let (scorer, head) = (&mut self.scorers[*place], &mut self.heads[*place]);
            if *head < doc {
                *head = scorer.seek(doc);
            }
            if *head == doc {
                *score.get_or_insert(0.0) += scorer.score();
            }
        }
        score.filter(|_| self.has_required(doc))
    }

    /// Whether the document, at which all parts stand that match it, matches all that is required.
    fn has_required(&self, doc: DocId) -> bool {
        let matches = |place: &usize| self.heads[*place] == doc;
        self.required.iter().all(|parts| self.places[parts.clone()].iter().any(matches))
    }

    /// The next document that is `wanted` and has a score, which may be left out if it is less than
    /// `least`. From call to call `least` must not fall.
    pub(super) fn next(&mut self, least: f32, wanted: impl Fn(DocId) -> bool) -> Option<(DocId, f32)> {
        while self.below.get(self.essential).is_some_and(|bound| *bound < least) {
            self.essential += 1;
        }
        loop {
            let doc = self.heads[self.essential..].iter().copied().min().unwrap_or(TERMINATED);
            if doc == TERMINATED {
                return None;
            }
            self.until_poll -= 1;
            if self.until_poll == 0 {
                if self.cancel.is_some_and(|flag| flag.load(Relaxed)) {
                    return None;
                }
                self.until_poll = CANCEL_INTERVAL;
            }
            let sum = if wanted(doc) { self.sum_at(doc, least) } else { None };
            for (head, scorer) in self.heads.iter_mut().zip(&mut self.scorers).skip(self.essential) {
                if *head == doc {
                    *head = scorer.advance();
                }
            }
            if let Some(score) = sum {
                return Some((doc, score));
            }
        }
    }

    /// Calls `offer` with documents and their scores, ascending. `needed` says how high the score has to be
    /// of the 8 documents from one on; it may rise with every offer. No answer of it may be below `least`.
    pub(super) fn windows(
        mut self,
        sum: &MaxScoreDisjunction,
        reader: &SegmentReader,
        least: impl Fn() -> f32,
        needed: impl Fn(DocId) -> f32,
        wanted: impl Fn(DocId) -> bool,
        mut offer: impl FnMut(DocId, f32),
    ) -> Result<(), QueryError> {
        let mut sources = Vec::with_capacity(self.order.len());
        for part in &self.order {
            sources.push(sum.source(*part, reader)?);
        }
        let mut sums = vec![0.0_f32; WINDOW as usize];
        for start in (0..reader.max_doc()).step_by(WINDOW as usize) {
            if self.cancel.is_some_and(|flag| flag.load(Relaxed)) {
                return Ok(());
            }
            let least = least();
            while self.below.get(self.essential).is_some_and(|bound| *bound < least) {
                self.essential += 1;
            }
            if self.essential == sources.len() {
                return Ok(());
            }
            let docs = WINDOW.min(reader.max_doc() - start) as usize;
            let sums = &mut sums[..docs.next_multiple_of(BLOCK)];
            sums.fill(0.0);
            sources[self.essential..].iter_mut().for_each(|source| source.add(start, sums));
            let inessential_bound = self.essential.checked_sub(1).map_or(0.0, |place| self.below[place]);
            // Above 0, by what the essential parts are.
            let floor = (least - inessential_bound).max(f32::MIN_POSITIVE);
            for (first, sums) in (start..).step_by(BLOCK).zip(sums.as_chunks::<BLOCK>().0) {
                if sums.iter().fold(0, |any, sum| any | u32::from(*sum >= floor)) == 0 {
                    continue;
                }
                let needed_here = needed(first);
                if sums.iter().all(|sum| *sum + inessential_bound < needed_here) {
                    continue;
                }
                for (doc, sum) in (first..).zip(sums) {
                    if *sum == 0.0 || !wanted(doc) {
                        continue;
                    }
                    let needed = needed(first);
                    if *sum + inessential_bound >= needed
                        && let Some(score) = self.complete(doc, *sum, needed)
                    {
                        offer(doc, score);
                    }
                }
            }
        }
        Ok(())
    }

    /// The score of a document of which the essential parts' scores are known, within rounding, unless it is
    /// found to be too low. Documents must ascend over all calls.
    pub(super) fn complete(&mut self, doc: DocId, partial_sum: f32, least: f32) -> Option<f32> {
        let mut sum = partial_sum;
        for place in (0..self.essential).rev() {
            if sum + self.below[place] < least {
                return None;
            }
            if self.move_to(place, doc) {
                self.scores[place] = self.scorers[place].score();
                sum += self.scores[place];
            }
        }
        if sum < least {
            return None;
        }
        for place in self.essential..self.heads.len() {
            if self.move_to(place, doc) {
                self.scores[place] = self.scorers[place].score();
            }
        }
        self.has_required(doc).then(|| self.in_order(doc))
    }

    /// Whether a part matches a document, which none has passed.
    fn move_to(&mut self, place: usize, doc: DocId) -> bool {
        if self.heads[place] < doc {
            self.heads[place] = self.scorers[place].seek(doc);
        }
        self.heads[place] == doc
    }

    /// The scores of the parts that match a document, added in the order of the query.
    fn in_order(&self, doc: DocId) -> f32 {
        let matching = self.places.iter().filter(|place| self.heads[**place] == doc);
        matching.fold(0.0, |sum, place| sum + self.scores[*place])
    }

    /// The score of a document that essential parts lead to, unless it is found to be too low.
    fn sum_at(&mut self, doc: DocId, least: f32) -> Option<f32> {
        let mut sum = 0.0;
        for place in self.essential..self.heads.len() {
            if self.heads[place] == doc {
                self.scores[place] = self.scorers[place].score();
                sum += self.scores[place];
            }
        }
        for place in (0..self.essential).rev() {
            if sum + self.below[place] < least {
                return None;
            }
            if self.move_to(place, doc) {
                self.scores[place] = self.scorers[place].score();
                sum += self.scores[place];
            }
        }
        (sum >= least && self.has_required(doc)).then(|| self.in_order(doc))
    }
}
