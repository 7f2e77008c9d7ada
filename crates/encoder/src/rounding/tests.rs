//! Which models are kept in 8 bits, and that the file holds what was chosen.

use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// A model, and a place for its packed weights.
struct Files(tempfile::TempDir);

impl Files {
    fn model(&self) -> PathBuf {
        self.0.path().join("model")
    }

    fn packed(&self) -> PathBuf {
        self.0.path().join("packed/it.weights")
    }
}

/// A copy of a checkpoint of the fixtures, with what its `sparrow.json` says.
fn checkpoint(name: &str, said: &str) -> Files {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let files = Files(tempfile::tempdir().unwrap());
    for entry in walk(&fixture) {
        let target = files.model().join(entry.strip_prefix(&fixture).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&entry, target).unwrap();
    }
    fs::write(files.model().join("sparrow.json"), said).unwrap();
    files
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Loads a model of any size as a large one is loaded; whether it is computed in 8 bits.
#[track_caller]
fn is_int8(files: &Files) -> bool {
    let load = || load(&files.model(), Keep::any(&files.packed())).unwrap();
    let made = load();
    assert!(made.is_mapped() && made.is_native());
    let names: Vec<_> = fs::read_dir(files.packed().parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing else is left: {names:?}");
    let again = load();
    assert_eq!(Model::inspect_packed(&files.model(), &files.packed()).unwrap(), *again.info());
    assert_eq!(made.info(), again.info());
    assert_eq!(encode(&made).unwrap(), encode(&again).unwrap(), "the file holds what was chosen");
    made.info().recognised.int8
}

#[test]
fn a_large_model_is_kept_in_8_bits_if_that_changes_little() {
    for name in ["checkpoint-bert", "checkpoint-splade", "checkpoint-modernbert"] {
        assert!(is_int8(&checkpoint(name, "{}")), "{name}");
    }
    // The scores of this cross-encoder, whose weights are random, spread so little that roundings count.
    assert!(!is_int8(&checkpoint("cross-bert", "{}")));
    // The files decide where they say so.
    assert!(!is_int8(&checkpoint("checkpoint-bert", r#"{"arithmetic": "float32"}"#)));
    assert!(is_int8(&checkpoint("checkpoint-bert", r#"{"arithmetic": "int8"}"#)));
}

/// A score is a dot product: that a vector became longer, which no cosine shows, counts.
#[test]
fn sparse_vectors_are_compared_by_their_dot_products() {
    let vector = |factor: f32| Vector::Sparse([(1, factor), (5, 2.0 * factor)].into());
    let floats = [vector(1.0), vector(2.0)];
    assert_eq!(errors_of_products(&floats, &floats), [0.0, 0.0]);
    let longer = [vector(1.1), vector(2.2)];
    assert!(floats.iter().zip(&longer).all(|(one, other)| (cosine(one, other) - 1.0).abs() < 1e-6));
    for error in errors_of_products(&floats, &longer) {
        assert!((error - 0.21).abs() < 1e-6, "{error}");
    }
    let empty = [Vector::Sparse([].into()), Vector::Sparse([].into())];
    assert!(errors_of_products(&empty, &empty).iter().all(|error| error.is_nan()));
}

#[test]
fn a_damaged_file_is_made_anew_as_it_was_chosen() {
    let files = checkpoint("checkpoint-bert", "{}");
    assert!(is_int8(&files));
    let mut bytes = fs::read(files.packed()).unwrap();
    // The first section begins after the header and a gap.
    bytes[64] ^= 1;
    fs::write(files.packed(), &bytes).unwrap();
    assert!(is_int8(&files));
    // Without a valid index, it is chosen again.
    fs::write(files.packed(), b"nothing").unwrap();
    assert!(is_int8(&files));
}

/// Where one weight of each output is far larger than the others, these are lost in 8 bits.
#[test]
fn a_model_that_8_bits_would_spoil_stays_in_floats() {
    let files = checkpoint("checkpoint-bert", "{}");
    let path = files.model().join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..start]).unwrap();
    for (name, tensor) in header.as_object().unwrap() {
        if !name.ends_with("dense.weight") {
            continue;
        }
        assert_eq!(tensor["dtype"], "F16");
        let place = |at: usize| tensor["data_offsets"][at].as_u64().unwrap() as usize;
        let row = 2 * tensor["shape"][1].as_u64().unwrap() as usize;
        for first in (start + place(0)..start + place(1)).step_by(row) {
            // 200 in half precision.
            bytes[first..first + 2].copy_from_slice(&0x5A40u16.to_le_bytes());
        }
    }
    fs::write(&path, bytes).unwrap();
    assert!(!is_int8(&files));
    // Someone may insist.
    fs::write(files.model().join("sparrow.json"), r#"{"arithmetic": "int8"}"#).unwrap();
    assert!(is_int8(&files));
}
