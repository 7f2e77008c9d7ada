//! `_terms_enum`: the terms of a field that begin with a given text, for autocompletion.

use std::collections::BTreeSet;
use std::time::Duration;

use sparrow_query::Query;
use sparrow_query::dsl::{self, Context, value};
use sparrow_runtime::work;
use sparrow_wire::BodyError;

use super::deadline::{Deadline, is_cancelled};
use super::encoding::encode;
use super::error::SearchError;
use super::point_in_time::keep_matching;
use super::searched::{resolve_indices, target};
use super::target::mappings;
use crate::service::SearchService;
use sparrow_request::answers::ShardCounts;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::INDICES;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search_body::body::{self, read_object};
use sparrow_wire::shape::{Shape, flag, int, named, nullable, object, text, time};

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("terms_enum", Action::TermsEnum, Lane::Read, terms_enum)
        .about("The terms of a keyword field that begin with a text.")
        .holds("TermsEnumRequest", shape)
        .takes(&[INDICES, "ignore_throttled"])
        .stops()
        .shed()];

const PARSER: &str = "terms_enum";
const DEFAULT_SIZE: usize = 10;
/// Highest number of terms in a response.
const MAX_SIZE: usize = 10_000;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_TIMEOUT: Duration = Duration::from_secs(60);

/// What a request holds.
fn shape() -> Shape {
    object([("field", text()), ("string", nullable(text()).about("what the terms begin with"))])
        .and([("size", int().about("at most 10,000").preset(DEFAULT_SIZE)), ("timeout", time().preset("1s"))])
        .and([("case_insensitive", flag().preset(false)), ("index_filter", named("Query"))])
        .and([("search_after", text().about("the last term of the answer before"))])
        .needs(&["field"])
}

/// A `_terms_enum` request, as its body states it.
struct TermsEnumRequest {
    field: String,
    string: String,
    size: usize,
    timeout: Duration,
    case_insensitive: bool,
    index_filter: Option<Query>,
    search_after: Option<String>,
}

/// Lists the terms of a field that begin with a text: `GET|POST /{index}/_terms_enum`.
fn terms_enum(
    service: &SearchService,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let mut asked = read(bytes)?;
    let handles = resolve_indices(service, request, request.right())?;
    let total = handles.len();
    // What passes the filter of an alias is not known of a term: nothing is told of what an alias shows a part of.
    let (whole, parts): (Vec<_>, Vec<_>) =
        handles.into_iter().partition(|handle| handle.restricted.is_none());
    let mut complete = parts.is_empty();
    let deadline = Deadline::start(Some(asked.timeout), cancel);
    let _stopped = work::stopped_by(deadline.flag());
    let mut targets: Vec<_> = whole.iter().map(|handle| target(service, handle)).collect();
    if let Some(query) = &mut asked.index_filter {
        let mappings = mappings(&targets);
        let filter = &mut [&mut *query];
        let kept = encode(service, &whole, &mappings, filter, &request.caller, deadline.flag(), None)
            .and_then(|_| keep_matching(targets, query).map_err(EngineError::from));
        targets = match kept {
            // Nothing is known of the indices that were to be left out.
            Err(error) if deadline.is_over() && is_cancelled(&error) => {
                complete = false;
                Vec::new()
            }
            kept => kept?,
        };
    }
    let mut terms = BTreeSet::new();
    for target in &targets {
        let keywords = target.snapshot.first_keywords(
            &asked.field,
            &asked.string,
            asked.case_insensitive,
            asked.search_after.as_deref(),
            asked.size,
            deadline.flag(),
        );
        let is_over = match keywords {
            Ok((_, false)) if !deadline.is_over() => return Err(EngineError::Cancelled),
            Ok((keywords, whole)) => {
                terms.extend(keywords);
                !whole
            }
            Err(source) => return Err(SearchError::Query { shard: target.shard.clone(), source }.into()),
        };
        while terms.len() > asked.size {
            terms.pop_last();
        }
        if is_over {
            complete = false;
            break;
        }
    }
    let shards = ShardCounts::all(total);
    let bytes = terms.iter().map(|term| term.len() + BETWEEN).sum::<usize>() + AROUND;
    Reply::written(&TermsEnumResponse { shards, terms, complete }, bytes)
}

/// Bytes of a response besides the terms themselves: for each term, and for the whole.
const BETWEEN: usize = r#""","#.len();
const AROUND: usize = 128;

/// Body of a `_terms_enum` response; the members are written in this order.
#[derive(serde::Serialize)]
struct TermsEnumResponse {
    #[serde(rename = "_shards")]
    shards: ShardCounts,
    terms: BTreeSet<String>,
    complete: bool,
}

fn read(bytes: &[u8]) -> Result<TermsEnumRequest, EngineError> {
    let mut field = None;
    let mut asked = TermsEnumRequest {
        field: String::new(),
        string: String::new(),
        size: DEFAULT_SIZE,
        timeout: DEFAULT_TIMEOUT,
        case_insensitive: false,
        index_filter: None,
        search_after: None,
    };
    if !bytes.iter().all(u8::is_ascii_whitespace) {
        let node = read_object(bytes)?;
        for member in node.as_object().unwrap_or_default() {
            let node = &member.value;
            let mut read = || -> Result<(), BodyError> {
                match &*member.name {
                    "field" => field = value::optional_text(node)?,
                    "string" => asked.string = value::optional_text(node)?.unwrap_or_default(),
                    "size" => asked.size = size(value::int(node)?)?,
                    "timeout" => asked.timeout = timeout(&value::text(node)?)?,
                    "case_insensitive" => asked.case_insensitive = value::boolean(node)?,
                    "index_filter" => {
                        asked.index_filter = Some(dsl::parse_query(node, Context::new(body::DEFAULT_SIZE))?);
                    }
                    "search_after" => asked.search_after = value::optional_text(node)?,
                    _ => return Err(BodyError::unknown_field(PARSER, member, shape().names())),
                }
                Ok(())
            };
            read().map_err(SearchError::from)?;
        }
    }
    let Some(field) = field.filter(|field| !field.is_empty()) else {
        return Err(EngineError::invalid("field cannot be null"));
    };
    Ok(TermsEnumRequest { field, ..asked })
}

fn size(size: i32) -> Result<usize, BodyError> {
    usize::try_from(size).ok().filter(|size| (1..=MAX_SIZE).contains(size)).ok_or_else(|| {
        BodyError::illegal(format!("[size] must be between [1] and [{MAX_SIZE}], but was [{size}]"))
    })
}

fn timeout(text: &str) -> Result<Duration, BodyError> {
    // No limit is more than the longest.
    let parsed = body::timeout(text)?.unwrap_or(Duration::MAX);
    if parsed > MAX_TIMEOUT {
        return Err(BodyError::Validation { messages: vec!["Timeout cannot be > 1 minute".to_owned()] });
    }
    Ok(parsed)
}
