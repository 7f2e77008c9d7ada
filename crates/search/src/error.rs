//! Errors of search requests, and Elasticsearch's error bodies for them.

use serde_json::json;
use sparrow_aggregations::AggregationError;
use sparrow_tantivy_index::query::QueryError;

use sparrow_models::ModelError;
use sparrow_request::error::{ApiError, EngineError, Exception, circuit_breaking, is_own, root};
use sparrow_wire::BodyError;
use sparrow_wire::json::{JsonError, Location};

/// A search request that cannot be answered.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The body is not a valid search request.
    #[error(transparent)]
    Body(#[from] BodyError),
    /// The request asks for more hits than an index returns.
    #[error("from + size is {asked}, over the limit of {limit}")]
    WindowTooLarge { limit: usize, asked: usize, shard: Box<Shard> },
    /// The request asks for larger pages of a scroll than an index returns.
    #[error("size is {asked}, over the limit of {limit}")]
    BatchTooLarge { limit: usize, asked: usize, shard: Box<Shard> },
    /// An index cannot run the query, for example because of a field's type.
    #[error("index {}: {source}", shard.index)]
    Query { shard: Box<Shard>, source: QueryError },
    /// An index cannot compute an aggregation, for example because of a field's type.
    #[error("index {}: {source}", shard.index)]
    Aggregation { shard: Box<Shard>, source: AggregationError },
    /// The aggregation results of several indices cannot be combined.
    #[error("{source}")]
    Reduce { source: AggregationError },
    /// An index refuses a part of the request other than the query; `kind` is the exception's type.
    #[error("index {}: {reason}", shard.index)]
    OfShard { shard: Box<Shard>, kind: &'static str, reason: String },
    /// A value in `search_after` is not valid for its sort field.
    #[error("value of search_after for {field}: {cause}")]
    AfterValue { field: String, cause: Box<SearchError> },
    /// A scroll or a point in time is not open.
    #[error("no search context {id}")]
    ContextMissing { id: u64 },
    /// Lists of a compound retriever failed: the kind of each such retriever, and its error.
    #[error("[{kind}] {} of its retrievers failed", failures.len())]
    Retrievers { kind: &'static str, failures: Vec<(&'static str, SearchError)> },
    /// The model for reranking hits failed.
    #[error(transparent)]
    Rerank(#[from] ModelError),
    /// The field was filled by another model than the one the query names.
    #[error("field {field} of index {} holds vectors of another model than {model}", shard.index)]
    ModelMismatch {
        shard: Box<Shard>,
        field: String,
        model: String,
        stored: String,
        /// Whether the field is of type `semantic_text`, whose model can be changed in place.
        changeable: bool,
    },
}

/// The index that an error belongs to; it has a single shard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shard {
    /// Name of the index.
    pub index: String,
    /// Uuid of the index.
    pub uuid: String,
    /// Id of this node.
    pub node: String,
}

impl SearchError {
    /// Shorthand for [`BodyError::Parsing`].
    pub fn parsing(at: Location, reason: impl Into<String>) -> Self {
        BodyError::parsing(at, reason).into()
    }

    /// Shorthand for [`BodyError::IllegalArgument`].
    pub fn illegal(reason: impl Into<String>) -> Self {
        BodyError::illegal(reason).into()
    }

    /// HTTP status of the error's response.
    pub fn status(&self) -> u16 {
        match self {
            SearchError::Query { source, .. } => source.status(),
            SearchError::ContextMissing { .. } => 404,
            SearchError::Rerank(error) => error.status(),
            SearchError::Aggregation { source, .. } | SearchError::Reduce { source } => source.status(),
            SearchError::Retrievers { failures, .. } => {
                failures.iter().map(|failure| failure.1.status()).max().unwrap_or(400)
            }
            _ => 400,
        }
    }

    /// The exception itself, not wrapped in the list of failed shards.
    pub fn exception(&self) -> Exception {
        match self {
            SearchError::Body(error) => error.exception(),
            SearchError::WindowTooLarge { limit, asked, .. } => Exception::new(
                "illegal_argument_exception",
                format!(
                    "Result window is too large, from + size must be less than or equal to: \
                     [{limit}] but was [{asked}]. See the scroll api for a more efficient way to \
                     request large data sets. This limit can be set by changing the \
                     [index.max_result_window] index level setting."
                ),
            ),
            SearchError::BatchTooLarge { limit, asked, .. } => Exception::new(
                "illegal_argument_exception",
                format!(
                    "Batch size is too large, size must be less than or equal to: [{limit}] but was [{asked}]. \
                     Scroll batch sizes cost as much memory as result windows so they are controlled by the \
                     [index.max_result_window] index level setting."
                ),
            ),
            SearchError::Query { source: QueryError::TooMuchMemory(error), .. } => circuit_breaking(error),
            SearchError::Query { source: QueryError::Script(error), .. } => error.exception(),
            SearchError::Query { shard, source } => {
                let exception = Exception::new(source.es_type(), source.reason());
                let exception = match source.es_type() {
                    "query_shard_exception" => of(exception, shard),
                    _ => exception,
                };
                match source.caused_by() {
                    Some((kind, reason)) => exception.because(Exception::new(kind, reason)),
                    None => exception,
                }
            }
            SearchError::OfShard { shard, kind, reason } => {
                let exception = Exception::new(kind, reason);
                if *kind == "query_shard_exception" { of(exception, shard) } else { exception }
            }
            SearchError::AfterValue { field, cause } => Exception::new(
                "illegal_argument_exception",
                format!("Failed to parse search_after value for field [{field}]."),
            )
            .because(cause.exception()),
            SearchError::Aggregation { source, .. } | SearchError::Reduce { source } => {
                aggregation_exception(source)
            }
            SearchError::ContextMissing { id } => Exception::new(
                "search_context_missing_exception",
                format!("No search context found for id [{id}]"),
            ),
            SearchError::Rerank(error) => Exception::new(error.es_type(), error.to_string()),
            SearchError::Retrievers { kind, failures } => {
                let kinds: Vec<&str> = failures.iter().map(|failure| failure.0).collect();
                let suppressed: Vec<_> =
                    failures.iter().map(|failure| failure.1.phase_exception().to_json()).collect();
                Exception::new(
                    "status_exception",
                    format!(
                        "[{kind}] search failed - retrievers '[{}]' returned errors. All failures are attached \
                         as suppressed exceptions.",
                        kinds.join(", ")
                    ),
                )
                .with("suppressed", suppressed)
            }
            SearchError::ModelMismatch { shard, field, model, stored, changeable } => {
                let remedy = match changeable {
                    true => format!(
                        "search with an endpoint of model [{stored}] ([inference_id] of the query, [search_inference_id] of the \
                         mapping), or give the field the other model with [POST /{}/_ext/model/_change]",
                        shard.index
                    ),
                    false => format!(
                        "search with model [{stored}], or fill a field with the other model; [_ext/model/_change] does so in place \
                         for [semantic_text] fields only"
                    ),
                };
                let reason = format!(
                    "failed to create query: field [{field}] holds the output of model [{stored}] and cannot be searched with model \
                     [{model}]: their vocabularies or weights differ; {remedy}"
                );
                of(Exception::new("query_shard_exception", reason), shard)
            }
        }
    }

    fn shard(&self) -> Option<&Shard> {
        match self {
            SearchError::WindowTooLarge { shard, .. }
            | SearchError::BatchTooLarge { shard, .. }
            | SearchError::Query { shard, .. }
            | SearchError::Aggregation { shard, .. }
            | SearchError::OfShard { shard, .. }
            | SearchError::ModelMismatch { shard, .. } => Some(shard),
            _ => None,
        }
    }

    /// The error as an entry of `failed_shards` or `_shards.failures`; `None` if it does not belong to a single index.
    pub fn failed_shard(&self) -> Option<serde_json::Value> {
        if let SearchError::ContextMissing { .. } = self {
            // Nobody knows which index the context was for.
            return Some(json!({"shard": -1, "index": null, "reason": self.exception().to_json()}));
        }
        let shard = self.shard()?;
        Some(json!({
            "shard": 0,
            "index": shard.index,
            "node": shard.node,
            "reason": self.exception().to_json(),
        }))
    }
}

impl SearchError {
    /// The outermost exception of a response: the error of a shard is wrapped in the list of failed shards.
    fn phase_exception(&self) -> Exception {
        let exception = self.exception();
        let Some(failed) = self.failed_shard() else { return exception };
        let wrapper = Exception::new("search_phase_execution_exception", "all shards failed")
            .with("phase", "query")
            .with("grouped", true)
            .with("failed_shards", json!([failed]));
        if is_own(&exception) {
            return wrapper;
        }
        // Elasticsearch says a foreign exception twice: as cause and as the cause's cause.
        wrapper.because(exception.clone().because(exception))
    }
}

impl From<JsonError> for SearchError {
    fn from(error: JsonError) -> Self {
        BodyError::from(error).into()
    }
}

impl From<SearchError> for EngineError {
    fn from(error: SearchError) -> Self {
        let exception = error.exception();
        let root_causes = vec![match &error {
            // Its cause has the name of one of Elasticsearch's exceptions, but is Lucene's.
            SearchError::Query { source: QueryError::Syntax { .. }, .. } => exception.clone(),
            _ => root(&exception).clone(),
        }];
        let status = error.status();
        if let SearchError::Reduce { .. } = &error {
            // What goes wrong after all shards have answered is nobody's failure but the coordinator's.
            let wrapper = Exception::new("search_phase_execution_exception", "")
                .with("phase", "fetch")
                .with("grouped", true)
                .with("failed_shards", json!([]))
                .because(exception);
            return EngineError::Api(Box::new(ApiError { status, exception: wrapper, root_causes }));
        }
        let exception = error.phase_exception();
        EngineError::Api(Box::new(ApiError { status, exception, root_causes }))
    }
}

fn aggregation_exception(error: &AggregationError) -> Exception {
    let exception = Exception::new(error.es_type(), error.to_string());
    match error {
        AggregationError::Query(QueryError::TooMuchMemory(error)) => circuit_breaking(error),
        AggregationError::TooManyBuckets { limit } => exception.with("max_buckets", *limit),
        _ => exception,
    }
}

fn of(exception: Exception, shard: &Shard) -> Exception {
    exception.with("index_uuid", shard.uuid.as_str()).with("index", shard.index.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_too_large_is_reported_as_recorded() {
        let shard = Box::new(Shard { index: "books".into(), uuid: "u".into(), node: "n".into() });
        let error = SearchError::WindowTooLarge { limit: 10_000, asked: 10_009, shard };
        let reason = "Result window is too large, from + size must be less than or equal to: [10000] but was [10009]. See the scroll api for a more efficient way to request large data sets. This limit can be set by changing the [index.max_result_window] index level setting.";
        let cause = json!({"type": "illegal_argument_exception", "reason": reason});
        assert_eq!(
            EngineError::from(error).body(),
            json!({"error": {"root_cause": [cause], "type": "search_phase_execution_exception",
                "reason": "all shards failed", "phase": "query", "grouped": true,
                "failed_shards": [{"shard": 0, "index": "books", "node": "n", "reason": cause}],
                "caused_by": {"type": "illegal_argument_exception", "reason": reason, "caused_by": cause}},
                "status": 400})
        );
    }

    #[test]
    fn an_index_that_refuses_a_query_is_reported_as_recorded() {
        let shard = Box::new(Shard { index: "books".into(), uuid: "u".into(), node: "n".into() });
        let source = sparrow_tantivy_index::query::QueryError::SparseFieldType {
            field: "title".into(),
            actual: "text",
        };
        let reason = "failed to create query: field [title] must be type [sparse_vector] but is type [text]";
        let root =
            json!({"type": "query_shard_exception", "reason": reason, "index_uuid": "u", "index": "books"});
        let mut cause = root.clone();
        cause["caused_by"] = json!({"type": "illegal_argument_exception",
            "reason": "field [title] must be type [sparse_vector] but is type [text]"});
        assert_eq!(
            EngineError::from(SearchError::Query { shard, source }).body(),
            json!({"error": {"root_cause": [root], "type": "search_phase_execution_exception",
                "reason": "all shards failed", "phase": "query", "grouped": true,
                "failed_shards": [{"shard": 0, "index": "books", "node": "n", "reason": cause}]},
                "status": 400})
        );
    }
}
