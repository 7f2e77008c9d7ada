//! Tests of queries on small indexes, against results computed by hand or by naive evaluation.

mod cancel;
mod clauses;
mod dis_max;
mod executors;
mod explain;
mod functions;
mod knn;
mod lexical;
mod like;
mod max_score;
mod nested;
mod pruning;
mod random;
mod ranges;
mod scores;
mod semantic;
mod sparse;
mod syntax;
mod unit;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::query::{QueryError, SearchOptions, TopDocs};
use crate::{IndexOptions, Snapshot, SparrowIndex, WriteDocument};
use sparrow_mapping::{Limits, Mapping};
use sparrow_query::{Query, QueryStringQuery};
use sparrow_runtime::work::Counted;

/// Charges what a query allocates to its request, as the allocator of the server does.
#[global_allocator]
static ALLOCATOR: Counted<std::alloc::System> = Counted(std::alloc::System);

/// An index with one segment for each batch of documents.
pub(crate) struct Fixture {
    _dir: TempDir,
    index: SparrowIndex,
    next_seq_no: u64,
}

impl Fixture {
    pub(crate) fn new(properties: Value) -> Self {
        Self::with_options(properties, IndexOptions::default())
    }

    fn with_options(properties: Value, options: IndexOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mapping = Mapping::parse(&json!({ "properties": properties })).unwrap();
        let options = IndexOptions { memory_budget: 15_000_000, ..options };
        let index = SparrowIndex::create(&dir.path().join("index"), &mapping, &options).unwrap();
        Self { _dir: dir, index, next_seq_no: 0 }
    }

    /// Writes documents, replacing those with the same id, and makes them visible as one segment.
    pub(crate) fn batch(&mut self, docs: &[(&str, Value)]) -> &mut Self {
        for (id, source) in docs {
            let mapping = self.index.mapping();
            let (parsed, wider) = mapping.parse_document(id, source, &Limits::default()).unwrap();
            if let Some(wider) = wider {
                self.index.update_mapping(&wider).unwrap();
            }
            self.index
                .add(WriteDocument {
                    id: (*id).to_owned(),
                    seq_no: self.next_seq_no,
                    version: 1,
                    parsed,
                    source: source.to_string().into_bytes(),
                    replaces: true,
                })
                .unwrap();
            self.next_seq_no += 1;
        }
        self.index.refresh().unwrap();
        self
    }

    pub(crate) fn delete(&mut self, id: &str) -> &mut Self {
        self.index.delete(id).unwrap();
        self.index.refresh().unwrap();
        self
    }

    /// Merges all segments of the index into one.
    pub(crate) fn merge(&mut self) -> &mut Self {
        self.index.merge_all().unwrap();
        self
    }

    pub(crate) fn snapshot(&self) -> std::sync::Arc<Snapshot> {
        self.index.searcher()
    }

    fn top(&self, query: &Query, options: &SearchOptions) -> TopDocs {
        self.snapshot().search(query, options).unwrap()
    }

    /// Ids and scores of all hits, best first.
    fn hits(&self, query: impl Into<Query>) -> Vec<(String, f32)> {
        let options = SearchOptions { size: 10_000, ..SearchOptions::default() };
        self.named(&self.top(&query.into(), &options))
    }

    fn named(&self, top: &TopDocs) -> Vec<(String, f32)> {
        let snapshot = self.snapshot();
        top.hits.iter().map(|hit| (snapshot.fetch(hit.addr).unwrap().id, hit.score)).collect()
    }

    /// Ids of all hits, sorted and joined by spaces.
    fn ids(&self, query: impl Into<Query>) -> String {
        let mut ids: Vec<String> = self.hits(query).into_iter().map(|(id, _)| id).collect();
        ids.sort();
        ids.join(" ")
    }

    fn error(&self, query: impl Into<Query>) -> QueryError {
        self.snapshot().search(&query.into(), &SearchOptions::default()).unwrap_err()
    }

    /// Ids of the hits of a query in Lucene's syntax, or the message of the error.
    fn lucene(&self, text: &str) -> String {
        self.lucene_with(QueryStringQuery::new(text))
    }

    fn lucene_with(&self, query: QueryStringQuery) -> String {
        let query = Query::new(sparrow_query::QueryKind::QueryString(query));
        match self.snapshot().search(&query, &SearchOptions::default()) {
            Ok(_) => self.ids(query),
            Err(error) => error.reason(),
        }
    }
}

fn assert_close(found: f32, expected: f64) {
    let tolerance = 1e-5 * expected.abs().max(1e-3);
    assert!((f64::from(found) - expected).abs() <= tolerance, "{found} is not {expected}");
}
