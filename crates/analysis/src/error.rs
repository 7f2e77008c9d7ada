//! Errors in the definition of an analyzer or one of its components.

use sparrow_runtime::work::Stopped;

/// Error for an invalid definition. A client error (400), with Elasticsearch's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct AnalysisError {
    /// Exception type in Elasticsearch, such as `illegal_argument_exception`.
    pub es_type: &'static str,
    pub reason: String,
    /// Underlying cause: its exception type and message.
    pub caused_by: Option<(&'static str, String)>,
    /// Why the request had to stop while the definition was read, if that is the error.
    pub stopped: Option<Box<Stopped>>,
}

impl AnalysisError {
    /// An `illegal_argument_exception`.
    pub(crate) fn illegal(reason: impl Into<String>) -> Self {
        Self { es_type: "illegal_argument_exception", reason: reason.into(), caused_by: None, stopped: None }
    }

    /// Adds an underlying cause to the error.
    pub(crate) fn because(mut self, es_type: &'static str, reason: impl Into<String>) -> Self {
        self.caused_by = Some((es_type, reason.into()));
        self
    }
}

impl From<Stopped> for AnalysisError {
    fn from(stopped: Stopped) -> Self {
        Self {
            stopped: Some(Box::new(stopped)),
            ..Self::illegal("the request was stopped while analyzers were built")
        }
    }
}
