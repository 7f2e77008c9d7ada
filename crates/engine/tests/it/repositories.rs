//! A repository with one snapshot whose file can be replaced by another with correct checksums.

use std::fs;
use std::path::PathBuf;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::common::Node;

/// A folder of repositories, with the snapshot `s` in `r`.
pub struct Repository {
    folder: tempfile::TempDir,
    path: PathBuf,
    /// The snapshot's file as the engine wrote it.
    file: Vec<u8>,
    /// Uuids, hashes and names that differ in every run, each with the placeholder for it in a fuzzing input.
    names: Vec<(String, String)>,
}

impl Repository {
    /// Makes an index with twenty documents, an alias, a pipeline and a template, and a snapshot of them.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut it = Self { folder, path: PathBuf::new(), file: Vec::new(), names: Vec::new() };
        let node = it.node();
        let mappings = json!({"properties": {
            "t": {"type": "text", "analyzer": "own"}, "k": {"type": "keyword"}, "n": {"type": "integer"},
            "v": {"type": "sparse_vector"}, "e": {"type": "dense_vector", "dims": 3},
        }});
        let analyzer = json!({"own": {"type": "custom", "tokenizer": "standard", "filter": ["lowercase"]}});
        let body = json!({
            "settings": {"index": {"refresh_interval": "5s"}, "analysis": {"analyzer": analyzer}},
            "mappings": mappings,
            "aliases": {"a": {"filter": {"term": {"k": "x"}}, "is_write_index": true}},
        });
        node.ok("create_index", "index=i", "", &body.to_string());
        let lines: String = (0..20)
            .map(|n| {
                let document =
                    json!({"t": "quick fox", "k": "x", "n": n, "v": {"fox": 0.5}, "e": [1, 2, n + 1]});
                format!("{{\"index\":{{\"_id\":\"{n}\"}}}}\n{document}\n")
            })
            .collect();
        node.ok("bulk", "index=i", "refresh=true", &lines);
        let pipeline = json!({"processors": [{"set": {"field": "n", "value": 1}}]});
        node.ok("put_pipeline", "pipeline=p", "", &pipeline.to_string());
        let template = json!({"index_patterns": ["x*"], "template": {"mappings": {"properties": {"y": {"type": "date"}}}}});
        node.ok("put_index_template", "name=t", "", &template.to_string());
        let settings = json!({"persistent": {"action.auto_create_index": "x*"}});
        node.ok("put_cluster_settings", "", "", &settings.to_string());
        node.ok("create_snapshot", "repository=r&snapshot=s", "wait_for_completion=true", "");
        node.engine.close();
        let snapshots = it.folder.path().join("repositories/r/snapshots");
        it.path = fs::read_dir(snapshots).unwrap().next().unwrap().unwrap().path();
        it.file = fs::read(&it.path).unwrap();
        it.names = names(&it.file);
        it
    }

    /// A new engine with the repository registered as `r`.
    pub fn node(&self) -> Node {
        let path = self.folder.path().join("repositories");
        let node = Node::start_with(|options| options.repo_path = Some(path));
        let body = json!({"type": "fs", "settings": {"location": "r"}});
        node.ok("put_repository", "repository=r", "verify=false", &body.to_string());
        node
    }

    /// The snapshot's file as it was written.
    pub fn file(&self) -> Vec<u8> {
        self.file.clone()
    }

    /// The two values in the snapshot's file as a JSON array, with placeholders for what differs in every run.
    pub fn seed(&self) -> Vec<u8> {
        let values = values(&self.file);
        let mut text = json!(values).to_string();
        for (own, name) in &self.names {
            text = text.replace(own, name);
        }
        text.into_bytes()
    }

    /// Replaces the content of the snapshot's file.
    pub fn write(&self, file: &[u8]) {
        fs::write(&self.path, file).unwrap();
    }

    /// Runs every operation that reads the snapshot's file, except a restore.
    pub fn look(&self, node: &Node) {
        for op in ["get_snapshot", "snapshot_status", "cat_snapshots"] {
            node.call_raw(op, "repository=r&snapshot=s", "", "");
        }
        node.call_raw("get_snapshot", "repository=r&snapshot=_all", "verbose=false", "");
    }

    /// Writes an input like [`Repository::seed`] as the snapshot's file and restores it. Gives the number of documents restored, or
    /// the status and body of the refusal. The restored index is removed again.
    pub fn restore(&self, node: &Node, input: &[u8], global: bool) -> Result<u64, (u16, String)> {
        let mut text = String::from_utf8_lossy(input).into_owned();
        for (own, name) in &self.names {
            text = text.replace(name, own);
        }
        let lines = match serde_json::from_str::<Vec<Box<RawValue>>>(&text) {
            Ok(values) => values.iter().map(|value| line(value.get())).collect(),
            Err(_) => line(&text),
        };
        self.write(lines.as_bytes());
        self.look(node);
        let body = json!({
            "include_global_state": global, "include_models": true,
            "rename_pattern": "(.+)", "rename_replacement": "back-$1",
        });
        let path = "repository=r&snapshot=s";
        let (status, answer) =
            node.call_raw("restore_snapshot", path, "wait_for_completion=true", &body.to_string());
        let query = json!({"query": {"match": {"t": "fox"}}, "sort": ["n"], "aggs": {"k": {"terms": {"field": "k"}}}});
        let found = node.call("search", "index=back-*", "", &query.to_string());
        let (removed, error) = node.call_raw("delete_index", "index=back-*", "", "");
        assert!(removed < 500, "{}", String::from_utf8_lossy(&error));
        if status >= 300 {
            return Err((status, String::from_utf8_lossy(&answer).into_owned()));
        }
        match found {
            (200, found) => Ok(found["hits"]["total"]["value"].as_u64().unwrap_or_default()),
            (status, error) => Err((status, error.to_string())),
        }
    }
}

/// The `value` of each line of a snapshot file.
fn values(file: &[u8]) -> Vec<Value> {
    let lines = file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()["value"].take()).collect()
}

/// A line of a snapshot file: this value with a correct checksum.
fn line(value: &str) -> String {
    let hash: String = Sha256::digest(value).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{{\"format\":1,\"sha256\":\"{hash}\",\"value\":{value}}}\n")
}

/// Uuids, hashes of blobs and names of segments in a snapshot file, with the placeholder for each.
fn names(file: &[u8]) -> Vec<(String, String)> {
    let values = values(file);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut names = vec![
        (text(&values[0]["uuid"]), "@snapshot".to_owned()),
        (text(&values[1]["indices"][0]["uuid"]), "@index".to_owned()),
    ];
    let mut files: Vec<(String, String, String)> = Vec::new();
    for file in values[1]["indices"][0]["files"].as_array().into_iter().flatten() {
        let name = text(&file["name"]);
        let (segment, kind) = name.split_once('.').unwrap_or(("", &name));
        files.push((kind.to_owned(), segment.to_owned(), text(&file["sha256"])));
    }
    files.sort();
    for (number, (_, segment, sha256)) in files.into_iter().enumerate() {
        names.push((sha256, format!("@blob{number}@")));
        if segment.len() == 32 && names.iter().all(|(own, _)| *own != segment) {
            names.push((segment, format!("@segment{number}@")));
        }
    }
    names
}
