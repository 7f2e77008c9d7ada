//! What a snapshot is: who it is, and which blobs make it up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::deep;

/// Version of Elasticsearch's indices that snapshots are shown with.
pub const INDEX_VERSION: &str = "8.19.9-8.19.21";
/// That version as Elasticsearch's number.
pub const INDEX_VERSION_ID: u64 = 8_537_000;

/// What a listing says of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Info {
    pub snapshot: String,
    pub uuid: String,
    /// The version of the server that made it.
    pub server: String,
    pub include_global_state: bool,
    /// Whether the API keys are in it.
    #[serde(default)]
    pub has_keys: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "deep::read")]
    pub metadata: Option<Map<String, Value>>,
    /// Milliseconds since the epoch.
    pub start: u64,
    pub end: u64,
    /// The indices that are in it, by name.
    pub indices: BTreeMap<String, Figures>,
    /// Indices that could not be read, by name, and why.
    #[serde(default)]
    pub failures: BTreeMap<String, String>,
}

impl Info {
    /// `SUCCESS`, or `PARTIAL` where indices are missing.
    pub fn state(&self) -> &'static str {
        if self.failures.is_empty() { "SUCCESS" } else { "PARTIAL" }
    }

    /// Name and uuid, as errors show them.
    pub fn label(&self) -> String {
        format!("{}/{}", self.snapshot, self.uuid)
    }

    /// Names of all indices that were asked for, sorted.
    pub fn names(&self) -> Vec<&String> {
        let mut names: Vec<&String> = self.indices.keys().chain(self.failures.keys()).collect();
        names.sort();
        names
    }
}

/// What of an index is in a snapshot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Figures {
    pub files: u64,
    pub bytes: u64,
    /// Files that no earlier snapshot had brought.
    pub new_files: u64,
    pub new_bytes: u64,
    pub segments: u64,
    /// Milliseconds since the epoch.
    pub start: u64,
    /// How long it took, in milliseconds.
    pub took: u64,
}

/// What a restore needs of a snapshot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Content {
    pub indices: Vec<IndexContent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<GlobalState>,
    #[serde(default)]
    pub models: Vec<ModelContent>,
    /// The API keys, as the text of the file that they are kept in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
}

impl Content {
    /// The files of everything that is in it.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        let indices = self.indices.iter().flat_map(|index| &index.files);
        indices.chain(self.models.iter().flat_map(|model| &model.files))
    }
}

/// An index: its metadata as the data directory keeps it, its aliases, and the files of one commit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct IndexContent {
    pub name: String,
    /// Uuid of the index that was read.
    pub uuid: String,
    /// The folder of segments that was read: an upgrade writes other content under the same names into another one.
    pub folder: String,
    #[serde(deserialize_with = "deep::read")]
    pub metadata: Value,
    #[serde(deserialize_with = "deep::read")]
    pub aliases: Map<String, Value>,
    pub files: Vec<FileEntry>,
}

/// A file and the blob with its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    pub name: String,
    pub length: u64,
    /// SHA-256 of the content in hexadecimal digits, which is the blob's name.
    pub sha256: String,
}

/// What belongs to no index.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct GlobalState {
    #[serde(deserialize_with = "deep::read")]
    pub pipelines: Map<String, Value>,
    /// `index`, `component` and `legacy`, each by name.
    #[serde(deserialize_with = "deep::read")]
    pub templates: Value,
    /// Persistent settings of the cluster, by dotted name.
    pub settings: BTreeMap<String, String>,
    /// Inference endpoints by id.
    #[serde(deserialize_with = "deep::read")]
    pub inference: Map<String, Value>,
}

/// An uploaded model: what the data directory says of it, and the files of its folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ModelContent {
    pub id: String,
    #[serde(deserialize_with = "deep::read")]
    pub config: Value,
    pub files: Vec<FileEntry>,
}
