//! Reasons why documents cannot be aggregated, with Elasticsearch's messages.

use sparrow_runtime::work::Stopped;
use sparrow_tantivy_index::query::QueryError;

/// Error of an aggregation, with the message that the client sees.
#[derive(Debug, thiserror::Error)]
pub enum AggregationError {
    /// A filter's query failed, the request was stopped, or the index could not be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Columns could not be read.
    #[error("columns cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// The request does not fit the fields it names.
    #[error("{0}")]
    IllegalArgument(String),
    /// A value of the request is not a number, as it would have to be.
    #[error("For input string: \"{0}\"")]
    NumberFormat(String),
    /// A date of the request that cannot be parsed.
    #[error("{0}")]
    Parse(String),
    /// Results that cannot be combined.
    #[error("{0}")]
    Execution(String),
    /// A `buckets_path` or order path that leads to no result.
    #[error("{0}")]
    InvalidPath(String),
    /// The response would have more buckets than allowed.
    #[error(
        "Trying to create too many buckets. Must be less than or equal to: [{limit}] but this number of buckets was \
         exceeded. This limit can be set by changing the [search.max_buckets] cluster level setting."
    )]
    TooManyBuckets { limit: usize },
}

impl From<Stopped> for AggregationError {
    fn from(stopped: Stopped) -> Self {
        AggregationError::Query(stopped.into())
    }
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
        }
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            AggregationError::Query(error) => error.status(),
            AggregationError::Io(_) => 500,
            _ => 400,
        }
    }
}
