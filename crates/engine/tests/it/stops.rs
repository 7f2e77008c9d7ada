//! Requests end soon after they are stopped, wherever they are then.

use serde_json::{Value, json};
use sparrow_engine::Probe;

use crate::common::Node;

const DOCUMENTS: usize = 3000;
/// Checks that a request may still make after the one at which it was stopped: those of the loops that it leaves, and one for each
/// document of a simulation, which fail one by one.
const MOST_AFTER: u64 = 400;

fn filled() -> Node {
    let node = Node::start();
    node.ok(
        "create_index",
        "index=many",
        "",
        r#"{"mappings":{"properties":{"k":{"type":"keyword"},"n":{"type":"long"},"d":{"type":"date"},"t":{"type":"text"},
            "v":{"type":"sparse_vector"},"e":{"type":"dense_vector","dims":4}}}}"#,
    );
    let mut lines = String::new();
    for number in 0..DOCUMENTS {
        let document = json!({
            "k": format!("key{number}"), "n": number, "d": 1_700_000_000_000_u64 + number as u64 * 86_400_000,
            "t": format!("word{} common text{}", number % 50, number % 7),
            "v": {"a": 1.0 + number as f64 / 1000.0, format!("b{}", number % 20): 2.0},
            "e": [number % 13, 1, number % 7, 2],
        });
        lines += &format!("{{\"index\":{{\"_index\":\"many\",\"_id\":\"{number}\"}}}}\n{document}\n");
        if number % 1000 == 999 {
            node.ok("bulk", "", "refresh=true", &lines);
            lines.clear();
        }
    }
    node
}

/// Operations that may take long, with their paths and bodies.
fn requests() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let search = |body: Value| ("search", "index=many", "", body);
    let aggs = |aggs: Value| search(json!({"size": 0, "aggs": aggs}));
    let inner = json!({"s": {"stats": {"field": "n"}}, "p": {"percentiles": {"field": "n"}}, "c": {"cardinality": {"field": "k"}}});
    let patterns: Vec<Value> = (0..20).map(|at| json!({"wildcard": {"k": format!("*{at}*")}})).collect();
    let ranges: Vec<Value> = (0..50).map(|at| json!({"range": {"n": {"gte": at}}})).collect();
    let text = json!({"match": {"t": "common word3 text2"}});
    vec![
        aggs(json!({"a": {"terms": {"field": "k", "size": 3000}, "aggs": inner}})),
        aggs(
            json!({"a": {"date_histogram": {"field": "d", "calendar_interval": "day", "format": "yyyy-MM-dd"}, "aggs": inner}}),
        ),
        aggs(json!({"a": {"histogram": {"field": "n", "interval": 1}}})),
        aggs(
            json!({"a": {"composite": {"size": 2000, "sources": [{"k": {"terms": {"field": "k"}}}, {"n": {"terms": {"field": "n"}}}]}}}),
        ),
        aggs(
            json!({"a": {"terms": {"field": "k", "size": 200}, "aggs": {"t": {"top_hits": {"explain": true, "size": 2}}}}}),
        ),
        aggs(json!({"a": {"multi_terms": {"size": 1000, "terms": [{"field": "k"}, {"field": "n"}]}}})),
        search(json!({"size": 1000, "query": {"bool": {"should": ranges}}, "explain": true})),
        search(
            json!({"size": 2000, "query": text, "sort": [{"n": "desc"}, "k"], "fields": ["*"], "docvalue_fields": ["n", "d"]}),
        ),
        search(json!({"size": 1000, "query": text, "highlight": {"fields": {"t": {}}}})),
        search(json!({"size": 100, "query": {"bool": {"should": patterns}}})),
        search(
            json!({"size": 100, "query": {"match_all": {}}, "collapse": {"field": "k", "inner_hits": {"name": "i", "size": 1}}}),
        ),
        search(
            json!({"size": 500, "query": {"function_score": {"query": {"match_all": {}}, "field_value_factor": {"field": "n"}}}}),
        ),
        search(json!({"size": 500, "retriever": {"rrf": {"rank_window_size": 1000, "retrievers": [
            {"standard": {"query": text}}, {"standard": {"query": {"sparse_vector": {"field": "v", "query_vector": {"a": 1.0, "b3": 2.0}}}}},
            {"knn": {"field": "e", "query_vector": [1, 2, 3, 4], "k": 100, "num_candidates": 1000}}]}}})),
        search(
            json!({"query": {"more_like_this": {"fields": ["t"], "like": "common word3 text2", "min_term_freq": 1}}, "size": 1000}),
        ),
        (
            "rank_eval",
            "index=many",
            "",
            json!({"requests": (0..30).map(|at| json!({"id": format!("{at}"), "request": {"query": text}, "ratings": []})).collect::<Vec<_>>(), "metric": {"precision": {"k": 50}}}),
        ),
        ("mget", "index=many", "", json!({"ids": (0..2000).map(|at| at.to_string()).collect::<Vec<_>>()})),
        (
            "multi_term_vectors",
            "index=many",
            "",
            json!({"ids": (0..300).map(|at| at.to_string()).collect::<Vec<_>>(), "parameters": {"fields": ["t"], "term_statistics": true}}),
        ),
        ("validate_query", "index=many", "explain=true", json!({"query": text})),
        ("count", "index=many", "", json!({"query": {"bool": {"should": patterns}}})),
        ("terms_enum", "index=many", "", json!({"field": "k", "string": "key", "size": 2000})),
        ("explain", "index=many&id=7", "", json!({"query": {"bool": {"should": ranges}}})),
        ("analyze", "index=many", "", json!({"analyzer": "standard", "text": "some words ".repeat(2000)})),
        (
            "simulate_pipeline",
            "",
            "",
            json!({"pipeline": {"processors": [{"uppercase": {"field": "t"}}]}, "docs": vec![json!({"_source": {"t": "x"}}); 300]}),
        ),
    ]
}

/// Status of a request, and the number of its checks; it is stopped at the check `stop_at`.
fn probed(node: &Node, request: &(&str, &str, &str, Value), stop_at: u64) -> (u16, Value, u64) {
    let (op, path, query, body) = request;
    let probe = Probe::new(stop_at);
    Probe::set(Some(probe.clone()));
    let (status, answer) = node.call(op, path, query, &body.to_string());
    Probe::set(None);
    (status, answer, probe.checks())
}

#[test]
fn a_request_that_is_stopped_at_any_check_ends_there() {
    let node = filled();
    let mut wrong = Vec::new();
    for request in requests() {
        let (op, _, _, body) = &request;
        let shown: String = body.to_string().chars().take(120).collect();
        let (status, answer, checks) = probed(&node, &request, u64::MAX);
        assert!(status < 300, "{op} {shown}: {status} {answer}");
        assert!(checks > 0, "{op} {shown} never checks");
        // The first and the last ones, and some between.
        let mut places: Vec<u64> = (1..=16).map(|part| (checks * part / 16).max(1)).collect();
        places.extend([1, 2, 3, checks.saturating_sub(1).max(1)]);
        for place in places {
            let (status, answer, made) = probed(&node, &request, place);
            let after = made.saturating_sub(place);
            let is_stopped = answer.to_string().contains("task_cancelled_exception");
            // Helpers may make fewer checks than before, so that the request is not stopped at all.
            if made >= place && (!is_stopped || after > MOST_AFTER) {
                wrong.push(format!(
                    "{op} {shown}, stopped at {place} of {checks}: {status}, {after} more checks"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are not stopped:\n{}", wrong.len(), wrong.join("\n"));
}
