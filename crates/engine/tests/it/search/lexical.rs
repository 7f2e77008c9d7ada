//! Queries over text and features, from their JSON to their hits and errors.

use serde_json::{Value, json};

use super::common::{Node, assert_scores};

fn library() -> Node {
    let node = Node::start();
    node.create(
        "books",
        &json!({
            "title": {"type": "text", "fields": {"english": {"type": "text", "analyzer": "english"}}},
            "body": {"type": "text"},
            "tag": {"type": "keyword"},
            "n": {"type": "integer"},
            "need": {"type": "integer"},
            "day": {"type": "date"},
            "rank": {"type": "rank_feature"},
            "topics": {"type": "rank_features"},
            "v": {"type": "sparse_vector"},
        }),
    );
    node.load(
        "books",
        &[
            json!({"_id": "1", "title": "quick brown fox", "body": "the lazy dog", "tag": ["a", "b"], "n": 1, "need": 2,
                "day": "2024-01-01", "rank": 8, "topics": {"x": 4}}),
            json!({"_id": "2", "title": "brown quick dogs", "body": "jumps over", "tag": "B", "n": 5, "need": 1,
                "day": "2024-01-11", "rank": 2, "topics": {"x": 1}}),
            json!({"_id": "3", "title": "quicker foxes", "body": "brown", "tag": "c", "n": 9, "need": 3, "day": "2024-02-01"}),
            json!({"_id": "4", "title": "a very slow snail", "n": -1}),
        ],
    );
    node
}

fn found(node: &Node, query: &Value) -> String {
    let mut ids = node.ids("books", query);
    ids.sort();
    ids.join(" ")
}

#[test]
fn every_form_of_a_query_is_read() {
    let node = library();
    let wrapped = "eyJ0ZXJtIjogeyJ0YWciOiAiYyJ9fQ==";
    for (query, expected) in [
        (json!({"match": {"title": {"query": "quick fox", "minimum_should_match": "1<50%"}}}), "1 2"),
        (json!({"match": {"title": {"query": "quikc", "fuzziness": "AUTO:2,6"}}}), "1 2"),
        (json!({"match": {"title": {"query": "quikc", "fuzziness": 1, "fuzzy_transpositions": false}}}), ""),
        (
            json!({"match": {"title": {"query": "quikc", "fuzziness": 1, "fuzzy_rewrite": "constant_score"}}}),
            "1 2",
        ),
        (json!({"match": {"title": {"query": "...", "zero_terms_query": "all"}}}), "1 2 3 4"),
        (
            json!({"match": {"title.english": {"query": "dog", "auto_generate_synonyms_phrase_query": false}}}),
            "2",
        ),
        (json!({"match": {"n": {"query": "x", "lenient": true}}}), ""),
        (json!({"match_phrase": {"title": "brown quick"}}), "2"),
        (json!({"match_phrase": {"title": {"query": "quick fox", "slop": 1}}}), "1"),
        (json!({"match_phrase": {"title": {"query": "quick brown", "slop": 2}}}), "1 2"),
        (json!({"match_phrase_prefix": {"title": "quick br"}}), "1"),
        (json!({"match_phrase_prefix": {"title": "qui"}}), "1 2 3"),
        (json!({"match_phrase_prefix": {"title": {"query": "qui", "max_expansions": 1}}}), "1 2"),
        (json!({"match_phrase_prefix": {"title": {"query": "fox qu", "slop": 2}}}), ""),
        (json!({"match_bool_prefix": {"title": "slow fo"}}), "1 3 4"),
        (json!({"match_bool_prefix": {"title": {"query": "quick fo", "operator": "and"}}}), "1"),
        (
            json!({"multi_match": {"query": "brown", "fields": ["title", "b*^2"], "type": "most_fields"}}),
            "1 2 3",
        ),
        (
            json!({"multi_match": {"query": "quick lazy", "fields": ["title", "body"], "type": "cross_fields", "operator": "and"}}),
            "1",
        ),
        (json!({"multi_match": {"query": "lazy dog", "fields": ["title", "body"], "type": "phrase"}}), "1"),
        (
            json!({"multi_match": {"query": "jumps ov", "fields": ["title", "body"], "type": "phrase_prefix"}}),
            "2",
        ),
        (
            json!({"multi_match": {"query": "jumps ov", "fields": ["title", "body"], "type": "bool_prefix"}}),
            "2",
        ),
        (json!({"multi_match": {"query": 5}}), "2"),
        (
            json!({"combined_fields": {"query": "quick lazy", "fields": ["title^2", "body"], "operator": "and"}}),
            "1",
        ),
        (json!({"term": {"tag": {"value": "b", "case_insensitive": true, "boost": 2, "_name": "x"}}}), "1 2"),
        (json!({"terms": {"tag": {"index": "books", "id": "1", "path": "tag"}}}), "1"),
        (json!({"terms": {"n": {"index": "books", "id": "3", "path": "n", "routing": "r"}}}), "3"),
        (json!({"terms": {"tag": {"index": "books", "id": "none", "path": "tag"}}}), ""),
        (
            json!({"terms_set": {"tag": {"terms": ["a", "b", "B"], "minimum_should_match_field": "need"}}}),
            "1 2",
        ),
        (json!({"terms_set": {"tag": {"terms": ["a", "b"], "minimum_should_match": "100%"}}}), "1"),
        (json!({"range": {"day": {"gte": "2024-01||/M", "lt": "2024-01-11", "relation": "within"}}}), "1"),
        (json!({"prefix": {"title": {"value": "QUICKE", "case_insensitive": true}}}), "3"),
        (json!({"prefix": {"title": {"value": "qui", "rewrite": "top_terms_1"}}}), "1 2"),
        (json!({"wildcard": {"title": {"wildcard": "f*x", "rewrite": "scoring_boolean"}}}), "1"),
        (
            json!({"regexp": {"title": {"value": "fox(es)?", "flags": "ALL", "max_determinized_states": 100}}}),
            "1 3",
        ),
        (
            json!({"regexp": {"title": {"value": "~(f.*|q.*)&[bd].+", "flags": "INTERSECTION|COMPLEMENT"}}}),
            "1 2",
        ),
        (json!({"regexp": {"title": {"value": "FOX", "case_insensitive": true, "flags_value": 255}}}), "1"),
        (
            json!({"fuzzy": {"title": {"value": "fxo", "transpositions": true, "rewrite": "constant_score"}}}),
            "1",
        ),
        (json!({"fuzzy": {"title": {"value": "fxo", "fuzziness": 1, "transpositions": false}}}), ""),
        (
            json!({"boosting": {"positive": {"match_all": {}}, "negative": {"term": {"tag": "a"}}, "negative_boost": 0.5}}),
            "1 2 3 4",
        ),
        (
            json!({"function_score": {"query": {"term": {"tag": "c"}}, "random_score": {"seed": 10, "field": "_seq_no"}}}),
            "3",
        ),
        (json!({"function_score": {"linear": {"n": {"origin": 0, "scale": 2}}, "min_score": 0.5}}), "1 4"),
        (json!({"rank_feature": {"field": "rank"}}), "1 2"),
        (json!({"rank_feature": {"field": "topics.x", "linear": {}}}), "1 2"),
        (json!({"distance_feature": {"field": "day", "origin": "now", "pivot": "7d"}}), "1 2 3"),
        (json!({"wrapper": {"query": wrapped}}), "3"),
        (json!({"nested": {"path": "p", "query": {"match_all": {}}, "ignore_unmapped": true}}), ""),
        (json!({"query_string": {"query": "title:(quick AND -dogs) body:lazy^2"}}), "1"),
        (json!({"query_string": {"query": "\"lazy dog\"~1 | n:>=9", "default_field": "body"}}), "1 3"),
        (
            json!({"query_string": {"query": "quick lazy", "fields": ["title", "body"], "type": "cross_fields", "default_operator": "AND"}}),
            "1",
        ),
        (json!({"query_string": {"query": "fox~1 day:[2024-02-01 TO *}", "default_field": "title"}}), "1 3"),
        (
            json!({"query_string": {"query": "\"dog\"", "fields": ["title"], "quote_field_suffix": ".english"}}),
            "2",
        ),
        (json!({"query_string": {"query": "title:/f[o]x(es)?/ OR _exists_:nope"}}), "1 3"),
        (json!({"query_string": {"query": "t*.english:dog"}}), "2"),
        (
            json!({"query_string": {"query": "dogs*", "default_field": "title.english", "analyze_wildcard": true}}),
            "2",
        ),
        (json!({"simple_query_string": {"query": "\"quick brown\" | snail", "fields": ["title"]}}), "1 4"),
        (json!({"simple_query_string": {"query": "quick + -dogs", "fields": ["title"]}}), "1"),
        (
            json!({"simple_query_string": {"query": "brwn~1 fo*", "fields": ["title^2", "body"], "default_operator": "and"}}),
            "1 3",
        ),
        (json!({"simple_query_string": {"query": "((\"+|-", "fields": ["title"]}}), ""),
        (json!({"simple_query_string": {"query": "snail|x", "fields": ["title"], "flags": "NONE"}}), "4"),
        (json!({"simple_query_string": {"query": "snail"}}), "4"),
        (json!({"match_all": {"boost": 2}}), "1 2 3 4"),
        (json!({"match_phrase_prefix": {"nope": "x"}}), ""),
        (json!({"regexp": {"nope": "x"}}), ""),
    ] {
        assert_eq!(found(&node, &query), expected, "{query}");
    }
}

#[test]
fn scores_are_what_the_functions_say() {
    let node = library();
    let tagged = json!({"constant_score": {"filter": {"exists": {"field": "need"}}}});
    for (query, expected) in [
        (
            json!({"function_score": {"query": tagged, "field_value_factor": {"field": "n", "factor": 2, "modifier": "square"}}}),
            &[("3", 324.0), ("2", 100.0), ("1", 4.0)][..],
        ),
        (
            json!({"function_score": {"query": tagged, "boost": 2, "score_mode": "sum", "boost_mode": "sum", "functions": [
                {"filter": {"term": {"tag": "a"}}, "weight": 3},
                {"weight": 5, "exp": {"day": {"origin": "2024-01-01", "scale": "10d", "offset": "0d", "decay": 0.5}}},
            ]}}),
            &[("1", 10.0), ("2", 4.5), ("3", 2.0 + 5.0 * 0.5_f64.powf(3.1))],
        ),
        (
            json!({"boosting": {"positive": tagged, "negative": {"terms": {"tag": ["a", "B"]}}, "negative_boost": 0.25}}),
            &[("3", 1.0), ("1", 0.25), ("2", 0.25)],
        ),
        (
            json!({"rank_feature": {"field": "rank", "saturation": {"pivot": 8}, "boost": 2}}),
            &[("1", 1.0), ("2", 0.4)],
        ),
        (
            json!({"rank_feature": {"field": "topics.x", "log": {"scaling_factor": 1}}}),
            &[("1", 5.0_f64.ln()), ("2", 2.0_f64.ln())],
        ),
        (
            json!({"bool": {"filter": tagged, "should": [{"rank_feature": {"field": "topics.x", "linear": {}}}]}}),
            &[("1", 4.0), ("2", 1.0), ("3", 0.0)],
        ),
        (
            json!({"distance_feature": {"field": "day", "origin": "2024-01-11", "pivot": "10d"}}),
            &[("2", 1.0), ("1", 0.5), ("3", 10.0 / 31.0)],
        ),
        (json!({"terms_set": {"tag": {"terms": ["c"], "minimum_should_match_field": "n", "boost": 0}}}), &[]),
    ] {
        assert_scores(&node.scores("books", &query), expected);
    }
}

#[test]
fn names_are_reported_below_compound_queries() {
    let node = library();
    let answer = node.search(
        "books",
        &json!({"query": {"function_score": {
            "query": {"boosting": {
                "positive": {"match": {"title": {"query": "quick", "_name": "positive"}}},
                "negative": {"term": {"tag": {"value": "a", "_name": "negative"}}},
                "negative_boost": 0.5,
            }},
            "functions": [{"filter": {"terms": {"tag": ["a"], "_name": "filter"}}, "weight": 9}],
        }}}),
    );
    assert_eq!(
        answer["hits"]["hits"][0]["matched_queries"],
        json!(["positive", "negative", "filter"]),
        "{answer}"
    );
    assert_eq!(answer["hits"]["hits"][1]["matched_queries"], json!(["positive"]));
}

#[test]
fn malformed_queries_are_refused_in_elasticsearchs_words() {
    let node = library();
    for (query, kind, reason) in [
        (
            json!({"match": {"title": {"query": "x", "cutoff_frequency": 1}}}),
            "parsing_exception",
            "[match] query does not support [cutoff_frequency]",
        ),
        (
            json!({"match": {"title": {"query": ["x"]}}}),
            "parsing_exception",
            "[match] unknown token [START_ARRAY] after [query]",
        ),
        (
            json!({"match": {"a": "x", "b": "y"}}),
            "parsing_exception",
            "[match] query doesn't support multiple fields, found [a] and [b]",
        ),
        (
            json!({"match": {"title": {"query": "x", "fuzzy_rewrite": "nope"}}}),
            "illegal_argument_exception",
            "Failed to parse rewrite_method [nope]",
        ),
        (
            json!({"match": "x"}),
            "parsing_exception",
            "[match] query malformed, no start_object after query name",
        ),
        (
            json!({"match_phrase": {"title": {"query": "x", "slop": -1}}}),
            "illegal_argument_exception",
            "No negative slop allowed",
        ),
        (
            json!({"match_phrase_prefix": {"title": {"query": "x", "fuzziness": 1}}}),
            "parsing_exception",
            "[match_phrase_prefix] query does not support [fuzziness]",
        ),
        (
            json!({"match_phrase_prefix": {"tag": "x"}}),
            "query_shard_exception",
            "Can only use phrase prefix queries on text fields - not on [tag] which is of type [keyword]",
        ),
        (
            json!({"match_bool_prefix": {"title": {"query": "x", "lenient": true}}}),
            "parsing_exception",
            "[match_bool_prefix] query does not support [lenient]",
        ),
        (
            json!({"multi_match": {"query": "x", "fields": ["title"], "type": "nope"}}),
            "parse_exception",
            "failed to parse [multi_match] query type [nope]. unknown type.",
        ),
        (
            json!({"multi_match": {"query": "x", "fields": ["title"], "type": "phrase", "fuzziness": 1}}),
            "parsing_exception",
            "Fuzziness not allowed for type [phrase]",
        ),
        (
            json!({"combined_fields": {"query": "x", "fields": ["title^0.5"]}}),
            "illegal_argument_exception",
            "field boosts to be >= 1.0",
        ),
        (
            json!({"combined_fields": {"query": "x", "fields": ["tag"]}}),
            "illegal_argument_exception",
            "does not support [combined_fields] queries",
        ),
        (
            json!({"combined_fields": {"query": "x", "fields": ["title", "title.english"]}}),
            "illegal_argument_exception",
            "must have the same search analyzer",
        ),
        (
            json!({"term": {"tag": {"value": "x"}, "b": "y"}}),
            "parsing_exception",
            "[term] query doesn't support multiple fields, found [tag] and [b]",
        ),
        (
            json!({"term": {"tag": ["x"]}}),
            "parsing_exception",
            "[term] query does not support array of values",
        ),
        (
            json!({"terms": {"tag": {"index": "books", "id": "1"}}}),
            "illegal_argument_exception",
            "Required [path]",
        ),
        (
            json!({"terms": {"tag": {"index": "none", "id": "1", "path": "x"}}}),
            "index_not_found_exception",
            "no such index [none]",
        ),
        (
            json!({"terms_set": {"tag": {"terms": ["x"]}}}),
            "illegal_argument_exception",
            "No minimum should match has been specified",
        ),
        (
            json!({"terms_set": {"tag": {"terms": ["x"], "minimum_should_match_script": {}}}}),
            "illegal_argument_exception",
            "must specify either [source] for an inline script",
        ),
        (
            json!({"terms_set": {"tag": {"terms": ["x"], "minimum_should_match_field": "nope"}}}),
            "query_shard_exception",
            "failed to find minimum_should_match field [nope]",
        ),
        (
            json!({"wildcard": {"n": "1*"}}),
            "query_shard_exception",
            "Can only use wildcard queries on keyword, text and wildcard fields - not on [n] which is of type [integer]",
        ),
        (
            json!({"regexp": {"tag": "(a"}}),
            "query_shard_exception",
            "failed to create query: expected ')' at position 2",
        ),
        (
            json!({"regexp": {"tag": {"value": "a", "flags": "NOPE"}}}),
            "illegal_argument_exception",
            "Unknown regexp flag [NOPE]",
        ),
        (
            json!({"regexp": {"tag": "[ac]*a[ac]{50,200}"}}),
            "query_shard_exception",
            "would require more than 10000 effort",
        ),
        (json!({"fuzzy": {"title": {"value": "x", "fuzziness": "3"}}}), "query_shard_exception", "fuzziness"),
        (
            json!({"boosting": {"positive": {"match_all": {}}, "negative": {"match_all": {}}}}),
            "parsing_exception",
            "negative_boost",
        ),
        (
            json!({"boosting": {"negative": {"match_all": {}}, "negative_boost": 1}}),
            "parsing_exception",
            "[boosting] query requires 'positive' query to be set'",
        ),
        (
            json!({"function_score": {"script_score": {}}}),
            "parsing_exception",
            "script_score requires 'script' field",
        ),
        (
            json!({"function_score": {"functions": [{"filter": {"match_all": {}}}]}}),
            "parsing_exception",
            "an entry in functions list is missing a function.",
        ),
        (
            json!({"function_score": {"weight": 1, "functions": []}}),
            "parsing_exception",
            "already found [functions]",
        ),
        (
            json!({"function_score": {"score_mode": "nope"}}),
            "illegal_argument_exception",
            "FunctionScoreQuery.ScoreMode.NOPE",
        ),
        (json!({"function_score": {"nope": {}}}), "parsing_exception", "unknown function [nope]"),
        (
            json!({"function_score": {"gauss": {"n": {"origin": 1, "scale": 0}}}}),
            "query_shard_exception",
            "scale must be > 0.0.",
        ),
        (
            json!({"function_score": {"gauss": {"day": {"scale": 5}}}}),
            "query_shard_exception",
            "as a time value",
        ),
        (
            json!({"function_score": {"gauss": {"title": {"scale": 5}}}}),
            "query_shard_exception",
            "is of type [text], but only numeric, date and geo_point types are supported.",
        ),
        (
            json!({"function_score": {"field_value_factor": {"field": "n"}}}),
            "illegal_argument_exception",
            "must not produce negative scores",
        ),
        (
            json!({"function_score": {"field_value_factor": {"field": "rank2"}}}),
            "query_shard_exception",
            "Unable to find a field mapper for field [rank2]",
        ),
        (
            json!({"rank_feature": {"field": "n"}}),
            "query_shard_exception",
            "[rank_feature] query only works on [rank_feature] fields and [rank_features] features, not [integer]",
        ),
        (json!({"rank_feature": {"linear": {}}}), "illegal_argument_exception", "Required [field]"),
        (
            json!({"rank_feature": {"field": "rank", "log": {}}}),
            "illegal_argument_exception",
            "Required [scaling_factor]",
        ),
        (
            json!({"rank_feature": {"field": "rank", "sigmoid": {"pivot": 0, "exponent": 1}}}),
            "illegal_argument_exception",
            "pivot must be > 0, got: 0.0",
        ),
        (
            json!({"distance_feature": {"field": "n", "origin": 1, "pivot": "1d"}}),
            "query_shard_exception",
            "Illegal data type of [integer]![distance_feature]",
        ),
        (
            json!({"nested": {"path": "p", "query": {"match_all": {}}}}),
            "query_shard_exception",
            "[nested] failed to find nested object under path [p]",
        ),
        (json!({"wrapper": {"query": "???"}}), "parsing_exception", "[wrapper] query malformed"),
        (json!({"geo_shape": {}}), "parsing_exception", "[geo_shape] query is not supported by Sparrow"),
        (json!({"script": {}}), "parsing_exception", "script must be provided with a [script] filter"),
        (json!({"functoin_score": {}}), "parsing_exception", "unknown query [functoin_score] did you mean"),
        (
            json!({"simple_query_string": {"query": "x", "nope": 1}}),
            "parsing_exception",
            "[simple_query_string] unsupported field [nope]",
        ),
        (json!({"simple_query_string": {}}), "parsing_exception", "[simple_query_string] query text missing"),
        (
            json!({"simple_query_string": {"query": "x", "flags": "NOPE"}}),
            "illegal_argument_exception",
            "Unknown simple_query_string flag [NOPE]",
        ),
        (
            json!({"query_string": {"query": "x", "type": "nope"}}),
            "parse_exception",
            "failed to parse [query_string] query type [nope]. unknown type.",
        ),
        (json!({"query_string": {"query": "tag:/(/"}}), "query_shard_exception", "failed to create query: "),
    ] {
        let error = node.search_error("books", &json!({"query": query}));
        assert_eq!(error["status"].as_u64().map(|status| status / 100), Some(4), "{query}: {error}");
        let text = error["error"].to_string();
        let root = &error["error"]["root_cause"][0];
        assert!(
            root["reason"].as_str().is_some_and(|found| found.contains(reason))
                || error["error"]["caused_by"]["reason"].as_str().is_some_and(|found| found.contains(reason)),
            "{query}: {reason} is not in {text}"
        );
        assert!(text.contains(&format!("\"type\":\"{kind}\"")), "{query}: {kind} is not in {text}");
    }
}

#[test]
fn hostile_queries_end() {
    let node = library();
    let deep = "(".repeat(5000) + "a" + &")".repeat(5000);
    for query in [
        json!({"regexp": {"title": "(a+)+(b+)+c|".repeat(80) + "x"}}),
        json!({"regexp": {"title": {"value": "~".repeat(900)}}}),
        json!({"regexp": {"title": {"value": "(a{0,1000}){0,1000}"}}}),
        json!({"simple_query_string": {"query": deep, "fields": ["title"]}}),
        json!({"query_string": {"query": deep}}),
        json!({"wildcard": {"title": "*a".repeat(500)}}),
        json!({"match": {"title": {"query": "a b ".repeat(500), "fuzziness": "AUTO"}}}),
        json!({"match_phrase": {"title": {"query": "a ".repeat(500), "slop": 2_000_000_000}}}),
        json!({"prefix": {"title": {"value": "", "rewrite": "top_terms_99999999999"}}}),
    ] {
        let bytes = json!({"query": query}).to_string().into_bytes();
        if let Err(error) = node.run("search", &[("index", "books")], &[], &bytes) {
            assert_eq!(error.status() / 100, 4, "{query}: {}", error.body());
        }
    }
}

#[test]
fn words_stand_where_intervals_say() {
    let node = Node::start();
    node.create("test", &json!({"text": {"type": "text"}, "stem": {"type": "text", "analyzer": "english"}, "k": {"type": "keyword"}}));
    node.load(
        "test",
        &[
            json!({"text": "Some like it hot, some like it cold", "stem": "running horses"}),
            json!({"text": "Its cold outside, theres no kind of atmosphere"}),
            json!({"text": "Baby its cold there outside"}),
            json!({"text": "Outside it is cold and wet"}),
            json!({"text": "cold rain outside cold wet"}),
        ],
    );
    let found = |rule: Value| {
        let mut ids = node.ids("test", &json!({"intervals": {"text": rule}}));
        ids.sort();
        ids
    };
    let text = |query: &str| json!({"match": {"query": query}});
    let with = |query: &str, gaps: i64, ordered: bool| json!({"match": {"query": query, "max_gaps": gaps, "ordered": ordered}});
    for (rule, expected) in [
        (text("cold outside"), &["2", "3", "4", "5"][..]),
        (with("cold outside", -1, true), &["2", "3", "5"]),
        (with("cold outside", 1, true), &["2", "3", "5"]),
        (with("cold outside", 0, true), &["2"]),
        (with("cold outside", 0, false), &["2", "5"]),
        (with("outside cold", 2, true), &["4", "5"]),
        (text("nowhere"), &[]),
        (json!({"prefix": {"prefix": "out"}}), &["2", "3", "4", "5"]),
        (json!({"wildcard": {"pattern": "?t*"}}), &["1", "2", "3", "4"]),
        (json!({"regexp": {"pattern": "o.t[a-z]*e"}}), &["2", "3", "4", "5"]),
        (json!({"range": {"gte": "ra", "lt": "some"}}), &["5"]),
        (json!({"range": {"gt": "theres", "lte": "WET"}}), &["4", "5"]),
        (json!({"fuzzy": {"term": "atmosfere", "fuzziness": 2}}), &["2"]),
        (json!({"any_of": {"intervals": [text("hot"), text("wet")]}}), &["1", "4", "5"]),
        (
            json!({"all_of": {"ordered": true, "max_gaps": 0, "intervals": [text("its"), {"any_of": {"intervals": [text("cold"), text("hot")]}}]}}),
            &["2", "3"],
        ),
        (
            json!({"all_of": {"intervals": [text("cold"), text("outside")], "filter": {"containing": text("there")}}}),
            &["3"],
        ),
        (
            json!({"all_of": {"intervals": [text("cold"), text("outside")], "filter": {"not_containing": text("is")}}}),
            &["2", "3", "5"],
        ),
        (json!({"match": {"query": "cold", "filter": {"before": text("outside")}}}), &["2", "3", "5"]),
        (json!({"match": {"query": "cold", "filter": {"after": text("outside")}}}), &["4", "5"]),
        (json!({"match": {"query": "it", "filter": {"contained_by": with("some hot", -1, true)}}}), &["1"]),
        (json!({"match": {"query": "hors", "use_field": "stem", "analyzer": "keyword"}}), &["1"]),
    ] {
        assert_eq!(found(rule.clone()), expected, "{rule}");
    }
    // An interval as short as can be counts 1, one with a word more ½: 1 / 2 and ½ / 1½.
    let scored =
        json!({"intervals": {"text": {"match": {"query": "cold outside", "ordered": true}, "boost": 2}}});
    let scores = node.scores("test", &scored);
    assert_eq!((scores[0].0.as_str(), scores[0].1), ("2", 1.0));
    assert!((scores[1].1 - 2.0 / 3.0).abs() < 1e-6);
    let shown = node.search("test", &json!({"query": {"intervals": {"text": with("its cold", 0, true)}}, "highlight": {"fields": {"text": {}}}}));
    assert_eq!(
        shown["hits"]["hits"][0]["highlight"]["text"][0],
        "<em>Its</em> <em>cold</em> outside, theres no kind of atmosphere"
    );
    for (body, reason) in [
        (json!({"text": {}}), "Missing intervals from interval query definition"),
        (
            json!({"text": {"nothing": {}}}),
            "Unknown interval type [nothing], expecting one of [match, any_of, all_of, prefix, wildcard, regexp, fuzzy, range]",
        ),
        (json!({"text": {"regexp": {"pattern": "("}}}), "unexpected end-of-string"),
        (json!({"text": {"range": {"gt": "a"}}}), "Either [lte] or [lt], one of them must be provided"),
        (
            json!({"text": {"range": {"gt": "a", "gte": "a", "lt": "b"}}}),
            "Either [gte] or [gt], one of them must be provided",
        ),
        (json!({"text": {"match": {}}}), "Required [query]"),
        (json!({"text": {"all_of": {}}}), "Required [intervals]"),
        (json!({"text": {"match": {"query": "x", "gaps": 1}}}), "[match] unknown field [gaps]"),
        (
            json!({"text": {"match": {"query": "x"}, "any_of": {}}}),
            "Only one interval rule can be specified, found [match] and [any_of]",
        ),
        (
            json!({"text": {"match": {"query": "x", "filter": {"script": {}}}}}),
            "[script] in [filter] of [intervals]",
        ),
        (
            json!({"text": {"match": {"query": "x", "filter": {"near": {}}}}}),
            "filter type [near] not supported",
        ),
        (
            json!({"k": {"match": {"query": "x"}}}),
            "Cannot create intervals over field [k] with no positions indexed",
        ),
    ] {
        let error = node.search_error("test", &json!({"query": {"intervals": body}})).to_string();
        assert!(error.contains(reason), "{error} is not {reason}");
    }
}

#[test]
fn each_of_equal_intervals_is_one_of_its_own() {
    let node = Node::start();
    node.create("test", &json!({"text": {"type": "text"}}));
    let texts = ["x a b", "y a a", "q b", "a x a", "a b x a"];
    node.load("test", &texts.map(|text| json!({"text": text})));
    let found = |rule: Value| {
        let mut ids = node.ids("test", &json!({"intervals": {"text": rule}}));
        ids.sort();
        ids
    };
    let rule = |query: &str, gaps: i64, ordered: bool| json!({"match": {"query": query, "max_gaps": gaps, "ordered": ordered}});
    let one = json!({"match": {"query": "a"}});
    for (rule, expected) in [
        (rule("a a", -1, false), &["2", "4", "5"][..]),
        (rule("a a", 0, false), &["2"]),
        (rule("a a", 1, true), &["2", "4"]),
        (rule("a b a", -1, false), &["5"]),
        (rule("a a a", -1, false), &[]),
        (rule("a b a", 0, false), &[]),
        (rule("a x a", 0, true), &["4"]),
        (rule("a a x", 0, false), &["4"]),
        (rule("a a b", 0, false), &[]),
        (rule("a a b", 1, false), &["5"]),
        (json!({"all_of": {"max_gaps": 0, "intervals": [rule("a b", -1, true)]}}), &["1", "5"]),
        (
            json!({"all_of": {"intervals": [one, {"all_of": {"intervals": [one, {"match": {"query": "x"}}]}}]}}),
            &["4", "5"],
        ),
        (json!({"all_of": {"intervals": [one, one]}}), &["2", "4", "5"]),
        (json!({"all_of": {"intervals": [one, {"match": {"query": "x"}}, one]}}), &["4", "5"]),
    ] {
        assert_eq!(found(rule.clone()), expected, "{rule}");
    }
    // As in Lucene, a word that is repeated counts once in the shortest interval, ½ / 1½, but for a phrase, 1 / 2.
    for (gaps, expected) in [(-1, 1.0 / 3.0), (0, 0.5)] {
        let scores = node.scores("test", &json!({"intervals": {"text": rule("a a", gaps, true)}}));
        assert!((scores[0].1 - expected).abs() < 1e-6, "{scores:?}");
    }
}

#[test]
fn shingles_beside_words_are_no_paths_through_a_text() {
    let node = Node::start();
    let analysis = json!({
        "filter": {"pairs": {"type": "shingle", "output_unigrams": true}},
        "analyzer": {"pairs": {"tokenizer": "whitespace", "filter": ["pairs"]}},
    });
    let mappings = json!({"properties": {"text": {"type": "text", "analyzer": "pairs"}}});
    let body = json!({"settings": {"analysis": analysis}, "mappings": mappings});
    node.ok("create_index", &[("index", "test")], &[], &body);
    let words: Vec<String> = (0..40).map(|number| format!("w{number}")).collect();
    node.load(
        "test",
        &[json!({"text": words.join(" ")}), json!({"text": "a c b a"}), json!({"text": "a c b b"})],
    );
    let phrase = |text: &str| node.ids("test", &json!({"match_phrase": {"text": text}}));
    assert_eq!(phrase(&words[5..35].join(" ")), ["1"]);
    assert_eq!(phrase("a c b b"), ["3"]);
    assert_eq!(phrase("w3 w5"), [""; 0]);
}

#[test]
fn the_best_field_may_be_a_number_a_date_or_the_name_of_the_index() {
    let node = Node::start();
    let text = json!({"type": "text"});
    node.create(
        "test",
        &json!({"text": text, "title": text, "kind": {"type": "keyword"}, "n": {"type": "integer"}, "day": {"type": "date"}}),
    );
    node.load(
        "test",
        &[
            json!({"text": "a b", "title": "7", "n": 1, "day": "2024-01-01"}),
            json!({"text": "c", "title": "d", "kind": "b", "n": 7, "day": "2024-01-02"}),
            json!({"text": "b c", "n": 2}),
        ],
    );
    let sorted = |query: Value| {
        let mut ids = node.ids("test", &query);
        ids.sort();
        ids
    };
    let best = |text: &str| json!({"multi_match": {"query": text, "fields": ["*"]}});
    assert_eq!(sorted(best("7")), ["1", "2"]);
    assert_eq!(sorted(best("a b")), ["1", "3"]);
    assert_eq!(sorted(best("b")), ["1", "2", "3"]);
    assert_eq!(sorted(best("2024-01-02")), ["2"]);
    assert_eq!(sorted(best("nowhere")), [""; 0]);
    let number = node.scores("test", &best("7")).into_iter().find(|(id, _)| id == "2");
    assert_eq!(number, Some(("2".to_owned(), 1.0)));
    let words = json!({"match": {"text": "a b"}});
    let named = |name: &str| json!({"match": {"_index": name}});
    assert_eq!(sorted(json!({"bool": {"should": [words, named("test")]}})), ["1", "2", "3"]);
    assert_eq!(sorted(json!({"bool": {"should": [words, named("other")]}})), ["1", "3"]);
    let alone = node.scores("test", &words);
    let with_name = node.scores("test", &json!({"bool": {"must": [words], "should": [named("test")]}}));
    for ((id, score), (other, more)) in alone.iter().zip(&with_name) {
        assert_eq!(id, other);
        assert!((score + 1.0 - more).abs() < 1e-6, "{alone:?} {with_name:?}");
    }
    let dis_max = json!({"dis_max": {"queries": [named("test"), {"match": {"title": "d"}}]}});
    assert_eq!(sorted(dis_max), ["1", "2", "3"]);
}
