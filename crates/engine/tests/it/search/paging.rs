//! Reading all results page by page while other requests write.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use sparrow_engine::{CancelFlag, Request};

use super::common::{Node, ids};

fn numbers(count: usize) -> Node {
    let node = Node::start();
    for index in ["one", "two"] {
        node.create(index, &json!({"n": {"type": "integer"}, "tag": {"type": "keyword"}}));
    }
    let docs: Vec<Value> =
        (0..count).map(|n| json!({"_id": n.to_string(), "n": n % 7, "tag": format!("t{}", n % 3)})).collect();
    node.load("one", &docs[..count / 2]);
    node.load("two", &docs[count / 2..]);
    node
}

/// Runs `read` while documents are changed, deleted and added; checks that it saw exactly `count` ids, each once.
fn while_others_write(node: &Node, count: usize, read: impl FnOnce() -> Vec<String>) {
    let stop = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                let lines = format!(
                    "{}\n{}\n{}\n{}\n{}\n",
                    json!({"index": {"_id": (n % count).to_string()}}),
                    json!({"n": 100, "tag": "new"}),
                    json!({"index": {"_id": format!("new{n}")}}),
                    json!({"n": 3}),
                    json!({"delete": {"_id": ((n * 13) % count).to_string()}}),
                );
                let index = if n % 2 == 0 { "one" } else { "two" };
                node.run("bulk", &[("index", index)], &[("refresh", "true")], lines.as_bytes())
                    .expect("written");
                n += 1;
            }
        });
        let seen = read();
        stop.store(true, Ordering::Relaxed);
        seen
    });
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), distinct.len()), (count, count));
    assert!(seen.iter().all(|id| !id.starts_with("new")));
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn a_scroll_sees_each_document_once() {
    for body in [
        json!({"size": 23}),
        json!({"size": 23, "sort": ["_doc"]}),
        json!({"size": 23, "sort": [{"n": "desc"}, "tag"]}),
        json!({"size": 23, "query": {"bool": {"should": [{"term": {"tag": "t1"}}, {"match_all": {}}]}}}),
    ] {
        let node = numbers(300);
        while_others_write(&node, 300, || {
            let first = node.ok("search", &[("index", "one,two")], &[("scroll", "1m")], &body);
            let id = text(&first["_scroll_id"]).to_owned();
            assert_eq!(first["hits"]["total"], json!({"value": 300, "relation": "eq"}));
            let mut seen = ids(&first);
            loop {
                let page = node.ok("scroll", &[], &[], &json!({"scroll_id": id, "scroll": "1m"}));
                assert_eq!(page["hits"]["total"]["value"], 300);
                if ids(&page).is_empty() {
                    break;
                }
                seen.extend(ids(&page));
            }
            assert_eq!(
                node.ok("clear_scroll", &[], &[], &json!({"scroll_id": [id]})),
                json!({"succeeded": true, "num_freed": 1})
            );
            seen
        });
    }
}

#[test]
fn slices_of_a_scroll_are_disjoint() {
    let node = numbers(100);
    let mut seen = Vec::new();
    for id in 0..3 {
        let body = json!({"slice": {"id": id, "max": 3}, "size": 100});
        let answer = node.ok("search", &[("index", "one,two")], &[("scroll", "1m")], &body);
        assert!(!ids(&answer).is_empty());
        seen.extend(ids(&answer));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 100);
    assert_eq!(node.ok("clear_scroll", &[("scroll_id", "_all")], &[], &Value::Null)["num_freed"], 3);
}

#[test]
fn a_point_in_time_sees_each_document_once() {
    let node = numbers(300);
    let open = node.ok("open_point_in_time", &[("index", "one,two")], &[("keep_alive", "1m")], &Value::Null);
    let pit = text(&open["id"]).to_owned();
    assert_eq!(open["_shards"]["successful"], 2);
    while_others_write(&node, 300, || {
        let mut seen = Vec::new();
        let mut body = json!({"pit": {"id": pit, "keep_alive": "1m"}, "size": 41, "sort": [{"n": "asc"}]});
        loop {
            let page = node.ok("search", &[], &[], &body);
            assert_eq!(page["pit_id"], json!(pit));
            let hits = page["hits"]["hits"].as_array().expect("hits");
            let Some(last) = hits.last() else { break };
            assert_eq!(last["sort"].as_array().map(Vec::len), Some(2));
            body["search_after"] = last["sort"].clone();
            seen.extend(ids(&page));
        }
        seen
    });
    // Also by score, where that is said: all have the same.
    for (sort, values) in [(json!(["_score"]), Some(2)), (json!([]), None)] {
        let body =
            json!({"pit": {"id": pit}, "query": {"range": {"n": {"gte": 0}}}, "size": 3, "sort": sort});
        let page = node.ok("search", &[], &[], &body);
        let last = &page["hits"]["hits"][2];
        assert_eq!(last["sort"].as_array().map(Vec::len), values, "{page}");
        assert_eq!([&last["_score"], &page["hits"]["max_score"]], [&json!(1.0), &json!(1.0)]);
        if values.is_some() {
            let mut next = body;
            next["search_after"] = last["sort"].clone();
            let behind = ids(&node.ok("search", &[], &[], &next));
            assert_eq!(behind.len(), 3);
            assert!(behind.iter().all(|id| !ids(&page).contains(id)), "{behind:?}");
        }
    }
    let body = json!({"pit": {"id": pit}, "sort": ["n", "tag"], "search_after": [5, "t2"]});
    let answer = node.ok("search", &[], &[], &body);
    assert_eq!(answer["hits"]["hits"][0]["sort"][0], 6, "the last value may be left out");
    let mut sliced = 0;
    for id in 0..2 {
        let body = json!({"pit": {"id": pit}, "slice": {"id": id, "max": 2}, "size": 300});
        sliced += ids(&node.ok("search", &[], &[], &body)).len();
    }
    assert_eq!(sliced, 300);
    let error =
        node.run("search", &[("index", "one")], &[], json!({"pit": {"id": pit}}).to_string().as_bytes());
    assert!(
        error.expect_err("names an index").reason().contains("[indices] cannot be used with point in time")
    );
    assert_eq!(
        node.ok("close_point_in_time", &[], &[], &json!({"id": pit})),
        json!({"succeeded": true, "num_freed": 1})
    );
    let gone = node.run("search", &[], &[], json!({"pit": {"id": pit}}).to_string().as_bytes());
    let gone = gone.expect_err("closed").body();
    assert_eq!(gone["status"], 404);
    assert_eq!(gone["error"]["root_cause"][0]["type"], "search_context_missing_exception");
    let reply = node
        .run("close_point_in_time", &[], &[], json!({"id": pit}).to_string().as_bytes())
        .expect("answered");
    assert_eq!(reply.status, 404);
}

#[test]
fn scrolls_are_checked() {
    let node = numbers(10);
    let open = |query: &[(&str, &str)], body: Value| {
        node.run("search", &[("index", "one")], query, body.to_string().as_bytes())
            .expect_err("refused")
            .body()
    };
    for (body, reason) in [
        (json!({"from": 1}), "using [from] is not allowed in a scroll context"),
        (json!({"size": 0}), "[size] cannot be [0] in a scroll context"),
        (json!({"track_total_hits": 5}), "disabling [track_total_hits] is not allowed in a scroll context"),
        (json!({"collapse": {"field": "tag"}}), "cannot use `collapse` in a scroll context"),
        (json!({"sort": "n", "search_after": [1]}), "[search_after] cannot be used in a scroll context"),
        (
            json!({"size": 10_001}),
            "Batch size is too large, size must be less than or equal to: [10000] but was [10001].",
        ),
    ] {
        let error = open(&[("scroll", "1m")], body).to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(
        open(&[("scroll", "25h")], json!({}))
            .to_string()
            .contains("Keep alive for request (25h) is too large.")
    );
    let next =
        |body: Value| node.run("scroll", &[], &[], body.to_string().as_bytes()).expect_err("refused").body();
    assert_eq!(next(json!({"scroll_id": "nonsense"}))["error"]["reason"], "Cannot parse scroll id");
    assert!(next(json!({"scroll": "1m"})).to_string().contains("scrollId is missing"));
    assert!(
        next(json!({"scroll_id": "x", "y": 1})).to_string().contains("Unknown parameter [y] in request body")
    );
    let first = node.ok("search", &[("index", "one")], &[("scroll", "1m")], &json!({"size": 1}));
    let id = text(&first["_scroll_id"]);
    node.ok("clear_scroll", &[], &[], &json!({"scroll_id": id}));
    let gone = next(json!({"scroll_id": id}));
    assert_eq!(gone["status"], 404);
    assert_eq!(gone["error"]["failed_shards"][0]["shard"], -1);
    let reply = node
        .run("clear_scroll", &[], &[], json!({"scroll_id": id}).to_string().as_bytes())
        .expect("answered");
    assert_eq!((reply.status, reply.body), (404, br#"{"succeeded":true,"num_freed":0}"#.to_vec()));
}

#[test]
fn searches_of_one_request_have_outcomes_of_their_own() {
    let node = numbers(20);
    let lines = "{\"index\":\"one\"}\n{\"size\":1}\n{\"index\":\"missing\"}\n{}\n{}\n{\"size\":0,\"query\":{\"term\":{\"tag\":\"t1\"}}}\n\n{\"sort\":\"x\"}\n";
    let reply = node.run("msearch", &[("index", "one,two")], &[], lines.as_bytes()).expect("answered");
    let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
    let responses = answer["responses"].as_array().expect("responses");
    let statuses: Vec<_> =
        responses.iter().map(|response| response["status"].as_u64().expect("a status")).collect();
    assert_eq!(statuses, [200, 404, 200, 400]);
    assert_eq!(responses[0]["hits"]["hits"].as_array().map(Vec::len), Some(1));
    assert_eq!(responses[1]["error"]["type"], "index_not_found_exception");
    assert_eq!(responses[2]["hits"]["total"]["value"], 7);
    for (lines, reason) in [
        ("", "no requests added"),
        ("{}\n{}", "must be terminated by a newline [\n]"),
        ("{}{}", "must be terminated by a newline [\n]: the body has no line break. curl removes those"),
        ("{\"type\":\"x\"}\n{}\n", "key [type] is not supported in the metadata section"),
        ("{}\n", "a header without a body"),
        ("{}\n{\"sizes\":1}\n", "Unknown key for a VALUE_NUMBER in [sizes]."),
        ("{\"index\":\"one\"}\n{\"pit\":{\"id\":\"x\"}}\n", "[indices] cannot be used with point in time"),
        ("{}\n{\"slice\":{\"id\":0,\"max\":2}}\n", "[slice] can only be used with"),
        ("[]\n{}\n", "Expected [START_OBJECT] but found [START_ARRAY]"),
    ] {
        let error = node.run("msearch", &[], &[], lines.as_bytes()).expect_err(lines);
        assert!(error.reason().contains(reason), "{lines}: {}", error.reason());
    }
}

#[test]
fn a_restricted_key_reads_no_other_index_by_any_way() {
    let node = numbers(20);
    let granted = json!({"names": [["one"]], "by": "read,all"});
    let rights = json!({"key": "mine", "user": "owner", "grants": {
        "indices:data/read/msearch": granted, "indices:data/read/search": granted,
        "indices:data/read/get": granted}});
    let ask = |op: &str, action: &str, body: &str| {
        let request = json!({"op": op, "action": action, "rights": rights}).to_string();
        let request: Request = serde_json::from_str(&request).expect("a request");
        node.engine.execute(&request, body.as_bytes(), &CancelFlag::default())
    };
    let lines = "{\"index\":\"two\"}\n{}\n{\"index\":\"one\"}\n{}\n{}\n{}\n{\"index\":\"*\"}\n{}\n{\"index\":[\"one\",\"t*\"]}\n{}\n";
    let reply = ask("msearch", "indices:data/read/msearch", lines).expect("answered");
    let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
    let responses = answer["responses"].as_array().expect("responses");
    assert_eq!(responses[0]["status"], 403);
    assert!(responses[0]["error"]["reason"].as_str().is_some_and(|text| text.contains(
        "action [indices:data/read/search] is unauthorized for API key id [mine] of user [owner] on indices [two]"
    )));
    // A pattern stands for what the key may see.
    for response in &responses[1..] {
        assert_eq!(response["hits"]["total"]["value"], 10, "{response}");
    }
    let others = node.ok("open_point_in_time", &[("index", "two")], &[("keep_alive", "1m")], &Value::Null);
    let body = json!({"pit": {"id": others["id"]}}).to_string();
    let error = ask("search", "indices:data/read/search", &body).expect_err("foreign");
    assert_eq!(error.status(), 404);
    // Rights without an action are rights to nothing.
    let request = json!({"op": "search", "path": {"index": "one"}, "rights": rights}).to_string();
    let request: Request = serde_json::from_str(&request).expect("a request");
    let error = node.engine.execute(&request, b"", &CancelFlag::default()).expect_err("no action");
    assert_eq!(error.status(), 403);
}
