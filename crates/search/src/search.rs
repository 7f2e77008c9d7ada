//! `_search`, and the first page of a scroll.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sparrow_runtime::work;
use sparrow_tantivy_index::query::TotalHits;

use crate::answer::answer;
use crate::contexts::{Content, Scroll};
use crate::deadline::Deadline;
use crate::encoding::encode_body;
use crate::error::SearchError;
use crate::point_in_time;
use crate::response::OpenIds;
use crate::searched::{resolve_indices, target};
use crate::service::SearchService;
use crate::target::{Target, open_context};
use sparrow_catalog::ResolveOptions;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{INDICES, SOURCE, URI_QUERY};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Right};
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::uri;
use sparrow_search_body::uri::Presentation;

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("search", Action::Search, Lane::Read, search)
        .about("Searches.")
        .holds("SearchRequest", sparrow_search_body::search_shape)
        .takes(&[
            INDICES,
            "ignore_throttled",
            URI_QUERY,
            SOURCE,
            "_source_exclude_vectors from size min_score track_total_hits track_scores",
            "rest_total_hits_as_int typed_keys preference routing search_type timeout terminate_after",
            "allow_partial_search_results batched_reduce_size max_concurrent_shard_requests",
            "pre_filter_shard_size request_cache ccs_minimize_roundtrips version seq_no_primary_term",
            "sort explain stored_fields docvalue_fields scroll stats include_named_queries_score",
        ])
        .stops()
        .short()
        .shed()];

/// Handles `_search`.
pub(crate) fn search(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let params = request.params();
    let mut body = SearchBody::parse(bytes, uri::size(params)?)?;
    let shown = uri::apply(params, &mut body)?;
    body.validate()?;
    let handles = resolve_indices(service, request, request.right())?;
    body.fuse();
    if let Some(pit) = &body.pit {
        let targets = point_in_time::targets(service, request, pit)?;
        let id = pit.id.clone();
        // The models of fields that pipelines fill are those of the indices as they are now.
        let handles: Vec<_> = targets
            .iter()
            .filter_map(|target| service.indices.get(&target.shard.index, Right::unlimited()).ok())
            .collect();
        let deadline = Deadline::start(body.timeout, cancel);
        let _stopped = work::stopped_by(deadline.flag());
        let encoded = encode_body(service, &handles, &targets, &mut body, &request.caller, deadline.flag());
        let ids = OpenIds { pit: Some(&id), scroll: None };
        let answered = answer(service, &targets, &body, shown, &deadline, encoded, start, ids, bytes)?;
        return Ok(Reply::bytes(200, answered.bytes));
    }
    name_boosted(service, &mut body, request)?;
    let targets: Vec<Target> = handles.iter().map(|handle| target(service, handle)).collect();
    let deadline = Deadline::start(body.timeout, cancel);
    let _stopped = work::stopped_by(deadline.flag());
    let encoded = encode_body(service, &handles, &targets, &mut body, &request.caller, deadline.flag());
    if let Some(keep_alive) = body.scroll {
        encoded?;
        return open_scroll(service, request, targets, body, shown, keep_alive, cancel, start, bytes);
    }
    let answered =
        answer(service, &targets, &body, shown, &deadline, encoded, start, OpenIds::default(), bytes)?;
    Ok(Reply::bytes(200, answered.bytes))
}

/// Opens a scroll and answers with its first page.
#[allow(clippy::too_many_arguments)]
fn open_scroll(
    service: &SearchService,
    request: &Request,
    targets: Vec<Target>,
    mut body: SearchBody,
    shown: Presentation,
    keep_alive: Duration,
    cancel: &CancelFlag,
    start: Instant,
    source: &[u8],
) -> Result<Reply, EngineError> {
    if let Some(target) = targets.iter().find(|target| body.size > target.limits.result_window) {
        return Err(SearchError::BatchTooLarge {
            limit: target.limits.result_window,
            asked: body.size,
            shard: target.shard.clone(),
        }
        .into());
    }
    if let Some(text) = request.params().get("scroll") {
        uri::keep_alive_of("scroll", text, &service.cluster.max_keep_alive())?;
    }
    body.track_total_hits = Some(TotalHits::Exact);
    let scroll = Arc::new(Mutex::new(Scroll { _open: open_context(&targets, true), targets, body, shown }));
    let mut open = scroll.lock();
    let id = service.contexts.open(
        Content::Scroll(Arc::clone(&scroll)),
        request.caller.holder(),
        keep_alive,
        service.cluster.max_open_scrolls(),
        service.memory.figures().request_limit,
    )?;
    let ids = OpenIds { scroll: Some(&id), pit: None };
    let deadline = Deadline::start(open.body.timeout, cancel);
    let _stopped = work::stopped_by(deadline.flag());
    match answer(service, &open.targets, &open.body, shown, &deadline, Ok(Vec::new()), start, ids, source) {
        Ok(answered) => {
            open.body.position = answered.last;
            // Only the first page has suggestions, as it has aggregations.
            open.body.suggest = None;
            Ok(Reply::bytes(200, answered.bytes))
        }
        Err(error) => {
            service.contexts.close(&id, None)?;
            Err(error)
        }
    }
}

/// Replaces aliases and patterns in `indices_boost` by the names of the indices that they stand for. Indices that do not exist are
/// an error.
fn name_boosted(
    service: &SearchService,
    body: &mut SearchBody,
    request: &Request,
) -> Result<(), EngineError> {
    if body.indices_boost.is_empty() {
        return Ok(());
    }
    let options = ResolveOptions::from_params(&request.params())?;
    let mut boosted = Vec::new();
    // The first factor of an index counts.
    let mut known = HashSet::new();
    for (names, boost) in &body.indices_boost {
        let handles = service.indices.resolve(names, options.clone(), request.right())?;
        let new = handles.iter().filter(|handle| known.insert(handle.name.clone()));
        boosted.extend(new.map(|handle| (handle.name.clone(), *boost)));
    }
    body.indices_boost = boosted;
    Ok(())
}
