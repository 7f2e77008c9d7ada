//! Cross-encoders as Transformers saves them: their scores are those that Transformers computes
//! (`tests/fixtures/make_checkpoints.py`). Those that are only a graph have the scores of numpy (`tests/fixtures/make_models.py`).

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use serde::Deserialize;
use serde_json::{Value, json};
use sparrow_encoder::{EncoderError, Model, ModelKind};

use super::checkpoints::{changed, refused};
use super::common::{runtime, start};
use super::exports::fixtures;

#[derive(Deserialize)]
struct Case {
    question: String,
    text: String,
    score: f32,
    token_count: u32,
}

fn expected(name: &str) -> Vec<Case> {
    let read = |file: &str| -> BTreeMap<String, Value> {
        serde_json::from_slice(&std::fs::read(fixtures().join(file)).unwrap()).unwrap()
    };
    let mut all = ["expected.json", "expected-checkpoints.json"].into_iter().flat_map(read);
    serde_json::from_value(all.find(|(key, _)| key == name).unwrap().1).unwrap()
}

/// Scores each pair alone, and the texts of one question in a batch.
#[track_caller]
fn check(name: &str, native: bool) {
    let model = Model::load(&fixtures().join(name)).unwrap();
    assert_eq!(model.info().kind, ModelKind::CrossEncoder);
    assert_eq!(model.is_native(), native);
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
        let own = texts.iter().position(|other| other == text).unwrap();
        assert!((batch[own].score - score).abs() < 1e-5, "{name}, {question:?}");
    }
}

#[test]
fn bert_with_types_and_a_pooler() {
    check("cross-bert", true);
}

#[test]
fn distilbert_without_types() {
    check("cross-distilbert", true);
}

#[test]
fn xlm_roberta_with_a_head_of_two_layers() {
    check("cross-xlmr", true);
}

#[test]
fn modernbert_with_the_mean_over_tokens_and_a_normalised_head() {
    check("cross-modernbert", true);
}

#[test]
fn a_graph_with_types() {
    runtime();
    check("cross-graph", false);
}

#[test]
fn a_graph_without_types() {
    runtime();
    check("cross-graph-untyped", false);
}

/// In a batch of one question's texts, in which short ones are padded, each has the same score as by itself.
#[test]
fn texts_of_all_lengths_score_in_a_batch_as_alone() {
    runtime();
    let lengths = [0, 1, 2, 5, 9, 30];
    let texts: Vec<String> = lengths.iter().map(|words| "green old coin ".repeat(*words)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for name in ["cross-graph", "cross-graph-untyped"] {
        let deployment = start(Model::load(&fixtures().join(name)).unwrap(), |_| {});
        let batch = deployment.score("red stamps", &texts, None, None).unwrap();
        for (text, in_batch) in texts.iter().zip(batch) {
            let alone = deployment.score("red stamps", &[text], None, None).unwrap()[0];
            assert!((alone.score - in_batch.score).abs() < 1e-6, "{name}, {text:?}");
            assert_eq!(alone.token_count, in_batch.token_count);
        }
    }
}

/// Swapping question and text changes the score of a graph: token types and order tell them apart.
#[test]
fn a_graph_tells_the_question_from_the_text() {
    runtime();
    for name in ["cross-graph", "cross-graph-untyped"] {
        let deployment = start(Model::load(&fixtures().join(name)).unwrap(), |_| {});
        let score =
            |question: &str, text: &str| deployment.score(question, &[text], None, None).unwrap()[0].score;
        assert!((score("red", "blue coin") - score("blue coin", "red")).abs() > 1e-3, "{name}");
    }
}

#[test]
fn a_graph_that_gives_something_else_is_refused_with_what_it_gives() {
    let labels = Model::load(&fixtures().join("cross-graph-labels")).unwrap_err().to_string();
    assert!(
        labels.contains("its graph gives [2] labels; a cross-encoder that ranks texts has one"),
        "{labels}"
    );
    let classifier = |json: &mut Value| json["architectures"] = json!(["BertForSequenceClassification"]);
    refused(
        &changed("plain-mlm", "config.json", classifier),
        "output [logits] of its graph has the shape [?, ?, 13]; a cross-encoder that ranks texts gives [texts, 1]",
    );
}

#[test]
fn packed_weights_give_nearly_the_same_scores() {
    let folder = tempfile::tempdir().unwrap();
    let model =
        sparrow_encoder::load_packed(&fixtures().join("cross-bert"), &folder.path().join("packed")).unwrap();
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
    refused(&graph, "its graph gives [6] labels");
}
