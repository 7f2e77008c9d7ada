//! A deployment under its callers: queue, cache, cancellation, allocations.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sparrow_encoder::{
    Deployment, DeploymentOptions, Encoded, EncoderError, LoneText, Model, ModelKind, Output, Priority,
    QueryOptions,
};

use super::common::{deploy, model_dir, runtime};

const SPLADE: &str = "model-splade-tiny";

fn encode(deployment: &Deployment, texts: &[&str]) -> Vec<Encoded> {
    deployment.encode(texts, Priority::Ingest, None, None).unwrap()
}

fn pairs(encoded: &Encoded) -> Vec<(String, f32)> {
    let Output::Sparse(weights) = &encoded.output else { panic!("a dense vector") };
    weights.pairs().iter().map(|(token, weight)| (token.to_string(), *weight)).collect()
}

/// Distinct texts that take so long to encode that other things can happen meanwhile.
fn long_texts(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{at} {}", "a collector of old postage stamps ".repeat(60))).collect()
}

fn as_strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

#[test]
fn facts_of_the_embedded_models() {
    let info = Model::inspect(&model_dir(SPLADE)).unwrap();
    assert_eq!(
        (info.kind, info.dims, info.vocabulary_size, info.max_tokens),
        (ModelKind::SparseMlm, None, 30522, 512)
    );
    assert_eq!(info.fingerprint.len(), 64);
    assert!(info.size_bytes > 15_000_000);
    let dense = Model::inspect(&model_dir("model-minilm-l6")).unwrap();
    assert_eq!((dense.kind, dense.dims), (ModelKind::Dense { dims: 384 }, Some(384)));
    assert_ne!(info.fingerprint, dense.fingerprint);
    assert_eq!(Model::load(&model_dir(SPLADE)).unwrap().info(), &info);
}

#[test]
fn a_directory_without_a_model_is_an_error_that_names_it() {
    let empty = tempfile::tempdir().unwrap();
    for dir in [empty.path(), Path::new("/nowhere")] {
        let Err(EncoderError::ModelNotReadable { path, .. }) = Model::inspect(dir) else {
            panic!("found a model")
        };
        assert!(path.starts_with(dir));
    }
    std::fs::write(empty.path().join("model.onnx"), b"junk").unwrap();
    std::fs::write(empty.path().join("tokenizer.json"), b"{}").unwrap();
    assert!(matches!(Model::load(empty.path()), Err(EncoderError::ModelNotReadable { .. })));
}

#[test]
fn empty_and_huge_texts() {
    let deployment = deploy(SPLADE, |_| {});
    let huge = "stamp collector ".repeat(600_000);
    let start = "stamp collector ".repeat(255);
    let found = encode(&deployment, &["", &huge, &start]);
    assert_eq!((found[0].token_count, found[0].truncated_tokens), (2, 0));
    assert_eq!(found[1].token_count, 512);
    assert!(found[1].truncated_tokens > 0);
    assert_eq!((found[2].token_count, found[2].truncated_tokens), (512, 0));
    for ((token, weight), (same, expected)) in pairs(&found[1]).iter().zip(pairs(&found[2])) {
        assert_eq!(*token, same);
        assert!((weight - expected).abs() < 1e-4);
    }
    let stats = deployment.stats();
    assert_eq!((stats.truncated_texts, stats.inference_count), (1, 3));
    assert!(deployment.encode(&[], Priority::Search, None, None).unwrap().is_empty());
}

#[test]
fn dots_in_tokens_are_written_as_underscores() {
    let deployment = deploy(SPLADE, |_| {});
    let found = encode(&deployment, &["... . e.g. u.s. v2.0 ."]);
    let tokens = pairs(&found[0]);
    assert!(tokens.iter().all(|(token, _)| !token.contains('.')), "{tokens:?}");
    assert!(tokens.iter().any(|(token, _)| token == "__"), "{tokens:?}");
}

#[test]
fn the_cache_answers_repeated_texts() {
    let deployment = deploy(SPLADE, |options| options.cache_bytes = 1 << 20);
    let first = encode(&deployment, &["a stamp", "a coin"]);
    let second = encode(&deployment, &["a coin", "a stamp", "a medal"]);
    assert_eq!((&second[1], &second[0]), (&first[0], &first[1]));
    let stats = deployment.stats();
    assert_eq!((stats.cache_hit_count, stats.inference_count), (2, 5));
    assert!(stats.cache_used_bytes > 0 && stats.cache_used_bytes <= 1 << 20);
}

#[test]
fn a_full_queue_refuses_the_whole_call_at_once() {
    let deployment = deploy(SPLADE, |options| options.queue_capacity = 2);
    let result = deployment.encode(&["a", "b", "c"], Priority::Search, None, None);
    assert!(matches!(result, Err(EncoderError::QueueFull { capacity: 2, requested: 3 })), "{result:?}");
    assert_eq!(deployment.stats().rejected_execution_count, 3);
    assert_eq!(encode(&deployment, &["a", "b"]).len(), 2);
    let paced: Vec<String> = (0..50).map(|at| format!("text {at}")).collect();
    assert_eq!(deployment.encode_paced(&as_strs(&paced), None).unwrap().len(), 50);
    assert_eq!(deployment.stats().pending, 0);
}

#[test]
fn a_cancelled_call_takes_its_work_with_it() {
    let deployment = deploy(SPLADE, |_| {});
    let texts = long_texts(400);
    let flag = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        let call = scope.spawn(|| deployment.encode(&as_strs(&texts), Priority::Ingest, Some(&flag), None));
        std::thread::sleep(Duration::from_millis(100));
        flag.store(true, Ordering::Relaxed);
        call.join().unwrap()
    });
    assert!(matches!(result, Err(EncoderError::Cancelled)), "{result:?}");
    assert_eq!(deployment.stats().pending, 0);
    assert!(deployment.stats().inference_count < 400);
    assert!(matches!(deployment.encode_paced(&["a"], Some(&flag)), Err(EncoderError::Cancelled)));
}

#[test]
fn a_late_call_times_out() {
    let deployment = deploy(SPLADE, |_| {});
    let texts = long_texts(300);
    let result = deployment.encode(&as_strs(&texts), Priority::Ingest, None, Some(Duration::from_millis(30)));
    assert!(matches!(result, Err(EncoderError::Timeout { timeout_ms: 30 })), "{result:?}");
    let stats = deployment.stats();
    assert_eq!((stats.timeout_count, stats.pending), (300, 0));
    assert_eq!(encode(&deployment, &["still there"]).len(), 1);
}

#[test]
fn a_worker_encodes_what_was_begun_while_its_caller_goes_on() {
    let deployment = deploy(SPLADE, |_| {});
    let text = ["who collects stamps"];
    let by_worker = QueryOptions { lone_text: LoneText::ByWorker, ..QueryOptions::default() };
    let begun = deployment.begin_queries(&text, QueryOptions { timed: true, ..by_worker }).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while deployment.stats().inference_count == 0 {
        assert!(Instant::now() < end, "no worker took it");
        std::thread::sleep(Duration::from_millis(1));
    }
    let (encoded, timings) = begun.finish().unwrap();
    assert_eq!((timings.texts, timings.infer > Duration::ZERO), (1, true));
    let (here, _) = deployment.begin_queries(&text, QueryOptions::default()).unwrap().finish().unwrap();
    assert_eq!(encoded, here);
    let texts = long_texts(200);
    drop(deployment.begin_queries(&as_strs(&texts), by_worker).unwrap());
    assert_eq!(deployment.stats().pending, 0, "nobody waits for these");
}

#[test]
fn a_search_overtakes_ingest() {
    let deployment = deploy(SPLADE, |_| {});
    let texts = long_texts(200);
    std::thread::scope(|scope| {
        let ingest = scope.spawn(|| deployment.encode(&as_strs(&texts), Priority::Ingest, None, None));
        while deployment.stats().inference_count == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        deployment.encode(&["who collects stamps"], Priority::Search, None, None).unwrap();
        assert!(deployment.stats().inference_count < 200, "the search came last");
        assert_eq!(ingest.join().unwrap().unwrap().len(), 200);
    });
}

#[test]
fn many_callers_get_their_own_results() {
    let deployment = deploy(SPLADE, |options| options.allocations = 2);
    let texts: Vec<String> = (0..60).map(|at| format!("{} number {at}", "word ".repeat(at % 17))).collect();
    let alone: Vec<_> = texts.iter().map(|text| pairs(&encode(&deployment, &[text])[0])).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (deployment, texts, alone) = (&deployment, &texts, &alone);
            scope.spawn(move || {
                for round in 0..3 {
                    let order: Vec<usize> = (0..60).map(|at| (at * 7 + thread * 13 + round) % 60).collect();
                    let asked: Vec<&str> = order.iter().map(|at| texts[*at].as_str()).collect();
                    for (at, found) in order.iter().zip(encode(deployment, &asked)) {
                        let found = pairs(&found);
                        // Padding to another length changes the last bits, and may drop a weight of nothing.
                        for (token, weight) in alone[*at].iter().filter(|(_, weight)| *weight > 1e-3) {
                            let same = found.iter().find(|(name, _)| name == token);
                            assert!(
                                same.is_some_and(|(_, other)| (other - weight).abs() < 1e-3),
                                "{at} {token}"
                            );
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn allocations_come_and_go() {
    let deployment = deploy(SPLADE, |_| {});
    for allocations in [3, 1, 2] {
        deployment.set_allocations(allocations).unwrap();
        assert_eq!(deployment.stats().allocations, allocations);
        assert_eq!(encode(&deployment, &["a", "b", "c"]).len(), 3);
    }
    let none = deployment.set_allocations(0);
    assert!(matches!(
        none,
        Err(EncoderError::InvalidOption { option: "number_of_allocations", value: 0, .. })
    ));
    assert_eq!(deployment.stats().allocations, 2);
}

#[test]
fn a_stopped_deployment_fails_what_waits() {
    let deployment = Arc::new(deploy(SPLADE, |_| {}));
    let texts = long_texts(300);
    let result = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| deployment.encode(&as_strs(&texts), Priority::Ingest, None, None));
        while deployment.stats().inference_count == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        deployment.stop();
        waiting.join().unwrap()
    });
    assert!(matches!(result, Err(EncoderError::Stopped)), "{result:?}");
    assert!(matches!(deployment.encode(&["a"], Priority::Search, None, None), Err(EncoderError::Stopped)));
    assert!(matches!(deployment.encode_paced(&["a"], None), Err(EncoderError::Stopped)));
    deployment.stop();
}

#[test]
fn options_out_of_range_are_named() {
    runtime();
    let model = Model::load(&model_dir(SPLADE)).unwrap();
    let good =
        DeploymentOptions { allocations: 1, threads_per_allocation: 1, queue_capacity: 1, cache_bytes: 0 };
    for (options, name) in [
        (DeploymentOptions { allocations: 0, ..good.clone() }, "number_of_allocations"),
        (DeploymentOptions { threads_per_allocation: 0, ..good.clone() }, "threads_per_allocation"),
        (DeploymentOptions { queue_capacity: 0, ..good.clone() }, "queue_capacity"),
    ] {
        let result = Deployment::start(Arc::clone(&model), options);
        assert!(
            matches!(result, Err(EncoderError::InvalidOption { option, .. }) if option == name),
            "{name}"
        );
    }
}

#[test]
fn tokens_are_traced_to_the_words_they_come_from() {
    let deployment = deploy(SPLADE, |_| {});
    let text = "The Überflieger was sleeping, dreaming of basil soup.";
    let found = deployment.attribute(text).unwrap().unwrap();
    // The weights are those of encoding.
    let weights: std::collections::BTreeMap<String, f32> =
        pairs(&encode(&deployment, &[text])[0]).into_iter().collect();
    assert_eq!(found.len(), weights.len());
    for traced in &found {
        assert_eq!(weights.get(&*traced.token), Some(&traced.weight), "{}", traced.token);
    }
    let word = |token: &str| {
        let traced = found.iter().find(|traced| &*traced.token == token)?;
        traced.word.clone().map(|word| &text[word])
    };
    assert_eq!(word("soup"), Some("soup"));
    assert_eq!(word("basil"), Some("basil"));
    assert_eq!(word("sleeping").or(word("sleep")), Some("sleeping"));
    // Long and empty texts, and words of several pieces, do no harm.
    for text in ["", " ", &"soup ".repeat(20_000), &"x".repeat(100_000), "unbelievableness 東京"] {
        for traced in deployment.attribute(text).unwrap().unwrap() {
            assert!(traced.word.is_none_or(|word| text.get(word).is_some()));
        }
    }
    deployment.stop();
    assert!(matches!(deployment.attribute(text), Err(EncoderError::Stopped)));
}
