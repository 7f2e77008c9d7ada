//! Why documents cannot be aggregated, with the words Elasticsearch uses.

use sparrow_index::query::QueryError;

/// Error of an aggregation.
#[derive(Debug, thiserror::Error)]
pub enum AggregationError {
    /// A query of a filter, cancellation, or the index itself.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Columns could not be read.
    #[error("columns cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// What was asked does not fit the fields.
    #[error("{0}")]
    IllegalArgument(String),
    /// A value that is no number.
    #[error("For input string: \"{0}\"")]
    NumberFormat(String),
    /// A date that cannot be read.
    #[error("{0}")]
    Parse(String),
    /// Results that do not fit together.
    #[error("{0}")]
    Execution(String),
    /// A path that leads nowhere.
    #[error("{0}")]
    InvalidPath(String),
    /// More buckets than a response may have.
    #[error(
        "Trying to create too many buckets. Must be less than or equal to: [{limit}] but this number of buckets was \
         exceeded. This limit can be set by changing the [search.max_buckets] cluster level setting."
    )]
    TooManyBuckets { limit: usize },
    /// More memory than the request may take.
    #[error(transparent)]
    TooMuchMemory(#[from] sparrow_types::work::TooMuch),
}

impl AggregationError {
    /// Type of the error, as Elasticsearch names it.
    pub fn es_type(&self) -> &'static str {
        match self {
            AggregationError::Query(error) => error.es_type(),
            AggregationError::Io(_) => "i_o_exception",
            AggregationError::IllegalArgument(_) => "illegal_argument_exception",
            AggregationError::NumberFormat(_) => "number_format_exception",
            AggregationError::Parse(_) => "parse_exception",
            AggregationError::Execution(_) => "aggregation_execution_exception",
            AggregationError::InvalidPath(_) => "invalid_aggregation_path_exception",
            AggregationError::TooManyBuckets { .. } => "too_many_buckets_exception",
            AggregationError::TooMuchMemory(_) => "circuit_breaking_exception",
        }
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            AggregationError::Query(error) => error.status(),
            AggregationError::Io(_) => 500,
            AggregationError::TooMuchMemory(_) => 429,
            _ => 400,
        }
    }
}
