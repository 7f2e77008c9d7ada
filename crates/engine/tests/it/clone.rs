//! Copies of indices: what goes on while one is made, and what is left of one that fails.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::Node;
use serde_json::json;
use sparrow_file_system::{Call, Kind, Observer, Verdict};

const PATIENCE: Duration = Duration::from_secs(60);

/// A disk on which making hard links waits while `wait` is set, and fails while `fail` is set.
#[derive(Default)]
struct SlowLinks {
    wait: AtomicBool,
    fail: AtomicBool,
    waiting: AtomicU64,
}

impl Observer for SlowLinks {
    fn before(&self, call: &Call<'_>) -> Verdict {
        // Where the file cannot be linked it is copied.
        let made = call.kind == Kind::Create && call.path.ends_with("meta.json");
        if call.kind != Kind::Link && !made {
            return Verdict::Allow;
        }
        self.waiting.fetch_add(1, SeqCst);
        let began = Instant::now();
        while self.wait.load(SeqCst) && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(2));
        }
        match self.fail.load(SeqCst) {
            true => Verdict::Fail(io::Error::other("expected by the test")),
            false => Verdict::Allow,
        }
    }
}

fn folders(node: &Node) -> usize {
    std::fs::read_dir(node.folder.path().join("indices")).expect("the indices").count()
}

fn source() -> (Node, Arc<SlowLinks>, sparrow_file_system::Guard) {
    let node = Node::start();
    for index in ["source", "another"] {
        node.ok("index_doc", &format!("index={index}&id=1"), "", r#"{"x":1}"#);
        node.ok("put_settings", &format!("index={index}"), "", r#"{"index.blocks.write":true}"#);
        node.ok("flush", &format!("index={index}"), "", "");
    }
    let links = Arc::new(SlowLinks::default());
    let guard = sparrow_file_system::observe(node.folder.path(), links.clone());
    (node, links, guard)
}

#[test]
fn other_indices_are_made_while_one_is_copied_and_the_name_goes_to_the_first() {
    let (node, links, _guard) = source();
    links.wait.store(true, SeqCst);
    std::thread::scope(|scope| {
        let copies: Vec<_> = [("source", "target"), ("another", "taken")]
            .map(|(source, target)| {
                let path = format!("index={source}&target={target}");
                let node = &node;
                scope.spawn(move || node.call("clone_index", &path, "", "{}"))
            })
            .into();
        while links.waiting.load(SeqCst) < 2 {
            assert!(!copies.iter().any(|copy| copy.is_finished()), "the copies wait for the disk");
            std::thread::sleep(Duration::from_millis(2));
        }
        node.ok("create_index", "index=other", "", "{}");
        node.ok("create_index", "index=taken", "", "{}");
        node.ok("update_aliases", "", "", r#"{"actions":[{"add":{"index":"other","alias":"also"}}]}"#);
        node.ok("delete_index", "index=other", "", "");
        assert!(!copies.iter().any(|copy| copy.is_finished()), "they waited for the copies");
        assert_eq!(
            node.call("get_index", "index=target", "", "").0,
            404,
            "it has no name before it is whole"
        );
        links.wait.store(false, SeqCst);
        let answers: Vec<_> = copies.into_iter().map(|copy| copy.join().expect("no panic")).collect();
        assert_eq!(answers[0].0, 200, "{}", answers[0].1);
        assert_eq!(answers[1].0, 400, "{}", answers[1].1);
        assert_eq!(answers[1].1["error"]["type"], "resource_already_exists_exception");
    });
    assert_eq!((node.count("target"), node.count("taken")), (1, 0));
    assert_eq!(folders(&node), 4, "nothing is left of the copy that came too late");
}

#[test]
fn nothing_is_left_of_a_copy_that_fails() {
    let (node, links, _guard) = source();
    links.fail.store(true, SeqCst);
    let (status, _) = node.call("clone_index", "index=source&target=target", "", "{}");
    assert!(status >= 500 && links.waiting.load(SeqCst) > 0, "{status}");
    assert_eq!(folders(&node), 2);
    links.fail.store(false, SeqCst);
    node.ok("clone_index", "index=source&target=target", "", "{}");
    assert_eq!((node.count("target"), folders(&node)), (1, 3));
    // An index that appears in place of one that is being copied is not it.
    let (status, kind, _) = node.error("clone_index", "index=source&target=target", "", "{}");
    assert_eq!((status, kind.as_str()), (400, "resource_already_exists_exception"));
}

#[test]
fn settings_that_are_given_as_null_the_copy_does_not_have() {
    let (node, _, _guard) = source();
    node.ok("put_settings", "index=source", "", r#"{"index.refresh_interval":"7s"}"#);
    for (target, body, block, interval) in [
        ("plain", json!({}), json!("true"), json!("7s")),
        ("open", json!({"settings": {"index.blocks.write": null}}), json!(null), json!("7s")),
        (
            "nested",
            json!({"settings": {"index": {"blocks": {"write": null}, "refresh_interval": null}}}),
            json!(null),
            json!(null),
        ),
    ] {
        node.ok("clone_index", &format!("index=source&target={target}"), "", &body.to_string());
        let shown = node.ok("get_settings", &format!("index={target}"), "", "");
        let shown = &shown[target]["settings"]["index"];
        assert_eq!((&shown["blocks"]["write"], &shown["refresh_interval"]), (&block, &interval), "{target}");
        let (status, _) = node.call("index_doc", &format!("index={target}&id=2"), "", r#"{"x":2}"#);
        assert_eq!(status, if block.is_null() { 201 } else { 403 }, "{target}");
    }
    let body = r#"{"settings":{"index.analysis.analyzer.a.type":null}}"#;
    let (status, _, reason) = node.error("clone_index", "index=source&target=never", "", body);
    assert!(status == 400 && reason.contains("[index.analysis.analyzer.a.type]"), "{reason}");
}
