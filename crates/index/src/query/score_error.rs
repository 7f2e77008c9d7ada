//! Scores that cannot be worked out: found while documents are scored, where nothing may fail, and reported
//! when the search is done.

use std::sync::{Arc, OnceLock};

use super::error::QueryError;

/// The kind of an error of a script, which is the cause of another one.
pub(super) const SCRIPT: &str = "script_exception";

/// The first score of a search that could not be worked out.
#[derive(Debug, Clone, Default)]
pub(super) struct ScoreErrors(Arc<OnceLock<(&'static str, String)>>);

impl ScoreErrors {
    /// Notes an error, unless there is one already.
    pub(super) fn note(&self, kind: &'static str, reason: impl FnOnce() -> String) {
        self.0.get_or_init(|| (kind, reason()));
    }

    /// # Errors
    /// [`QueryError::Score`] once one was noted.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        match self.0.get() {
            None => Ok(()),
            Some((kind, reason)) if *kind == SCRIPT => Err(QueryError::Script { reason: reason.clone() }),
            Some((kind, reason)) => Err(QueryError::Score { kind, reason: reason.clone() }),
        }
    }
}
