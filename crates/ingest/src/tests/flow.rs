//! Tests of the path of documents through pipelines: failure handlers, calls of other pipelines, loops over elements,
//! and what a simulation reports about them.

use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_write_ahead_log::DataDir;

use super::{Purpose, Words, fixture, object, one};
use crate::{IngestDoc, IngestMode, Pipelines};

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

/// Earlier versions took such patterns.
#[test]
fn a_stored_pipeline_reads_dates_by_the_formats_that_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let dates = |formats: Value| {
        json!({"date": {"field": "d", "formats": formats,
            "on_failure": [{"date": {"field": "d", "formats": ["aa", "UNIX"]}}]}})
    };
    let stored = json!({"processors": [dates(json!(["yyyy zzzz", "yyyy-ddd", "ISO8601"])),
        {"foreach": {"field": "l", "ignore_missing": true, "processor": dates(json!(["HHH"]))}}]});
    let data = DataDir::open(folder.path()).unwrap();
    data.write_json("pipelines", &json!({"p": stored})).unwrap();
    let pipelines = Pipelines::open(Arc::new(data)).unwrap();
    assert_eq!(pipelines.definitions("p"), object(json!({"p": stored})));
    for (text, expected) in [("2024-02-09", "2024-02-09T00:00:00.000Z"), ("0", "1970-01-01T00:00:00.000Z")] {
        let mut documents = [IngestDoc::new("i", None, json!({"d": text}))];
        pipelines.run(&Words::default(), "p", &mut documents, IngestMode::default()).unwrap();
        assert_eq!(documents[0].source["@timestamp"], expected);
    }
    // Requests are strict.
    assert!(pipelines.put("p", &object(stored), None).is_err());
}

#[test]
fn a_stored_pipeline_that_cannot_run_is_kept_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let unusable = json!({"processors": [{"of_a_later_version": {"field": "a"}}], "version": 7});
    let usable = json!({"processors": [{"set": {"field": "a", "value": 1}}]});
    {
        let data = DataDir::open(folder.path()).unwrap();
        data.write_json("pipelines", &json!({"bad": unusable, "good": usable})).unwrap();
    }
    let open = || Pipelines::open(Arc::new(DataDir::open(folder.path()).unwrap())).unwrap();
    {
        let pipelines = open();
        pipelines.put("more", &object(usable.clone()), None).unwrap();
        pipelines.put("caller", &object(one(json!({"pipeline": {"name": "bad"}}))), None).unwrap();
        assert!(pipelines.delete("good").unwrap());
    }
    let pipelines = open();
    assert_eq!(pipelines.definitions("bad"), object(json!({"bad": unusable})));
    for id in ["bad", "caller"] {
        let mut documents = [IngestDoc::new("i", None, json!({"a": 0}))];
        pipelines.run(&Words::default(), id, &mut documents, IngestMode::default()).unwrap();
        let crate::IngestOutcome::Failed(error) = &documents[0].outcome else { panic!("{documents:?}") };
        assert_eq!((error.status(), error.exception().kind), (500, "illegal_state_exception"));
        assert_eq!(
            error.to_string(),
            "pipeline with id [bad] could not be loaded, caused by [No processor type exists with name \
             [of_a_later_version]]"
        );
    }
    pipelines.put("bad", &object(usable), None).unwrap();
    drop(pipelines);
    let pipelines = open();
    assert!(pipelines.delete("bad").unwrap() && !pipelines.delete("bad").unwrap());
}

#[test]
fn a_damaged_store_of_pipelines_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let data = Arc::new(DataDir::open(folder.path()).unwrap());
    for value in [json!([]), json!({"p": 1})] {
        data.write_json("pipelines", &value).unwrap();
        let error = Pipelines::open(data.clone()).unwrap_err();
        assert!(error.to_string().contains("pipelines.json is damaged"), "{error}");
        assert_eq!(data.read_json("pipelines").unwrap(), Some(value));
    }
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
            .to_string()
            .starts_with("version conflict, required")
    );
    assert_eq!(
        pipelines.put("kept", &definition, Some(3)).unwrap_err().to_string(),
        "cannot update pipeline [kept] with the same version [3]"
    );
    assert_eq!(
        pipelines.put("new", &definition, Some(3)).unwrap_err().to_string(),
        "version conflict, required version [3] for pipeline [new] but no pipeline was found"
    );
    pipelines.put("kept", &object(one(json!({"drop": {}}))), Some(3)).unwrap();
    assert_eq!(pipelines.definitions("kept")["kept"]["version"], json!(4));
    let error = pipelines.run(&Words::default(), "gone", &mut [], IngestMode::default()).unwrap_err();
    assert_eq!((error.status(), error.to_string().as_str()), (400, "pipeline with id [gone] does not exist"));
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

#[test]
fn elements_go_through_a_processor_one_by_one() {
    let upper = |field: &str| json!({"uppercase": {"field": field}});
    let fixture = fixture(&[
        ("list", one(json!({"foreach": {"field": "l", "processor": upper("_ingest._value")}}))),
        ("inner", one(json!({"foreach": {"field": "l", "processor": upper("_ingest._value.t")}}))),
        (
            "nested",
            one(json!({"foreach": {"field": "l", "processor": {"foreach": {
                "field": "_ingest._value", "processor": upper("_ingest._value")}}}})),
        ),
        (
            "map",
            one(json!({"foreach": {"field": "o", "processor": {
                "set": {"field": "_ingest._value", "value": "{{_ingest._key}}!"}}}})),
        ),
        ("rename", one(json!({"foreach": {"field": "o", "processor": upper("_ingest._key")}}))),
        ("soft", one(json!({"foreach": {"field": "l", "ignore_missing": true, "processor": {"drop": {}}}}))),
    ]);
    for (pipeline, source, expected) in [
        ("list", json!({"l": ["a", "b"]}), json!({"l": ["A", "B"]})),
        ("list", json!({"l": []}), json!({"l": []})),
        ("inner", json!({"l": [{"t": "a", "u": 1}]}), json!({"l": [{"t": "A", "u": 1}]})),
        ("nested", json!({"l": [["a"], ["b", "c"]]}), json!({"l": [["A"], ["B", "C"]]})),
        ("map", json!({"o": {"x": 1, "y": 2}}), json!({"o": {"x": "x!", "y": "y!"}})),
        ("rename", json!({"o": {"x": 1}}), json!({"o": {"X": 1}})),
        ("soft", json!({"a": 1}), json!({"a": 1})),
        ("soft", json!({"l": null}), json!({"l": null})),
        ("soft", json!({"l": [1]}), Value::Null),
    ] {
        assert_eq!(fixture.run(pipeline, &[source])[0].as_ref().unwrap(), &expected, "{pipeline}");
    }
    for (source, message) in [
        (json!({}), "field [l] not present as part of path [l]"),
        (json!({"l": null}), "field [l] is null, cannot loop over its elements."),
        (json!({"l": 1}), "field [l] of type [java.lang.Integer] cannot be cast to a list or map"),
        (
            json!({"l": ["a", 1]}),
            "field [_ingest._value] of type [java.lang.Integer] cannot be cast to [java.lang.String]",
        ),
    ] {
        let expected = format!("400 illegal_argument_exception: {message}");
        assert_eq!(fixture.run("list", &[source])[0].as_ref().unwrap_err(), &expected);
    }
}

#[test]
fn a_failed_element_leaves_the_field_and_names_the_loop() {
    let fixture = fixture(&[(
        "p",
        one(
            json!({"foreach": {"field": "l", "tag": "loop", "processor": {"uppercase": {"field": "_ingest._value", "tag": "inner"}},
            "on_failure": [{"set": {"field": "at", "value":
                "{{_ingest.on_failure_processor_type}} {{_ingest.on_failure_processor_tag}} {{_ingest._value}}"}}]}}),
        ),
    )]);
    assert_eq!(
        fixture
            .run("p", &[json!({"l": ["a", 1]}), json!({"l": ["b"]})])
            .into_iter()
            .map(Result::unwrap)
            .collect::<Vec<_>>(),
        [json!({"l": ["a", 1], "at": "foreach loop "}), json!({"l": ["B"]})]
    );
}

#[test]
fn inferences_in_a_loop_see_the_same_element_of_all_documents_together() {
    let fixture = fixture(&[(
        "p",
        one(json!({"foreach": {"field": "l", "processor": {"inference": {"model_id": "m", "input_output": {
            "input_field": "_ingest._value.t", "output_field": "_ingest._value.v"}}}}})),
    )]);
    let results = fixture.run("p", &[json!({"l": [{"t": "a b"}, {"t": "c"}]}), json!({"l": [{"t": "d"}]})]);
    let element = |at: usize, of: usize| results[at].as_ref().unwrap()["l"][of]["v"].clone();
    assert_eq!(
        [element(0, 0), element(0, 1), element(1, 0)],
        [json!({"a": 2.0}), json!({"c": 1.0}), json!({"d": 1.0})]
    );
    let calls = fixture.encoder.calls.lock();
    assert_eq!(*calls, [("m".to_owned(), 2, Purpose::Ingest), ("m".to_owned(), 1, Purpose::Ingest)]);
    assert_eq!(fixture.pipelines.using_model(&|id| id == "m"), ["p"]);
}

#[test]
fn loops_do_not_nest_forever() {
    let mut processor = json!({"set": {"field": "a", "value": 1}});
    for _ in 0..60 {
        processor = json!({"foreach": {"field": "l", "processor": processor}});
    }
    let error = super::processors::build_pipeline("p", &object(one(processor))).unwrap_err().to_string();
    assert!(error.contains("nested deeper"), "{error}");
}

#[test]
fn terminate_ends_the_pipeline_that_it_is_in() {
    let step = |name: &str| json!({"append": {"field": "steps", "value": name}});
    let fixture = fixture(&[
        (
            "p",
            json!({"processors": [
                step("before"),
                {"fail": {"message": "m", "on_failure": [{"terminate": {}}, step("handler")]}},
                step("after"),
            ], "on_failure": [step("whole")]}),
        ),
        ("outer", json!({"processors": [{"pipeline": {"name": "p"}}, step("outer")]})),
    ]);
    assert_eq!(fixture.run("p", &[json!({})])[0].as_ref().unwrap(), &json!({"steps": ["before"]}));
    assert_eq!(
        fixture.run("outer", &[json!({})])[0].as_ref().unwrap(),
        &json!({"steps": ["before", "outer"]})
    );
    let shown = fixture.simulate("outer", json!({}), true);
    assert_eq!(shown["processor_results"].as_array().unwrap().len(), 5);
}

#[test]
fn a_simulated_cycle_is_one_error() {
    let fixture = fixture(&[
        ("outer", one(json!({"pipeline": {"name": "inner"}}))),
        (
            "inner",
            json!({"processors": [{"set": {"field": "a", "value": 1}}, {"pipeline": {"name": "outer"}}]}),
        ),
        ("start", one(json!({"pipeline": {"name": "outer"}}))),
        ("gone", one(json!({"pipeline": {"name": "none"}}))),
        ("to-gone", one(json!({"pipeline": {"name": "gone"}}))),
    ]);
    let results = fixture.simulate("start", json!({}), true);
    let results = results["processor_results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!(results[0]["error"]["reason"], "Cycle detected for pipeline: outer");
    // The call that fails is shown once, behind the one that led to it.
    let results = fixture.simulate("to-gone", json!({}), true);
    let statuses: Vec<&Value> =
        results["processor_results"].as_array().unwrap().iter().map(|step| &step["status"]).collect();
    assert_eq!(statuses, ["success", "error"]);
}

#[test]
fn what_a_pipeline_sets_beside_the_source_is_handed_on() {
    let fixture = fixture(&[
        (
            "p",
            json!({"processors": [
                {"set": {"field": "_routing", "value": "r"}},
                {"set": {"field": "_if_seq_no", "value": 3}},
                {"set": {"field": "_version_type", "value": "external"}},
            ]}),
        ),
        ("index", one(json!({"remove": {"field": "_index"}}))),
        ("kind", one(json!({"set": {"field": "_version_type", "value": "loose"}}))),
        ("number", one(json!({"set": {"field": "_version", "value": "1"}}))),
    ]);
    let mut documents = [IngestDoc::new("i", None, json!({}))];
    fixture.pipelines.run(&fixture.encoder, "p", &mut documents, IngestMode::default()).unwrap();
    assert_eq!(
        Value::Object(documents[0].metadata.clone()),
        json!({"_routing": "r", "_if_seq_no": 3, "_version_type": "external"})
    );
    assert_eq!(documents[0].source, json!({}));
    for (pipeline, message) in [
        ("index", "_index cannot be removed"),
        (
            "kind",
            "_version_type must be a null or one of [internal, external, external_gte] but was [loose] with type \
             [java.lang.String]",
        ),
        (
            "number",
            "_version [1] is wrong type, expected assignable to [java.lang.Number], not [java.lang.String]",
        ),
    ] {
        let expected = format!("400 illegal_argument_exception: {message}");
        assert_eq!(fixture.run(pipeline, &[json!({})])[0].as_ref().unwrap_err(), &expected);
    }
}

#[test]
fn documents_are_counted_by_pipeline_and_processor() {
    let fixture = fixture(&[(
        "p",
        json!({"processors": [
            {"set": {"field": "a", "value": 1, "tag": "first"}},
            {"uppercase": {"field": "t", "ignore_failure": true}},
            {"pipeline": {"name": "{{next}}", "ignore_missing_pipeline": true}},
            {"json": {"field": "j"}},
        ]}),
    )]);
    fixture.run("p", &[json!({"t": "x", "j": "1"}), json!({"t": 1, "j": "{"})]);
    let stats = fixture.pipelines.stats();
    let counts = |stats: &Value| (stats["count"].clone(), stats["failed"].clone(), stats["current"].clone());
    assert_eq!(counts(&stats["total"]), (json!(2), json!(1), json!(0)));
    let pipeline = &stats["pipelines"]["p"];
    assert_eq!(counts(pipeline), (json!(2), json!(1), json!(0)));
    let of = |at: usize, name: &str| counts(&pipeline["processors"][at][name]["stats"]);
    assert_eq!(of(0, "set:first"), (json!(2), json!(0), json!(0)));
    assert_eq!(of(1, "uppercase"), (json!(2), json!(1), json!(0)));
    assert_eq!(of(2, "pipeline:{{next}}"), (json!(2), json!(0), json!(0)));
    assert_eq!(of(3, "json"), (json!(2), json!(1), json!(0)));
    assert_eq!(fixture.pipelines.processor_stats()["json"]["count"], json!(2));
}
