//! The state that requests about models and inference endpoints work on.

use std::sync::Arc;

use sparrow_ingest::Pipelines;
use sparrow_write_ahead_log::DataDir;

use crate::Models;

/// The models of the node, and the pipelines whose processors name them.
pub struct ModelService {
    /// All models and endpoints.
    pub models: Arc<Models>,
    /// The ingest pipelines: a model that one of them uses is not deleted.
    pub pipelines: Arc<Pipelines>,
    /// The data directory, whose identity is that of the node.
    pub data: Arc<DataDir>,
}
