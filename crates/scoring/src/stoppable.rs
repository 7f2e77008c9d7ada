//! Loops and clauses that end soon after their request is to stop, where a single document may take many steps.

use std::cell::Cell;

use sparrow_runtime::work;
use tantivy::query::{Explanation, Occur, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use crate::error;

/// Steps of a thread between two looks at whether its request is to stop: some tens of microseconds.
const INTERVAL: u32 = 4096;

thread_local! {
    /// Steps since the last look.
    static STEPS: Cell<u32> = const { Cell::new(0) };
}

/// Counts steps of this thread, and tells whether its request is to stop. Once it says so, it goes on saying so.
#[inline]
pub fn stops_after(steps: usize) -> bool {
    STEPS.with(|counted| {
        let steps = counted.get().saturating_add(u32::try_from(steps).unwrap_or(u32::MAX));
        let stops = steps >= INTERVAL && work::is_stopped();
        counted.set(if steps >= INTERVAL && !stops { 0 } else { steps });
        stops
    })
}

/// Whether a loop or a clause of this thread ended early because its request is to stop: what it says of documents since then is not
/// true. Cheap enough for every document.
#[inline]
pub fn has_stopped() -> bool {
    STEPS.get() >= INTERVAL && work::is_stopped()
}

/// Clauses from which on opening all of them, or moving them over the documents between two looks at the cancel flag, takes too long.
const MANY_CLAUSES: usize = 128;

/// The clauses of a query, whose documents end when the request of the thread is to stop if the clauses are so many that moving all of
/// them over one document takes milliseconds.
pub fn stoppable(clauses: Vec<(Occur, Box<dyn Weight>)>) -> Vec<(Occur, Box<dyn Weight>)> {
    if clauses.len() <= MANY_CLAUSES {
        return clauses;
    }
    clauses.into_iter().map(|(occur, clause)| (occur, Box::new(StoppableWeight(clause)) as _)).collect()
}

struct StoppableWeight(Box<dyn Weight>);

impl Weight for StoppableWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        work::check().map_err(|_| error::stopped())?;
        Ok(Box::new(StoppableScorer { inner: self.0.scorer(reader, boost)?, stopped: false }))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(reader, doc)
    }

    fn count(&self, reader: &SegmentReader) -> tantivy::Result<u32> {
        self.0.count(reader)
    }
}

struct StoppableScorer {
    inner: Box<dyn Scorer>,
    stopped: bool,
}

impl StoppableScorer {
    fn unless_stopped(&mut self, go: impl FnOnce(&mut dyn Scorer) -> DocId) -> DocId {
        self.stopped |= stops_after(1);
        if self.stopped { TERMINATED } else { go(&mut *self.inner) }
    }
}

impl DocSet for StoppableScorer {
    fn advance(&mut self) -> DocId {
        self.unless_stopped(|inner| inner.advance())
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.unless_stopped(|inner| inner.seek(target))
    }

    fn doc(&self) -> DocId {
        if self.stopped { TERMINATED } else { self.inner.doc() }
    }

    fn size_hint(&self) -> u32 {
        self.inner.size_hint()
    }
}

impl Scorer for StoppableScorer {
    fn score(&mut self) -> Score {
        self.inner.score()
    }
}
