//! `_rank_eval`: evaluates the first hits of searches against relevance judgements of documents.

mod member_reader;
mod metric;

use std::collections::HashSet;

use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use sparrow_runtime::work;

use self::member_reader::{MemberReader, parse};
use self::metric::{Metric, Quality};
use super::search::search;
use super::searched::resolve_indices;
use crate::service::SearchService;
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::INDICES;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::shape::{self, Shape, int, list, named, text};
use sparrow_wire::{object, strict_json};

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("rank_eval", Action::RankEval, Lane::Read, rank_eval)
        .about("Measures ranked lists against ratings.")
        .holds("RankEvalRequest", shape)
        .takes(&[INDICES, "ignore_throttled search_type"])
        .stops()
        .shed()];

/// What a request holds.
fn shape() -> Shape {
    let rating = shape::object([("_index", text()), ("_id", text()), ("rating", int())]);
    let rated = shape::object([
        ("id", text()),
        ("request", named("SearchRequest")),
        ("summary_fields", list(text())),
        ("ratings", list(rating.needs(&["_index", "_id", "rating"]))),
    ]);
    shape::object([
        ("requests", list(rated.needs(&["id", "request", "ratings"]))),
        ("metric", metric::shape().about("The measure of each list.")),
        ("max_concurrent_searches", int()),
    ])
    .needs(&["requests", "metric"])
}

/// Highest number of searches in one request.
const MAX_REQUESTS: usize = 10_000;
/// Sections of a search that have nothing to do with ranking and are rejected, with the words of the error
/// message.
const FOREIGN: [(&str, &str); 6] = [
    ("suggest", "contain a suggest section."),
    ("aggs", "contain aggregations."),
    ("aggregations", "contain aggregations."),
    ("highlight", "contain a highlighter section."),
    ("explain", "use explain."),
    ("profile", "use profile."),
];

/// A search to evaluate, with the relevance judgements for it.
struct Rated<'a> {
    id: &'a str,
    /// Request body of the search.
    search: Map<String, Value>,
    /// Relevance grades, by index and document id.
    ratings: FxHashMap<(&'a str, &'a str), u32>,
}

/// `GET|POST [/{index}]/_rank_eval`
fn rank_eval(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(EngineError::parse("request body is required"));
    }
    request.params().check_search_type()?;
    let body = parse_object(bytes)?;
    let mut reader = MemberReader::new("rank_eval", &body);
    if !reader.list("templates")?.is_empty() {
        return Err(EngineError::illegal_argument("[templates] are not supported by this server"));
    }
    let metric = match reader.take("metric") {
        Some(metric) => Metric::parse(metric)?,
        None => {
            return Err(EngineError::illegal_argument(
                "Cannot evaluate ranking if no evaluation metric is provided.",
            ));
        }
    };
    // They run one after another: judging is no work that somebody waits for.
    if reader.integer("max_concurrent_searches")?.is_some_and(|number| number < 1) {
        return Err(EngineError::illegal_argument("maxConcurrentSearchRequests must be positive"));
    }
    let requests = reader.list("requests")?;
    reader.done()?;
    if requests.is_empty() {
        return Err(EngineError::illegal_argument(
            "Cannot evaluate ranking if no search requests with rated results are provided. Seen: []",
        ));
    }
    if requests.len() > MAX_REQUESTS {
        return Err(EngineError::illegal_argument(format!(
            "[requests] has [{}] searches, more than the limit of [{MAX_REQUESTS}]",
            requests.len()
        )));
    }
    let requests: Vec<Rated<'_>> =
        requests.iter().map(|rated| read(rated, &metric)).collect::<Result<_, _>>()?;
    let mut ids = HashSet::new();
    if let Some(twice) = requests.iter().find(|rated| !ids.insert(rated.id)) {
        return Err(EngineError::illegal_argument(format!("Found duplicate request id [{}]", twice.id)));
    }
    // What may not be searched at all fails the request, and not each search of it.
    resolve_indices(service, request, request.right())?;
    let (mut details, mut failures) = (Map::new(), Map::new());
    let (mut sum, mut judged) = (0.0, 0_u32);
    for rated in &requests {
        work::check()?;
        match judge(service, request, rated, metric, cancel) {
            Ok((score, shown)) => {
                sum += score;
                judged += 1;
                details.insert(rated.id.to_owned(), shown);
            }
            Err(EngineError::Cancelled) => return Err(EngineError::Cancelled),
            Err(error) => {
                failures.insert(rated.id.to_owned(), json!({"error": error.body()["error"]}));
            }
        }
    }
    // Of nothing there is no mean; JSON has no word for that.
    let score = (judged > 0).then(|| sum / f64::from(judged));
    Ok(Reply::ok(&object([
        ("metric_score", json!(score)),
        ("details", details.into()),
        ("failures", failures.into()),
    ])))
}

/// Runs a search and evaluates its hits; returns the measure's value and the details to show.
fn judge(
    service: &SearchService,
    request: &Request,
    rated: &Rated<'_>,
    metric: Metric,
    cancel: &CancelFlag,
) -> Result<(f64, Value), EngineError> {
    let single = Request {
        op: "search".to_owned(),
        path: request.path.clone(),
        query: request.query.iter().map(owned).collect(),
        opaque_id: request.opaque_id.clone(),
        action: request.action,
        caller: request.caller.clone(),
        ..Request::default()
    };
    let body = Value::Object(rated.search.clone()).to_string();
    let reply = search(service, &single, body.as_bytes(), cancel)?;
    let mut answer: Value = strict_json::from_slice(&reply.body)
        .map_err(|error| EngineError::internal(format!("the answer to a search cannot be read: {error}")))?;
    let hits = match answer["hits"]["hits"].take() {
        Value::Array(hits) => hits,
        _ => Vec::new(),
    };
    let ratings: Vec<Option<u32>> = hits
        .iter()
        .map(|hit| rated.ratings.get(&(hit["_index"].as_str()?, hit["_id"].as_str()?)).copied())
        .collect();
    let all: Vec<u32> = rated.ratings.values().copied().collect();
    let Quality { score, details } = metric.quality(&ratings, &all);
    let unrated: Vec<Value> = hits
        .iter()
        .zip(&ratings)
        .filter(|(_, rating)| rating.is_none())
        .map(|(hit, _)| json!({"_index": hit["_index"], "_id": hit["_id"]}))
        .collect();
    let shown: Vec<Value> = hits
        .into_iter()
        .zip(&ratings)
        .map(|(hit, rating)| object([("hit", hit), ("rating", json!(rating))]))
        .collect();
    let shown = object([
        ("metric_score", json!(score)),
        ("unrated_docs", unrated.into()),
        ("hits", shown.into()),
        ("metric_details", details),
    ]);
    Ok((score, shown))
}

fn owned((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// Reads one of the `requests`; its search is to find as many hits as the measure counts.
fn read<'a>(value: &'a Value, metric: &Metric) -> Result<Rated<'a>, EngineError> {
    let Some(members) = value.as_object() else {
        return Err(parse("[rank_eval] failed to parse field [requests]".to_owned()));
    };
    let mut reader = MemberReader::new("request", members);
    let id = reader.text("id")?;
    if reader.take("template_id").is_some() || reader.take("params").is_some() {
        return Err(EngineError::illegal_argument(format!(
            "[template_id] and [params] of request [{id}] are not supported by this server"
        )));
    }
    let summary = reader.list("summary_fields")?.to_vec();
    let search = reader.take("request").and_then(Value::as_object).cloned();
    let Some(mut search) = search else {
        return Err(EngineError::illegal_argument(
            "Either template_id or request must be specified in the request",
        ));
    };
    for (name, problem) in FOREIGN {
        if search.get(name).is_some_and(|value| !value.is_null() && *value != Value::Bool(false)) {
            return Err(EngineError::illegal_argument(format!(
                "Query in rated requests should not {problem}"
            )));
        }
    }
    search.insert("size".to_owned(), metric.k.into());
    search.insert(
        "_source".to_owned(),
        if summary.is_empty() { Value::Bool(false) } else { Value::Array(summary) },
    );
    search.insert("track_total_hits".to_owned(), Value::Bool(false));
    let mut ratings = FxHashMap::default();
    if !members.contains_key("ratings") {
        return Err(EngineError::illegal_argument("Required [ratings]"));
    }
    for (number, rating) in reader.list("ratings")?.iter().enumerate() {
        if number % 1024 == 0 {
            work::check()?;
        }
        let Some(members) = rating.as_object() else {
            return Err(parse("[request] failed to parse field [ratings]".to_owned()));
        };
        let mut reader = MemberReader::new("rated_document", members);
        let key = (reader.text("_index")?, reader.text("_id")?);
        let grade = reader.rating("rating")?;
        reader.done()?;
        let Some(grade) = grade else { return Err(EngineError::illegal_argument("Required [rating]")) };
        metric.check(grade)?;
        if ratings.insert(key, grade).is_some() {
            return Err(EngineError::illegal_argument(format!(
                "Found duplicate rated document key [{{\"_index\":\"{}\",\"_id\":\"{}\"}}] in evaluation request [{id}]",
                key.0, key.1
            )));
        }
    }
    reader.done()?;
    Ok(Rated { id, search, ratings })
}
