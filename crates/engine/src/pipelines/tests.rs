//! Batches through whole pipelines. The encoder is a stand-in, since what is tested is which texts reach it and where
//! its vectors go; the real one is in the tests of the engine.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sparrow_encoder::{Encoded, Output};
use sparrow_storage::DataDir;
use sparrow_types::TokenWeights;

use super::{IngestDoc, IngestMode, IngestOutcome, Pipelines, processors, simulate};
use crate::models::{ModelError, Purpose, TextEncoder};

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
                    Err(format!("{} {}: {}", error.status(), error.es_type(), error.reason()))
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

#[test]
fn failures_go_to_the_nearest_handler() {
    let note = json!([
        {"set": {"field": "why", "value": "{{_ingest.on_failure_message}}"}},
        {"set": {"field": "where", "value":
            "{{_ingest.on_failure_processor_type}}/{{_ingest.on_failure_processor_tag}}/{{_ingest.on_failure_pipeline}}"}},
    ]);
    let fixture = fixture(&[
        (
            "own",
            json!({"processors": [
                {"rename": {"field": "no", "target_field": "x", "tag": "t1", "on_failure": note}},
                {"set": {"field": "after", "value": true}},
            ]}),
        ),
        (
            "whole",
            json!({"processors": [
                {"rename": {"field": "no", "target_field": "x", "tag": "t1"}},
                {"set": {"field": "after", "value": true}},
            ], "on_failure": note}),
        ),
        (
            "ignored",
            json!({"processors": [
                {"rename": {"field": "no", "target_field": "x", "ignore_failure": true}},
                {"set": {"field": "after", "value": true}},
            ]}),
        ),
        (
            "failing",
            json!({"processors": [{"fail": {"message": "a", "on_failure": [{"fail": {"message": "b"}}]}}]}),
        ),
    ]);
    let told = json!({"why": "field [no] doesn't exist", "where": "rename/t1/own", "after": true});
    assert_eq!(fixture.run("own", &[json!({})])[0].as_ref().unwrap(), &told);
    let told = json!({"why": "field [no] doesn't exist", "where": "rename/t1/whole"});
    assert_eq!(fixture.run("whole", &[json!({})])[0].as_ref().unwrap(), &told);
    assert_eq!(fixture.run("ignored", &[json!({})])[0].as_ref().unwrap(), &json!({"after": true}));
    assert_eq!(
        fixture.run("failing", &[json!({})])[0].as_ref().unwrap_err(),
        "500 fail_processor_exception: b"
    );
}

#[test]
fn dropped_and_failed_documents_do_not_hold_up_others() {
    let fixture = fixture(&[(
        "p",
        json!({"processors": [
            {"json": {"field": "j", "on_failure": [{"drop": {}}]}},
            {"set": {"field": "seen", "value": 1}},
        ]}),
    )]);
    let results = fixture.run("p", &[json!({"j": "1"}), json!({"j": "{"}), json!({"j": "2"})]);
    assert_eq!(results[0].as_ref().unwrap(), &json!({"j": 1, "seen": 1}));
    assert_eq!(results[1].as_ref().unwrap(), &Value::Null);
    assert_eq!(results[2].as_ref().unwrap(), &json!({"j": 2, "seen": 1}));
}

#[test]
fn pipelines_call_each_other_but_not_themselves() {
    let fixture = fixture(&[
        ("inner", one(json!({"set": {"field": "from", "value": "{{_ingest.pipeline}}"}}))),
        (
            "outer",
            json!({"processors": [
                {"pipeline": {"name": "{{which}}"}},
                {"set": {"field": "then", "value": "{{_ingest.pipeline}}"}},
            ]}),
        ),
        ("loop", one(json!({"pipeline": {"name": "loop"}}))),
        ("soft", one(json!({"pipeline": {"name": "none", "ignore_missing_pipeline": true}}))),
    ]);
    let results = fixture.run("outer", &[json!({"which": "inner"}), json!({"which": "none"})]);
    assert_eq!(results[0].as_ref().unwrap(), &json!({"which": "inner", "from": "inner", "then": "outer"}));
    assert!(
        results[1]
            .as_ref()
            .unwrap_err()
            .ends_with("Pipeline processor configured for non-existent pipeline [none]")
    );
    assert!(
        fixture.run("loop", &[json!({})])[0]
            .as_ref()
            .unwrap_err()
            .ends_with("Cycle detected for pipeline: loop")
    );
    assert!(fixture.run("soft", &[json!({})])[0].is_ok());
}

#[test]
fn index_and_id_can_be_changed_and_the_timestamp_used() {
    let fixture = fixture(&[(
        "p",
        json!({"processors": [
            {"set": {"field": "_index", "value": "other"}},
            {"set": {"field": "_id", "value": "id-{{k}}"}},
            {"set": {"field": "at", "value": "{{_ingest.timestamp}}"}},
        ]}),
    )]);
    let mut documents = [IngestDoc::new("i", None, json!({"k": 3}))];
    fixture.pipelines.run(&fixture.encoder, "p", &mut documents, IngestMode::default()).unwrap();
    assert_eq!((documents[0].index.as_str(), documents[0].id.as_deref()), ("other", Some("id-3")));
    let at = documents[0].source["at"].as_str().unwrap();
    assert!(at.len() == 30 && at.ends_with('Z') && at.contains('T'), "{at}");
}

#[test]
fn pipelines_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let definition = object(json!({"description": "d", "version": 3, "processors": [{"drop": {}}]}));
    {
        let pipelines = Pipelines::open(Arc::new(DataDir::open(folder.path()).unwrap())).unwrap();
        pipelines.put("kept", &definition, None).unwrap();
        pipelines.put("gone", &definition, None).unwrap();
        assert!(pipelines.delete("go*").unwrap());
        assert!(!pipelines.delete("gone").unwrap());
    }
    let pipelines = Pipelines::open(Arc::new(DataDir::open(folder.path()).unwrap())).unwrap();
    assert_eq!(pipelines.definitions(""), object(json!({"kept": definition.clone()})));
    assert!(pipelines.get("kept").is_some() && pipelines.get("gone").is_none());
    assert!(
        pipelines
            .put("kept", &definition, Some(2))
            .unwrap_err()
            .reason()
            .starts_with("version conflict, required")
    );
    pipelines.put("kept", &definition, Some(3)).unwrap();
    let error = pipelines.run(&Words::default(), "gone", &mut [], IngestMode::default()).unwrap_err();
    assert_eq!((error.status(), error.reason().as_str()), (400, "pipeline with id [gone] does not exist"));
}

#[test]
fn models_in_use_are_found_in_handlers_too() {
    let inference =
        json!({"inference": {"model_id": "m", "input_output": {"input_field": "a", "output_field": "b"}}});
    let fixture = fixture(&[
        ("direct", one(inference.clone())),
        ("handler", one(json!({"drop": {"on_failure": [inference]}}))),
        ("none", one(json!({"drop": {}}))),
    ]);
    assert_eq!(fixture.pipelines.using_model(&|id| id == "m"), ["direct", "handler"]);
}

#[test]
fn a_simulation_shows_the_document() {
    let fixture = fixture(&[
        ("p", one(json!({"set": {"field": "tag", "value": "x"}}))),
        ("f", one(json!({"fail": {"message": "no"}}))),
        ("d", one(json!({"drop": {}}))),
    ]);
    let shown = fixture.simulate("p", json!({"a": 1}), false);
    assert_eq!(shown["doc"]["_source"], json!({"a": 1, "tag": "x"}));
    assert_eq!(shown["doc"]["_index"], json!("_index"));
    assert_eq!(shown["doc"]["_ingest"].as_object().unwrap().len(), 1);
    let failed = fixture.simulate("f", json!({}), false);
    assert_eq!(
        failed,
        json!({"error": {"root_cause": [{"type": "fail_processor_exception", "reason": "no"}],
                         "type": "fail_processor_exception", "reason": "no"}})
    );
    assert_eq!(fixture.simulate("d", json!({}), false), Value::Null);
}

#[test]
fn a_verbose_simulation_shows_every_step() {
    let fixture = fixture(&[
        ("inner", one(json!({"set": {"field": "i", "value": 1}}))),
        (
            "p",
            json!({"processors": [
                {"set": {"field": "a", "value": 1, "tag": "first", "description": "sets a"}},
                {"rename": {"field": "no", "target_field": "x", "ignore_failure": true}},
                {"pipeline": {"name": "inner"}},
                {"fail": {"message": "m", "on_failure": [{"set": {"field": "h", "value": 1}}]}},
                {"drop": {}},
            ]}),
        ),
    ]);
    let shown = fixture.simulate("p", json!({}), true);
    let steps: Vec<(String, String)> = shown["processor_results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            (step["processor_type"].as_str().unwrap().to_owned(), step["status"].as_str().unwrap().to_owned())
        })
        .collect();
    let expected = [
        ("set", "success"),
        ("rename", "error_ignored"),
        ("pipeline", "success"),
        ("set", "success"),
        ("fail", "error"),
        ("set", "success"),
        ("drop", "dropped"),
    ];
    assert_eq!(steps, expected.map(|(kind, status)| (kind.to_owned(), status.to_owned())));
    let first = &shown["processor_results"][0];
    assert_eq!((&first["tag"], &first["description"]), (&json!("first"), &json!("sets a")));
    assert_eq!(first["doc"]["_source"], json!({"a": 1}));
    assert_eq!(first["doc"]["_ingest"]["pipeline"], json!("p"));
    assert_eq!(
        shown["processor_results"][1]["ignored_error"]["error"]["reason"],
        json!("field [no] doesn't exist")
    );
    assert_eq!(shown["processor_results"][4].get("doc"), None);
}
