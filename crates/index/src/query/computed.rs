//! A query's documents with scores that are worked out one by one: those of `function_score` and `script_score`.

use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

/// How the score of a document comes from where it is and what a query gives it.
pub(super) trait ComputeScore: Send + 'static {
    /// Score of the document that `inner` is at, 0 or more.
    fn compute(&self, inner: &mut dyn Scorer) -> Score;

    /// Whether nobody waits for more documents. Asked before each of them where one alone may take milliseconds, as who reads
    /// the documents asks only every few thousand.
    fn is_over(&self) -> bool {
        false
    }
}

/// The documents of a scorer whose computed score is not below a least one. A score is computed when it is asked for, or when it
/// decides whether its document is one of them, and once at most.
pub(super) struct ComputedScorer<C> {
    inner: Box<dyn Scorer>,
    computation: C,
    min_score: Option<f32>,
    /// Score of the current document, once computed.
    score: Option<Score>,
    /// Whether it ended before its documents did.
    is_over: bool,
}

impl<C: ComputeScore> ComputedScorer<C> {
    /// A scorer at the first of its documents. One that is over before they are has none left: who reads it looks afterwards whether
    /// the request was to stop.
    pub(super) fn new(inner: Box<dyn Scorer>, computation: C, min_score: Option<f32>) -> Self {
        let mut scorer = Self { inner, computation, min_score, score: None, is_over: false };
        scorer.settle();
        scorer
    }

    /// Goes on to a document that reaches the least score.
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
