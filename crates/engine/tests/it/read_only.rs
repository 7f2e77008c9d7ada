//! The file system becomes read-only while the server runs, as operating systems do to one with errors.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::Node;
use sparrow_file_system::{Call, Observer, Verdict};

/// A file system that is read-only while the switch is on.
#[derive(Default)]
struct MayBecomeReadOnly(AtomicBool);

impl Observer for MayBecomeReadOnly {
    fn before(&self, call: &Call<'_>) -> Verdict {
        match self.0.load(SeqCst) && call.kind.changes() {
            true => Verdict::Fail(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)),
            false => Verdict::Allow,
        }
    }
}

fn write(node: &Node, id: u32) -> (u16, String) {
    let (status, answer) = node.call("index_doc", &format!("index=a&id={id}"), "", r#"{"x":1}"#);
    (status, answer["error"]["type"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn writes_are_refused_reads_go_on_and_all_is_well_when_it_can_be_written_again() {
    let node = Node::start();
    assert_eq!(write(&node, 1).0, 201);
    node.ok("flush", "index=a", "", "");
    node.ok("refresh", "index=a", "", "");
    assert_eq!(write(&node, 2).0, 201);
    let files = Arc::new(MayBecomeReadOnly::default());
    let guard = sparrow_file_system::observe(node.folder.path(), files.clone());
    files.0.store(true, SeqCst);
    for id in 10..15 {
        assert_eq!(write(&node, id), (503, "cluster_block_exception".to_owned()));
    }
    for (op, path, body) in [
        ("create_index", "index=b", "{}"),
        ("put_mapping", "index=a", r#"{"properties":{"y":{"type":"keyword"}}}"#),
        ("put_pipeline", "pipeline=p", r#"{"processors":[]}"#),
    ] {
        let (status, _, reason) = node.error(op, path, "", body);
        assert!(status >= 500, "{op}: {reason}");
        let folder = node.folder.path().display().to_string();
        assert!(!reason.contains(&folder), "{op}: {reason}");
    }
    // Background work fails meanwhile, again and again.
    std::thread::sleep(Duration::from_secs(2));
    for id in [1, 2] {
        node.ok("get_doc", &format!("index=a&id={id}"), "", "");
    }
    assert!(node.hits("a", r#"{"query":{"match_all":{}}}"#).iter().any(|(id, _)| id == "1"));
    assert_eq!(node.call("get_index", "index=b", "", "").0, 404);

    files.0.store(false, SeqCst);
    let began = Instant::now();
    while write(&node, 3).0 >= 300 {
        assert!(began.elapsed() < Duration::from_secs(60), "writes are refused for good");
        std::thread::sleep(Duration::from_millis(50));
    }
    node.ok("create_index", "index=b", "", "{}");
    node.ok("refresh", "index=a", "", "");
    drop(guard);
    let node = node.crash();
    node.ok("refresh", "index=a", "", "");
    let there: Vec<String> =
        node.hits("a", r#"{"query":{"match_all":{}}}"#).into_iter().map(|(id, _)| id).collect();
    for id in ["1", "2", "3"] {
        assert!(there.contains(&id.to_owned()), "[{id}] was acknowledged: {there:?}");
    }
    node.engine.close();
}

#[test]
fn a_start_on_it_ends_with_one_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = Arc::new(MayBecomeReadOnly::default());
    let _guard = sparrow_file_system::observe(folder.path(), files.clone());
    files.0.store(true, SeqCst);
    let Err(refused) = sparrow_engine::Engine::open(crate::common::options(folder.path())) else {
        panic!("it opened");
    };
    let path = folder.path().display();
    assert!(
        refused.to_string().starts_with(&format!("the data directory {path} cannot be written: ")),
        "{refused}"
    );
    files.0.store(false, SeqCst);
    Node::open(folder, |_| {}).engine.close();
}
