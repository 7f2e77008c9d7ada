//! Checkpoints as Transformers saves them, without a graph: their vectors are those that Transformers computes
//! (`tests/fixtures/make_checkpoints.py`), and what cannot be computed is refused by name.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sparrow_encoder::{EncoderError, Model, ModelKind};

use super::exports::{check, fixtures};

#[test]
fn bert_with_half_precision_and_the_mean_over_tokens() {
    check("checkpoint-bert", ModelKind::Dense { dims: 32 }, false);
}

#[test]
fn a_masked_language_model_in_several_files_with_a_decoder_of_its_own() {
    check("checkpoint-splade", ModelKind::SparseMlm, true);
}

#[test]
fn distilbert_whose_decoder_is_its_word_embeddings() {
    check("checkpoint-distilbert", ModelKind::SparseMlm, true);
}

#[test]
fn xlm_roberta_with_a_unigram_tokenizer_and_the_first_token() {
    check("checkpoint-xlmr", ModelKind::Dense { dims: 32 }, false);
}

#[test]
fn roberta_with_the_last_token_cut_to_its_first_numbers() {
    check("checkpoint-matryoshka", ModelKind::Dense { dims: 8 }, false);
    let info = Model::inspect(&fixtures().join("checkpoint-matryoshka")).unwrap();
    assert_eq!(info.prefixes.search.as_deref(), Some("query: "));
    assert_eq!(info.prefixes.ingest.as_deref(), Some("passage: "));
}

#[test]
fn modernbert_with_rotary_positions_and_local_layers() {
    check("checkpoint-modernbert", ModelKind::Dense { dims: 64 }, false);
}

#[test]
fn modernbert_with_the_head_of_a_masked_language_model() {
    check("checkpoint-modernbert-splade", ModelKind::SparseMlm, true);
}

/// ModernBERT is read from the older form of `config.json` that files on the hub have: two thetas, and the interval of global layers.
#[test]
fn modernbert_as_older_files_describe_it() {
    let older = |json: &mut Value| {
        for (name, value) in [
            ("layer_types", Value::Null),
            ("rope_parameters", Value::Null),
            ("global_rope_theta", json!(160_000.0)),
            ("local_rope_theta", json!(10_000.0)),
            ("layer_norm_eps", json!(1e-5)),
            ("position_embedding_type", json!("absolute")),
        ] {
            json[name] = value;
        }
    };
    let dir = changed("checkpoint-modernbert", "config.json", older);
    let vectors = |dir: &Path| {
        let deployment = super::common::start(Model::load(dir).unwrap(), |_| {});
        let texts = ["red stamps", "old blue coin. new", &"green ".repeat(30)];
        deployment.encode(&texts, sparrow_encoder::Priority::Ingest, None, None).unwrap()
    };
    let expected = vectors(&fixtures().join("checkpoint-modernbert"));
    assert_eq!(vectors(dir.path()), expected);
    let other = |json: &mut Value| json["global_attn_every_n_layers"] = json!(3);
    let other = changed("checkpoint-modernbert", "config.json", |json| {
        older(json);
        other(json);
    });
    assert_ne!(vectors(other.path()), expected);
    let config = |change: &dyn Fn(&mut Value)| changed("checkpoint-modernbert", "config.json", change);
    refused(
        &config(&|json| json["layer_types"][1] = json!("linear_attention")),
        "layer_types [linear_attention]",
    );
    refused(&config(&|json| json["layer_types"] = json!([])), "layer_types [nothing] of layer 0");
    refused(&config(&|json| json["hidden_activation"] = json!("silu")), "activation [silu]");
    let yarn = |json: &mut Value| json["rope_parameters"]["full_attention"]["rope_type"] = json!("yarn");
    refused(&config(&yarn), "rope_type [yarn]");
    refused(&config(&|json| json["hidden_size"] = json!(32)), "has the shape");
}

/// A copy of a fixture with one of its JSON files changed.
pub fn changed(name: &str, file: &str, change: impl Fn(&mut Value)) -> tempfile::TempDir {
    let dir = copy(&fixtures().join(name));
    let path = dir.path().join(file);
    let mut json = fs::read(&path).map_or(json!({}), |bytes| serde_json::from_slice(&bytes).unwrap());
    change(&mut json);
    fs::write(path, json.to_string()).unwrap();
    dir
}

pub fn copy(from: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut folders = vec![(from.to_path_buf(), dir.path().to_path_buf())];
    while let Some((from, to)) = folders.pop() {
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let (path, to) = (entry.path(), to.join(entry.file_name()));
            if path.is_dir() {
                folders.push((path, to));
            } else {
                fs::copy(path, to).unwrap();
            }
        }
    }
    dir
}

#[track_caller]
pub fn refused(dir: &tempfile::TempDir, reason: &str) {
    let error = Model::load(dir.path()).unwrap_err();
    let known = matches!(error, EncoderError::Unsupported { .. } | EncoderError::ModelNotReadable { .. });
    assert!(known && error.to_string().contains(reason), "{error}");
}

#[test]
fn what_cannot_be_computed_is_refused_by_name() {
    let config = |change: &dyn Fn(&mut Value)| changed("checkpoint-bert", "config.json", change);
    refused(&config(&|json| json["model_type"] = json!("mpnet")), "[mpnet] is not an architecture");
    refused(&config(&|json| json["hidden_act"] = json!("gelu_new")), "activation [gelu_new]");
    refused(
        &config(&|json| json["position_embedding_type"] = json!("relative_key")),
        "positions are not absolute",
    );
    refused(&config(&|json| json["num_hidden_layers"] = json!(3)), "no tensor [encoder.layer.2.");
    refused(
        &config(&|json| json["hidden_size"] = json!(16)),
        "embeddings.word_embeddings.weight] has the shape [13, 32]",
    );
    refused(
        &config(&|json| json["num_attention_heads"] = json!(2)),
        "the width of each of its attention heads is [16], and has to be a multiple of [32]",
    );
    refused(
        &config(&|json| json["num_attention_heads"] = json!(3)),
        "hidden states of [32] numbers cannot be divided among [3] attention heads",
    );
    let steps = |json: &mut Value| json[1]["type"] = json!("sentence_transformers.models.Dense");
    refused(&changed("checkpoint-bert", "modules.json", steps), "module [Dense]");
    let pooling = |json: &mut Value| json["pooling_mode_max_tokens"] = json!(true);
    refused(&changed("checkpoint-bert", "1_Pooling/config.json", pooling), "[max_tokens, mean_tokens]");
    let cut = |json: &mut Value| json["truncate_dim"] = json!(33);
    refused(
        &changed("checkpoint-matryoshka", "config_sentence_transformers.json", cut),
        "cannot be cut to 33",
    );
    let long = |json: &mut Value| json["prompts"] = json!({"query": "q".repeat(5000)});
    refused(
        &changed("checkpoint-matryoshka", "config_sentence_transformers.json", long),
        "a prompt has [5000] bytes, and may have at most [4096]",
    );
    let sparse = |json: &mut Value| json["kind"] = json!("sparse_mlm");
    refused(&changed("checkpoint-bert", "sparrow.json", sparse), "no head of a masked language model");
    let out = |json: &mut Value| json["weight_map"]["lm_head.bias"] = json!("../other.safetensors");
    refused(
        &changed("checkpoint-splade", "model.safetensors.index.json", out),
        "is not a file of the checkpoint",
    );
    let missing = copy(&fixtures().join("checkpoint-bert"));
    fs::remove_file(missing.path().join("model.safetensors")).unwrap();
    refused(&missing, "no model.onnx and no model.safetensors");
    fs::write(missing.path().join("pytorch_model.bin"), "").unwrap();
    refused(&missing, "pytorch_model.bin is not read");
}

/// The id of a token that has no embedding, wherever it comes from. Embeddings that no token has are padding.
#[test]
fn a_tokenizer_with_more_ids_than_embeddings_is_refused() {
    let beyond = "a token with the id [13], and the model has word embeddings for the [13] ids from 0 only";
    let tokenizer = |name: &str, change: &dyn Fn(&mut Value)| changed(name, "tokenizer.json", change);
    let of_vocabulary = |json: &mut Value| json["model"]["vocab"]["zebra"] = json!(13);
    let added = |json: &mut Value| {
        let mut token = json["added_tokens"][0].clone();
        (token["id"], token["content"]) = (json!(13), json!("[ZEBRA]"));
        json["added_tokens"].as_array_mut().unwrap().push(token);
    };
    let around = |json: &mut Value| json["post_processor"]["special_tokens"]["[CLS]"]["ids"] = json!([13]);
    for name in ["checkpoint-bert", "checkpoint-modernbert", "checkpoint-splade", "cross-bert"] {
        refused(&tokenizer(name, &of_vocabulary), beyond);
        refused(&tokenizer(name, &added), beyond);
        refused(&tokenizer(name, &around), beyond);
    }
    let piece =
        |json: &mut Value| json["model"]["vocab"].as_array_mut().unwrap().push(json!(["zebra", -9.0]));
    refused(&tokenizer("checkpoint-xlmr", &piece), "a token with the id [15]");
    let fewer = |json: &mut Value| {
        let vocabulary = json["model"]["vocab"].as_object_mut().unwrap();
        vocabulary.retain(|_, id| id.as_u64() < Some(12));
        assert!(vocabulary.len() == 12);
    };
    Model::load(tokenizer("checkpoint-bert", &fewer).path()).unwrap();
}

/// An unreadable configuration gives the reason, and not an error about missing keys.
#[test]
fn an_architecture_that_cannot_be_read_says_why() {
    let config = |change: &dyn Fn(&mut Value)| changed("checkpoint-bert", "config.json", change);
    refused(&config(&|json| json["pad_token_id"] = json!(-1)), "integer `-1`");
    refused(
        &config(&|json| json["dim"] = json!(16)),
        "[hidden_size] is 32 and [dim], which means the same, is 16",
    );
}

/// sentence-transformers keeps the length of texts in a file of its own; `sparrow.json` overrules it.
#[test]
fn the_length_of_texts_is_the_one_of_the_directory() {
    let longest =
        |dir: &tempfile::TempDir| Model::inspect(dir.path()).map(|info| (info.max_tokens, info.fingerprint));
    let directory = copy(&fixtures().join("checkpoint-bert"));
    let (whole, fingerprint) = longest(&directory).unwrap();
    let say = |length: &str| {
        let text = format!(r#"{{"max_seq_length": {length}, "do_lower_case": false}}"#);
        fs::write(directory.path().join("sentence_bert_config.json"), text).unwrap();
        longest(&directory)
    };
    assert!(whole > 9);
    // Vectors of short texts are as they were: fields that are filled with them stay searched.
    assert_eq!(say("9").unwrap(), (9, fingerprint.clone()));
    assert_eq!(say("null").unwrap(), (whole, fingerprint.clone()));
    assert_eq!(say("100000").unwrap(), (whole, fingerprint));
    assert!(say("2").unwrap_err().to_string().contains("[max_seq_length] must be greater than 2"));
    say("9").unwrap();
    fs::write(directory.path().join("sparrow.json"), r#"{"max_tokens": 7}"#).unwrap();
    assert_eq!(longest(&directory).unwrap().0, 7);
}

/// A graph that outputs hidden states is refused if modules follow the pooling; one that outputs vectors of texts may include them.
#[test]
fn a_module_behind_a_graph_is_not_left_out() {
    let steps = |json: &mut Value| {
        let dense = json!({"type": "sentence_transformers.models.Dense"});
        json.as_array_mut().unwrap().push(dense);
    };
    let directory = changed("dense-cls", "modules.json", steps);
    refused(&directory, "module [Dense] of modules.json comes after the output [");
    fs::write(directory.path().join("sparrow.json"), r#"{"pooling": "cls"}"#).unwrap();
    assert!(Model::load(directory.path()).is_ok());
    let pooled = copy(&fixtures().join("dense-pooled"));
    fs::copy(directory.path().join("modules.json"), pooled.path().join("modules.json")).unwrap();
    assert!(Model::load(pooled.path()).is_ok());
}

/// Most directories on the hub have both: the checkpoint needs no ONNX Runtime.
#[test]
fn a_checkpoint_is_taken_before_a_graph_and_a_graph_before_nothing() {
    let both = copy(&fixtures().join("checkpoint-bert"));
    fs::copy(fixtures().join("dense-cls/model.onnx"), both.path().join("model.onnx")).unwrap();
    assert!(Model::load(both.path()).unwrap().is_native());
    let foreign = |json: &mut Value| json["model_type"] = json!("mpnet");
    let unknown = changed("checkpoint-bert", "config.json", foreign);
    fs::copy(fixtures().join("dense-cls/model.onnx"), unknown.path().join("model.onnx")).unwrap();
    assert!(!Model::load(unknown.path()).unwrap().is_native());
}

/// Equal files have equal fingerprints, and one changed bit in any part makes another one.
#[test]
fn the_fingerprint_covers_all_files() {
    let fingerprint = |dir: &Path| Model::inspect(dir).unwrap().fingerprint;
    let whole = fixtures().join("checkpoint-splade");
    let same = copy(&whole);
    assert_eq!(fingerprint(same.path()), fingerprint(&whole));
    let part = same.path().join("model-00003-of-00003.safetensors");
    let mut bytes = fs::read(&part).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(part, bytes).unwrap();
    assert_ne!(fingerprint(same.path()), fingerprint(&whole));
}
