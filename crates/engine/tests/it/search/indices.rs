//! Searches over several indices.

use serde_json::{Value, json};

use super::common::{Node, ids};

fn two() -> Node {
    let node = Node::start();
    for (index, tokens) in [("a-1", [3.0, 1.0]), ("a-2", [2.0, 1.0])] {
        node.create(index, &json!({"v": {"type": "sparse_vector"}, "d": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}}));
        let documents: Vec<Value> = tokens
            .iter()
            .enumerate()
            .map(|(number, weight)| json!({"_id": format!("{index}-{number}"), "v": {"x": weight}, "d": [weight, 0]}))
            .collect();
        node.load(index, &documents);
    }
    node
}

#[test]
fn hits_are_merged_by_score_then_index() {
    let node = two();
    let query = json!({"query": {"sparse_vector": {"field": "v", "query_vector": {"x": 1}}}});
    for expression in ["a-1,a-2", "a-*", "_all", ""] {
        let answer = node.search(expression, &query);
        assert_eq!(ids(&answer), ["a-1-0", "a-2-0", "a-1-1", "a-2-1"], "{expression}");
        assert_eq!(answer["hits"]["total"]["value"], 4);
        assert_eq!(answer["hits"]["max_score"], 3.0);
        assert_eq!(answer["_shards"]["total"], 2);
    }
    let mut page = query;
    page["from"] = json!(1);
    page["size"] = json!(2);
    assert_eq!(ids(&node.search("a-*", &page)), ["a-2-0", "a-1-1"]);
}

#[test]
fn neighbours_are_the_nearest_of_all_indices() {
    let node = two();
    let knn = json!({"field": "d", "query_vector": [3, 0], "k": 2, "num_candidates": 10});
    let answer = node.search("a-*", &json!({"knn": knn}));
    assert_eq!(ids(&answer), ["a-1-0", "a-2-0"]);
    assert_eq!(answer["hits"]["total"]["value"], 2);
    let near_one = json!({"knn": {"field": "d", "query_vector": [3, 0], "k": 1, "num_candidates": 10}});
    assert_eq!(ids(&node.search("a-*", &near_one)), ["a-1-0"]);
}

#[test]
fn missing_indices_are_errors_unless_they_may_be_missing() {
    let node = two();
    let error = node.search_error("a-1,none", &json!({}));
    assert_eq!(error["status"], 404);
    assert_eq!(error["error"]["type"], "index_not_found_exception");
    assert_eq!(error["error"]["reason"], "no such index [none]");
    let lenient = node.ok("search", &[("index", "a-1,none")], &[("ignore_unavailable", "true")], &json!({}));
    assert_eq!(ids(&lenient).len(), 2);
    let nothing = node.search("no-*", &json!({}));
    assert_eq!(
        nothing["hits"],
        json!({"total": {"value": 0, "relation": "eq"}, "max_score": 0.0, "hits": []})
    );
    assert_eq!(nothing["_shards"]["total"], 0);
    let strict =
        node.run("search", &[("index", "no-*")], &[("allow_no_indices", "false")], b"").expect_err("none");
    assert_eq!(strict.status(), 404);
}

#[test]
fn an_index_that_cannot_answer_leaves_the_others() {
    let node = two();
    node.create("a-3", &json!({"v": {"type": "keyword"}}));
    let query = json!({"query": {"sparse_vector": {"field": "v", "query_vector": {"x": 1}}}});
    let answer = node.search("a-*", &query);
    assert_eq!(ids(&answer).len(), 4);
    assert_eq!(answer["_shards"]["failed"], 1);
    assert_eq!(answer["_shards"]["successful"], 2);
    assert_eq!(answer["_shards"]["failures"][0]["index"], "a-3");
    assert_eq!(answer["_shards"]["failures"][0]["reason"]["type"], "query_shard_exception");
    let strict = node
        .run(
            "search",
            &[("index", "a-*")],
            &[("allow_partial_search_results", "false")],
            query.to_string().as_bytes(),
        )
        .expect_err("one fails");
    assert_eq!(strict.status(), 400);
    assert_eq!(node.search_error("a-3", &query)["error"]["reason"], "all shards failed");
}

#[test]
fn chosen_documents_come_first_and_indices_have_names() {
    let node = two();
    let found = |query: Value| node.ids("a-*", &query);
    let organic = json!({"sparse_vector": {"field": "v", "query_vector": {"x": 1}}});
    let pinned = json!({"pinned": {"ids": ["a-2-1", "a-1-1", "nowhere"], "organic": organic}});
    assert_eq!(found(pinned.clone()), ["a-2-1", "a-1-1", "a-1-0", "a-2-0"]);
    let scores = node.scores("a-*", &pinned);
    assert!(scores[0].1 > scores[1].1 && scores[1].1 > 1.7e38 && scores[2].1 == 3.0, "{scores:?}");
    let docs = json!([{"_index": "a-1", "_id": "a-2-0"}, {"_index": "a-2", "_id": "a-2-1"}]);
    assert_eq!(found(json!({"pinned": {"docs": docs, "organic": {"match_none": {}}}})), ["a-2-1"]);
    for (body, reason) in [
        (json!({"ids": ["1"]}), "Required [organic]"),
        (json!({"organic": organic}), "Required one of fields [ids, docs], but none were specified."),
        (json!({"ids": ["1"], "docs": [], "organic": organic}), "not allowed together: [ids, docs]"),
        (
            json!({"ids": vec!["1"; 101], "organic": organic}),
            "[pinned] Max of 100 ids exceeded: 101 provided.",
        ),
        (json!({"docs": [{"_index": "a-1"}], "organic": organic}), "Required [_id]"),
        (json!({"ids": ["1"], "organic": organic, "size": 3}), "[pinned] unknown field [size]"),
    ] {
        let error = node.search_error("a-*", &json!({"query": {"pinned": body}})).to_string();
        assert!(error.contains(reason), "{error} is not {reason}");
    }
    for (clause, expected) in [
        (json!({"term": {"_index": "a-2"}}), &["a-2-0", "a-2-1"][..]),
        (json!({"term": {"_index": {"value": "A-2", "case_insensitive": true}}}), &["a-2-0", "a-2-1"]),
        (json!({"terms": {"_index": ["a-1", "b"]}}), &["a-1-0", "a-1-1"]),
        (json!({"prefix": {"_index": "a-2"}}), &["a-2-0", "a-2-1"]),
        (json!({"wildcard": {"_index": "*1"}}), &["a-1-0", "a-1-1"]),
        (json!({"match": {"_index": "a-1"}}), &["a-1-0", "a-1-1"]),
        (json!({"bool": {"must_not": {"term": {"_index": "a-1"}}}}), &["a-2-0", "a-2-1"]),
        (json!({"query_string": {"query": "_index:a-1"}}), &["a-1-0", "a-1-1"]),
        (json!({"term": {"_index": "none"}}), &[]),
    ] {
        assert_eq!(found(clause.clone()), expected, "{clause}");
    }
    let filtered = json!({"size": 1, "post_filter": {"term": {"_index": "a-2"}}, "query": organic,
        "aggs": {"f": {"filter": {"term": {"_index": "a-1"}}}}});
    let answer = node.search("a-*", &filtered);
    assert_eq!(
        (ids(&answer), &answer["aggregations"]["f"]["doc_count"]),
        (vec!["a-2-0".to_owned()], &json!(2))
    );
}
