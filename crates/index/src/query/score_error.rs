//! Errors that occur while documents are scored, where no error can be returned: they are recorded and
//! reported when the search is done.

use std::sync::{Arc, OnceLock};

use sparrow_scripts::ScriptError;

use crate::query::error::QueryError;

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
pub(super) struct ScoreErrors(Arc<OnceLock<Noted>>);

#[derive(Debug)]
enum Noted {
    Score(&'static str, String),
    Script(Box<ScriptError>),
}

impl ScoreErrors {
    /// Records an error, unless there is one already.
    pub(super) fn note(&self, kind: &'static str, reason: impl FnOnce() -> String) {
        self.0.get_or_init(|| Noted::Score(kind, reason()));
    }

    /// As [`ScoreErrors::note`], the error of a script. One that the request has to stop for is reported by what stops it.
    pub(super) fn note_script(&self, error: ScriptError) {
        if !matches!(error, ScriptError::Stopped(_)) {
            self.0.get_or_init(|| Noted::Script(Box::new(error)));
        }
    }

    /// Whether an error has been recorded, so that what is computed further is of no use.
    pub(super) fn is_noted(&self) -> bool {
        self.0.get().is_some()
    }

    /// Fails if an error has been recorded.
    ///
    /// # Errors
    /// [`QueryError::Script`] for an error of a script, [`QueryError::Score`] for any other.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        match self.0.get() {
            None => Ok(()),
            Some(Noted::Script(error)) => Err(QueryError::Script(error.clone())),
            Some(Noted::Score(kind, reason)) => Err(QueryError::Score { kind, reason: reason.clone() }),
        }
    }
}
