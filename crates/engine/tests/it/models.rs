//! Uploads of models, and crashes in the middle of them.

use std::path::PathBuf;

use crate::common::{Node, workspace};
use base64::Engine as _;
use serde_json::{Value, json};
use sparrow_engine::EngineOptions;

const CONFIG: &str = r#"{"model_type": "pytorch", "inference_config": {"text_expansion": {"tokenization": {"bert": {"max_sequence_length": 16}}}}}"#;

fn with_runtime(options: &mut EngineOptions) {
    options.onnx_runtime = Some(workspace::runtime());
    options.threads = 2;
}

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../encoder/tests/fixtures").join(name);
    std::fs::read(path).unwrap()
}

fn vocabulary() -> Value {
    let tokenizer: Value = serde_json::from_slice(&fixture("plain-mlm/tokenizer.json")).unwrap();
    let entries: Vec<&String> = tokenizer["model"]["vocab"].as_object().unwrap().keys().collect();
    json!({"vocabulary": entries})
}

/// Request body that uploads part `number`, counted from 0, of a model definition cut into `parts` parts.
fn part(graph: &[u8], number: usize, parts: usize) -> String {
    let length = graph.len().div_ceil(parts);
    let piece = &graph[number * length..graph.len().min((number + 1) * length)];
    json!({
        "total_definition_length": graph.len(),
        "total_parts": parts,
        "definition": base64::engine::general_purpose::STANDARD.encode(piece),
    })
    .to_string()
}

#[test]
fn an_upload_goes_on_after_a_crash_and_the_model_survives_another() {
    let graph = fixture("plain-mlm/model.onnx");
    let node = Node::start_with(with_runtime);
    node.ok("put_trained_model", "model=small", "", CONFIG);
    node.ok("put_trained_model_definition_part", "model=small&part=0", "", &part(&graph, 0, 3));
    node.ok("put_trained_model_vocabulary", "model=small", "", &vocabulary().to_string());
    node.ok("put_trained_model_definition_part", "model=small&part=2", "", &part(&graph, 2, 3));

    let node = node.crash_with(with_runtime);
    let shown = node.ok("get_trained_models", "model=small", "", "");
    assert_eq!(shown["trained_model_configs"][0]["fully_defined"], false);
    // A part that the client got no answer to comes again; another one of its number does not.
    node.ok("put_trained_model_definition_part", "model=small&part=2", "", &part(&graph, 2, 3));
    let other =
        json!({"total_definition_length": graph.len(), "total_parts": 3, "definition": "AAAA"}).to_string();
    let (status, kind, _) = node.error("put_trained_model_definition_part", "model=small&part=2", "", &other);
    assert_eq!((status, kind.as_str()), (400, "resource_already_exists_exception"));
    let another =
        node.error("put_trained_model_definition_part", "model=small&part=1", "", &part(&graph, 1, 4));
    assert!(another.2.contains("was announced with [total_definition_length]"), "{}", another.2);
    node.ok("put_trained_model_definition_part", "model=small&part=1", "", &part(&graph, 1, 3));
    node.ok("put_trained_model_alias", "model=small&model_alias=tiny", "", "");
    node.ok("start_deployment", "model=tiny", "", "");
    let text = r#"{"docs": [{"text_field": "old red coins"}]}"#;
    let before = node.ok("infer_trained_model", "model=tiny", "", text);

    let node = node.crash_with(with_runtime);
    assert_eq!(
        node.ok("infer_trained_model", "model=tiny", "", text),
        before,
        "the model, its alias, its deployment"
    );
    assert!(!node.folder.path().join("models/small/parts").exists());
    node.ok("delete_trained_model", "model=small", "force=true", "");
    assert!(!node.folder.path().join("models/small").exists());
    let node = node.crash_with(with_runtime);
    assert_eq!(node.error("get_trained_models", "model=small", "", "").0, 404);
}

#[test]
fn a_graph_that_is_none_is_taken_back() {
    let node = Node::start_with(with_runtime);
    node.ok("put_trained_model", "model=small", "", CONFIG);
    node.ok("put_trained_model_vocabulary", "model=small", "", &vocabulary().to_string());
    let graph = fixture("plain-mlm/model.onnx");
    let mut damaged = graph.clone();
    damaged.truncate(graph.len() / 2);
    let (status, _, reason) =
        node.error("put_trained_model_definition_part", "model=small&part=0", "", &part(&damaged, 0, 1));
    assert_eq!(status, 400);
    assert!(reason.starts_with("no model can be made of the definition of [small]"), "{reason}");
    let parts = node.folder.path().join("models/small/parts");
    assert_eq!(std::fs::read_dir(parts).unwrap().count(), 0);
    // The model can still be had: deleted and put again, as the length that was announced was another.
    node.ok("delete_trained_model", "model=small", "", "");
    node.ok("put_trained_model", "model=small", "", CONFIG);
    node.ok("put_trained_model_definition_part", "model=small&part=0", "", &part(&graph, 0, 1));
    node.ok("put_trained_model_vocabulary", "model=small", "", &vocabulary().to_string());
    let shown = node.ok("get_trained_models", "model=small", "", "");
    assert_eq!(shown["trained_model_configs"][0]["fully_defined"], true);
}

#[test]
fn prefixes_go_before_the_texts_of_their_purpose() {
    let node = Node::start_with(with_runtime);
    let mut config: Value = serde_json::from_str(CONFIG).unwrap();
    config["prefix_strings"] = json!({"search": "red ", "ingest": "blue "});
    for (id, config) in [("plain", CONFIG.to_owned()), ("prefixed", config.to_string())] {
        node.ok("put_trained_model", &format!("model={id}"), "", &config);
        node.ok(
            "put_trained_model_definition_part",
            &format!("model={id}&part=0"),
            "",
            &part(&fixture("plain-mlm/model.onnx"), 0, 1),
        );
        node.ok("put_trained_model_vocabulary", &format!("model={id}"), "", &vocabulary().to_string());
        node.ok("start_deployment", &format!("model={id}"), "", "");
    }
    let encode = |model: &str, text: &str| {
        let body = json!({"docs": [{"text_field": text}]}).to_string();
        node.ok("infer_trained_model", &format!("model={model}"), "", &body)["inference_results"][0].clone()
    };
    assert_eq!(encode("prefixed", "coin"), encode("plain", "blue coin"));
}

#[test]
fn packed_weights_of_a_large_model_are_in_the_data_directory_until_it_is_deleted() {
    let with_models = |options: &mut EngineOptions| {
        with_runtime(options);
        options.models = workspace::models();
    };
    let names = |node: &Node| {
        let entries = std::fs::read_dir(node.folder.path().join("packed")).into_iter().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let node = Node::start_with(with_models);
    let text = r#"{"docs": [{"text_field": "old red coins"}]}"#;
    for model in [".sparse_encoder_model_2", ".all-minilm-l6-v2"] {
        node.ok("start_deployment", &format!("model={model}"), "", "");
    }
    assert_eq!(names(&node), [".all-minilm-l6-v2.weights"], "the sparse model is small");
    let before = node.ok("infer_trained_model", "model=.all-minilm-l6-v2", "", text);
    let packed = node.folder.path().join("packed");
    for left_over in ["gone.weights", ".all-minilm-l6-v2.weights.77-0.tmp"] {
        std::fs::write(packed.join(left_over), "").unwrap();
    }
    let node = node.crash_with(with_models);
    assert_eq!(names(&node), [".all-minilm-l6-v2.weights"]);
    assert_eq!(node.ok("infer_trained_model", "model=.all-minilm-l6-v2", "", text), before);
    node.ok("delete_trained_model", "model=.all-minilm-l6-v2", "force=true", "");
    assert_eq!(names(&node), Vec::<String>::new());
    // Put again, it is packed again.
    node.ok(
        "put_trained_model",
        "model=.all-minilm-l6-v2",
        "",
        r#"{"input": {"field_names": ["text_field"]}}"#,
    );
    node.ok("start_deployment", "model=.all-minilm-l6-v2", "", "");
    assert_eq!(names(&node), [".all-minilm-l6-v2.weights"]);
    assert_eq!(node.ok("infer_trained_model", "model=.all-minilm-l6-v2", "", text), before);
}

/// A model says that its vectors equal those of other files up to rounding: it may search what these have filled, but not the other
/// way round.
#[test]
fn a_model_searches_what_the_files_it_names_have_filled() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, description: Option<Value>| {
        let model = folder.path().join(name);
        std::fs::create_dir(&model).unwrap();
        for file in ["model.onnx", "tokenizer.json", "config.json"] {
            std::fs::write(model.join(file), fixture(&format!("dense-pooled/{file}"))).unwrap();
        }
        if let Some(description) = description {
            std::fs::write(model.join("sparrow.json"), description.to_string()).unwrap();
        }
        model
    };
    let first = make("first", None);
    let fingerprint = sparrow_encoder::Model::inspect(&first).unwrap().fingerprint;
    let second = make("second", Some(json!({"same_space_as": [fingerprint]})));
    let node = Node::start_with(|options| {
        with_runtime(options);
        options.models = vec![first, second];
    });
    for model in ["first", "second"] {
        node.ok("start_deployment", &format!("model={model}"), "", "");
        let input_output = json!([{"input_field": "text", "output_field": "v"}]);
        let processors = json!([{"inference": {"model_id": model, "input_output": input_output}}]);
        node.ok(
            "put_pipeline",
            &format!("pipeline={model}"),
            "",
            &json!({"processors": processors}).to_string(),
        );
        let mapping = json!({"mappings": {"properties": {"v": {"type": "dense_vector"}}}});
        node.ok("create_index", &format!("index=by-{model}"), "", &mapping.to_string());
        let to = format!("index=by-{model}&id=1");
        node.ok("index_doc", &to, &format!("pipeline={model}&refresh=true"), r#"{"text": "old red coins"}"#);
    }
    let search = |index: &str, model: &str| {
        let builder = json!({"text_embedding": {"model_id": model, "model_text": "red coins"}});
        let knn = json!({"field": "v", "query_vector_builder": builder, "k": 1, "num_candidates": 1});
        node.call("search", &format!("index={index}"), "", &json!({"knn": knn}).to_string())
    };
    for (index, model) in [("by-first", "first"), ("by-first", "second"), ("by-second", "second")] {
        let (status, found) = search(index, model);
        assert_eq!((status, &found["hits"]["total"]["value"]), (200, &json!(1)), "{index} {model}: {found}");
    }
    let (status, refused) = search("by-second", "first");
    assert_eq!(status, 400);
    assert!(refused.to_string().contains("holds the output of model [second]"), "{refused}");
}
