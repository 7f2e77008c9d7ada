//! Requests that ask for all fields of indices, or name very many of them: what they may name, and that they stop between two.

use serde_json::{Value, json};
use sparrow_engine::Probe;

use crate::common::Node;

/// Fields of each of the indices.
const FIELDS: usize = 1500;
const INDICES: usize = 2;
/// Checks that a request may still make after the one at which it was stopped: those of the loops that it leaves.
const MOST_AFTER: u64 = 100;

type Asked = (&'static str, &'static str, &'static str, Value);

fn wide(templates: &Value) -> Node {
    let node = Node::start();
    for index in 0..INDICES {
        let name = |field: usize| format!("o{}.field_{index}_{field}", field % 10);
        let fields = (0..FIELDS).map(|field| (name(field), json!({"type": "keyword"})));
        let properties: serde_json::Map<String, Value> = fields.collect();
        let body = json!({
            "settings": {"index.mapping.total_fields.limit": 2 * FIELDS},
            "mappings": {"properties": properties, "dynamic_templates": templates},
        });
        node.ok("create_index", &format!("index=wide{index}"), "", &body.to_string());
        let document = json!({name(0): "a b", name(1): "b"}).to_string();
        node.ok("index_doc", &format!("index=wide{index}&id=1"), "refresh=true", &document);
    }
    node
}

/// Status of a request, its answer, and the number of its checks; it is stopped at the check `stop_at`.
fn probed(node: &Node, (op, path, query, body): &Asked, stop_at: u64) -> (u16, Value, u64) {
    let probe = Probe::new(stop_at);
    Probe::set(Some(probe.clone()));
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = node.call(op, path, query, &body);
    Probe::set(None);
    (status, answer, probe.checks())
}

/// Requests that look at each field of an index at least.
fn of_all_fields() -> Vec<Asked> {
    let search = |body: Value| ("search", "index=wide0", "", body);
    let text = |kind: &str| json!({kind: {"query": "a", "fields": ["*"]}});
    let crossing = json!({"multi_match": {"query": "a", "fields": ["*"], "type": "cross_fields"}});
    vec![
        ("field_caps", "index=wide*", "fields=*&include_unmapped=true", Value::Null),
        ("field_caps", "index=wide*", "fields=none", Value::Null),
        ("get_mapping", "index=wide*", "", Value::Null),
        ("get_index", "index=wide*", "", Value::Null),
        ("cluster_state", "", "", Value::Null),
        ("get_field_mapping", "index=wide*&fields=*a*,*_1", "", Value::Null),
        ("multi_term_vectors", "index=wide0", "", json!({"docs": [{"_id": "1", "fields": ["*"]}]})),
        ("count", "index=wide0", "", json!({"query": text("multi_match")})),
        ("validate_query", "index=wide0", "explain=true", json!({"query": text("multi_match")})),
        search(json!({"query": text("multi_match")})),
        search(json!({"query": crossing})),
        search(json!({"query": text("query_string")})),
        search(json!({"query": text("simple_query_string")})),
        search(json!({"retriever": {"rrf": {"query": "a"}}})),
        search(json!({"query": {"match_all": {}}, "highlight": {"fields": {"*": {}}}})),
    ]
}

#[test]
fn a_request_for_all_fields_is_stopped_between_two_of_them() {
    let node = wide(&json!([]));
    let mut wrong = Vec::new();
    for request in of_all_fields() {
        let (op, path, query, body) = &request;
        let shown = format!("{op} {path} {query} {body}");
        let (status, answer, checks) = probed(&node, &request, u64::MAX);
        let answer = answer.to_string();
        assert!(status < 300, "{shown}: {status} {}", &answer[..answer.len().min(500)]);
        if checks < FIELDS as u64 {
            wrong.push(format!("{shown}: only {checks} checks"));
        }
        for place in [1, checks / 3, checks / 2, checks - 1] {
            let (status, answer, made) = probed(&node, &request, place.max(1));
            let after = made.saturating_sub(place);
            if !answer.to_string().contains("task_cancelled_exception") || after > MOST_AFTER {
                wrong.push(format!("{shown}, stopped at {place} of {checks}: {status}, {after} more checks"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are not stopped:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_new_mapping_and_a_new_field_are_stopped_while_they_are_read() {
    let templates: Vec<Value> = (0..1000)
        .map(|at| json!({format!("t{at}"): {"path_match": format!("*a*b{at}"), "mapping": {"type": "keyword"}}}))
        .collect();
    let node = wide(&json!(templates));
    let document = ("index_doc", "index=wide0&id=2", "", json!({"unmapped": "x"}));
    let (status, answer, _) = probed(&node, &document, 500);
    assert_eq!((status, &answer["error"]["type"]), (400, &json!("task_cancelled_exception")));
    assert_eq!(node.count("wide0"), 1);
    let more: serde_json::Map<String, Value> =
        (0..400).map(|at| (format!("new{at}"), json!({"type": "keyword"}))).collect();
    let mapping = ("put_mapping", "index=wide0", "", json!({"properties": more}));
    for place in [1, 300, 600, 2000] {
        let (status, answer, _) = probed(&node, &mapping, place);
        assert_eq!((status, &answer["error"]["type"]), (400, &json!("task_cancelled_exception")), "{place}");
    }
    let (status, answer, _) = probed(&node, &mapping, u64::MAX);
    assert_eq!(status, 200, "{answer}");
    assert_eq!(node.call("index_doc", "index=wide0&id=2", "", r#"{"unmapped": "x"}"#).0, 201);
}

#[test]
fn a_list_names_no_more_patterns_of_fields_than_possible() {
    let node = wide(&json!([]));
    let patterns = |most: usize| json!((0..most).map(|at| format!("*a*b*{at}")).collect::<Vec<_>>());
    let search = |body: Value| ("search", "index=wide0", "", body);
    let requests = |most: usize| -> Vec<Asked> {
        let fields = patterns(most);
        let text = |kind: &str| json!({kind: {"query": "a", "fields": fields}});
        let short = |kind: &str| search(json!({"retriever": {kind: {"query": "a", "fields": fields}}}));
        let liked =
            json!({"more_like_this": {"like": "a", "fields": fields, "fail_on_unsupported_field": false}});
        let of_document = json!({"more_like_this": {"like": {"_id": "1", "fields": fields}}});
        vec![
            search(json!({"query": text("multi_match")})),
            search(json!({"query": text("combined_fields")})),
            search(json!({"query": text("query_string")})),
            search(json!({"query": text("simple_query_string")})),
            search(json!({"query": liked})),
            search(json!({"query": of_document})),
            search(json!({"fields": fields})),
            search(json!({"_source": fields})),
            search(json!({"_source": {"excludes": fields}})),
            short("rrf"),
            short("linear"),
            ("count", "index=wide0", "", json!({"query": text("multi_match")})),
            ("field_caps", "index=wide0", "", json!({"fields": fields})),
            ("term_vectors", "index=wide0&id=1", "", json!({"fields": fields})),
            (
                "multi_term_vectors",
                "index=wide0",
                "",
                json!({"ids": ["1"], "parameters": {"fields": fields}}),
            ),
            ("update_doc", "index=wide0&id=1", "", json!({"doc": {}, "_source": {"excludes": fields}})),
            ("mget", "index=wide0", "", json!({"docs": [{"_id": "1", "_source": fields}]})),
            (
                "reindex",
                "",
                "",
                json!({"source": {"index": "wide0", "_source": fields}, "dest": {"index": "copy"}}),
            ),
        ]
    };
    for (op, path, query, body) in requests(1024) {
        let (status, answer) = node.call(op, path, query, &body.to_string());
        assert_eq!(status, 200, "{op} {}: {answer}", &body.to_string()[..100]);
    }
    for (op, path, query, body) in requests(1025) {
        let (status, answer) = node.call(op, path, query, &body.to_string());
        let answer = answer.to_string();
        assert!(
            status == 400
                && answer.contains("has [1025] patterns, at most [1024] are possible on this server"),
            "{op} {}: {status} {}",
            &body.to_string()[..100],
            &answer[..answer.len().min(500)]
        );
    }
    let listed = patterns(1025)
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect::<Vec<_>>()
        .join(",");
    let (status, _, reason) =
        node.error("get_field_mapping", &format!("index=wide0&fields={listed}"), "", "");
    assert_eq!(
        (status, reason.as_str()),
        (400, "[fields] has [1025] patterns, at most [1024] are possible on this server")
    );
    let invalid = json!({"query": {"multi_match": {"query": "a", "fields": patterns(1025)}}}).to_string();
    assert_eq!(node.ok("validate_query", "index=wide0", "", &invalid)["valid"], false);
    // A pattern that is repeated counts once.
    let same = json!({"query": {"multi_match": {"query": "b", "fields": vec!["*"; 100_000]}}}).to_string();
    assert_eq!(node.ok("count", "index=wide0", "", &same)["count"], 1);
}

#[test]
fn each_field_of_each_word_is_a_clause() {
    let node = wide(&json!([]));
    let words = (0..8000).map(|at| format!("v{at}")).collect::<Vec<_>>().join(" OR ");
    for kind in ["simple_query_string", "query_string"] {
        let clause = json!({kind: {"query": words, "fields": ["*"]}});
        let request = ("search", "index=wide0", "", json!({"query": clause}));
        let (status, answer, checks) = probed(&node, &request, u64::MAX);
        let kind_of_error = &answer["error"]["root_cause"][0]["type"];
        assert_eq!((status, kind_of_error), (400, &json!("too_many_nested_clauses")), "{kind}");
        // Refused after the first ten words, not after all.
        assert!(checks < 100_000, "{kind}: {checks}");
    }
}

#[test]
fn a_highlight_has_no_more_plans_than_an_index_has_fields() {
    let node = wide(&json!([]));
    let search =
        |fields: Vec<Value>| json!({"query": {"match_all": {}}, "highlight": {"fields": fields}}).to_string();
    // A pattern that is repeated with the same options makes no further plans.
    let same = search((0..100).map(|_| json!({"*": {"no_match_size": 10}})).collect());
    let hit = &node.ok("search", "index=wide0", "", &same)["hits"]["hits"][0];
    assert_eq!(hit["highlight"]["o0.field_0_0"], json!(["a b"]));
    let different = search((0..100).map(|at| json!({"*": {"fragment_size": 100 + at}})).collect());
    let (status, _, reason) = node.error("search", "index=wide0", "", &different);
    assert_eq!(status, 400);
    assert!(reason.starts_with("[highlight] has more than [50000] fields"), "{reason}");
}

#[test]
fn an_index_has_no_more_fields_and_templates_than_possible() {
    let node = Node::start();
    let limit = json!({"settings": {"index.mapping.total_fields.limit": 1_000_000}}).to_string();
    let (status, _, reason) = node.error("create_index", "index=large", "", &limit);
    assert_eq!(
        (status, reason.as_str()),
        (
            400,
            "Failed to parse value [1000000] for setting [index.mapping.total_fields.limit] must be <= 50000"
        )
    );
    node.ok("create_index", "index=large", "", r#"{"settings":{"index.mapping.total_fields.limit":50000}}"#);
    let fields: serde_json::Map<String, Value> =
        (0..5001).map(|at| (format!("f{at}"), json!({"type": "keyword", "fields": sub_fields(9)}))).collect();
    let (status, _, reason) =
        node.error("put_mapping", "index=large", "", &json!({"properties": fields}).to_string());
    assert_eq!((status, reason.as_str()), (400, "Limit of total fields [50000] has been exceeded"));
    let templates: Vec<Value> = (0..1001)
        .map(|at| json!({format!("t{at}"): {"match": "x", "mapping": {"type": "keyword"}}}))
        .collect();
    let (status, _, reason) =
        node.error("put_mapping", "index=large", "", &json!({"dynamic_templates": templates}).to_string());
    assert_eq!(status, 400);
    assert!(
        reason.ends_with(
            "[dynamic_templates] has [1001] templates, at most [1000] are possible on this server"
        ),
        "{reason}"
    );
    let templates: Vec<Value> = (0..6)
        .map(|at| {
            let names: Vec<String> = (0..1000).map(|pattern| format!("n{at}_{pattern}")).collect();
            json!({format!("t{at}"): {"path_match": names, "mapping": {"type": "keyword"}}})
        })
        .collect();
    let (_, _, reason) =
        node.error("put_mapping", "index=large", "", &json!({"dynamic_templates": templates}).to_string());
    let limit = "[dynamic_templates] has [6000] patterns, at most [5000] are possible on this server";
    assert!(reason.ends_with(limit), "{reason}");
    for list in ["match", "unmatch", "path_match", "path_unmatch"] {
        let names: Vec<String> = (0..1025).map(|at| format!("n{at}")).collect();
        let template = json!({"dynamic_templates": [{"t": {list: names, "mapping": {"type": "keyword"}}}]});
        let (status, _, reason) = node.error("put_mapping", "index=large", "", &template.to_string());
        assert_eq!(status, 400);
        assert!(
            reason.ends_with(&format!(
                "[{list}] has [1025] patterns, at most [1024] are possible on this server"
            )),
            "{reason}"
        );
    }
    let excludes: Vec<String> = (0..1025).map(|at| format!("n{at}")).collect();
    let (status, _, reason) = node.error(
        "create_index",
        "index=without",
        "",
        &json!({"mappings": {"_source": {"excludes": excludes}}}).to_string(),
    );
    assert_eq!(status, 400);
    assert!(
        reason.ends_with("[_source] has [1025] patterns, at most [1024] are possible on this server"),
        "{reason}"
    );
}

fn sub_fields(count: usize) -> Value {
    (0..count)
        .map(|at| (format!("s{at}"), json!({"type": "keyword"})))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
