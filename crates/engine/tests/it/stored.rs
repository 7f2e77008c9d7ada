//! Small stores of the data directory that are damaged, or hold something that this version cannot use.

use std::fs;
use std::path::Path;

use crate::common::{Node, options};
use serde_json::{Value, json};
use sparrow_engine::{Engine, EngineOptions};
use sparrow_write_ahead_log::DataDir;

/// Writes a store as the server does.
fn write(data: &Path, store: &str, value: &Value) {
    DataDir::open(data).unwrap().write_json(store, value).unwrap();
}

/// The value in a store, without its checksum.
fn read(data: &Path, store: &str) -> Value {
    let text = fs::read_to_string(data.join("store").join(format!("{store}.json"))).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["value"].clone()
}

#[test]
fn templates_that_cannot_be_used_are_kept_shown_and_refused_where_they_count() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = json!({"index_patterns": ["bad-*"], "priority": 3, "of_a_later_version": true});
    let component = json!({"template": {"settings": {}}, "of_a_later_version": true});
    let composed = json!({"index_patterns": ["part-*"], "composed_of": ["part"]});
    let legacy = json!({"index_patterns": ["old-*"], "of_a_later_version": true});
    write(
        folder.path(),
        "templates",
        &json!({
            "component": {"part": component}, "index": {"bad": unknown, "composed": composed}, "legacy": {"old": legacy},
        }),
    );
    let node = Node::open(folder, |_| {});
    // Another template is stored: the whole store is written again.
    node.ok("put_index_template", "name=good", "", r#"{"index_patterns":["good-*"]}"#);
    let stored = read(node.folder.path(), "templates");
    assert_eq!(stored["index"]["bad"], unknown);
    assert_eq!(stored["component"]["part"], component);
    assert_eq!(stored["legacy"]["old"], legacy);
    let shown = node.ok("get_index_template", "name=bad", "", "");
    assert_eq!(shown["index_templates"][0]["index_template"], unknown);
    for (index, what) in [
        ("bad-1", "index template [bad]"),
        ("part-1", "component template [part]"),
        ("old-1", "template [old]"),
    ] {
        let expected = format!("{what} could not be loaded, caused by [");
        for (op, path) in
            [("create_index", format!("index={index}")), ("index_doc", format!("index={index}&id=1"))]
        {
            let (status, kind, reason) = node.error(op, &path, "", "{}");
            assert_eq!((status, kind.as_str()), (500, "illegal_state_exception"), "{reason}");
            assert!(reason.starts_with(&expected) && reason.contains("of_a_later_version"), "{reason}");
        }
    }
    node.ok("create_index", "index=good-1", "", "{}");
    node.ok("put_index_template", "name=bad", "", r#"{"index_patterns":["bad-*"]}"#);
    node.ok("create_index", "index=bad-1", "", "{}");
    node.ok("delete_template", "name=old", "", "");
    node.ok("create_index", "index=old-1", "", "{}");
}

#[test]
fn inference_endpoints_that_cannot_be_used_are_kept_shown_and_refused() {
    let folder = tempfile::tempdir().unwrap();
    let later = json!({"inference_id": "later", "task_type": "completion", "service": "elasticsearch"});
    write(folder.path(), "inference", &json!({"later": later}));
    let node = Node::open(folder, |_| {});
    let shown = node.ok("get_inference", "inference_id=later", "", "");
    assert_eq!(shown["endpoints"], json!([later]));
    let all = node.ok("get_inference", "inference_id=_all", "", "");
    assert!(all["endpoints"].as_array().unwrap().contains(&later));
    let (status, kind, reason) = node.error("infer", "inference_id=later", "", r#"{"input":"a"}"#);
    assert_eq!((status, kind.as_str()), (500, "illegal_state_exception"));
    assert!(reason.starts_with("inference endpoint [later] could not be loaded, caused by ["), "{reason}");
    // Removing another one (here one that is always there) writes the store again.
    node.ok("delete_inference", "inference_id=.elser-2-elasticsearch", "force=true", "");
    assert_eq!(read(node.folder.path(), "inference")["later"], later);
    node.ok("delete_inference", "inference_id=later", "", "");
    assert_eq!(read(node.folder.path(), "inference"), json!({}));
}

#[test]
fn a_remembered_deployment_that_does_not_start_stays_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let gone = json!({
        "deployment_id": "gone", "model_id": "gone", "number_of_allocations": 1, "threads_per_allocation": 1,
        "queue_capacity": 10, "cache_bytes": 0, "priority": "normal", "automatic": false,
    });
    let later = json!({"deployment_id": "later", "model_id": "m", "of_a_later_version": 1});
    write(folder.path(), "deployments", &json!({"deployments": [gone, later], "stopped": []}));
    let node = Node::open(folder, |_| {}).restart();
    let remembered = read(node.folder.path(), "deployments");
    assert_eq!(remembered["deployments"], json!([gone, later]));
}

#[test]
fn a_damaged_store_keeps_the_server_from_starting_and_stays_as_it_is() {
    for store in [
        "node",
        "pipelines",
        "templates",
        "aliases",
        "cluster-settings",
        "trained_models",
        "inference",
        "deployments",
    ] {
        let damaged = format!("{store}.json is damaged");
        let newer = format!("{store}.json has format version 9, this version reads up to 1");
        let files = [
            (Some(""), &damaged),
            (Some("{\"format\":1,\"checksum\":1,\"value\":{}}"), &damaged),
            (Some("{\"format\":9,\"checksum\":0,\"value\":{}}"), &newer),
            // Sound, and of a shape that nobody writes.
            (None, &damaged),
        ];
        for (file, problem) in files {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store").join(format!("{store}.json"));
            write(folder.path(), store, &json!([{"not": "what is written"}]));
            if let Some(file) = file {
                fs::write(&path, file).unwrap();
            }
            let before = fs::read_to_string(&path).unwrap();
            let Err(error) = Engine::open(options(folder.path())) else { panic!("opened {store}: {before}") };
            let reason = error.reason();
            assert!(reason.contains(problem) && reason.contains("Nothing was changed."), "{reason}");
            assert!(reason.contains(folder.path().to_str().unwrap()), "{reason}");
            assert_eq!(fs::read_to_string(&path).unwrap(), before);
        }
    }
}

#[test]
fn entries_of_a_wrong_shape_are_not_left_out() {
    for (store, value) in [
        ("aliases", json!({"by_index": {"u": {"a": {"of_a_later_version": 1}}}, "removed": []})),
        ("aliases", json!({"by_index": {"u": 1}})),
        ("cluster-settings", json!({"search.max_buckets": {"a": 1}})),
        ("trained_models", json!({"models": {"../x": {}}, "aliases": {}, "hidden": [], "installed": []})),
        ("deployments", json!({"deployments": {}})),
    ] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), store, &value);
        let Err(error) = Engine::open(options(folder.path())) else { panic!("opened {store}: {value}") };
        assert!(error.reason().contains(&format!("{store}.json is damaged")), "{}", error.reason());
        assert_eq!(read(folder.path(), store), value);
    }
}

/// An earlier version stored these patterns, and counted the days of the year by the last one.
#[test]
fn a_directory_of_an_old_format_opens_with_formats_of_dates_that_are_refused_today() {
    let node = Node::start_with(|options| options.sparse_format = EngineOptions::oldest_sparse_format());
    let mapping = r#"{"mappings":{"properties":{"v":{"type":"sparse_vector"},
        "only":{"type":"date","format":"yyyy-MM-dd"},"also":{"type":"date","format":"yyyy-DDD||yyyy"}}}}"#;
    node.ok("create_index", "index=old", "", mapping);
    let put = |node: &Node, id: u32, document: &str| {
        node.call("index_doc", &format!("index=old&id={id}"), "", document)
    };
    for id in 1..=3 {
        let document = format!(r#"{{"v":{{"a":{id}}},"only":"2024-02-0{id}","also":"2024-04{id}"}}"#);
        assert_eq!(put(&node, id, &document).0, 201);
    }
    node.ok("flush", "index=old", "", "");
    assert_eq!(
        put(&node, 4, r#"{"v":{"a":4},"only":"2024-02-04","also":"2024"}"#).0,
        201,
        "in the log alone"
    );

    let folder = node.stop();
    let store = fs::read_dir(folder.path().join("store")).unwrap();
    let names = store.map(|file| file.unwrap().file_name().into_string().unwrap());
    let store = names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()));
    let store = store.into_iter().find(|name| name.starts_with("index-")).unwrap();
    let stored = read(folder.path(), &store).to_string();
    let older = stored.replace("\"yyyy-MM-dd\"", "\"yyyy#MM{dd\"").replace("yyyy-DDD||", "yyyy-ddd||");
    assert_ne!(stored, older);
    write(folder.path(), &store, &serde_json::from_str(&older).unwrap());

    let node = Node::open(folder, |_| {});
    let check = |node: &Node| {
        assert_eq!(node.count("old"), 4);
        let properties = &node.ok("get_mapping", "index=old", "", "")["old"]["mappings"]["properties"];
        assert_eq!(properties["only"]["format"], "yyyy#MM{dd");
        assert_eq!(properties["also"]["format"], "yyyy-ddd||yyyy");
        let newest = r#"{"size":3,"sort":[{"only":"desc"}],"docvalue_fields":["only"],"query":{"range":{"only":
            {"gte":"2024-02-02","format":"strict_date"}}}}"#;
        let hits = &node.ok("search", "index=old", "", newest)["hits"]["hits"];
        let shown: Vec<&str> =
            hits.as_array().unwrap().iter().filter_map(|hit| hit["_id"].as_str()).collect();
        assert!(shown.ends_with(&["3", "2"]), "{hits}");
        assert_eq!(hits[shown.len() - 1]["fields"]["only"], json!(["2024-02-02T00:00:00.000Z"]));
        assert_eq!(node.ok("get_doc", "index=old&id=4", "", "")["_source"]["only"], "2024-02-04");
    };
    check(&node);
    let (status, refused) = put(&node, 5, r#"{"only":"2024-02-05"}"#);
    assert_eq!(status, 400);
    assert!(refused.to_string().contains("with format [yyyy#MM{dd]"), "{refused}");
    assert_eq!(put(&node, 6, r#"{"also":"2024-041"}"#).0, 400);
    assert_eq!(put(&node, 6, r#"{"also":"2023"}"#).0, 201, "another format of the field reads it");
    node.ok("delete_doc", "index=old&id=6", "", "");
    node.ok("refresh", "index=old", "", "");

    assert_eq!(node.ok("upgrade_index", "index=old", "", "")["failures"], json!([]));
    check(&node);
    assert_eq!(node.ok("upgrade_assistance", "", "", ""), json!({"indices": {}}));
    check(&node.restart());
}
