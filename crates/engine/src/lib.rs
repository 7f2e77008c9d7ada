//! Indices, documents, ingest pipelines, search requests, fusion, jobs and recovery.
//!
//! [`Engine`] is the whole of it: the HTTP layer names an operation and hands over bytes, and gets bytes back.

pub mod check;
mod executor;
mod options;

use std::sync::Arc;

use sparrow_admin as admin;
use sparrow_admin::cluster::{Ledger, Waits};
pub use sparrow_call::error::{ApiError, EngineError, Exception};
pub use sparrow_call::named::Named;
use sparrow_call::origin;
pub use sparrow_call::origin::{Origin, current as current_origin};
pub use sparrow_call::request::{CancelFlag, Reply, Request};
pub use sparrow_call::rights::{Action, Caller};
use sparrow_call::{error, private_paths};
use sparrow_documents as documents;
use sparrow_indices::cluster_settings::ClusterSettings;
pub use sparrow_indices::slow_log::TARGET as SLOW_LOG_TARGET;
use sparrow_indices::{Indices, IndicesOptions, Node, memory};
use sparrow_ingest::Pipelines;
use sparrow_jobs as jobs;
pub use sparrow_models::AdaptiveTiming;
use sparrow_models::{self as models, ModelOptions, ModelService, Models, endpoints};
use sparrow_search::{self as search, SearchService};
use sparrow_snapshots::{self as snapshots, SnapshotService, Snapshots};
use sparrow_storage::DataDir;
use sparrow_tasks::{Tasks, api as tasks};
pub use sparrow_types::time_slice;
use sparrow_types::work::{self, Work};
pub use sparrow_types::work::{Counted, Probe};
use sparrow_types::{attempt, processors};

use crate::executor::{Executor, Lane, Load};
pub use crate::options::EngineOptions;

/// An open data directory and everything behind the HTTP layer that serves it.
pub struct Engine {
    node: Arc<Node>,
    search: Arc<SearchService>,
    snapshots: Arc<SnapshotService>,
    /// Totals of what indices and deployments counted that no longer exist.
    ledger: Ledger,
    waits: Waits,
    executor: Executor,
    /// As [`EngineOptions::release_memory`].
    release_memory: Option<fn(bool)>,
}

/// Bytes that a request had at once from which on its thread gives freed memory back to the system when it ends (64 MiB).
const LARGE: usize = 64 << 20;

impl Engine {
    /// Opens the data directory, recovers every index (last commit and replay of the log), starts the deployments
    /// that ran before, and resumes jobs that a crash interrupted.
    ///
    /// # Errors
    /// When the directory is in use by another process or cannot be read.
    pub fn open(options: EngineOptions) -> Result<Arc<Self>, EngineError> {
        // Whoever waits for the engine has to hear how it ended.
        sparrow_call::caught(|| Self::open_all(options))
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
        let pipelines = Arc::new(Pipelines::open(data.clone())?);
        let tasks = Tasks::open(data.clone())?;
        let snapshots = Snapshots::open(data.clone(), options.repo_path.clone())?;
        let cluster = Arc::new(ClusterSettings::open(data.clone())?);
        // The two that take time know nothing of each other.
        let index_options = IndicesOptions {
            index_buffer_bytes: options.index_buffer_bytes,
            flush_threshold_bytes: options.flush_threshold_bytes,
            sparse_format: options.sparse_format,
        };
        let (models, indices) = std::thread::scope(|scope| {
            let models = scope.spawn(|| Models::open(data.clone(), model_options));
            let indices = Indices::open(data.clone(), &index_options, cluster.clone());
            (models.join(), indices)
        });
        let models = models.map_err(|_| EngineError::internal("loading the models panicked"))??;
        let (models, indices) = (Arc::new(models), Arc::new(indices?));
        let executor = Executor::new(options.cores(), options.release_memory);
        let memory = memory::limited_by(&cluster);
        private_paths::add(&options.data, "data");
        for directory in options.models.iter().chain(&options.models_folder) {
            private_paths::add(directory, "model");
        }
        indices.link(&models);
        let model_service =
            ModelService { models: models.clone(), pipelines: pipelines.clone(), data: data.clone() };
        let node = Node { indices, pipelines, models, model_service, tasks, cluster, data, memory };
        let node = Arc::new(node);
        let search = Arc::new(SearchService::new(node.clone()));
        let (settle, release) = (node.tasks.settling(), options.release_memory);
        node.indices.start_maintenance(move || {
            settle();
            if let Some(release) = release {
                release(false);
            }
        });
        jobs::resume(&search);
        Ok(Arc::new(Self {
            snapshots: Arc::new(SnapshotService { node: node.clone(), snapshots }),
            node,
            search,
            ledger: Ledger::default(),
            waits: Waits::default(),
            executor,
            release_memory: options.release_memory,
        }))
    }

    /// Flushes every index and stops the deployments. Operations that come later fail.
    pub fn close(&self) {
        self.executor.close();
        self.node.tasks.close();
        self.node.indices.close();
        self.node.models.close();
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
            return self.executor.post(Lane::Health, Load::default(), &flag, Box::new(done), move |done| {
                engine.waits.answer(&engine.node, request, cancel, done);
            });
        }
        let load = Load { bytes: body.as_ref().len() };
        self.executor.run(
            executor::lane_of(&request),
            load,
            &cancel.clone(),
            move || engine.carry_out(&request, body.as_ref(), &cancel),
            Box::new(done),
        );
    }

    /// Attempts to run a short read on the calling thread, for a caller that may be held up for a moment (a millisecond at most,
    /// and what the next look at the time takes). `None` if the operation is to be [`Self::submit`]ted instead: it is
    /// of another kind, others are under way, or it turned out to take longer.
    pub fn attempt(self: &Arc<Self>, request: &Request, body: &[u8]) -> Option<Result<Reply, EngineError>> {
        if !executor::is_short(request, body) {
            return None;
        }
        self.executor.attempt(|stop| self.carry_out(request, body, stop))
    }

    /// Runs an operation on the calling thread, with the identifiers of its request.
    fn carry_out(
        self: &Arc<Self>,
        request: &Request,
        body: &[u8],
        cancel: &CancelFlag,
    ) -> Result<Reply, EngineError> {
        // What a request left behind that panicked on this thread.
        sparrow_wire::deprecation::take();
        let _origin = origin::enter(request.origin());
        let is_shown = !attempt::is_active() && executor::is_shown_as_task(request);
        let _task = is_shown.then(|| {
            let (index, opaque_id) = (request.part("index"), request.opaque_id.as_ref());
            // A write goes on to its end, so that its client hears what became of it.
            let cancel = executor::only_reads(request).then(|| cancel.flag());
            self.node.tasks.begin_request(&request.op, index, opaque_id, cancel)
        });
        let mut result = self.execute(request, body, cancel);
        if let Ok(reply) = &mut result {
            reply.warnings = sparrow_wire::deprecation::take();
        }
        result
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
        let work = Work::new(Arc::clone(cancel.flag()), Arc::clone(&self.node.memory), "<http_request>");
        let _body = work.hold_outside(body.len());
        let _entered = work::enter(Some(work.clone()));
        // The parser for documents and administrative bodies has no place to check in.
        work::room_for(tree_bytes(&request.op, body))?;
        let result = self.dispatch(request, body, cancel);
        // This thread may rest now, and what it freed would stay with it while other threads allocate anew.
        if let Some(release) = self.release_memory.filter(|_| work.peak() > LARGE) {
            release(true);
        }
        match work.exceeded() {
            // What a read found may lack what it had no memory for. What was written is answered for.
            Some(limit) if matches!(result, Err(EngineError::Cancelled)) || executor::only_reads(request) => {
                Err(limit.into())
            }
            _ => result,
        }
    }

    fn dispatch(
        self: &Arc<Self>,
        request: &Request,
        body: &[u8],
        cancel: &CancelFlag,
    ) -> Result<Reply, EngineError> {
        let node = &self.node;
        match request.op.as_str() {
            "create_index" => admin::index::create_index(node, request, body, cancel),
            "get_index" => admin::index::get_index(node, request, body, cancel),
            "exists_index" => admin::index::exists_index(node, request, body, cancel),
            "delete_index" => admin::index::delete_index(node, request, body, cancel),
            "get_mapping" => admin::index::get_mapping(node, request, body, cancel),
            "get_field_mapping" => admin::field_mapping::get_field_mapping(node, request, body, cancel),
            "put_mapping" => admin::index::put_mapping(node, request, body, cancel),
            "get_settings" => admin::index::get_settings(node, request, body, cancel),
            "put_settings" => admin::index::put_settings(node, request, body, cancel),
            "analyze" => admin::analyze::analyze(node, request, body, cancel),
            "refresh" => admin::index::refresh(node, request, body, cancel),
            "flush" => admin::index::flush(node, request, body, cancel),
            "close_index" => admin::lifecycle::close_index(node, request, body, cancel),
            "open_index" => admin::lifecycle::open_index(node, request, body, cancel),
            "add_block" => admin::lifecycle::add_block(node, request, body, cancel),
            "remove_block" => admin::lifecycle::remove_block(node, request, body, cancel),
            "force_merge" => admin::lifecycle::force_merge(node, request, body, cancel),
            "clear_cache" => admin::lifecycle::clear_cache(node, request, body, cancel),
            "resolve_index" => admin::lifecycle::resolve_index(node, request, body, cancel),
            "get_data_stream" => admin::lifecycle::get_data_stream(node, request, body, cancel),
            "delete_data_stream" => admin::lifecycle::delete_data_stream(node, request, body, cancel),
            "create_data_stream" => admin::lifecycle::refuse(node, request, body, cancel),
            "rollover" => admin::rollover::rollover(node, request, body, cancel),
            "clone_index" | "shrink_index" | "split_index" => {
                admin::resize::resize(node, request, body, cancel)
            }
            "put_index_template" => admin::templates::api::put_index_template(node, request, body, cancel),
            "get_index_template" => admin::templates::api::get_index_template(node, request, body, cancel),
            "delete_index_template" => {
                admin::templates::api::delete_index_template(node, request, body, cancel)
            }
            "simulate_index_template" => admin::templates::api::simulate(node, request, body, cancel),
            "put_component_template" => admin::templates::api::put_component(node, request, body, cancel),
            "get_component_template" => admin::templates::api::get_component(node, request, body, cancel),
            "delete_component_template" => {
                admin::templates::api::delete_component(node, request, body, cancel)
            }
            "put_template" => admin::templates::legacy::put_template(node, request, body, cancel),
            "get_template" => admin::templates::legacy::get_template(node, request, body, cancel),
            "delete_template" => admin::templates::legacy::delete_template(node, request, body, cancel),
            "update_aliases" => admin::alias_api::update_aliases(node, request, body, cancel),
            "put_alias" => admin::alias_api::put_alias(node, request, body, cancel),
            "get_alias" => admin::alias_reads::get_alias(node, request, body, cancel),
            "delete_alias" => admin::alias_api::delete_alias(node, request, body, cancel),
            "cat_help" => admin::cat::overview::cat_help(node, request, body, cancel),
            "cat_health" => admin::cat::overview::cat_health(node, request, body, cancel),
            "cat_count" => admin::cat::overview::cat_count(&self.search, request, body, cancel),
            "cat_shards" => admin::cat::shards::cat_shards(node, request, body, cancel),
            "cat_segments" => admin::cat::shards::cat_segments(node, request, body, cancel),
            "cat_master" => admin::cat::overview::cat_master(node, request, body, cancel),
            "cat_nodes" => admin::cat::node::cat_nodes(node, request, body, cancel),
            "cat_allocation" => admin::cat::node::cat_allocation(node, request, body, cancel),
            "cat_pending_tasks" | "cat_plugins" | "cat_nodeattrs" | "cat_fielddata" => {
                admin::cat::node::cat_nothing(node, request, body, cancel)
            }
            "cat_tasks" => admin::cat::node::cat_tasks(node, request, body, cancel),
            "cat_thread_pool" => {
                admin::cat::node::cat_thread_pool(node, &self.executor.stats(), request, body, cancel)
            }
            "cat_recovery" => admin::cat::shards::cat_recovery(node, request, body, cancel),
            "cat_trained_models" => admin::cat::shards::cat_trained_models(node, request, body, cancel),
            "cat_templates" => admin::cat::overview::cat_templates(node, request, body, cancel),
            "cat_component_templates" => {
                admin::cat::overview::cat_component_templates(node, request, body, cancel)
            }
            "cat_aliases" => admin::cat::cat_aliases(node, request, body, cancel),
            "cat_indices" => admin::cat::cat_indices(node, request, body, cancel),
            "cluster_health" => admin::cluster::health::cluster_health(node, request, body, cancel),
            "cluster_state" => admin::cluster::state::cluster_state(node, request, body, cancel),
            "instruments" => admin::cluster::instruments::instruments(
                node,
                &self.executor.stats(),
                &self.ledger,
                &self.snapshots.snapshots.counts().to_json(),
                request,
                body,
                cancel,
            ),
            "cluster_figures" => admin::cluster::info::cluster_figures(node, request, body, cancel),
            "get_cluster_settings" => admin::cluster::settings::get_settings(node, request, body, cancel),
            "put_cluster_settings" => admin::cluster::settings::put_settings(node, request, body, cancel),
            "pending_tasks" => admin::cluster::info::pending_tasks(node, request, body, cancel),
            "remote_info" => admin::cluster::info::remote_info(node, request, body, cancel),
            "put_repository" => snapshots::put_repository(&self.snapshots, request, body, cancel),
            "get_repository" => snapshots::get_repository(&self.snapshots, request, body, cancel),
            "delete_repository" => snapshots::delete_repository(&self.snapshots, request, body, cancel),
            "verify_repository" => snapshots::verify_repository(&self.snapshots, request, body, cancel),
            "cleanup_repository" => snapshots::cleanup_repository(&self.snapshots, request, body, cancel),
            "create_snapshot" => snapshots::create_snapshot(&self.snapshots, request, body, cancel),
            "get_snapshot" => snapshots::get_snapshot(&self.snapshots, request, body, cancel),
            "snapshot_status" => snapshots::snapshot_status(&self.snapshots, request, body, cancel),
            "clone_snapshot" => snapshots::clone_snapshot(&self.snapshots, request, body, cancel),
            "delete_snapshot" => snapshots::delete_snapshot(&self.snapshots, request, body, cancel),
            "snapshot_keys" => snapshots::snapshot_keys(&self.snapshots, request, body, cancel),
            "restore_snapshot" => snapshots::restore_snapshot(&self.snapshots, request, body, cancel),
            "cat_repositories" => {
                admin::cat::snapshots::cat_repositories(&self.snapshots, request, body, cancel)
            }
            "cat_snapshots" => admin::cat::snapshots::cat_snapshots(&self.snapshots, request, body, cancel),
            "index_stats" => admin::stats::index_stats(node, request, body, cancel),
            "index_segments" => admin::stats::index_segments(node, request, body, cancel),
            "recovery" => admin::stats::recovery(node, request, body, cancel),
            "node_indices" => admin::stats::node_indices(node, request, body, cancel),
            "index_doc" => documents::index_doc(&self.search, request, body, cancel),
            "create_doc" => documents::create_doc(&self.search, request, body, cancel),
            "get_doc" => documents::get_doc(&self.search, request, body, cancel),
            "exists_doc" => documents::exists_doc(&self.search, request, body, cancel),
            "get_source" => documents::get_source(&self.search, request, body, cancel),
            "delete_doc" => documents::delete_doc(&self.search, request, body, cancel),
            "update_doc" => documents::update_doc(&self.search, request, body, cancel),
            "mget" => documents::mget(&self.search, request, body, cancel),
            "term_vectors" => documents::term_vectors(&self.search, request, body, cancel),
            "multi_term_vectors" => documents::multi_term_vectors(&self.search, request, body, cancel),
            "bulk" => documents::bulk(&self.search, request, body, cancel),
            "upgrade_index" => admin::upgrade::upgrade_index(node, request, body, cancel),
            "upgrade_assistance" => admin::upgrade::upgrade_assistance(node, request, body, cancel),
            "put_pipeline" => admin::pipelines::put_pipeline(node, request, body, cancel),
            "get_pipeline" => admin::pipelines::get_pipeline(node, request, body, cancel),
            "delete_pipeline" => admin::pipelines::delete_pipeline(node, request, body, cancel),
            "simulate_pipeline" => admin::pipelines::simulate_pipeline(node, request, body, cancel),
            "ml_info" => models::ml_info(&node.model_service, request, body, cancel),
            "get_trained_models" => models::get_trained_models(&node.model_service, request, body, cancel),
            "start_deployment" => models::start_deployment(&node.model_service, request, body, cancel),
            "stop_deployment" => models::stop_deployment(&node.model_service, request, body, cancel),
            "update_deployment" => models::update_deployment(&node.model_service, request, body, cancel),
            "trained_model_stats" => models::trained_model_stats(&node.model_service, request, body, cancel),
            "infer_trained_model" => models::infer_trained_model(&node.model_service, request, body, cancel),
            "put_trained_model" => models::put_trained_model(&node.model_service, request, body, cancel),
            "delete_trained_model" => {
                models::delete_trained_model(&node.model_service, request, body, cancel)
            }
            "put_trained_model_definition_part" => {
                models::put_definition_part(&node.model_service, request, body, cancel)
            }
            "put_trained_model_vocabulary" => {
                models::put_vocabulary(&node.model_service, request, body, cancel)
            }
            "put_trained_model_alias" => models::put_alias(&node.model_service, request, body, cancel),
            "delete_trained_model_alias" => models::delete_alias(&node.model_service, request, body, cancel),
            "put_inference" => {
                endpoints::put_endpoint(&node.model_service, &*node.indices, request, body, cancel)
            }
            "get_inference" => endpoints::get_endpoint(&node.model_service, request, body, cancel),
            "delete_inference" => {
                endpoints::delete_endpoint(&node.model_service, &*node.indices, request, body, cancel)
            }
            "update_inference" => endpoints::update_endpoint(&node.model_service, request, body, cancel),
            "infer" => endpoints::infer(&node.model_service, request, body, cancel),
            "infer_stream" => endpoints::infer_stream(&node.model_service, request, body, cancel),
            "reindex" => jobs::reindex(&self.search, request, body, cancel),
            "update_by_query" => jobs::update_by_query(&self.search, request, body, cancel),
            "delete_by_query" => jobs::delete_by_query(&self.search, request, body, cancel),
            "change_model" => jobs::model_change::change(&self.search, request, body, cancel),
            "get_field_models" => jobs::model_change::get(&self.search, request, body, cancel),
            "switch_model" => jobs::model_change::switch(&self.search, request, body, cancel),
            "roll_back_model" => jobs::model_change::roll_back(&self.search, request, body, cancel),
            "drop_model" => jobs::model_change::drop_old(&self.search, request, body, cancel),
            "get_task" => tasks::get_task(&node.tasks, request, body, cancel),
            "list_tasks" => tasks::list_tasks(&node.tasks, request, body, cancel),
            "cancel_tasks" | "cancel_task" => tasks::cancel_tasks(&node.tasks, request, body, cancel),
            "rethrottle" => tasks::rethrottle(&node.tasks, request, body, cancel),
            "search" => search::search(&self.search, request, body, cancel),
            "knn_search" => search::knn_search::knn_search(&self.search, request, body, cancel),
            "explain" => search::explain_document(&self.search, request, body, cancel),
            "field_caps" => search::field_caps::field_caps(&self.search, request, body, cancel),
            "terms_enum" => search::terms_enum::terms_enum(&self.search, request, body, cancel),
            "validate_query" => search::validate::validate_query(&self.search, request, body, cancel),
            "search_shards" => search::validate::search_shards(&self.search, request, body, cancel),
            "msearch" => search::msearch::msearch(&self.search, request, body, cancel),
            "rank_eval" => search::rank_eval::rank_eval(&self.search, request, body, cancel),
            "scroll" => search::scroll::next(&self.search, request, body, cancel),
            "clear_scroll" => search::scroll::clear(&self.search, request, body, cancel),
            "open_point_in_time" => search::point_in_time::open(&self.search, request, body, cancel),
            "close_point_in_time" => search::point_in_time::close(&self.search, request, body, cancel),
            "count" => search::count(&self.search, request, body, cancel),
            other => Err(EngineError::internal(format!("no operation [{other}]"))),
        }
    }

    /// Bytes that the process may still allocate (`indices.breaker.total.limit`); what others keep for requests is not taken off.
    pub fn room(&self) -> usize {
        self.node.memory.room()
    }

    /// Says how many bytes of bodies others keep for requests now, also for those that have not come whole.
    pub fn keep_bodies(&self, bytes: usize) {
        self.node.memory.keep_bodies(bytes);
    }

    /// Identity of this node, as task ids and `_shards` failures show it.
    pub fn node_id(&self) -> &str {
        self.node.id()
    }
}

/// Bytes that a value of another body takes, with what is made of it: 240 for a term of `terms`, up to 470 for an entry of `sort`.
const VALUE_BYTES: usize = 256;

/// Estimate of the memory that the values of a body take, in bytes, by its commas and brackets: `[1,1,…` takes a hundred times its length.
/// Of bodies of lines, the longest counts: those of searches are read by as many threads as there are processors, those of a bulk in
/// portions that are small.
fn tree_bytes(op: &str, body: &[u8]) -> usize {
    use sparrow_call::body::values;
    match op {
        "bulk" => 0,
        "msearch" => {
            let most = body.split(|byte| *byte == b'\n').map(values).max().unwrap_or(0);
            VALUE_BYTES * most * processors::available()
        }
        "index_doc" | "create_doc" | "update_doc" => sparrow_call::body::tree_bytes(body),
        _ => VALUE_BYTES * values(body),
    }
}
