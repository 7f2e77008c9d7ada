//! Indices that are deleted while another request works on them: the server does not fail, and no answer shows a path of it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::common::Node;
use serde_json::Value;

/// Checks that an answer is a success, or says that the index does not exist.
fn check(op: &str, status: u16, answer: &Value, folder: &str) {
    let text = answer.to_string();
    assert!(!text.contains(folder), "{op} shows where the data lies: {text}");
    assert!(matches!(status, 200 | 201 | 404), "{op} answered {status}: {text}");
    for failure in answer["failures"].as_array().into_iter().flatten() {
        assert_eq!(failure["status"], 404, "{text}");
    }
}

#[test]
fn overviews_and_copies_go_on_while_indices_are_deleted() {
    let node = Node::start();
    let folder = node.folder.path().to_str().unwrap().to_owned();
    node.ok("create_index", "index=source", "", "{}");
    let lines: String =
        (0..300).map(|n| format!("{{\"index\":{{}}}}\n{{\"n\":{n},\"text\":\"some words\"}}\n")).collect();
    node.ok("bulk", "index=source", "refresh=true", &lines);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (node, over, folder) = (&node, &over, folder.as_str());
        for (op, path, query) in [
            ("index_stats", "", ""),
            ("index_stats", "index=short-1", ""),
            ("index_stats", "index=short-*", ""),
            ("index_segments", "", ""),
            ("node_indices", "", ""),
            ("cat_indices", "", ""),
            ("cat_segments", "", ""),
            ("cat_shards", "", "h=index,docs,segments.count"),
        ] {
            scope.spawn(move || {
                while !over.load(Relaxed) {
                    let (status, bytes) = node.call_raw(op, path, query, "");
                    let answer = serde_json::from_slice(&bytes)
                        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
                    check(op, status, &answer, folder);
                }
            });
        }
        for number in 0..2 {
            scope.spawn(move || {
                let body = format!(
                    "{{\"source\":{{\"index\":\"source\",\"size\":20}},\"dest\":{{\"index\":\"short-{number}\"}}}}"
                );
                while !over.load(Relaxed) {
                    let (status, answer) = node.call("reindex", "", "refresh=true", &body);
                    check("reindex", status, &answer, folder);
                }
            });
        }
        for _ in 0..12 {
            for number in 0..3 {
                let index = format!("index=short-{number}");
                let (status, answer) = node.call("index_doc", &index, "", "{\"n\":1}");
                check("index_doc", status, &answer, folder);
                let (status, answer) = node.call("delete_index", &index, "", "");
                check("delete_index", status, &answer, folder);
            }
        }
        over.store(true, Relaxed);
    });
}
