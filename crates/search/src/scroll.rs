//! `_search/scroll`: returns the next page of a scroll, and ends scrolls.

use std::time::{Duration, Instant};

use serde_json::json;
use sparrow_runtime::work;

use super::answer::answer;
use super::contexts::Content;
use super::deadline::Deadline;
use super::error::SearchError;
use super::response::OpenIds;
use crate::service::SearchService;
use sparrow_query::dsl::value;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search_body::body::read_object;
use sparrow_search_body::uri;
use sparrow_wire::json::Json;
use sparrow_wire::shape::{Shape, object, several, text, time};

pub(crate) const OPERATIONS: &[Operation<SearchService>] = &[
    Operation::new("scroll", Action::Scroll, Lane::Read, next)
        .about("The next page of a scroll.")
        .holds("ScrollRequest", shape)
        .takes(&["scroll scroll_id rest_total_hits_as_int"])
        .stops()
        .shed(),
    Operation::new("clear_scroll", Action::ClearScroll, Lane::Read, clear)
        .about("Ends scrolls.")
        .holds("ClearScrollRequest", clear_shape)
        .takes(&["scroll_id"]),
];

/// What a request for a page holds.
fn shape() -> Shape {
    object([("scroll_id", text()), ("scroll", time().about("how long it is kept"))]).needs(&["scroll_id"])
}

fn clear_shape() -> Shape {
    object([("scroll_id", several(text()))]).needs(&["scroll_id"])
}

/// How often a request that waits for the previous page of its scroll checks whether its caller has gone
/// away.
const LOOK: Duration = Duration::from_millis(50);

/// A request on scrolls: their ids, and for the next page how long to keep them.
#[derive(Default)]
struct ScrollRequest {
    ids: Vec<String>,
    keep_alive: Option<Duration>,
}

/// Returns the next page of a scroll: `GET|POST /_search/scroll`.
fn next(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let asked = read(request, bytes, false, &service.cluster.max_keep_alive())?;
    let Some(id) = asked.ids.first() else { return Err(EngineError::invalid("scrollId is missing")) };
    let Content::Scroll(scroll) = service.contexts.get(id, request.caller.holder(), asked.keep_alive)? else {
        return Err(EngineError::illegal_argument("Cannot parse scroll id"));
    };
    // Pages of one scroll come one after the other. Who waits for one keeps a worker from other searches, and goes when nobody
    // waits for it.
    let mut scroll = loop {
        if let Some(turn) = scroll.try_lock_for(LOOK) {
            break turn;
        }
        if cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
    };
    let mut shown = scroll.shown;
    shown.total_as_int = request.params().bool("rest_total_hits_as_int", false)?;
    let ids = OpenIds { scroll: Some(id), pit: None };
    let deadline = Deadline::start(scroll.body.timeout, cancel);
    let _stopped = work::stopped_by(deadline.flag());
    let answered =
        answer(service, &scroll.targets, &scroll.body, shown, &deadline, Ok(Vec::new()), start, ids, bytes)?;
    // A page that is refused comes again.
    work::check()?;
    if let Some(last) = answered.last {
        scroll.body.position = Some(last);
    }
    Ok(Reply::bytes(200, answered.bytes))
}

/// Ends scrolls: `DELETE /_search/scroll`.
fn clear(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked = read(request, bytes, true, &service.cluster.max_keep_alive())?;
    if asked.ids.is_empty() {
        return Err(EngineError::invalid("no scroll ids specified"));
    }
    let mut freed = 0;
    if asked.ids.iter().any(|id| id == "_all") {
        freed = service.contexts.close_scrolls(request.caller.holder());
    } else {
        for id in &asked.ids {
            freed += usize::from(service.contexts.close(id, request.caller.holder())?);
        }
        if freed == 0 {
            return Ok(Reply::json(404, &json!({"succeeded": true, "num_freed": 0})));
        }
    }
    Ok(Reply::ok(&json!({"succeeded": true, "num_freed": freed})))
}

/// Reads the scroll ids of a request from the path, the query string and the body; the body takes precedence.
fn read(request: &Request, bytes: &[u8], several: bool, most: &str) -> Result<ScrollRequest, EngineError> {
    let params = request.params();
    let mut asked = ScrollRequest::default();
    let listed = match request.part("scroll_id") {
        "" => params.get("scroll_id").unwrap_or_default(),
        id => id,
    };
    asked.ids.extend(listed.split(',').filter(|id| !id.is_empty()).map(str::to_owned));
    if let Some(text) = params.get("scroll") {
        asked.keep_alive = Some(uri::keep_alive_of("scroll", text, most)?);
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(asked);
    }
    let node = read_object(bytes)?;
    for member in node.as_object().unwrap_or_default() {
        match (&*member.name, &member.value.json) {
            ("scroll_id", Json::String(id)) => asked.ids = vec![id.to_string()],
            ("scroll_id", Json::Array(_)) if several => asked.ids = value::texts(&member.value)?,
            ("scroll", Json::String(text)) if !several => {
                asked.keep_alive = Some(uri::keep_alive_of("scroll", text, most)?);
            }
            (name, _) => {
                return Err(SearchError::illegal(format!(
                    "Unknown parameter [{name}] in request body or parameter is of the wrong type[{}] ",
                    member.value.token()
                ))
                .into());
            }
        }
    }
    Ok(asked)
}
