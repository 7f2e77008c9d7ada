//! Damaged model directories: they are refused, or loaded, without a panic.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sparrow_encoder::Model;
use sparrow_fuzzing::{Campaign, Random, mutated, mutated_json};

const FIXTURES: [&str; 6] = ["cross-graph", "dense-cls", "dense-pooled", "doc-only", "plain-mlm", "tied-mlm"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("fixtures").join(name)
}

const CHECKPOINTS: [&str; 5] =
    ["checkpoint-bert", "checkpoint-distilbert", "checkpoint-xlmr", "checkpoint-modernbert", "cross-bert"];

/// Copies of model directories, in which a file may be replaced.
fn copies(names: &[&str], folder: &Path) -> Vec<PathBuf> {
    names
        .iter()
        .map(|name| {
            let copy = folder.join(name);
            copy_folder(&fixture(name), &copy);
            copy
        })
        .collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Loads a model directory with one file replaced, and then restores the original file.
fn load_with(folder: &Path, file: &str, bytes: &[u8]) {
    let path = folder.join(file);
    let before = fs::read(&path).ok();
    fs::write(&path, bytes).unwrap();
    // Why it is refused is a sentence.
    if let Err(error) = Model::load(folder) {
        assert!(!error.to_string().is_empty());
    }
    match before {
        Some(before) => fs::write(&path, before).unwrap(),
        None => fs::remove_file(&path).unwrap(),
    }
}

fn seeds(names: &[&str], file: &str) -> Vec<Vec<u8>> {
    names.iter().filter_map(|name| fs::read(fixture(name).join(file)).ok()).collect()
}

#[test]
fn damaged_graphs() {
    let folder = tempfile::tempdir().unwrap();
    let models = copies(&FIXTURES, folder.path());
    for model in &models {
        Model::load(model).unwrap();
    }
    let seeds = seeds(&FIXTURES, "model.onnx");
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "onnx").run(
        |random: &mut Random| {
            mutated(random, &seeds, &[b"MatMul", b"logits", b"\x08\x01", b"\xff\xff\xff\xff\x0f"])
        },
        |bytes| load_with(&models[bytes.len() % models.len()], "model.onnx", bytes),
    );
}

#[test]
fn damaged_descriptions() {
    let folder = tempfile::tempdir().unwrap();
    let models = copies(&FIXTURES, folder.path());
    for file in ["tokenizer.json", "config.json"] {
        let texts = seeds(&FIXTURES, file);
        let values: Vec<Value> = texts.iter().map(|text| serde_json::from_slice(text).unwrap()).collect();
        let name = if file == "config.json" { "model-config" } else { "tokenizer" };
        Campaign::new(env!("CARGO_MANIFEST_DIR"), name).run(
            |random: &mut Random| {
                if random.once_in(4) { mutated(random, &texts, &[]) } else { mutated_json(random, &values) }
            },
            |bytes| load_with(&models[bytes.len() % models.len()], file, bytes),
        );
    }
}

#[test]
fn damaged_weights() {
    let folder = tempfile::tempdir().unwrap();
    let models = copies(&FIXTURES, folder.path());
    let file = |header: &str, data: usize| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + data, 1);
        bytes
    };
    let seeds = [
        file(
            r#"{"mean":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},"basis":{"dtype":"F32","shape":[2,6],"data_offsets":[24,72]}}"#,
            72,
        ),
        file(r#"{"__metadata__":{"a":"b"},"x":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}}"#, 4),
    ];
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "safetensors").run(
        |random: &mut Random| {
            mutated(
                random,
                &seeds,
                &[b"\"F32\"", b"\"F16\"", b"\"data_offsets\":", b"\"shape\":[", b"mean", b"basis"],
            )
        },
        |bytes| load_with(&models[bytes.len() % models.len()], "head-basis.safetensors", bytes),
    );
}

/// Loads checkpoints, without a graph, whose weights or `config.json` are damaged.
#[test]
fn damaged_checkpoints() {
    const WEIGHTS: &str = "model.safetensors";
    let folder = tempfile::tempdir().unwrap();
    let models = copies(&CHECKPOINTS, folder.path());
    let weights = seeds(&CHECKPOINTS, WEIGHTS);
    let configs: Vec<Value> =
        seeds(&CHECKPOINTS, "config.json").iter().map(|text| serde_json::from_slice(text).unwrap()).collect();
    let tokens: [&[u8]; 4] = [b"\"F32\"", b"\"F16\"", b"\"shape\":[", b"embeddings.word_embeddings.weight"];
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "checkpoint").run(
        |random: &mut Random| {
            if random.once_in(2) {
                mutated(random, &weights, &tokens)
            } else {
                mutated_json(random, &configs)
            }
        },
        |bytes| {
            // JSON is a configuration: a checkpoint begins with the length of its header.
            let file = if bytes.first() == Some(&b'{') { "config.json" } else { WEIGHTS };
            load_with(&models[bytes.len() % models.len()], file, bytes);
        },
    );
}
