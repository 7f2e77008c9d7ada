//! What an index that nobody writes to costs, in memory and threads.

use std::fs;

use crate::common::Node;

const INDICES: usize = 200;

/// A number from this process's `/proc/self/status`: memory in kB, or the number of threads.
fn status(name: &str) -> i64 {
    let text = fs::read_to_string("/proc/self/status").expect("the status of the process");
    let line = text.lines().find(|line| line.starts_with(name)).expect("the figure");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

/// Average cost of one index since `before`: resident memory in kB, and threads.
fn cost_since(before: (i64, i64)) -> (f64, f64) {
    let each = |now: i64, then: i64| (now - then) as f64 / INDICES as f64;
    (each(status("VmRSS"), before.0), each(status("Threads"), before.1))
}

#[test]
fn an_index_that_nobody_writes_to_costs_little_memory_and_no_thread() {
    let _alone = crate::PROCESS.lock();
    let now = || (status("VmRSS"), status("Threads"));
    let node = Node::start();
    // What the first index needs is there for all of them.
    node.ok("index_doc", "index=first&id=1", "refresh=true", r#"{"text":"house"}"#);
    let before = now();
    let mapping =
        r#"{"mappings":{"properties":{"text":{"type":"text"},"k":{"type":"keyword"},"n":{"type":"long"}}}}"#;
    for number in 0..INDICES {
        node.ok("create_index", &format!("index=empty-{number}"), "", mapping);
    }
    let made = cost_since(before);
    // A wider mapping opens an index anew.
    for number in 0..INDICES {
        let wider = r#"{"properties":{"title":{"type":"text"}}}"#;
        node.ok("put_mapping", &format!("index=empty-{number}"), "", wider);
    }
    let widened = cost_since(before);
    for (kilobytes, threads) in [made, widened] {
        assert!(kilobytes < 500.0, "an empty index takes {kilobytes:.0} kB");
        assert!(threads < 0.1, "an empty index has {threads} threads");
    }
    // It takes writes all the same.
    node.ok("index_doc", "index=empty-7&id=1", "refresh=true", r#"{"text":"house"}"#);
    assert_eq!(node.count("empty-*"), 1);
    let node = node.restart();
    assert_eq!(node.count("empty-*"), 1);
    node.engine.close();
}
