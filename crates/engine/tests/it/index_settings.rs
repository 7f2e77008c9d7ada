//! Index settings that decide how long deletions are remembered, and when writes are durable.

use std::time::{Duration, Instant};

use crate::common::Node;
use serde_json::Value;

fn create(node: &Node, index: &str, settings: &str) {
    node.ok("create_index", &format!("index={index}"), "", &format!("{{\"settings\":{settings}}}"));
}

fn write(node: &Node, index: &str) -> Value {
    node.ok("index_doc", &format!("index={index}&id=1"), "", r#"{"x":1}"#)["_version"].clone()
}

/// Version that a document gets when it is written, deleted, and written again 50 ms and two refreshes later.
fn version_after_a_deletion(node: &Node, index: &str) -> Value {
    write(node, index);
    node.ok("delete_doc", &format!("index={index}&id=1"), "", "");
    node.ok("refresh", &format!("index={index}"), "", "");
    std::thread::sleep(Duration::from_millis(50));
    // What is remembered of deletions is looked through by a refresh that has something to show.
    node.ok("index_doc", &format!("index={index}&id=other"), "", r#"{"x":2}"#);
    node.ok("refresh", &format!("index={index}"), "", "");
    write(node, index)
}

#[test]
fn gc_deletes_says_how_long_versions_of_deleted_documents_are_remembered() {
    let node = Node::start();
    create(&node, "usual", r#"{"refresh_interval":"-1"}"#);
    create(&node, "short", r#"{"refresh_interval":"-1","gc_deletes":"1ms"}"#);
    assert_eq!(version_after_a_deletion(&node, "usual"), 3);
    assert_eq!(version_after_a_deletion(&node, "short"), 1);
    // It may change at any time, and counts at once and after a restart.
    node.ok("put_settings", "index=usual", "", r#"{"index.gc_deletes":"1ms"}"#);
    node.ok("put_settings", "index=short", "", r#"{"index.gc_deletes":"1h"}"#);
    node.ok("delete_doc", "index=usual&id=1", "", "");
    node.ok("refresh", "index=usual", "", "");
    let node = node.restart();
    assert_eq!(version_after_a_deletion(&node, "usual"), 1);
    assert_eq!(version_after_a_deletion(&node, "short"), 4);
}

/// Whether document 1 of an index would survive a crash now.
fn survives(node: &Node, index: &str) -> bool {
    let after = Node::open(node.copy_data(), |_| {});
    let (status, _) = after.call("get_doc", &format!("index={index}&id=1"), "", "");
    after.engine.close();
    status == 200
}

#[test]
fn writes_are_durable_when_they_are_answered_or_after_the_sync_interval() {
    let node = Node::start();
    let began = Instant::now();
    for (index, settings) in [
        ("request", r#"{"translog.sync_interval":"1h"}"#),
        ("soon", r#"{"translog.durability":"async","translog.sync_interval":"200ms"}"#),
        ("usual", r#"{"translog.durability":"async"}"#),
        ("late", r#"{"translog.durability":"ASYNC","translog.sync_interval":"1h"}"#),
    ] {
        create(&node, index, settings);
    }
    for index in ["request", "soon", "usual", "late"] {
        write(&node, index);
    }
    assert!(survives(&node, "request"), "it was durable when it was answered");
    assert!(!survives(&node, "late"), "it is in the log only once that is synced");
    let until = |index: &str| {
        while !survives(&node, index) {
            assert!(began.elapsed() < Duration::from_secs(60), "[{index}] is never synced");
            std::thread::sleep(Duration::from_millis(50));
        }
        began.elapsed()
    };
    until("soon");
    let survived = survives(&node, "usual");
    if began.elapsed() < Duration::from_secs(4) {
        assert!(!survived, "five seconds are not over");
    }
    let took = until("usual");
    assert!(took >= Duration::from_secs(4), "synced after {took:?}");
    assert!(!survives(&node, "late"), "an hour is not over");
    // A request that asks for it finds its write on the disk at once, and all that was answered before.
    node.ok("put_settings", "index=late", "", r#"{"index.translog.durability":"request"}"#);
    assert!(survives(&node, "late"));
    write(&node, "late");
    assert!(survives(&node, "late"));
    node.engine.close();
}
