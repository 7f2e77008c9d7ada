//! What can go wrong with a model or its deployment.

use std::time::Duration;

use sparrow_encoder::EncoderError;

/// An error about a model. Its messages are those of Elasticsearch, which clients know.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// No model directory has this id.
    #[error("No known trained model with model_id [{id}]")]
    NotFound {
        /// Id of the model, from the request or from its endpoint.
        id: String,
    },
    /// The upload of the model is not complete.
    #[error("Could not find trained model definition [{id}]")]
    Undefined {
        /// Model id given in the request.
        id: String,
    },
    /// A text came for a model that does not exist.
    #[error("Could not find trained model [{id}]{instead}")]
    NotFoundForInference {
        /// Model id given in the request.
        id: String,
        /// End of the message, which says what there is; empty if nothing can be said.
        instead: String,
    },
    /// A text came for a model that is not deployed.
    #[error(
        "Model [{id}] must be deployed to use. Please deploy with the start trained model deployment API."
    )]
    NotDeployed {
        /// Model id given in the request.
        id: String,
    },
    /// A deployment of this id runs already.
    #[error("Cannot start deployment [{id}] because it has already been started")]
    AlreadyStarted {
        /// Id of the deployment.
        id: String,
    },
    /// A pipeline uses the deployment that was to be stopped.
    #[error(
        "Cannot stop deployment [{id}] as it is referenced by ingest processors; use force to stop the deployment"
    )]
    InUse {
        /// Id of the deployment.
        id: String,
        /// Ids of the pipelines that use the deployment.
        pipelines: Vec<String>,
    },
    /// A pipeline uses an alias of the model whose deployment was to be stopped.
    #[error(
        "Cannot stop deployment [{id}] as it has a model_alias [{alias}] that is still referenced by ingest processors; \
         use force to stop the deployment"
    )]
    AliasInUse {
        /// Id of the deployment.
        id: String,
        /// Name of the alias that a pipeline uses.
        alias: String,
    },
    /// An inference endpoint relies on the deployment that was to be stopped.
    #[error("Cannot stop deployment [{id}] as it {how} by inference endpoint [{endpoint}]")]
    OfEndpoint {
        /// Id of the deployment.
        id: String,
        /// Id of the endpoint.
        endpoint: String,
        /// How the endpoint depends on the deployment, as a phrase for the message: `was created` or `is used`.
        how: &'static str,
    },
    /// A deployment option with an invalid value.
    #[error("Validation Failed: 1: {problem};")]
    InvalidOption {
        /// Description of the problem, in Elasticsearch's words.
        problem: String,
    },
    /// A sparse model was asked for a dense vector, or the other way round.
    #[error("model [{id}] makes {made} vectors, but {wanted} vectors are needed here")]
    WrongKind {
        /// Id of the model.
        id: String,
        /// Kind of vectors that the model makes: `sparse` or `dense`.
        made: &'static str,
        /// Kind of vectors that are needed: `sparse` or `dense`.
        wanted: &'static str,
    },
    /// An endpoint that makes both kinds of vectors was named where a single kind is needed.
    #[error(
        "inference endpoint [{id}] makes a sparse and a dense vector of each text, but one vector is needed here; name \
         [{sparse}] or [{dense}] instead"
    )]
    MakesBoth {
        /// Id of the endpoint.
        id: String,
        /// Inference id to use for sparse vectors alone.
        sparse: String,
        /// Inference id to use for dense vectors alone.
        dense: String,
    },
    /// A reranking model, which scores pairs of texts, was named where vectors are needed.
    #[error(
        "model [{id}] scores how well a text answers a question and makes no vectors; it is for the task [rerank]"
    )]
    MakesScores {
        /// Id of the model.
        id: String,
    },
    /// A model that makes vectors was asked for reranking scores.
    #[error("model [{id}] makes {made} vectors and cannot be used for the task [rerank]")]
    MakesNoScores {
        /// Id of the model.
        id: String,
        /// Kind of vectors that the model makes: `sparse` or `dense`.
        made: &'static str,
    },
    /// The inference queue has no room for the texts.
    #[error("inference process queue is full. Unable to execute command")]
    QueueFull {
        /// Capacity of the queue, in texts.
        capacity: usize,
        /// Number of texts that were to be queued.
        requested: usize,
    },
    /// The inference did not finish within the allowed time.
    #[error("timeout [{timeout}] waiting for inference result")]
    Timeout {
        /// The allowed time, formatted as `10s` or `1500ms`.
        timeout: String,
    },
    /// The caller disconnected or cancelled the task.
    #[error("task cancelled [inference was cancelled]")]
    Cancelled,
    /// The runtime or the tokenizer failed on this input.
    #[error("inference failed: {reason}")]
    Inference {
        /// Error message of the runtime or tokenizer.
        reason: String,
    },
    /// The model's files or the runtime's library cannot be used.
    #[error("model [{id}] cannot be used: {reason}")]
    Unusable {
        /// Id of the model.
        id: String,
        /// Error message of the encoder.
        reason: String,
    },
}

impl ModelError {
    /// The error for an inference that did not finish within `allowed`.
    pub fn timeout(allowed: Duration) -> Self {
        let milliseconds = allowed.as_millis();
        let timeout = match milliseconds % 1000 {
            0 => format!("{}s", milliseconds / 1000),
            _ => format!("{milliseconds}ms"),
        };
        Self::Timeout { timeout }
    }

    /// Converts an error of the encoder into the one that clients see.
    pub fn from_encoder(id: &str, error: EncoderError) -> Self {
        match error {
            EncoderError::QueueFull { capacity, requested } => Self::QueueFull { capacity, requested },
            EncoderError::Timeout { timeout_ms } => Self::timeout(Duration::from_millis(timeout_ms)),
            EncoderError::Cancelled => Self::Cancelled,
            EncoderError::Stopped => Self::NotDeployed { id: id.to_owned() },
            EncoderError::Runtime { .. } => Self::Inference { reason: format!("model [{id}]: {error}") },
            EncoderError::InvalidOption { .. } => Self::InvalidOption { problem: error.to_string() },
            EncoderError::RuntimeUnavailable { .. }
            | EncoderError::ModelNotReadable { .. }
            | EncoderError::Unsupported { .. } => {
                Self::Unusable { id: id.to_owned(), reason: error.to_string() }
            }
        }
    }

    /// The `type` of the error body.
    pub fn es_type(&self) -> &'static str {
        match self {
            Self::NotFound { .. } | Self::NotFoundForInference { .. } | Self::Undefined { .. } => {
                "resource_not_found_exception"
            }
            Self::NotDeployed { .. }
            | Self::AlreadyStarted { .. }
            | Self::InUse { .. }
            | Self::AliasInUse { .. }
            | Self::OfEndpoint { .. }
            | Self::Timeout { .. }
            | Self::Inference { .. }
            | Self::Unusable { .. } => "status_exception",
            Self::InvalidOption { .. } => "action_request_validation_exception",
            Self::WrongKind { .. }
            | Self::MakesBoth { .. }
            | Self::MakesScores { .. }
            | Self::MakesNoScores { .. } => "illegal_argument_exception",
            Self::QueueFull { .. } => "es_rejected_execution_exception",
            Self::Cancelled => "task_cancelled_exception",
        }
    }

    /// HTTP status code of the response.
    pub fn status(&self) -> u16 {
        match self {
            Self::NotFound { .. } | Self::NotFoundForInference { .. } | Self::Undefined { .. } => 404,
            Self::NotDeployed { .. }
            | Self::AlreadyStarted { .. }
            | Self::InUse { .. }
            | Self::AliasInUse { .. }
            | Self::OfEndpoint { .. } => 409,
            Self::InvalidOption { .. }
            | Self::WrongKind { .. }
            | Self::MakesBoth { .. }
            | Self::MakesScores { .. }
            | Self::MakesNoScores { .. }
            | Self::Cancelled => 400,
            Self::QueueFull { .. } => 429,
            Self::Timeout { .. } => 408,
            Self::Inference { .. } | Self::Unusable { .. } => 500,
        }
    }
}
