//! A query's documents with scores that are worked out one by one: those of `function_score` and `script_score`.

use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

/// How the score of a document comes from where it is and what a query gives it.
pub(super) trait ComputeScore: Send + 'static {
    /// Score of the document that `inner` is at, 0 or more.
    fn compute(&self, inner: &mut dyn Scorer) -> Score;
}

/// The documents of a scorer whose computed score is not below a least one. A score is computed when it is asked for, or when it
/// decides whether its document is one of them, and once at most.
pub(super) struct ComputedScorer<C> {
    inner: Box<dyn Scorer>,
    computation: C,
    min_score: Option<f32>,
    /// Score of the current document, once computed.
    score: Option<Score>,
}

impl<C: ComputeScore> ComputedScorer<C> {
    /// A scorer at the first of its documents.
    pub(super) fn new(inner: Box<dyn Scorer>, computation: C, min_score: Option<f32>) -> Self {
        let mut scorer = Self { inner, computation, min_score, score: None };
        scorer.settle();
        scorer
    }

    /// Goes on to a document that reaches the least score.
    fn settle(&mut self) -> DocId {
        self.score = None;
        let Some(least) = self.min_score else { return self.inner.doc() };
        while self.inner.doc() != TERMINATED {
            let score = self.computation.compute(&mut *self.inner);
            if score >= least {
                self.score = Some(score);
                break;
            }
            self.inner.advance();
        }
        self.inner.doc()
    }
}

impl<C: ComputeScore> DocSet for ComputedScorer<C> {
    fn advance(&mut self) -> DocId {
        self.inner.advance();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.inner.doc() < target {
            self.inner.seek(target);
            self.settle();
        }
        self.inner.doc()
    }

    fn doc(&self) -> DocId {
        self.inner.doc()
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
