//! Errors in the definition of an analyzer or one of its components.

/// Error for an invalid definition. A client error (400), with Elasticsearch's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct AnalysisError {
    /// Exception type in Elasticsearch, such as `illegal_argument_exception`.
    pub es_type: &'static str,
    pub reason: String,
    /// Underlying cause: its exception type and message.
    pub caused_by: Option<(&'static str, String)>,
}

impl AnalysisError {
    /// An `illegal_argument_exception`.
    pub(crate) fn illegal(reason: impl Into<String>) -> Self {
        Self { es_type: "illegal_argument_exception", reason: reason.into(), caused_by: None }
    }

    /// Adds an underlying cause to the error.
    pub(crate) fn because(mut self, es_type: &'static str, reason: impl Into<String>) -> Self {
        self.caused_by = Some((es_type, reason.into()));
        self
    }
}
