//! Visits the documents that match a sum of clauses one after the other, skipping those that cannot be among
//! the best.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tantivy::query::Scorer;
use tantivy::{DocId, SegmentReader, TERMINATED};

use crate::query::search::max_score::MaxScoreDisjunction;
use crate::query::search::window_at_a_time::WINDOW;
use sparrow_scoring::error::QueryError;

/// Number of documents that share one score bound in a walk by windows.
pub(crate) const BLOCK: usize = 8;
/// Number of documents between two checks of the cancel flag.
pub(crate) const CANCEL_INTERVAL: u32 = 4096;

/// Visits the documents of one segment that match a sum, in ascending order.
pub(crate) struct DocumentAtATime<'c> {
    /// Scorers of the parts of the query, by ascending upper bound; the following lists are in the same
    /// order.
    pub(crate) scorers: Vec<Box<dyn Scorer>>,
    pub(crate) heads: Vec<DocId>,
    /// Scores of the parts for the current document; stale for parts whose scorer is not at it.
    pub(crate) scores: Vec<f32>,
    /// For each part, the sum of the upper bounds of all parts up to and including it.
    pub(crate) below: Vec<f32>,
    /// Place of each part of the query in the lists above.
    pub(crate) places: Vec<usize>,
    /// Number in the query of each part in the lists above; the inverse of `places`.
    pub(crate) order: Vec<usize>,
    /// Ranges of parts of the query, at least one of each of which must match.
    pub(crate) required: Vec<Range<usize>>,
    /// Place of the first essential part: only parts from here on lead to new documents.
    pub(crate) essential: usize,
    pub(crate) cancel: Option<&'c AtomicBool>,
    /// Number of documents until the cancel flag is checked again.
    pub(crate) until_poll: u32,
}

impl DocumentAtATime<'_> {
    /// Score of a document; `None` if no part matches it, or a required clause does not. Documents must
    /// ascend over all calls.
    pub(crate) fn score(&mut self, doc: DocId) -> Option<f32> {
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

    /// Whether a document matches every required clause. All parts that match it must be positioned at it.
    fn has_required(&self, doc: DocId) -> bool {
        let matches = |place: &usize| self.heads[*place] == doc;
        self.required.iter().all(|parts| self.places[parts.clone()].iter().any(matches))
    }

    /// The next document that is `wanted`, with its score; documents that score less than `least` may be
    /// skipped. `least` must not fall from call to call.
    pub(crate) fn next(&mut self, least: f32, wanted: impl Fn(DocId) -> bool) -> Option<(DocId, f32)> {
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

    /// Calls `offer` with documents and their scores, ascending. `needed` gives the score that the 8
    /// documents from a given one on have to reach; it may rise with every offer, and must never be below
    /// `least`.
    pub(crate) fn windows(
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

    /// Score of a document whose essential parts are known to sum to `partial_sum`, up to rounding; `None` if
    /// it is below `least`. Documents must ascend over all calls.
    pub(crate) fn complete(&mut self, doc: DocId, partial_sum: f32, least: f32) -> Option<f32> {
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

    /// Moves the scorer of a part to a document, unless it is past it already; returns whether the part
    /// matches.
    fn move_to(&mut self, place: usize, doc: DocId) -> bool {
        if self.heads[place] < doc {
            self.heads[place] = self.scorers[place].seek(doc);
        }
        self.heads[place] == doc
    }

    /// Sum of the scores of the parts that match a document, added in the order of the query.
    fn in_order(&self, doc: DocId) -> f32 {
        let matching = self.places.iter().filter(|place| self.heads[**place] == doc);
        matching.fold(0.0, |sum, place| sum + self.scores[*place])
    }

    /// Score of a document found by essential parts; `None` if it is below `least`.
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
