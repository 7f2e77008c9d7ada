//! What is acknowledged survives: restarts, crashes, crashes during everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::Node;
use serde_json::json;
use sparrow_file_system::{Call, Kind, Observer, Verdict};

const QUERY: &str = r#"{"query":{"sparse_vector":{"field":"v","query_vector":{"alpha":1}}},"size":100}"#;

fn put(node: &Node, id: usize, version: usize) {
    let body = format!("{{\"n\":{version},\"v\":{{\"alpha\":{}.5}}}}", id + 1);
    node.ok("index_doc", &format!("index=a&id={id}"), "", &body);
}

fn fill(node: &Node) {
    node.ok("create_index", "index=a", "", r#"{"mappings":{"properties":{"v":{"type":"sparse_vector"}}}}"#);
    for id in 0..20 {
        put(node, id, 1);
    }
    node.ok("flush", "index=a", "", "");
    for id in 10..25 {
        put(node, id, 2);
    }
    node.ok("delete_doc", "index=a&id=0", "", "");
    // A field that the flushed schema does not know.
    node.ok("index_doc", "index=a&id=wide", "", r#"{"words":"a late text field","v":{"alpha":100}}"#);
}

fn check(node: &Node) {
    assert_eq!(node.count("a"), 25);
    let hits = node.hits("a", QUERY);
    assert_eq!(hits.len(), 25);
    assert_eq!(hits[0], ("wide".to_owned(), 100.0));
    assert_eq!(hits[1], ("24".to_owned(), 25.5));
    for (id, version) in [(1, 1), (9, 1), (10, 2), (24, 2)] {
        let document = node.ok("get_doc", &format!("index=a&id={id}"), "", "");
        assert_eq!(document["_source"]["n"], json!(version));
        assert_eq!(document["_version"], json!(if (10..20).contains(&id) { 2 } else { 1 }));
    }
    assert_eq!(node.call("get_doc", "index=a&id=0", "", "").0, 404);
    assert_eq!(node.hits("a", r#"{"query":{"match":{"words":"late"}}}"#).len(), 1);
    // Numbering goes on where it stopped.
    let next = node.ok("index_doc", "index=a&id=next", "refresh=true", "{}");
    assert_eq!(next["_seq_no"], json!(37));
    node.ok("delete_doc", "index=a&id=next", "refresh=true", "");
}

#[test]
fn a_crash_loses_nothing_that_was_acknowledged() {
    let node = Node::start();
    fill(&node);
    check(&node.crash());
}

#[test]
fn a_restart_keeps_everything_and_replays_nothing() {
    let node = Node::start();
    fill(&node);
    check(&node.restart());
}

#[test]
fn a_second_crash_during_recovery_changes_nothing() {
    let node = Node::start();
    fill(&node);
    let once = node.crash();
    check(&once.crash_again());
}

impl Node {
    /// Crashes right after a start, before anything is flushed.
    fn crash_again(self) -> Self {
        self.crash()
    }
}

#[test]
fn crashes_under_load_lose_nothing_that_was_acknowledged() {
    let mut node = Node::start_with(|options| options.flush_threshold_bytes = 20_000);
    node.ok("create_index", "index=a", "", r#"{"mappings":{"properties":{"v":{"type":"sparse_vector"}}}}"#);
    let acknowledged = AtomicU64::new(0);
    for round in 0..5 {
        let stop = AtomicBool::new(false);
        let mut copies = Vec::new();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let first = acknowledged.load(Ordering::Relaxed);
                    let mut body = String::new();
                    for id in first..first + 10 {
                        body.push_str(&format!(
                            "{{\"index\":{{\"_id\":\"{id}\"}}}}\n{{\"r{round}\":{id},\"v\":{{\"alpha\":1}}}}\n"
                        ));
                    }
                    let answer = node.ok("bulk", "index=a", "", &body);
                    assert_eq!(answer["errors"], json!(false), "{answer}");
                    acknowledged.store(first + 10, Ordering::Relaxed);
                }
            });
            for _ in 0..3 {
                std::thread::sleep(std::time::Duration::from_millis(60));
                // What was acknowledged before the copy begins has to be in it.
                let before = acknowledged.load(Ordering::Relaxed);
                copies.push((before, node.copy_data()));
            }
            stop.store(true, Ordering::Relaxed);
            assert!(writer.join().is_ok());
        });
        for (before, copy) in copies {
            // Copying is not a snapshot: a file may be newer than another. A crash never looks like that, so only
            // copies between which no flush fell can be opened; those have to hold everything.
            let Ok(recovered) = sparrow_engine::Engine::open(crate::common::options(copy.path())) else {
                continue;
            };
            let recovered = Node::new(recovered, copy);
            if recovered.call("count", "index=a", "", "").0 == 503 {
                continue;
            }
            assert!(recovered.count("a") >= before, "{} of {before}", recovered.count("a"));
            recovered.engine.close();
        }
        let total = acknowledged.load(Ordering::Relaxed);
        node = node.crash_with(|options| options.flush_threshold_bytes = 20_000);
        assert_eq!(node.count("a"), total);
    }
}

#[test]
fn indices_come_and_go_durably() {
    let node = Node::start();
    for name in ["a", "b", "c"] {
        node.ok("index_doc", &format!("index={name}&id=1"), "", "{\"n\":1}");
    }
    node.ok("delete_index", "index=b", "", "");
    node.ok("put_settings", "index=c", "", r#"{"index":{"refresh_interval":"-1"}}"#);
    node.ok("put_mapping", "index=c", "", r#"{"properties":{"later":{"type":"keyword"}}}"#);
    let folders =
        |node: &Node| std::fs::read_dir(node.folder.path().join("indices")).map(Iterator::count).unwrap_or(0);
    assert_eq!(folders(&node), 2);
    // Left by a creation that was cut short.
    std::fs::create_dir_all(node.folder.path().join("indices/orphan/wal")).expect("a folder");
    let node = node.crash();
    assert_eq!(folders(&node), 2);
    assert_eq!(node.call("exists_index", "index=b", "", "").0, 404);
    let index = node.ok("get_index", "index=c", "", "");
    assert_eq!(index["c"]["settings"]["index"]["refresh_interval"], json!("-1"));
    assert_eq!(index["c"]["mappings"]["properties"]["later"], json!({"type": "keyword"}));
    assert_eq!(node.count("a"), 1);
}

#[test]
fn a_data_directory_has_one_owner() {
    let node = Node::start();
    let second = sparrow_engine::Engine::open(crate::common::options(node.folder.path()));
    let error = second.err().expect("the directory is in use");
    assert!(error.reason().contains("in use by another process"), "{}", error.reason());
}

/// Makes syncs of logs fail while the switch is on.
struct NoSync(AtomicBool);

impl Observer for NoSync {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let is_log = call.path.to_string_lossy().ends_with(".log");
        match is_log && call.kind == Kind::Sync && self.0.load(SeqCst) {
            true => Verdict::Fail(std::io::Error::other("the disk failed")),
            false => Verdict::Allow,
        }
    }
}

/// A client that read a write which was lost sends its sequence number as `if_seq_no`, which must not match another write.
#[test]
fn the_sequence_number_of_a_lost_write_is_not_given_again() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", "");
    node.ok("index_doc", "index=a&id=1", "", r#"{"n":1}"#);
    let disk = Arc::new(NoSync(AtomicBool::new(true)));
    let _guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    assert_eq!(node.call("index_doc", "index=a&id=1", "", r#"{"n":2}"#).0, 503);
    disk.0.store(false, SeqCst);
    let deadline = Instant::now() + Duration::from_secs(20);
    let written = loop {
        let (status, answer) = node.call("index_doc", "index=a&id=1", "", r#"{"n":3}"#);
        if status == 200 {
            break answer;
        }
        assert!(Instant::now() < deadline, "{answer}");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!((&written["_version"], &written["_seq_no"]), (&json!(2), &json!(2)), "1 was lost");
    // The next start goes on behind it, too.
    node.ok("flush", "index=a", "", "");
    let node = node.crash();
    assert_eq!(node.ok("index_doc", "index=a&id=2", "", "{}")["_seq_no"], 3);
}
