//! Helpers for the tests of the index: small documents, and a model to compare the index with.

#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use sparrow_mapping::{Limits, Mapping};
use sparrow_tantivy_index::{IndexOptions, SparrowIndex, WriteDocument};

pub fn mapping(properties: Value) -> Mapping {
    Mapping::parse(&json!({ "dynamic": "strict", "properties": properties })).expect("valid mapping")
}

pub fn books() -> Mapping {
    mapping(json!({
        "title": {"type": "text"},
        "tag": {"type": "keyword"},
        "n": {"type": "long"},
        "v": {"type": "sparse_vector"},
        "d": {"type": "dense_vector", "dims": 3, "similarity": "l2_norm"}
    }))
}

pub fn document(mapping: &Mapping, id: &str, seq_no: u64, source: &Value, replaces: bool) -> WriteDocument {
    let (parsed, wider) = mapping.parse_document(id, source, &Limits::default()).expect("valid document");
    assert!(wider.is_none(), "the test's mapping is complete");
    WriteDocument {
        id: id.to_owned(),
        seq_no,
        version: seq_no + 1,
        parsed,
        source: source.to_string().into_bytes(),
        replaces,
    }
}

pub fn put(index: &SparrowIndex, id: &str, seq_no: u64, source: &Value) {
    let mapping = index.mapping();
    index.add(document(&mapping, id, seq_no, source, true)).expect("add");
}

/// The documents that the index should hold.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    pub docs: BTreeMap<String, (u64, Value)>,
}

/// A weight rounded to half precision, the precision of stored weights.
fn rounded(weight: f32) -> f32 {
    half::f16::from_f32(weight).to_f32()
}

/// Compares the results of every way of reading the index with the model.
pub fn check(index: &SparrowIndex, model: &Model) {
    let snapshot = index.searcher();
    assert_eq!(snapshot.num_docs(), model.docs.len() as u64);
    for (id, (seq_no, source)) in &model.docs {
        let meta = snapshot.lookup(id).expect("lookup").unwrap_or_else(|| panic!("{id} is missing"));
        assert_eq!((meta.seq_no, meta.version), (*seq_no, seq_no + 1), "{id}");
        let stored = snapshot.fetch(meta.addr).expect("fetch");
        assert_eq!(&stored.id, id);
        assert_eq!(serde_json::from_slice::<Value>(&stored.source).expect("JSON"), *source, "{id}");
        for field in ["v", "w"] {
            let expected: Option<BTreeMap<String, f32>> = source.get(field).map(|tokens| {
                tokens
                    .as_object()
                    .expect("tokens")
                    .iter()
                    .map(|(token, weight)| (token.clone(), rounded(weight.as_f64().expect("weight") as f32)))
                    .collect()
            });
            let found = snapshot.sparse_tokens(meta.addr, field).map(|tokens| {
                tokens.pairs().iter().map(|(token, weight)| (token.to_string(), *weight)).collect()
            });
            assert_eq!(found, expected, "{field} of {id}");
        }
        let expected: Option<Vec<f32>> =
            source.get("d").map(|vector| serde_json::from_value(vector.clone()).expect("vector"));
        assert_eq!(snapshot.dense_vector(meta.addr, "d"), expected, "{id}");
    }
    assert!(snapshot.lookup("never written").expect("lookup").is_none());
    // The whole list and the batches agree, in sequence order.
    let mut expected: Vec<u64> = model.docs.values().map(|(seq_no, _)| *seq_no).collect();
    expected.sort_unstable();
    let all: Vec<u64> = snapshot.scan_all(None).into_iter().map(|(seq_no, _)| seq_no).collect();
    assert_eq!(all, expected);
    let mut batched = Vec::new();
    loop {
        let batch = snapshot.scan_matching(None, batched.last().copied(), 7);
        if batch.is_empty() {
            break;
        }
        batched.extend(batch.into_iter().map(|(seq_no, _)| seq_no));
    }
    assert_eq!(batched, expected);
}

/// Copies an index directory in the state in which a crash would leave it.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("create");
    for entry in std::fs::read_dir(from).expect("list") {
        let entry = entry.expect("entry");
        // Files may go while the directory is copied.
        let _ = std::fs::copy(entry.path(), to.join(entry.file_name()));
    }
}

pub fn options(threads: usize) -> IndexOptions {
    IndexOptions { indexing_threads: threads, memory_budget: threads * 15_000_000, ..IndexOptions::default() }
}
