//! Inference endpoints and adaptive deployments with the embedded models.

use std::time::{Duration, Instant};

use crate::common::{Node, copy_tree, workspace};
use serde_json::{Value, json};
use sparrow_engine::{AdaptiveTiming, EngineOptions};

fn with_models(options: &mut EngineOptions) {
    options.onnx_runtime = Some(workspace::runtime());
    options.models = workspace::models();
    options.threads = 2;
}

fn deployments(node: &Node, model: &str) -> Vec<Value> {
    let stats = node.ok("trained_model_stats", &format!("model={model}"), "", "");
    let stats = stats["trained_model_stats"].as_array().cloned().unwrap_or_default();
    stats.iter().map(|stat| stat["deployment_stats"].clone()).filter(|stat| !stat.is_null()).collect()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn endpoints_have_a_deployment_and_survive_a_crash() {
    let node = Node::start_with(with_models);
    let body = json!({
        "service": "elasticsearch",
        "service_settings": {"num_allocations": 1, "num_threads": 1, "model_id": ".elser_model_2"},
        "chunking_settings": {"strategy": "word", "max_chunk_size": 40, "overlap": 20},
    });
    let made =
        node.ok("put_inference", "inference_id=mine&task_type=sparse_embedding", "", &body.to_string());
    assert_eq!(made["task_type"], "sparse_embedding");
    assert_eq!(made["service_settings"], body["service_settings"]);
    assert_eq!(made["chunking_settings"], body["chunking_settings"]);
    let answer =
        node.ok("infer", "inference_id=mine", "", r#"{"input": ["a warm blanket", "a cold night"]}"#);
    let vectors = answer["sparse_embedding"].as_array().unwrap();
    assert_eq!(vectors.len(), 2);
    assert_eq!(vectors[0]["is_truncated"], false);
    assert!(vectors[0]["embedding"].as_object().is_some_and(|tokens| tokens.len() > 2));
    let before = node.ok("get_inference", "inference_id=_all", "", "");

    let node = node.crash_with(with_models);
    assert_eq!(node.ok("get_inference", "inference_id=_all", "", ""), before);
    let again = node.ok("infer", "inference_id=mine", "", r#"{"input": "a warm blanket"}"#);
    assert_eq!(again["sparse_embedding"][0], vectors[0]);
    assert_eq!(deployments(&node, ".elser_model_2").len(), 1);

    // The id is one that queries and processors take.
    node.ok(
        "create_index",
        "index=i",
        "",
        r#"{"mappings": {"properties": {"v": {"type": "sparse_vector"}}}}"#,
    );
    let pipeline = r#"{"processors": [{"inference": {"model_id": "mine", "input_output": {"input_field": "t", "output_field": "v"}}}]}"#;
    node.ok("put_pipeline", "pipeline=p", "", pipeline);
    node.ok("index_doc", "index=i&id=1", "pipeline=p&refresh=true", r#"{"t": "a warm blanket"}"#);
    let query = r#"{"query": {"sparse_vector": {"field": "v", "inference_id": "mine", "query": "blanket"}}}"#;
    assert_eq!(node.hits("i", query).len(), 1);

    let (status, kind, reason) = node.error("delete_inference", "inference_id=mine", "", "");
    assert_eq!((status, kind.as_str()), (409, "status_exception"));
    assert_eq!(
        reason,
        "Inference endpoint mine is referenced by pipelines: [p]. Ensure that no pipelines are using this inference \
         endpoint, or use force to ignore this warning and delete the inference endpoint."
    );
    let dry = node.ok("delete_inference", "inference_id=mine", "dry_run=true", "");
    assert_eq!((&dry["acknowledged"], &dry["pipelines"]), (&json!(false), &json!(["p"])));
    let gone = node.ok("delete_inference", "inference_id=mine", "force=true", "");
    assert_eq!(gone["acknowledged"], true);
    assert!(deployments(&node, ".elser_model_2").is_empty(), "its deployment has stopped");
    assert_eq!(node.error("infer", "inference_id=mine", "", r#"{"input": "x"}"#).0, 404);
}

#[test]
fn endpoints_that_are_always_there_start_when_they_are_used() {
    let node = Node::start_with(with_models);
    let all = node.ok("get_inference", "", "", "");
    let ids: Vec<&str> = all["endpoints"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|endpoint| endpoint["inference_id"].as_str())
        .collect();
    assert_eq!(ids, [".all-minilm-l6-v2-elasticsearch", ".elser-2-elasticsearch", ".hybrid"]);
    assert!(deployments(&node, "*").is_empty());
    let dense = node.ok("infer", "inference_id=.all-minilm-l6-v2-elasticsearch", "", r#"{"input": "a"}"#);
    assert_eq!(dense["text_embedding"][0]["embedding"].as_array().map(Vec::len), Some(384));
    let running = deployments(&node, ".all-minilm-l6-v2");
    assert_eq!(running[0]["deployment_id"], ".all-minilm-l6-v2-elasticsearch");
    assert_eq!(running[0]["adaptive_allocations"]["min_number_of_allocations"], 0);
    let put = r#"{"service": "elser", "service_settings": {"num_allocations": 1, "num_threads": 1}}"#;
    assert_eq!(node.error("put_inference", "inference_id=.elser-2-elasticsearch", "", put).0, 400);
    assert_eq!(node.error("delete_inference", "inference_id=.elser-2-elasticsearch", "", "").0, 400);
    node.ok("delete_inference", "inference_id=.all-minilm-l6-v2-elasticsearch", "force=true", "");
    assert!(deployments(&node, "*").is_empty());
    assert_eq!(node.ok("get_inference", "", "", ""), all, "they come back");
}

#[test]
fn a_deployment_grows_with_its_load_sleeps_without_and_wakes_for_a_text() {
    let node = Node::start_with(|options| {
        with_models(options);
        options.adaptive = AdaptiveTiming {
            interval: Duration::from_millis(50),
            cooldown: Duration::from_millis(200),
            idle: Duration::from_millis(600),
        };
    });
    let body = r#"{"adaptive_allocations": {"enabled": true, "min_number_of_allocations": 0, "max_number_of_allocations": 2}}"#;
    let started = node.ok("start_deployment", "model=.elser_model_2", "cache_size=0", body);
    assert_eq!(started["assignment"]["task_parameters"]["number_of_allocations"], 1);
    assert_eq!(started["assignment"]["adaptive_allocations"]["enabled"], true);
    let count = || deployments(&node, ".elser_model_2")[0]["number_of_allocations"].as_u64().unwrap();

    let documents: Vec<Value> = (0..400)
        .map(|at| json!({"text_field": format!("text number {at} about nothing {}", at * 7)}))
        .collect();
    let load = json!({"docs": documents}).to_string();
    let mut most = 1;
    std::thread::scope(|scope| {
        let encoding = scope.spawn(|| {
            for _ in 0..5 {
                node.ok("infer_trained_model", "model=.elser_model_2", "timeout=60s", &load);
            }
        });
        while !encoding.is_finished() {
            most = most.max(count());
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    assert_eq!(most, 2, "it grew to its maximum");
    wait_until("falling asleep", || count() == 0);
    node.ok("infer_trained_model", "model=.elser_model_2", "", r#"{"docs": [{"text_field": "wake up"}]}"#);
    // It falls asleep again after 600 ms.
    wait_until("awake", || {
        node.ok(
            "infer_trained_model",
            "model=.elser_model_2",
            "",
            r#"{"docs": [{"text_field": "wake up"}]}"#,
        );
        count() == 1
    });

    let (status, _, reason) =
        node.error("update_deployment", "model=.elser_model_2", "", r#"{"number_of_allocations": 2}"#);
    assert_eq!(status, 400);
    assert!(
        reason.contains("[number_of_allocations] cannot be set if adaptive allocations is enabled"),
        "{reason}"
    );
    let fixed = node.ok(
        "update_deployment",
        "model=.elser_model_2",
        "",
        r#"{"adaptive_allocations": {"enabled": false}, "number_of_allocations": 1}"#,
    );
    assert_eq!(fixed["assignment"]["task_parameters"]["number_of_allocations"], 1);
}

/// With a small model under the name of the embedded dense one.
#[test]
fn a_hybrid_field_of_a_head_reads_each_text_once() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures = workspace::root().join("crates/encoder/tests/fixtures");
    let models = [("checkpoint-bert", "model-minilm-l6"), ("checkpoint-head", "head")];
    let directories = models.map(|(from, to)| {
        copy_tree(&fixtures.join(from), &folder.path().join(to));
        folder.path().join(to)
    });
    let said = directories[1].join("sparrow.json");
    let named = std::fs::read_to_string(&said).unwrap().replace("checkpoint-bert", ".all-minilm-l6-v2");
    std::fs::write(&said, named).unwrap();
    let node = Node::start_with(|options| {
        options.models = directories.to_vec();
        options.threads = 2;
    });
    let shown = node.ok("get_trained_models", "model=head", "", "");
    assert_eq!(shown["trained_model_configs"][0]["metadata"]["recognised"]["trunk"], ".all-minilm-l6-v2");

    for model in [".all-minilm-l6-v2", "head"] {
        node.ok("start_deployment", &format!("model={model}"), "cache_size=0", "");
    }
    let read = |model: &str| deployments(&node, model)[0]["inference_count"].as_u64().unwrap();
    let put = json!({"service": "elasticsearch", "service_settings": {
        "sparse_inference_id": "head", "dense_inference_id": ".all-minilm-l6-v2",
    }});
    node.ok("put_inference", "inference_id=both&task_type=hybrid_embedding", "", &put.to_string());
    let put = json!({"service": "elasticsearch", "service_settings": {
        "model_id": "head", "num_allocations": 1, "num_threads": 1,
    }});
    node.ok("put_inference", "inference_id=terms&task_type=sparse_embedding", "", &put.to_string());
    node.ok(
        "create_index",
        "index=i",
        "",
        r#"{"mappings": {"properties": {"t": {"type": "semantic_text", "inference_id": "both"}}}}"#,
    );
    node.ok("index_doc", "index=i&id=1", "refresh=true", r#"{"t": "red stamps"}"#);
    node.ok("index_doc", "index=i&id=2", "refresh=true", r#"{"t": "old blue coin"}"#);
    let lists = r#"{"retriever": {"rrf": {"query": "red stamps", "fields": ["t"]}}}"#;
    assert_eq!(node.hits("i", lists)[0].0, "1");
    assert_eq!((read("head"), read(".all-minilm-l6-v2")), (3, 0));

    let vectors =
        |id: &str| node.ok("infer", &format!("inference_id={id}"), "", r#"{"input": "old blue coin"}"#);
    let both = vectors("both")["hybrid_embedding"][0].clone();
    assert_eq!((read("head"), read(".all-minilm-l6-v2")), (4, 0));
    assert_eq!(
        both["text_embedding"],
        vectors(".all-minilm-l6-v2-elasticsearch")["text_embedding"][0]["embedding"]
    );
    assert_eq!(both["sparse_embedding"], vectors("terms")["sparse_embedding"][0]["embedding"]);
    assert_eq!(both["is_truncated"], false);

    // Without the dense model, the head cannot be started again.
    for model in ["head", ".all-minilm-l6-v2"] {
        node.ok("stop_deployment", &format!("model={model}"), "force=true", "");
    }
    node.ok("delete_inference", "inference_id=terms", "force=true", "");
    node.ok("delete_trained_model", "model=.all-minilm-l6-v2", "force=true", "");
    let (status, _, reason) = node.error("start_deployment", "model=head", "", "");
    assert_eq!(status, 500, "{reason}");
    assert!(reason.contains("it is a head on the model [.all-minilm-l6-v2]"), "{reason}");
}
