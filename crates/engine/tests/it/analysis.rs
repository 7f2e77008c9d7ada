//! Analyzers of an index, from its settings to its searches, and `_analyze`.

use crate::common::Node;
use serde_json::{Value, json};

fn index() -> String {
    json!({
        "settings": {"index": {"analysis": {
            "char_filter": {"and": {"type": "mapping", "mappings": ["& => and"]}},
            "filter": {
                "places": {"type": "synonym_graph", "synonyms": ["dns, domain name system", "usa => america"]},
                "no_the": {"type": "stop", "stopwords": ["the"]}
            },
            "analyzer": {
                "folded": {"tokenizer": "standard", "char_filter": ["and"], "filter": ["lowercase", "asciifolding"]},
                "wide": {"tokenizer": "standard", "filter": ["lowercase", "no_the", "places"]}
            },
            "normalizer": {"plain": {"filter": ["lowercase", "asciifolding"]}}
        }}},
        "mappings": {"properties": {
            "title": {"type": "text", "analyzer": "folded", "search_analyzer": "wide"},
            "tag": {"type": "keyword", "normalizer": "plain"},
            "all": {"type": "text"},
            "from": {"type": "keyword", "copy_to": ["all"]}
        }}
    })
    .to_string()
}

fn hits(node: &Node, query: Value) -> Vec<String> {
    let found = node.ok("search", "index=a", "", &json!({ "query": query }).to_string());
    let mut ids: Vec<String> = found["hits"]["hits"]
        .as_array()
        .expect("hits")
        .iter()
        .map(|hit| hit["_id"].as_str().unwrap_or_default().to_owned())
        .collect();
    ids.sort();
    ids
}

fn filled() -> Node {
    let node = Node::start();
    node.ok("create_index", "index=a", "", &index());
    for (id, document) in [
        ("1", json!({"title": "Crème & Café in America", "tag": ["Réd", "RED"], "from": "North Pole"})),
        ("2", json!({"title": ["the domain name", "system of names"], "tag": "blue"})),
        ("3", json!({"title": "dns servers"})),
    ] {
        node.ok("index_doc", &format!("index=a&id={id}"), "refresh=true", &document.to_string());
    }
    node
}

fn check(node: &Node) {
    assert_eq!(hits(node, json!({"match": {"title": "creme"}})), ["1"]);
    assert_eq!(hits(node, json!({"match": {"title": "usa"}})), ["1"]);
    assert_eq!(hits(node, json!({"match": {"title": {"query": "and", "analyzer": "folded"}}})), ["1"]);
    assert_eq!(hits(node, json!({"match_phrase": {"title": "creme and cafe"}})), ["1"]);
    // Positions of two values are far apart.
    assert_eq!(
        hits(node, json!({"match_phrase": {"title": {"query": "name system", "analyzer": "folded"}}})),
        [""; 0]
    );
    assert_eq!(
        hits(node, json!({"match_phrase": {"title": {"query": "domain name", "analyzer": "folded"}}})),
        ["2"]
    );
    // Keywords and terms meet in the normalizer.
    assert_eq!(hits(node, json!({"term": {"tag": "RED"}})), ["1"]);
    assert_eq!(hits(node, json!({"terms": {"tag": ["BLÜE", "x"]}})), ["2"]);
    assert_eq!(hits(node, json!({"prefix": {"tag": "RÉ"}})), ["1"]);
    assert_eq!(hits(node, json!({"wildcard": {"tag": "*É?"}})), ["1"]);
    assert_eq!(hits(node, json!({"match": {"tag": "Red"}})), ["1"]);
    assert_eq!(hits(node, json!({"match": {"all": "pole"}})), ["1"]);
}

#[test]
fn analyzers_serve_documents_and_queries_also_after_a_restart() {
    let node = filled();
    check(&node);
    let settings = node.ok("get_settings", "index=a", "", "");
    let analysis = &settings["a"]["settings"]["index"]["analysis"];
    assert_eq!(analysis["analyzer"]["wide"]["filter"], json!(["lowercase", "no_the", "places"]));
    assert_eq!(analysis["filter"]["places"]["type"], "synonym_graph");
    let node = node.restart();
    check(&node);
    node.ok("index_doc", "index=a&id=4", "refresh=true", r#"{"title": "CRÈME brûlée"}"#);
    assert_eq!(hits(&node, json!({"match": {"title": "creme"}})), ["1", "4"]);
    node.ok("delete_doc", "index=a&id=4", "refresh=true", "");
    check(&node.crash());
}

#[test]
fn bad_definitions_are_named() {
    let node = Node::start();
    let refused = |settings: Value, mappings: Value, reason: &str| {
        let body = json!({"settings": {"analysis": settings}, "mappings": mappings}).to_string();
        let (status, _, found) = node.error("create_index", "index=b", "", &body);
        assert_eq!(status, 400, "{reason}");
        assert!(found.contains(reason), "{found}, expected {reason}");
    };
    let analyzer = |definition: Value| json!({"analyzer": {"x": definition}});
    refused(
        analyzer(json!({"filter": []})),
        json!({}),
        "analyzer [x] must specify either an analyzer type, or a tokenizer",
    );
    refused(
        analyzer(json!({"type": "custom"})),
        json!({}),
        "analyzer [x] must be configured with a tokenizer",
    );
    refused(
        analyzer(json!({"tokenizer": "standard", "filter": ["y"]})),
        json!({}),
        "Custom Analyzer [x] failed to find filter under name [y]",
    );
    refused(analyzer(json!({"type": "thai"})), json!({}), "analyzer type [thai] of [x] is not supported");
    refused(analyzer(json!({"type": "odd"})), json!({}), "Unknown analyzer type [odd] for [x]");
    refused(
        analyzer(json!({"type": "standard", "odd": 1})),
        json!({}),
        "unknown setting [index.analysis.analyzer.x.odd]",
    );
    refused(
        json!({"tokenizer": {"t": {"type": "ngram", "min_gram": 1, "max_gram": 9}}}),
        json!({}),
        "[index.max_ngram_diff]",
    );
    refused(json!({"filter": {"f": {"type": "hunspell"}}}), json!({}), "[hunspell] of [f] is not supported");
    refused(
        json!({"char_filter": {"c": {"type": "pattern_replace", "pattern": "("}}}),
        json!({}),
        "near index",
    );
    refused(
        json!({"normalizer": {"n": {"filter": ["porter_stem"]}}}),
        json!({}),
        "Custom normalizer [n] may not use filter [porter_stem]",
    );
    refused(
        json!({}),
        json!({"properties": {"t": {"type": "text", "analyzer": "nope"}}}),
        "analyzer [nope] has not been configured in mappings",
    );
    refused(
        json!({}),
        json!({"properties": {"t": {"type": "keyword", "normalizer": "nope"}}}),
        "normalizer [nope] not found for field [t]",
    );
    node.ok("create_index", "index=a", "", &index());
    let change = json!({"index": {"analysis": {"analyzer": {"z": {"type": "simple"}}}}}).to_string();
    let (_, _, reason) = node.error("put_settings", "index=a", "", &change);
    assert!(
        reason.starts_with("Can't update non dynamic settings [[index.analysis.analyzer.z.type]]"),
        "{reason}"
    );
}

#[test]
fn analyze_shows_tokens_and_steps() {
    let node = filled();
    let tokens = |path: &str, body: Value| node.ok("analyze", path, "", &body.to_string())["tokens"].clone();
    assert_eq!(
        tokens("", json!({"analyzer": "standard", "text": "Hello 🙂 World"})),
        json!([
            {"token": "hello", "start_offset": 0, "end_offset": 5, "type": "<ALPHANUM>", "position": 0},
            {"token": "🙂", "start_offset": 6, "end_offset": 8, "type": "<EMOJI>", "position": 1},
            {"token": "world", "start_offset": 9, "end_offset": 14, "type": "<ALPHANUM>", "position": 2}
        ])
    );
    let words = |path: &str, body: Value| -> Vec<String> {
        let tokens = tokens(path, body);
        tokens.as_array().unwrap().iter().map(|token| token["token"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(words("index=a", json!({"field": "tag", "text": "RÉD Dog"})), ["red dog"]);
    assert_eq!(words("index=a", json!({"normalizer": "plain", "text": "É"})), ["e"]);
    assert_eq!(
        words("index=a", json!({"analyzer": "wide", "text": "dns"})),
        ["domain", "dns", "name", "system"]
    );
    assert_eq!(
        words(
            "",
            json!({"tokenizer": "keyword", "filter": [{"type": "truncate", "length": 2}], "text": ["abc", "xyz"]})
        ),
        ["ab", "xy"]
    );
    let detail = node.ok(
        "analyze",
        "",
        "",
        r#"{"tokenizer":"standard","filter":["lowercase"],"text":"A","explain":true}"#,
    );
    assert_eq!(detail["detail"]["custom_analyzer"], true);
    assert_eq!(detail["detail"]["tokenfilters"][0]["tokens"][0]["bytes"], "[61]");
    let reason = |path: &str, body: Value| node.error("analyze", path, "", &body.to_string()).2;
    let unknown = reason("", json!({"analyzer": "x", "text": "a"}));
    assert!(
        unknown.starts_with("failed to find global analyzer [x]: there are [arabic, bulgarian, "),
        "{unknown}"
    );
    assert_eq!(
        reason("", json!({"tokenizer": "x", "text": "a"})),
        "failed to find global tokenizer under [x]"
    );
    assert_eq!(
        reason("", json!({"filter": ["porter_stem"], "text": "a"})),
        "Custom normalizer may not use filter [porter_stem]"
    );
    assert_eq!(reason("", json!({})), "Validation Failed: 1: text is missing;");
    assert!(reason("", json!({"text": "a b ".repeat(6000)})).contains("allowed maximum of [10000]"));
    assert!(reason("", json!({"text": "a", "odd": 1})).contains("unknown field [odd]"));
}
