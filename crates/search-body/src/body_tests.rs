//! Search requests with the errors that a real Elasticsearch answered, and with the values that valid ones are parsed into.

use serde_json::{Value, json};

use super::body::{SearchBody, parse_count};
use super::sort::Sort;
use sparrow_mapping::SourceSelection;
use sparrow_query::{Operator, Pruning, Query, QueryKind, SparseOrigin, TermQuery};
use sparrow_request::error::EngineError;
use sparrow_tantivy_index::query::TotalHits;
use sparrow_wire::BodyError;

fn parse(text: &str) -> Result<SearchBody, BodyError> {
    let body = SearchBody::parse(text.as_bytes(), None)?;
    body.validate()?;
    Ok(body)
}

fn error_body(text: &str) -> Value {
    EngineError::from(parse(text).expect_err(text)).body()
}

/// Checks that a request fails with this error object and status 400.
fn check_error(text: &str, expected: &Value) {
    let body = error_body(text);
    assert_eq!(body["error"], *expected, "{text}");
    assert_eq!(body["status"], 400, "{text}");
}

/// Checks that a request fails with an error of type `kind` whose body contains `part`.
fn check_reason(text: &str, kind: &str, part: &str) {
    let body = error_body(text);
    assert_eq!(body["error"]["type"], kind, "{text}: {body}");
    assert!(body.to_string().contains(&json!(part).to_string()[1..part.len() + 1]), "{text}: {body}");
}

/// The error object in which this error is its own and only root cause.
fn plain(mut error: Value) -> Value {
    let mut root = error.clone();
    if let Some(root) = root.as_object_mut() {
        root.remove("caused_by");
    }
    let mut object = json!({"root_cause": [root]});
    if let (Some(object), Some(error)) = (object.as_object_mut(), error.as_object_mut()) {
        object.append(error);
    }
    object
}

fn query(text: &str) -> Query {
    let body = parse(&format!("{{\"query\": {text}}}")).unwrap_or_else(|error| panic!("{text}: {error}"));
    body.query.expect("a query")
}

#[test]
fn errors_of_the_whole_body_are_as_recorded() {
    check_error(
        r#"{"quer": {}}"#,
        &plain(json!({"type": "parsing_exception",
            "reason": "Unknown key for a START_OBJECT in [quer]. did you mean [query]?", "line": 1, "col": 10})),
    );
    check_error(
        "[]",
        &plain(json!({"type": "parsing_exception",
            "reason": "Expected [START_OBJECT] but found [START_ARRAY]", "line": 1, "col": 1})),
    );
    check_error(
        r#"{"size": -5}"#,
        &plain(json!({"type": "illegal_argument_exception",
            "reason": "[size] parameter cannot be negative, found [-5]"})),
    );
    check_error(
        r#"{"size": "abc"}"#,
        &plain(json!({"type": "number_format_exception", "reason": "For input string: \"abc\""})),
    );
    let eof = "Unexpected end-of-input: expected close marker for Object (start marker at [Source: (byte[])\"{\"query\": {\"match_all\": {}\"; line: 1, column: 11])\n at [Source: (byte[])\"{\"query\": {\"match_all\": {}\"; line: 1, column: 27]";
    check_error(
        r#"{"query": {"match_all": {}"#,
        &plain(json!({"type": "x_content_e_o_f_exception", "reason": "[1:27] Unexpected end of file",
            "caused_by": {"type": "json_e_o_f_exception", "reason": eof}})),
    );
}

#[test]
fn errors_of_queries_are_as_recorded() {
    check_error(
        r#"{"query": {"nope": {}}}"#,
        &plain(json!({"type": "parsing_exception", "reason": "unknown query [nope]", "line": 1, "col": 20,
            "caused_by": {"type": "named_object_not_found_exception", "reason": "[1:20] unknown field [nope]"}})),
    );
    check_error(
        r#"{"query": {"mach": {"title": "x"}}}"#,
        &plain(json!({"type": "parsing_exception", "reason": "unknown query [mach] did you mean [match]?",
            "line": 1, "col": 20,
            "caused_by": {"type": "named_object_not_found_exception", "reason": "[1:20] unknown field [mach]"}})),
    );
    check_error(
        r#"{"query": {"match_all": {}, "match_none": {}}}"#,
        &plain(json!({"type": "parsing_exception",
            "reason": "[match_all] malformed query, expected [END_OBJECT] but found [FIELD_NAME]",
            "line": 1, "col": 29})),
    );
    check_error(
        r#"{"query": {}}"#,
        &plain(json!({"type": "illegal_argument_exception",
            "reason": "query malformed, empty clause found at [1:12]"})),
    );
    check_error(
        r#"{"retriever": {"rfr": {"retrievers": []}}}"#,
        &plain(
            json!({"type": "parsing_exception", "reason": "unknown retriever [rfr]", "line": 1, "col": 23,
            "caused_by": {"type": "named_object_not_found_exception", "reason": "[1:23] unknown field [rfr]"}}),
        ),
    );
    let unknown = json!({"type": "parsing_exception", "reason": "unknown query [rank_featured] did you mean any of [rank_feature, distance_feature]?",
        "line": 1, "col": 50});
    check_error(
        r#"{"query": {"bool": {"should": [{"rank_featured": {"field": "v.alpha"}}]}}}"#,
        &json!({"root_cause": [unknown], "type": "x_content_parse_exception",
            "reason": "[1:50] [bool] failed to parse field [should]",
            "caused_by": {"type": "parsing_exception",
                "reason": "unknown query [rank_featured] did you mean any of [rank_feature, distance_feature]?",
                "line": 1, "col": 50,
                "caused_by": {"type": "named_object_not_found_exception",
                    "reason": "[1:50] unknown field [rank_featured]"}}}),
    );
}

#[test]
fn errors_of_sparse_queries_are_as_recorded() {
    let build = |col: u32| {
        plain(json!({"type": "parsing_exception",
            "reason": "Failed to build [sparse_vector] after last required field arrived",
            "line": 1, "col": col,
            "caused_by": {"type": "x_content_parse_exception",
                "reason": "Failed to build [sparse_vector] after last required field arrived",
                "caused_by": {"type": "illegal_argument_exception",
                    "reason": "[sparse_vector] requires one of [query_vector] or [inference_id] for sparse_vector fields"}}}))
    };
    check_error(
        r#"{"query": {"sparse_vector": {"field": "v", "query_vector": {"alpha": 2.5}, "inference_id": "x", "query": "y"}}}"#,
        &build(109),
    );
    check_error(r#"{"query": {"sparse_vector": {"field": "v"}}}"#, &build(42));
    check_error(
        r#"{"query": {"text_expansion": {"v": {"model_id": "m"}}}}"#,
        &plain(json!({"type": "parsing_exception", "reason": "No text specified for text query",
            "line": 1, "col": 53})),
    );
}

#[test]
fn wrong_keys_and_values_are_named() {
    for (text, kind, part) in [
        (
            r#"{"query": {"match": {"title": {"query": "x", "fuzzines": 1}}}}"#,
            "parsing_exception",
            "[match] query does not support [fuzzines]",
        ),
        (
            r#"{"query": {"match": {"a": "x", "b": "y"}}}"#,
            "parsing_exception",
            "[match] query doesn't support multiple fields, found [a] and [b]",
        ),
        (
            r#"{"query": {"match": {"a": ["x"]}}}"#,
            "parsing_exception",
            "[match] unknown token [START_ARRAY] after [a]",
        ),
        (r#"{"query": {"match": {"a": {}}}}"#, "parsing_exception", "No text specified for text query"),
        (
            r#"{"query": {"match": {"a": {"query": "x", "operator": "xor"}}}}"#,
            "illegal_argument_exception",
            "[xor]",
        ),
        (
            r#"{"query": {"match": "x"}}"#,
            "parsing_exception",
            "[match] query malformed, no start_object after query name",
        ),
        (
            r#"{"query": {"term": {"tag": ["a"]}}}"#,
            "parsing_exception",
            "[term] query does not support array of values",
        ),
        (r#"{"query": {"term": {"tag": null}}}"#, "illegal_argument_exception", "value cannot be null"),
        (
            r#"{"query": {"term": {"tag": {"valu": "a"}}}}"#,
            "parsing_exception",
            "[term] query does not support [valu]",
        ),
        (
            r#"{"query": {"terms": {"tag": "a"}}}"#,
            "parsing_exception",
            "[terms] query does not support [tag]",
        ),
        (
            r#"{"query": {"range": {"n": {"gte": 1, "gg": 2}}}}"#,
            "parsing_exception",
            "[range] query does not support [gg]",
        ),
        (r#"{"query": {"range": {"n": 5}}}"#, "parsing_exception", "[range] query does not support [n]"),
        (r#"{"query": {"exists": {}}}"#, "parsing_exception", "[exists] must be provided with a [field]"),
        (
            r#"{"query": {"ids": {"value": ["1"]}}}"#,
            "x_content_parse_exception",
            "[ids] unknown field [value] did you mean [values]?",
        ),
        (
            r#"{"query": {"bool": {"shoud": []}}}"#,
            "x_content_parse_exception",
            "[bool] unknown field [shoud] did you mean [should]?",
        ),
        (
            r#"{"query": {"bool": {"must": [{}]}}}"#,
            "x_content_parse_exception",
            "[bool] failed to parse field [must]",
        ),
        (
            r#"{"query": {"query_string": {}}}"#,
            "parsing_exception",
            "[query_string] must be provided with a [query]",
        ),
        (
            r#"{"query": {"query_string": {"query": "x", "default_op": "and"}}}"#,
            "parsing_exception",
            "[query_string] query does not support [default_op]",
        ),
        (
            r#"{"query": {"match_all": {"boost": -1}}}"#,
            "illegal_argument_exception",
            "negative [boost] are not allowed",
        ),
        (
            r#"{"query": {"match_all": {"bost": 1}}}"#,
            "x_content_parse_exception",
            "[match_all] unknown field [bost] did you mean [boost]?",
        ),
        (
            r#"{"query": {"text_expansion": {"v": {"model_text": "x"}}}}"#,
            "illegal_argument_exception",
            "[text_expansion] requires a model_id value",
        ),
        (
            r#"{"query": {"text_expansion": {"v": {"model_text": "x", "model_id": "m", "top_k": 1}}}}"#,
            "parsing_exception",
            "[text_expansion] query does not support [top_k]",
        ),
        (
            r#"{"query": {"sparse_vector": {"query_vector": {"a": 1}}}}"#,
            "illegal_argument_exception",
            "Required [field]",
        ),
        (
            r#"{"query": {"sparse_vector": {"field": "v", "query_vector": {"a": -1}}}}"#,
            "x_content_parse_exception",
            "weights must be positive numbers, got [-1.0] for token [a]",
        ),
        (
            r#"{"query": {"sparse_vector": {"field": "v", "query_vector": {"a": 0}}}}"#,
            "x_content_parse_exception",
            "got [0.0] for token [a]",
        ),
        (
            r#"{"query": {"sparse_vector": {"field": "v", "query_vector": {"a": "NaN"}}}}"#,
            "x_content_parse_exception",
            "For input string: ",
        ),
        (
            r#"{"query": {"sparse_vector": {"field": "v", "query_vector": {"a": 1e99}}}}"#,
            "x_content_parse_exception",
            "For input string: ",
        ),
        (
            r#"{"query": {"sparse_vector": {"field": "v", "query_vector": [1]}}}"#,
            "x_content_parse_exception",
            "query_vector doesn't support values of type: START_ARRAY",
        ),
        (
            r#"{"query": {"weighted_tokens": {"v": {"tokens": {"a": 1}, "pruning_config": {"tokens_freq_ratio_threshold": 0}}}}}"#,
            "illegal_argument_exception",
            "[tokens_freq_ratio_threshold] must be between [1] and [100], got 0.0",
        ),
        (
            r#"{"query": {"weighted_tokens": {"v": {"tokens": {"a": 1}, "pruning_config": {"tokens_weight_threshold": 2}}}}}"#,
            "illegal_argument_exception",
            "[tokens_weight_threshold] must be between 0 and 1",
        ),
        (
            r#"{"knn": {"field": "d", "query_vector": [1], "k": 0}}"#,
            "illegal_argument_exception",
            "[k] must be greater than 0",
        ),
        (
            r#"{"knn": {"field": "d", "query_vector": [1], "k": 5, "num_candidates": 4}}"#,
            "illegal_argument_exception",
            "[num_candidates] cannot be less than [k]",
        ),
        (
            r#"{"knn": {"field": "d", "query_vector": [1], "k": 5, "num_candidates": 10001}}"#,
            "illegal_argument_exception",
            "[num_candidates] cannot exceed [10000]",
        ),
        (
            r#"{"knn": {"field": "d", "k": 5}}"#,
            "illegal_argument_exception",
            "either [query_vector_builder] or [query_vector] must be provided",
        ),
        (
            r#"{"knn": {"field": "d", "query_vector": [1, null]}}"#,
            "x_content_parse_exception",
            "[knn] failed to parse field [query_vector]",
        ),
        (
            r#"{"knn": {"field": "d", "query_vectr": [1]}}"#,
            "x_content_parse_exception",
            "[knn] unknown field [query_vectr] did you mean any of [query_vector, query_vector_builder]?",
        ),
        (
            r#"{"query": {"knn": {"field": "d"}}}"#,
            "parsing_exception",
            "either [query_vector_builder] or [query_vector] must be provided",
        ),
        (r#"{"suggest": {"t": {"text": "tag"}}}"#, "parsing_exception", "missing suggestion object of [t]"),
        (
            r#"{"sort": [{"n": {"nested_path": "n"}}]}"#,
            "parsing_exception",
            "[nested_path] has been removed in favour of the [nested] parameter",
        ),
        (r#"{"sort": [{"n": "up"}]}"#, "illegal_argument_exception", "No enum constant"),
        (r#"{"sort": [{"n": {"mode": "best"}}]}"#, "x_content_parse_exception", "[mode]"),
        (r#"{"sort": [{"n": {"ordr": "asc"}}]}"#, "x_content_parse_exception", "did you mean [order]?"),
        (
            r#"{"sort": [{"_score": {"mode": "min"}}]}"#,
            "x_content_parse_exception",
            "[_score] unknown field [mode]",
        ),
        (r#"{"sort": [{"_script": {}}]}"#, "illegal_argument_exception", "Required [type]"),
        (r#"{"sort": [[1]]}"#, "illegal_argument_exception", "malformed sort format"),
        (r#"{"search_after": []}"#, "illegal_argument_exception", "Values must contains at least one value."),
        (r#"{"search_after": [{}]}"#, "parsing_exception", "found [START_OBJECT] inside search_after"),
        (r#"{"search_after": [1]}"#, "illegal_argument_exception", "Sort must contain at least one field."),
        (
            r#"{"sort": "n", "from": 1, "search_after": [1]}"#,
            "action_request_validation_exception",
            "[from] parameter must be set to 0 when [search_after] is used",
        ),
        (
            r#"{"slice": {"id": 0, "max": 2}}"#,
            "action_request_validation_exception",
            "[slice] can only be used with [scroll] or [point-in-time] requests",
        ),
        (r#"{"slice": {"id": 2, "max": 2}}"#, "illegal_argument_exception", "max must be greater than id"),
        (
            r#"{"slice": {"id": 0, "max": 1}}"#,
            "x_content_parse_exception",
            "[slice] failed to parse field [max]",
        ),
        (
            r#"{"sort": "n", "rescore": {"query": {"rescore_query": {"match_all": {}}}}}"#,
            "illegal_argument_exception",
            "Cannot use [sort] option in conjunction with [rescore].",
        ),
        (r#"{"rescore": {"window_size": 5}}"#, "parsing_exception", "missing rescore type"),
        (
            r#"{"rescore": {"learning_to_rank": {}}}"#,
            "parsing_exception",
            "unknown rescorer [learning_to_rank]",
        ),
        (
            r#"{"collapse": {"field": "n", "inner_hits": {}}}"#,
            "x_content_parse_exception",
            "[collapse] failed to parse field [inner_hits]",
        ),
        (r#"{"collapse": {}}"#, "illegal_argument_exception", "Required [field]"),
        (r#"{"pit": {}}"#, "illegal_argument_exception", "id is not provided"),
        (r#"{"terminate_after": -1}"#, "illegal_argument_exception", "terminateAfter must be > 0"),
        (
            r#"{"stored_fields": "_none_", "_source": true}"#,
            "action_request_validation_exception",
            "[stored_fields] cannot be disabled if [_source] is requested",
        ),
        (r#"{"fields": [1]}"#, "parsing_exception", "Expected [VALUE_STRING, START_OBJECT]"),
        (r#"{"script_fields": {"f": {}}}"#, "parsing_exception", "must have a [script]"),
        (
            r#"{"runtime_mappings": {}}"#,
            "parsing_exception",
            "[runtime_mappings] is not supported by this server",
        ),
        (r#"{"ext": {}}"#, "parsing_exception", "[ext] is not supported by this server"),
        (r#"{"sizes": 1}"#, "parsing_exception", "Unknown key for a VALUE_NUMBER in [sizes]."),
        (r#"{"query": null}"#, "parsing_exception", "Unknown key for a VALUE_NULL in [query]."),
        (
            r#"{"_source": 5}"#,
            "parsing_exception",
            "Expected one of [VALUE_BOOLEAN, VALUE_STRING, START_ARRAY, START_OBJECT] but found [VALUE_NUMBER]",
        ),
        (
            r#"{"_source": {"includ": "a"}}"#,
            "parsing_exception",
            "Unknown key for a VALUE_STRING in [includ].",
        ),
        (
            r#"{"track_total_hits": -5}"#,
            "illegal_argument_exception",
            "[track_total_hits] parameter must be positive or equals to -1, got -5",
        ),
        (r#"{"timeout": "5"}"#, "illegal_argument_exception", "unit is missing"),
        (r#"{"from": -1}"#, "illegal_argument_exception", "[from] parameter cannot be negative but was [-1]"),
        (
            r#"{"sub_searches": [{"query": {"match_all": {}}}, {"query": {"match_all": {}}}]}"#,
            "action_request_validation_exception",
            "Validation Failed: 1: [sub_searches] requires [rank];",
        ),
        (
            r#"{"query": {"match_all": {}}, "rank": {"rrf": {}}}"#,
            "action_request_validation_exception",
            "[rank] requires a minimum of [2] result sets using a combination of sub searches and/or knn searches",
        ),
        (
            r#"{"size": 0, "rank": {"rrf": {}}, "sub_searches": [{"query": {"match_all": {}}}, {"query": {"match_all": {}}}]}"#,
            "action_request_validation_exception",
            "[rank] requires [size] greater than [0]",
        ),
        (
            r#"{"rank": {"rrf": {"rank_window_size": 2}}, "sub_searches": [{"query": {"match_all": {}}}, {"query": {"match_all": {}}}]}"#,
            "action_request_validation_exception",
            "[rank] requires [rank_window_size: 2] be greater than or equal to [size: 10]",
        ),
        (
            r#"{"query": {"match_all": {}}, "sub_searches": [{"query": {"match_all": {}}}]}"#,
            "illegal_argument_exception",
            "field [sub_searches]",
        ),
        (
            r#"{"sub_searches": [{"qery": {}}]}"#,
            "x_content_parse_exception",
            "unknown field [qery] did you mean [query]?",
        ),
        (r#"{} {}"#, "parsing_exception", "Unexpected token [START_OBJECT] found after the main object."),
    ] {
        check_reason(text, kind, part);
    }
}

#[test]
fn a_query_may_not_nest_without_end() {
    let nested = |depth: usize| {
        let query = r#"{"bool":{"must":"#.repeat(depth) + r#"{"match_all":{}}"# + &"}}".repeat(depth);
        format!(r#"{{"query":{query}}}"#)
    };
    assert!(parse(&nested(30)).is_ok());
    check_reason(
        &nested(31),
        "x_content_parse_exception",
        "The nested depth of the query exceeds the maximum nested depth",
    );
}

#[test]
fn an_empty_body_asks_for_everything() {
    for text in ["", " \n", "{}"] {
        let body = parse(text).expect("valid");
        assert_eq!(body, SearchBody::default());
        assert_eq!((body.size, body.tracked_hits()), (10, TotalHits::UpTo(10_000)));
    }
}

#[test]
fn sections_of_a_body_are_read() {
    let body = parse(
        r#"{"from": 5, "size": "7", "min_score": 0.5, "track_total_hits": 3, "timeout": "2s", "version": true,
            "seq_no_primary_term": "true", "_source": {"includes": ["a"], "exclude": "b"}, "sort": ["_score"],
            "post_filter": {"term": {"tag": "a"}}, "stats": ["g"], "explain": false, "terminate_after": 0}"#,
    )
    .expect("valid");
    assert_eq!((body.from, body.size, body.min_score), (5, 7, Some(0.5)));
    assert_eq!(body.track_total_hits, Some(TotalHits::UpTo(3)));
    assert_eq!(body.timeout.map(|time| time.as_secs()), Some(2));
    assert!(body.version && body.seq_no_primary_term && body.post_filter.is_some());
    assert_eq!(body.source, SourceSelection::fields(vec!["a".into()], vec!["b".into()]).unwrap());
    for sort in [r#""_doc""#, r#"[{"_seq_no": "asc"}]"#, r#"{"_doc": {"order": "asc"}}"#] {
        let sort = parse(&format!(r#"{{"sort": {sort}}}"#)).expect("valid").sort;
        assert!(matches!(&sort, Sort::By(keys) if keys.len() == 1 && !keys[0].descending), "{sort:?}");
    }
    assert_eq!(parse(r#"{"_source": false}"#).expect("valid").source, SourceSelection::Nothing);
    let retriever = r#"{"retriever": {"standard": {"query": {"match_all": {"boost": 2}}}}}"#;
    assert_eq!(parse(retriever).expect("valid").query, Some(Query::match_all().with_boost(2.0)));
}

#[test]
fn the_documented_search_forms_are_read() {
    let body = parse(
        r#"{"query": {"bool": {"should": [
              {"text_expansion": {"ml.tokens": {"model_text": "How is the weather?",
                "model_id": ".sparse_encoder_model_2", "boost": 1}}},
              {"query_string": {"query": "toxins", "boost": 4}}]}},
            "min_score": 10}"#,
    )
    .expect("valid");
    let Some(QueryKind::Bool(clause)) = body.query.map(|query| query.kind) else { panic!("bool") };
    let QueryKind::TextExpansion(text) = &clause.should[0].kind else { panic!("text_expansion") };
    assert_eq!(
        (text.field.as_str(), text.model_id.as_str(), text.origin),
        ("ml.tokens", ".sparse_encoder_model_2", SparseOrigin::TextExpansion)
    );
    assert_eq!(text.pruning, Pruning::Off);
    assert_eq!(clause.should[1].boost, 4.0);

    let body = parse(
        r#"{"sub_searches": [
              {"query": {"match": {"my_text_field": "How is the weather?"}}},
              {"query": {"text_expansion": {"ml.tokens": {"model_id": "m", "model_text": "t"}}}}],
            "rank": {"rrf": {}}}"#,
    )
    .expect("valid");
    assert_eq!(body.sub_searches.len(), 2);
    assert!(body.rank.is_some());
}

#[test]
fn options_of_clauses_are_read() {
    let QueryKind::Match(clause) = query(
        r#"{"match": {"t": {"query": 5, "operator": "AND", "minimum_should_match": 2,
        "fuzziness": "AUTO", "prefix_length": 1, "max_expansions": 7, "lenient": true}}}"#,
    )
    .kind
    else {
        panic!("match")
    };
    assert_eq!((clause.text.as_str(), clause.operator), ("5", Operator::And));
    assert_eq!(clause.minimum_should_match.as_deref(), Some("2"));
    assert_eq!((clause.prefix_length, clause.max_expansions, clause.lenient), (1, 7, true));

    let named = query(r#"{"term": {"n": {"value": 12345678901, "boost": "2", "_name": "x"}}}"#);
    assert_eq!((named.boost, named.name.as_deref()), (2.0, Some("x")));
    assert_eq!(
        named.kind,
        QueryKind::Term(TermQuery {
            field: "n".into(),
            value: json!(12_345_678_901_i64),
            case_insensitive: false
        })
    );

    let QueryKind::Range(range) =
        query(r#"{"range": {"n": {"from": 1, "include_lower": false, "to": null, "lte": 9.5}}}"#).kind
    else {
        panic!("range")
    };
    assert_eq!((range.gt, range.gte, range.lte), (Some(json!(1)), None, Some(json!(9.5))));

    let QueryKind::Sparse(sparse) = query(
        r#"{"sparse_vector": {"field": "v", "query_vector": {"a.b": 1, "c": 2.5}, "prune": true,
            "pruning_config": {"tokens_freq_ratio_threshold": 2, "only_score_pruned_tokens": true}}}"#,
    )
    .kind
    else {
        panic!("sparse")
    };
    assert_eq!(sparse.tokens, [("a.b".into(), 1.0), ("c".into(), 2.5)]);
    let Pruning::On(Some(pruning)) = sparse.pruning else { panic!("pruning") };
    assert_eq!((pruning.tokens_freq_ratio_threshold, pruning.tokens_weight_threshold), (2.0, 0.4));
    assert!(pruning.only_score_pruned_tokens);
}

#[test]
fn pruning_is_switched_on_as_each_query_does_it() {
    let pruned = |text: &str| match query(text).kind {
        QueryKind::Sparse(clause) => matches!(clause.pruning, Pruning::On(_)),
        QueryKind::TextExpansion(clause) => matches!(clause.pruning, Pruning::On(_)),
        other => panic!("{other:?}"),
    };
    assert!(!pruned(r#"{"sparse_vector": {"field": "v", "query_vector": {"a": 1}, "pruning_config": {}}}"#));
    assert!(pruned(r#"{"sparse_vector": {"field": "v", "query_vector": {"a": 1}, "prune": true}}"#));
    let by_field =
        query(r#"{"sparse_vector": {"field": "v", "query_vector": {"a": 1}, "pruning_config": {}}}"#);
    assert!(
        matches!(by_field.kind, QueryKind::Sparse(clause) if matches!(clause.pruning, Pruning::ByField(Some(_))))
    );
    let off = query(r#"{"sparse_vector": {"field": "v", "query_vector": {"a": 1}, "prune": false}}"#);
    assert!(matches!(off.kind, QueryKind::Sparse(clause) if clause.pruning == Pruning::Off));
    assert!(pruned(
        r#"{"text_expansion": {"v": {"model_id": "m", "model_text": "t", "pruning_config": {}}}}"#
    ));
    assert!(pruned(r#"{"weighted_tokens": {"v": {"tokens": [{"a": 1}, {"b": 2}], "pruning_config": {}}}}"#));
    assert!(!pruned(r#"{"weighted_tokens": {"v": {"tokens": {"a": 1}}}}"#));
}

#[test]
fn knn_takes_its_defaults_from_the_request() {
    let body = parse(r#"{"knn": [{"field": "d", "query_vector": [1, "2"]}], "size": 25}"#).expect("valid");
    let QueryKind::Knn(knn) = &body.knn[0].query.kind else { panic!("knn") };
    assert_eq!((knn.k, knn.num_candidates, &knn.vector[..]), (25, 100, &[1.0, 2.0][..]));
    let text = r#"{"knn": {"field": "d", "k": 3, "num_candidates": 9, "similarity": 0.5, "boost": 2,
        "filter": {"term": {"tag": "a"}}, "rescore_vector": {"oversample": 2},
        "query_vector_builder": {"text_embedding": {"model_id": "m", "model_text": "t"}}}}"#;
    let builder = query(text);
    assert_eq!(builder.boost, 2.0);
    let QueryKind::KnnBuilder(clause) = builder.kind else { panic!("builder") };
    assert_eq!((clause.model_id.as_str(), clause.knn.k, clause.knn.filter.len()), ("m", 3, 1));
    assert_eq!(parse(&format!(r#"{{"query": {text}, "size": 0}}"#)).map(|body| body.size).ok(), Some(0));
}

#[test]
fn a_count_takes_a_query_only() {
    assert_eq!(parse_count(b"").expect("valid"), None);
    let count = parse_count(br#"{"query": {"match_all": {}}}"#).expect("valid");
    assert_eq!(count, Some(Query::match_all()));
    let error = EngineError::from(parse_count(br#"{"size": 1}"#).expect_err("size")).body();
    assert_eq!(
        error["error"],
        plain(json!({"type": "parsing_exception", "reason": "request does not support [size]",
            "line": 1, "col": 2}))
    );
}
