//! Several kinds of relevance in one search: reciprocal rank fusion, kNN beside a query.

use serde_json::{Value, json};

use super::common::{Node, assert_scores, ids, scores};

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

/// With `profile` the lists of a fusion are computed one after another, otherwise idle processors compute some of them: the results
/// have to be the same.
#[test]
fn lists_that_are_made_at_once_are_those_made_one_after_another() {
    let node = Node::start();
    node.create(
        "large",
        &json!({"t": {"type": "text"}, "v": {"type": "sparse_vector"},
            "d": {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}}),
    );
    let documents: Vec<Value> = (0..20_500_u32)
        .map(|number| {
            let weight = 1.0 + f64::from(number % 997) / 100.0;
            json!({"t": format!("word{} shared", number % 389), "v": {"x": weight, "y": f64::from(number % 83 + 1)},
                "d": [f64::from(number % 311), f64::from(number % 173)]})
        })
        .collect();
    node.load("large", &documents);
    let lists = |number: u32| {
        let standard = |query: Value| json!({"standard": {"query": query}});
        json!([
            standard(json!({"match": {"t": format!("word{number} shared")}})),
            standard(sparse("v", if number.is_multiple_of(2) { "x" } else { "y" })),
            {"knn": {"field": "d", "query_vector": [number, number], "k": 50, "num_candidates": 50}},
        ])
    };
    let answer = |body: &Value, profile: bool| {
        let mut body = body.clone();
        body["profile"] = json!(profile);
        let reply = node.run("search", &[("index", "large")], &[], body.to_string().as_bytes());
        let mut answer = match reply {
            Ok(reply) => serde_json::from_slice::<Value>(&reply.body).expect("JSON"),
            Err(error) => error.body(),
        };
        for member in ["took", "profile"] {
            answer.as_object_mut().expect("an object").remove(member);
        }
        answer
    };
    std::thread::scope(|scope| {
        for part in 0..3_u32 {
            let (lists, answer) = (&lists, &answer);
            scope.spawn(move || {
                for number in (part..60).step_by(3) {
                    let body = json!({"retriever": {"rrf": {"retrievers": lists(number), "rank_window_size": 60}}, "size": 60});
                    let at_once = answer(&body, false);
                    assert_eq!(at_once["hits"]["hits"].as_array().map(Vec::len), Some(60));
                    assert_eq!(at_once, answer(&body, true), "question {number}");
                }
            });
        }
    });
    // All endpoints that fail are named, whether they are built in or not.
    let negative = json!({"standard": {"query": {"script_score": {"query": {"match_all": {}},
        "script": {"source": "dotProduct(params.v, 'd') - 1.0", "params": {"v": [-1.0, -1.0]}}}}}});
    let mut inputs = lists(1);
    inputs.as_array_mut().expect("lists").extend([negative.clone(), negative]);
    let body = json!({"retriever": {"rrf": {"retrievers": inputs}}});
    let refused = answer(&body, false);
    assert_eq!(refused["error"]["suppressed"].as_array().map(Vec::len), Some(2), "{refused}");
    assert_eq!(refused, answer(&body, true));
}
