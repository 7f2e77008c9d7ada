//! What is wrong with a definition of an analyzer or a part of one.

/// A definition that cannot be used. A client error (400), worded as Elasticsearch does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct AnalysisError {
    /// Name of Elasticsearch's exception.
    pub es_type: &'static str,
    pub reason: String,
    /// The cause, as type and reason.
    pub caused_by: Option<(&'static str, String)>,
}

impl AnalysisError {
    /// An `illegal_argument_exception`.
    pub(crate) fn illegal(reason: impl Into<String>) -> Self {
        Self { es_type: "illegal_argument_exception", reason: reason.into(), caused_by: None }
    }

    /// The error with an underlying cause.
    pub(crate) fn because(mut self, es_type: &'static str, reason: impl Into<String>) -> Self {
        self.caused_by = Some((es_type, reason.into()));
        self
    }
}
