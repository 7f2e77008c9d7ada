//! `_termvectors` and `_mtermvectors`: terms with their places and frequencies.

use serde_json::{Value, json};

use super::common::Node;

fn foxes() -> Node {
    let node = Node::start();
    let stored = |kind: &str| json!({"type": "text", "term_vector": kind});
    node.create(
        "foxes",
        &json!({
            "text": stored("with_positions_offsets"), "few": stored("yes"), "places": stored("with_positions"),
            "plain": {"type": "text", "fields": {"english": {"type": "text", "analyzer": "english"}}},
            "tag": {"type": "keyword", "ignore_above": 5}, "n": {"type": "integer"}, "off": {"type": "text", "index": false},
        }),
    );
    node.load(
        "foxes",
        &[
            json!({"text": "The quick brown fox is brown.", "few": "fox fox", "places": "a fox", "plain": "lazy dogs",
                "tag": ["red", "too long"], "n": 3, "off": "unseen"}),
            json!({"text": "brown bears"}),
        ],
    );
    node
}

fn vectors(node: &Node, id: &str, query: &[(&str, &str)], body: &Value) -> Value {
    node.ok("term_vectors", &[("index", "foxes"), ("id", id)], query, body)
}

#[test]
fn terms_have_places_and_frequencies() {
    let node = foxes();
    let answer = vectors(&node, "1", &[("term_statistics", "true")], &Value::Null);
    assert_eq!(
        (&answer["_id"], &answer["_version"], &answer["found"]),
        (&json!("1"), &json!(1), &json!(true))
    );
    let shown: Vec<&String> = answer["term_vectors"].as_object().expect("fields").keys().collect();
    assert_eq!(shown, ["few", "places", "text"]);
    let text = &answer["term_vectors"]["text"];
    assert_eq!(text["field_statistics"], json!({"sum_doc_freq": 7, "doc_count": 2, "sum_ttf": 8}));
    let terms: Vec<&String> = text["terms"].as_object().expect("terms").keys().collect();
    assert_eq!(terms, ["brown", "fox", "is", "quick", "the"]);
    assert_eq!(
        text["terms"]["brown"],
        json!({"doc_freq": 2, "ttf": 3, "term_freq": 2, "tokens": [
            {"position": 2, "start_offset": 10, "end_offset": 15}, {"position": 5, "start_offset": 23, "end_offset": 28},
        ]})
    );
    assert_eq!(
        answer["term_vectors"]["few"]["terms"]["fox"],
        json!({"doc_freq": 1, "ttf": 2, "term_freq": 2})
    );
    assert_eq!(answer["term_vectors"]["places"]["terms"]["fox"]["tokens"], json!([{"position": 1}]));
    let bare =
        [("fields", "text"), ("offsets", "false"), ("positions", "false"), ("field_statistics", "false")];
    assert_eq!(
        vectors(&node, "2", &bare, &Value::Null)["term_vectors"],
        json!({"text": {"terms": {"bears": {"term_freq": 1}, "brown": {"term_freq": 1}}}})
    );
    assert_eq!(vectors(&node, "9", &[], &Value::Null)["found"], false);
}

#[test]
fn fields_without_vectors_are_analyzed_when_asked_for() {
    let node = foxes();
    let fields = |body: Value| {
        let answer = vectors(&node, "1", &[("field_statistics", "false")], &body);
        let fields = answer["term_vectors"].as_object().expect("fields").clone();
        let terms =
            |vector: &Value| vector["terms"].as_object().expect("terms").keys().cloned().collect::<Vec<_>>();
        fields
            .iter()
            .map(|(name, vector)| format!("{name}={}", terms(vector).join(",")))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        fields(json!({"fields": ["plain*", "tag", "n", "off", "nothing"]})),
        "plain=dogs,lazy plain.english=dog,lazi tag=red"
    );
    assert_eq!(
        fields(json!({"fields": ["plain"], "per_field_analyzer": {"plain": "keyword"}})),
        "plain=lazy dogs"
    );
    assert_eq!(
        fields(json!({"fields": ["text"], "filter": {"max_num_terms": 2, "min_word_length": 3}})),
        "text=brown,fox"
    );
    assert_eq!(fields(json!({"fields": ["text"], "filter": {"min_doc_freq": 2}})), "text=brown");
    assert_eq!(
        fields(
            json!({"fields": ["text"], "filter": {"max_doc_freq": 1, "max_word_length": 3, "min_term_freq": 1}})
        ),
        "text=fox,is,the"
    );
    // A document that is in no index, with letters of two units.
    let body = json!({"doc": {"plain": ["🦊 fox", "brown"]}, "fields": ["plain"]});
    let answer = node.ok("term_vectors", &[("index", "foxes")], &[], &body);
    assert_eq!((answer.get("_id"), &answer["found"]), (None, &json!(true)));
    let terms = &answer["term_vectors"]["plain"]["terms"];
    assert_eq!(terms["fox"]["tokens"], json!([{"position": 1, "start_offset": 3, "end_offset": 6}]));
    assert_eq!(terms["brown"]["tokens"][0]["start_offset"], 7);
    assert!(terms["brown"]["tokens"][0]["position"].as_u64() > Some(100), "{terms}");
}

#[test]
fn documents_that_no_search_sees_are_read_unless_told_otherwise() {
    let node = foxes();
    node.ok("index_doc", &[("index", "foxes"), ("id", "3")], &[], &json!({"text": "hidden"}));
    assert_eq!(
        vectors(&node, "3", &[], &Value::Null)["term_vectors"]["text"]["terms"]["hidden"]["term_freq"],
        1
    );
    assert_eq!(vectors(&node, "3", &[("realtime", "false")], &Value::Null)["found"], false);
}

#[test]
fn several_documents_are_asked_for_at_once() {
    let node = foxes();
    let body = json!({"ids": ["1", "9"], "parameters": {"fields": ["text"], "term_statistics": true}});
    let answer = node.ok("multi_term_vectors", &[("index", "foxes")], &[], &body);
    assert_eq!(answer["docs"][0]["term_vectors"]["text"]["terms"]["brown"]["ttf"], 3);
    assert_eq!(answer["docs"][1]["found"], false);
    let body = json!({"docs": [
        {"_index": "foxes", "_id": "2"}, {"_index": "nowhere", "_id": "1"}, {"_index": "foxes", "_id": "1", "version": 7},
        {"_index": "foxes", "doc": {"plain": "new"}},
    ]});
    let docs = node.ok("multi_term_vectors", &[], &[], &body)["docs"].clone();
    assert_eq!(docs[0]["term_vectors"]["text"]["terms"]["bears"]["term_freq"], 1);
    assert_eq!(docs[1]["error"]["type"], "index_not_found_exception");
    assert_eq!(docs[2]["error"]["type"], "version_conflict_engine_exception");
    assert_eq!(docs[3]["term_vectors"]["plain"]["terms"]["new"]["term_freq"], 1);
}

#[test]
fn malformed_requests_are_named() {
    let node = foxes();
    let refused = |path: &[(&str, &str)], op: &str, body: &Value| -> String {
        let error = node.run(op, path, &[], body.to_string().as_bytes()).expect_err("refused");
        assert_eq!(error.status(), 400, "{body}");
        error.body().to_string()
    };
    let one = [("index", "foxes"), ("id", "1")];
    for (body, reason) in [
        (json!({"nope": 1}), "unknown field [nope]"),
        (json!({"fields": "text"}), "field [fields] must be an array"),
        (json!({"offsets": "maybe"}), "[offsets] must be [true] or [false]"),
        (json!({"filter": {"nope": 1}}), "the field [nope] is not valid"),
        (json!({"filter": {"min_doc_freq": -1}}), "[min_doc_freq] must be a number"),
        (json!({"doc": {"text": "a"}}), "either [id] or [doc] can be specified, but not both!"),
        (json!({"fields": ["text"], "per_field_analyzer": {"text": "nope"}}), "analyzer [nope] not found"),
        (json!([]), "it must be an object"),
    ] {
        let error = refused(&one, "term_vectors", &body);
        assert!(error.contains(reason), "{reason}: {error}");
    }
    let nothing = refused(&[("index", "foxes")], "term_vectors", &json!({}));
    assert!(nothing.contains("id or doc is missing"), "{nothing}");
    let many: Vec<String> = (0..1_025).map(|n| n.to_string()).collect();
    for (body, reason) in [
        (json!({}), "no documents requested"),
        (json!({"ids": many}), "takes at most [1024] documents"),
        (json!({"nope": []}), "unexpected key [nope]"),
        (json!({"docs": [{"_id": "1", "nope": 1}]}), "unknown field [nope]"),
    ] {
        let error = refused(&[("index", "foxes")], "multi_term_vectors", &body);
        assert!(error.contains(reason), "{reason}: {error}");
    }
}
