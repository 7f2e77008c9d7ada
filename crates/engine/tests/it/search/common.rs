//! An engine in a temporary directory, called by operation names as the HTTP layer does.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_engine::{CancelFlag, Engine, EngineError, EngineOptions, Reply, Request};
use tempfile::TempDir;

use crate::common::{Closing, workspace};

/// An open engine with a temporary data directory, which is removed with it.
pub struct Node {
    /// The first field: the engine is closed before its data is removed.
    _closing: Closing,
    pub engine: Arc<Engine>,
    _data: TempDir,
}

impl Node {
    /// Starts an engine without models, which is fast.
    pub fn start() -> Self {
        let data = TempDir::new().expect("a temporary directory");
        let mut options =
            EngineOptions::new(data.path().join("data"), data.path().join("no-runtime"), Vec::new());
        options.deploy_at_start = false;
        Self::open(data, options)
    }

    /// Starts an engine with the models of the workspace; with `deploy` the sparse one is deployed.
    pub fn with_models(deploy: bool) -> Self {
        let data = TempDir::new().expect("a temporary directory");
        let mut options =
            EngineOptions::new(data.path().join("data"), workspace::runtime(), workspace::models());
        options.deploy_at_start = deploy;
        Self::open(data, options)
    }

    fn open(data: TempDir, options: EngineOptions) -> Self {
        let engine = Engine::open(options).expect("the engine opens");
        Self { _closing: Closing(engine.clone()), engine, _data: data }
    }

    /// Runs an operation with raw bytes as its body.
    pub fn run(
        &self,
        op: &str,
        path: &[(&str, &str)],
        query: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Reply, EngineError> {
        let owned = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let request =
            Request { op: op.to_owned(), path: owned(path), query: owned(query), ..Request::default() };
        self.engine.execute(&request, body, &CancelFlag::default())
    }

    /// Runs an operation that has to succeed.
    pub fn ok(&self, op: &str, path: &[(&str, &str)], query: &[(&str, &str)], body: &Value) -> Value {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        match self.run(op, path, query, &bytes) {
            Ok(reply) => serde_json::from_slice(&reply.body).expect("JSON"),
            Err(error) => panic!("{op} {body}: {}", error.body()),
        }
    }

    /// Creates an index whose mapping has these properties.
    pub fn create(&self, index: &str, properties: &Value) {
        let body = json!({"mappings": {"properties": properties}});
        self.ok("create_index", &[("index", index)], &[], &body);
    }

    /// Writes documents with ids `1`, `2`, … or their own `_id`, and makes them searchable.
    pub fn load(&self, index: &str, documents: &[Value]) {
        let mut lines = String::new();
        for (number, document) in documents.iter().enumerate() {
            let mut document = document.clone();
            let own_id = document.as_object_mut().and_then(|object| object.shift_remove("_id"));
            let id = own_id.unwrap_or_else(|| json!((number + 1).to_string()));
            lines.push_str(&format!("{}\n{document}\n", json!({"index": {"_id": id}})));
        }
        let reply = self
            .run("bulk", &[("index", index)], &[("refresh", "true")], lines.as_bytes())
            .unwrap_or_else(|error| panic!("bulk: {}", error.body()));
        let answer: Value = serde_json::from_slice(&reply.body).expect("JSON");
        assert_eq!(answer["errors"], false, "{answer}");
    }

    /// Searches an index expression.
    pub fn search(&self, index: &str, body: &Value) -> Value {
        self.ok("search", &[("index", index)], &[], body)
    }

    /// The error body and status of a search that has to fail.
    pub fn search_error(&self, index: &str, body: &Value) -> Value {
        let bytes = body.to_string().into_bytes();
        match self.run("search", &[("index", index)], &[], &bytes) {
            Ok(reply) => panic!("{body} succeeded: {}", String::from_utf8_lossy(&reply.body)),
            Err(error) => error.body(),
        }
    }

    /// Ids of the hits of a query, best first.
    pub fn ids(&self, index: &str, query: &Value) -> Vec<String> {
        ids(&self.search(index, &json!({"query": query, "size": 100})))
    }

    /// Ids and scores of the hits of a query, best first.
    pub fn scores(&self, index: &str, query: &Value) -> Vec<(String, f64)> {
        scores(&self.search(index, &json!({"query": query, "size": 100})))
    }
}

/// Ids of the hits of an answer.
pub fn ids(answer: &Value) -> Vec<String> {
    scores(answer).into_iter().map(|(id, _)| id).collect()
}

/// Ids and scores of the hits of an answer.
pub fn scores(answer: &Value) -> Vec<(String, f64)> {
    let hits = answer["hits"]["hits"].as_array().expect("hits");
    let score = |hit: &Value| hit["_score"].as_f64().unwrap_or(f64::NAN);
    hits.iter().map(|hit| (hit["_id"].as_str().expect("an id").to_owned(), score(hit))).collect()
}

/// Asserts that ids and scores are as expected, scores up to float rounding.
pub fn assert_scores(found: &[(String, f64)], expected: &[(&str, f64)]) {
    let close = found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() <= 1e-5 * b.1.abs().max(1.0));
    assert!(close, "{found:?} is not {expected:?}");
}
