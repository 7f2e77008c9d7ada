//! Each query type finds the documents that it should.

use serde_json::json;

use super::common::{Node, assert_scores, ids};

fn books() -> Node {
    let node = Node::start();
    node.create(
        "books",
        &json!({"title": {"type": "text"}, "tag": {"type": "keyword"}, "n": {"type": "integer"},
            "v": {"type": "sparse_vector"}, "d": {"type": "dense_vector", "dims": 2}}),
    );
    node.load(
        "books",
        &[
            json!({"_id": "auto", "title": "auto id", "tag": "a", "n": 1, "v": {"alpha": 1.5, "beta": 0.25}, "d": [1, 0]}),
            json!({"_id": "4", "v": {"a.b": 1}}),
            json!({"_id": "1", "title": "first v2", "tag": "a", "n": 42, "v": {"alpha": 0.333333, "gamma": 2}, "d": [0, 1]}),
            json!({"_id": "b1", "title": "bulk one", "n": 10, "v": {"alpha": 0.7, "delta": 1.1}, "d": [1, 1]}),
            json!({"_id": "z", "title": "auto", "tag": "z"}),
        ],
    );
    node
}

#[test]
fn clauses_match() {
    let node = books();
    for (query, expected) in [
        (json!({"match_all": {}}), &["auto", "4", "1", "b1", "z"][..]),
        (json!({"match_none": {}}), &[]),
        (json!({"match": {"title": "bulk first"}}), &["1", "b1"]),
        (json!({"match": {"title": {"query": "auto id", "operator": "and"}}}), &["auto"]),
        (json!({"match_phrase": {"title": "first v2"}}), &["1"]),
        (json!({"multi_match": {"query": "bulk", "fields": ["title^2", "tag"]}}), &["b1"]),
        (json!({"term": {"tag": "a"}}), &["auto", "1"]),
        (json!({"terms": {"tag": ["a", "z"]}}), &["auto", "1", "z"]),
        (json!({"terms": {"n": [1, 10]}}), &["auto", "b1"]),
        (json!({"range": {"n": {"gte": 10, "lt": 42}}}), &["b1"]),
        (json!({"exists": {"field": "n"}}), &["auto", "1", "b1"]),
        (json!({"exists": {"field": "v"}}), &["auto", "4", "1", "b1"]),
        (json!({"ids": {"values": ["4", "z", "none"]}}), &["4", "z"]),
        (json!({"prefix": {"tag": "z"}}), &["z"]),
        (json!({"wildcard": {"tag": "?"}}), &["auto", "1", "z"]),
        (json!({"regexp": {"tag": "[x-z]"}}), &["z"]),
        (json!({"fuzzy": {"title": "bulx"}}), &["b1"]),
        (json!({"query_string": {"query": "title:bulk OR tag:z"}}), &["b1", "z"]),
        (json!({"constant_score": {"filter": {"term": {"tag": "z"}}}}), &["z"]),
        (json!({"dis_max": {"queries": [{"term": {"tag": "z"}}, {"ids": {"values": ["4"]}}]}}), &["4", "z"]),
        (
            json!({"bool": {"filter": [{"term": {"tag": "a"}}], "must_not": {"range": {"n": {"gt": 5}}}}}),
            &["auto"],
        ),
        (
            json!({"bool": {"should": [{"term": {"tag": "a"}}, {"match": {"title": "auto"}}], "minimum_should_match": 2}}),
            &["auto"],
        ),
        (
            json!({"bool": {"must": {"sparse_vector": {"field": "v", "query_vector": {"alpha": 1}}}, "filter": {"range": {"n": {"lt": 20}}}}}),
            &["auto", "b1"],
        ),
        (json!({"knn": {"field": "d", "query_vector": [1, 0.1], "k": 2}}), &["auto", "b1"]),
    ] {
        let mut found = node.ids("books", &query);
        let mut expected: Vec<String> = expected.iter().map(|id| (*id).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn sparse_scores_are_dot_products_as_recorded() {
    let node = books();
    let recorded = [("auto", 3.75), ("b1", 3.394_531_2), ("1", 0.832_519_53)];
    for query in [
        json!({"sparse_vector": {"field": "v", "query_vector": {"alpha": 2.5, "delta": 1.5}}}),
        json!({"weighted_tokens": {"v": {"tokens": {"alpha": 2.5, "delta": 1.5}}}}),
        json!({"weighted_tokens": {"v": {"tokens": [{"alpha": 2.5}, {"delta": 1.5}]}}}),
    ] {
        let found = node.scores("books", &query);
        assert_eq!(found.len(), recorded.len(), "{query}");
        for ((id, score), (expected_id, expected)) in found.iter().zip(recorded) {
            assert_eq!(id, expected_id);
            // The recorded server keeps nine bits of a weight, this one eleven.
            assert!((score - expected).abs() <= 0.004 * expected, "{id}: {score} is not {expected}");
        }
    }
    let dotted = json!({"sparse_vector": {"field": "v", "query_vector": {"a.b": 2}}});
    assert_scores(&node.scores("books", &dotted), &[("4", 2.0)]);
    let boosted = json!({"sparse_vector": {"field": "v", "query_vector": {"alpha": 1}, "boost": 4}});
    assert_eq!(node.scores("books", &boosted)[0], ("auto".to_owned(), 6.0));
    let unmapped = json!({"sparse_vector": {"field": "zzz", "query_vector": {"alpha": 2.5}}});
    assert!(node.ids("books", &unmapped).is_empty());
    let no_tokens = json!({"sparse_vector": {"field": "v", "query_vector": {}}});
    assert!(node.ids("books", &no_tokens).is_empty());
}

#[test]
fn scores_of_a_bool_add_up_and_filters_add_nothing() {
    let node = books();
    let lexical = json!({"term": {"tag": {"value": "a", "boost": 3}}});
    let sparse = json!({"sparse_vector": {"field": "v", "query_vector": {"alpha": 2}}});
    let score = |query: serde_json::Value, id: &str| {
        let found = node.scores("books", &query);
        found.into_iter().find(|(found, _)| found == id).map(|(_, score)| score)
    };
    let (alone, weighted) = (score(lexical.clone(), "auto"), score(sparse.clone(), "auto"));
    let both = score(json!({"bool": {"should": [lexical, sparse]}}), "auto");
    let sum = alone.expect("tagged") + weighted.expect("weighted");
    assert!((both.expect("both") - sum).abs() < 1e-5);
    let filtered = score(json!({"bool": {"must": sparse, "filter": lexical}}), "auto");
    assert_eq!(filtered, weighted);
    assert_eq!(score(json!({"bool": {"must": sparse, "filter": lexical}}), "b1"), None);
}

#[test]
fn an_empty_text_matches_nothing() {
    let node = books();
    for query in [
        json!({"match": {"title": ""}}),
        json!({"match": {"title": " ... "}}),
        json!({"query_string": {"query": ""}}),
    ] {
        assert!(node.ids("books", &query).is_empty(), "{query}");
    }
}

#[test]
fn post_filter_narrows_the_hits() {
    let node = books();
    let answer =
        node.search("books", &json!({"query": {"match_all": {}}, "post_filter": {"term": {"tag": "a"}}}));
    assert_eq!(ids(&answer), ["auto", "1"]);
    assert_eq!(answer["hits"]["total"]["value"], 2);
}

#[test]
fn addresses_are_found_by_an_alias() {
    let node = Node::start();
    node.create("hosts", &json!({"address": {"type": "ip"}, "host": {"type": "alias", "path": "address"}}));
    node.load("hosts", &[json!({"address": "10.0.0.1"}), json!({"address": "10.0.0.2"})]);
    for (query, found) in [
        (json!({"term": {"host": "10.0.0.2"}}), "2"),
        (json!({"term": {"host": "10.0.0.0/31"}}), "1"),
        (json!({"terms": {"host": ["10.0.0.2"]}}), "2"),
        (json!({"range": {"host": {"lt": "10.0.0.2"}}}), "1"),
    ] {
        assert_eq!(node.ids("hosts", &query), [found], "{query}");
    }
}
