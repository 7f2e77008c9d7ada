//! A small index for tests.

use serde_json::{Value, json};
use sparrow_mapping::{Limits, Mapping};
use sparrow_tantivy_index::{IndexOptions, Snapshot, SparrowIndex, WriteDocument};
use tempfile::TempDir;

/// An index with one segment per batch of documents.
pub struct Fixture {
    _dir: TempDir,
    index: SparrowIndex,
    next_seq_no: u64,
}

impl Fixture {
    pub fn new(properties: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mapping = Mapping::parse(&json!({ "properties": properties })).unwrap();
        let options = IndexOptions { memory_budget: 15_000_000, ..IndexOptions::default() };
        let index = SparrowIndex::create(&dir.path().join("index"), &mapping, &options).unwrap();
        Self { _dir: dir, index, next_seq_no: 0 }
    }

    /// Writes documents, replacing those of the same id, and makes them visible as a segment.
    pub fn batch(&mut self, docs: &[(&str, Value)]) {
        for (id, source) in docs {
            let mapping = self.index.mapping();
            let (parsed, wider) = mapping.parse_document(id, source, &Limits::default()).unwrap();
            if let Some(wider) = wider {
                self.index.update_mapping(&wider).unwrap();
            }
            let document = WriteDocument {
                id: (*id).to_owned(),
                seq_no: self.next_seq_no,
                version: 1,
                parsed,
                source: source.to_string().into_bytes(),
                replaces: true,
            };
            self.index.add(document).unwrap();
            self.next_seq_no += 1;
        }
        self.index.refresh().unwrap();
    }

    pub fn delete(&mut self, id: &str) {
        self.index.delete(id).unwrap();
        self.index.refresh().unwrap();
    }

    pub fn snapshot(&self) -> std::sync::Arc<Snapshot> {
        self.index.searcher()
    }
}
