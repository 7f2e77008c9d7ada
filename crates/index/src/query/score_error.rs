//! Errors that occur while documents are scored, where no error can be returned: they are recorded and
//! reported when the search is done.

use std::sync::{Arc, OnceLock};

use crate::query::error::QueryError;

/// Kind of the error of a script, which is reported as the cause of another error.
pub(super) const SCRIPT: &str = "script_exception";

/// Records the first error that occurs while scores are computed.
#[derive(Debug, Clone, Default)]
pub(super) struct ScoreErrors(Arc<OnceLock<(&'static str, String)>>);

impl ScoreErrors {
    /// Records an error, unless there is one already.
    pub(super) fn note(&self, kind: &'static str, reason: impl FnOnce() -> String) {
        self.0.get_or_init(|| (kind, reason()));
    }

    /// Fails if an error has been recorded.
    ///
    /// # Errors
    /// [`QueryError::Script`] for an error of a script, [`QueryError::Score`] for any other.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        match self.0.get() {
            None => Ok(()),
            Some((kind, reason)) if *kind == SCRIPT => Err(QueryError::Script { reason: reason.clone() }),
            Some((kind, reason)) => Err(QueryError::Score { kind, reason: reason.clone() }),
        }
    }
}
