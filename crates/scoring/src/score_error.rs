//! Errors that occur while documents are scored, where no error can be returned: they are recorded and
//! reported when the search is done.

use std::sync::{Arc, OnceLock};

use sparrow_scripts::ScriptError;
use tantivy::DocId;

use crate::error::QueryError;

impl From<ScriptError> for QueryError {
    fn from(error: ScriptError) -> Self {
        match error {
            ScriptError::Stopped(stopped) => stopped.into(),
            other => Self::Script(Box::new(other)),
        }
    }
}

/// Records the first error that occurs while scores are computed.
#[derive(Debug, Clone, Default)]
pub struct ScoreErrors(Arc<OnceLock<Noted>>);

#[derive(Debug)]
enum Noted {
    Score(&'static str, String),
    Script(Box<ScriptError>),
}

impl ScoreErrors {
    /// Records an error, unless there is one already.
    pub fn note(&self, kind: &'static str, reason: impl FnOnce() -> String) {
        self.0.get_or_init(|| Noted::Score(kind, reason()));
    }

    /// As [`ScoreErrors::note`], the error of a script. One that the request has to stop for is reported by what stops it.
    fn note_script(&self, error: ScriptError) {
        if !matches!(error, ScriptError::Stopped(_)) {
            self.0.get_or_init(|| Noted::Script(Box::new(error)));
        }
    }

    /// The value that a script gave; `None` for an error, which is recorded: its own, or that it gave nothing of the kind that is
    /// `wanted`.
    pub fn value<T>(&self, given: Result<Option<T>, ScriptError>, wanted: &str) -> Option<T> {
        match given {
            Ok(None) => self.note("class_cast_exception", || format!("the script must return {wanted}")),
            Ok(value) => return value,
            Err(error) => self.note_script(error),
        }
        None
    }

    /// The score that a script gave to a document; `None` for an error, which is recorded.
    pub fn score(&self, given: Result<Option<f64>, ScriptError>, doc: DocId) -> Option<f64> {
        let score = self.value(given, "a number")?;
        if score >= 0.0 {
            return Some(score);
        }
        self.note("illegal_argument_exception", || {
            format!(
                "script_score script returned an invalid score [{:?}] for doc [{doc}]. Must be a non-negative score!",
                score as f32
            )
        });
        None
    }

    /// Whether an error has been recorded, so that what is computed further is of no use.
    pub fn is_noted(&self) -> bool {
        self.0.get().is_some()
    }

    /// Fails if an error has been recorded.
    ///
    /// # Errors
    /// [`QueryError::Script`] for an error of a script, [`QueryError::Score`] for any other.
    pub fn check(&self) -> Result<(), QueryError> {
        match self.0.get() {
            None => Ok(()),
            Some(Noted::Script(error)) => Err(QueryError::Script(error.clone())),
            Some(Noted::Score(kind, reason)) => Err(QueryError::Score { kind, reason: reason.clone() }),
        }
    }
}
