//! Hybrid endpoints of a dense model and a sparse one that is a head on it: a text is read once for both vectors.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use sparrow_encoder::{Encoded, Output};
use sparrow_models::{ModelOptions, Models, Purpose, TextEncoder};
use sparrow_write_ahead_log::DataDir;

const TEXTS: [&str; 3] = ["red stamps", "old blue coin. new", "green"];

fn models(folder: &Path, names: &[&str]) -> Models {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../encoder/tests/fixtures");
    let data = DataDir::open(folder).unwrap();
    let endpoint = |id: &str, sparse: &str| {
        json!({
            "inference_id": id, "task_type": "hybrid_embedding", "service": "elasticsearch", "num_threads": 1,
            "chunking_settings": {}, "similarity": "cosine", "dimensions": 32,
            "hybrid": {"sparse_inference_id": sparse, "dense_inference_id": "checkpoint-bert"},
        })
    };
    let stored = json!({
        "one-pass": endpoint("one-pass", "checkpoint-head"), "two-passes": endpoint("two-passes", "checkpoint-splade"),
    });
    data.write_json("inference", &stored).unwrap();
    let deployment = |id: &str| {
        json!({
            "deployment_id": id, "model_id": id, "number_of_allocations": 1, "threads_per_allocation": 1,
            "queue_capacity": 64, "cache_bytes": 0, "priority": "normal",
        })
    };
    let deployments: Vec<_> = names.iter().map(|name| deployment(name)).collect();
    data.write_json("deployments", &json!({"deployments": deployments})).unwrap();
    let options = ModelOptions {
        library: None,
        directories: names.iter().map(|name| fixtures.join(name)).collect(),
        folder: None,
        deploy_at_start: false,
        threads: 2,
        adaptive: Default::default(),
    };
    Models::open(Arc::new(data), options).unwrap()
}

fn texts_read(models: &Models) -> [u64; 2] {
    ["checkpoint-head", "checkpoint-bert"].map(|id| models.figures(id).unwrap().inference_count)
}

#[test]
fn a_text_is_read_once_for_both_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let models = models(folder.path(), &["checkpoint-head", "checkpoint-bert", "checkpoint-splade"]);
    let encode = |name: &str| models.encode(name, &TEXTS, Purpose::Ingest, None).unwrap();
    let (sparse, dense) = (encode("checkpoint-head"), encode("checkpoint-bert"));
    assert!(
        sparse.iter().all(|text| matches!(text.output, Output::Sparse(_))),
        "of the head alone only its own"
    );
    assert_eq!(texts_read(&models), [3, 3]);

    let [name] = &models.encoders("one-pass")[..] else { panic!("they are two passes") };
    assert_eq!(name, "checkpoint-head+checkpoint-bert");
    let expected = |at: usize| match (&sparse[at].output, &dense[at].output) {
        (Output::Sparse(sparse), Output::Dense(dense)) => {
            Output::Hybrid { sparse: Arc::clone(sparse), dense: Arc::clone(dense) }
        }
        other => panic!("{other:?}"),
    };
    let equals = |found: &[Encoded]| (0..TEXTS.len()).all(|at| found[at].output == expected(at));
    assert!(equals(&encode(name)));
    assert_eq!(texts_read(&models), [6, 3]);
    // In a search too, beside a list for the head alone.
    let lists = [(name.as_str(), TEXTS.to_vec()), ("checkpoint-head", TEXTS.to_vec())];
    let found = models.encode_queries(&lists, None, false).unwrap();
    assert!(equals(&found[0].0));
    assert_eq!(found[1].0, sparse);
    assert_eq!(texts_read(&models), [12, 3]);

    assert_eq!(models.encoders("two-passes"), ["checkpoint-splade", "checkpoint-bert"]);
    assert!(models.encode("checkpoint-splade+checkpoint-bert", &TEXTS, Purpose::Ingest, None).is_err());
    let fingerprints = ["checkpoint-head", "checkpoint-bert"].map(|id| models.model_fingerprint(id).unwrap());
    assert_eq!(models.model_fingerprint("one-pass").unwrap(), fingerprints.join("+"));
    assert_eq!(models.compares_with("one-pass", &fingerprints.join("+")), Some(true));
    assert_eq!(models.compares_with("one-pass", &fingerprints[1]), Some(false));
}

#[test]
fn a_head_without_its_trunk_says_which_one_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let models = models(folder.path(), &["checkpoint-head", "checkpoint-splade"]);
    assert!(models.figures("checkpoint-splade").is_some());
    assert!(models.figures("checkpoint-head").is_none(), "it does not run");
    assert_eq!(models.encoders("one-pass"), ["checkpoint-head", "checkpoint-bert"]);
    assert!(models.model_fingerprint("one-pass").is_none());
}
