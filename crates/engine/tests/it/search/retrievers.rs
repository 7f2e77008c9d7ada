//! Retrievers: compound ones against the sections that they stand for, and what is wrong with them.

use serde_json::{Value, json};

use super::common::{Node, assert_scores, ids, scores};

/// Documents 1 to 4 with a keyword and a vector of one dimension.
fn example() -> Node {
    let node = Node::start();
    node.create(
        "test",
        &json!({"vector": {"type": "dense_vector", "dims": 1, "similarity": "l2_norm"},
            "keyword": {"type": "keyword"}, "text": {"type": "text"}}),
    );
    node.load(
        "test",
        &[
            json!({"vector": [1], "keyword": "one", "text": "first match"}),
            json!({"vector": [2], "keyword": "two", "text": "second match"}),
            json!({"vector": [3], "keyword": "three", "text": "third match"}),
            json!({"vector": [4], "keyword": "four", "text": "fourth match"}),
        ],
    );
    node
}

fn constant(keyword: &str, score: f64) -> Value {
    json!({"constant_score": {"filter": {"term": {"keyword": keyword}}, "boost": score}})
}

fn standard(scores: &[(&str, f64)]) -> Value {
    let should: Vec<Value> = scores.iter().map(|(keyword, score)| constant(keyword, *score)).collect();
    json!({"standard": {"query": {"bool": {"should": should}}}})
}

fn knn(vector: f64, k: u32) -> Value {
    json!({"knn": {"field": "vector", "query_vector": [vector], "k": k, "num_candidates": 10}})
}

fn weighted(retriever: &Value, weight: f64, normalizer: &str) -> Value {
    json!({"retriever": retriever, "weight": weight, "normalizer": normalizer})
}

fn linear(inputs: &[Value]) -> Value {
    json!({"linear": {"retrievers": inputs}})
}

fn rrf(inputs: &[Value]) -> Value {
    json!({"rrf": {"retrievers": inputs, "rank_constant": 1}})
}

#[test]
fn linear_adds_weighted_scores() {
    let node = example();
    let first = standard(&[("one", 10.0), ("two", 9.0), ("three", 5.0)]);
    let inputs = [weighted(&first, 10.0, "minmax"), weighted(&knn(4.0, 1), 2.0, "none")];
    let body = json!({"retriever": linear(&inputs)});
    let answer = node.search("test", &body);
    assert_scores(&scores(&answer), &[("1", 10.0), ("2", 8.0), ("4", 2.0), ("3", 0.0)]);
    assert_eq!(answer["hits"]["max_score"], 10.0);
    assert_eq!(answer["hits"]["total"], json!({"value": 4, "relation": "eq"}));
    assert!(answer["hits"]["hits"][0].get("_rank").is_none());
    // Pages are parts of the whole.
    let mut page = body.clone();
    page["from"] = json!(2);
    page["size"] = json!(1);
    assert_scores(&scores(&node.search("test", &page)), &[("4", 2.0)]);
    // The window bounds what is normalized and what is returned, but not the total.
    let mut narrow = body.clone();
    narrow["retriever"]["linear"]["rank_window_size"] = json!(2);
    narrow["size"] = json!(2);
    let answer = node.search("test", &narrow);
    assert_scores(&scores(&answer), &[("1", 10.0), ("4", 2.0)]);
    assert_eq!(answer["hits"]["total"]["value"], 4);
    // A lowest score drops hits, from the total as well.
    let mut least = body;
    least["retriever"]["linear"]["min_score"] = json!(2);
    let answer = node.search("test", &least);
    assert_eq!(ids(&answer), ["1", "2", "4"]);
    assert_eq!(answer["hits"]["total"]["value"], 3);
}

/// Hits below the mean of their list all score 0 by `zscore`, and keep the order that the list has them in.
#[test]
fn linear_by_zscore_keeps_the_order_of_a_list() {
    let node = example();
    let list = standard(&[("four", 10.0), ("three", 3.0), ("two", 2.0), ("one", 1.0)]);
    let answer = node.search("test", &json!({"retriever": linear(&[weighted(&list, 1.0, "zscore")])}));
    assert_scores(&scores(&answer)[1..], &[("3", 0.0), ("2", 0.0), ("1", 0.0)]);
    assert_eq!(ids(&answer), ["4", "3", "2", "1"]);
}

#[test]
fn retrievers_nest() {
    let node = example();
    let inner =
        linear(&[json!({"retriever": standard(&[("two", 20.0)])}), json!({"retriever": knn(4.0, 1)})]);
    let outer = linear(&[
        json!({"retriever": standard(&[("one", 10.0)]), "weight": 0.5}),
        json!({"retriever": inner, "weight": 2}),
    ]);
    let answer = node.search("test", &json!({"retriever": outer}));
    assert_scores(&scores(&answer), &[("2", 40.0), ("1", 5.0), ("4", 2.0)]);
    assert_eq!(answer["hits"]["total"]["value"], 3);
    let of_rrf = rrf(&[rrf(&[standard(&[("one", 2.0), ("two", 1.0)]), knn(2.0, 1)]), knn(4.0, 2)]);
    let answer = node.search("test", &json!({"retriever": of_rrf}));
    // The inner list is 2 (1/3 + 1/2), 1 (1/2); the outer lists are 2, 1 and 4, 3.
    assert_scores(&scores(&answer), &[("2", 0.5), ("4", 0.5), ("1", 1.0 / 3.0), ("3", 1.0 / 3.0)]);
}

#[test]
fn rrf_weighs_lists() {
    let node = example();
    let inputs = [
        json!({"retriever": standard(&[("one", 1.0)]), "weight": 0.1}),
        json!({"retriever": standard(&[("two", 1.0)]), "weight": 0.9}),
        standard(&[("three", 1.0)]),
    ];
    let answer = node.search("test", &json!({"retriever": {"rrf": {"retrievers": inputs}}}));
    assert_scores(&scores(&answer), &[("3", 1.0 / 61.0), ("2", 0.9 / 61.0), ("1", 0.1 / 61.0)]);
}

#[test]
fn filters_reach_every_leaf() {
    let node = example();
    let filter = json!({"term": {"keyword": "four"}});
    for filter in [filter.clone(), json!([filter])] {
        let mut body = json!({"retriever": linear(&[
            weighted(&standard(&[("one", 10.0)]), 0.5, "none"),
            weighted(&linear(&[weighted(&knn(1.0, 1), 1.0, "none")]), 2.0, "none"),
        ])});
        body["retriever"]["linear"]["filter"] = filter;
        let answer = node.search("test", &body);
        assert_eq!(ids(&answer), ["4"]);
        assert_eq!(answer["hits"]["total"]["value"], 1);
    }
    let of_leaf = json!({"standard": {"query": {"match_all": {}}, "filter": [{"term": {"keyword": "two"}}]}});
    assert_scores(&scores(&node.search("test", &json!({"retriever": of_leaf}))), &[("2", 1.0)]);
    let only = json!({"standard": {"filter": {"term": {"keyword": "two"}}}});
    assert_eq!(ids(&node.search("test", &json!({"retriever": rrf(&[only])}))), ["2"]);
}

#[test]
fn leaves_have_lowest_scores_and_names() {
    let node = example();
    let mut first = standard(&[("one", 10.0), ("two", 1.0)]);
    first["standard"]["min_score"] = json!(5);
    first["standard"]["_name"] = json!("words");
    let mut second = knn(4.0, 10);
    second["knn"]["min_score"] = json!(0.6);
    let answer = node.search("test", &json!({"retriever": rrf(&[first, second])}));
    assert_scores(&scores(&answer), &[("1", 0.5), ("4", 0.5)]);
    assert_eq!(answer["hits"]["hits"][0]["matched_queries"], json!(["words"]));
    let alone = json!({"knn": {"field": "vector", "query_vector": [4], "k": 4, "num_candidates": 4, "min_score": 0.4}});
    assert_eq!(ids(&node.search("test", &json!({"retriever": alone}))), ["4", "3"]);
}

#[test]
fn a_post_filter_applies_to_the_fused_list() {
    let node = example();
    let answer = node.search(
        "test",
        &json!({"retriever": rrf(&[standard(&[("one", 2.0), ("two", 1.0)]), knn(4.0, 2)]),
            "post_filter": {"terms": {"keyword": ["two", "three"]}}}),
    );
    assert_scores(&scores(&answer), &[("2", 1.0 / 3.0), ("3", 1.0 / 3.0)]);
    assert_eq!(answer["hits"]["total"]["value"], 2);
}

#[test]
fn pages_behind_the_default_window_are_stable() {
    let node = Node::start();
    node.create("many", &json!({"n": {"type": "integer"}, "v": {"type": "sparse_vector"}}));
    let documents: Vec<Value> = (1..=60u32)
        .map(|n| json!({"n": n, "v": {"a": n, "b": (n * 37) % 61 + 1, "c": (n * 17) % 61 + 1}}))
        .collect();
    node.load("many", &documents);
    let leaf = |token: &str| json!({"standard": {"query": {"sparse_vector": {"field": "v", "query_vector": {token: 1.0}}}}});
    for retriever in [
        json!({"rrf": {"retrievers": [leaf("a"), leaf("b"), leaf("c")]}}),
        json!({"linear": {"retrievers": [
            {"retriever": leaf("a"), "normalizer": "minmax"}, {"retriever": leaf("b"), "normalizer": "l2_norm"}]}}),
    ] {
        let page = |from: usize| {
            ids(&node
                .search("many", &json!({"retriever": retriever, "from": from, "size": 7, "_source": false})))
        };
        let mut pages: Vec<String> = (0..9).flat_map(|number| page(number * 7)).collect();
        assert_eq!(pages.len(), 60);
        let first = ids(&node.search("many", &json!({"retriever": retriever, "size": 10})));
        assert_eq!(pages[..10], first);
        pages.sort();
        pages.dedup();
        assert_eq!(pages.len(), 60, "a document is on two pages");
        // A window that is named is the end.
        let mut named = retriever.clone();
        let kind = named.as_object().and_then(|object| object.keys().next().cloned()).expect("a kind");
        named[&kind]["rank_window_size"] = json!(12);
        let answer = node.search("many", &json!({"retriever": named, "from": 10, "size": 7}));
        assert_eq!(ids(&answer).len(), 2);
        assert_eq!(answer["hits"]["total"]["value"], 60);
    }
}

#[test]
fn what_does_not_fit_together_is_named() {
    let node = example();
    let one = standard(&[("one", 1.0)]);
    let both = rrf(&[one.clone(), knn(4.0, 1)]);
    let invalid = |body: Value, message: &str| {
        let error = node.search_error("test", &body);
        assert_eq!(error["error"]["type"], "action_request_validation_exception", "{body}: {error}");
        let reason = error["error"]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains(message), "{body}: {reason}");
    };
    let with = |name: &str, value: Value| {
        let mut body = json!({"retriever": both});
        body[name] = value;
        body
    };
    let all = json!({"match_all": {}});
    invalid(with("query", all.clone()), "cannot specify [retriever] and [query]");
    invalid(with("knn", knn(1.0, 1)["knn"].clone()), "cannot specify [retriever] and [knn]");
    invalid(with("sort", json!(["_doc"])), "cannot specify [retriever] and [sort]");
    invalid(with("min_score", json!(2)), "cannot specify [retriever] and [min_score]");
    let many = vec![json!({"query": all}); 101];
    invalid(
        json!({"sub_searches": many, "rank": {"rrf": {}}}),
        "[rank] takes at most [100] result sets, but was [101]",
    );
    invalid(with("rank", json!({"rrf": {}})), "cannot specify [retriever] and [rank]");
    invalid(
        json!({"query": all, "min_score": 2, "retriever": {"standard": {}}}),
        "cannot specify [retriever] and [query, min_score]",
    );
    let windowed = |window: u32, inner: u32| {
        let mut inner_list = rrf(std::slice::from_ref(&one));
        inner_list["rrf"]["rank_window_size"] = json!(inner);
        json!({"retriever": {"linear": {"rank_window_size": window,
            "retrievers": [{"retriever": inner_list}, {"retriever": one}]}}})
    };
    invalid(
        windowed(2, 10),
        "[linear] requires [rank_window_size: 2] be greater than or equal to [size: 10]",
    );
    invalid(
        windowed(20, 10),
        "[linear] requires [rank_window_size: 20] to be smaller than or equal to its sub retriever's rrf \
         [rank_window_size: 10]",
    );
    for (kind, options, message) in [
        ("rrf", json!({}), "[rrf] must provide [retrievers] or [query]"),
        ("rrf", json!({"retrievers": []}), "[rrf] must provide [retrievers] or [query]"),
        ("rrf", json!({"fields": ["text"]}), "[rrf] [query] must be provided when [fields] is specified"),
        ("rrf", json!({"query": ""}), "[rrf] [query] cannot be empty"),
        ("rrf", json!({"query": "x", "fields": []}), "[rrf] [fields] cannot be empty"),
        ("rrf", json!({"query": "x", "retrievers": [one]}), "[rrf] cannot combine [retrievers] and [query]"),
        (
            "linear",
            json!({"normalizer": "minmax", "retrievers": [{"retriever": one}]}),
            "[linear] [normalizer] cannot be provided when [retrievers] is specified",
        ),
    ] {
        invalid(json!({"retriever": {kind: options}}), message);
    }
}

#[test]
fn malformed_retrievers_are_named() {
    let node = example();
    let one = standard(&[("one", 1.0)]);
    let mut deep = one.clone();
    for _ in 0..20 {
        deep = rrf(&[deep]);
    }
    for (retriever, message) in [
        (json!({"standerd": {}}), "unknown retriever [standerd] did you mean [standard]?"),
        (json!({}), "retriever malformed, empty clause found"),
        (json!({"rrf": 3}), "[rrf] retriever malformed, no [START_OBJECT] after retriever name"),
        (json!({"standard": {}, "knn": {}}), "[standard] malformed retriever, expected [END_OBJECT]"),
        (json!({"standard": {"qery": {}}}), "[standard] unknown field [qery] did you mean [query]?"),
        (json!({"knn": {"field": "vector", "boost": 2}}), "[knn] unknown field [boost]"),
        (json!({"rrf": {"retrievers": [one], "window": 3}}), "[rrf] unknown field [window]"),
        (json!({"rrf": {"retrievers": 3}}), "Expected [START_ARRAY] but found [VALUE_NUMBER]"),
        (json!({"rrf": {"retrievers": [{"nope": {}}]}}), "unknown retriever [nope]"),
        (
            json!({"rrf": {"retrievers": [one], "rank_constant": 0}}),
            "[rank_constant] must be greater or equal to [1]",
        ),
        (
            json!({"rrf": {"retrievers": [one], "rank_window_size": 0}}),
            "[rank_window_size] must be greater or equal to [1]",
        ),
        (
            json!({"rrf": {"retrievers": [one], "rank_window_size": 10_001}}),
            "less than or equal to [10000] for [rrf]",
        ),
        (
            json!({"rrf": {"retrievers": [{"retriever": one, "weight": -0.5}]}}),
            "[weight] must be non-negative, found [-0.5]",
        ),
        (
            json!({"linear": {"retrievers": [{"retriever": one, "weight": -10}]}}),
            "[weight] must be non-negative",
        ),
        (json!({"linear": {"retrievers": [{"weight": 1}]}}), "Required [retriever]"),
        (json!({"linear": {"retrievers": [one]}}), "[retriever-component] unknown field [standard]"),
        (
            json!({"linear": {"retrievers": [{"retriever": one, "normalizer": "aardvark"}]}}),
            "Unknown normalizer [aardvark], must be one of [none, minmax, l2_norm, zscore, rarity, calibrated]",
        ),
        (
            json!({"linear": {"retrievers": [{"retriever": one}], "min_score": -1}}),
            "[min_score] must be greater than or equal to 0, was: [-1.0]",
        ),
        (json!({"text_similarity_reranker": {"retriever": one}}), "Required [inference_text, field]"),
        (json!({"rrf": {"retrievers": [{"rule": {}}]}}), "retriever [rule] is not supported"),
        (
            json!({"rrf": {"retrievers": vec![one.clone(); 101]}}),
            "[retriever] takes at most [100] result sets, but was [101]",
        ),
        (
            json!({"rrf": {"retrievers": [{"standard": {"query": {"match_all": {}}, "terminate_after": 1}}]}}),
            "[terminate_after] cannot be used in children of compound retrievers",
        ),
        (
            json!({"rrf": {"retrievers": [{"standard": {"sort": ["vector"]}}]}}),
            "retrievers '[standard]' returned errors",
        ),
        (json!({"rescorer": {"retriever": one}}), "Required [rescore]"),
        (
            json!({"rescorer": {"rescore": {"query": {"rescore_query": {"match_all": {}}}}}}),
            "Required [retriever]",
        ),
        (deep, "exceeds the maximum nested depth [10] for retrievers"),
        (
            json!({"rrf": {"query": "x", "fields": ["text^-1"]}}),
            "[rrf] per-field weights must be non-negative",
        ),
    ] {
        let error = node.search_error("test", &json!({"retriever": retriever}));
        assert_eq!(error["status"], 400, "{error}");
        assert!(error.to_string().contains(message), "{retriever}: {error}");
    }
}

#[test]
fn retrievers_that_fail_are_named_with_their_reasons() {
    let node = example();
    let wrong =
        json!({"standard": {"query": {"sparse_vector": {"field": "text", "query_vector": {"a": 1}}}}});
    let error = node.search_error("test", &json!({"retriever": rrf(&[standard(&[("one", 1.0)]), wrong])}));
    assert_eq!(error["error"]["type"], "status_exception");
    assert_eq!(
        error["error"]["root_cause"][0]["reason"],
        "[rrf] search failed - retrievers '[standard]' returned errors. All failures are attached as suppressed \
         exceptions."
    );
    let suppressed = &error["error"]["root_cause"][0]["suppressed"][0];
    assert_eq!(suppressed["type"], "search_phase_execution_exception");
    let reason = suppressed["failed_shards"][0]["reason"]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("sparse_vector"), "{error}");
}

#[test]
fn a_list_may_have_its_own_order_and_groups() {
    let node = example();
    let mut sorted = json!({"standard": {"query": {"match_all": {}}, "sort": [{"keyword": "asc"}]}});
    // four, one, three, two
    let body = |list: &Value| json!({"retriever": rrf(&[list.clone(), knn(3.0, 1)])});
    let answer = node.search("test", &body(&sorted));
    assert_scores(&scores(&answer), &[("3", 0.25 + 0.5), ("4", 0.5), ("1", 1.0 / 3.0), ("2", 0.2)]);
    assert_eq!(answer["hits"]["total"]["value"], 4);
    sorted["standard"]["query"] = json!({"bool": {"should": [constant("four", 3.0), constant("one", 2.0)]}});
    sorted["standard"]["min_score"] = json!(2.5);
    let answer = node.search("test", &body(&sorted));
    assert_scores(&scores(&answer), &[("3", 0.5), ("4", 0.5)]);
    // Scores count in a linear fusion, whatever the order of the list.
    sorted["standard"]["min_score"] = json!(0);
    let weighted = linear(&[weighted(&sorted, 10.0, "none")]);
    assert_scores(
        &scores(&node.search("test", &json!({"retriever": weighted}))),
        &[("4", 30.0), ("1", 20.0)],
    );
}

#[test]
fn fused_hits_collapse() {
    let node = Node::start();
    node.create(
        "books",
        &json!({"author": {"type": "keyword"}, "n": {"type": "integer"}, "v": {"type": "sparse_vector"}}),
    );
    let documents: Vec<Value> = [("a", 1), ("b", 2), ("a", 3), ("b", 4), ("c", 5)]
        .iter()
        .map(|(author, n)| json!({"author": author, "n": n, "v": {"x": n, "y": 6 - n}}))
        .collect();
    node.load("books", &documents);
    let leaf = |token: &str| json!({"standard": {"query": {"sparse_vector": {"field": "v", "query_vector": {token: 1.0}}}}});
    let mut body = json!({"retriever": {"rrf": {"retrievers": [leaf("x")]}},
        "collapse": {"field": "author", "inner_hits": {"name": "all", "sort": [{"n": "asc"}]}}});
    let answer = node.search("books", &body);
    assert_eq!(ids(&answer), ["5", "4", "3"]);
    assert_eq!(answer["hits"]["total"]["value"], 5);
    assert_eq!(answer["hits"]["hits"][1]["fields"]["author"], json!(["b"]));
    let inner = &answer["hits"]["hits"][2]["inner_hits"]["all"];
    assert_eq!(ids(inner), ["1", "3"]);
    body["from"] = json!(1);
    body["size"] = json!(1);
    let page = node.search("books", &body);
    assert_eq!(ids(&page), ["4"]);
    assert_eq!(page["hits"]["hits"][0]["fields"]["author"], json!(["b"]));
}

#[test]
fn rescoring_is_a_retriever() {
    let node = example();
    let first = standard(&[("one", 4.0), ("two", 3.0), ("three", 2.0), ("four", 1.0)]);
    let rescore = json!({"window_size": 3, "query": {"rescore_query": constant("three", 10.0)}});
    let list = json!({"rescorer": {"retriever": first, "rescore": rescore}});
    let answer = node.search("test", &json!({"retriever": list, "size": 3}));
    assert_scores(&scores(&answer), &[("3", 12.0), ("1", 4.0), ("2", 3.0)]);
    let fused = rrf(&[list.clone(), knn(2.0, 1)]);
    let answer = node.search("test", &json!({"retriever": fused, "size": 3}));
    assert_eq!(ids(&answer)[..2], ["2", "3"]);
    let error = node.search_error("test", &json!({"retriever": list}));
    let reason = error["error"]["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("[rescorer] requires [rank_window_size: 3] be greater than or equal to [size: 10]"),
        "{reason}"
    );
}

#[test]
fn factors_of_indices_apply_to_every_list() {
    let node = example();
    node.create("other", &json!({"keyword": {"type": "keyword"}, "vector": {"type": "dense_vector", "dims": 1, "similarity": "l2_norm"}}));
    node.load("other", &[json!({"_id": "o", "keyword": "one", "vector": [4]})]);
    let list = linear(&[json!({"retriever": standard(&[("one", 2.0)])}), json!({"retriever": knn(4.0, 1)})]);
    let answer = node.search("test,other", &json!({"retriever": list, "indices_boost": [{"other": 3}]}));
    assert_scores(&scores(&answer), &[("o", 9.0), ("1", 2.0)]);
}
