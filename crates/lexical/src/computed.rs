//! A query's documents with scores that are computed for each of them individually: those of `function_score`
//! and `script_score`.

use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

/// Less than the score of any document that matches, and than any minimum score.
pub const NO_MATCH: Score = -1.0;

/// Computes a document's score from its position and the score that a query gives it.
pub trait ComputeScore: Send + 'static {
    /// Score of the document that `inner` is at, 0 or more; [`NO_MATCH`] for one that does not match, or that no score is computed of.
    fn compute(&self, inner: &mut dyn Scorer) -> Score;

    /// Whether the search has been cancelled. Checked before every document where a single one may take
    /// milliseconds, since the caller checks only every few thousand.
    fn is_over(&self) -> bool {
        false
    }
}

/// The documents of a scorer whose computed score reaches a minimum. A score is computed at most once: when
/// it is asked for, or to decide whether its document qualifies.
pub struct ComputedScorer<C> {
    inner: Box<dyn Scorer>,
    computation: C,
    min_score: Option<f32>,
    /// Score of the current document, once computed.
    score: Option<Score>,
    /// Whether the scorer stopped before its documents were exhausted.
    is_over: bool,
}

impl<C: ComputeScore> ComputedScorer<C> {
    /// A scorer at its first document. A scorer that is cancelled has no more documents: callers must check
    /// afterwards whether the search was cancelled.
    pub fn new(inner: Box<dyn Scorer>, computation: C, min_score: Option<f32>) -> Self {
        let mut scorer = Self { inner, computation, min_score, score: None, is_over: false };
        scorer.settle();
        scorer
    }

    /// Advances to the first document that reaches the minimum score, from the current one on.
    fn settle(&mut self) -> DocId {
        self.score = None;
        let Some(least) = self.min_score else {
            self.is_over = self.computation.is_over();
            return self.doc();
        };
        while self.inner.doc() != TERMINATED {
            if self.computation.is_over() {
                self.is_over = true;
                break;
            }
            let score = self.computation.compute(&mut *self.inner);
            if score >= least {
                self.score = Some(score);
                break;
            }
            self.inner.advance();
        }
        self.doc()
    }
}

impl<C: ComputeScore> DocSet for ComputedScorer<C> {
    fn advance(&mut self) -> DocId {
        if self.is_over {
            return TERMINATED;
        }
        self.inner.advance();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc() < target {
            self.inner.seek(target);
            self.settle();
        }
        self.doc()
    }

    fn doc(&self) -> DocId {
        if self.is_over { TERMINATED } else { self.inner.doc() }
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }
}

impl<C: ComputeScore> Scorer for ComputedScorer<C> {
    fn score(&mut self) -> Score {
        match self.score {
            Some(known) => known,
            None => {
                let score = self.computation.compute(&mut *self.inner);
                self.score = Some(score);
                score
            }
        }
    }
}
