//! Description of a snapshot: its identity and contents, and the blobs that it consists of.

use std::collections::BTreeMap;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::deep;

/// Range of Elasticsearch index versions that is reported for snapshots.
pub const INDEX_VERSION: &str = "8.19.9-8.19.21";
/// Number of that index version in Elasticsearch.
pub const INDEX_VERSION_ID: u64 = 8_537_000;

/// Description of a snapshot as listings show it; the first line of its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Info {
    pub snapshot: String,
    pub uuid: String,
    /// Version of the server that created the snapshot.
    pub server: String,
    pub include_global_state: bool,
    /// Whether the snapshot contains the API keys.
    #[serde(default)]
    pub has_keys: bool,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "metadata")]
    pub metadata: Option<Map<String, Value>>,
    /// Start of the creation in milliseconds since the epoch; `end` likewise.
    pub start: u64,
    pub end: u64,
    /// Statistics of the indices in the snapshot, by name.
    pub indices: BTreeMap<String, Figures>,
    /// Reasons why indices could not be read, by index name.
    #[serde(default)]
    pub failures: BTreeMap<String, String>,
}

/// Largest `metadata` in bytes of JSON, as in Elasticsearch.
pub(super) const MOST_METADATA: usize = 1024;

/// Reads `metadata` that is no larger than what a request may give: every listing holds that of all snapshots.
fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Map<String, Value>>, D::Error> {
    let text = Box::<RawValue>::deserialize(deserializer)?;
    if text.get().len() > MOST_METADATA {
        return Err(D::Error::custom(format!("its metadata is larger than {MOST_METADATA} bytes")));
    }
    serde_json::from_str(text.get()).map_err(D::Error::custom)
}

impl Info {
    /// `SUCCESS`, or `PARTIAL` if indices are missing.
    pub fn state(&self) -> &'static str {
        if self.failures.is_empty() { "SUCCESS" } else { "PARTIAL" }
    }

    /// `name/uuid`, as error messages show it.
    pub fn label(&self) -> String {
        format!("{}/{}", self.snapshot, self.uuid)
    }

    /// Names of all requested indices, present or failed, sorted.
    pub fn names(&self) -> Vec<&String> {
        let mut names: Vec<&String> = self.indices.keys().chain(self.failures.keys()).collect();
        names.sort();
        names
    }
}

/// Statistics of an index in a snapshot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Figures {
    pub files: u64,
    pub bytes: u64,
    /// Number of files that were not in an earlier snapshot; `new_bytes` is their size.
    pub new_files: u64,
    pub new_bytes: u64,
    pub segments: u64,
    /// Start of copying, in milliseconds since the epoch.
    pub start: u64,
    /// Duration of copying, in milliseconds.
    pub took: u64,
}

/// What a restore needs of a snapshot; the second line of its file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Content {
    pub indices: Vec<IndexContent>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<GlobalState>,
    #[serde(default)]
    pub models: Vec<ModelContent>,
    /// API keys, as the text of the file that holds them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
}

impl Content {
    /// All files of the snapshot's indices and models.
    pub fn files(&self) -> impl Iterator<Item = &FileEntry> {
        let indices = self.indices.iter().flat_map(|index| &index.files);
        indices.chain(self.models.iter().flat_map(|model| &model.files))
    }
}

/// An index in a snapshot: its metadata as the data directory stores it, its aliases, and the files of one
/// commit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct IndexContent {
    pub name: String,
    /// Uuid of the source index.
    pub uuid: String,
    /// Name of the source segment folder; an upgrade writes different content under the same file names into
    /// another folder.
    pub folder: String,
    #[serde(deserialize_with = "deep::read")]
    pub metadata: Value,
    #[serde(deserialize_with = "deep::read")]
    pub aliases: Map<String, Value>,
    pub files: Vec<FileEntry>,
}

/// A file of an index or model, and the blob with its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    pub name: String,
    pub length: u64,
    /// SHA-256 of the content, 64 lower-case hexadecimal digits; also the name of the blob.
    pub sha256: String,
}

/// Cluster state that belongs to no index.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct GlobalState {
    #[serde(deserialize_with = "deep::read")]
    pub pipelines: Map<String, Value>,
    /// Templates in three objects, `index`, `component` and `legacy`, each by name.
    #[serde(deserialize_with = "deep::read")]
    pub templates: Value,
    /// Persistent cluster settings, by dotted name.
    pub settings: BTreeMap<String, String>,
    /// Inference endpoints by id.
    #[serde(deserialize_with = "deep::read")]
    pub inference: Map<String, Value>,
}

/// An uploaded model: its configuration in the data directory, and the files of its folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ModelContent {
    pub id: String,
    #[serde(deserialize_with = "deep::read")]
    pub config: Value,
    pub files: Vec<FileEntry>,
}
