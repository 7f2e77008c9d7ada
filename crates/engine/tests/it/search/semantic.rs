//! Searches by meaning, with the models of the workspace.

use serde_json::{Value, json};

use super::common::{Node, ids};

const SPARSE: &str = ".sparse_encoder_model_2";
const TEXTS: [&str; 4] = [
    "The cat sleeps on the warm sofa.",
    "Stock markets fell sharply on Monday.",
    "A recipe for tomato soup with basil.",
    "The spacecraft entered orbit around Mars.",
];

fn encode(node: &Node, model: &str, text: &str) -> Value {
    let body = json!({"docs": [{"text_field": text}]});
    let answer = node.ok("infer_trained_model", &[("model", model)], &[], &body);
    answer["inference_results"][0]["predicted_value"].clone()
}

fn passages() -> Node {
    let node = Node::with_models(true);
    node.create("passages", &json!({"text": {"type": "text"}, "v": {"type": "sparse_vector"}}));
    let documents: Vec<Value> =
        TEXTS.iter().map(|text| json!({"text": text, "v": encode(&node, SPARSE, text)})).collect();
    node.load("passages", &documents);
    node
}

#[test]
fn texts_are_found_by_meaning() {
    let node = passages();
    for (question, best) in [
        ("where does my cat sleep", "1"),
        ("why did the stock market fall", "2"),
        ("how to make soup", "3"),
        ("spaceship flying to mars", "4"),
    ] {
        let expansion = json!({"text_expansion": {"v": {"model_id": SPARSE, "model_text": question}}});
        let found = node.scores("passages", &expansion);
        assert_eq!(found[0].0, best, "{question}");
        let inference = json!({"sparse_vector": {"field": "v", "inference_id": SPARSE, "query": question}});
        assert_eq!(node.scores("passages", &inference), found);
        // The same as a query with the weights that the model gives.
        let tokens = encode(&node, SPARSE, question);
        let weighted = json!({"sparse_vector": {"field": "v", "query_vector": tokens}});
        for (a, b) in node.scores("passages", &weighted).iter().zip(&found) {
            assert!(a.0 == b.0 && (a.1 - b.1).abs() < 1e-3, "{a:?} is not {b:?}");
        }
        let doubled =
            json!({"text_expansion": {"v": {"model_id": SPARSE, "model_text": question, "boost": 2}}});
        assert!((node.scores("passages", &doubled)[0].1 - 2.0 * found[0].1).abs() < 1e-3);
    }
    let blank = json!({"text_expansion": {"v": {"model_id": SPARSE, "model_text": " "}}});
    assert!(node.ids("passages", &blank).is_empty());

    let hybrid = node.search(
        "passages",
        &json!({"sub_searches": [
                {"query": {"match": {"text": "soup"}}},
                {"query": {"text_expansion": {"v": {"model_id": SPARSE, "model_text": "soup"}}}}],
            "rank": {"rrf": {}}}),
    );
    assert_eq!(ids(&hybrid)[0], "3");
    assert!((hybrid["hits"]["hits"][0]["_score"].as_f64().unwrap_or(0.0) - 2.0 / 61.0).abs() < 1e-6);

    // A profile tells the encoder's phases apart; what the cache knows costs none of them.
    let text = json!({"text_expansion": {"v": {"model_id": SPARSE, "model_text": "a text about soup never seen before"}}});
    let profile = |body: &Value| node.search("passages", body)["profile"].clone();
    let body = json!({"query": text, "profile": true});
    let first = profile(&body);
    for phase in ["tokenize_in_nanos", "infer_in_nanos", "search_in_nanos", "fetch_in_nanos"] {
        assert!(first["phases"][phase].as_u64().unwrap_or(0) > 0, "{phase}: {first}");
    }
    assert_eq!(first["models"][0]["model_id"], SPARSE);
    assert_eq!((&first["models"][0]["texts"], &first["models"][0]["cache_hits"]), (&json!(1), &json!(0)));
    let again = profile(&body);
    assert_eq!(
        (&again["models"][0]["cache_hits"], &again["phases"]["infer_in_nanos"]),
        (&json!(1), &json!(0))
    );
}

#[test]
fn a_text_of_ten_megabytes_is_answered() {
    let node = passages();
    let text = "mars ".repeat(10 * 1024 * 1024 / 5);
    let query = json!({"text_expansion": {"v": {"model_id": SPARSE, "model_text": text}}});
    assert_eq!(node.ids("passages", &query)[0], "4");
}

#[test]
fn a_model_that_is_not_deployed_is_refused_with_the_documented_sentence() {
    let node = Node::with_models(false);
    node.create("passages", &json!({"v": {"type": "sparse_vector"}}));
    let error = node.search_error(
        "passages",
        &json!({"query": {"text_expansion": {"v": {"model_id": SPARSE, "model_text": "x"}}}}),
    );
    assert_eq!(
        error["error"]["reason"],
        format!(
            "Model [{SPARSE}] must be deployed to use. Please deploy with the start trained model deployment API."
        )
    );
    assert_eq!(error["status"], 409);
}

#[test]
fn a_profile_names_the_models_of_semantic_text_fields() {
    let node = Node::with_models(true);
    node.create("notes", &json!({"text": {"type": "semantic_text", "inference_id": ".hybrid"}}));
    node.load("notes", &[json!({"text": "Water boils at a lower temperature on a mountain."})]);
    for body in [
        json!({"query": {"semantic": {"field": "text", "query": "cooking at altitude"}}}),
        json!({"retriever": {"rrf": {"query": "cooking high above the sea"}}}),
    ] {
        let mut body = body;
        body["profile"] = json!(true);
        let profile = node.search("notes", &body)["profile"].clone();
        let models = profile["models"].as_array().cloned().unwrap_or_default();
        let mut named: Vec<&str> = models.iter().filter_map(|model| model["model_id"].as_str()).collect();
        named.sort_unstable();
        named.dedup();
        assert_eq!(named.len(), 2, "{profile}");
        assert!(profile["phases"]["infer_in_nanos"].as_u64().unwrap_or(0) > 0, "{profile}");
    }
}
