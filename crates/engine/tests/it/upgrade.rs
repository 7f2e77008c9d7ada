//! The index upgrade: the index stays searchable throughout, is in the old or the new format but never between them, and loses no
//! write.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::Node;
use serde_json::{Value, json};
use sparrow_engine::EngineOptions;
use sparrow_file_system::{Call, Kind, Observer, Verdict};

const DOCS: u64 = 400;
const QUERY: &str =
    r#"{"query":{"sparse_vector":{"field":"v","query_vector":{"t1":1.5,"t2":0.7,"t3":2.25}}},"size":50}"#;

fn old(options: &mut EngineOptions) {
    options.sparse_format = EngineOptions::oldest_sparse_format();
}

fn line(number: u64) -> String {
    let tokens: Vec<String> = (0..8)
        .map(|position| format!("\"t{}\":{}", (number * 7 + position * 5) % 40, 0.1 + (number % 13) as f64))
        .collect();
    format!("{{\"index\":{{\"_id\":\"{number}\"}}}}\n{{\"n\":{number},\"v\":{{{}}}}}\n", tokens.join(","))
}

/// Fills an index of the old format with several segments, deletions, and writes that are only in the log.
fn fill(node: &Node) {
    let mapping =
        r#"{"mappings":{"_source":{"excludes":["v"]},"properties":{"v":{"type":"sparse_vector"}}}}"#;
    node.ok("create_index", "index=old", "", mapping);
    for part in 0..4 {
        let lines: String = (part * 100..(part + 1) * 100).map(line).collect();
        let answer = node.ok("bulk", "index=old", "", &lines);
        assert_eq!(answer["errors"], json!(false), "{answer}");
        node.ok("flush", "index=old", "", "");
    }
    for id in 0..10 {
        node.ok("delete_doc", &format!("index=old&id={id}"), "", "");
    }
    node.ok("bulk", "index=old", "", &(0..10).map(|number| line(1000 + number)).collect::<String>());
    node.ok("refresh", "index=old", "", "");
    assert_eq!(node.count("old"), DOCS);
}

fn assistance(node: &Node) -> Value {
    node.ok("upgrade_assistance", "", "", "")
}

fn needs_it() -> Value {
    json!({"indices": {"old": {"action_required": "upgrade"}}})
}

#[test]
fn an_old_index_is_rewritten_with_the_same_results() {
    let node = Node::start_with(old);
    fill(&node);
    let before = node.hits("old", QUERY);
    assert!(before.len() > 20);
    assert_eq!(assistance(&node), needs_it());

    let mut answer = node.ok("upgrade_index", "index=old", "", "");
    assert!(answer["took"].is_u64() && answer["batches"].as_u64() > Some(0), "{answer}");
    answer["took"] = json!(0);
    answer["batches"] = json!(0);
    assert_eq!(
        answer,
        json!({"took": 0, "timed_out": false, "total": DOCS, "updated": DOCS, "created": 0, "deleted": 0,
            "batches": 0, "version_conflicts": 0, "noops": 0, "retries": {"bulk": 0, "search": 0},
            "throttled_millis": 0, "failures": []})
    );
    assert_eq!(node.hits("old", QUERY), before);
    assert_eq!(assistance(&node), json!({"indices": {}}));

    let again = node.ok("upgrade_index", "index=old", "", "");
    assert_eq!((&again["total"], &again["updated"], &again["batches"]), (&json!(0), &json!(0), &json!(0)));

    node.ok("bulk", "index=old", "refresh=true", &line(5000));
    assert_eq!(node.count("old"), DOCS + 1);
    node.ok("delete_doc", "index=old&id=5000", "refresh=true", "");
    let node = node.crash();
    assert_eq!(node.hits("old", QUERY), before);
    assert_eq!(assistance(&node), json!({"indices": {}}));
}

#[test]
fn the_asynchronous_form_answers_with_a_task() {
    let node = Node::start_with(old);
    fill(&node);
    let answer = node.ok("upgrade_index", "index=old", "wait_for_completion=false", "");
    let id = answer["task"].as_str().expect("a task").to_owned();
    assert_eq!(answer, json!({"task": id}));
    let task = node.ok("get_task", &format!("task={id}"), "wait_for_completion=true&timeout=30s", "");
    assert_eq!(task["completed"], json!(true), "{task}");
    assert_eq!(task["task"]["action"], json!("cluster:admin/xpack/upgrade"));
    assert_eq!(task["task"]["description"], json!(""));
    assert_eq!(task["task"]["cancellable"], json!(true));
    assert_eq!(task["response"]["updated"], json!(DOCS));
    let node = node.restart();
    let task = node.ok("get_task", &format!("task={id}"), "", "");
    assert_eq!(task["response"]["updated"], json!(DOCS));
}

#[test]
fn one_existing_index_at_a_time() {
    let node = Node::start();
    assert_eq!(node.error("upgrade_index", "index=missing", "", "").0, 404);
    assert!(node.error("upgrade_index", "index=a*", "", "").2.contains("one at a time"));
    assert!(node.error("upgrade_index", "index=a,b", "", "").2.contains("one at a time"));
}

#[test]
fn searches_and_writes_go_on_and_nothing_is_lost() {
    for _ in 0..3 {
        let node = Node::start_with(old);
        fill(&node);
        let before = node.hits("old", QUERY);
        let (done, written) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(node.hits("old", QUERY), before);
                }
            });
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let number = written.load(Ordering::Relaxed);
                    // Now and then a new field, so that the mapping widens under the upgrade.
                    let body = format!("{{\"w{}\":\"x\",\"v\":{{\"other\":1}}}}", number / 20);
                    let (status, answer) =
                        node.call("index_doc", &format!("index=old&id=w{number}"), "", &body);
                    assert_eq!(status, 201, "{answer}");
                    written.store(number + 1, Ordering::Relaxed);
                }
            });
            let answer = node.ok("upgrade_index", "index=old", "", "");
            assert!(answer["updated"].as_u64() >= Some(DOCS), "{answer}");
            std::thread::sleep(std::time::Duration::from_millis(20));
            done.store(true, Ordering::Relaxed);
        });
        let written = written.load(Ordering::Relaxed);
        let check = |node: &Node| {
            node.ok("refresh", "index=old", "", "");
            assert_eq!(node.count("old"), DOCS + written);
            assert_eq!(node.hits("old", QUERY), before);
            let other = r#"{"query":{"sparse_vector":{"field":"v","query_vector":{"other":1}}},"size":0,"track_total_hits":true}"#;
            let answer = node.ok("search", "index=old", "", other);
            assert_eq!(answer["hits"]["total"]["value"], json!(written));
        };
        check(&node);
        let node = node.crash();
        check(&node);
        assert_eq!(assistance(&node), json!({"indices": {}}));
    }
}

#[test]
fn a_crash_during_an_upgrade_leaves_one_whole_form() {
    for delay in [0, 1, 3, 10, 30] {
        let node = Node::start_with(old);
        fill(&node);
        let before = node.hits("old", QUERY);
        node.ok("upgrade_index", "index=old", "wait_for_completion=false", "");
        std::thread::sleep(Duration::from_millis(delay));
        let node = node.crash();
        assert_eq!(node.hits("old", QUERY), before);
        assert_eq!(node.count("old"), DOCS);
        node.ok("upgrade_index", "index=old", "", "");
        assert_eq!(node.hits("old", QUERY), before);
        assert_eq!(assistance(&node), json!({"indices": {}}));
    }
}

/// An upgrade replaces the segments that merges work on, which ends these merges; a forced merge then continues with the new ones.
#[test]
fn forced_merges_go_on_while_an_index_is_upgraded() {
    for round in 0..12 {
        let node = Node::start_with(old);
        fill(&node);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let merging = scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    node.ok("index_doc", "index=old&id=more", "refresh=true", r#"{"v":{"a":1}}"#);
                    node.ok("force_merge", "index=old", "max_num_segments=1", "");
                }
            });
            node.ok("upgrade_index", "index=old", "", "");
            done.store(true, Ordering::SeqCst);
            merging.join().unwrap_or_else(|_| panic!("round {round}: a forced merge failed"));
        });
        node.engine.close();
    }
}

/// A disk that reports failure after a save of index metadata while `notes_fail` is set, and refuses to create files of the
/// upgraded segments while `segments_fail` is.
#[derive(Default)]
struct FailingDisk {
    notes_fail: AtomicBool,
    segments_fail: AtomicBool,
}

impl Observer for FailingDisk {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let path = call.to.unwrap_or(call.path).to_string_lossy();
        let notes = call.kind == Kind::Rename && path.contains("/store/index-");
        if notes && self.notes_fail.load(Ordering::SeqCst) {
            return Verdict::Torn(0, std::io::Error::other("injected: the disk failed afterwards"));
        }
        let writes = call.kind == Kind::Create && path.contains("/segments-2/");
        if writes && self.segments_fail.load(Ordering::SeqCst) {
            return Verdict::Fail(std::io::ErrorKind::StorageFull.into());
        }
        Verdict::Allow
    }
}

fn log_files(node: &Node) -> usize {
    let mut folders = vec![node.folder.path().to_path_buf()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|extension| extension == "log") {
                files += 1;
            }
        }
    }
    files
}

/// After a failed upgrade the metadata on the disk may already name the new folder: neither a flush nor the next attempt may remove
/// what that folder needs.
#[test]
fn an_upgrade_that_fails_after_it_was_noted_can_fail_again() {
    let node = Node::start_with(|options| {
        old(options);
        options.flush_threshold_bytes = 32 << 10;
    });
    fill(&node);
    let disk = Arc::new(FailingDisk::default());
    let guard = sparrow_file_system::observe(node.folder.path(), disk.clone());
    disk.notes_fail.store(true, Ordering::SeqCst);
    node.error("upgrade_index", "index=old", "", "");
    // The disk names the new form, the old one is in use. With the log both have everything.
    let other = Node::open(node.copy_data(), |_| {});
    assert_eq!(other.count("old"), DOCS);
    other.engine.close();
    disk.notes_fail.store(false, Ordering::SeqCst);
    let lines = |from: u64| (from..from + 1000).map(line).collect::<String>();
    node.ok("bulk", "index=old", "refresh=true", &lines(10_000));
    node.ok("flush", "index=old", "", "");
    // More log than is wanted stays, and that is no reason to flush for ever.
    let files = log_files(&node);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(log_files(&node) <= files + 1, "{files} files of the log, then {}", log_files(&node));

    let before = node.hits("old", QUERY);
    let check = |node: &Node| {
        assert_eq!(node.count("old"), DOCS + 1000);
        assert_eq!(node.hits("old", QUERY), before);
    };
    // The form that the disk names is whole: with the log it has everything.
    let other = Node::open(node.copy_data(), |_| {});
    check(&other);
    other.engine.close();

    disk.segments_fail.store(true, Ordering::SeqCst);
    node.error("upgrade_index", "index=old", "", "");
    disk.segments_fail.store(false, Ordering::SeqCst);
    drop(guard);
    let node = node.crash();
    check(&node);
    node.ok("upgrade_index", "index=old", "", "");
    check(&node);
    assert_eq!(assistance(&node), json!({"indices": {}}));
}
