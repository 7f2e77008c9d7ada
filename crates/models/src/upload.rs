//! Uploaded models: a graph that comes in parts, a vocabulary, and the model directory that is made of both.
//!
//! ```text
//! models/<id>/parts/00000   parts of the graph, until all are there
//! models/<id>/vocabulary.json
//! models/<id>/model.onnx    and tokenizer.json, config.json, sparrow.json: a model directory like any other
//! ```
//! Each file is durable before its request is answered. The store says whether a model is complete; what a crash leaves
//! between the two is completed when the server starts.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sparrow_encoder::{Model, ModelInfo};
use sparrow_file_system::{self as fs, File};
use sparrow_write_ahead_log::{StorageError, durable};

use super::config::ModelConfig;
use sparrow_request::error::EngineError;
use sparrow_wire::shape::{Shape, list, num, object, text};

/// Largest graph in bytes: the limit of protobuf.
pub(super) const MOST_BYTES: u64 = (1 << 31) - 1;
/// Most parts of a graph.
pub(super) const MOST_PARTS: u64 = 10_000;
/// Largest vocabulary, in entries.
const MOST_ENTRIES: usize = 1_000_000;
/// The first bytes of a PyTorch archive, which is a ZIP file.
const ZIP: &[u8] = b"PK\x03\x04";

/// The folder of one uploaded model.
#[derive(Debug, Clone)]
pub(super) struct Folder(pub PathBuf);

impl Folder {
    fn parts(&self) -> PathBuf {
        self.0.join("parts")
    }

    fn part(&self, number: u64) -> PathBuf {
        self.parts().join(format!("{number:05}"))
    }

    fn vocabulary(&self) -> PathBuf {
        self.0.join("vocabulary.json")
    }

    /// Stores a part of the graph durably. Sending the same part again is no error, as a client may repeat a request that was not answered.
    ///
    /// # Errors
    /// Status 400 if another part has this number, the part exceeds the announced length, or it is not ONNX.
    pub fn put_part(&self, id: &str, number: u64, total: u64, bytes: &[u8]) -> Result<(), EngineError> {
        if number == 0 && bytes.starts_with(ZIP) {
            return Err(EngineError::illegal_argument(format!(
                "the definition of model [{id}] is a PyTorch TorchScript archive, which does not run here; upload the \
                 ONNX graph of the model"
            )));
        }
        let path = self.part(number);
        if let Ok(stored) = fs::read(&path) {
            if stored == bytes {
                return Ok(());
            }
            return Err(already_stored(id, number));
        }
        let stored: u64 = self.stored_parts()?.iter().map(|(_, length)| length).sum();
        if stored + bytes.len() as u64 > total {
            return Err(EngineError::illegal_argument(format!(
                "The parts of the definition of model [{id}] are longer than [total_definition_length], [{total}]"
            )));
        }
        durable::create_dir_all(&self.0)?;
        durable::create_dir_all(&self.parts())?;
        durable::atomic_write(&path, bytes)?;
        Ok(())
    }

    /// Stores the vocabulary durably.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put_vocabulary(&self, vocabulary: &[String]) -> Result<(), EngineError> {
        durable::create_dir_all(&self.0)?;
        durable::atomic_write(&self.vocabulary(), json!(vocabulary).to_string().as_bytes())?;
        Ok(())
    }

    /// Whether the vocabulary is there.
    pub fn has_vocabulary(&self) -> bool {
        self.vocabulary().is_file()
    }

    /// Removes the part of the graph, or the vocabulary, that the last request stored, as no model can be built with it.
    pub fn take_back(&self, part: Option<u64>) {
        let path = part.map_or_else(|| self.vocabulary(), |number| self.part(number));
        for file in [path, self.0.join("model.onnx")] {
            if let Err(error) = durable::remove_file(&file) {
                tracing::error!(%error, "a useless file of an upload stays");
            }
        }
    }

    /// Numbers of the stored parts, with their lengths in bytes.
    fn stored_parts(&self) -> Result<Vec<(u64, u64)>, StorageError> {
        let names = durable::list_dir(&self.parts())?;
        Ok(names
            .iter()
            .filter_map(|name| {
                let length = fs::metadata(self.parts().join(name)).ok()?.len();
                Some((name.parse().ok()?, length))
            })
            .collect())
    }

    /// Whether all parts and the vocabulary are there.
    pub fn is_whole(&self, total_parts: u64) -> bool {
        self.has_vocabulary() && self.stored_parts().is_ok_and(|parts| parts.len() as u64 == total_parts)
    }

    /// Makes the model directory, and the packed weights of a large model.
    ///
    /// # Errors
    /// Status 400 with the reason why no model can be built from the upload.
    pub fn assemble(
        &self,
        id: &str,
        config: &ModelConfig,
        packed: &Path,
        total_length: u64,
        total_parts: u64,
    ) -> Result<ModelInfo, EngineError> {
        let onnx = self.0.join("model.onnx");
        let length = self.join_parts(&onnx, total_parts)?;
        let refuse = |reason: String| {
            Err(EngineError::illegal_argument(format!(
                "no model can be made of the definition of [{id}]: {reason}"
            )))
        };
        if length != total_length {
            return refuse(format!(
                "its parts have [{length}] bytes together, [total_definition_length] is [{total_length}]"
            ));
        }
        match Model::takes_other_files(&onnx) {
            Ok(false) => {}
            Ok(true) => return refuse("its weights are in other files".into()),
            Err(error) => return refuse(without_path(&error)),
        }
        let vocabulary: Vec<String> = fs::read(self.vocabulary())
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .ok_or_else(|| EngineError::internal("a stored vocabulary cannot be read"))?;
        let (lowercase, special, max_tokens) = config.tokenization();
        let tokenizer = tokenizer(&vocabulary, lowercase, special);
        let (task, dims) = config.task().unwrap_or_default();
        let is_sparse = task == "text_expansion";
        let mut description = json!({
            "kind": if is_sparse { "sparse_mlm" } else { "dense" },
            "max_tokens": max_tokens,
        });
        if let Some(dims) = dims {
            description["dims"] = dims.into();
        }
        let architecture = if is_sparse { "BertForMaskedLM" } else { "BertModel" };
        let facts = json!({"architectures": [architecture], "vocab_size": vocabulary.len()});
        for (name, value) in
            [("tokenizer.json", &tokenizer), ("sparrow.json", &description), ("config.json", &facts)]
        {
            durable::atomic_write(&self.0.join(name), value.to_string().as_bytes())?;
        }
        // Loading finds what a look at the outputs does not.
        match sparrow_encoder::load_packed(&self.0, packed) {
            Ok(model) => Ok(model.info().clone()),
            Err(error) => refuse(without_path(&error)),
        }
    }

    /// Joins all parts into one file, durably; returns its length in bytes.
    fn join_parts(&self, target: &Path, total_parts: u64) -> Result<u64, StorageError> {
        let written: std::io::Result<u64> = (|| {
            let mut file = File::create(target)?;
            let mut length = 0;
            for number in 0..total_parts {
                length += std::io::copy(&mut File::open(self.part(number))?, &mut file)?;
            }
            file.flush()?;
            file.sync_all()?;
            Ok(length)
        })();
        let length = written.map_err(StorageError::io("write", target))?;
        durable::sync_dir(&self.0)?;
        Ok(length)
    }

    /// Length and CRC-32 of each file of the complete model.
    pub fn sums(&self) -> BTreeMap<String, (u64, u32)> {
        let names = ["model.onnx", "tokenizer.json", "sparrow.json", "config.json", "vocabulary.json"];
        names.iter().filter_map(|name| Some(((*name).to_owned(), sum(&self.0.join(name)).ok()?))).collect()
    }

    /// Names of the files whose length or CRC-32 differs from the given one, with a description of the difference.
    pub fn damages(&self, files: &BTreeMap<String, (u64, u32)>) -> Vec<(String, String)> {
        files
            .iter()
            .filter_map(|(name, (bytes, crc32))| {
                let reason = match sum(&self.0.join(name)) {
                    Ok((found, _)) if found != *bytes => format!("{found} bytes instead of {bytes}"),
                    Ok((_, found)) if found != *crc32 => format!("crc32 {found:08x}, expected {crc32:08x}"),
                    Ok(_) => return None,
                    Err(error) => error.to_string(),
                };
                Some((name.clone(), reason))
            })
            .collect()
    }

    /// Removes the parts of a complete model; a failure is only logged.
    pub fn drop_parts(&self) {
        if let Err(error) = durable::remove_dir_all(&self.parts()) {
            tracing::error!(%error, "the parts of an uploaded model stay");
        }
    }

    /// Removes the folder of the upload.
    ///
    /// # Errors
    /// If the folder cannot be removed.
    pub fn remove(&self) -> Result<(), StorageError> {
        durable::remove_dir_all(&self.0)
    }
}

/// Length in bytes and CRC-32 of a file.
fn sum(path: &Path) -> std::io::Result<(u64, u32)> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let (mut bytes, mut hasher) = (0, crc32fast::Hasher::new());
    loop {
        match std::io::Read::read(&mut file, &mut buffer) {
            Ok(0) => return Ok((bytes, hasher.finalize())),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                bytes += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The error for a part whose number is already taken by a different one.
pub(super) fn already_stored(id: &str, number: u64) -> EngineError {
    EngineError::api(
        400,
        sparrow_request::error::Exception::new(
            "resource_already_exists_exception",
            format!("Trained machine learning model part [{id}][{number}] already exists"),
        ),
    )
}

/// The message of an encoder's error, without paths of this machine.
fn without_path(error: &sparrow_encoder::EncoderError) -> String {
    use sparrow_encoder::EncoderError as E;
    match error {
        E::ModelNotReadable { reason, path } | E::Unsupported { reason, path } => {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            format!("{name}: {reason}")
        }
        other => other.to_string(),
    }
}

/// What the body of a vocabulary request holds.
pub(super) fn vocabulary_shape() -> Shape {
    object([("vocabulary", list(text())), ("merges", list(text())), ("scores", list(num()))])
        .needs(&["vocabulary"])
}

/// Parses the body of a vocabulary request.
///
/// # Errors
/// Status 400 that names what is wrong.
pub(super) fn parse_vocabulary(
    config: &ModelConfig,
    body: &Map<String, Value>,
) -> Result<Vec<String>, EngineError> {
    const PARSER: &str = "put_trained_model_vocabulary";
    for name in body.keys() {
        match name.as_str() {
            "vocabulary" => {}
            "merges" | "scores" if body[name].as_array().is_none_or(|list| !list.is_empty()) => {
                return Err(EngineError::illegal_argument(format!(
                    "[{name}] belongs to a tokenizer that is not supported for uploaded models, only [bert]"
                )));
            }
            "merges" | "scores" => {}
            _ => {
                let unknown = vocabulary_shape().unknown(name);
                return Err(super::config::parser_error(format!("[{PARSER}] {unknown}")));
            }
        }
    }
    let Some(list) = body.get("vocabulary").and_then(Value::as_array) else {
        return Err(EngineError::invalid("[vocabulary] must not be empty"));
    };
    if list.is_empty() {
        return Err(EngineError::invalid("[vocabulary] must not be empty"));
    }
    if list.len() > MOST_ENTRIES {
        return Err(EngineError::invalid(format!(
            "[vocabulary] has [{}] entries, at most [{MOST_ENTRIES}] are supported",
            list.len()
        )));
    }
    let mut entries = Vec::with_capacity(list.len());
    let mut seen = rustc_hash::FxHashSet::default();
    for value in list {
        let Some(entry) = value.as_str() else {
            return Err(super::config::parser_error(format!(
                "[{PARSER}] failed to parse field [vocabulary]"
            )));
        };
        if !seen.insert(entry) {
            return Err(EngineError::invalid(format!(
                "[vocabulary] must not contain duplicates; found [{entry}]"
            )));
        }
        entries.push(entry.to_owned());
    }
    let (_, special, _) = config.tokenization();
    let needed: &[&str] = if special { &["[UNK]", "[CLS]", "[SEP]"] } else { &["[UNK]"] };
    match needed.iter().find(|token| !seen.contains(**token)) {
        Some(missing) => {
            Err(EngineError::invalid(format!("[vocabulary] does not contain the special token [{missing}]")))
        }
        None => Ok(entries),
    }
}

/// `tokenizer.json` of a BERT vocabulary.
fn tokenizer(vocabulary: &[String], lowercase: bool, special: bool) -> Value {
    const SPECIAL: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
    let id_of = |token: &str| vocabulary.iter().position(|entry| entry == token);
    let added: Vec<Value> = SPECIAL
        .iter()
        .filter_map(|token| {
            Some(json!({
                "id": id_of(token)?, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true,
            }))
        })
        .collect();
    let template = match (id_of("[CLS]"), id_of("[SEP]")) {
        (Some(cls), Some(sep)) if special => json!({
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {
                "[CLS]": {"id": "[CLS]", "ids": [cls], "tokens": ["[CLS]"]},
                "[SEP]": {"id": "[SEP]", "ids": [sep], "tokens": ["[SEP]"]},
            },
        }),
        _ => Value::Null,
    };
    let entries: Map<String, Value> =
        vocabulary.iter().enumerate().map(|(id, entry)| (entry.clone(), id.into())).collect();
    json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": added,
        "normalizer": {
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": template,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": entries,
        },
    })
}
