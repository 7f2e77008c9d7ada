//! Tests of packed weights: when the file is written, mapped and replaced, and that answers are the same with it.

mod fuzz;
mod hostile;
mod nibbles;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::deployment::{Deployment, DeploymentOptions};
use crate::encoded::{Encoded, Output};
use crate::queue::Priority;

use sparrow_runtime::TokenWeights;

use super::weights::Keep;
use super::{Model, ModelKind, weights};
use crate::stored::{Axis, Stored};

/// A copy of a model, and a place for its packed weights.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    /// The embedded sparse model: a decoder tied to the word embeddings.
    fn tiny() -> Self {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/model-splade-tiny");
        Self::of(&package, &["model.safetensors", "tokenizer.json", "config.json", "sparrow.json"])
    }

    /// A small masked language model, whose decoder is its word embeddings, without a `sparrow.json`.
    fn small() -> Self {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/checkpoint-distilbert");
        Self::of(&fixture, &["model.safetensors", "tokenizer.json", "config.json"])
    }

    fn of(from: &Path, names: &[&str]) -> Self {
        let files = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(files.model()).unwrap();
        for name in names {
            fs::copy(from.join(name), files.model().join(name)).unwrap();
        }
        files
    }

    fn model(&self) -> PathBuf {
        self.folder.path().join("model")
    }

    fn packed(&self) -> PathBuf {
        self.folder.path().join("packed/it.weights")
    }

    fn load(&self) -> Arc<Model> {
        Model::read(&self.model(), Some(Keep::any(&self.packed()))).unwrap()
    }

    /// Loads the model; whether its packed weights were written anew.
    #[track_caller]
    fn made_anew(&self) -> bool {
        let before = written(&self.packed());
        assert!(self.load().is_mapped());
        assert_eq!(fs::read_dir(self.packed().parent().unwrap()).unwrap().count(), 1, "nothing else is left");
        before != written(&self.packed())
    }
}

/// Time of modification and inode number of a file; `None` if it does not exist.
fn written(path: &Path) -> Option<(SystemTime, u64)> {
    #[cfg(unix)]
    let number = |metadata: &fs::Metadata| std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let number = |_: &fs::Metadata| 0;
    fs::metadata(path).ok().map(|metadata| (metadata.modified().unwrap(), number(&metadata)))
}

fn encode(model: Arc<Model>) -> Vec<Encoded> {
    let options =
        DeploymentOptions { allocations: 2, threads_per_allocation: 1, queue_capacity: 64, cache_bytes: 0 };
    let deployment = Deployment::start(model, options).unwrap();
    let texts =
        ["", "old red stamps", "who collects coins and stamps, and why? a green coin ".repeat(9).as_str()]
            .map(str::to_owned);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    deployment.encode(&texts, Priority::Ingest, None, None).unwrap()
}

/// Asserts that vectors agree but for the effect of 20-bit weights, which is about as large as the rounding errors of
/// f32.
#[track_caller]
fn assert_close(found: &[Encoded], expected: &[Encoded]) {
    const SLACK: f32 = 5e-5;
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let (found, expected) = match (&found.output, &expected.output) {
            (Output::Dense(found), Output::Dense(expected)) => (found.to_vec(), expected.to_vec()),
            (Output::Sparse(found), Output::Sparse(expected)) => {
                let weights = |of: &TokenWeights| -> BTreeMap<String, f32> {
                    of.pairs().iter().map(|(token, weight)| (token.to_string(), *weight)).collect()
                };
                let (found, expected) = (weights(found), weights(expected));
                let tokens: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
                // One that is not there weighs nothing.
                let all = |of: &BTreeMap<String, f32>| {
                    tokens.iter().map(|token| of.get(*token).copied().unwrap_or(0.0)).collect::<Vec<f32>>()
                };
                (all(&found), all(&expected))
            }
            other => panic!("{other:?} are of two kinds"),
        };
        let worst = found.iter().zip(&expected).fold(0f32, |worst, (a, b)| worst.max((a - b).abs()));
        assert!(found.len() == expected.len() && worst <= SLACK, "off by {worst}");
    }
}

#[test]
fn a_mapped_model_answers_as_one_in_memory() {
    for files in [Files::tiny(), Files::small()] {
        let plain = Model::load(&files.model()).unwrap();
        assert!(plain.is_native() && !plain.is_mapped());
        let made = files.load();
        let again = files.load();
        assert!(made.is_mapped() && again.is_mapped() && again.is_native());
        for model in [&made, &again] {
            assert_eq!(model.info(), plain.info());
        }
        let inspected = Model::inspect_packed(&files.model(), &files.packed()).unwrap();
        assert_eq!(inspected, Model::inspect(&files.model()).unwrap());
        let found = encode(made);
        assert_eq!(encode(again), found);
        assert_close(&found, &encode(plain));
    }
}

/// A dense model, which has no decoder, gives the same vectors from a mapped file as from memory.
#[test]
fn a_mapped_dense_model_answers_as_one_in_memory() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/model-minilm-l6");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dense.weights");
    let load = || {
        let model = crate::load_packed(&package, &path).unwrap();
        assert!(model.is_mapped());
        encode(model)
    };
    let found = load();
    assert_eq!(load(), found);
    assert_close(&found, &encode(Model::load(&package).unwrap()));
}

/// Weights of 8 bits, with a scale for each output and each word, stay of 8 bits.
#[test]
fn weights_of_bytes_stay_bytes() {
    let found = weights(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/model-minilm-l6"));
    let axis = |stored: &Stored| match stored {
        Stored::Bytes(bytes) => Some((bytes.axis, bytes.columns, bytes.scales.len())),
        _ => None,
    };
    let columns = |stored: &Stored| match stored {
        Stored::Bytes(bytes) => bytes.across.len(),
        _ => 0,
    };
    assert_eq!(axis(&found.words), Some((Axis::Rows, 384, 30522)));
    assert_eq!(axis(&found.layers[5].inner.weights), Some((Axis::Columns, 1536, 1536)));
    assert_eq!(columns(&found.layers[5].inner.weights), 0);
    let bge = weights(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/model-bge-small-en"));
    assert_eq!(columns(&bge.layers[5].inner.weights), 384);
    // Numbers are whole ones times a scale, and the largest of each row is 127 of them.
    let Stored::Bytes(bytes) = &found.words else { panic!("no bytes") };
    let (whole, values) = (bytes.bytes().unwrap(), found.words.read().unwrap());
    for row in [0, 101, 30521] {
        let place = row * 384..(row + 1) * 384;
        assert_eq!(whole[place.clone()].iter().map(|byte| byte.unsigned_abs()).max(), Some(127));
        for (whole, value) in whole[place.clone()].iter().zip(&values[place]) {
            assert_eq!(f32::from(*whole) * bytes.scales[row], *value);
        }
    }
}

#[test]
fn a_small_model_stays_in_memory() {
    let files = Files::tiny();
    let model = crate::load_packed(&files.model(), &files.packed()).unwrap();
    assert!(model.is_native() && !model.is_mapped() && !files.packed().exists());
}

#[test]
fn files_outside_the_directory_of_a_model_are_not_read() {
    for name in ["../other/file", "/etc/hostname", "a/../../file", "./file", ""] {
        let files = Files::tiny();
        let said = format!(r#"{{"query_weights": "{name}"}}"#);
        fs::write(files.model().join("sparrow.json"), said).unwrap();
        let error = Model::inspect(&files.model()).unwrap_err().to_string();
        let expected =
            format!("[query_weights] must name a file in the directory of the model, got [{name}]");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn a_factor_of_dense_scores_is_a_number_that_lets_both_count() {
    let files = Files::tiny();
    let inspect = |said: &str| {
        fs::write(files.model().join("sparrow.json"), said).unwrap();
        Model::inspect(&files.model()).map(|info| info.dense_factor).map_err(|error| error.to_string())
    };
    assert_eq!((inspect("{}"), inspect(r#"{"dense_factor": 0.5}"#)), (Ok(1.0), Ok(0.5)));
    for wrong in ["0", "-1", "0.049", "20.1", "1e30"] {
        let error = inspect(&format!(r#"{{"dense_factor": {wrong}}}"#)).unwrap_err();
        assert!(error.contains("[dense_factor] must be between [0.05] and [20]"), "{error}");
    }
}

#[test]
fn a_misspelled_key_is_refused_by_its_name() {
    let files = Files::tiny();
    fs::write(files.model().join("sparrow.json"), r#"{"arithmetics": "float32"}"#).unwrap();
    let error = Model::inspect(&files.model()).unwrap_err().to_string();
    assert!(error.contains("unknown field `arithmetics`"), "{error}");
}

#[test]
fn weights_are_packed_once_and_again_when_a_file_of_the_model_changes() {
    let files = Files::small();
    assert!(files.made_anew());
    assert!(!files.made_anew());
    let weights = files.model().join("model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    let modified = fs::metadata(&weights).unwrap().modified().unwrap();
    let before = files.load().info().fingerprint.clone();
    // A weight changes, neither the length nor the time of modification does: the system's own time tells.
    std::thread::sleep(Duration::from_millis(20));
    // The lowest bit of the last weight.
    let last = bytes.len() - 4;
    bytes[last] ^= 1;
    fs::write(&weights, &bytes).unwrap();
    fs::File::options().write(true).open(&weights).unwrap().set_modified(modified).unwrap();
    assert!(files.made_anew());
    assert_ne!(files.load().info().fingerprint, before);
    // Another file beside the checkpoint counts as well.
    fs::write(files.model().join("sparrow.json"), r#"{"kind": "sparse_mlm", "max_tokens": 9}"#).unwrap();
    assert!(files.made_anew());
    assert_eq!(files.load().info().max_tokens, 9);
    assert!(!files.made_anew());
}

#[test]
fn a_damaged_file_is_made_anew() {
    let files = Files::small();
    assert!(files.made_anew());
    let whole = fs::read(files.packed()).unwrap();
    let expected = encode(files.load());
    // Every part of the file: magic, format, checksums, places, sections, index; and every length.
    let places = (0..64).chain((64..whole.len()).step_by(97)).chain(whole.len() - 64..whole.len());
    let padding = |at: usize| (36..64).contains(&at);
    let inside = fs::read(files.packed()).unwrap();
    for at in places {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(files.packed(), &bytes).unwrap();
        let opened = super::weights::can_open(&files.model(), &files.packed());
        // What lies between sections is nobody's.
        assert!(!opened || padding(at) || inside[at] == 0, "byte {at}");
    }
    for length in (0..whole.len()).step_by(501).chain([whole.len() - 1]) {
        fs::write(files.packed(), &whole[..length]).unwrap();
        assert!(!super::weights::can_open(&files.model(), &files.packed()), "length {length}");
    }
    fs::write(files.packed(), [&whole[..], b"more"].concat()).unwrap();
    assert!(files.made_anew());
    assert_eq!(fs::read(files.packed()).unwrap().len(), whole.len());
    assert_eq!(encode(files.load()), expected);
}

#[test]
fn without_a_place_for_the_file_the_weights_are_in_memory() {
    let files = Files::small();
    let expected = encode(files.load());
    fs::remove_dir_all(files.folder.path().join("packed")).unwrap();
    // A file where the folder should be: as a read-only folder, for root as well. Then a folder where the file should be.
    fs::write(files.folder.path().join("packed"), "").unwrap();
    let model = files.load();
    assert!(model.is_native() && !model.is_mapped());
    assert_eq!(encode(model), expected);
    fs::remove_file(files.folder.path().join("packed")).unwrap();
    fs::create_dir_all(files.packed().join("inside")).unwrap();
    assert!(!files.load().is_mapped());
    assert_eq!(fs::read_dir(files.packed().parent().unwrap()).unwrap().count(), 1, "no half-written file");
}

/// Packed weights hold what other architectures add: gates, attention windows and a second token type.
#[test]
fn all_architectures_are_packed() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folder = tempfile::tempdir().unwrap();
    let text = "old blue coin. new red stamps";
    for name in ["checkpoint-modernbert", "checkpoint-modernbert-splade", "cross-bert", "cross-modernbert"] {
        let (model, packed) = (fixtures.join(name), folder.path().join(name));
        let numbers = |model: Arc<Model>| -> Vec<f32> {
            let kind = model.info().kind;
            let options = DeploymentOptions {
                allocations: 1,
                threads_per_allocation: 1,
                queue_capacity: 8,
                cache_bytes: 0,
            };
            let deployment = Deployment::start(model, options).unwrap();
            if kind == ModelKind::CrossEncoder {
                return vec![deployment.score("red", &[text], None, None).unwrap()[0].score];
            }
            match &deployment.encode(&[text], Priority::Ingest, None, None).unwrap()[0].output {
                Output::Dense(vector) => vector.to_vec(),
                Output::Sparse(weights) => weights.pairs().iter().map(|(_, weight)| *weight).collect(),
                Output::Hybrid { .. } => panic!("it is no head"),
            }
        };
        let plain = numbers(Model::load(&model).unwrap());
        for _ in 0..2 {
            let model = Model::read(&model, Some(Keep::any(&packed))).unwrap();
            assert!(model.is_mapped(), "{name}");
            let found = numbers(model);
            assert_eq!(found.len(), plain.len(), "{name}");
            for (found, plain) in found.iter().zip(&plain) {
                assert!((found - plain).abs() < 1e-4 * (1.0 + plain.abs()), "{name}: {found} {plain}");
            }
        }
    }
}

/// Packed weights that cannot be written, as on a full disk, leave no file behind. A file that is open for reading takes nothing.
#[test]
fn a_disk_that_takes_nothing_keeps_no_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it.weights");
    let mut packer = crate::packed::Packer::new(&path).unwrap();
    packer.write_to(sparrow_file_system::File::open(std::env::current_exe().unwrap()).unwrap());
    assert!(packer.put("a section", &[1.5f32; 100]).is_err());
    drop(packer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn many_may_make_it_at_once() {
    let files = Files::small();
    let expected = encode(files.load());
    fs::remove_file(files.packed()).unwrap();
    for _ in 0..5 {
        std::thread::scope(|scope| {
            let made: Vec<_> = (0..4).map(|_| scope.spawn(|| files.load())).collect();
            for model in made {
                assert_eq!(encode(model.join().unwrap()), expected);
            }
        });
        assert!(!files.made_anew());
        fs::remove_file(files.packed()).unwrap();
    }
}

/// A model that has mapped its file works on when the file is replaced or removed.
#[cfg(unix)]
#[test]
fn a_mapped_file_may_be_removed() {
    let files = Files::small();
    let model = files.load();
    let expected = encode(Arc::clone(&model));
    fs::remove_file(files.packed()).unwrap();
    assert!(files.made_anew());
    assert_eq!(encode(model), expected);
}
