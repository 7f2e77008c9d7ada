//! What all operations of the node work on.

use std::sync::Arc;

use sparrow_ingest::Pipelines;
use sparrow_models::{ModelService, Models};
use sparrow_runtime::work::Memory;
use sparrow_tasks::Tasks;
use sparrow_write_ahead_log::DataDir;

use super::Indices;
use super::cluster_settings::ClusterSettings;

/// The one node of the cluster: its indices, models, pipelines, tasks and settings.
pub struct Node {
    pub indices: Arc<Indices>,
    pub pipelines: Arc<Pipelines>,
    pub models: Arc<Models>,
    /// The operations on the models; works on the same models as `models`.
    pub model_service: ModelService,
    pub tasks: Tasks,
    pub cluster: Arc<ClusterSettings>,
    pub data: Arc<DataDir>,
    /// The account of the memory that requests use, with its limits.
    pub memory: Arc<Memory>,
}

impl Node {
    /// Identity of the node, as task ids and `_shards` failures show it.
    pub fn id(&self) -> &str {
        self.data.node_id()
    }
}
