//! Parameters and members that the requests of all three jobs have in common.

use serde_json::{Map, Value};

use super::{MOST_SLICES, Slices};
use sparrow_request::body::{place, position, token};
use sparrow_request::error::{ApiError, EngineError, Exception};
use sparrow_request::request::Request;
use sparrow_search::Order;
use sparrow_wire::deprecation;
use sparrow_wire::json::{Member, Node};
use sparrow_wire::shape::{Named, Shape, int, named, one};

/// Most documents of a batch, the same as of a search page.
const MOST_PER_BATCH: u64 = 10_000;
/// Documents of a batch unless a request says otherwise.
pub(super) const DEFAULT_BATCH: u64 = 1000;

/// Members of a search request that a job does not accept: they change which documents a search finds, or Elasticsearch refuses them too.
const REFUSED: [&str; 12] = [
    "from",
    "stored_fields",
    "collapse",
    "rescore",
    "retriever",
    "rank",
    "knn",
    "post_filter",
    "search_after",
    "min_score",
    "pit",
    "runtime_mappings",
];

/// Members of a search that change only what it shows, or how: they are read and left, as in Elasticsearch.
const UNUSED: [&str; 18] = [
    "docvalue_fields",
    "fields",
    "highlight",
    "aggs",
    "aggregations",
    "suggest",
    "script_fields",
    "explain",
    "profile",
    "track_total_hits",
    "_source",
    "version",
    "seq_no_primary_term",
    "stats",
    "timeout",
    "track_scores",
    "indices_boost",
    "ext",
];

/// What the requests of all jobs hold.
pub(super) fn common() -> [Named; 3] {
    let conflicts = "`proceed` goes on where a document was changed in the meantime";
    [
        ("max_docs", int()),
        ("size", int().about("an older name of `max_docs`")),
        ("conflicts", one(&["abort", "proceed"]).about(conflicts).preset("abort")),
    ]
}

pub(super) fn script_shape() -> Named {
    ("script", named("Script"))
}

/// The part of a job that a request alone carries out.
pub(super) fn slice_shape() -> Named {
    ("slice", named("Slice"))
}

/// Parses the parameter `slices`.
///
/// # Errors
/// Illegal argument for anything but a positive number or `auto`, and for more parts than there may be.
pub(super) fn slices(request: &Request) -> Result<Slices, EngineError> {
    let text = match request.params().get("slices") {
        None => return Ok(Slices::Number(1)),
        Some("auto") => return Ok(Slices::Auto),
        Some(text) => text,
    };
    match text.parse::<u64>() {
        Ok(slices) if slices > MOST_SLICES => Err(EngineError::illegal_argument(format!(
            "The number of slices [{slices}] is too large. It must be less than [{MOST_SLICES}]. This limit can be set \
             by changing the [index.max_slices_per_scroll] index level setting."
        ))),
        Ok(slices @ 1..) => Ok(Slices::Number(u32::try_from(slices).unwrap_or(1))),
        _ => Err(EngineError::illegal_argument("[slices] must be a positive integer or the string \"auto\"")),
    }
}

/// Parses `conflicts` of the body or the parameters: whether version conflicts are ignored.
///
/// # Errors
/// Illegal argument for an unknown value.
pub(super) fn conflicts(given: Option<Value>, request: &Request) -> Result<bool, EngineError> {
    let of_body = match &given {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    };
    let proceed = |text: &str| match text {
        "abort" => Ok(false),
        "proceed" => Ok(true),
        other => Err(EngineError::illegal_argument(format!(
            "conflicts may only be \"proceed\" or \"abort\" but was [{other}]"
        ))),
    };
    let of_body = of_body.as_deref().map(proceed).transpose()?;
    // What the address says counts more.
    let of_address = request.params().get("conflicts").map(proceed).transpose()?;
    Ok(of_address.or(of_body).unwrap_or(false))
}

/// Parses `max_docs`, which may be in the body or the parameters, also under its old name `size`.
///
/// # Errors
/// Illegal argument for a negative number, and for two different ones.
pub(super) fn max_docs(
    given: &mut Map<String, Value>,
    request: &Request,
) -> Result<Option<u64>, EngineError> {
    let params = request.params();
    // `size` was the name before Elasticsearch 7.
    if given.contains_key("size") {
        deprecation::warn("Deprecated field [size] used, expected [max_docs] instead");
    }
    let names: Vec<String> =
        given.keys().filter(|name| *name == "max_docs" || *name == "size").cloned().collect();
    let mut all = Vec::with_capacity(4);
    for name in names {
        all.extend(integer(given, &name)?);
    }
    all.extend(params.integer("size")?);
    all.extend(params.integer("max_docs")?);
    let mut max_docs = None;
    for value in all {
        let Ok(number) = u64::try_from(value) else {
            return Err(EngineError::illegal_argument(format!(
                "[max_docs] parameter cannot be negative, found [{value}]"
            )));
        };
        match max_docs {
            Some(before) if before != number => {
                return Err(EngineError::illegal_argument(format!(
                    "[max_docs] set to two different values [{before}] and [{number}]"
                )));
            }
            _ => max_docs = Some(number),
        }
    }
    Ok(max_docs)
}

/// The size of a batch, checked.
///
/// # Errors
/// Illegal argument if it is not positive, or greater than a page of a search may be.
pub(super) fn batch(size: i64, max_docs: Option<u64>) -> Result<usize, EngineError> {
    let batch = match u64::try_from(size) {
        Ok(size @ 1..) => size,
        _ => {
            return Err(EngineError::illegal_argument(format!(
                "[size] parameter must be greater than 0, found [{size}]"
            )));
        }
    };
    if batch > MOST_PER_BATCH {
        return Err(EngineError::illegal_argument(format!(
            "Batch size is too large, size must be less than or equal to: [{MOST_PER_BATCH}] but was [{batch}]. Scroll \
             batch sizes cost as much memory as result windows so they are controlled by the \
             [index.max_result_window] index level setting."
        )));
    }
    // A page never holds more than may be written.
    let batch = max_docs.map_or(batch, |max_docs| batch.min(max_docs.max(1)));
    Ok(usize::try_from(batch).unwrap_or(usize::MAX))
}

/// Checks the numbers of slices; the messages of problems are added to `problems`.
pub(super) fn check_slices(
    slices: Slices,
    part: Option<(u32, u32)>,
    max_docs: Option<u64>,
    problems: &mut Vec<String>,
) {
    let number = match slices {
        Slices::Auto => None,
        Slices::Number(number) => Some(number),
    };
    if number.is_some_and(|number| max_docs.is_some_and(|most| most < u64::from(number))) {
        problems.push("[max_docs] should be >= [slices]".to_owned());
    }
    if part.is_some() && number != Some(1) {
        problems.push("can't specify both manual and automatic slicing at the same time".to_owned());
    }
}

/// Checks parameters that have no effect here, as a job reads one snapshot of an index with one shard.
///
/// # Errors
/// Illegal argument for malformed values.
pub(super) fn check_idle(request: &Request) -> Result<(), EngineError> {
    let params = request.params();
    for name in ["scroll", "timeout", "search_timeout"] {
        params.duration(name)?;
    }
    for name in ["request_cache", "version"] {
        params.bool(name, false)?;
    }
    params.check_search_type()?;
    match params.get("wait_for_active_shards") {
        None | Some("all" | "index-setting") => Ok(()),
        Some(text) if text.parse::<u32>().is_ok() => Ok(()),
        Some(other) => Err(EngineError::illegal_argument(format!("cannot parse ActiveShardCount[{other}]"))),
    }
}

/// `sort` of a body: in which order documents are taken.
///
/// # Errors
/// The same as for a search request.
pub(super) fn order(given: Option<Value>) -> Result<Option<Order>, EngineError> {
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(sort) => Order::parse(&sort).map(Some),
    }
}

/// Checks the remaining members of a search body, which a job does not use: those that affect which documents a search finds are added
/// to `problems`. The search body is the whole request, or its object `section`.
///
/// # Errors
/// If there is an unknown key, or a member that a search would refuse; with the name of the member.
pub(super) fn check_rest<'a>(
    unread: &'a Map<String, Value>,
    shape: &Shape,
    text: &[u8],
    section: Option<&str>,
    problems: &mut Vec<String>,
) -> Result<(), (&'a str, EngineError)> {
    // Read once more, with the places that errors name.
    let body = match unread.is_empty() {
        true => None,
        false => sparrow_wire::json::read(text).ok().map(|(body, _)| body),
    };
    let members = body.as_ref().and_then(Node::as_object).unwrap_or_default();
    let members = match section {
        None => members,
        Some(section) => {
            member(members, section).and_then(|found| found.value.as_object()).unwrap_or_default()
        }
    };
    for (name, value) in unread {
        if REFUSED.contains(&name.as_str()) {
            problems.push(format!("{name} is not supported in this context"));
        } else if UNUSED.contains(&name.as_str()) {
            member(members, name)
                .map_or(Ok(()), sparrow_search::check_section)
                .map_err(|error| (&**name, error.into()))?;
        } else {
            let token = token(value);
            let (line, column) = position(text, name);
            let reason = format!("Unknown key for a {token} in [{name}].{}", shape.near(name));
            let exception =
                Exception::new("parsing_exception", reason).with("line", line).with("col", column);
            return Err((name, EngineError::api(400, exception)));
        }
    }
    Ok(())
}

fn member<'a>(members: &'a [Member], name: &str) -> Option<&'a Member> {
    members.iter().find(|member| &*member.name == name)
}

/// Removes a member that must be an object; `None` if it is absent.
pub(super) fn object_member(
    given: &mut Map<String, Value>,
    parser: &str,
    name: &str,
) -> Result<Option<Map<String, Value>>, EngineError> {
    match given.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(map)) => Ok(Some(map)),
        Some(_) => Err(EngineError::api(
            400,
            Exception::new(
                "x_content_parse_exception",
                format!("[{parser}] {name} doesn't support values of this type, an object is needed"),
            ),
        )),
    }
}

/// Removes a member that must be an integer, which may be written as a string; `None` if it is absent or null.
pub(super) fn integer(given: &mut Map<String, Value>, name: &str) -> Result<Option<i64>, EngineError> {
    match given.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().or_else(|| value.as_str()?.parse().ok()).map(Some).ok_or_else(|| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let cause = Exception::new("number_format_exception", format!("For input string: \"{text}\""));
            let reason = format!("[{name}] must be a whole number but was [{text}]");
            EngineError::api(400, Exception::new("illegal_argument_exception", reason).because(cause))
        }),
    }
}

/// The error for a key or value that Elasticsearch knows and this server does not support.
pub(super) fn unsupported(parser: &str, name: &str, why: &str) -> EngineError {
    EngineError::illegal_argument(format!("[{parser}] does not support [{name}]: {why}"))
}

/// The error for a body that is not an object, or that has an unknown key.
pub(super) fn malformed(text: &[u8], parser: &str, unknown: Option<(&Shape, &str)>) -> EngineError {
    let reason = match unknown {
        Some((shape, name)) => format!("{} [{parser}] {}", place(text, name), shape.unknown(name)),
        None => format!("[1:1] [{parser}] Expected START_OBJECT"),
    };
    EngineError::api(400, Exception::new("x_content_parse_exception", reason))
}

/// The error of an inner parser, as the outer one reports it.
pub(super) fn nested(section: &str, place: &str, cause: Exception) -> EngineError {
    EngineError::Api(Box::new(ApiError {
        status: 400,
        exception: Exception::new(
            "x_content_parse_exception",
            format!("{place} [reindex] failed to parse field [{section}]"),
        )
        .because(cause.clone()),
        root_causes: vec![cause],
    }))
}
