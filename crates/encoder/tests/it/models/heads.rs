//! Sparse models that are heads on a dense one: one pass gives both vectors, and they are those that two passes give, bit by bit.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_encoder::{Encoded, Model, ModelKind, Output, Priority};
use sparrow_runtime::TokenWeights;

use super::checkpoints::{changed, copy, refused};
use super::common::start;
use super::exports::{expected, fixtures};

const TEXTS: [&str; 5] =
    ["", "red stamps", "old blue coin. new", "a", "green green green red green green green"];

fn trunk() -> Arc<Model> {
    Model::load(&fixtures().join("checkpoint-bert")).unwrap()
}

fn encode(model: Arc<Model>, texts: &[&str]) -> Vec<Encoded> {
    start(model, |_| {}).encode(texts, Priority::Ingest, None, None).unwrap()
}

fn both(encoded: &Encoded) -> (&TokenWeights, &[f32]) {
    match &encoded.output {
        Output::Hybrid { sparse, dense } => (sparse, dense),
        other => panic!("{other:?} is one vector"),
    }
}

/// The tensors of a safetensors file: name, type with shape, bytes.
fn tensors(path: &Path) -> Vec<(String, Value, Vec<u8>)> {
    let bytes = fs::read(path).unwrap();
    let (length, rest) = bytes.split_at(8);
    let (header, data) = rest.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
    let header: serde_json::Map<String, Value> = serde_json::from_slice(header).unwrap();
    let tensors = header.into_iter().filter(|(name, _)| name != "__metadata__");
    let place = |of: &Value| of.as_u64().unwrap() as usize;
    let tensor = |(name, entry): (String, Value)| {
        let bytes = &data[place(&entry["data_offsets"][0])..place(&entry["data_offsets"][1])];
        (name, entry, bytes.to_vec())
    };
    tensors.map(tensor).collect()
}

/// Writes a safetensors file.
fn write(path: &Path, tensors: impl IntoIterator<Item = (String, Value, Vec<u8>)>) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, mut entry, bytes) in tensors {
        entry["data_offsets"] = json!([data.len(), data.len() + bytes.len()]);
        header.insert(name, entry);
        data.extend(bytes);
    }
    let header = Value::Object(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    fs::write(path, [&length[..], header.as_bytes(), &data].concat()).unwrap();
}

/// The head and its trunk as one model that is written out in full: all layers, and a decoder that is the word embeddings.
fn written_out(said: &Value) -> tempfile::TempDir {
    let (dir, head) = (copy(&fixtures().join("checkpoint-bert")), fixtures().join("checkpoint-head"));
    fs::remove_file(dir.path().join("modules.json")).unwrap();
    fs::copy(head.join("config.json"), dir.path().join("config.json")).unwrap();
    fs::write(dir.path().join("sparrow.json"), said.to_string()).unwrap();
    let path = dir.path().join("model.safetensors");
    let below = tensors(&path).into_iter().map(|(name, entry, bytes)| (format!("bert.{name}"), entry, bytes));
    write(&path, below.chain(tensors(&head.join("model.safetensors"))).collect::<Vec<_>>());
    dir
}

#[test]
fn a_head_computes_what_transformers_do() {
    let head = Model::load_head(&fixtures().join("checkpoint-head"), &trunk()).unwrap();
    assert_eq!((head.info().kind, head.info().max_tokens), (ModelKind::SparseMlm, 16));
    let cases = expected("checkpoint-head");
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    for (case, found) in cases.iter().zip(encode(head, &texts)) {
        let pairs = both(&found).0.pairs();
        assert_eq!(pairs.len(), case.tokens.len(), "{:?}", case.text);
        let is_close = |(token, weight): &(Box<str>, f32)| (weight - case.tokens[&**token]).abs() < 1e-5;
        assert!(pairs.iter().all(is_close), "{:?}: {pairs:?}", case.text);
    }
}

/// In floats and in bytes, alone and in one batch; in floats also as a model that is written out in full. In bytes that one has factors of
/// inputs in all of its layers, and a head has none in its own.
#[test]
fn one_pass_gives_the_vectors_of_two() {
    for arithmetic in ["float32", "int8"] {
        let said = json!({"arithmetic": arithmetic});
        let below = changed("checkpoint-bert", "sparrow.json", |json| json.clone_from(&said));
        let trunk = Model::load(below.path()).unwrap();
        assert_eq!(trunk.info().recognised.int8, arithmetic == "int8");
        let named = json!({"trunk": {"model": "any", "fingerprint": trunk.info().fingerprint}});
        let above = changed("checkpoint-head", "sparrow.json", |json| json.clone_from(&named));
        let head = Model::load_head(above.path(), &trunk).unwrap();
        assert_eq!(head.info().recognised.int8, trunk.info().recognised.int8);
        let dense = encode(trunk, &TEXTS);
        let whole = encode(Model::load(written_out(&said).path()).unwrap(), &TEXTS);
        let found = encode(Arc::clone(&head), &TEXTS);
        for (at, text) in TEXTS.into_iter().enumerate() {
            let (sparse, below) = both(&found[at]);
            assert!(!sparse.pairs().is_empty(), "{text}");
            assert_eq!(Output::Dense(below.into()), dense[at].output, "{arithmetic}: {text}");
            let alone = found[at].clone().without_trunk();
            if arithmetic == "float32" {
                assert_eq!(alone, whole[at], "{text}");
            }
            assert_eq!(encode(Arc::clone(&head), &[text])[0], found[at], "{arithmetic}: {text}");
        }
    }
}

/// `checkpoint-head` with own weights of its 13 tokens.
fn with_token_weights(weights: &[f32]) -> tempfile::TempDir {
    let dir = copy(&fixtures().join("checkpoint-head"));
    let path = dir.path().join("model.safetensors");
    let bytes = weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let added = ("token_weights".to_owned(), json!({"dtype": "F32", "shape": [weights.len()]}), bytes);
    write(&path, tensors(&path).into_iter().chain([added]));
    dir
}

#[test]
fn tokens_of_a_text_have_weights_of_their_own() {
    let (below, plain) = (trunk(), fixtures().join("checkpoint-head"));
    let plain = Model::load_head(&plain, &below).unwrap();
    let terms = plain.info().vocabulary_size;
    // Every second token has one, and each another.
    let own: Vec<f32> = (0..terms).map(|id| if id % 2 == 0 { 0.25 + id as f32 } else { 0.0 }).collect();
    let dir = with_token_weights(&own);
    let weighted = Model::load_head(dir.path(), &below).unwrap();
    let (without, with) = (encode(Arc::clone(&plain), &TEXTS), encode(Arc::clone(&weighted), &TEXTS));
    for ((text, without), with) in TEXTS.iter().zip(&without).zip(&with) {
        let (without, with) = (both(without), both(with));
        assert_eq!(without.1, with.1, "{text}: the dense vector stays");
        let of = |weights: &TokenWeights, token: &str| {
            weights.pairs().iter().find(|(name, _)| &**name == token).map_or(0.0, |(_, weight)| *weight)
        };
        for token in ["red", "green", "blue", "coin", "old", "new"] {
            let is_there = text.split([' ', '.']).any(|word| word == token);
            let own = if is_there { own[weighted.token_id(token).unwrap() as usize] } else { 0.0 };
            assert_eq!(of(with.0, token), of(without.0, token) + own, "{text}: {token}");
        }
    }
    assert_ne!(with, without);

    let refused = |weights: &[f32]| {
        let error = Model::load_head(with_token_weights(weights).path(), &below).unwrap_err().to_string();
        assert!(error.contains("tensor [token_weights] has to hold"), "{error}");
    };
    refused(&own[1..]);
    for wrong in [-1.0, f32::NAN, f32::INFINITY] {
        refused(&[&[wrong], &own[1..]].concat());
    }
}

#[test]
fn a_vector_from_the_cache_is_both() {
    let head = Model::load_head(&fixtures().join("checkpoint-head"), &trunk()).unwrap();
    let deployment = start(head, |options| options.cache_bytes = 1 << 20);
    let ask = || deployment.encode(&TEXTS, Priority::Search, None, None).unwrap();
    let first = ask();
    both(&first[1]);
    assert_eq!(ask(), first);
    assert_eq!(deployment.stats().cache_hit_count, TEXTS.len() as u64);
}

#[test]
fn a_head_is_only_computed_on_the_model_that_it_names() {
    let head = fixtures().join("checkpoint-head");
    refused(&copy(&head), "it is a head on the model [checkpoint-bert] of fingerprint [");
    let refused = |dir: &Path, trunk: &Arc<Model>, reason: &str| {
        let error = Model::load_head(dir, trunk).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    let other = changed("checkpoint-bert", "sparrow.json", |json| json["max_tokens"] = json!(9));
    refused(&head, &Model::load(other.path()).unwrap(), "it is no head on this model");
    refused(&fixtures().join("checkpoint-splade"), &trunk(), "it is no head on this model");
    let on = |name: &str| {
        let trunk = Model::load(&fixtures().join(name)).unwrap();
        let fingerprint = json!(trunk.info().fingerprint);
        (
            changed("checkpoint-head", "sparrow.json", |json| {
                json["trunk"]["fingerprint"] = fingerprint.clone()
            }),
            trunk,
        )
    };
    let (dir, sparse) = on("checkpoint-splade");
    refused(dir.path(), &sparse, "on a dense model of one");
    let (dir, modern) = on("checkpoint-modernbert");
    refused(dir.path(), &modern, "it does not fit on [3] layers of BERT with hidden states of [64] numbers");
    let config = |name: &str, value: Value| {
        changed("checkpoint-head", "config.json", |json| json[name] = value.clone())
    };
    refused(config("num_hidden_layers", json!(1)).path(), &trunk(), "it does not fit on [2] layers");
    refused(config("num_attention_heads", json!(2)).path(), &trunk(), "attention heads");
    let untied = copy(&head);
    let path = untied.path().join("model.safetensors");
    let decoder = (
        "cls.predictions.decoder.weight".to_owned(),
        json!({"dtype": "F32", "shape": [13, 32]}),
        vec![0; 13 * 32 * 4],
    );
    write(&path, tensors(&path).into_iter().chain([decoder]));
    refused(untied.path(), &trunk(), "its tensor [cls.predictions.decoder.weight] would not be used");
    refused(config("num_hidden_layers", json!(4)).path(), &trunk(), "no tensor [bert.encoder.layer.3.");
    let said = |json: &mut Value| json["trunk"]["layers"] = json!(2);
    refused(changed("checkpoint-head", "sparrow.json", said).path(), &trunk(), "unknown field `layers`");
}
