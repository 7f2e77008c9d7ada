//! `_pit`: opens and closes points in time, which searches with `pit` use.

use std::sync::Arc;

use serde_json::json;
use sparrow_query::Query;

use super::contexts::{Content, MAX_OPEN};
use super::encoding::encode;
use super::error::SearchError;
use super::searched::{resolve_indices, target};
use super::target::{Target, mappings};
use crate::service::SearchService;
use sparrow_query::dsl::{self, Context, value};
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::INDICES;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search_body::body::read_object;
use sparrow_search_body::paging::PointInTime;
use sparrow_search_body::{body, uri};
use sparrow_wire::BodyError;
use sparrow_wire::shape::{Shape, named, object, text};

pub(crate) const OPERATIONS: &[Operation<SearchService>] = &[
    Operation::new("open_point_in_time", Action::OpenPointInTime, Lane::Read, open)
        .about("Keeps what indices hold now, to be searched later.")
        .holds("OpenPointInTimeRequest", shape)
        .takes(&[
            INDICES,
            "ignore_throttled keep_alive preference routing allow_partial_search_results",
            "max_concurrent_shard_requests",
        ]),
    Operation::new("close_point_in_time", Action::ClosePointInTime, Lane::Read, close)
        .about("Ends a point in time.")
        .holds("ClosePointInTimeRequest", close_shape),
];

/// What a request to open one holds.
fn shape() -> Shape {
    object([("index_filter", named("Query"))])
}

fn close_shape() -> Shape {
    object([("id", text())]).needs(&["id"])
}

/// Handles `POST /{index}/_pit`.
fn open(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let handles = resolve_indices(service, request, request.right())?;
    let params = request.params();
    let Some(keep_alive) = params.get("keep_alive") else {
        return Err(EngineError::invalid("[keep_alive] is not specified"));
    };
    let keep_alive = uri::keep_alive_of("keep_alive", keep_alive, &service.cluster.max_keep_alive())?;
    let mut filter = None;
    if !bytes.iter().all(u8::is_ascii_whitespace) {
        let node = read_object(bytes)?;
        for member in node.as_object().unwrap_or_default() {
            match &*member.name {
                "index_filter" => {
                    filter = Some(dsl::parse_query(&member.value, Context::new(body::DEFAULT_SIZE))?);
                }
                _ => {
                    return Err(BodyError::unknown_field(
                        "open_point_in_time_request",
                        member,
                        shape().names(),
                    )
                    .into());
                }
            }
        }
    }
    let mut targets: Vec<Target> = handles.iter().map(|handle| target(service, handle)).collect();
    if let Some(query) = &mut filter {
        let mappings = mappings(&targets);
        encode(service, &handles, &mappings, &mut [&mut *query], &request.caller, cancel.flag(), None)?;
        targets = keep_matching(targets, query)?;
    }
    let count = targets.len();
    let id = service.contexts.open(
        Content::PointInTime(Arc::new(targets)),
        request.caller.holder(),
        keep_alive,
        MAX_OPEN,
        service.memory.figures().request_limit,
    )?;
    let shards = json!({"total": count, "successful": count, "skipped": 0, "failed": 0});
    Ok(Reply::ok(&json!({"id": id, "_shards": shards})))
}

/// The indices that have at least one document matching a query.
///
/// # Errors
/// When an index cannot run the query.
pub(super) fn keep_matching(targets: Vec<Target>, query: &Query) -> Result<Vec<Target>, SearchError> {
    let mut kept = Vec::with_capacity(targets.len());
    for target in targets {
        let count = target
            .snapshot
            .count(query)
            .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
        if count > 0 {
            kept.push(target);
        }
    }
    Ok(kept)
}

/// Handles `DELETE /_pit`.
fn close(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let node = read_object(bytes)?;
    let mut id = None;
    for member in node.as_object().unwrap_or_default() {
        match &*member.name {
            "id" => id = Some(value::text(&member.value)?),
            _ => {
                return Err(BodyError::unknown_field(
                    "close_point_in_time_request",
                    member,
                    close_shape().names(),
                )
                .into());
            }
        }
    }
    let id = id.filter(|id| !id.is_empty()).ok_or_else(|| EngineError::invalid("id is empty"))?;
    let freed = service.contexts.close(&id, request.caller.holder())?;
    let status = if freed { 200 } else { 404 };
    Ok(Reply::json(status, &json!({"succeeded": true, "num_freed": u8::from(freed)})))
}

/// The indices of a point in time, for a search that names none itself.
///
/// # Errors
/// 404 when it is not open; 400 when the request names indices or has parameters for resolving them.
pub(super) fn targets(
    service: &SearchService,
    request: &Request,
    pit: &PointInTime,
) -> Result<Arc<Vec<Target>>, EngineError> {
    let mut problems = Vec::new();
    if !request.part("index").is_empty() {
        problems.push(
            "[indices] cannot be used with point in time. Do not specify any index with point in time."
                .to_owned(),
        );
    }
    let params = request.params();
    let resolving = ["ignore_unavailable", "allow_no_indices", "expand_wildcards", "ignore_throttled"];
    if resolving.iter().any(|name| params.get(name).is_some()) {
        problems.push("[indicesOptions] cannot be used with point in time".to_owned());
    }
    for name in ["routing", "preference"] {
        if params.get(name).is_some() {
            problems.push(format!("[{name}] cannot be used with point in time"));
        }
    }
    if !problems.is_empty() {
        return Err(EngineError::Validation { problems });
    }
    match service.contexts.get(&pit.id, request.caller.holder(), pit.keep_alive)? {
        Content::PointInTime(targets) => Ok(targets),
        Content::Scroll(_) => Err(EngineError::illegal_argument(format!("invalid id: [{}]", pit.id))),
    }
}
