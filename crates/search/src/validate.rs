//! `_validate/query`: whether a query could be run, and why not; `_search_shards`: where it would run.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::encoding::encode;
use super::error::SearchError;
use super::resolve::set_default_fields;
use super::searched::{resolve_indices, target};
use super::target::{Target, mappings};
use crate::service::SearchService;
use sparrow_catalog::{ResolveOptions, Resolved};
use sparrow_query::dsl::{self, Context};
use sparrow_query::{Query, printed};
use sparrow_request::NODE_ROLES;
use sparrow_request::answers::ShardCounts;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{INDICES, URI_QUERY};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_runtime::work;
use sparrow_search_body::body::{self, read_object};
use sparrow_search_body::uri;
use sparrow_tantivy_index::query::{SearchOptions, TotalHits};

pub(crate) const OPERATIONS: &[Operation<SearchService>] = &[
    Operation::new("validate_query", Action::ValidateQuery, Lane::Read, validate_query)
        .about("Is it a query?")
        .holds("QueryRequest", body::query_shape)
        .takes(&[INDICES, "ignore_throttled", URI_QUERY, "explain rewrite all_shards"])
        .stops()
        .shed(),
    Operation::new("search_shards", Action::SearchShards, Lane::Read, search_shards)
        .about("Where a search would run.")
        .takes(&[INDICES, "ignore_throttled local preference routing master_timeout"]),
];

/// Says whether a query is valid: `GET|POST [/{index}]/_validate/query`.
fn validate_query(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let explain = params.bool("explain", false)?;
    let rewrite = params.bool("rewrite", false)?;
    // There is one shard of each index, and so all of them are asked anyway.
    params.bool("all_shards", false)?;
    let handles = resolve_indices(service, request, request.right())?;
    let mut query = match read(bytes) {
        Ok(query) => query,
        Err(error) => {
            // A body that was not read to its end is neither valid nor wrong.
            work::check()?;
            let error = explain.then(|| sentence(&error));
            return Ok(Reply::ok(&Validation { shards: None, valid: false, error, explanations: None }));
        }
    };
    if let Some(text) = uri::query_string(params)? {
        query = Some(text);
    }
    let mut query = query.unwrap_or_else(Query::match_all);
    let targets: Vec<Target> = handles.iter().map(|handle| target(service, handle)).collect();
    let encoded = encode(
        service,
        &handles,
        &mappings(&targets),
        &mut [&mut query],
        &request.caller,
        cancel.flag(),
        None,
    );
    let mut explanations = Vec::new();
    let options = SearchOptions { size: 0, track_total_hits: TotalHits::Off, ..SearchOptions::default() };
    for (handle, target) in handles.iter().zip(&targets) {
        work::check()?;
        let mut query = query.clone();
        if !target.default_fields.is_empty() {
            set_default_fields(&mut query, &target.default_fields);
        }
        let error = match &encoded {
            Err(error) => Some(format!("{}: {}", error.es_type(), error.reason())),
            Ok(()) => target
                .snapshot
                .search(&query, &options)
                .err()
                .map(|source| sentence(&SearchError::Query { shard: target.shard.clone(), source })),
        };
        let valid = error.is_none();
        let explanation = valid.then(|| printed(&query));
        explanations.push(Explanation { index: &handle.handle.name, valid, error, explanation });
    }
    Ok(Reply::ok(&Validation {
        shards: Some(ShardCounts::all(handles.len())),
        valid: explanations.iter().all(|one| one.valid),
        error: None,
        explanations: (explain || rewrite).then_some(explanations),
    }))
}

/// Body of a `_validate/query` response: a verdict for each index, or why the query cannot be read.
#[derive(Serialize)]
struct Validation<'a> {
    #[serde(rename = "_shards", skip_serializing_if = "Option::is_none")]
    shards: Option<ShardCounts>,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanations: Option<Vec<Explanation<'a>>>,
}

#[derive(Serialize)]
struct Explanation<'a> {
    index: &'a str,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<String>,
}

/// Reads the `query` of a request body; `None` if the body has no query.
fn read(bytes: &[u8]) -> Result<Option<Query>, SearchError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let node = read_object(bytes)?;
    let mut query = None;
    for member in node.as_object().unwrap_or_default() {
        if &*member.name != "query" {
            return Err(SearchError::parsing(
                member.at,
                format!("request does not support [{}]", member.name),
            ));
        }
        query = Some(dsl::parse_query(&member.value, Context::new(body::DEFAULT_SIZE))?);
    }
    Ok(query)
}

/// An error as Elasticsearch prints exceptions: class name and message, followed by the causes.
fn sentence(error: &SearchError) -> String {
    let mut exception = error.exception();
    let mut text = format!("{}: {}", class(exception.kind), exception.reason);
    while let Some(cause) = exception.caused_by.take() {
        text.push_str(&format!("; {}: {}", class(cause.kind), cause.reason));
        exception = *cause;
    }
    text
}

/// The Java class name of an exception, by its `type` in error responses.
fn class(kind: &str) -> &str {
    match kind {
        "parsing_exception" => "org.elasticsearch.common.ParsingException",
        "x_content_parse_exception" => "org.elasticsearch.xcontent.XContentParseException",
        "named_object_not_found_exception" => "org.elasticsearch.xcontent.NamedObjectNotFoundException",
        "query_shard_exception" => "org.elasticsearch.index.query.QueryShardException",
        "illegal_argument_exception" => "java.lang.IllegalArgumentException",
        "number_format_exception" => "java.lang.NumberFormatException",
        other => other,
    }
}

/// How a search reaches an index: the aliases it goes through, and the filter they impose.
#[derive(Serialize)]
struct SearchedIndex {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    aliases: BTreeSet<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filter: Option<Value>,
}

/// Lists the indices and shards that a search would use: `GET|POST [/{index}]/_search_shards`.
fn search_shards(
    service: &SearchService,
    request: &Request,
    _bytes: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let options = ResolveOptions::from_params(&request.params())?;
    let resolved = service.indices.resolve_filtered(request.part("index"), &options, request.right())?;
    let node = service.node.id();
    let mut indices = Map::new();
    let mut shards = Vec::new();
    for Resolved { handle, filter, aliases } in resolved {
        indices.insert(handle.name.clone(), json!(SearchedIndex { aliases, filter }));
        shards.push([handle.primary_shard(node)]);
    }
    let nodes = json!({node: {"name": node, "ephemeral_id": node, "attributes": {}, "roles": NODE_ROLES}});
    Ok(Reply::ok(&json!({"nodes": nodes, "indices": indices, "shards": shards})))
}
