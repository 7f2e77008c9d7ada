//! Versions of documents that several threads write while refreshes move them from memory to segments.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::common::Node;

const WRITERS: usize = 4;
const ROUNDS: usize = 150;
const DOCUMENTS: usize = 3;

#[test]
fn each_write_counts_once() {
    let node = Node::start();
    node.ok("create_index", "index=a", "", r#"{"settings":{"refresh_interval":"-1"}}"#);
    let done = AtomicBool::new(false);
    let versions: Vec<(usize, u64)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let node = &node;
                scope.spawn(move || {
                    let write = |round: usize| {
                        let id = (writer + round) % DOCUMENTS;
                        let answer = node.ok("index_doc", &format!("index=a&id={id}"), "", r#"{"x":1}"#);
                        (id, answer["_version"].as_u64().expect("a version"))
                    };
                    (0..ROUNDS).map(write).collect::<Vec<_>>()
                })
            })
            .collect();
        let (done, node) = (&done, &node);
        scope.spawn(move || {
            while !done.load(SeqCst) {
                node.ok("refresh", "index=a", "", "");
            }
        });
        let versions = writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect();
        done.store(true, SeqCst);
        versions
    });
    node.ok("refresh", "index=a", "", "");
    assert_eq!(node.count("a"), DOCUMENTS as u64, "no document is there twice");
    for id in 0..DOCUMENTS {
        let of_document: Vec<u64> =
            versions.iter().filter(|(one, _)| *one == id).map(|(_, version)| *version).collect();
        let distinct: BTreeSet<u64> = of_document.iter().copied().collect();
        assert_eq!(distinct.len(), of_document.len(), "no version was given twice");
        assert_eq!(distinct.last().copied(), Some(of_document.len() as u64));
    }
    node.engine.close();
}
