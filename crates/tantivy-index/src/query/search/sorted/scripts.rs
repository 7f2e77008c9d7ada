//! Numbers to sort by that a script computes.

use std::cell::RefCell;

use sparrow_runtime::work;
use tantivy::{DocId, SegmentReader};

use crate::query::scripts::{DocumentScript, SegmentScript};
use sparrow_scoring::score_error::ScoreErrors;

/// A script that computes the values of documents.
pub(super) struct ScriptReader {
    running: RefCell<SegmentScript>,
    needs_score: bool,
    errors: ScoreErrors,
}

impl ScriptReader {
    pub(super) fn new(script: &DocumentScript, reader: &SegmentReader, errors: ScoreErrors) -> Self {
        Self { running: script.open(reader).into(), needs_score: script.needs_score(), errors }
    }

    /// The number that the script computes for a document; 0 after an error.
    pub(super) fn number(&self, doc: DocId, score: f32) -> f64 {
        if self.errors.is_noted() || work::is_stopped() {
            return 0.0;
        }
        let score = self.needs_score.then(|| f64::from(score));
        let value = self.running.borrow_mut().run(doc, score);
        let number = value.map(|value| value.as_f64().filter(|number| !number.is_nan()));
        self.errors.value(number, "a number").unwrap_or(0.0)
    }
}
