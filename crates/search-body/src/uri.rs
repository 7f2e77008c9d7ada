//! Search parameters in the query string of the URL, which override the request body.

use super::body::{self, SearchBody};
use super::{fields, sort};
use sparrow_mapping::SourceSelection;
use sparrow_query::{Query, QueryKind, QueryStringQuery, operator_named};
use sparrow_request::error::EngineError;
use sparrow_request::params::Params;
pub use sparrow_request::params::keep_alive_of;
use sparrow_wire::BodyError;

/// How the response is laid out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Presentation {
    /// Whether `hits.total` is a number instead of an object.
    pub total_as_int: bool,
    /// Whether the search fails when one of several indices fails (`allow_partial_search_results=false`).
    pub all_or_nothing: bool,
    /// Whether names of aggregations in the response are prefixed with their type.
    pub typed_keys: bool,
}

/// The `size` parameter of the URL, read first because other parts of the body depend on it.
///
/// # Errors
/// When it is not a whole number, or negative.
pub fn size(params: Params<'_>) -> Result<Option<usize>, EngineError> {
    let Some(size) = params.integer("size")? else { return Ok(None) };
    usize::try_from(size).map(Some).map_err(|_| {
        EngineError::illegal_argument(format!("[size] parameter cannot be negative, found [{size}]"))
    })
}

/// Applies the URL parameters to a search.
///
/// # Errors
/// When a value is malformed, or asks for something this server does not support.
pub fn apply(params: Params<'_>, search: &mut SearchBody) -> Result<Presentation, EngineError> {
    if search.of_retriever {
        beside_retriever(params)?;
    }
    if let Some(query) = query_string(params)? {
        search.query = Some(query);
    }
    if let Some(from) = params.integer("from")? {
        search.from = usize::try_from(from).map_err(|_| {
            EngineError::illegal_argument(format!("[from] parameter cannot be negative but was [{from}]"))
        })?;
    }
    if let Some(source) = source(params)? {
        search.source = source;
        search.source_given = true;
    }
    if params.get("_source_exclude_vectors").is_some() {
        search.excludes_vectors = Some(params.bool("_source_exclude_vectors", false)?);
    }
    if let Some(text) = params.get("track_total_hits") {
        search.track_total_hits = Some(body::track_total_hits(text)?);
    }
    if let Some(text) = params.get("timeout") {
        search.timeout = body::timeout(text)?;
    }
    if let Some(text) = params.get("sort") {
        search.sort = sort::from_text(text)?;
    }
    search.explain = params.bool("explain", search.explain)?;
    if let Some(number) = params.integer("terminate_after")? {
        search.terminate_after = body::terminate_after(number)?;
    }
    if let Some(text) = params.get("stats") {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        search.stats = body::stats_groups(names.collect())?;
    }
    if let Some(text) = params.get("docvalue_fields") {
        search.docvalue_fields = fields::docvalues_from_text(text);
    }
    if let Some(text) = params.get("stored_fields") {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        search.stored_fields = Some(fields::stored(names.collect())?);
    }
    if let Some(keep_alive) = params.get("scroll") {
        // What the cluster allows is looked at where the scroll is opened.
        search.scroll = Some(keep_alive_of("scroll", keep_alive, "-1")?);
    }
    if let Some(least) = params.float("min_score")? {
        search.min_score = Some(least as f32);
    }
    check_execution(params)?;
    search.request_cache = params.bool("request_cache", false)?;
    search.named_scores = params.bool("include_named_queries_score", search.named_scores)?;
    search.version = params.bool("version", search.version)?;
    search.seq_no_primary_term = params.bool("seq_no_primary_term", search.seq_no_primary_term)?;
    search.track_scores = params.bool("track_scores", search.track_scores)?;
    refuse_unsupported(params)?;
    let total_as_int = params.bool("rest_total_hits_as_int", false)?;
    if total_as_int {
        exact_total(search)?;
    }
    Ok(Presentation {
        total_as_int,
        all_or_nothing: !params.bool("allow_partial_search_results", true)?,
        typed_keys: params.bool("typed_keys", false)?,
    })
}

/// Refuses parameters for which the body's sections of the same meaning are refused beside a retriever.
fn beside_retriever(params: Params<'_>) -> Result<(), BodyError> {
    const SECTIONS: [(&str, &str); 4] = [
        ("q", "query"),
        ("terminate_after", "terminate_after"),
        ("sort", "sort"),
        ("min_score", "min_score"),
    ];
    let given: Vec<&str> =
        SECTIONS.iter().filter(|(name, _)| params.get(name).is_some()).map(|(_, shown)| *shown).collect();
    match given.is_empty() {
        true => Ok(()),
        false => Err(BodyError::Validation {
            messages: vec![format!("cannot specify [retriever] and [{}]", given.join(", "))],
        }),
    }
}

/// Parameters about shards: an index has one here, which takes part in every search, so that only malformed
/// values make a difference.
fn check_execution(params: Params<'_>) -> Result<(), EngineError> {
    for (name, java_name, least) in [
        ("batched_reduce_size", "batchedReduceSize", 2),
        ("pre_filter_shard_size", "preFilterShardSize", 1),
        ("max_concurrent_shard_requests", "maxConcurrentShardRequests", 1),
    ] {
        if params.integer(name)?.is_some_and(|number| number < least) {
            return Err(EngineError::illegal_argument(format!("{java_name} must be >= {least}")));
        }
    }
    params.bool("ccs_minimize_roundtrips", false)?;
    const PREFERENCES: [&str; 5] = ["_local", "_only_local", "_shards:", "_prefer_nodes:", "_only_nodes:"];
    match params.get("preference") {
        Some(preference)
            if preference.starts_with('_')
                && !PREFERENCES.iter().any(|prefix| preference.starts_with(prefix)) =>
        {
            Err(EngineError::illegal_argument(format!("no Preference for [{preference}]")))
        }
        _ => Ok(()),
    }
}

/// The `q` parameter as a query, with the parameters that refine it, such as `df`.
///
/// # Errors
/// When a value is malformed, or `df` and the like come without `q`.
pub fn query_string(params: Params<'_>) -> Result<Option<Query>, EngineError> {
    let Some(text) = params.get("q") else {
        return Ok(None);
    };
    let mut query = QueryStringQuery::new(text);
    query.default_field = params.get("df").map(str::to_owned);
    query.analyzer = params.get("analyzer").map(str::to_owned);
    query.analyze_wildcard = params.bool("analyze_wildcard", false)?;
    query.lenient = params.bool("lenient", false)?;
    if let Some(operator) = params.get("default_operator") {
        query.default_operator = operator_named(operator)?;
    }
    Ok(Some(QueryKind::QueryString(query).into()))
}

/// Reads `_source`, `_source_includes` and `_source_excludes`; `None` if none of them is given.
///
/// # Errors
/// When there are too many.
pub fn source(params: Params<'_>) -> Result<Option<SourceSelection>, BodyError> {
    let list = |names: [&str; 2]| -> Vec<String> {
        let text = names.iter().find_map(|name| params.get(name)).unwrap_or_default();
        text.split(',').filter(|path| !path.is_empty()).map(str::to_owned).collect()
    };
    let mut includes = list(["_source_includes", "_source_include"]);
    let excludes = list(["_source_excludes", "_source_exclude"]);
    match params.get("_source") {
        Some("false") => return Ok(Some(SourceSelection::Nothing)),
        Some("true" | "") => {}
        Some(paths) => includes.extend(paths.split(',').map(str::to_owned)),
        None if includes.is_empty() && excludes.is_empty() => return Ok(None),
        None => {}
    }
    SourceSelection::fields(includes, excludes).map(Some)
}

/// Rejects parameters that would change the response and that this server cannot honour.
fn refuse_unsupported(params: Params<'_>) -> Result<(), EngineError> {
    const UNSUPPORTED: [&str; 2] = ["suggest_field", "suggest_text"];
    let refused = |name: &str| {
        Err(EngineError::illegal_argument(format!("parameter [{name}] is not supported by this server")))
    };
    for name in UNSUPPORTED {
        if params.get(name).is_some() {
            return refused(name);
        }
    }
    params.check_search_type()
}

fn exact_total(search: &mut SearchBody) -> Result<(), BodyError> {
    use sparrow_tantivy_index::query::TotalHits;
    match search.track_total_hits {
        None | Some(TotalHits::Exact) => {
            search.track_total_hits = Some(TotalHits::Exact);
            Ok(())
        }
        Some(TotalHits::Off) => Ok(()),
        Some(TotalHits::UpTo(limit)) => Err(BodyError::illegal(format!(
            "[rest_total_hits_as_int] cannot be used if the tracking of total hits is not accurate, \
             got {limit}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use sparrow_query::{Operator, QueryKind};
    use sparrow_tantivy_index::query::TotalHits;

    use super::{Presentation, SearchBody, SourceSelection, apply, size};
    use sparrow_request::params::Params;

    fn run(pairs: &[(&str, &str)]) -> Result<(SearchBody, Presentation), String> {
        let map: BTreeMap<String, String> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut body = SearchBody::default();
        let params = Params::new(&map);
        if let Some(size) = size(params).map_err(|error| error.reason())? {
            body.size = size;
        }
        let presentation = apply(params, &mut body).map_err(|error| error.reason())?;
        Ok((body, presentation))
    }

    #[test]
    fn parameters_fill_the_search() {
        let (body, shown) = run(&[
            ("q", "title:bulk"),
            ("df", "title"),
            ("default_operator", "AND"),
            ("size", "1"),
            ("from", "2"),
            ("_source_includes", "title,n"),
            ("rest_total_hits_as_int", "true"),
            ("version", ""),
        ])
        .expect("valid");
        assert_eq!((body.size, body.from, body.version), (1, 2, true));
        assert_eq!(body.track_total_hits, Some(TotalHits::Exact));
        assert!(shown.total_as_int && !shown.all_or_nothing);
        assert!(matches!(body.source, SourceSelection::Fields(_)));
        let Some(QueryKind::QueryString(query)) = body.query.map(|query| query.kind) else {
            panic!("a query_string");
        };
        assert_eq!(query.query, "title:bulk");
        assert_eq!(query.default_field.as_deref(), Some("title"));
        assert_eq!(query.default_operator, Operator::And);
    }

    #[test]
    fn bad_values_are_named() {
        for (name, value, reason) in [
            ("size", "abc", "Failed to parse int parameter [size] with value [abc]"),
            ("size", "-1", "[size] parameter cannot be negative, found [-1]"),
            ("from", "-1", "[from] parameter cannot be negative but was [-1]"),
            ("terminate_after", "-1", "terminateAfter must be > 0"),
            ("sort", "n:up", "No enum constant org.elasticsearch.search.sort.SortOrder.UP"),
            ("preference", "_nowhere", "no Preference for [_nowhere]"),
            ("batched_reduce_size", "1", "batchedReduceSize must be >= 2"),
            ("search_type", "scan", "No search type for [scan]"),
            ("version", "yes", "Failed to parse value [yes] as only [true] or [false] are allowed."),
        ] {
            assert_eq!(run(&[(name, value)]).expect_err(name), reason);
        }
        let both = [("rest_total_hits_as_int", "true"), ("track_total_hits", "5")];
        assert!(run(&both).expect_err("inexact").contains("not accurate, got 5"));
    }

    #[test]
    fn the_source_can_be_switched_off_and_on() {
        let source = |value| run(&[("_source", value)]).expect("valid").0.source;
        assert_eq!(source("false"), SourceSelection::Nothing);
        assert_eq!(source("true"), SourceSelection::Whole);
        assert!(matches!(source("title"), SourceSelection::Fields(_)));
    }
}
