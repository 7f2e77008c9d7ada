//! Indices, documents, ingest pipelines, search requests, fusion, jobs and recovery.
//!
//! [`Engine`] is the whole of it: the HTTP layer names an operation and hands over bytes, and gets bytes back.

mod body;
pub mod check;
mod cluster;
mod documents;
mod error;
mod executor;
mod indices;
mod inference;
mod jobs;
mod memory;
mod models;
mod named;
mod options;
mod origin;
mod params;
mod pipelines;
mod places;
pub mod presentation;
mod private_paths;
mod request;
mod rights;
mod search;
mod semantic;
mod slow_log;
mod snapshots;
mod upgrade;

use std::sync::Arc;

use sparrow_storage::DataDir;
use sparrow_types::work::{self, Memory, Work};

use crate::cluster::{ClusterSettings, Waits};
pub use crate::error::{ApiError, EngineError, Exception};
use crate::executor::{Executor, Lane, LaneStats};
use crate::indices::Indices;
use crate::jobs::Tasks;
pub use crate::models::AdaptiveTiming;
use crate::models::{ModelOptions, Models};
pub use crate::named::Named;
pub use crate::options::EngineOptions;
pub use crate::origin::{Origin, current as current_origin};
pub use crate::request::{CancelFlag, Reply, Request};
pub use crate::rights::{Action, Caller};
pub use crate::slow_log::TARGET as SLOW_LOG_TARGET;
use crate::snapshots::Snapshots;
use sparrow_ingest::Pipelines;

/// Everything behind the HTTP layer.
pub struct Engine {
    pub(crate) indices: Indices,
    pub(crate) pipelines: Pipelines,
    pub(crate) models: Models,
    pub(crate) tasks: Tasks,
    pub(crate) contexts: search::Contexts,
    pub(crate) cluster: Arc<ClusterSettings>,
    pub(crate) snapshots: Snapshots,
    pub(crate) data: Arc<DataDir>,
    pub(crate) ledger: cluster::Ledger,
    /// What requests may take, all together and each.
    pub(crate) memory: Arc<Memory>,
    waits: Waits,
    executor: Executor,
}

impl Engine {
    /// Opens the data directory, recovers every index (last commit and replay of the log), starts the deployments
    /// that ran before, and resumes jobs that a crash interrupted.
    ///
    /// # Errors
    /// When the directory is in use by another process or cannot be read.
    pub fn open(options: EngineOptions) -> Result<Arc<Self>, EngineError> {
        // Whoever waits for the engine has to hear how it ended.
        executor::caught(|| Self::open_all(options))
            .unwrap_or_else(|message| {
                Err(EngineError::internal(format!(
                    "opening the data directory ended in a failure of ours: {message}"
                )))
            })
            .map_err(error::start_refusal)
    }

    fn open_all(options: EngineOptions) -> Result<Arc<Self>, EngineError> {
        let data = Arc::new(DataDir::open(&options.data)?);
        let model_options = ModelOptions {
            library: options.onnx_runtime.clone(),
            directories: options.models.clone(),
            folder: options.models_folder.clone(),
            deploy_at_start: options.deploy_at_start,
            threads: options.threads,
            adaptive: options.adaptive,
        };
        let pipelines = Pipelines::open(data.clone())?;
        let tasks = Tasks::open(data.clone())?;
        let snapshots = Snapshots::open(data.clone(), options.repo_path.clone())?;
        let cluster = Arc::new(ClusterSettings::open(data.clone())?);
        // The two that take time know nothing of each other.
        let (models, indices) = std::thread::scope(|scope| {
            let models = scope.spawn(|| Models::open(data.clone(), model_options));
            let indices = Indices::open(data.clone(), &options, cluster.clone());
            (models.join(), indices)
        });
        let models = models.map_err(|_| EngineError::internal("loading the models panicked"))??;
        let indices = indices?;
        let executor = Executor::new(options.cores());
        let memory = memory::limited_by(&cluster);
        let engine = Arc::new(Self {
            indices,
            pipelines,
            models,
            tasks,
            contexts: search::Contexts::default(),
            cluster,
            snapshots,
            data,
            ledger: cluster::Ledger::default(),
            memory,
            waits: Waits::default(),
            executor,
        });
        private_paths::add(&options.data, "data");
        for directory in options.models.iter().chain(&options.models_folder) {
            private_paths::add(directory, "model");
        }
        engine.indices.link(&engine);
        engine.indices.start_maintenance(engine.tasks.settling());
        jobs::resume(&engine);
        Ok(engine)
    }

    /// Flushes every index and stops the deployments. Operations that come later fail.
    pub fn close(&self) {
        self.executor.close();
        self.tasks.close();
        self.indices.close();
        self.models.close();
    }

    /// Runs an operation on the engine's own threads. `done` is called exactly once, from one of them.
    ///
    /// The flag cancels the operation; its result is then an error or arrives sooner.
    pub fn submit(
        self: &Arc<Self>,
        request: Request,
        body: impl AsRef<[u8]> + Send + 'static,
        cancel: CancelFlag,
        done: impl FnOnce(Result<Reply, EngineError>) + Send + 'static,
    ) {
        let engine = self.clone();
        if executor::lane_of(&request) == Lane::Health {
            let flag = cancel.clone();
            return self.executor.post(Lane::Health, 0, &flag, Box::new(done), move |done| {
                engine.waits.answer(&engine, request, cancel, done);
            });
        }
        let bytes = body.as_ref().len();
        self.executor.run(
            executor::lane_of(&request),
            bytes,
            &cancel.clone(),
            move || {
                // What a request left behind that panicked on this thread.
                sparrow_wire::deprecation::take();
                let _origin = origin::enter(origin::of(&request));
                let mut result = engine.execute(&request, body.as_ref(), &cancel);
                if let Ok(reply) = &mut result {
                    reply.warnings = sparrow_wire::deprecation::take();
                }
                result
            },
            Box::new(done),
        );
    }

    /// Runs an operation on the calling thread.
    ///
    /// # Errors
    /// Whatever the operation says; see [`EngineError::body`] for its wire form.
    pub fn execute(
        self: &Arc<Self>,
        request: &Request,
        body: &[u8],
        cancel: &CancelFlag,
    ) -> Result<Reply, EngineError> {
        if cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        let work = Work::new(Arc::clone(cancel.flag()), Arc::clone(&self.memory));
        let _entered = work::enter(Some(work));
        // Parsing the body takes memory in proportion to its length; what each operation needs beyond that it counts itself.
        work::take("<http_request>", body.len() + tree_bytes(&request.op, body))?;
        self.dispatch(request, body, cancel)
    }

    fn dispatch(
        self: &Arc<Self>,
        request: &Request,
        body: &[u8],
        cancel: &CancelFlag,
    ) -> Result<Reply, EngineError> {
        match request.op.as_str() {
            "create_index" => indices::admin::create_index(self, request, body, cancel),
            "get_index" => indices::admin::get_index(self, request, body, cancel),
            "exists_index" => indices::admin::exists_index(self, request, body, cancel),
            "delete_index" => indices::admin::delete_index(self, request, body, cancel),
            "get_mapping" => indices::admin::get_mapping(self, request, body, cancel),
            "get_field_mapping" => indices::field_mapping::get_field_mapping(self, request, body, cancel),
            "put_mapping" => indices::admin::put_mapping(self, request, body, cancel),
            "get_settings" => indices::admin::get_settings(self, request, body, cancel),
            "put_settings" => indices::admin::put_settings(self, request, body, cancel),
            "analyze" => indices::analyze::analyze(self, request, body, cancel),
            "refresh" => indices::admin::refresh(self, request, body, cancel),
            "flush" => indices::admin::flush(self, request, body, cancel),
            "close_index" => indices::lifecycle::close_index(self, request, body, cancel),
            "open_index" => indices::lifecycle::open_index(self, request, body, cancel),
            "add_block" => indices::lifecycle::add_block(self, request, body, cancel),
            "force_merge" => indices::lifecycle::force_merge(self, request, body, cancel),
            "clear_cache" => indices::lifecycle::clear_cache(self, request, body, cancel),
            "resolve_index" => indices::lifecycle::resolve_index(self, request, body, cancel),
            "get_data_stream" => indices::lifecycle::get_data_stream(self, request, body, cancel),
            "create_data_stream" => indices::lifecycle::refuse(self, request, body, cancel),
            "rollover" => indices::rollover::rollover(self, request, body, cancel),
            "clone_index" | "shrink_index" | "split_index" => {
                indices::resize::resize(self, request, body, cancel)
            }
            "put_index_template" => indices::templates::api::put_index_template(self, request, body, cancel),
            "get_index_template" => indices::templates::api::get_index_template(self, request, body, cancel),
            "delete_index_template" => {
                indices::templates::api::delete_index_template(self, request, body, cancel)
            }
            "simulate_index_template" => indices::templates::api::simulate(self, request, body, cancel),
            "put_component_template" => indices::templates::api::put_component(self, request, body, cancel),
            "get_component_template" => indices::templates::api::get_component(self, request, body, cancel),
            "delete_component_template" => {
                indices::templates::api::delete_component(self, request, body, cancel)
            }
            "put_template" => indices::templates::legacy::put_template(self, request, body, cancel),
            "get_template" => indices::templates::legacy::get_template(self, request, body, cancel),
            "delete_template" => indices::templates::legacy::delete_template(self, request, body, cancel),
            "update_aliases" => indices::alias_api::update_aliases(self, request, body, cancel),
            "put_alias" => indices::alias_api::put_alias(self, request, body, cancel),
            "get_alias" => indices::alias_api::get_alias(self, request, body, cancel),
            "delete_alias" => indices::alias_api::delete_alias(self, request, body, cancel),
            "cat_help" => indices::cat::overview::cat_help(self, request, body, cancel),
            "cat_health" => indices::cat::overview::cat_health(self, request, body, cancel),
            "cat_count" => indices::cat::overview::cat_count(self, request, body, cancel),
            "cat_shards" => indices::cat::shards::cat_shards(self, request, body, cancel),
            "cat_segments" => indices::cat::shards::cat_segments(self, request, body, cancel),
            "cat_master" => indices::cat::overview::cat_master(self, request, body, cancel),
            "cat_nodes" => indices::cat::node::cat_nodes(self, request, body, cancel),
            "cat_allocation" => indices::cat::node::cat_allocation(self, request, body, cancel),
            "cat_pending_tasks" | "cat_plugins" | "cat_nodeattrs" | "cat_fielddata" => {
                indices::cat::node::cat_nothing(self, request, body, cancel)
            }
            "cat_tasks" => indices::cat::node::cat_tasks(self, request, body, cancel),
            "cat_thread_pool" => indices::cat::node::cat_thread_pool(self, request, body, cancel),
            "cat_recovery" => indices::cat::shards::cat_recovery(self, request, body, cancel),
            "cat_trained_models" => indices::cat::shards::cat_trained_models(self, request, body, cancel),
            "cat_templates" => indices::cat::overview::cat_templates(self, request, body, cancel),
            "cat_component_templates" => {
                indices::cat::overview::cat_component_templates(self, request, body, cancel)
            }
            "cat_aliases" => indices::cat::cat_aliases(self, request, body, cancel),
            "cat_indices" => indices::cat::cat_indices(self, request, body, cancel),
            "cluster_health" => cluster::health::cluster_health(self, request, body, cancel),
            "cluster_state" => cluster::state::cluster_state(self, request, body, cancel),
            "instruments" => cluster::instruments::instruments(self, request, body, cancel),
            "cluster_figures" => cluster::info::cluster_figures(self, request, body, cancel),
            "get_cluster_settings" => cluster::settings::get_settings(self, request, body, cancel),
            "put_cluster_settings" => cluster::settings::put_settings(self, request, body, cancel),
            "pending_tasks" => cluster::info::pending_tasks(self, request, body, cancel),
            "remote_info" => cluster::info::remote_info(self, request, body, cancel),
            "put_repository" => snapshots::put_repository(self, request, body, cancel),
            "get_repository" => snapshots::get_repository(self, request, body, cancel),
            "delete_repository" => snapshots::delete_repository(self, request, body, cancel),
            "verify_repository" => snapshots::verify_repository(self, request, body, cancel),
            "cleanup_repository" => snapshots::cleanup_repository(self, request, body, cancel),
            "create_snapshot" => snapshots::create_snapshot(self, request, body, cancel),
            "get_snapshot" => snapshots::get_snapshot(self, request, body, cancel),
            "snapshot_status" => snapshots::snapshot_status(self, request, body, cancel),
            "clone_snapshot" => snapshots::clone_snapshot(self, request, body, cancel),
            "delete_snapshot" => snapshots::delete_snapshot(self, request, body, cancel),
            "snapshot_keys" => snapshots::snapshot_keys(self, request, body, cancel),
            "restore_snapshot" => snapshots::restore_snapshot(self, request, body, cancel),
            "cat_repositories" => indices::cat::snapshots::cat_repositories(self, request, body, cancel),
            "cat_snapshots" => indices::cat::snapshots::cat_snapshots(self, request, body, cancel),
            "index_stats" => indices::stats::index_stats(self, request, body, cancel),
            "index_segments" => indices::stats::index_segments(self, request, body, cancel),
            "recovery" => indices::stats::recovery(self, request, body, cancel),
            "node_indices" => indices::stats::node_indices(self, request, body, cancel),
            "index_doc" => documents::index_doc(self, request, body, cancel),
            "create_doc" => documents::create_doc(self, request, body, cancel),
            "get_doc" => documents::get_doc(self, request, body, cancel),
            "exists_doc" => documents::exists_doc(self, request, body, cancel),
            "get_source" => documents::get_source(self, request, body, cancel),
            "delete_doc" => documents::delete_doc(self, request, body, cancel),
            "update_doc" => documents::update_doc(self, request, body, cancel),
            "mget" => documents::mget(self, request, body, cancel),
            "term_vectors" => documents::term_vectors(self, request, body, cancel),
            "multi_term_vectors" => documents::multi_term_vectors(self, request, body, cancel),
            "bulk" => documents::bulk(self, request, body, cancel),
            "upgrade_index" => upgrade::upgrade_index(self, request, body, cancel),
            "upgrade_assistance" => upgrade::upgrade_assistance(self, request, body, cancel),
            "put_pipeline" => pipelines::put_pipeline(self, request, body, cancel),
            "get_pipeline" => pipelines::get_pipeline(self, request, body, cancel),
            "delete_pipeline" => pipelines::delete_pipeline(self, request, body, cancel),
            "simulate_pipeline" => pipelines::simulate_pipeline(self, request, body, cancel),
            "ml_info" => models::ml_info(self, request, body, cancel),
            "get_trained_models" => models::get_trained_models(self, request, body, cancel),
            "start_deployment" => models::start_deployment(self, request, body, cancel),
            "stop_deployment" => models::stop_deployment(self, request, body, cancel),
            "update_deployment" => models::update_deployment(self, request, body, cancel),
            "trained_model_stats" => models::trained_model_stats(self, request, body, cancel),
            "infer_trained_model" => models::infer_trained_model(self, request, body, cancel),
            "put_trained_model" => models::put_trained_model(self, request, body, cancel),
            "delete_trained_model" => models::delete_trained_model(self, request, body, cancel),
            "put_trained_model_definition_part" => models::put_definition_part(self, request, body, cancel),
            "put_trained_model_vocabulary" => models::put_vocabulary(self, request, body, cancel),
            "put_trained_model_alias" => models::put_alias(self, request, body, cancel),
            "delete_trained_model_alias" => models::delete_alias(self, request, body, cancel),
            "put_inference" => inference::put_endpoint(self, request, body, cancel),
            "get_inference" => inference::get_endpoint(self, request, body, cancel),
            "delete_inference" => inference::delete_endpoint(self, request, body, cancel),
            "update_inference" => inference::update_endpoint(self, request, body, cancel),
            "infer" => inference::infer(self, request, body, cancel),
            "infer_stream" => inference::infer_stream(self, request, body, cancel),
            "reindex" => jobs::reindex(self, request, body, cancel),
            "update_by_query" => jobs::update_by_query(self, request, body, cancel),
            "delete_by_query" => jobs::delete_by_query(self, request, body, cancel),
            "get_task" => jobs::get_task(self, request, body, cancel),
            "list_tasks" => jobs::list_tasks(self, request, body, cancel),
            "cancel_tasks" | "cancel_task" => jobs::cancel_tasks(self, request, body, cancel),
            "rethrottle" => jobs::rethrottle(self, request, body, cancel),
            "search" => search::search(self, request, body, cancel),
            "knn_search" => search::knn_search::knn_search(self, request, body, cancel),
            "explain" => search::explain_document(self, request, body, cancel),
            "field_caps" => search::field_caps::field_caps(self, request, body, cancel),
            "validate_query" => search::validate::validate_query(self, request, body, cancel),
            "search_shards" => search::validate::search_shards(self, request, body, cancel),
            "msearch" => search::msearch::msearch(self, request, body, cancel),
            "rank_eval" => search::rank_eval::rank_eval(self, request, body, cancel),
            "scroll" => search::scroll::next(self, request, body, cancel),
            "clear_scroll" => search::scroll::clear(self, request, body, cancel),
            "open_point_in_time" => search::point_in_time::open(self, request, body, cancel),
            "close_point_in_time" => search::point_in_time::close(self, request, body, cancel),
            "count" => search::count(self, request, body, cancel),
            other => Err(EngineError::internal(format!("no operation [{other}]"))),
        }
    }

    /// The lanes of workers as they are now.
    pub(crate) fn lanes(&self) -> [LaneStats; 2] {
        self.executor.stats()
    }

    /// Identity of this node, as task ids and `_shards` failures show it.
    pub fn node_id(&self) -> &str {
        self.data.node_id()
    }
}

/// Bytes that a value of a JSON body takes beside its text.
const VALUE_BYTES: usize = 48;

/// About how much the values of a body take, as each has a comma or a bracket: `[1,1,…` is twenty times as long in memory. Bodies of
/// lines are read a line at a time.
fn tree_bytes(op: &str, body: &[u8]) -> usize {
    match op {
        "bulk" | "msearch" => 0,
        _ => VALUE_BYTES * body.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count(),
    }
}
