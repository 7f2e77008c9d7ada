//! Several kinds of relevance in one search: reciprocal rank fusion, kNN beside a query.

use serde_json::{Value, json};

use crate::common::{Node, assert_scores, ids, scores};

/// The index of the worked example: `query` ranks 4, 3, 2, 1 and the vectors rank 3, 2, 1, 5.
fn example() -> Node {
    let node = Node::start();
    node.create(
        "example",
        &json!({"v": {"type": "sparse_vector"}, "d": {"type": "dense_vector", "dims": 1, "similarity": "l2_norm"},
            "w": {"type": "sparse_vector"}}),
    );
    node.load(
        "example",
        &[
            json!({"v": {"x": 1.0}, "d": [2.0], "w": {"y": 2.0}}),
            json!({"v": {"x": 2.0}, "d": [1.0], "w": {"y": 3.0}}),
            json!({"v": {"x": 3.0}, "d": [0.0], "w": {"y": 4.0}}),
            json!({"v": {"x": 4.0}}),
            json!({"d": [3.0], "w": {"y": 1.0}}),
        ],
    );
    node
}

fn sparse(field: &str, token: &str) -> Value {
    json!({"sparse_vector": {"field": field, "query_vector": {token: 1.0}}})
}

const FUSED: [(&str, f64); 5] = [("3", 0.833_333_4), ("2", 0.583_333_4), ("4", 0.5), ("1", 0.45), ("5", 0.2)];

#[test]
fn a_query_and_knn_fuse_as_in_the_worked_example() {
    let node = example();
    let answer = node.search(
        "example",
        &json!({"query": sparse("v", "x"),
            "knn": {"field": "d", "query_vector": [0.0], "k": 5, "num_candidates": 5},
            "rank": {"rrf": {"rank_constant": 1, "rank_window_size": 100}}}),
    );
    assert_scores(&scores(&answer), &FUSED);
    assert_eq!(answer["hits"]["max_score"], Value::Null);
    assert_eq!(answer["hits"]["total"], json!({"value": 5, "relation": "eq"}));
    let ranks: Vec<&Value> =
        answer["hits"]["hits"].as_array().expect("hits").iter().map(|hit| &hit["_rank"]).collect();
    assert_eq!(ranks, [1, 2, 3, 4, 5]);
}

#[test]
fn sub_searches_fuse_with_the_default_options() {
    let node = example();
    let sub_searches = json!([{"query": sparse("v", "x")}, {"query": sparse("w", "y")}]);
    let answer = node.search("example", &json!({"sub_searches": sub_searches, "rank": {"rrf": {}}}));
    assert_eq!(ids(&answer), ["3", "2", "1", "4", "5"]);
    let best = scores(&answer)[0].1;
    assert!((best - (1.0 / 62.0 + 1.0 / 61.0)).abs() < 1e-6, "{best}");
    let same =
        node.search("example", &json!({"sub_searches": sub_searches, "rank": {"rrf": {"rank_constant": 1}}}));
    assert_scores(&scores(&same), &FUSED);
    let page = node.search(
        "example",
        &json!({"sub_searches": sub_searches, "rank": {"rrf": {"rank_constant": 1}}, "from": 1, "size": 2}),
    );
    assert_scores(&scores(&page), &FUSED[1..3]);
    assert_eq!(page["hits"]["hits"][0]["_rank"], 2);
}

#[test]
fn the_window_bounds_each_list_but_not_the_total() {
    let node = example();
    let answer = node.search(
        "example",
        &json!({"sub_searches": [{"query": sparse("v", "x")}, {"query": sparse("w", "y")}],
            "rank": {"rrf": {"rank_constant": 1, "window_size": 2}}, "size": 2}),
    );
    // Of 4, 3 and 3, 2 remain.
    assert_scores(&scores(&answer), &[("3", 1.0 / 3.0 + 0.5), ("4", 0.5)]);
    assert_eq!(answer["hits"]["total"], json!({"value": 5, "relation": "eq"}));
}

#[test]
fn min_score_applies_to_the_fused_score() {
    let node = example();
    let answer = node.search(
        "example",
        &json!({"sub_searches": [{"query": sparse("v", "x")}, {"query": sparse("w", "y")}],
            "rank": {"rrf": {"rank_constant": 1}}, "min_score": 0.5}),
    );
    assert_eq!(ids(&answer), ["3", "2", "4"]);
}

#[test]
fn knn_beside_a_query_is_their_union_with_scores_added() {
    let node = example();
    let knn = json!({"field": "d", "query_vector": [0.0], "k": 2, "num_candidates": 5, "boost": 10});
    let alone = node.search("example", &json!({"knn": knn}));
    assert_scores(&scores(&alone), &[("3", 10.0), ("2", 5.0)]);
    assert_eq!(alone["hits"]["total"]["value"], 2);
    let union = node.search("example", &json!({"query": sparse("v", "x"), "knn": knn}));
    assert_scores(&scores(&union), &[("3", 13.0), ("2", 7.0), ("4", 4.0), ("1", 1.0)]);
    let several = node.search(
        "example",
        &json!({"knn": [knn, {"field": "d", "query_vector": [3.0], "k": 1, "num_candidates": 5}]}),
    );
    assert_scores(&scores(&several), &[("3", 10.0), ("2", 5.0), ("5", 1.0)]);
}

#[test]
fn knn_looks_only_at_documents_that_pass_its_filter() {
    let node = example();
    let answer = node.search(
        "example",
        &json!({"knn": {"field": "d", "query_vector": [0.0], "k": 1, "num_candidates": 5,
            "filter": {"bool": {"must_not": {"ids": {"values": ["3"]}}}}}}),
    );
    assert_eq!(ids(&answer), ["2"]);
    let near = node.search(
        "example",
        &json!({"knn": {"field": "d", "query_vector": [0.0], "k": 5, "num_candidates": 5, "similarity": 1.5}}),
    );
    assert_eq!(ids(&near), ["3", "2"]);
}

#[test]
fn a_standard_retriever_is_a_query() {
    let node = example();
    let answer =
        node.search("example", &json!({"retriever": {"standard": {"query": sparse("v", "x")}}, "size": 1}));
    assert_eq!(ids(&answer), ["4"]);
}
