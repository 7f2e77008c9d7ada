//! Tests of models as exporters write them, without a `sparrow.json`: the detected kinds, and vectors
//! that equal numpy's (`tests/fixtures/make_models.py`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use sparrow_encoder::{Encoded, Model, ModelKind, Output, Priority};

use super::checkpoints::{changed, refused};
use super::common::{runtime, start};

#[derive(Deserialize)]
pub struct Case {
    pub text: String,
    #[serde(default)]
    pub tokens: BTreeMap<String, f32>,
    #[serde(default)]
    vector: Vec<f32>,
}

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn load(name: &str) -> Arc<Model> {
    runtime();
    Model::load(&fixtures().join(name)).unwrap()
}

pub fn expected(name: &str) -> Vec<Case> {
    let read = |file: &str| -> BTreeMap<String, Vec<Case>> {
        serde_json::from_slice(&std::fs::read(fixtures().join(file)).unwrap()).unwrap()
    };
    let mut all = ["expected.json", "expected-checkpoints.json"].into_iter().flat_map(read);
    all.find(|(key, _)| key == name).unwrap().1
}

fn tokens(encoded: &Encoded) -> BTreeMap<String, f32> {
    let Output::Sparse(weights) = &encoded.output else { panic!("a dense vector") };
    weights.pairs().iter().map(|(token, weight)| (token.to_string(), *weight)).collect()
}

fn vector(encoded: &Encoded) -> Vec<f32> {
    let Output::Dense(vector) = &encoded.output else { panic!("a sparse vector") };
    vector.to_vec()
}

/// Checks a model's kind, its vectors in one batch, and whether its decoder is computed by our own head (`fused`).
pub fn check(name: &str, kind: ModelKind, fused: bool) {
    let model = load(name);
    assert_eq!(model.info().kind, kind, "{name}");
    assert_eq!(model.info().max_tokens, 16);
    assert_eq!(format!("{model:?}").contains("FusedSparse"), fused, "{name}");
    let deployment = start(model, |_| {});
    let cases = expected(name);
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    for (case, found) in cases.iter().zip(deployment.encode(&texts, Priority::Ingest, None, None).unwrap()) {
        let close = |a: f32, b: f32| (a - b).abs() < 1e-5;
        if case.vector.is_empty() {
            let found = tokens(&found);
            assert!(found.keys().eq(case.tokens.keys()), "{name}, {:?}: {found:?}", case.text);
            assert!(
                found.values().zip(case.tokens.values()).all(|(a, b)| close(*a, *b)),
                "{name}, {:?}",
                case.text
            );
        } else {
            assert_eq!(vector(&found).len(), case.vector.len(), "{name}");
            assert!(
                vector(&found).iter().zip(&case.vector).all(|(a, b)| close(*a, *b)),
                "{name}, {:?}",
                case.text
            );
        }
    }
}

#[test]
fn the_logits_of_a_graph_are_pooled() {
    check("plain-mlm", ModelKind::SparseMlm, false);
}

#[test]
fn a_graph_may_take_types_of_tokens() {
    check("tied-mlm", ModelKind::SparseMlm, false);
}

#[test]
fn a_graph_may_take_ids_of_32_bits_and_have_an_activation_beside_it() {
    check("odd-mlm", ModelKind::SparseMlm, false);
}

#[test]
fn the_first_token_without_normalisation() {
    check("dense-cls", ModelKind::Dense { dims: 6 }, false);
}

#[test]
fn a_pooled_output_is_taken_as_it_is_and_normalised() {
    let deployment = start(load("dense-pooled"), |_| {});
    let found = deployment.encode(&["red stamps"], Priority::Search, None, None).unwrap();
    let length: f32 = vector(&found[0]).iter().map(|value| value * value).sum();
    assert!((length - 1.0).abs() < 1e-5);
}

#[test]
fn a_document_encoder_weighs_queries_by_its_table() {
    check("doc-only", ModelKind::SparseDocOnly, false);
    let deployment = start(load("doc-only"), |_| {});
    let found = deployment.encode_queries(&["red stamps. red coin"], None, None).unwrap();
    let wanted =
        [("__", 0.5), ("red", 2.0), ("stamp", 4.5)].map(|(token, weight)| (token.to_owned(), weight));
    assert_eq!(tokens(&found[0]), BTreeMap::from(wanted));
    assert_eq!(deployment.stats().inference_count, 1);
}

#[test]
fn truncation_follows_the_model() {
    let deployment = start(load("plain-mlm"), |_| {});
    let found = deployment.encode(&["green ".repeat(30).as_str()], Priority::Ingest, None, None).unwrap();
    assert_eq!((found[0].token_count, found[0].truncated_tokens), (16, 16));
}

#[test]
fn a_vocabulary_that_no_memory_holds_is_refused() {
    let huge = changed("plain-mlm", "config.json", |json| json["vocab_size"] = (1_u64 << 33).into());
    refused(&huge, "it has a vocabulary of [8589934592] terms");
}
