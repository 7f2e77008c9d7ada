//! The best of several sums: a text in any of some fields (`multi_match`), or `dis_max` over texts.
//!
//! A document's score is that of its best clause and a share of the others'. Whoever reaches a wanted score
//! has a clause that reaches nearly that much alone, so each clause is walked with that as its least score, and
//! the others are only looked up for what it leads to.

use std::sync::atomic::AtomicBool;

use tantivy::{DocId, SegmentReader};

use super::ast::{BoolQuery, Query, QueryKind};
use super::compile::Compiler;
use super::error::QueryError;
use super::sum::{ROUNDING, RequiredMarks, Sum};
use super::walk::Walk;

/// Each clause is walked beside all others, so their number counts twice.
const MAX_SUMS: usize = 8;

/// Sums of which the best counts.
pub(super) struct BestOf {
    sums: Vec<Sum>,
    tie_breaker: f32,
}

impl Compiler<'_> {
    /// Takes a query apart that is the best of several clauses; `None` when it is another one, or bounds are
    /// not known of one of its clauses.
    pub(super) fn best_of_sums(&mut self, query: &Query) -> Result<Option<BestOf>, QueryError> {
        let (queries, tie_breaker) = match &query.kind {
            QueryKind::DisMax { queries, tie_breaker } => (queries.clone(), *tie_breaker),
            QueryKind::MultiMatch(query) => match self.fields_of(query) {
                Some(found) => found,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        if !(2..=MAX_SUMS).contains(&queries.len()) {
            return Ok(None);
        }
        let before = self.clauses();
        let mut sums = Vec::with_capacity(queries.len());
        for clause in queries {
            let alone = BoolQuery { must: vec![clause], ..BoolQuery::default() };
            let Some(sum) = self.sum(&Query::new(QueryKind::Bool(alone)).with_boost(query.boost))? else {
                self.restore_clauses(before);
                return Ok(None);
            };
            sums.push(sum);
        }
        Ok(Some(BestOf { sums, tie_breaker }))
    }
}

impl BestOf {
    /// Starts to mark the documents that match any clause.
    pub(super) fn any_marks(&self, reader: &SegmentReader) -> Result<RequiredMarks, QueryError> {
        RequiredMarks::of_any(&self.sums, reader)
    }

    /// Calls `offer` with documents of a segment and their scores, each once, in no order. What cannot reach
    /// `least` is left out; that may rise with every offer, and must not fall.
    pub(super) fn walk(
        &self,
        reader: &SegmentReader,
        cancel: Option<&AtomicBool>,
        wanted: impl Fn(DocId) -> bool,
        least: impl Fn() -> f32,
        mut offer: impl FnMut(DocId, f32),
    ) -> Result<(), QueryError> {
        // The most that a score is of its best clause's, the rounding of all sums included.
        let most = 1.0 + self.tie_breaker.max(0.0) * (self.sums.len() - 1) as f32;
        let share = (1.0 - 2.0 * ROUNDING) / most;
        let mut scores = vec![None; self.sums.len()];
        for leading in 0..self.sums.len() {
            let mut walks: Vec<Walk<'_>> =
                self.sums.iter().map(|sum| sum.walk(reader, cancel)).collect::<Result<_, _>>()?;
            while let Some((doc, score)) = walks[leading].next(least() * share, &wanted) {
                scores[leading] = Some(score);
                for other in (0..self.sums.len()).filter(|other| *other != leading) {
                    scores[other] = walks[other].score(doc);
                }
                // Found again, or found before, where another clause is the best.
                let best = |other: usize| {
                    scores[other].is_none_or(|own| own < score || (other > leading && own == score))
                };
                if (0..scores.len()).all(|other| other == leading || best(other)) {
                    offer(doc, self.combine(&scores));
                }
            }
        }
        Ok(())
    }

    fn combine(&self, scores: &[Option<f32>]) -> f32 {
        let matching = || scores.iter().copied().flatten();
        let most = matching().fold(0.0, f32::max);
        most + (matching().sum::<f32>() - most) * self.tie_breaker
    }
}
