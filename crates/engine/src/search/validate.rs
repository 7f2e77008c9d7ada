//! `_validate/query`: whether a query could be run, and why not; `_search_shards`: where it would run.

use serde_json::{Map, Value, json};
use sparrow_index::query::{Query, SearchOptions, TotalHits};

use super::body::{self, read_object};
use super::dsl::{self, Context};
use super::error::SearchError;
use super::resolve::set_default_fields;
use super::{encode, resolve_indices, target, uri};
use crate::Engine;
use crate::error::EngineError;
use crate::request::{CancelFlag, Reply, Request};

/// `GET|POST [/{index}]/_validate/query`.
pub(crate) fn validate_query(
    engine: &Engine,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let explain = params.bool("explain", false)?;
    let rewrite = params.bool("rewrite", false)?;
    // There is one shard of each index, and so all of them are asked anyway.
    params.bool("all_shards", false)?;
    let handles = resolve_indices(engine, request)?;
    let mut query = match read(bytes) {
        Ok(query) => query,
        Err(error) => {
            let mut answer = json!({"valid": false});
            if explain {
                answer["error"] = sentence(&error).into();
            }
            return Ok(Reply::ok(&answer));
        }
    };
    let mut shown = query.as_ref().map_or(Value::Null, |(_, json)| json.clone());
    if let Some(text) = uri::query_string(params)? {
        shown = json!({"query_string": {"query": params.get("q")}});
        query = Some((text, shown.clone()));
    }
    let mut query = query.map_or_else(Query::match_all, |(query, _)| query);
    let encoded = encode(engine, &handles, &mut [&mut query], cancel.flag());
    let mut valid = true;
    let mut explanations = Vec::new();
    let options = SearchOptions { size: 0, track_total_hits: TotalHits::Off, ..SearchOptions::default() };
    for handle in &handles {
        let target = target(engine, handle);
        let mut query = query.clone();
        if !target.default_fields.is_empty() {
            set_default_fields(&mut query, &target.default_fields);
        }
        let failed = match &encoded {
            Err(error) => Some(format!("{}: {}", error.es_type(), error.reason())),
            Ok(()) => target
                .snapshot
                .search(&query, &options)
                .err()
                .map(|source| sentence(&SearchError::Query { shard: target.shard.clone(), source })),
        };
        let mut explanation = json!({"index": handle.name, "valid": failed.is_none()});
        match failed {
            Some(error) => {
                valid = false;
                explanation["error"] = error.into();
            }
            None => explanation["explanation"] = describe(&shown).into(),
        }
        explanations.push(explanation);
    }
    let count = handles.len();
    let mut answer = json!({"_shards": {"total": count, "successful": count, "failed": 0}, "valid": valid});
    if explain || rewrite {
        answer["explanations"] = Value::Array(explanations);
    }
    Ok(Reply::ok(&answer))
}

/// The query of a body, also as it was written.
fn read(bytes: &[u8]) -> Result<Option<(Query, Value)>, SearchError> {
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
        let parsed = dsl::parse_query(&member.value, Context::new(body::DEFAULT_SIZE))?;
        query = Some((parsed, member.value.to_value()));
    }
    Ok(query)
}

/// An error as the original writes exceptions into texts: type and sentence, then the causes.
fn sentence(error: &SearchError) -> String {
    let mut exception = error.exception();
    let mut text = format!("org.elasticsearch.{}: {}", exception.kind, exception.reason);
    while let Some(cause) = exception.caused_by.take() {
        text.push_str(&format!("; {}: {}", cause.kind, cause.reason));
        exception = *cause;
    }
    text
}

/// A query in short, as far as it has a short form.
fn describe(query: &Value) -> String {
    let Some((name, inner)) = query.as_object().and_then(|query| query.iter().next()) else {
        return "*:*".to_owned();
    };
    let scalar = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let field =
        || inner.as_object().and_then(|map| map.iter().find(|(key, _)| *key != "boost" && *key != "_name"));
    match name.as_str() {
        "match_all" => "*:*".to_owned(),
        "match_none" => "MatchNoDocsQuery(\"User requested \"match_none\" query.\")".to_owned(),
        "query_string" => inner["query"].as_str().unwrap_or_default().to_owned(),
        "term" | "match" | "prefix" | "wildcard" => match field() {
            Some((field, Value::Object(options))) => {
                let value = options.get("value").or_else(|| options.get("query")).unwrap_or(&Value::Null);
                format!("{field}:{}", scalar(value))
            }
            Some((field, value)) => format!("{field}:{}", scalar(value)),
            None => query.to_string(),
        },
        "constant_score" => format!("ConstantScore({})", describe(&inner["filter"])),
        "bool" => {
            let mut parts = Vec::new();
            for (section, sign) in [("must", "+"), ("filter", "#"), ("should", ""), ("must_not", "-")] {
                match &inner[section] {
                    Value::Array(clauses) => {
                        parts.extend(clauses.iter().map(|clause| format!("{sign}{}", describe(clause))));
                    }
                    Value::Null => {}
                    clause => parts.push(format!("{sign}{}", describe(clause))),
                }
            }
            parts.join(" ")
        }
        _ => query.to_string(),
    }
}

/// `GET|POST [/{index}]/_search_shards`.
pub(crate) fn search_shards(
    engine: &Engine,
    request: &Request,
    _bytes: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let handles = resolve_indices(engine, request)?;
    let node = engine.node_id();
    let mut indices = Map::new();
    let mut shards = Vec::new();
    for handle in &handles {
        indices.insert(handle.name.clone(), json!({}));
        shards.push(json!([{
            "state": "STARTED", "primary": true, "node": node, "relocating_node": null, "shard": 0,
            "index": handle.name, "allocation_id": {"id": handle.uuid},
            "relocation_failure_info": {"failed_attempts": 0},
        }]));
    }
    let nodes = json!({node: {"name": node, "ephemeral_id": node, "attributes": {}, "roles": ["data", "ingest", "master", "ml"]}});
    Ok(Reply::ok(&json!({"nodes": nodes, "indices": indices, "shards": shards})))
}
