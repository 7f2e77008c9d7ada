//! Searches that cannot be answered.

use serde_json::{Value, json};

use super::common::Node;

fn books() -> Node {
    let node = Node::start();
    node.create(
        "books",
        &json!({"title": {"type": "text"}, "n": {"type": "integer"}, "v": {"type": "sparse_vector"},
            "d": {"type": "dense_vector", "dims": 2}}),
    );
    node.load("books", &[json!({"title": "x", "v": {"a": 1}, "d": [1, 0]})]);
    node
}

#[test]
fn a_query_that_does_not_fit_its_field_names_the_shard() {
    let node = books();
    let error = node.search_error(
        "books",
        &json!({"query": {"sparse_vector": {"field": "title", "query_vector": {"alpha": 2.5}}}}),
    );
    let reason = "failed to create query: field [title] must be type [sparse_vector] but is type [text]";
    assert_eq!(error["status"], 400);
    let error = &error["error"];
    assert_eq!(error["type"], "search_phase_execution_exception");
    assert_eq!(error["root_cause"][0]["reason"], reason);
    let failed = &error["failed_shards"][0];
    assert_eq!((&failed["shard"], &failed["index"]), (&json!(0), &json!("books")));
    assert_eq!(failed["node"], node.engine.node_id());
    assert_eq!(failed["reason"]["reason"], reason);
    assert_eq!(failed["reason"]["caused_by"]["type"], "illegal_argument_exception");
    assert_eq!(error["caused_by"], Value::Null);
}

#[test]
fn values_that_do_not_fit_are_refused() {
    let node = books();
    for (query, part) in [
        (json!({"term": {"n": "abc"}}), "For input string"),
        (json!({"range": {"n": {"gte": "abc"}}}), "For input string"),
        (json!({"query_string": {"query": "title:("}}), "Failed to parse query [title:(]"),
        (json!({"knn": {"field": "d", "query_vector": [1], "k": 1}}), "different number of dimensions [1]"),
        (json!({"knn": {"field": "title", "query_vector": [1], "k": 1}}), "[dense_vector]"),
        (json!({"text_expansion": {"v": {"model_id": "none", "model_text": "x"}}}), "none"),
    ] {
        let error = node.search_error("books", &json!({"query": query}));
        assert!((400..500).contains(&error["status"].as_u64().unwrap_or(0)), "{query}: {error}");
        assert!(
            error["error"]["root_cause"][0]["reason"].as_str().is_some_and(|reason| reason.contains(part)),
            "{query}: {error}"
        );
    }
}

#[test]
fn a_page_beyond_the_window_is_refused() {
    let node = books();
    let error = node.search_error("books", &json!({"from": 9999, "size": 10}));
    assert_eq!(error["error"]["type"], "search_phase_execution_exception");
    assert!(
        error["error"]["caused_by"]["caused_by"]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("[10009]"))
    );
    assert_eq!(error["status"], 400);
}

#[test]
fn a_request_that_was_cancelled_ends() {
    use sparrow_engine::{CancelFlag, Request};
    let node = books();
    let flag = CancelFlag::default();
    flag.cancel();
    let request = Request {
        op: "search".into(),
        path: [("index".to_owned(), "books".to_owned())].into(),
        ..Request::default()
    };
    let error = node.engine.execute(&request, b"", &flag).expect_err("cancelled");
    assert_eq!(error.es_type(), "task_cancelled_exception");
}
