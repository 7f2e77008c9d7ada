//! Damaged files of packed weights: they are refused or used, without a panic. Most have true checksums, so that what is behind
//! those is reached, and a model that is loaded from one encodes a text.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sparrow_fuzzing::{Campaign, Random, mutated, mutated_json};

use super::super::Model;
use super::super::weights::{Keep, can_open};
use crate::deployment::{Deployment, DeploymentOptions};
use crate::queue::Priority;

/// Length of the header in bytes; the sections may start there.
const HEADER: usize = 40;
/// Placeholder in the test inputs for the identity of the model's files, which differs from machine to machine.
const IDENTITY: &str = "\"@identity\"";

/// A small model, its packed weights, and their parts.
struct Fixture {
    folder: tempfile::TempDir,
    file: Vec<u8>,
    sections: Vec<u8>,
    /// The file's index without its member `identity`.
    index: Value,
    identity: String,
}

impl Fixture {
    fn new() -> Self {
        Self::of("checkpoint-distilbert", false)
    }

    /// The packed weights of a model of the fixtures, in 20 or in 8 bits, which its files do not say.
    fn of(name: &str, in_bytes: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("model");
        fs::create_dir(&model).unwrap();
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
        for file in
            fs::read_dir(fixture).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
        {
            fs::copy(&file, model.join(file.file_name().unwrap())).unwrap();
        }
        let path = folder.path().join("it.weights");
        let keep = Keep::any(&path);
        let keep = if in_bytes { keep.in_bytes() } else { keep };
        assert!(Model::read(&model, Some(keep)).unwrap().is_mapped());
        let file = fs::read(&path).unwrap();
        let start = u64::from_le_bytes(file[16..24].try_into().unwrap()) as usize;
        let mut index: Value = serde_json::from_slice(&file[start..]).unwrap();
        let identity = index.as_object_mut().unwrap().remove("identity").unwrap().to_string();
        let sections = file[HEADER..start].to_vec();
        Self { folder, file, sections, index, identity }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("it.weights")
    }

    /// Writes a file in the place of the packed weights; if it is accepted, encodes a text with it. Whether it was accepted.
    fn try_file(&self, bytes: &[u8]) -> bool {
        fs::write(self.path(), bytes).unwrap();
        let model = self.folder.path().join("model");
        if !can_open(&model, &self.path()) {
            return false;
        }
        let model = Model::read(&model, Some(Keep::any(&self.path()))).unwrap();
        let options = DeploymentOptions {
            allocations: 1,
            threads_per_allocation: 1,
            queue_capacity: 4,
            cache_bytes: 0,
        };
        let deployment = Deployment::start(model, options).unwrap();
        // Other numbers are another model: what it answers is no matter.
        if let Err(error) = deployment.encode(&["old red stamps"], Priority::Ingest, None, None) {
            let text = error.to_string();
            assert!(!text.contains("panic"), "{text}");
        }
        true
    }

    /// The bytes of a file with the given sections and index and with valid checksums.
    fn file_of(&self, sections: &[u8], index: &str) -> Vec<u8> {
        let mut index = index.replace(IDENTITY, &self.identity);
        if let Ok(mut value) = serde_json::from_str::<Value>(&index) {
            let sections_of_index = value.get_mut("sections").and_then(Value::as_object_mut);
            let all = sections_of_index.into_iter().flat_map(|all| all.values_mut());
            for section in all.filter(|section| section.is_object()) {
                let number = |name: &str| section[name].as_u64().and_then(|it| usize::try_from(it).ok());
                let (Some(start), Some(length)) = (number("start"), number("length")) else { continue };
                let part =
                    start.checked_sub(HEADER).and_then(|from| sections.get(from..from.checked_add(length)?));
                if let Some(part) = part {
                    section["checksum"] = json!(crc32fast::hash(part));
                }
            }
            index = value.to_string();
        }
        let mut places = ((HEADER + sections.len()) as u64).to_le_bytes().to_vec();
        places.extend((index.len() as u64).to_le_bytes());
        places.extend(crc32fast::hash(index.as_bytes()).to_le_bytes());
        places.resize(HEADER - 16, 0);
        let beginning = [&self.file[..12], &crc32fast::hash(&places).to_le_bytes(), &places].concat();
        [&beginning, sections, index.as_bytes()].concat()
    }
}

/// An input that holds on any machine: the length of the sections, the sections, the index.
fn input(sections: &[u8], index: &[u8]) -> Vec<u8> {
    [&(sections.len() as u32).to_le_bytes(), sections, index].concat()
}

/// Splits a test input made by [`input`] into sections and index; `None` if it is too short or not UTF-8.
fn parts(input: &[u8]) -> Option<(&[u8], &str)> {
    let (length, rest) = input.split_first_chunk()?;
    let (sections, index) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    Some((sections, std::str::from_utf8(index).ok()?))
}

fn with_identity(mut index: Value) -> String {
    index["identity"] = json!("@identity");
    index.to_string()
}

#[test]
fn a_file_that_is_put_together_again_is_taken() {
    let fixture = Fixture::new();
    let file = fixture.file_of(&fixture.sections, &with_identity(fixture.index.clone()));
    assert!(fixture.try_file(&file), "else nothing behind the checksums is reached");
    assert!(!fixture.try_file(&fixture.file[..fixture.file.len() - 1]));
}

/// All paths of numbers and truths in a value.
fn leaves(value: &Value, path: &str) -> Vec<String> {
    let of = |key: String, value: &Value| leaves(value, &format!("{path}/{key}"));
    match value {
        Value::Object(all) => all.iter().flat_map(|(key, value)| of(key.clone(), value)).collect(),
        Value::Array(all) => {
            all.iter().enumerate().flat_map(|(at, value)| of(at.to_string(), value)).collect()
        }
        _ => vec![path.to_owned()],
    }
}

/// Files with true checksums that were made for another shape than that of the model's own files, which say it as well.
#[test]
fn facts_that_the_files_of_the_model_contradict_are_not_believed() {
    let mut tried = 0;
    let models =
        ["checkpoint-bert", "checkpoint-splade", "checkpoint-modernbert", "checkpoint-modernbert-splade"];
    for (name, in_bytes) in models.iter().flat_map(|name| [(name, false), (name, true)]) {
        let fixture = Fixture::of(name, in_bytes);
        let forged = |path: &str, value: Value| {
            let mut index = fixture.index.clone();
            *index.pointer_mut(path).unwrap() = value;
            fixture.try_file(&fixture.file_of(&fixture.sections, &with_identity(index)))
        };
        for part in ["/facts/bert", "/facts/head"] {
            for path in leaves(fixture.index.pointer(part).unwrap(), part) {
                let values = match fixture.index.pointer(&path).unwrap() {
                    Value::Bool(it) => vec![json!(!it), Value::Null],
                    Value::Number(it) => {
                        let it = it.as_u64().unwrap();
                        let near = [it.wrapping_sub(1), it + 1, 2 * it + 2, it / 2 + it % 2 * 9];
                        near.into_iter()
                            .chain([1 << 50, u64::MAX])
                            .filter(|other| *other != it)
                            .map(Value::from)
                            .collect()
                    }
                    // Of another kind of model.
                    Value::Null => vec![
                        fixture.index["facts"]["bert"]["width"].clone(),
                        json!({"terms": 13, "dims": 32}),
                    ],
                    other => panic!("{path}: {other}"),
                };
                for value in values {
                    assert!(!forged(&path, value.clone()), "{name} in bytes {in_bytes}: {path} as {value}");
                    tried += 1;
                }
            }
        }
        // Numbers of sections that no packing has written, each in the place of one of them.
        let sections = fixture.index["sections"].as_object().unwrap();
        for (section, odd) in sections.iter().flat_map(|(name, place)| {
            let numbers =
                name.ends_with(".factors") || name.starts_with("layer.") && name.ends_with(".scales");
            let odds = [f32::NAN, f32::INFINITY, 0.0, -1.0, 1e-40]
                .iter()
                .filter(move |odd| numbers && (name.ends_with(".factors") || !odd.is_finite()));
            odds.map(move |odd| (place, *odd))
        }) {
            let mut changed = fixture.sections.clone();
            let start = section["start"].as_u64().unwrap() as usize - HEADER;
            changed[start + 4..start + 8].copy_from_slice(&odd.to_le_bytes());
            assert!(
                !fixture.try_file(&fixture.file_of(&changed, &with_identity(fixture.index.clone()))),
                "{name}: {odd}"
            );
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn damaged_packed_weights() {
    let fixture = Fixture::new();
    let parts_of_index = [fixture.index.clone()];
    let sections = [fixture.sections.clone()];
    let whole = with_identity(fixture.index.clone());
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "packed-weights").run(
        |random: &mut Random| {
            if random.once_in(3) {
                return input(&mutated(random, &sections, &[]), whole.as_bytes());
            }
            let index = mutated_json(random, &parts_of_index);
            let text = String::from_utf8_lossy(&index);
            let index = match text.strip_prefix('{') {
                Some(rest) => format!("{{\"identity\":{IDENTITY},{rest}"),
                None => text.into_owned(),
            };
            input(&sections[0], index.as_bytes())
        },
        |bytes| {
            if let Some((sections, index)) = parts(bytes) {
                fixture.try_file(&fixture.file_of(sections, index));
            }
        },
    );
    let files = [fixture.file.clone()];
    Campaign::new(env!("CARGO_MANIFEST_DIR"), "packed-weights-bytes").run(
        |random: &mut Random| mutated(random, &files, &[b"SPRWPACK", b"\"start\":", b"\"length\":"]),
        |bytes| {
            fixture.try_file(bytes);
        },
    );
}
