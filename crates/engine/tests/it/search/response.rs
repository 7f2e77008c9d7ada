//! What a search response contains.

use serde_json::{Value, json};

use super::common::{Node, ids};

fn five() -> Node {
    let node = Node::start();
    node.create("five", &json!({"n": {"type": "integer"}, "title": {"type": "text"}}));
    let documents: Vec<Value> =
        (0..5).map(|n| json!({"n": n, "title": "same", "deep": {"a": n, "b": [n]}})).collect();
    node.load("five", &documents);
    node
}

#[test]
fn an_answer_has_the_documented_members() {
    let node = five();
    let answer = node.search("five", &json!({"size": 1}));
    assert!(answer["took"].is_u64());
    assert_eq!(answer["timed_out"], false);
    assert_eq!(answer["_shards"], json!({"total": 1, "successful": 1, "skipped": 0, "failed": 0}));
    assert_eq!(
        answer["hits"],
        json!({"total": {"value": 5, "relation": "eq"}, "max_score": 1.0, "hits": [
            {"_index": "five", "_id": "1", "_score": 1.0,
                "_source": {"n": 0, "title": "same", "deep": {"a": 0, "b": [0]}}}]})
    );
}

#[test]
fn ten_hits_come_without_a_size_and_pages_follow_each_other() {
    let node = Node::start();
    node.create("many", &json!({"n": {"type": "integer"}}));
    node.load("many", &(0..25).map(|n| json!({"n": n})).collect::<Vec<_>>());
    assert_eq!(ids(&node.search("many", &json!({}))).len(), 10);
    let mut all = Vec::new();
    for from in [0, 10, 20, 30] {
        all.extend(ids(&node.search("many", &json!({"from": from, "size": 10}))));
    }
    assert_eq!(all, (1..=25).map(|id| id.to_string()).collect::<Vec<_>>());
}

#[test]
fn totals_are_counted_as_far_as_asked() {
    let node = five();
    let total = |body: Value| node.search("five", &body)["hits"]["total"].clone();
    assert_eq!(total(json!({"track_total_hits": 3})), json!({"value": 3, "relation": "gte"}));
    assert_eq!(total(json!({"track_total_hits": 5})), json!({"value": 5, "relation": "eq"}));
    assert_eq!(total(json!({"track_total_hits": true})), json!({"value": 5, "relation": "eq"}));
    assert_eq!(total(json!({"track_total_hits": false})), Value::Null);
    let answer = node.search("five", &json!({"size": 0}));
    assert_eq!(
        answer["hits"],
        json!({"total": {"value": 5, "relation": "eq"}, "max_score": null, "hits": []})
    );
    let as_int =
        node.ok("search", &[("index", "five")], &[("rest_total_hits_as_int", "true")], &json!({"size": 0}));
    assert_eq!(as_int["hits"], json!({"total": 5, "max_score": null, "hits": []}));
    assert_eq!(as_int["terminated_early"], false);
}

#[test]
fn min_score_drops_hits_from_the_total_too() {
    let node = five();
    let answer = node.search("five", &json!({"query": {"match_all": {}}, "min_score": 2}));
    assert_eq!(
        answer["hits"],
        json!({"total": {"value": 0, "relation": "eq"}, "max_score": null, "hits": []})
    );
}

#[test]
fn sources_come_back_as_sent_or_in_part() {
    let node = Node::start();
    node.create("raw", &json!({"title": {"type": "text"}}));
    let source = "{ \"title\" : \"a\\u00e9\",\t\"n\": 1.50, \"x\": {\"y\": [1,  2]} }";
    node.run("index_doc", &[("index", "raw"), ("id", "1")], &[("refresh", "true")], source.as_bytes())
        .unwrap_or_else(|error| panic!("{}", error.body()));
    let reply = node.run("search", &[("index", "raw")], &[], b"").expect("searches");
    let text = String::from_utf8(reply.body).expect("UTF-8");
    assert!(text.contains(source), "{text}");
    let shown =
        |filter: Value| node.search("raw", &json!({"_source": filter}))["hits"]["hits"][0]["_source"].clone();
    assert_eq!(shown(json!(false)), Value::Null);
    assert_eq!(shown(json!(["title", "x.*"])), json!({"title": "aé", "x": {"y": [1, 2]}}));
    assert_eq!(shown(json!({"excludes": ["x"]})), json!({"title": "aé", "n": 1.5}));
    assert_eq!(shown(json!("none")), json!({}));
    let by_address = node.ok("search", &[("index", "raw")], &[("_source_includes", "n")], &Value::Null);
    assert_eq!(by_address["hits"]["hits"][0]["_source"], json!({"n": 1.5}));
}

#[test]
fn hits_show_versions_numbers_and_names_on_request() {
    let node = five();
    node.load("five", &[json!({"n": 9, "title": "other"})]);
    let answer = node.search(
        "five",
        &json!({"version": true, "seq_no_primary_term": true, "_source": false,
            "query": {"bool": {"should": [
                {"term": {"n": {"value": 9, "_name": "nine"}}},
                {"match": {"title": {"query": "same", "_name": "words"}}}]}}}),
    );
    let hits = answer["hits"]["hits"].as_array().expect("hits");
    assert_eq!(hits.len(), 5);
    let nine = hits.iter().find(|hit| hit["_id"] == "1").expect("the rewritten one");
    assert_eq!(
        (&nine["_version"], &nine["_seq_no"], &nine["_primary_term"]),
        (&json!(2), &json!(5), &json!(1))
    );
    assert_eq!(nine["matched_queries"], json!(["nine"]));
    let other = hits.iter().find(|hit| hit["_id"] == "2").expect("another");
    assert_eq!(other["matched_queries"], json!(["words"]));
}

#[test]
fn hits_can_be_sorted_as_they_were_written() {
    let node = five();
    node.load("five", &[json!({"n": 9, "title": "other"})]);
    let answer = node.search("five", &json!({"sort": ["_doc"], "query": {"match": {"title": "same other"}}}));
    assert_eq!(ids(&answer), ["2", "3", "4", "5", "1"]);
    assert_eq!(answer["hits"]["max_score"], Value::Null);
    assert_eq!(answer["hits"]["hits"][4]["_score"], Value::Null);
    assert_eq!(answer["hits"]["hits"][4]["sort"], json!([5]));
}

#[test]
fn a_query_can_stand_in_the_address() {
    let node = five();
    let answer = node.ok(
        "search",
        &[("index", "five")],
        &[("q", "n:3"), ("size", "1"), ("_source", "false")],
        &Value::Null,
    );
    assert_eq!(ids(&answer), ["4"]);
}

#[test]
fn counts_count() {
    let node = five();
    let count = |body: Value, query: &[(&str, &str)]| node.ok("count", &[("index", "five")], query, &body);
    let shards = json!({"total": 1, "successful": 1, "skipped": 0, "failed": 0});
    assert_eq!(count(Value::Null, &[]), json!({"count": 5, "_shards": shards}));
    assert_eq!(count(json!({"query": {"range": {"n": {"gte": 3}}}}), &[])["count"], 2);
    assert_eq!(count(Value::Null, &[("q", "n:[1 TO 3]")])["count"], 3);
}

#[test]
fn a_time_limit_ends_a_search_without_an_error() {
    let node = five();
    // Whether a search without time finds something is a race; that it answers is not.
    for _ in 0..200 {
        let hurried = node.search("five", &json!({"timeout": "0"}));
        assert!(hurried["timed_out"] == true || ids(&hurried).len() == 5, "{hurried}");
    }
    let relaxed = node.search("five", &json!({"timeout": "1m"}));
    assert_eq!(relaxed["timed_out"], false);
    assert_eq!(ids(&relaxed).len(), 5);
}

#[test]
fn a_profile_says_where_the_time_went() {
    let node = Node::start();
    for index in ["first", "second"] {
        node.create(index, &json!({"t": {"type": "text"}, "v": {"type": "sparse_vector"}}));
        node.load(index, &[json!({"t": "one two", "v": {"a": 1.0}}), json!({"t": "two three"})]);
    }
    let plain = node.search("first,second", &json!({"query": {"match": {"t": "two"}}}));
    assert!(plain.get("profile").is_none());
    let answer = node.search("first,second", &json!({"query": {"match": {"t": "two"}}, "profile": true}));
    let shards = answer["profile"]["shards"].as_array().expect("shards");
    assert_eq!(shards.len(), 2);
    for (shard, index) in shards.iter().zip(["first", "second"]) {
        assert_eq!(shard["index"], index);
        assert_eq!(shard["shard_id"], 0);
        let id = format!("[{}][{index}][0]", shard["node_id"].as_str().expect("a node"));
        assert_eq!(shard["id"], id.as_str());
        let query = &shard["searches"][0]["query"][0];
        assert_eq!((&query["type"], &query["description"]), (&json!("MatchQuery"), &json!("t:two")));
        assert!(query["time_in_nanos"].as_u64().expect("a time") > 0);
        assert_eq!(query["breakdown"]["shallow_advance_count"], 0);
        assert_eq!(query["breakdown"].as_object().expect("keys").len(), 20);
        assert_eq!(query["debug"]["executors"], json!(["block_max_max_score"]));
        assert_eq!(shard["fetch"]["breakdown"]["load_stored_fields_count"], 2);
        assert!(shard["searches"][0]["collector"][0]["name"].is_string());
        assert_eq!(shard["aggregations"], json!([]));
    }
    let phases = &answer["profile"]["phases"];
    assert!(phases["search_in_nanos"].as_u64().expect("a time") > 0);
    assert!(phases["fetch_in_nanos"].as_u64().expect("a time") > 0);
    assert_eq!(phases["infer_in_nanos"], 0);
    assert_eq!((&phases["highlight_in_nanos"], &phases["explain_in_nanos"]), (&json!(0), &json!(0)));
    let shown = node.search(
        "first,second",
        &json!({"query": {"match": {"t": "two"}}, "profile": true, "explain": true, "highlight": {"fields": {"t": {}}}}),
    );
    for phase in ["highlight_in_nanos", "explain_in_nanos"] {
        assert!(shown["profile"]["phases"][phase].as_u64().expect("a time") > 0, "{phase}");
    }
    let sorted = json!({"query": {"match": {"t": "two"}}, "sort": ["_doc"], "profile": true});
    let sorted = node.search("first", &sorted);
    let debug = &sorted["profile"]["shards"][0]["searches"][0]["query"][0]["debug"];
    assert_eq!(debug["executors"], json!(["bitset"]));
    let list = json!({"standard": {"query": {"match": {"t": "two"}}}});
    let fused =
        node.search("first", &json!({"retriever": {"rrf": {"retrievers": [list, list]}}, "profile": true}));
    assert_eq!(fused["profile"]["shards"][0]["searches"][0]["query"].as_array().map(Vec::len), Some(2));
    assert!(fused["profile"]["phases"]["fuse_in_nanos"].as_u64().expect("a time") > 0);
}
