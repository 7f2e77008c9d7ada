//! Vectors against those of a float64 implementation in Python (`test/fixtures/models/reference.json`).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use sparrow_encoder::{Encoded, Output, Priority};

use super::common::{deploy, root};

#[derive(Deserialize)]
struct Reference {
    sparse: Vec<Sparse>,
    dense: Vec<Dense>,
    /// Of the model whose vector is the state of the first token.
    dense_first_token: Vec<Dense>,
}

#[derive(Deserialize)]
struct Sparse {
    text: String,
    token_count: u32,
    tokens: BTreeMap<String, f32>,
}

#[derive(Deserialize)]
struct Dense {
    text: String,
    vector: Vec<f32>,
}

fn reference() -> Reference {
    let path = root().join("test/fixtures/models/reference.json");
    serde_json::from_slice(&std::fs::read(&path).expect("reference vectors")).expect("reference vectors")
}

/// The 50 heaviest tokens, without those so close to the border that rounding may swap them.
fn clear_top_50<'a>(tokens: impl Iterator<Item = (&'a str, f32)>, border: f32) -> BTreeSet<&'a str> {
    tokens.filter(|(_, weight)| *weight > border + 1e-3).map(|(token, _)| token).collect()
}

fn check_sparse(expected: &Sparse, found: &Encoded) {
    let Output::Sparse(weights) = &found.output else { panic!("a dense vector") };
    let text = &expected.text[..expected.text.len().min(40)];
    assert_eq!(found.token_count, expected.token_count, "{text}");
    let weights: BTreeMap<&str, f32> =
        weights.pairs().iter().map(|(token, weight)| (&**token, *weight)).collect();
    for token in expected.tokens.keys().map(String::as_str).chain(weights.keys().copied()) {
        let wanted = expected.tokens.get(token).copied().unwrap_or(0.0);
        let weight = weights.get(token).copied().unwrap_or(0.0);
        assert!((wanted - weight).abs() <= 1e-3, "{text}: {token} weighs {weight}, not {wanted}");
    }
    let mut sorted: Vec<f32> = expected.tokens.values().copied().collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let border = sorted.get(50).copied().unwrap_or(0.0);
    assert_eq!(
        clear_top_50(weights.iter().map(|(token, weight)| (*token, *weight)), border),
        clear_top_50(expected.tokens.iter().map(|(token, weight)| (token.as_str(), *weight)), border),
        "{text}"
    );
}

#[test]
fn sparse_weights_equal_the_reference() {
    let reference = reference().sparse;
    assert!(reference.len() >= 5);
    let deployment = deploy("model-splade-tiny", |_| {});
    let texts: Vec<&str> = reference.iter().map(|case| case.text.as_str()).collect();
    let together = deployment.encode(&texts, Priority::Ingest, None, None).unwrap();
    for (case, found) in reference.iter().zip(&together) {
        check_sparse(case, found);
        let alone = deployment.encode(&[&case.text], Priority::Search, None, None).unwrap();
        check_sparse(case, &alone[0]);
    }
}

#[test]
fn threads_inside_a_worker_change_nothing() {
    let deployment = deploy("model-splade-tiny", |options| options.threads_per_allocation = 2);
    for case in &reference().sparse {
        check_sparse(case, &deployment.encode(&[&case.text], Priority::Ingest, None, None).unwrap()[0]);
    }
}

#[test]
fn dense_vectors_are_near_the_reference() {
    check_dense("model-minilm-l6", &reference().dense);
    check_dense("model-bge-small-en", &reference().dense_first_token);
}

/// With weights and activations of 8 bits, each vector is near the reference, and their average distance is smaller
/// still.
fn check_dense(model: &str, reference: &[Dense]) {
    assert!(reference.len() >= 5);
    let deployment = deploy(model, |_| {});
    let texts: Vec<&str> = reference.iter().map(|case| case.text.as_str()).collect();
    let mut sum = 0.0;
    for (case, found) in
        reference.iter().zip(deployment.encode(&texts, Priority::Ingest, None, None).unwrap())
    {
        let Output::Dense(vector) = found.output else { panic!("a sparse vector") };
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let norm = dot(&vector, &vector).sqrt();
        let cosine = dot(&vector, &case.vector) / norm / dot(&case.vector, &case.vector).sqrt();
        assert!(cosine >= 0.995, "{model}: {:.40}: {cosine}", case.text);
        assert!((norm - 1.0).abs() < 1e-5, "length {norm}");
        sum += cosine;
    }
    let mean = sum / reference.len() as f64;
    assert!(mean >= 0.998, "{model}: {mean} on average");
}
