//! What can go wrong with a model or its deployment.

use std::time::Duration;

use sparrow_encoder::EncoderError;

/// An error about a model. The sentences are those that clients know.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// No model directory has this id.
    #[error("No known trained model with model_id [{id}]")]
    NotFound {
        /// The id that was asked for.
        id: String,
    },
    /// The upload of the model is not complete.
    #[error("Could not find trained model definition [{id}]")]
    Undefined {
        /// The id that was asked for.
        id: String,
    },
    /// A text came for a model that does not exist.
    #[error("Could not find trained model [{id}]")]
    NotFoundForInference {
        /// The id that was asked for.
        id: String,
    },
    /// A text came for a model that is not deployed.
    #[error(
        "Model [{id}] must be deployed to use. Please deploy with the start trained model deployment API."
    )]
    NotDeployed {
        /// The id that was asked for.
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
        /// The pipelines.
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
        /// The alias.
        alias: String,
    },
    /// An inference endpoint relies on the deployment that was to be stopped.
    #[error("Cannot stop deployment [{id}] as it {how} by inference endpoint [{endpoint}]")]
    OfEndpoint {
        /// Id of the deployment.
        id: String,
        /// Id of the endpoint.
        endpoint: String,
        /// `was created` or `is used`.
        how: &'static str,
    },
    /// An option of a deployment that cannot be.
    #[error("Validation Failed: 1: {problem};")]
    InvalidOption {
        /// What is wrong, in the words of Elasticsearch.
        problem: String,
    },
    /// A sparse model was asked for a dense vector, or the other way round.
    #[error("model [{id}] makes {made} vectors, but {wanted} vectors are needed here")]
    WrongKind {
        /// Id of the model.
        id: String,
        /// `sparse` or `dense`.
        made: &'static str,
        /// `sparse` or `dense`.
        wanted: &'static str,
    },
    /// An endpoint that makes both kinds of vectors stands where one is wanted.
    #[error(
        "inference endpoint [{id}] makes a sparse and a dense vector of each text, but one vector is needed here; name \
         [{sparse}] or [{dense}] instead"
    )]
    MakesBoth {
        /// Id of the endpoint.
        id: String,
        /// What makes its sparse vectors.
        sparse: String,
        /// What makes its dense vectors.
        dense: String,
    },
    /// A model that scores pairs stands where vectors are wanted.
    #[error(
        "model [{id}] scores how well a text answers a question and makes no vectors; it is for the task [rerank]"
    )]
    MakesScores {
        /// Id of the model.
        id: String,
    },
    /// A model of vectors was asked for scores.
    #[error("model [{id}] makes {made} vectors and cannot be used for the task [rerank]")]
    MakesNoScores {
        /// Id of the model.
        id: String,
        /// `sparse` or `dense`.
        made: &'static str,
    },
    /// The queue has no room.
    #[error("inference process queue is full. Unable to execute command")]
    QueueFull {
        /// Places of the queue.
        capacity: usize,
        /// Texts that wanted one.
        requested: usize,
    },
    /// The time allowed is over.
    #[error("timeout [{timeout}] waiting for inference result")]
    Timeout {
        /// The time, as the request wrote it.
        timeout: String,
    },
    /// The caller went away.
    #[error("task cancelled [inference was cancelled]")]
    Cancelled,
    /// The runtime or the tokenizer failed on this input.
    #[error("inference failed: {reason}")]
    Inference {
        /// What it said.
        reason: String,
    },
    /// The model's files or the runtime's library cannot be used.
    #[error("model [{id}] cannot be used: {reason}")]
    Unusable {
        /// Id of the model.
        id: String,
        /// What the encoder said.
        reason: String,
    },
}

impl ModelError {
    /// The error of a time that is over.
    pub fn timeout(allowed: Duration) -> Self {
        let milliseconds = allowed.as_millis();
        let timeout = match milliseconds % 1000 {
            0 => format!("{}s", milliseconds / 1000),
            _ => format!("{milliseconds}ms"),
        };
        Self::Timeout { timeout }
    }

    /// The error that a client reads for an error of the encoder.
    pub fn from_encoder(id: &str, error: EncoderError) -> Self {
        match error {
            EncoderError::QueueFull { capacity, requested } => Self::QueueFull { capacity, requested },
            EncoderError::Timeout { timeout_ms } => Self::timeout(Duration::from_millis(timeout_ms)),
            EncoderError::Cancelled => Self::Cancelled,
            EncoderError::Stopped => Self::NotDeployed { id: id.to_owned() },
            EncoderError::Runtime { .. } => Self::Inference { reason: error.to_string() },
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

    /// The HTTP status.
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
