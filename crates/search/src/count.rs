//! `_count`: how many documents a query matches.

use sparrow_query::Query;
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_tantivy_index::query::TotalHits;

use crate::deadline::is_cancelled;
use crate::encoding::encode;
use crate::execute::execute;
use crate::response;
use crate::searched::{resolve_indices, target};
use crate::service::SearchService;
use crate::target::{Target, mappings};
use sparrow_request::operation::parameters::{INDICES, URI_QUERY};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::rights::Action;
use sparrow_search_body::body::{self, SearchBody};
use sparrow_search_body::uri;

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("count", Action::Search, Lane::Read, count)
        .about("Counts documents.")
        .holds("QueryRequest", body::query_shape)
        .takes(&[INDICES, "ignore_throttled", URI_QUERY, "min_score preference routing terminate_after"])
        .stops()
        .short()
        .shed()];

/// Handles `_count`.
fn count(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let handles = resolve_indices(service, request, request.right())?;
    let mut query = body::parse_count(bytes)?;
    if let Some(text) = uri::query_string(params)? {
        query = Some(text);
    }
    let min_score = params.float("min_score")?;
    let terminate_after = params.integer("terminate_after")?.unwrap_or(0);
    let mut body = SearchBody {
        query,
        terminate_after: body::terminate_after(terminate_after)?,
        size: 0,
        min_score: min_score.map(|score| score as f32),
        track_total_hits: Some(TotalHits::Exact),
        ..SearchBody::default()
    };
    let targets: Vec<Target> = handles.iter().map(|handle| target(service, handle)).collect();
    let mut queries: Vec<&mut Query> = body.query.iter_mut().collect();
    encode(service, &handles, &mappings(&targets), &mut queries, &request.caller, cancel.flag(), None)?;
    let outcome = execute(&targets, &body, cancel.flag())
        .map_err(EngineError::from)
        .map_err(|error| if is_cancelled(&error) { EngineError::Cancelled } else { error })?;
    let counted = outcome.total.map_or(0, |(count, _)| count);
    Ok(Reply::bytes(
        200,
        response::write_count(
            counted,
            outcome.terminated_early.filter(|_| terminate_after > 0),
            targets.len(),
            &outcome.failures,
        ),
    ))
}
