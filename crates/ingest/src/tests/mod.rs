//! Batches through whole pipelines. The encoder is a stand-in, since what is tested is which texts reach it and where
//! its vectors go; the real one is in the tests of the engine.

mod flow;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sparrow_encoder::{Encoded, Output};
use sparrow_runtime::TokenWeights;
use sparrow_write_ahead_log::DataDir;

use super::{IngestDoc, IngestMode, IngestOutcome, Pipelines, processors, simulate};
use sparrow_inference::{ModelError, Purpose, TextEncoder};

/// Gives each text one token, its first word, with the number of words as weight.
#[derive(Default)]
struct Words {
    calls: Mutex<Vec<(String, usize, Purpose)>>,
}

impl TextEncoder for Words {
    fn encode(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        _cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Encoded>, ModelError> {
        if model_id != "m" && model_id != "n" {
            return Err(ModelError::NotDeployed { id: model_id.to_owned() });
        }
        self.calls.lock().push((model_id.to_owned(), texts.len(), purpose));
        if texts.contains(&"bad") {
            return Err(ModelError::Inference { reason: "no".into() });
        }
        if texts.contains(&"full") {
            return Err(ModelError::QueueFull { capacity: 100, requested: 1 });
        }
        Ok(texts
            .iter()
            .map(|text| {
                let words: Vec<&str> = text.split_whitespace().collect();
                let pairs =
                    words.first().map(|word| (Box::from(*word), words.len() as f32)).into_iter().collect();
                Encoded {
                    output: Output::Sparse(Arc::new(TokenWeights::from_pairs(pairs))),
                    token_count: 1,
                    truncated_tokens: u32::from(words.len() > 3),
                }
            })
            .collect())
    }

    fn fingerprint(&self, model_id: &str) -> Option<String> {
        Some(format!("print of {model_id}"))
    }
}

struct Fixture {
    pipelines: Pipelines,
    encoder: Words,
    _folder: tempfile::TempDir,
}

fn fixture(definitions: &[(&str, Value)]) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let data = Arc::new(DataDir::open(folder.path()).unwrap());
    let pipelines = Pipelines::open(data).unwrap();
    for (id, definition) in definitions {
        pipelines.put(id, &object(definition.clone()), None).unwrap();
    }
    Fixture { pipelines, encoder: Words::default(), _folder: folder }
}

impl Fixture {
    fn run(&self, id: &str, sources: &[Value]) -> Vec<Result<Value, String>> {
        let mut documents: Vec<IngestDoc> = sources
            .iter()
            .enumerate()
            .map(|(at, source)| IngestDoc::new("i", Some(at.to_string()), source.clone()))
            .collect();
        self.pipelines.run(&self.encoder, id, &mut documents, IngestMode::default()).unwrap();
        documents
            .into_iter()
            .map(|document| match document.outcome {
                IngestOutcome::Ok => Ok(document.source),
                IngestOutcome::Dropped => Ok(Value::Null),
                IngestOutcome::Failed(error) => {
                    Err(format!("{} {}: {}", error.status(), error.exception().kind, error))
                }
            })
            .collect()
    }

    fn simulate(&self, id: &str, source: Value, verbose: bool) -> Value {
        let pipeline = self.pipelines.get(id).unwrap();
        let mut shown = simulate::run(
            &self.pipelines,
            &self.encoder,
            &pipeline,
            vec![object(json!({"_source": source}))],
            verbose,
        );
        shown["docs"][0].take()
    }
}

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("not an object") };
    map
}

fn one(processor: Value) -> Value {
    json!({"processors": [processor]})
}

#[test]
fn a_batch_is_encoded_in_one_call_and_each_document_keeps_its_own() {
    let fixture = fixture(&[(
        "p",
        one(json!({"inference": {"model_id": "m", "input_output": [
            {"input_field": "title", "output_field": "ml.title"},
            {"input_field": "deep.text", "output_field": "ml.text"},
        ]}})),
    )]);
    let results = fixture.run(
        "p",
        &[
            json!({"title": "one two", "deep": {"text": "x"}}),
            json!({"title": 5, "deep": {"text": "x"}}),
            json!({"title": "three", "deep": {"text": "y z"}}),
            json!({"title": "no text"}),
            json!({"title": null, "deep": {"text": "only this"}}),
        ],
    );
    assert_eq!(
        results[0].as_ref().unwrap(),
        &json!({"title": "one two", "deep": {"text": "x"},
                "ml": {"title": {"one": 2.0}, "text": {"x": 1.0}}, "model_id": "m"})
    );
    assert_eq!(
        results[1].as_ref().unwrap_err(),
        "400 illegal_argument_exception: input field [title] cannot be processed because it is not a text field"
    );
    assert_eq!(results[2].as_ref().unwrap()["ml"], json!({"title": {"three": 1.0}, "text": {"y": 2.0}}));
    assert_eq!(
        results[3].as_ref().unwrap_err(),
        "400 illegal_argument_exception: field [deep] not present as part of path [deep.text]"
    );
    assert_eq!(results[4].as_ref().unwrap()["ml"], json!({"text": {"only": 2.0}}));
    assert_eq!(*fixture.encoder.calls.lock(), [("m".to_owned(), 5, Purpose::Ingest)]);
}

#[test]
fn filled_fields_are_reported_and_paced_runs_say_so() {
    let fixture = fixture(&[(
        "p",
        one(
            json!({"inference": {"model_id": "m", "input_output": {"input_field": "t", "output_field": "v"}}}),
        ),
    )]);
    let mut documents: Vec<IngestDoc> =
        (0..300).map(|at| IngestDoc::new("i", None, json!({"t": format!("w{at}")}))).collect();
    let mode = IngestMode { paced: true, cancel: None };
    let summary = fixture.pipelines.run(&fixture.encoder, "p", &mut documents, mode).unwrap();
    assert_eq!(summary.filled, [("v".to_owned(), "print of m".to_owned())]);
    assert_eq!(*fixture.encoder.calls.lock(), [("m".to_owned(), 300, Purpose::PacedIngest)]);
    assert_eq!(documents[299].source["v"], json!({"w299": 1.0}));
    assert_eq!(documents[299].id, None);
}

#[test]
fn a_long_bulk_takes_only_part_of_the_queue_at_a_time() {
    let fixture = fixture(&[(
        "p",
        one(
            json!({"inference": {"model_id": "m", "input_output": {"input_field": "t", "output_field": "v"}}}),
        ),
    )]);
    let mut sources = vec![json!({"t": "a b"}); 300];
    sources[200] = json!({"t": "full"});
    let results = fixture.run("p", &sources);
    assert!(fixture.encoder.calls.lock().iter().all(|(_, texts, _)| *texts <= 128));
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 300 - 128);
    assert_eq!(
        results[200].as_ref().unwrap_err(),
        "429 es_rejected_execution_exception: inference process queue is full. Unable to execute command"
    );
}

#[test]
fn a_text_that_the_model_cannot_take_fails_alone() {
    let fixture = fixture(&[(
        "p",
        one(
            json!({"inference": {"model_id": "m", "input_output": {"input_field": "t", "output_field": "v"}}}),
        ),
    )]);
    let results = fixture.run("p", &[json!({"t": "a"}), json!({"t": "bad"}), json!({"t": "b"})]);
    assert!(results[0].is_ok() && results[2].is_ok());
    assert!(results[1].as_ref().unwrap_err().contains("inference failed: no"));
}

#[test]
fn a_missing_input_can_be_ignored() {
    let fixture = fixture(&[(
        "p",
        one(json!({"inference": {"model_id": "m", "ignore_missing": true, "input_output": [
            {"input_field": "a", "output_field": "va"}, {"input_field": "b", "output_field": "vb"}]}})),
    )]);
    let results = fixture.run("p", &[json!({"a": "x"}), json!({"c": 1})]);
    assert_eq!(results[0].as_ref().unwrap(), &json!({"a": "x", "va": {"x": 1.0}, "model_id": "m"}));
    assert_eq!(results[1].as_ref().unwrap(), &json!({"c": 1}));
}

#[test]
fn the_last_of_several_models_is_named() {
    let pair = |model: &str, output: &str| json!({"inference": {"model_id": model, "input_output": {"input_field": "t", "output_field": output}}});
    let fixture = fixture(&[("p", json!({"processors": [pair("m", "a"), pair("n", "b")]}))]);
    assert_eq!(fixture.run("p", &[json!({"t": "x"})])[0].as_ref().unwrap()["model_id"], json!("n"));
}

#[test]
fn the_legacy_form_writes_an_object() {
    let fixture = fixture(&[
        (
            "default",
            one(json!({"inference": {"model_id": "m", "tag": "here", "field_map": {"body": "text_field"}}})),
        ),
        (
            "named",
            one(
                json!({"inference": {"model_id": "m", "target_field": "ml", "field_map": {"body": "text_field"},
                "inference_config": {"text_expansion": {"results_field": "tokens"}}}}),
            ),
        ),
    ]);
    assert_eq!(
        fixture.run("default", &[json!({"body": "a b c d"})])[0].as_ref().unwrap()["ml"],
        json!({"inference": {"here": {"predicted_value": {"a": 4.0}, "is_truncated": true, "model_id": "m"}}})
    );
    assert_eq!(
        fixture.run("named", &[json!({"body": "a"})])[0].as_ref().unwrap()["ml"],
        json!({"tokens": {"a": 1.0}, "model_id": "m"})
    );
    assert_eq!(
        fixture.run("named", &[json!({})])[0].as_ref().unwrap_err(),
        "400 status_exception: Input field [text_field] does not exist in the source document"
    );
}

#[test]
fn forms_of_inference_do_not_mix() {
    for (parameters, message) in [
        (json!({"model_id": "m", "input_output": [], }), "[input_output] property cannot be empty"),
        (
            json!({"model_id": "m", "input_output": {"input_field": "a"}}),
            "[output_field] required property is missing",
        ),
        (
            json!({"model_id": "m", "target_field": "x", "input_output": {"input_field": "a", "output_field": "b"}}),
            "[target_field] option is incompatible with [input_output].",
        ),
        (
            json!({"model_id": "m", "input_output": {"input_field": "a", "output_field": "b"},
                   "inference_config": {"text_expansion": {"results_field": "x"}}}),
            "[inference_config] The [inference_config.results_field] setting is incompatible",
        ),
        (json!({"model_id": "m", "ignore_missing": true}), "processor [inference] doesn't support"),
        (
            json!({"model_id": "m", "inference_config": {"ner": {}}}),
            "[inference_config] unrecognized inference",
        ),
    ] {
        let definition = object(one(json!({"inference": parameters})));
        let error = processors::build_pipeline("p", &definition).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn an_undeployed_model_fails_the_document_in_known_words() {
    let fixture = fixture(&[(
        "p",
        one(
            json!({"inference": {"model_id": "gone", "input_output": {"input_field": "t", "output_field": "v"}}}),
        ),
    )]);
    assert_eq!(
        fixture.run("p", &[json!({"t": "x"})])[0].as_ref().unwrap_err(),
        "409 status_exception: Model [gone] must be deployed to use. Please deploy with the start trained model \
         deployment API."
    );
}
