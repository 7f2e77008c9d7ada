//! Sorts, `search_after`, scrolls, points in time, collapsed and rescored hits, as requests ask for them.

use serde_json::{Value, json};

use super::common::{Node, ids};

fn books() -> Node {
    let node = Node::start();
    node.create(
        "books",
        &json!({
            "tag": {"type": "keyword"}, "n": {"type": "integer"}, "big": {"type": "long"},
            "f": {"type": "float"}, "d": {"type": "date"}, "b": {"type": "boolean"},
            "u": {"type": "unsigned_long"}, "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
        }),
    );
    node.load(
        "books",
        &[
            json!({"tag": "b", "n": 3, "big": 9_007_199_254_740_993_i64, "f": 1.1, "d": "2024-01-02", "b": true, "title": "one two"}),
            json!({"tag": "a", "n": 1, "d": "2024-01-01T10:00:00Z", "b": false, "u": 18_446_744_073_709_551_615_u64, "title": "two"}),
            json!({"tag": ["c", "a"], "n": [7, 2, 3], "f": 2.5, "title": "three"}),
            json!({"title": "four two two"}),
        ],
    );
    node
}

fn sorts(answer: &Value) -> Vec<Value> {
    answer["hits"]["hits"].as_array().expect("hits").iter().map(|hit| hit["sort"].clone()).collect()
}

fn sorted(node: &Node, sort: Value) -> (Vec<String>, Vec<Value>) {
    let answer = node.search("books", &json!({"sort": sort}));
    assert!(answer["hits"]["max_score"].is_null(), "{answer}");
    (ids(&answer), sorts(&answer))
}

#[test]
fn fields_of_all_types_sort_and_show_their_values() {
    let node = books();
    let check = |sort: Value, expected_ids: [&str; 4], expected: Value| {
        let (ids, values) = sorted(&node, sort.clone());
        assert_eq!(ids, expected_ids, "{sort}");
        assert_eq!(Value::Array(values), expected, "{sort}");
    };
    check(json!("tag"), ["2", "3", "1", "4"], json!([["a"], ["a"], ["b"], [null]]));
    check(json!([{"tag": "desc"}]), ["3", "1", "2", "4"], json!([["c"], ["b"], ["a"], [null]]));
    check(
        json!([{"tag": {"order": "asc", "missing": "_first"}}]),
        ["4", "2", "3", "1"],
        json!([[null], ["a"], ["a"], ["b"]]),
    );
    check(json!([{"tag": {"missing": "aa"}}]), ["2", "3", "4", "1"], json!([["a"], ["a"], ["aa"], ["b"]]));
    check(json!({"n": "asc"}), ["2", "3", "1", "4"], json!([[1], [2], [3], [2_147_483_647]]));
    check(
        json!({"n": {"order": "desc", "mode": "avg"}}),
        ["3", "1", "2", "4"],
        json!([[4], [3], [1], [-2_147_483_648]]),
    );
    check(json!({"n": {"mode": "sum", "missing": 5}}), ["2", "1", "4", "3"], json!([[1], [3], [5], [12]]));
    check(
        json!([{"big": "desc"}]),
        ["1", "2", "3", "4"],
        json!([[9_007_199_254_740_993_i64], [i64::MIN], [i64::MIN], [i64::MIN]]),
    );
    check(json!("f"), ["1", "3", "2", "4"], json!([[1.1], [2.5], ["Infinity"], ["Infinity"]]));
    check(json!("u"), ["1", "2", "3", "4"], json!([[u64::MAX], [u64::MAX], [u64::MAX], [u64::MAX]]));
    check(
        json!({"d": "desc"}),
        ["1", "2", "3", "4"],
        json!([[1_704_153_600_000_i64], [1_704_103_200_000_i64], [i64::MIN], [i64::MIN]]),
    );
    check(
        json!([{"d": {"format": "yyyy-MM-dd", "missing": "2024-01-05"}}, "_doc"]),
        ["2", "1", "3", "4"],
        json!([["2024-01-01", 1], ["2024-01-02", 0], ["2024-01-05", 2], ["2024-01-05", 3]]),
    );
    check(
        json!([{"b": {"missing": "_first"}}]),
        ["3", "4", "2", "1"],
        json!([[i64::MIN], [i64::MIN], [0], [1]]),
    );
    check(
        json!([{"x": {"unmapped_type": "long"}}, {"_doc": "desc"}]),
        ["4", "3", "2", "1"],
        json!([[i64::MAX, 3], [i64::MAX, 2], [i64::MAX, 1], [i64::MAX, 0]]),
    );
}

#[test]
fn scores_are_shown_where_they_are_asked_for() {
    let node = books();
    let query = json!({"match": {"title": "two"}});
    let by_score = node.search("books", &json!({"query": query}));
    let best = &by_score["hits"]["max_score"];
    let answer = node.search("books", &json!({"query": query, "sort": ["_score", "n"]}));
    assert_eq!(ids(&answer), ids(&by_score));
    assert_eq!(&answer["hits"]["max_score"], best);
    assert_eq!(answer["hits"]["hits"][0]["sort"][0], answer["hits"]["hits"][0]["_score"]);
    let answer = node.search("books", &json!({"query": query, "sort": "n", "track_scores": true}));
    assert_eq!(&answer["hits"]["max_score"], best);
    assert!(answer["hits"]["hits"][0]["_score"].is_number());
    let answer = node.search("books", &json!({"query": query, "sort": [{"_score": "asc"}]}));
    let mut reversed = ids(&by_score);
    reversed.reverse();
    assert_eq!(ids(&answer), reversed);
    let least = by_score["hits"]["hits"][1]["_score"].clone();
    let answer = node.search("books", &json!({"query": query, "sort": "n", "min_score": least}));
    assert_eq!(answer["hits"]["total"]["value"], 2);
}

#[test]
fn sorts_that_cannot_be_are_refused() {
    let node = books();
    for (sort, kind, reason) in [
        (json!("x"), "query_shard_exception", "No mapping found for [x] in order to sort on"),
        (json!("title"), "illegal_argument_exception", "Fielddata is disabled on [title] in [books]."),
        (json!("_id"), "illegal_argument_exception", "Fielddata access on the _id field is disallowed"),
        (
            json!([{"tag": {"mode": "avg"}}]),
            "query_shard_exception",
            "we only support AVG, MEDIAN and SUM on number based fields",
        ),
        (
            json!([{"tag": {"numeric_type": "long"}}]),
            "query_shard_exception",
            "[numeric_type] option cannot be set on a non-numeric field, got keyword",
        ),
        (
            json!([{"x": {"unmapped_type": "nope"}}]),
            "illegal_argument_exception",
            "No mapper found for type [nope]",
        ),
    ] {
        let error = node.search_error("books", &json!({"sort": sort}));
        assert_eq!(error["status"], 400, "{error}");
        let failed = &error["error"]["failed_shards"][0]["reason"];
        assert_eq!(failed["type"], kind, "{error}");
        assert!(failed["reason"].as_str().expect("a reason").starts_with(reason), "{error}");
    }
    for (body, reason) in [
        (json!({"sort": ["n", "tag"], "search_after": [1]}), "search_after has 1 value(s) but sort has 2."),
        (json!({"sort": "n", "search_after": ["x"]}), "Failed to parse search_after value for field [n]."),
        (json!({"sort": "_shard_doc"}), "[_shard_doc] sort field cannot be used without [point in time]"),
        (
            json!({"sort": [{"d": {"format": "epoch_millis"}}], "search_after": ["2021-02-11"]}),
            "failed to parse date field",
        ),
        (json!({"collapse": {"field": "x"}}), "no mapping found for `x` in order to collapse on"),
        (
            json!({"collapse": {"field": "title"}}),
            "collapse is not supported for the field [title] of the type [text]",
        ),
        (
            json!({"collapse": {"field": "tag"}}),
            "failed to extract doc:2, the grouping field must be single valued",
        ),
    ] {
        let error = node.search_error("books", &body).to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn several_indices_are_one_order() {
    let node = books();
    node.create("more", &json!({"n": {"type": "long"}, "tag": {"type": "integer"}}));
    node.load("more", &[json!({"_id": "x", "n": 2}), json!({"_id": "y", "n": 100})]);
    let sort = json!([{"n": "asc"}, {"_index": "desc"}]);
    let answer = node.search("books,more", &json!({"sort": sort, "size": 4}));
    assert_eq!(ids(&answer), ["2", "x", "3", "1"]);
    assert_eq!(sorts(&answer)[1], json!([2, "more"]));
    let after = sorts(&answer)[1].clone();
    let answer = node.search("books,more", &json!({"sort": sort, "search_after": after}));
    assert_eq!(ids(&answer), ["3", "1", "y", "4"]);
    let error = node.search_error("books,more", &json!({"sort": "tag"}));
    assert!(
        error.to_string().contains("incompatible sort types: [STRING] and [LONG] across shards!"),
        "{error}"
    );
    let unmapped = node.search("books,more", &json!({"sort": [{"big": {"unmapped_type": "long"}}]}));
    assert_eq!(ids(&unmapped)[0], "1");
}

#[test]
fn groups_are_collapsed_and_opened() {
    let node = books();
    node.load(
        "books",
        &[
            json!({"_id": "5", "tag": "a", "n": 9}),
            json!({"_id": "6", "tag": "a", "n": 4}),
            json!({"_id": "3", "tag": "b", "n": 8}),
        ],
    );
    let inner = json!({"name": "rest", "size": 2, "sort": [{"n": "asc"}], "_source": ["n"]});
    let body = json!({
        "query": {"exists": {"field": "tag"}}, "sort": [{"n": "desc"}],
        "collapse": {"field": "tag", "inner_hits": inner},
    });
    let answer = node.search("books", &body);
    assert_eq!(ids(&answer), ["5", "3"]);
    assert_eq!(answer["hits"]["total"]["value"], 5);
    let first = &answer["hits"]["hits"][0];
    assert_eq!(first["fields"], json!({"tag": ["a"]}));
    let inner = &first["inner_hits"]["rest"]["hits"];
    assert_eq!(inner["total"]["value"], 3);
    assert_eq!(inner["hits"][0]["_id"], "2");
    assert_eq!(
        inner["hits"][1],
        json!({
            "_index": "books", "_id": "6", "_score": null, "_source": {"n": 4}, "sort": [4],
        })
    );
    let answer = node.search("books", &json!({"collapse": {"field": "tag"}, "from": 1, "size": 1}));
    assert_eq!(ids(&answer).len(), 1);
}

#[test]
fn hits_are_rescored() {
    let node = books();
    let rescore = |mode: &str, window: usize| {
        json!({
            "query": {"match_all": {}}, "from": 0,
            "rescore": {"window_size": window, "query": {
                "rescore_query": {"constant_score": {"filter": {"term": {"tag": "a"}}, "boost": 5.0}},
                "query_weight": 2.0, "rescore_query_weight": 3.0, "score_mode": mode}},
        })
    };
    let answer = node.search("books", &rescore("total", 10));
    assert_eq!(ids(&answer), ["2", "3", "1", "4"]);
    assert_eq!(answer["hits"]["max_score"], 17.0);
    assert_eq!(answer["hits"]["hits"][2]["_score"], 2.0);
    for (mode, score) in [("multiply", 30.0), ("avg", 8.5), ("max", 15.0), ("min", 2.0)] {
        assert_eq!(node.search("books", &rescore(mode, 10))["hits"]["max_score"], score, "{mode}");
    }
    let mut collapsed = rescore("total", 10);
    collapsed["collapse"] = json!({"field": "title.raw"});
    let answer = node.search("books", &collapsed);
    assert_eq!((ids(&answer).len(), &answer["hits"]["max_score"]), (4, &json!(17.0)));
    // Only the first hit is in the window, and it does not match.
    assert_eq!(ids(&node.search("books", &rescore("total", 1))), ["1", "2", "3", "4"]);
}

#[test]
fn a_search_may_end_early() {
    let node = books();
    let answer = node.search("books", &json!({"terminate_after": 2}));
    assert_eq!((&answer["terminated_early"], &answer["hits"]["total"]["value"]), (&json!(true), &json!(2)));
    let answer = node.search("books", &json!({"terminate_after": 20}));
    assert_eq!((&answer["terminated_early"], &answer["hits"]["total"]["value"]), (&json!(false), &json!(4)));
    let answer = node.ok("count", &[("index", "books")], &[("terminate_after", "1")], &Value::Null);
    assert_eq!((&answer["count"], &answer["terminated_early"]), (&json!(1), &json!(true)));
}

#[test]
fn indices_are_boosted() {
    let node = books();
    node.create("more", &json!({}));
    node.load("more", &[json!({"_id": "x"})]);
    let answer = node.search("books,more", &json!({"indices_boost": [{"mo*": 3.0}, {"more": 9.0}]}));
    assert_eq!((ids(&answer)[0].as_str(), &answer["hits"]["max_score"]), ("x", &json!(3.0)));
    let error = node.search_error("books", &json!({"indices_boost": [{"gone": 2}]}));
    assert_eq!(error["error"]["type"], "index_not_found_exception");
}

#[test]
fn fields_are_shown_as_the_mapping_reads_them() {
    let node = books();
    node.load(
        "books",
        &[json!({"_id": "9", "n": "42", "f": 1.1, "d": "2024-02-03", "b": "true", "tag": ["x", "a", "x"],
                 "title": "t", "x.y": 3})],
    );
    let fields = |body: Value| {
        let mut body = body;
        body["query"] = json!({"ids": {"values": ["9"]}});
        body["_source"] = json!(false);
        node.search("books", &body)["hits"]["hits"][0]["fields"].clone()
    };
    assert_eq!(
        fields(
            json!({"fields": ["n", "f", {"field": "d", "format": "dd/MM/yyyy"}, "b", "ta*", "title.raw", "_id"]})
        ),
        json!({"n": [42], "f": [1.1], "d": ["03/02/2024"], "b": [true], "tag": ["x", "a", "x"],
               "title.raw": ["t"], "_id": ["9"]})
    );
    assert_eq!(
        fields(
            json!({"docvalue_fields": ["n", "f", "d", {"field": "d", "format": "epoch_millis"}, "b", "tag"]})
        ),
        json!({"n": [42], "f": [1.1], "d": ["2024-02-03T00:00:00.000Z", "1706918400000"], "b": [true],
               "tag": ["a", "x"]})
    );
    assert_eq!(fields(json!({"docvalue_fields": [{"field": "n", "format": "#.0"}]})), json!({"n": ["42.0"]}));
    assert_eq!(fields(json!({"fields": ["nothing"]})), Value::Null);
    assert_eq!(fields(json!({"fields": ["x.*"]})), json!({"x.y": [3]}));
    node.ok(
        "create_index",
        &[("index", "loose")],
        &[],
        &json!({"mappings": {"dynamic": false, "properties": {"n": {"type": "long"}}}}),
    );
    node.load("loose", &[json!({"n": 1, "o": {"p": [1, {"q": "z"}], "r": null}, "s": "t"})]);
    let answer = node.search("loose", &json!({"fields": ["n", {"field": "o.*", "include_unmapped": true}]}));
    assert_eq!(answer["hits"]["hits"][0]["fields"], json!({"n": [1], "o.p": [1], "o.p.q": ["z"]}));
    for (body, reason) in [
        (json!({"docvalue_fields": ["title"]}), "Fielddata is disabled on [title]"),
        (
            json!({"fields": [{"field": "tag", "format": "x"}]}),
            "Field [tag] of type [keyword] doesn't support formats.",
        ),
    ] {
        let error = node.search_error("books", &body).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let bare = node.search("books", &json!({"stored_fields": "_none_"}));
    assert_eq!(bare["hits"]["hits"][0], json!({"_index": "books", "_score": 1.0}));
    let listed = node.search("books", &json!({"stored_fields": ["title"]}));
    assert_eq!(listed["hits"]["hits"][0], json!({"_index": "books", "_id": "1", "_score": 1.0}));
}

#[test]
fn named_clauses_may_show_their_scores() {
    let node = books();
    let query = json!({"bool": {"should": [
        {"constant_score": {"filter": {"term": {"tag": "b"}}, "boost": 4.0, "_name": "tagged"}},
        {"term": {"n": {"value": 3, "_name": "three"}}}]}});
    let body = json!({"query": query}).to_string();
    let path = [("index", "books")];
    let reply = node
        .run("search", &path, &[("include_named_queries_score", "true")], body.as_bytes())
        .expect("found");
    let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!(answer["hits"]["hits"][0]["matched_queries"], json!({"tagged": 4.0, "three": 1.0}));
    let answer = node.search("books", &json!({"query": query}));
    assert_eq!(answer["hits"]["hits"][0]["matched_queries"], json!(["tagged", "three"]));
}

#[test]
fn capabilities_of_fields_are_merged_over_indices() {
    let node = books();
    node.create(
        "more",
        &json!({"n": {"type": "keyword"}, "o": {"properties": {"p": {"type": "date"}}},
        "tag": {"type": "keyword", "doc_values": false}, "v": {"type": "sparse_vector"}}),
    );
    let caps =
        |path: &[(&str, &str)], query: &[(&str, &str)]| node.ok("field_caps", path, query, &Value::Null);
    let both = [("index", "books,more")];
    let answer = caps(&both, &[("fields", "n,o*,tag,v,title*,missing"), ("include_unmapped", "true")]);
    assert_eq!(answer["indices"], json!(["books", "more"]));
    let fields = &answer["fields"];
    assert_eq!(fields["n"]["integer"]["indices"], json!(["books"]));
    assert_eq!(fields["n"]["keyword"]["indices"], json!(["more"]));
    assert_eq!(
        fields["tag"]["keyword"],
        json!({
            "type": "keyword", "metadata_field": false, "searchable": true, "aggregatable": false,
            "non_aggregatable_indices": ["more"],
        })
    );
    assert_eq!(fields["o"]["object"]["searchable"], false);
    assert_eq!(fields["o.p"]["unmapped"]["indices"], json!(["books"]));
    assert_eq!(fields["title"]["text"]["aggregatable"], false);
    assert_eq!(fields["title.raw"]["keyword"]["aggregatable"], true);
    assert!(fields.get("missing").is_none());
    let typed = caps(&both, &[("fields", "*"), ("types", "date"), ("filters", "-metadata")]);
    assert_eq!(typed["fields"].as_object().expect("fields").keys().collect::<Vec<_>>(), ["d", "o.p"]);
    let single = caps(&both, &[("fields", "title*"), ("filters", "-multifield")]);
    assert_eq!(single["fields"].as_object().expect("fields").len(), 1);
    let filtered = node.ok(
        "field_caps",
        &[],
        &[],
        &json!({"fields": ["n"], "index_filter": {"range": {"n": {"gte": 1}}}}),
    );
    assert_eq!(filtered["indices"], json!(["books"]));
    let error = node.run("field_caps", &both, &[], b"").expect_err("no fields");
    assert!(error.reason().contains("no fields specified"));
}

#[test]
fn queries_are_validated() {
    let node = books();
    let validate =
        |body: Value, query: &[(&str, &str)]| node.ok("validate_query", &[("index", "books")], query, &body);
    assert_eq!(
        validate(json!({"query": {"term": {"tag": "a"}}}), &[]),
        json!({"_shards": {"total": 1, "successful": 1, "failed": 0}, "valid": true})
    );
    let explain = [("explain", "true")];
    let answer = validate(json!({"query": {"term": {"tag": "a"}}}), &explain);
    assert_eq!(answer["explanations"], json!([{"index": "books", "valid": true, "explanation": "tag:a"}]));
    assert_eq!(validate(json!({"query": {"nope": {}}}), &[]), json!({"valid": false}));
    let answer = validate(json!({"query": {"nope": {}}}), &explain);
    assert!(answer["error"].as_str().expect("a reason").contains("unknown query [nope]"), "{answer}");
    let answer = validate(json!({"match_all": {}}), &explain);
    assert_eq!(
        answer["error"],
        "org.elasticsearch.common.ParsingException: request does not support [match_all]"
    );
    assert_eq!(validate(Value::Null, &explain)["explanations"][0]["explanation"], "*:*");
    let answer = validate(json!({"query": {"range": {"n": {"gte": "x"}}}}), &explain);
    assert_eq!(answer["valid"], false);
    assert!(
        answer["explanations"][0]["error"].as_str().expect("a reason").contains("For input string"),
        "{answer}"
    );
    assert_eq!(node.ok("validate_query", &[], &[("q", "n:x")], &Value::Null)["valid"], false);
}

#[test]
fn definitions_and_vectors_of_single_fields() {
    let node = books();
    let answer =
        node.ok("get_field_mapping", &[("index", "books"), ("fields", "title*,n")], &[], &Value::Null);
    assert_eq!(
        answer["books"]["mappings"],
        json!({
            "n": {"full_name": "n", "mapping": {"n": {"type": "integer"}}},
            "title": {"full_name": "title", "mapping": {"title": {"type": "text", "fields": {"raw": {"type": "keyword"}}}}},
            "title.raw": {"full_name": "title.raw", "mapping": {"raw": {"type": "keyword"}}},
        })
    );
    let vectors = |id: &str| node.ok("term_vectors", &[("index", "books"), ("id", id)], &[], &Value::Null);
    assert_eq!((&vectors("1")["found"], &vectors("1")["term_vectors"]), (&json!(true), &json!({})));
    assert_eq!(vectors("x")["found"], false);
    let answer = node.ok("multi_term_vectors", &[("index", "books")], &[], &json!({"ids": ["1", "x"]}));
    assert_eq!((&answer["docs"][0]["found"], &answer["docs"][1]["found"]), (&json!(true), &json!(false)));
    let shards = node.ok("search_shards", &[("index", "books")], &[], &Value::Null);
    assert_eq!(shards["shards"][0][0]["index"], "books");
}
