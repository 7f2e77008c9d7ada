//! Encoding search texts of several models at the same time, with the embedded models.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sparrow_encoder::Encoded;
use sparrow_models::{DENSE_MODEL, ModelError, ModelOptions, Models, TextEncoder};
use sparrow_wire::deprecation;
use sparrow_write_ahead_log::DataDir;

/// A built-in endpoint, for which the deployment of the embedded sparse model answers; the embedded dense model is
/// deployed with its first text.
const SPARSE_ENDPOINT: &str = ".elser-2-elasticsearch";

fn models(folder: &Path) -> Models {
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("packages");
    let options = ModelOptions {
        library: None,
        directories: ["model-splade-tiny", "model-minilm-l6"].map(|name| packages.join(name)).to_vec(),
        folder: None,
        deploy_at_start: true,
        threads: 2,
        adaptive: Default::default(),
    };
    Models::open(Arc::new(DataDir::open(folder).unwrap()), options).unwrap()
}

#[test]
fn results_come_in_the_order_of_the_models_and_are_those_of_each_alone() {
    let folder = tempfile::tempdir().unwrap();
    let models = models(folder.path());
    let queries = [
        (SPARSE_ENDPOINT, vec!["who collects stamps", "a ferry to the islands"]),
        (DENSE_MODEL, vec!["who collects stamps"]),
        (SPARSE_ENDPOINT, vec!["a ferry to the islands"]),
    ];
    let together = models.encode_queries(&queries, None, true).unwrap();
    assert_eq!(together.len(), queries.len());
    for ((model, texts), (vectors, timings)) in queries.iter().zip(&together) {
        assert_eq!((vectors.len(), timings.texts), (texts.len(), texts.len()), "{model}");
        let alone = models.encode_queries(&[(model, texts.clone())], None, false).unwrap();
        assert_eq!(*vectors, alone[0].0, "{model}");
    }
    let ends = |encoded: &Encoded| format!("{encoded:?}");
    assert_ne!(ends(&together[0].0[0]), ends(&together[1].0[0]), "two models make two vectors of a text");
    assert_eq!(together[0].0[1], together[2].0[0], "a text of a model has one vector");
}

/// A dense model warns of nothing: hybrid endpoints would say it twice.
#[test]
fn a_sparse_model_of_english_warns_of_a_search_in_another_language() {
    let folder = tempfile::tempdir().unwrap();
    let models = models(folder.path());
    let warnings = |model: &str, texts: &[&str]| {
        deprecation::take();
        models.encode_queries(&[(model, texts.to_vec())], None, false).unwrap();
        deprecation::take()
    };
    let german = "wie kann ich das Passwort für mein Konto ändern";
    let said = warnings(SPARSE_ENDPOINT, &["who collects stamps", german, german]);
    assert_eq!(
        said,
        [
            "the model [.sparse_encoder_model_2] reads only English, and the text of this search seems to be in another language: a \
             search by words or a multilingual model finds more"
        ]
    );
    assert!(warnings(SPARSE_ENDPOINT, &["how do I change my password", "Bahnhof"]).is_empty());
    assert!(warnings(DENSE_MODEL, &[german]).is_empty());
}

#[test]
fn an_error_names_the_model_that_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let models = models(folder.path());
    let texts = || vec!["a"];
    let unknown = models.encode_queries(&[(DENSE_MODEL, texts()), ("nobody", texts())], None, false);
    assert!(
        matches!(unknown, Err(ModelError::NotFoundForInference { id, instead }) if id == "nobody" && instead.starts_with(": there are ["))
    );
    let cancelled = AtomicBool::new(true);
    models.encode_queries(&[(DENSE_MODEL, texts())], Some(&cancelled), false).unwrap_err();
}
