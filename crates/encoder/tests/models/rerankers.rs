//! Cross-encoders as Transformers saves them: their scores are those that Transformers computes
//! (`tests/fixtures/make_checkpoints.py`).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::{Value, json};
use sparrow_encoder::{EncoderError, Model, ModelKind};

use crate::checkpoints::{changed, refused};
use crate::common::start;
use crate::exports::fixtures;

#[derive(Deserialize)]
struct Case {
    question: String,
    text: String,
    score: f32,
    token_count: u32,
}

fn expected(name: &str) -> Vec<Case> {
    let all = std::fs::read(fixtures().join("expected-checkpoints.json")).unwrap();
    let mut all: BTreeMap<String, Value> = serde_json::from_slice(&all).unwrap();
    serde_json::from_value(all.remove(name).unwrap()).unwrap()
}

/// Scores each pair alone, and the texts of one question in a batch.
#[track_caller]
fn check(name: &str) {
    let model = Model::load(&fixtures().join(name)).unwrap();
    assert_eq!(model.info().kind, ModelKind::CrossEncoder);
    assert!(model.is_native());
    assert_eq!((model.info().max_tokens, model.info().dims), (16, None));
    let deployment = start(model, |_| {});
    let cases = expected(name);
    for Case { question, text, score, token_count } in &cases {
        let found = deployment.score(question, &[text], None, None).unwrap()[0];
        assert!(
            (found.score - score).abs() < 1e-5,
            "{name}, {question:?}, {text:?}: {} not {score}",
            found.score
        );
        assert_eq!(found.token_count, *token_count, "{name}, {question:?}, {text:?}");
        let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
        let batch = deployment.score(question, &texts, None, None).unwrap();
        assert!(batch.iter().any(|other| (other.score - score).abs() < 1e-5), "{name}, {question:?}");
    }
}

#[test]
fn bert_with_types_and_a_pooler() {
    check("cross-bert");
}

#[test]
fn distilbert_without_types() {
    check("cross-distilbert");
}

#[test]
fn xlm_roberta_with_a_head_of_two_layers() {
    check("cross-xlmr");
}

#[test]
fn modernbert_with_the_mean_over_tokens_and_a_normalised_head() {
    check("cross-modernbert");
}

#[test]
fn packed_weights_give_nearly_the_same_scores() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::load_packed(&fixtures().join("cross-bert"), &folder.path().join("packed")).unwrap();
    let deployment = start(model, |_| {});
    for Case { question, text, score, .. } in expected("cross-bert") {
        let found = deployment.score(&question, &[&text], None, None).unwrap()[0];
        assert!((found.score - score).abs() < 1e-3);
    }
}

#[test]
fn pairs_are_kept_by_question_and_text() {
    let deployment =
        start(Model::load(&fixtures().join("cross-bert")).unwrap(), |options| options.cache_bytes = 1 << 20);
    let score =
        |question: &str, text: &str| deployment.score(question, &[text], None, None).unwrap()[0].score;
    let (one, other) = (score("red", "blue coin"), score("red blue", "coin"));
    assert_ne!(one, other);
    assert_eq!((score("red", "blue coin"), score("red blue", "coin")), (one, other));
    let stats = deployment.stats();
    assert_eq!((stats.inference_count, stats.cache_hit_count), (4, 2));
}

#[test]
fn a_cancelled_question_is_not_answered() {
    let deployment = start(Model::load(&fixtures().join("cross-bert")).unwrap(), |_| {});
    let cancel = AtomicBool::new(true);
    let long = "red ".repeat(1 << 20);
    for (question, text) in [("red", "blue"), (&long, "blue"), ("red", &long)] {
        let outcome = deployment.score(question, &[text, text], Some(&cancel), None);
        assert!(matches!(outcome, Err(EncoderError::Cancelled)), "{outcome:?}");
    }
}

#[test]
fn an_encoder_gives_no_scores() {
    let deployment = start(Model::load(&fixtures().join("checkpoint-bert")).unwrap(), |_| {});
    assert!(matches!(deployment.score("red", &["blue"], None, None), Err(EncoderError::Runtime { .. })));
}

#[test]
fn what_is_no_cross_encoder_is_refused_by_name() {
    let config = |change: &dyn Fn(&mut Value)| changed("cross-bert", "config.json", change);
    refused(&config(&|json| json["model_type"] = json!("roberta")), "no tensor [classifier.dense.weight]");
    let encoder = |json: &mut Value| json["architectures"] = json!(["BertForSequenceClassification"]);
    refused(&changed("checkpoint-splade", "config.json", encoder), "no tensor [");
    let template = |change: &dyn Fn(&mut Value)| changed("cross-bert", "tokenizer.json", change);
    let backwards = |json: &mut Value| {
        json["post_processor"]["pair"] =
            json!([{"Sequence": {"id": "B", "type_id": 1}}, {"Sequence": {"id": "A", "type_id": 0}}]);
    };
    refused(&template(&backwards), "its template of pairs is not a question and then a text");
    let types = |json: &mut Value| json["post_processor"]["pair"][3]["Sequence"]["type_id"] = json!(2);
    refused(&template(&types), "types of its tokens");
    let graph = changed("dense-pooled", "config.json", |json| {
        json["architectures"] = json!(["BertForSequenceClassification"])
    });
    refused(&graph, "a cross-encoder is computed from model.safetensors");
}
