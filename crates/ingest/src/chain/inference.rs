//! `inference`: runs a model over the texts of a batch of documents.

use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};
use sparrow_encoder::Encoded;
use sparrow_inference::{ModelError, Purpose, TextEncoder, encode_documents, vector_to_json};

use crate::batch::IngestSummary;
use crate::config::Config;
use crate::document::{Document, as_text};
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, ignore_missing, map, object, open, several, target, text};

/// Most texts of one call to the encoder when it is not paced: a long bulk request fills only part of the queue, and
/// a full queue fails only the documents that were being encoded.
const CHUNK: usize = 128;

/// The models of a run, and how they are asked.
#[derive(Clone, Copy)]
pub(crate) struct ModelAccess<'a> {
    pub encoder: &'a dyn TextEncoder,
    pub purpose: Purpose,
    pub cancel: Option<&'a AtomicBool>,
}

/// Runs a model; see the two forms in [`Form`].
#[derive(Debug)]
pub(crate) struct Inference {
    model_id: String,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// `input_output`: each pair reads a text and writes its vector; the document gets a top-level `model_id`.
    Pairs { pairs: Vec<Pair>, ignore_missing: bool },
    /// `target_field` with `field_map`: the model's input field is read, an object with the result is written.
    Target { target: String, input: String, results_field: String },
}

#[derive(Debug)]
struct Pair {
    input: String,
    output: String,
}

/// A text to encode and where its vector goes.
struct Job {
    /// Position in the list of documents.
    document: usize,
    /// Index of the pair in [`Form::Pairs`].
    pair: usize,
    text: String,
}

pub(crate) fn inference_shape() -> Shape {
    let pair = object([("input_field", text()), ("output_field", text())]);
    object([
        ("model_id", text().about("model, deployment or endpoint")),
        ("input_output", several(pair.needs(&["input_field", "output_field"]))),
        target(),
        ("field_map", map(text())),
        ("field_mappings", map(text()).about("an older name of `field_map`")),
        ("inference_config", open()),
        ignore_missing(),
    ])
    .needs(&["model_id"])
}

impl Inference {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let model_id = config.text("model_id")?;
        let inference_config = config.optional_object("inference_config")?;
        let results_field = match inference_config {
            None => None,
            Some(map) => results_field(config, map)?,
        };
        let form = match config.optional("input_output") {
            Some(given) => {
                let pairs = pairs(config, given)?;
                if config.has("target_field") {
                    return Err(config.unusable(
                        "target_field",
                        "option is incompatible with [input_output]. Use the [output_field] option to specify where \
                         to write the inference results to.",
                    ));
                }
                if config.has("field_map") {
                    return Err(config.unusable(
                        "field_map",
                        "option is incompatible with [input_output]. Use the [input_field] option to specify what to \
                         read.",
                    ));
                }
                if results_field.is_some() {
                    return Err(config.unusable(
                        "inference_config",
                        "The [inference_config.results_field] setting is incompatible with using [input_output]. \
                         Prefer to use the [input_output.output_field] option to specify where to write the \
                         inference results to.",
                    ));
                }
                Form::Pairs { pairs, ignore_missing: config.boolean("ignore_missing", false)? }
            }
            None => {
                let default = config
                    .tag()
                    .map_or_else(|| "ml.inference".to_owned(), |tag| format!("ml.inference.{tag}"));
                let target = config.target_field(&default)?;
                let map = match config.optional_object("field_map")? {
                    Some(map) => map,
                    None => config.optional_object("field_mappings")?.unwrap_or_default(),
                };
                let mut input = INPUT_FIELD.to_owned();
                for (from, to) in map {
                    match to {
                        Value::String(to) if to == INPUT_FIELD => input = from,
                        Value::String(_) => {}
                        other => return Err(config.wrong_type("field_map", "string", &other)),
                    }
                }
                Form::Target {
                    target,
                    input,
                    results_field: results_field.unwrap_or_else(|| "predicted_value".into()),
                }
            }
        };
        Ok(Self { model_id, form })
    }

    /// Id of the model that runs.
    pub fn model_id(&self) -> &str {
        &self.model_id
    }

    /// The field that is read to fill another one.
    pub fn input_of(&self, field: &str) -> Option<&str> {
        match &self.form {
            Form::Pairs { pairs, .. } => {
                pairs.iter().find(|pair| pair.output == field).map(|pair| pair.input.as_str())
            }
            Form::Target { target, input, results_field } => {
                let output = field.strip_prefix(target.as_str()).and_then(|rest| rest.strip_prefix('.'));
                (output == Some(results_field)).then_some(input.as_str())
            }
        }
    }

    /// Encodes the texts of all documents and writes the vectors. Documents are given with their positions in the
    /// batch; the answer names those that failed.
    pub fn run(
        &self,
        models: ModelAccess<'_>,
        documents: &mut [(usize, &mut Document)],
        summary: &mut IngestSummary,
    ) -> Vec<(usize, ProcessorError)> {
        let mut failures: Vec<Option<ProcessorError>> = documents.iter().map(|_| None).collect();
        let jobs = self.collect(documents, &mut failures);
        for chunk in chunks(&jobs, models.purpose) {
            let texts: Vec<(usize, &str)> =
                chunk.iter().map(|job| (job.document, job.text.as_str())).collect();
            let (encoded, error) =
                encode_documents(models.encoder, &self.model_id, &texts, models.purpose, models.cancel);
            let (done, left) = chunk.split_at(encoded.len());
            summary.truncated += encoded.iter().filter(|encoded| encoded.truncated_tokens > 0).count() as u64;
            for (job, encoded) in done.iter().zip(encoded) {
                let written = self.write(documents[job.document].1, job.pair, &encoded);
                keep_first(&mut failures[job.document], written);
            }
            match error {
                None => {}
                // One text that the tokenizer or the runtime cannot handle fails the whole call: find it.
                Some(ModelError::Inference { .. }) if left.len() > 1 => {
                    for job in left {
                        let written = models
                            .encoder
                            .encode(&self.model_id, &[&job.text], models.purpose, models.cancel)
                            .map_err(ProcessorError::from)
                            .and_then(|encoded| match encoded.first() {
                                Some(encoded) => {
                                    summary.truncated += u64::from(encoded.truncated_tokens > 0);
                                    self.write(documents[job.document].1, job.pair, encoded)
                                }
                                None => Ok(()),
                            });
                        keep_first(&mut failures[job.document], written);
                    }
                }
                Some(error) => {
                    for job in left {
                        keep_first(&mut failures[job.document], Err(ProcessorError::from(&error)));
                    }
                }
            }
        }
        if !jobs.is_empty() {
            self.note_filled(models, &mut summary.filled);
        }
        let positions: Vec<usize> = documents.iter().map(|(at, _)| *at).collect();
        positions.into_iter().zip(failures).filter_map(|(at, failure)| Some((at, failure?))).collect()
    }

    /// The texts to encode; documents whose input is missing or no text are noted as failed, and none of their texts
    /// is encoded.
    fn collect(
        &self,
        documents: &[(usize, &mut Document)],
        failures: &mut [Option<ProcessorError>],
    ) -> Vec<Job> {
        let mut jobs = Vec::with_capacity(documents.len());
        for (at, (_, document)) in documents.iter().enumerate() {
            let before = jobs.len();
            let collected = match &self.form {
                Form::Pairs { pairs, ignore_missing } => {
                    pairs.iter().enumerate().try_for_each(|(pair, fields)| {
                        if let Some(text) = input_text(document, &fields.input, *ignore_missing)? {
                            jobs.push(Job { document: at, pair, text: text.to_owned() });
                        }
                        Ok(())
                    })
                }
                Form::Target { input, .. } => legacy_text(document, input).map(|text| {
                    jobs.push(Job { document: at, pair: 0, text: text.to_owned() });
                }),
            };
            if let Err(error) = collected {
                jobs.truncate(before);
                failures[at] = Some(error);
            }
        }
        jobs
    }

    fn write(&self, document: &mut Document, pair: usize, encoded: &Encoded) -> Result<(), ProcessorError> {
        let value = vector_to_json(&encoded.output);
        let model_id = Value::String(self.model_id.clone());
        match &self.form {
            Form::Pairs { pairs, .. } => {
                document.set(&pairs[pair].output, value)?;
                document.set("model_id", model_id)
            }
            Form::Target { target, results_field, .. } => {
                let mut result = Map::new();
                result.insert(results_field.clone(), value);
                if encoded.truncated_tokens > 0 {
                    result.insert("is_truncated".into(), Value::Bool(true));
                }
                result.insert("model_id".into(), model_id);
                document.set(target, Value::Object(result))
            }
        }
    }

    fn note_filled(&self, models: ModelAccess<'_>, filled: &mut Vec<(String, String)>) {
        let Some(fingerprint) = models.encoder.fingerprint(&self.model_id) else { return };
        let mut note = |field: String| {
            let entry = (field, fingerprint.clone());
            if !filled.contains(&entry) {
                filled.push(entry);
            }
        };
        match &self.form {
            Form::Pairs { pairs, .. } => pairs.iter().for_each(|pair| note(pair.output.clone())),
            Form::Target { target, results_field, .. } => note(format!("{target}.{results_field}")),
        }
    }
}

/// The input field of the models.
const INPUT_FIELD: &str = "text_field";

fn chunks(jobs: &[Job], purpose: Purpose) -> std::slice::Chunks<'_, Job> {
    match purpose {
        // The encoder sorts by length and waits for room by itself: the more it sees, the better.
        Purpose::PacedIngest => jobs.chunks(jobs.len().max(1)),
        Purpose::Ingest | Purpose::Direct | Purpose::Query => jobs.chunks(CHUNK),
    }
}

fn keep_first(failure: &mut Option<ProcessorError>, result: Result<(), ProcessorError>) {
    if let Err(error) = result {
        failure.get_or_insert(error);
    }
}

fn input_text<'d>(
    document: &'d Document,
    path: &str,
    ignore_missing: bool,
) -> Result<Option<&'d str>, ProcessorError> {
    match document.get_optional(path, ignore_missing)? {
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ProcessorError::NotText { path: path.into() }),
        // A null is no text, and no mistake either: there is nothing to encode.
        None => Ok(None),
    }
}

fn legacy_text<'d>(document: &'d Document, path: &str) -> Result<&'d str, ProcessorError> {
    match document.get_optional(path, true)? {
        Some(Value::String(text)) => Ok(text),
        Some(other) => {
            Err(ProcessorError::InputNotString { value: as_text(other), field: INPUT_FIELD.into() })
        }
        None => Err(ProcessorError::NoInput { field: INPUT_FIELD.into() }),
    }
}

fn pairs(config: &Config, given: Value) -> Result<Vec<Pair>, ConfigError> {
    let list = match given {
        Value::Array(list) => list,
        object @ Value::Object(_) => vec![object],
        other => return Err(config.wrong_type("input_output", "map or list of maps", &other)),
    };
    if list.is_empty() {
        return Err(config.unusable("input_output", "property cannot be empty at least one is required"));
    }
    let mut pairs: Vec<Pair> = Vec::with_capacity(list.len());
    for value in list {
        let Value::Object(mut map) = value else {
            return Err(config.wrong_type("input_output", "map or list of maps", &value));
        };
        let mut take = |name: &str| match map.shift_remove(name) {
            Some(Value::String(path)) if !path.is_empty() => Ok(path),
            Some(Value::String(_)) => Err(config.unusable(name, "path cannot be null nor empty")),
            Some(Value::Null) | None => Err(config.missing(name)),
            Some(other) => Err(config.wrong_type(name, "string", &other)),
        };
        let pair = Pair { input: take("input_field")?, output: take("output_field")? };
        if !map.is_empty() {
            return Err(config.unusable(
                "input_output",
                format!("unknown parameters [{}]", map.keys().cloned().collect::<Vec<_>>().join(", ")),
            ));
        }
        if pairs.iter().any(|other| other.output == pair.output) {
            return Err(
                config.unusable("input_output", format!("output field [{}] is used twice", pair.output))
            );
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

/// Reads `inference_config`: one inference type with its options, of which `results_field` alone changes anything
/// here. Truncation is always `first`, and the vocabulary is the model's.
fn results_field(config: &Config, map: Map<String, Value>) -> Result<Option<String>, ConfigError> {
    let refuse = |reason: String| config.unusable("inference_config", reason);
    let mut entries = map.into_iter();
    let (Some((kind, Value::Object(mut options))), None) = (entries.next(), entries.next()) else {
        return Err(refuse("must be an object with one inference type mapped to an object.".into()));
    };
    if kind != "text_expansion" && kind != "text_embedding" {
        return Err(refuse(format!(
            "unrecognized inference configuration type [{kind}]. Supported types [text_expansion, text_embedding]"
        )));
    }
    let name = match options.shift_remove("results_field") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name),
        Some(other) => return Err(config.wrong_type("results_field", "string", &other)),
    };
    if let Some(tokenization) = options.shift_remove("tokenization") {
        check_tokenization(&tokenization).map_err(refuse)?;
    }
    match options.keys().next() {
        Some(unknown) => Err(refuse(format!("unknown field [{unknown}] in [{kind}]"))),
        None => Ok(name),
    }
}

/// Checks the tokenizer options, which may only have the values that apply anyway.
///
/// # Errors
/// The message for the first option with another value.
pub fn check_tokenization(tokenization: &Value) -> Result<(), String> {
    let Some(map) = tokenization.as_object() else { return Err("[tokenization] must be an object".into()) };
    for (name, options) in map {
        let Some(options) = options.as_object() else {
            return Err(format!("[tokenization.{name}] must be an object"));
        };
        for (option, value) in options {
            match (option.as_str(), value.as_str()) {
                ("truncate", Some("first")) => {}
                ("truncate", _) => {
                    return Err(format!("[truncate] must be [first] but was [{}]", as_text(value)));
                }
                ("span", _) if value.as_i64() == Some(-1) => {}
                ("span", _) => return Err(format!("[span] must be [-1] but was [{}]", as_text(value))),
                _ => return Err(format!("unknown field [{option}] in [tokenization.{name}]")),
            }
        }
    }
    Ok(())
}

impl From<&ModelError> for ProcessorError {
    fn from(error: &ModelError) -> Self {
        Self::Model(error.clone())
    }
}
