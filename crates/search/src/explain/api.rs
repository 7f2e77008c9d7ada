//! `GET|POST /{index}/_explain/{id}`: whether and why a document matches a query.

use std::io::Write;
use std::sync::Arc;

use super::super::attribution::Attributor;
use super::super::deadline::is_cancelled;
use super::super::encoding::encode;
use super::super::error::SearchError;
use super::super::resolve;
use super::super::searched::{resolve_indices, target};
use super::write;
use crate::service::SearchService;
use sparrow_catalog::PRIMARY_TERM;
use sparrow_mapping::SourceSelection;
use sparrow_query::{IdsQuery, Query, QueryKind};
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{SOURCE, URI_QUERY};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search_body::{body, uri};
use sparrow_tantivy_index::query::{Explanation, SearchOptions, TotalHits};

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("explain", Action::Explain, Lane::Read, explain_document)
        .about("Why a document has its score.")
        .holds("QueryRequest", body::query_shape)
        .takes(&[URI_QUERY, SOURCE, "stored_fields preference routing"])
        .stops()
        .shed()];

/// Explains one document. It is read as a search sees it, so writes count after the next refresh.
fn explain_document(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let handles = resolve_indices(service, request, request.right())?;
    let [searched] = &handles[..] else {
        return Err(EngineError::illegal_argument("a document is explained in one index"));
    };
    let handle = &searched.handle;
    let id = request.part("id");
    service.indices.check_routing(handle, request.part("index"), id, params.routing())?;
    let mut query = body::parse_count(bytes)?;
    if let Some(text) = uri::query_string(params)? {
        query = Some(text);
    }
    let Some(mut query) = query else { return Err(EngineError::invalid("query is missing")) };
    let stored_fields = match params.get("stored_fields") {
        None => false,
        Some(names) => {
            // No field is stored beside the source.
            if let Some(name) =
                names.split(',').find(|name| !matches!(*name, "" | "_source" | "_none_" | "_id" | "_routing"))
                && handle.mapping().field(name).is_none()
            {
                tracing::debug!(name, "a stored field that is not mapped");
            }
            true
        }
    };
    let source = uri::source(params)?;
    let target = target(service, searched);
    let mappings = [Arc::clone(target.snapshot.mapping())];
    encode(service, &handles, &mappings, &mut [&mut query], &request.caller, cancel.flag(), None)?;
    if !target.default_fields.is_empty() {
        resolve::set_default_fields(&mut query, &target.default_fields);
    }

    let mut out = Vec::with_capacity(1024);
    out.extend_from_slice(b"{\"_index\":");
    json(&mut out, &handle.name);
    out.extend_from_slice(b",\"_id\":");
    json(&mut out, id);
    let Some(document) = target.snapshot.lookup(id)? else {
        out.extend_from_slice(b",\"matched\":false}");
        return Ok(Reply::bytes(404, out));
    };
    let refused = |source| {
        let error: EngineError = SearchError::Query { shard: target.shard.clone(), source }.into();
        if is_cancelled(&error) { EngineError::Cancelled } else { error }
    };
    // The score as a search finds it: it may add up in another order than an explanation does.
    let options = SearchOptions {
        size: 1,
        track_total_hits: TotalHits::Off,
        cancel: Some(cancel.flag().clone()),
        post_filter: Some(Query::new(QueryKind::Ids(IdsQuery { values: vec![id.to_owned()] }))),
        ..SearchOptions::default()
    };
    let score = target.snapshot.search(&query, &options).map_err(refused)?.hits.first().map(|hit| hit.score);
    let explanations =
        target.snapshot.explain(&query, &[document.addr], Some(cancel.flag())).map_err(refused)?;
    let mut explanation =
        explanations.into_iter().next().unwrap_or_else(|| Explanation::no_match("No matching clauses"));
    match score {
        Some(score) => explanation.settle(score),
        None => explanation.no_match = true,
    }
    Attributor::new(service, &target, document.addr).explain(&mut explanation, cancel.flag())?;
    push(&mut out, format_args!(",\"matched\":{},\"explanation\":", score.is_some()));
    write(&explanation, &mut out);
    if source.is_some() || stored_fields {
        let mut stored = target.snapshot.fetch(document.addr)?;
        if target.excludes_vectors {
            stored.source = SourceSelection::without_vectors(target.snapshot.mapping()).of(&stored.source);
        }
        push(
            &mut out,
            format_args!(
                ",\"get\":{{\"_seq_no\":{},\"_primary_term\":{PRIMARY_TERM},\"found\":true",
                stored.seq_no
            ),
        );
        let mark = out.len();
        out.extend_from_slice(b",\"_source\":");
        if !source.is_some_and(|source| source.write(&stored.source, &mut out)) {
            out.truncate(mark);
        }
        out.push(b'}');
    }
    out.push(b'}');
    Ok(Reply::bytes(200, out))
}

fn json(out: &mut Vec<u8>, text: &str) {
    // A string always serialises, and a vector takes all bytes.
    let _ = serde_json::to_writer(out, text);
}

fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}
