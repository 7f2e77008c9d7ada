//! `_msearch`: several searches in one request, each with its own outcome.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::Value;
use sparrow_runtime::work;

use super::SearchError;
use super::search::search;
use crate::service::SearchService;
use sparrow_query::dsl::value;
use sparrow_request::body::unterminated;
use sparrow_request::error::EngineError;
use sparrow_request::helpers::share;
use sparrow_request::operation::parameters::INDICES;
use sparrow_request::operation::{Body, Lane, Operation};
use sparrow_request::params::Params;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::json::{self, Json};
use sparrow_wire::shape::{Shape, alike, any, either, named, object, several, text};

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("msearch", Action::MultiSearch, Lane::Read, msearch)
        .about("Several searches: lines of headers, each with its search on the next line.")
        .body(Body::Searches)
        .holds("SearchLine", line_shape)
        .takes(&[
            INDICES,
            "ignore_throttled max_concurrent_searches max_concurrent_shard_requests",
            "pre_filter_shard_size routing search_type typed_keys rest_total_hits_as_int",
            "ccs_minimize_roundtrips include_named_queries_score",
        ])
        .stops()
        .shed()];

/// What a line holds: a header, or a search.
fn line_shape() -> Shape {
    either([header_shape(), named("SearchRequest")])
}

fn header_shape() -> Shape {
    let others = "allow_no_indices expand_wildcards ignore_unavailable ignore_throttled request_cache \
                  allow_partial_search_results ccs_minimize_roundtrips";
    object([("index", several(text()))])
        .and(alike("search_type preference routing", text()))
        .and(alike(others, any()))
}

/// One search: the index and parameters from its header line, and its body line.
struct Item<'a> {
    index: String,
    params: BTreeMap<String, String>,
    body: &'a [u8],
}

/// Handles `GET|POST [/{index}]/_msearch`.
fn msearch(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let params = request.params();
    let workers = match params.integer("max_concurrent_searches")? {
        None => usize::MAX,
        Some(number @ 1..) => number as usize,
        Some(_) => return Err(EngineError::illegal_argument("maxConcurrentSearchRequests must be positive")),
    };
    let items = items(request, bytes)?;
    if items.is_empty() {
        return Err(EngineError::invalid("no requests added"));
    }
    // Every search has to be well-formed before any runs, as one that is not fails the request.
    for item in &items {
        work::check()?;
        let params = Params::new(&item.params);
        let mut body =
            sparrow_search_body::body::SearchBody::parse(item.body, sparrow_search_body::uri::size(params)?)?;
        sparrow_search_body::uri::apply(params, &mut body)?;
        if let Err(error @ sparrow_wire::BodyError::Validation { .. }) = body.validate() {
            return Err(error.into());
        }
        if body.pit.is_some() && !item.index.is_empty() {
            return Err(EngineError::invalid(
                "[indices] cannot be used with point in time. Do not specify any index with point in time.",
            ));
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = workers.min(cores).min(items.len());
    let next = AtomicUsize::new(0);
    let refused = AtomicBool::new(false);
    let answers: Vec<Mutex<Vec<u8>>> = items.iter().map(|_| Mutex::default()).collect();
    let search_all = || {
        let mut is_over = false;
        loop {
            // Where what the answers hold leaves no room, or nobody waits for them, each search to come would only add an error to them.
            if cancel.is_cancelled() || is_over && work::room_for(0).is_err() {
                return;
            }
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return };
            // A search that goes over the limit on memory fails by itself: the others may still have room.
            let part = work::current().map(|request| request.part());
            let _part = part.clone().map(|part| work::enter(Some(part)));
            let ran = run(service, request, item, cancel);
            let ran = match part.and_then(|part| part.exceeded()) {
                Some(limit) => {
                    is_over = true;
                    Err(limit.into())
                }
                None => ran,
            };
            *answers[place].lock() = match ran {
                Ok(mut reply) => {
                    // The answer is an object: its status goes before the closing brace.
                    reply.pop();
                    reply.extend_from_slice(b",\"status\":200}");
                    reply
                }
                Err(error) => {
                    refused.fetch_or(error.is_forbidden(), Ordering::Relaxed);
                    failure(&error)
                }
            };
        }
    };
    share(workers.saturating_sub(1), |_| search_all());
    if cancel.is_cancelled() {
        return Err(EngineError::Cancelled);
    }
    work::check()?;
    let mut out = format!("{{\"took\":{},\"responses\":[", start.elapsed().as_millis()).into_bytes();
    work::grow(&mut out, answers.iter().map(|answer| answer.lock().len() + 1).sum())?;
    for (number, answer) in answers.into_iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.append(&mut answer.into_inner());
    }
    out.extend_from_slice(b"]}");
    Ok(Reply::bytes(200, out).with_refused_parts(refused.into_inner()))
}

fn failure(error: &EngineError) -> Vec<u8> {
    error.body().to_string().into_bytes()
}

fn run(
    service: &SearchService,
    request: &Request,
    item: &Item<'_>,
    cancel: &CancelFlag,
) -> Result<Vec<u8>, EngineError> {
    let mut single = Request {
        op: "search".to_owned(),
        path: BTreeMap::new(),
        query: item.params.clone(),
        opaque_id: request.opaque_id.clone(),
        action: Some(Action::Search),
        caller: request.caller.clone(),
        ..Request::default()
    };
    if !item.index.is_empty() {
        single.path.insert("index".to_owned(), item.index.clone());
    }
    search(service, &single, item.body, cancel).map(|reply| reply.body)
}

/// Splits a body into pairs of lines. A header line may be empty.
fn items<'a>(request: &Request, bytes: &'a [u8]) -> Result<Vec<Item<'a>>, EngineError> {
    if !bytes.is_empty() && bytes.last() != Some(&b'\n') {
        return Err(EngineError::illegal_argument(unterminated("msearch", bytes)));
    }
    let mut items = Vec::new();
    let mut lines = bytes.split(|byte| *byte == b'\n');
    while let Some(header) = lines.next() {
        work::check()?;
        let blank = header.iter().all(u8::is_ascii_whitespace);
        let Some(body) = lines.next() else {
            if blank {
                break;
            }
            return Err(EngineError::illegal_argument("Malformed search request: a header without a body"));
        };
        if blank && items.is_empty() && body.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let mut item = Item { index: request.part("index").to_owned(), params: inherited(request), body };
        if !blank {
            read_header(header, &mut item)?;
        }
        items.push(item);
    }
    // What follows the last newline is no body.
    if items.last().is_some_and(|item| item.body.is_empty() && bytes.len() == offset_of(bytes, item.body)) {
        return Err(EngineError::illegal_argument("Malformed search request: a header without a body"));
    }
    Ok(items)
}

fn offset_of(bytes: &[u8], part: &[u8]) -> usize {
    (part.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize)
}

/// The parameters of the request that apply to each of its searches.
fn inherited(request: &Request) -> BTreeMap<String, String> {
    const INHERITED: [&str; 10] = [
        "rest_total_hits_as_int",
        "search_type",
        "ignore_unavailable",
        "allow_no_indices",
        "expand_wildcards",
        "ignore_throttled",
        "routing",
        "include_named_queries_score",
        "typed_keys",
        "max_concurrent_shard_requests",
    ];
    let parameter = |name: &&str| request.query.get(*name).map(|value| ((*name).to_owned(), value.clone()));
    INHERITED.iter().filter_map(parameter).collect()
}

fn read_header(header: &[u8], item: &mut Item<'_>) -> Result<(), EngineError> {
    let (node, trailing) = json::read(header).map_err(SearchError::from)?;
    let Some(members) = node.as_object().filter(|_| trailing.is_none()) else {
        return Err(SearchError::parsing(
            node.at,
            format!("Expected [START_OBJECT] but found [{}]", node.token()),
        )
        .into());
    };
    for member in members {
        let node = &member.value;
        match &*member.name {
            "index" | "indices" => {
                if let Json::Null = node.json {
                    continue;
                }
                item.index = value::texts(node)?.join(",");
            }
            "ccsMinimizeRoundtrips" | "ccs_minimize_roundtrips" => {
                value::boolean(node)?;
            }
            name @ ("search_type"
            | "preference"
            | "routing"
            | "request_cache"
            | "allow_partial_search_results"
            | "expand_wildcards"
            | "ignore_unavailable"
            | "allow_no_indices"
            | "ignore_throttled") => {
                let text = match node.to_value() {
                    Value::Array(_) => value::texts(node)?.join(","),
                    _ => value::text(node)?,
                };
                item.params.insert(name.to_owned(), text);
            }
            name => {
                let near = header_shape().near(name);
                return Err(EngineError::illegal_argument(format!(
                    "key [{name}] is not supported in the metadata section{near}"
                )));
            }
        }
    }
    Ok(())
}
