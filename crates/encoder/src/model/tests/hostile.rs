//! Folders of models whose members were chosen to do harm: they are refused by name, or their vectors are those of the model.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::nibbles::{All, FILES, fixture, floats, write};
use super::{Files, Keep};
use crate::bert::Sequence;
use crate::cache::Vector;
use crate::forward::Forward;
use crate::model::Model;
use crate::model::safetensors::Tensors;

const MATRIX: &str = "encoder.layer.0.intermediate.dense.weight";

/// The tensors of a model as f32, in a file or in memory.
fn tensors(files: &Files) -> All {
    let tensors = Tensors::open(&files.model().join(FILES[0])).unwrap();
    let of = |name: &str| {
        let tensor = tensors.find(name).unwrap().unwrap();
        (name.to_owned(), ("F32", tensor.shape, floats(&tensor.values.read().unwrap())))
    };
    tensors.names().map(of).collect()
}

/// The vector of a text, or the reason why the model refuses to make one.
fn vector(model: &Arc<Model>) -> Result<Vec<f32>, String> {
    let ids = model.tokenizer.encode("old red stamps. who collects coins?").unwrap().ids;
    let mut forward = Forward::new(model, 1).unwrap();
    match forward.run(&[Sequence::from(&ids[..])]).map_err(|error| error.to_string())?.remove(0) {
        Vector::Dense(vector) => Ok(vector.to_vec()),
        other => panic!("{other:?}"),
    }
}

/// Loads a model in memory and, as a large one, by way of a file; both say the same.
fn loaded(files: &Files) -> Result<Arc<Model>, String> {
    let said = |keep| Model::read(&files.model(), keep).map_err(|error| error.to_string());
    let (in_memory, in_file) = (said(None), said(Some(Keep::any(&files.packed()))));
    assert_eq!(in_memory.as_ref().err(), in_file.as_ref().err());
    in_memory
}

#[test]
fn scales_of_bytes_that_no_product_can_have_are_refused_by_name() {
    let files = fixture();
    let mut all = tensors(&files);
    let shape = all[MATRIX].1.clone();
    let (rows, columns) = (shape[0], shape[1]);
    let bytes = (0..rows * columns).map(|at| (at * 37 % 251) as u8).collect();
    all.insert(MATRIX.into(), ("I8", shape, bytes));
    for said in ["int8", "float32"] {
        fs::write(files.model().join("sparrow.json"), json!({ "arithmetic": said }).to_string()).unwrap();
        let outcome = |scales: &[f32], of_columns: &[f32]| {
            let mut all = all.clone();
            all.insert(format!("{MATRIX}_scale"), ("F32", vec![scales.len(), 1], floats(scales)));
            let of_columns = ("F32", vec![1, of_columns.len()], floats(of_columns));
            all.insert(format!("{MATRIX}_column_scale"), of_columns);
            write(&files, &all);
            loaded(&files)
        };
        let with = |odd: f32, length: usize| {
            let mut scales = vec![0.01; length];
            scales[5] = odd;
            scales
        };
        assert!(vector(&outcome(&with(0.01, rows), &with(0.01, columns)).unwrap()).is_ok());
        // A row of zeros may have any scale, and that of no other row makes the product another one.
        assert!(outcome(&with(0.0, rows), &with(0.01, columns)).is_ok());
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -1.0, 1e-40] {
            let error = outcome(&with(0.01, rows), &with(odd, columns)).unwrap_err();
            assert!(error.contains(MATRIX) && error.contains("scale of a column"), "{odd}: {error}");
            if !odd.is_finite() {
                let error = outcome(&with(odd, rows), &with(0.01, columns)).unwrap_err();
                assert!(error.contains(MATRIX) && error.contains("scale of a row"), "{odd}: {error}");
            }
        }
        for (rows, columns) in
            [(rows - 1, columns), (rows, columns - 1), (2 * rows, columns), (rows, 2 * columns)]
        {
            let error = outcome(&with(0.01, rows), &with(0.01, columns)).unwrap_err();
            assert!(error.contains(MATRIX) && error.contains("no scale for each"), "{error}");
        }
    }
}

/// Each reason for which the kernels do not take weights has a sentence of its own.
#[test]
fn weights_that_are_no_numbers_are_refused_by_their_place() {
    let files = fixture();
    let all = tensors(&files);
    let refused = |name: &str, words: &str| {
        let mut all = all.clone();
        let tensor = all.get_mut(name).unwrap_or_else(|| panic!("{name}"));
        tensor.2[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        write(&files, &all);
        let error = loaded(&files).unwrap_err();
        assert!(error.contains(words), "{name}: {error}");
    };
    refused("embeddings.word_embeddings.weight", "a number that is not finite is in its word embeddings");
    refused(
        "embeddings.position_embeddings.weight",
        "a number that is not finite is in its position embeddings",
    );
    refused(
        "embeddings.LayerNorm.weight",
        "a number that is not finite is in the normalisation of its embeddings",
    );
    for part in [MATRIX, "encoder.layer.0.output.dense.bias", "encoder.layer.0.output.LayerNorm.bias"] {
        refused(part, "a number that is not finite is in its layer [0]");
    }
}

#[test]
fn sizes_of_config_json_that_do_not_fit_are_refused() {
    let files = fixture();
    let path = files.model().join("config.json");
    let config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let keys = [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "intermediate_size",
        "max_position_embeddings",
    ];
    for key in keys {
        let right = config[key].as_u64().unwrap();
        let wrong = [0, 1, right - 1, right + 1, 2 * right, 32, 1 << 20, 1 << 40, u64::MAX];
        for size in wrong.into_iter().filter(|size| *size != right) {
            let mut config = config.clone();
            config[key] = json!(size);
            fs::write(&path, config.to_string()).unwrap();
            let error =
                loaded(&files).err().unwrap_or_else(|| panic!("[{key}] of {size} instead of {right}"));
            assert!(!error.is_empty());
        }
    }
    let both = |size: u64| {
        let mut config = config.clone();
        config["hidden_dim"] = json!(size);
        fs::write(&path, config.to_string()).unwrap();
        loaded(&files)
    };
    let inner = config["intermediate_size"].as_u64().unwrap();
    assert!(both(inner).is_ok());
    let error = both(inner + 1).unwrap_err();
    assert!(error.contains("[intermediate_size]") && error.contains("[hidden_dim]"), "{error}");
    for epsilon in [json!(-1.0), json!(1e300)] {
        let mut config = config.clone();
        config["layer_norm_eps"] = epsilon.clone();
        fs::write(&path, config.to_string()).unwrap();
        assert!(loaded(&files).is_err(), "{epsilon}");
    }
    fs::write(&path, config.to_string()).unwrap();
    assert!(vector(&loaded(&files).unwrap()).is_ok());
}

/// A folder that is replaced by another version of the model while it is read: there are only the vectors of either version.
#[test]
fn a_model_that_changes_while_it_is_read_is_one_of_both_or_none() {
    let files = fixture();
    let first = tensors(&files);
    let second: All = first
        .iter()
        .map(|(name, (kind, shape, bytes))| {
            let halved = bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number) / 2.0);
            (name.clone(), (*kind, shape.clone(), floats(&halved.collect::<Vec<f32>>())))
        })
        .collect();
    let mut expected = Vec::new();
    let versions: Vec<Vec<u8>> = [&first, &second]
        .into_iter()
        .map(|version| {
            write(&files, version);
            for keep in [None, Some(Keep::any(&files.packed()))] {
                expected.push(vector(&Model::read(&files.model(), keep).unwrap()).unwrap());
            }
            fs::read(files.model().join(FILES[0])).unwrap()
        })
        .collect();
    assert_ne!(expected[0], expected[2]);
    let done = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in versions.iter().cycle() {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                let new = files.model().join("new");
                fs::write(&new, version).unwrap();
                fs::rename(&new, files.model().join(FILES[0])).unwrap();
                // More than the step of a file system's clock.
                std::thread::sleep(Duration::from_millis(12));
            }
        });
        let packed = files.packed();
        let found: Vec<_> = (0..200)
            .map(|round| {
                let keep = Some(Keep::any(&packed)).filter(|_| round % 2 == 0);
                Model::read(&files.model(), keep).map_err(|error| error.to_string())
            })
            .collect();
        done.store(true, Ordering::Relaxed);
        found
    });
    for outcome in &found {
        match outcome {
            Ok(model) => assert!(expected.contains(&vector(model).unwrap()), "a mixture of both"),
            Err(error) => assert!(error.contains("were changed while"), "{error}"),
        }
    }
}
