//! How an engine is set up.

use std::path::PathBuf;

use serde::Deserialize;
use sparrow_tantivy_index::Format;

use sparrow_models::AdaptiveTiming;

/// Everything that the HTTP layer tells the engine, as one JSON object with camelCase keys.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EngineOptions {
    /// The data directory; created when it is not there.
    pub data: PathBuf,
    /// The shared library of ONNX Runtime, if it is installed; only models that are not embedded need it.
    #[serde(default)]
    pub onnx_runtime: Option<PathBuf>,
    /// Model directories.
    #[serde(default)]
    pub models: Vec<PathBuf>,
    /// The folder whose model directories requests may name; it need not be in `models`.
    #[serde(default)]
    pub models_folder: Option<PathBuf>,
    /// The folder below which repositories of snapshots lie; the folder `snapshots` beside the data directory when absent.
    #[serde(default)]
    pub repo_path: Option<PathBuf>,
    /// Cores to use; 0 means all that the machine has. More threads answer more requests at once and take
    /// more memory.
    #[serde(default)]
    pub threads: usize,
    /// Whether the embedded sparse model is deployed when no deployment is remembered.
    #[serde(default = "yes")]
    pub deploy_at_start: bool,
    /// Bytes that one indexing buffer may take before it becomes a segment; raising it makes bulk loads faster
    /// and the process larger.
    #[serde(default = "index_buffer")]
    pub index_buffer_bytes: usize,
    /// Bytes of log after which an index is flushed; raising it makes restarts slower.
    #[serde(default = "flush_threshold")]
    pub flush_threshold_bytes: u64,
    /// Layout of sparse postings in new indices. An older one serves only to make fixtures for the index upgrade.
    #[serde(skip, default = "current_format")]
    pub sparse_format: Format,
    /// Gives freed memory back to the system; with `true`, everything that the calling thread has freed.
    /// Called from time to time, and by threads that have become idle.
    #[serde(skip)]
    pub release_memory: Option<fn(bool)>,
    /// How often adaptive deployments are checked, and how long they wait before they shrink or sleep. Only tests change it.
    #[serde(skip)]
    pub adaptive: AdaptiveTiming,
}

impl EngineOptions {
    /// Options for these paths, with defaults for everything else.
    pub fn new(data: PathBuf, onnx_runtime: PathBuf, models: Vec<PathBuf>) -> Self {
        Self {
            data,
            onnx_runtime: Some(onnx_runtime),
            models,
            models_folder: None,
            repo_path: None,
            threads: 0,
            deploy_at_start: true,
            release_memory: None,
            index_buffer_bytes: index_buffer(),
            flush_threshold_bytes: flush_threshold(),
            sparse_format: current_format(),
            adaptive: AdaptiveTiming::default(),
        }
    }

    /// The oldest layout that can still be written.
    pub fn oldest_sparse_format() -> Format {
        Format::V1
    }

    /// Number of cores to use: `threads`, or all of the machine where that is 0.
    pub fn cores(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}

fn yes() -> bool {
    true
}

fn index_buffer() -> usize {
    48 << 20
}

fn flush_threshold() -> u64 {
    64 << 20
}

fn current_format() -> Format {
    Format::CURRENT
}
