//! `explain` in a search, and `_explain/{id}`.

use serde_json::{Value, json};

use super::common::Node;

const SPARSE: &str = ".sparse_encoder_model_2";

fn library() -> Node {
    let node = Node::start();
    node.create(
        "library",
        &json!({"title": {"type": "text"}, "tag": {"type": "keyword"}, "v": {"type": "sparse_vector"},
            "d": {"type": "dense_vector", "dims": 1, "similarity": "l2_norm"}}),
    );
    node.load(
        "library",
        &[
            json!({"title": "red fox", "tag": "a", "v": {"fox": 1.5, "red": 0.5}, "d": [1]}),
            json!({"title": "red red dog", "tag": "b", "v": {"dog": 2.0}, "d": [2]}),
            json!({"title": "blue fox", "d": [3]}),
        ],
    );
    node
}

fn hits(answer: &Value) -> &Vec<Value> {
    answer["hits"]["hits"].as_array().expect("hits")
}

#[test]
fn hits_explain_the_score_they_show() {
    let node = library();
    for query in [
        json!({"match": {"title": {"query": "red fox", "boost": 2}}}),
        json!({"match_phrase": {"title": "red fox"}}),
        json!({"bool": {"must": {"match": {"title": "red"}}, "filter": {"term": {"tag": "a"}},
            "should": {"sparse_vector": {"field": "v", "query_vector": {"fox": 2, "red": 1}}}}}),
        json!({"sparse_vector": {"field": "v", "query_vector": {"fox": 2, "red": 1, "dog": 3}, "boost": 3}}),
        json!({"knn": {"field": "d", "query_vector": [1], "k": 2}}),
        json!({"query_string": {"query": "title:red OR tag:b"}}),
        json!({"dis_max": {"queries": [{"match": {"title": "red"}}, {"term": {"tag": "b"}}], "tie_breaker": 0.5}}),
        json!({"constant_score": {"filter": {"exists": {"field": "tag"}}, "boost": 1.5}}),
    ] {
        let answer = node.search("library", &json!({"query": query, "explain": true}));
        assert!(!hits(&answer).is_empty(), "{query}");
        for hit in hits(&answer) {
            assert_eq!(hit["_explanation"]["value"], hit["_score"], "{query}: {hit}");
            assert_eq!(hit["_shard"], "[library][0]");
            assert!(hit["_node"].is_string());
            // The same document explained alone.
            let path = [("index", "library"), ("id", hit["_id"].as_str().expect("an id"))];
            let alone = node.ok("explain", &path, &[], &json!({ "query": query }));
            assert_eq!(alone["explanation"], hit["_explanation"], "{query}");
            assert_eq!(alone["matched"], true);
        }
    }
    let plain = node.search("library", &json!({"query": {"match_all": {}}, "explain": false}));
    assert!(hits(&plain).iter().all(|hit| hit.get("_explanation").is_none() && hit.get("_shard").is_none()));
    let constant = node.search("library", &json!({"query": {"match_all": {"boost": 2}}, "explain": true}));
    assert_eq!(
        hits(&constant)[0]["_explanation"],
        json!({"value": 2.0, "description": "*:*^2.0", "details": []})
    );
}

#[test]
fn fused_hits_are_explained_by_their_lists() {
    let node = library();
    let answer = node.search(
        "library",
        &json!({"query": {"term": {"title": "fox"}}, "knn": {"field": "d", "query_vector": [3], "k": 2},
            "rank": {"rrf": {"rank_constant": 1}}, "explain": true}),
    );
    let first = &hits(&answer)[0];
    assert_eq!((&first["_id"], &first["_rank"]), (&json!("3"), &json!(1)));
    let explanation = &first["_explanation"];
    assert_eq!(explanation["value"], first["_score"]);
    assert_eq!(
        explanation["description"],
        "rrf score: [0.8333334] computed for initial ranks [2, 1] with rankConstant: [1] as sum of \
         [1 / (rank + rankConstant)] for each query"
    );
    assert_eq!(explanation["details"][0]["value"], 2);
    assert_eq!(
        explanation["details"][0]["description"],
        "rrf score: [0.33333334], for rank [2] in query at index [0] computed as [1 / (2 + 1)], for matching \
         query with score"
    );
    assert_eq!(explanation["details"][1]["details"][0]["description"], "within top k documents");
    let missing = hits(&answer).iter().find(|hit| hit["_id"] == "1").expect("the other fox");
    assert_eq!(
        missing["_explanation"]["details"][1],
        json!({"value": 0.0, "description": "rrf score: [0], result not found in query at index [1]", "details": []})
    );
    let linear = node.search(
        "library",
        &json!({"explain": true, "retriever": {"linear": {"retrievers": [
            {"retriever": {"standard": {"query": {"term": {"tag": "a"}}, "_name": "tags"}}, "weight": 2.0},
            {"retriever": {"knn": {"field": "d", "query_vector": [1], "k": 2, "num_candidates": 5}},
                "weight": 1.0, "normalizer": "minmax"}]}}}),
    );
    let first = &hits(&linear)[0];
    let explanation = &first["_explanation"];
    assert_eq!(explanation["value"], first["_score"]);
    let text = explanation["description"].as_str().expect("text");
    assert!(text.starts_with("weighted linear combination score: ["), "{text}");
    let parts: f64 = explanation["details"]
        .as_array()
        .expect("details")
        .iter()
        .filter_map(|part| part["value"].as_f64())
        .sum();
    assert!((parts - first["_score"].as_f64().expect("a score")).abs() < 1e-5);
    let tags = explanation["details"][0]["description"].as_str().expect("text");
    assert!(tags.contains("in query at index [0] [tags] computed as [2.0 * "), "{tags}");
}

#[test]
fn one_document_is_explained() {
    let node = library();
    let path = [("index", "library"), ("id", "1")];
    let body = json!({"query": {"term": {"tag": "zzz"}}});
    let none = node.ok("explain", &path, &[], &body);
    assert_eq!(
        none,
        json!({"_index": "library", "_id": "1", "matched": false,
            "explanation": {"value": 0.0, "description": "no matching term", "details": []}})
    );
    let shown = node.ok("explain", &path, &[("_source_includes", "tag"), ("q", "title:fox")], &Value::Null);
    assert_eq!(shown["matched"], true);
    assert_eq!(shown["get"]["_source"], json!({"tag": "a"}));
    assert_eq!(shown["get"]["found"], true);
    let hidden = node.ok("explain", &path, &[("_source", "false")], &body);
    assert_eq!(hidden["get"].get("_source"), None);

    let reply = node.run("explain", &[("index", "library"), ("id", "9")], &[], body.to_string().as_bytes());
    let reply = reply.unwrap_or_else(|error| panic!("{}", error.body()));
    assert_eq!(reply.status, 404);
    let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
    assert_eq!(answer, json!({"_index": "library", "_id": "9", "matched": false}));

    let refused = |path: &[(&str, &str)], body: &[u8]| match node.run("explain", path, &[], body) {
        Ok(_) => panic!("answered"),
        Err(error) => error.body(),
    };
    assert_eq!(refused(&[("index", "nowhere"), ("id", "1")], b"{}")["status"], 404);
    assert_eq!(refused(&path, b"")["error"]["reason"], "Validation Failed: 1: query is missing;");
    assert_eq!(refused(&path, br#"{"size": 1}"#)["error"]["reason"], "request does not support [size]");
    let unknown = refused(&path, br#"{"query": {"zzz": {}}}"#);
    assert_eq!(unknown["error"]["type"], "parsing_exception");
    let wrong =
        refused(&path, br#"{"query": {"sparse_vector": {"field": "tag", "query_vector": {"a": 1}}}}"#);
    assert_eq!(wrong["error"]["root_cause"][0]["type"], "query_shard_exception");
}

#[test]
fn sparse_tokens_name_the_words_they_come_from() {
    let node = Node::with_models(true);
    let pipeline = json!({"processors": [{"inference": {"model_id": SPARSE,
        "input_output": [{"input_field": "text", "output_field": "v"}]}}]});
    node.ok("put_pipeline", &[("pipeline", "encode")], &[], &pipeline);
    node.ok(
        "create_index",
        &[("index", "passages")],
        &[],
        &json!({"settings": {"default_pipeline": "encode"}, "mappings": {"properties": {
            "text": {"type": "text"}, "v": {"type": "sparse_vector"}, "other": {"type": "sparse_vector"}}}}),
    );
    node.load(
        "passages",
        &[
            json!({"text": "A recipe for tomato soup, and basil.", "other": {"soup": 1.0}}),
            json!({"text": "The spacecraft entered orbit."}),
        ],
    );
    let body = json!({"explain": true, "query": {"text_expansion": {"v":
        {"model_id": SPARSE, "model_text": "tomato soup"}}}});
    let answer = node.search("passages", &body);
    let hit = &hits(&answer)[0];
    assert_eq!(hit["_explanation"]["value"], hit["_score"]);
    let products = hit["_explanation"]["details"].as_array().expect("tokens");
    let soup = products
        .iter()
        .find(|product| product["description"].as_str().is_some_and(|text| text.contains("the soup feature")))
        .unwrap_or_else(|| panic!("{hit}"));
    assert_eq!(soup["details"][0]["description"], "w, weight of this function");
    let stored = &soup["details"][1];
    assert_eq!(stored["description"], "S, feature value");
    assert_eq!(
        stored["details"][0]["description"],
        "encoded from the word [soup] of field [text], characters 20 to 24"
    );
    let product =
        soup["details"][0]["value"].as_f64().unwrap_or(0.0) * stored["value"].as_f64().unwrap_or(0.0);
    assert!((product - soup["value"].as_f64().unwrap_or(0.0)).abs() < 1e-4);

    // Weights that no text of the document gives come from nowhere that is known.
    let body = json!({"explain": true,
        "query": {"sparse_vector": {"field": "other", "query_vector": {"soup": 1.0}}}});
    let answer = node.search("passages", &body);
    assert_eq!(hits(&answer)[0]["_explanation"]["details"][0]["details"][1]["details"], json!([]));
}

#[test]
fn a_request_may_have_a_quarter_of_a_million_clauses_explained() {
    let node = Node::start();
    node.create("n", &json!({"n": {"type": "long"}}));
    let documents: Vec<Value> = (0..1100).map(|number| json!({"n": number})).collect();
    node.load("n", &documents);
    let should: Vec<Value> = (0..1000).map(|least| json!({"range": {"n": {"gte": -least}}})).collect();
    let body = json!({"query": {"bool": {"should": should}}, "size": 1100, "explain": true});
    let error = node.search_error("n", &body).to_string();
    assert!(error.contains("too_many_nested_clauses"), "{error}");
    assert!(error.contains("a clause explained for a hit counts as [512]"), "{error}");
    let mut fewer = body;
    fewer["size"] = json!(20);
    assert_eq!(hits(&node.search("n", &fewer)).len(), 20);
}
