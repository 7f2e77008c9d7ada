//! Bulk requests, as recorded from Elasticsearch 8.19.

use crate::common::Node;
use serde_json::{Value, json};

fn items(answer: &Value) -> Vec<(u64, String)> {
    answer["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| {
            let item = item.as_object().and_then(|item| item.values().next()).cloned().unwrap_or_default();
            let outcome = item["result"].as_str().or(item["error"]["type"].as_str()).unwrap_or_default();
            (item["status"].as_u64().unwrap_or_default(), outcome.to_owned())
        })
        .collect()
}

#[test]
fn the_recorded_mixture() {
    let node = Node::start();
    let mapping =
        r#"{"settings":{"number_of_replicas":0},"mappings":{"properties":{"n":{"type":"integer"}}}}"#;
    node.ok("create_index", "index=books", "", mapping);
    let body = concat!(
        r#"{"index":{"_index":"books","_id":"b1"}}"#,
        "\n",
        r#"{"title":"bulk one","n":10}"#,
        "\n",
        r#"{"create":{"_index":"books","_id":"b1"}}"#,
        "\n",
        r#"{"title":"dup"}"#,
        "\n",
        r#"{"index":{"_index":"books","_id":"b2"}}"#,
        "\n",
        r#"{"n":"oops"}"#,
        "\n",
        r#"{"update":{"_index":"books","_id":"nope"}}"#,
        "\n",
        r#"{"doc":{"n":1}}"#,
        "\n",
        r#"{"delete":{"_index":"books","_id":"nope"}}"#,
        "\n",
        r#"{"index":{"_index":"books"}}"#,
        "\n",
        r#"{"title":"auto","tag":"z"}"#,
        "\n",
    );
    let (status, answer) = node.call("bulk", "", "refresh=true", body);
    assert_eq!(status, 200);
    assert_eq!(answer["errors"], json!(true));
    assert!(answer.get("ingest_took").is_none());
    let outcomes = items(&answer);
    let expected = [
        (201, "created"),
        (409, "version_conflict_engine_exception"),
        (400, "document_parsing_exception"),
        (404, "document_missing_exception"),
        (404, "not_found"),
        (201, "created"),
    ];
    assert_eq!(outcomes, expected.map(|(status, outcome)| (status, outcome.to_owned())));
    assert_eq!(
        answer["items"][0]["index"],
        json!({"_index": "books", "_id": "b1", "_version": 1, "result": "created", "forced_refresh": true,
            "_shards": {"total": 1, "successful": 1, "failed": 0}, "_seq_no": 0, "_primary_term": 1, "status": 201})
    );
    assert_eq!(
        answer["items"][2]["index"]["error"],
        json!({"type": "document_parsing_exception",
            "reason": "[1:6] failed to parse field [n] of type [integer] in document with id 'b2'. Preview of field's \
                       value: 'oops'",
            "caused_by": {"type": "number_format_exception", "reason": "For input string: \"oops\""}})
    );
    assert_eq!(answer["items"][4]["delete"]["_version"], json!(1));
    assert_eq!(node.count("books"), 2);
}

#[test]
fn bad_items_fail_alone() {
    let node = Node::start();
    let body = concat!(
        r#"{"index":{"_index":"BAD"}}"#,
        "\n",
        r#"{"a":1}"#,
        "\n",
        r#"{"index":{"_index":"books"}}"#,
        "\n",
        r#"{"a":"#,
        "\n",
        r#"{"index":{"_index":"books","_id":"p","pipeline":"p1"}}"#,
        "\n",
        r#"{"a":1}"#,
        "\n",
        r#"{"delete":{"_index":"missing","_id":"1"}}"#,
        "\n",
        r#"{"index":{"_index":"books","_id":"ok"}}"#,
        "\n",
        r#"{"a":1}"#,
        "\n",
    );
    let answer = node.ok("bulk", "", "", body);
    let bad = &answer["items"][0]["index"];
    assert_eq!((&bad["_id"], &bad["status"]), (&Value::Null, &json!(400)));
    assert_eq!(bad["error"]["reason"], json!("Invalid index name [BAD], must be lowercase"));
    let malformed = &answer["items"][1]["index"];
    assert!(malformed["_id"].is_string());
    assert_eq!(malformed["error"]["type"], json!("document_parsing_exception"));
    assert_eq!(malformed["error"]["reason"], json!("[1:2] failed to parse: [1:6] Unexpected end of file"));
    assert_eq!(malformed["error"]["caused_by"]["caused_by"]["type"], json!("json_e_o_f_exception"));
    let pipeline = &answer["items"][2]["index"];
    assert_eq!(pipeline["error"]["reason"], json!("pipeline with id [p1] does not exist"));
    assert_eq!(items(&answer)[3], (404, "index_not_found_exception".to_owned()));
    assert_eq!(items(&answer)[4], (201, "created".to_owned()));
    assert!(answer["ingest_took"].is_u64());
    assert_eq!(
        node.error("bulk", "", "", "{\"index\":{}}\n{}\n").2,
        "Validation Failed: 1: index is missing;"
    );
    assert_eq!(node.error("bulk", "index=books", "", "").2, "request body is required");
}

#[test]
fn actions_on_one_document_keep_their_order() {
    let node = Node::start();
    let body = concat!(
        r#"{"index":{"_id":"1"}}"#,
        "\n",
        r#"{"n":1}"#,
        "\n",
        r#"{"update":{"_id":"1"}}"#,
        "\n",
        r#"{"doc":{"m":2}}"#,
        "\n",
        r#"{"update":{"_id":"1"}}"#,
        "\n",
        r#"{"doc":{"n":3}}"#,
        "\n",
        r#"{"delete":{"_id":"2"}}"#,
        "\n",
        r#"{"create":{"_id":"2"}}"#,
        "\n",
        r#"{"n":2}"#,
        "\n",
        r#"{"delete":{"_id":"2"}}"#,
        "\n",
        r#"{"update":{"_id":"2"}}"#,
        "\n",
        r#"{"doc":{"n":9},"doc_as_upsert":true}"#,
        "\n",
    );
    let answer = node.ok("bulk", "index=a", "", body);
    assert_eq!(answer["errors"], json!(false), "{answer}");
    let document = node.ok("get_doc", "index=a&id=1", "", "");
    assert_eq!((&document["_version"], &document["_source"]), (&json!(3), &json!({"n": 3, "m": 2})));
    assert_eq!(node.ok("get_doc", "index=a&id=2", "", "")["_source"], json!({"n": 9}));
    let seq_nos: Vec<u64> = answer["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_object()?.values().next()?["_seq_no"].as_u64())
        .collect();
    assert_eq!(seq_nos, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn pipelines_run_before_documents_are_written() {
    let node = Node::start();
    node.ok("put_pipeline", "pipeline=mark", "", r#"{"processors":[{"set":{"field":"by","value":"mark"}}]}"#);
    node.ok("put_pipeline", "pipeline=last", "", r#"{"processors":[{"set":{"field":"last","value":true}}]}"#);
    node.ok("put_pipeline", "pipeline=drop", "", r#"{"processors":[{"drop":{}}]}"#);
    node.ok("put_pipeline", "pipeline=fail", "", r#"{"processors":[{"fail":{"message":"no"}}]}"#);
    let settings = r#"{"settings":{"index.default_pipeline":"mark","index.final_pipeline":"last","number_of_replicas":0}}"#;
    node.ok("create_index", "index=a", "", settings);
    let body = concat!(
        r#"{"index":{"_id":"1"}}"#,
        "\n",
        r#"{"n":1}"#,
        "\n",
        r#"{"index":{"_id":"2","pipeline":"_none"}}"#,
        "\n",
        r#"{"n":2}"#,
        "\n",
        r#"{"index":{"_id":"3","pipeline":"drop"}}"#,
        "\n",
        r#"{"n":3}"#,
        "\n",
        r#"{"index":{"_id":"4","pipeline":"fail"}}"#,
        "\n",
        r#"{"n":4}"#,
        "\n",
        r#"{"update":{"_id":"5"}}"#,
        "\n",
        r#"{"doc":{"n":5},"doc_as_upsert":true}"#,
        "\n",
    );
    let answer = node.ok("bulk", "index=a", "", body);
    let source = |id: &str| node.call("get_doc", &format!("index=a&id={id}"), "", "").1["_source"].clone();
    assert_eq!(source("1"), json!({"n": 1, "by": "mark", "last": true}));
    assert_eq!(source("2"), json!({"n": 2, "last": true}));
    assert_eq!((source("3"), source("4")), (Value::Null, Value::Null));
    assert_eq!(
        answer["items"][2]["index"],
        json!({"_index": "a", "_id": "3", "_version": -3, "result": "noop",
            "_shards": {"total": 0, "successful": 0, "failed": 0}, "status": 200})
    );
    assert_eq!(items(&answer)[3], (500, "fail_processor_exception".to_owned()), "{answer}");
    assert_eq!(source("5"), json!({"n": 5, "by": "mark", "last": true}));
}

#[test]
fn large_requests_are_written_in_windows() {
    let node = Node::start();
    let mut body = String::new();
    for number in 0..2500 {
        body.push_str(&format!(
            "{{\"index\":{{\"_id\":\"{number}\"}}}}\n{{\"n\":{number},\"t\":\"word{}\"}}\n",
            number % 7
        ));
    }
    let answer = node.ok("bulk", "index=a", "refresh=true", &body);
    assert_eq!(answer["errors"], json!(false));
    assert_eq!(answer["items"].as_array().map(Vec::len), Some(2500));
    assert_eq!(answer["items"][2499]["index"]["_seq_no"], json!(2499));
    assert_eq!(node.count("a"), 2500);
}

/// A client that is told that its request was refused sends it again: so nothing of a refused request may be written. Where memory runs
/// out later, each document is told of by itself.
#[test]
fn a_bulk_request_that_takes_too_much_is_refused_before_anything_is_written_or_document_by_document() {
    let node = Node::start();
    let lines = "{\"index\":{\"_index\":\"a\"}}\n{}\n".repeat(6000);
    let (mut refused, mut answered, mut written) = (0, 0, 0);
    // From what is too little for reading it to what is enough for all of it.
    for eighths in 8..80 {
        let bytes = eighths << 17;
        let limit = format!("{{\"transient\":{{\"indices.breaker.request.limit\":\"{bytes}b\"}}}}");
        node.ok("put_cluster_settings", "", "", &limit);
        let (status, answer) = node.call("bulk", "", "refresh=true", &lines);
        if status == 200 {
            let items = answer["items"].as_array().expect("items");
            let errors = items.iter().filter(|item| item["index"]["status"] != json!(201));
            let kinds: Vec<&Value> = errors.map(|item| &item["index"]["error"]["type"]).collect();
            assert!(kinds.iter().all(|kind| **kind == json!("circuit_breaking_exception")), "{kinds:?}");
            assert_eq!(answer["errors"], json!(!kinds.is_empty()));
            written += 6000 - kinds.len();
            answered += 1;
            if kinds.is_empty() {
                break;
            }
        } else {
            assert_eq!((status, &answer["error"]["type"]), (429, &json!("circuit_breaking_exception")));
            refused += 1;
        }
        let (exists, _) = node.call("exists_index", "index=a", "", "");
        // The index may be all that there was memory for.
        assert!(if exists == 200 { answered > 0 } else { written == 0 }, "at {bytes} bytes");
    }
    assert!(refused > 0);
    assert_eq!(node.count("a"), written as u64);
}

#[test]
fn a_body_counts_with_what_its_values_take_in_memory() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", "{}");
    node.ok("put_cluster_settings", "", "", "{\"transient\":{\"indices.breaker.request.limit\":\"64mb\"}}");
    // Each value is two bytes long, and a hundred times that where it has been read.
    let search = format!("{{\"query\":{{\"terms\":{{\"k\":[{}1]}}}}}}", "1,".repeat(300_000));
    let lines = format!("{{\"index\":\"a\"}}\n{search}\n");
    for (operation, path, body) in [("search", "index=a", &search), ("msearch", "", &lines)] {
        let (status, answer) = node.call(operation, path, "", body);
        assert_eq!(
            (status, &answer["error"]["type"]),
            (429, &json!("circuit_breaking_exception")),
            "{operation}"
        );
    }
    node.ok("search", "index=a", "", &search.replace("1,", ""));
    // A body of more values than any request needs is refused, however much memory there may be. Commas inside of texts do not count.
    let many = search.replace("1,", "1,1,");
    for (operation, path, body) in
        [("search", "index=a", many.clone()), ("msearch", "", format!("{{\"index\":\"a\"}}\n{many}\n"))]
    {
        let (status, answer) = node.call(operation, path, "", &body);
        assert_eq!(
            (status, &answer["error"]["type"]),
            (400, &json!("illegal_argument_exception")),
            "{operation}"
        );
    }
    node.ok("put_cluster_settings", "", "", "{\"transient\":{\"indices.breaker.request.limit\":\"640mb\"}}");
    let text = format!("{{\"query\":{{\"term\":{{\"k\":\"{}\"}}}}}}", ",".repeat(600_000));
    node.ok("search", "index=a", "", &text);
}

/// A value of a few bytes may take a hundred times what is estimated of it, so reading looks at the limit as well.
#[test]
fn a_document_is_not_read_on_when_its_values_take_too_much() {
    let node = Node::start();
    node.ok(
        "create_index",
        "index=a",
        "",
        "{\"mappings\":{\"properties\":{\"a\":{\"type\":\"object\",\"enabled\":false}}}}",
    );
    node.ok("put_cluster_settings", "", "", "{\"transient\":{\"indices.breaker.request.limit\":\"64mb\"}}");
    let body = format!("{{\"a\":[{}0]}}", "{\"\":0},".repeat(500_000));
    let (status, answer) = node.call("index_doc", "index=a&id=1", "", &body);
    assert_eq!((status, &answer["error"]["type"]), (429, &json!("circuit_breaking_exception")), "{answer}");
    assert_eq!(node.call("get_doc", "index=a&id=1", "", "").0, 404);
}

/// Idle processors read documents of a large batch; what became of each is told at its place, and they are written in order.
#[test]
fn a_batch_that_several_threads_read_keeps_its_order() {
    let node = Node::start();
    let text = "red wine in old cellars ".repeat(20);
    let mut lines = String::new();
    for number in 0..700 {
        let field = if number % 70 == 3 { "\"wrong\"".to_owned() } else { number.to_string() };
        // Each document but the first of its kind replaces one that stands 350 places before it.
        let id = number % 350;
        lines += &format!("{{\"index\":{{\"_id\":\"{id}\"}}}}\n{{\"n\":{field},\"text\":\"{text}\"}}\n");
    }
    node.ok("create_index", "index=a", "", r#"{"mappings":{"properties":{"n":{"type":"integer"}}}}"#);
    let answer = node.ok("bulk", "index=a", "refresh=true", &lines);
    let mut sequence = 0;
    for (number, (status, outcome)) in items(&answer).into_iter().enumerate() {
        let replaces = number >= 350 && (number - 350) % 70 != 3;
        let expected = match (number % 70 == 3, replaces) {
            (true, _) => (400, "document_parsing_exception"),
            (false, false) => (201, "created"),
            (false, true) => (200, "updated"),
        };
        assert_eq!((status, outcome.as_str()), expected, "{number}");
        if status < 300 {
            assert_eq!(answer["items"][number]["index"]["_seq_no"], json!(sequence));
            sequence += 1;
        }
    }
    assert_eq!(node.count("a"), 345);
}
