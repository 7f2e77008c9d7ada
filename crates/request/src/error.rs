//! The engine's errors, with the exception type and HTTP status of each.
//!
//! These are defined here and not in the HTTP layer because bulk items, task failures and `_msearch` embed errors in
//! bodies that are written here.

use serde_json::{Map, Value, json};

use crate::private_paths;
use sparrow_analysis::AnalysisError;
use sparrow_inference::ModelError;
use sparrow_ingest::{ConfigError, IngestError};
use sparrow_mapping::{DocumentError, DocumentErrorKind, MappingError};
use sparrow_runtime::work;
use sparrow_scripts::ScriptError;
use sparrow_tantivy_index::IndexError;
use sparrow_wire::BodyError;
pub use sparrow_wire::Exception;
use sparrow_write_ahead_log::{StorageError, disk_is_full};

/// Any error that can keep an operation from succeeding.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("no such index [{name}]")]
    IndexNotFound { name: String },
    #[error("index [{name}/{uuid}] already exists")]
    IndexAlreadyExists { name: String, uuid: String },
    #[error("Invalid index name [{name}], {problem}")]
    InvalidIndexName { name: String, problem: String },
    /// A write expected another version of the document; `problem` describes which.
    #[error("[{id}]: version conflict, {problem}")]
    VersionConflict { index: String, uuid: String, id: String, problem: String },
    #[error("[{id}]: document missing")]
    DocumentMissing { index: String, uuid: String, id: String },
    /// One or more problems with a request, reported together.
    #[error("{}", validation_sentence(problems))]
    Validation { problems: Vec<String> },
    #[error(transparent)]
    Document(Box<DocumentError>),
    #[error(transparent)]
    Mapping(Box<MappingError>),
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A request would take more memory than it may.
    #[error(transparent)]
    TooMuchMemory(#[from] work::TooMuch),
    /// The client disconnected, or the task was cancelled.
    #[error("task cancelled")]
    Cancelled,
    /// A queue is full.
    #[error("rejected execution: {queue} has {capacity} waiting requests")]
    Rejected { queue: &'static str, capacity: usize },
    /// An internal error that should be impossible: a bug.
    #[error("{reason}")]
    Internal { reason: String },
    /// An error whose HTTP status and exception were chosen where it was detected.
    #[error("{}", .0.exception.reason)]
    Api(Box<ApiError>),
}

/// An error as sent to clients: HTTP status, exception and its root causes.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// The outermost exception, with its chain of causes.
    pub exception: Exception,
    /// Exceptions listed as `root_cause`; if empty, the exception itself is listed.
    pub root_causes: Vec<Exception>,
}

impl EngineError {
    /// An error with the given HTTP status and exception.
    pub fn api(status: u16, exception: Exception) -> Self {
        Self::Api(Box::new(ApiError { status, exception, root_causes: Vec::new() }))
    }

    /// An `illegal_argument_exception` with status 400.
    pub fn illegal_argument(reason: impl Into<String>) -> Self {
        Self::api(400, Exception::new("illegal_argument_exception", reason))
    }

    /// A `parse_exception` with status 400.
    pub fn parse(reason: impl Into<String>) -> Self {
        Self::api(400, Exception::new("parse_exception", reason))
    }

    /// A `resource_not_found_exception` with status 404.
    pub fn resource_not_found(reason: impl Into<String>) -> Self {
        Self::api(404, Exception::new("resource_not_found_exception", reason))
    }

    /// A validation error with a single problem; status 400.
    pub fn invalid(problem: impl Into<String>) -> Self {
        Self::Validation { problems: vec![problem.into()] }
    }

    /// An internal error, reported as a bug in the server; status 500.
    pub fn internal(reason: impl Into<String>) -> Self {
        Self::Internal { reason: reason.into() }
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            Self::IndexNotFound { .. } | Self::DocumentMissing { .. } => 404,
            Self::VersionConflict { .. } => 409,
            Self::IndexAlreadyExists { .. }
            | Self::InvalidIndexName { .. }
            | Self::Validation { .. }
            | Self::Document(_)
            | Self::Mapping(_)
            | Self::Cancelled => 400,
            Self::Rejected { .. } | Self::TooMuchMemory(_) => 429,
            error if error.is_disk_full() => 429,
            Self::Storage(StorageError::Poisoned { .. })
            | Self::Index(IndexError::RolledBack { .. } | IndexError::Poisoned { .. }) => 503,
            Self::Storage(StorageError::RecordTooLarge { .. }) => 413,
            Self::Storage(StorageError::TooDeep { .. }) => 400,
            Self::Index(_) | Self::Storage(_) | Self::Internal { .. } => 500,
            Self::Api(error) => error.status,
        }
    }

    /// Whether the caller lacks a right. A blocked index has the same status, and is another matter.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Api(error) if error.exception.kind == "security_exception")
    }

    /// Whether a queue of operations has no room for now.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Rejected { .. })
    }

    /// Whether a write failed because the disk is full.
    fn is_disk_full(&self) -> bool {
        match self {
            Self::Storage(error) => disk_is_full(error),
            Self::Index(error) => disk_is_full(error),
            _ => false,
        }
    }

    /// Message for the `reason` member of the error body.
    pub fn reason(&self) -> String {
        self.exception().reason
    }

    /// Exception type for the `type` member of the error body.
    pub fn es_type(&self) -> &'static str {
        self.exception().kind
    }

    /// The outermost exception in the form shown to clients: without paths on this server. If any are removed, the
    /// full error is logged.
    pub fn exception(&self) -> Exception {
        let mut exception = self.full_exception();
        if private_paths::hide(&mut exception) {
            tracing::error!(error = %self, "an error was answered without its paths");
        }
        exception
    }

    fn full_exception(&self) -> Exception {
        let sentence = self.to_string();
        match self {
            Self::IndexNotFound { name } => Exception::new("index_not_found_exception", sentence)
                .with("resource.type", "index_or_alias")
                .with("resource.id", name.as_str())
                .with("index_uuid", "_na_")
                .with("index", name.as_str()),
            Self::IndexAlreadyExists { name, uuid } => {
                Exception::new("resource_already_exists_exception", sentence)
                    .with("index_uuid", uuid.as_str())
                    .with("index", name.as_str())
            }
            Self::InvalidIndexName { name, .. } => Exception::new("invalid_index_name_exception", sentence)
                .with("index_uuid", "_na_")
                .with("index", name.as_str()),
            Self::VersionConflict { index, uuid, .. } => {
                Exception::new("version_conflict_engine_exception", sentence)
                    .with("index_uuid", uuid.as_str())
                    .with("shard", "0")
                    .with("index", index.as_str())
            }
            Self::DocumentMissing { index, uuid, .. } => {
                Exception::new("document_missing_exception", sentence)
                    .with("index_uuid", uuid.as_str())
                    .with("shard", "0")
                    .with("index", index.as_str())
            }
            Self::Validation { .. } => Exception::new("action_request_validation_exception", sentence),
            Self::Document(error) => {
                let mut exception = Exception::new(error.es_type(), error.reason());
                exception.caused_by = chain(error.causes());
                exception
            }
            Self::Mapping(error) => {
                let mut exception = Exception::new(error.es_type(), error.reason());
                exception.caused_by = chain(&error.causes());
                exception
            }
            Self::Cancelled => Exception::new("task_cancelled_exception", sentence),
            Self::TooMuchMemory(error) => circuit_breaking(error),
            Self::Rejected { .. } => Exception::new("es_rejected_execution_exception", sentence),
            error if error.is_disk_full() => {
                Exception::new("cluster_block_exception", "no space is left where the data is stored")
            }
            Self::Storage(StorageError::Poisoned { .. }) => {
                Exception::new("cluster_block_exception", sentence)
            }
            // The reason why segments could not be written is in the log of the server, as it may name files.
            Self::Index(IndexError::RolledBack { .. } | IndexError::Poisoned { .. }) => Exception::new(
                "cluster_block_exception",
                "segments could not be written, most likely as the disk fails: what they lack is written again from the log",
            ),
            Self::Storage(StorageError::TooDeep { .. }) => {
                Exception::new("illegal_argument_exception", sentence)
            }
            Self::Storage(StorageError::RecordTooLarge { .. }) => {
                Exception::new("content_too_long_exception", sentence)
            }
            Self::Storage(_) | Self::Index(_) => Exception::new("i_o_exception", sentence),
            Self::Internal { .. } => Exception::new("exception", sentence),
            Self::Api(error) => error.exception.clone(),
        }
    }

    /// The exception as JSON, `{type, reason, …}`, as in bulk items and failures.
    pub fn to_json(&self) -> Value {
        self.exception().to_json()
    }

    /// The complete JSON body of an error response.
    pub fn body(&self) -> Value {
        let exception = self.exception();
        let roots: Vec<Value> = match self {
            Self::Api(error) if !error.root_causes.is_empty() => {
                error.root_causes.iter().map(|root| Value::Object(root.head())).collect()
            }
            Self::Mapping(error) => {
                let (kind, reason) = error.root_cause();
                vec![Value::Object(Exception::new(kind, reason).head())]
            }
            _ => vec![Value::Object(exception.head())],
        };
        let mut object = Map::new();
        object.insert("root_cause".into(), Value::Array(roots));
        if let Value::Object(members) = exception.to_json() {
            object.extend(members);
        }
        json!({"error": object, "status": self.status()})
    }
}

/// Adds advice to an error that keeps the server from starting: what to do with the file.
pub fn start_refusal(error: EngineError) -> EngineError {
    let advice = match &error {
        EngineError::Storage(StorageError::Corrupt { .. }) => {
            "Nothing was changed. Put the file back from a backup, or move it away to start without what it holds."
        }
        EngineError::Storage(StorageError::NewerFormat { .. }) => {
            "Nothing was changed. Start the version that wrote it, or a newer one."
        }
        _ => return error,
    };
    EngineError::internal(format!("{error}. {advice}"))
}

/// The exception for an exceeded memory limit.
pub fn circuit_breaking(error: &work::TooMuch) -> Exception {
    // A sentence more than Elasticsearch's: what can be done.
    let advice = match error.limit_of {
        work::PARENT => "send the request again later, or raise [indices.breaker.total.limit]",
        _ => "ask for less at once, or raise [indices.breaker.request.limit]",
    };
    Exception::new("circuit_breaking_exception", format!("{error}; {advice}"))
        .with("bytes_wanted", error.wanted)
        .with("bytes_limit", error.limit)
        // What all take together is over when the other requests are.
        .with("durability", if error.limit_of == work::PARENT { "TRANSIENT" } else { "PERMANENT" })
}

/// Builds a chain of causes, given outermost first, each caused by the next.
fn chain(causes: &[(&'static str, String)]) -> Option<Box<Exception>> {
    causes.iter().rev().fold(None, |inner, (kind, reason)| {
        let mut outer = Exception::new(kind, reason.as_str());
        outer.caused_by = inner;
        Some(Box::new(outer))
    })
}

impl From<BodyError> for EngineError {
    fn from(error: BodyError) -> Self {
        let exception = error.exception();
        let root_causes = vec![root(&exception).clone()];
        Self::Api(Box::new(ApiError { status: 400, exception, root_causes }))
    }
}

/// The exception to be listed as root cause: skips wrappers around a more informative cause.
pub fn root(exception: &Exception) -> &Exception {
    match &exception.caused_by {
        Some(cause) if is_own(exception) && is_own(cause) => root(cause),
        Some(cause)
            if exception.kind == "x_content_parse_exception"
                && (cause.kind == exception.kind || is_own(cause)) =>
        {
            root(cause)
        }
        _ => exception,
    }
}

/// Whether the exception is one of Elasticsearch's own types, which are more informative than wrappers around them.
pub fn is_own(exception: &Exception) -> bool {
    matches!(
        exception.kind,
        "parsing_exception"
            | "query_shard_exception"
            | "parse_exception"
            | "status_exception"
            | "task_cancelled_exception"
            | "search_context_missing_exception"
    )
}

impl From<work::Stopped> for EngineError {
    fn from(stopped: work::Stopped) -> Self {
        match stopped {
            work::Stopped::Cancelled => Self::Cancelled,
            work::Stopped::Exceeded(limit) => limit.into(),
        }
    }
}

impl From<work::Exceeded> for EngineError {
    fn from(exceeded: work::Exceeded) -> Self {
        match exceeded {
            work::Exceeded::Memory(limit) => Self::TooMuchMemory(limit),
            work::Exceeded::Effort(limit) => {
                Self::api(400, Exception::new("too_many_nested_clauses", limit.to_string()))
            }
        }
    }
}

impl From<DocumentError> for EngineError {
    fn from(error: DocumentError) -> Self {
        match error.kind() {
            DocumentErrorKind::Stopped(stopped) => stopped.clone().into(),
            _ => Self::Document(Box::new(error)),
        }
    }
}

impl From<MappingError> for EngineError {
    fn from(error: MappingError) -> Self {
        match error {
            MappingError::Stopped(stopped) => stopped.into(),
            error => Self::Mapping(Box::new(error)),
        }
    }
}

impl From<ModelError> for EngineError {
    fn from(error: ModelError) -> Self {
        Self::api(error.status(), Exception::new(error.es_type(), error.to_string()))
    }
}

impl From<ScriptError> for EngineError {
    fn from(error: ScriptError) -> Self {
        match error {
            ScriptError::Stopped(stopped) => stopped.into(),
            other => Self::api(400, other.exception()),
        }
    }
}

impl From<IngestError> for EngineError {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Storage(error) => Self::Storage(error),
            IngestError::Config(ConfigError::Stopped(stopped)) => stopped.into(),
            IngestError::NotAnObject { .. } => Self::internal(error.to_string()),
            other => Self::api(other.status(), other.exception()),
        }
    }
}

impl From<AnalysisError> for EngineError {
    fn from(error: AnalysisError) -> Self {
        if let Some(stopped) = error.stopped {
            return (*stopped).into();
        }
        let mut exception = Exception::new(error.es_type, error.reason);
        if let Some((kind, reason)) = error.caused_by {
            exception = exception.because(Exception::new(kind, reason));
        }
        Self::api(400, exception)
    }
}

/// Message for a list of problems: `Validation Failed: 1: …;2: …;`
fn validation_sentence(problems: &[String]) -> String {
    let list: String =
        problems.iter().enumerate().map(|(number, problem)| format!("{}: {problem};", number + 1)).collect();
    format!("Validation Failed: {list}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_documented_shape() {
        let error = EngineError::IndexNotFound { name: "missing".into() };
        assert_eq!(
            error.body(),
            json!({"error": {
                "root_cause": [{"type": "index_not_found_exception", "reason": "no such index [missing]",
                    "resource.type": "index_or_alias", "resource.id": "missing", "index_uuid": "_na_", "index": "missing"}],
                "type": "index_not_found_exception", "reason": "no such index [missing]",
                "resource.type": "index_or_alias", "resource.id": "missing", "index_uuid": "_na_", "index": "missing"},
                "status": 404})
        );
        let error = EngineError::Validation { problems: vec!["a is missing".into(), "b is wrong".into()] };
        assert_eq!(error.reason(), "Validation Failed: 1: a is missing;2: b is wrong;");
        assert_eq!(error.status(), 400);
    }
}
