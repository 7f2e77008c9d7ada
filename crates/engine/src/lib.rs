//! Indices, documents, ingest pipelines, search requests, fusion, jobs and recovery.
//!
//! [`Engine`] is the whole of it: the HTTP layer names an operation and hands over bytes, and gets bytes back.

pub mod check;
mod executor;
mod operations;
mod options;

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sparrow_admin::cluster::{Ledger, Waits};
use sparrow_catalog::cluster_settings::ClusterSettings;
pub use sparrow_catalog::slow_log::TARGET as SLOW_LOG_TARGET;
use sparrow_catalog::{Indices, IndicesOptions, Node, memory};
use sparrow_ingest::Pipelines;
use sparrow_jobs as jobs;
pub use sparrow_models::AdaptiveTiming;
use sparrow_models::{ModelOptions, ModelService, Models};
pub use sparrow_request::body::unterminated;
pub use sparrow_request::error::{ApiError, EngineError, Exception};
pub use sparrow_request::named::Named;
use sparrow_request::operation::Lane;
use sparrow_request::origin;
pub use sparrow_request::origin::{Origin, current as current_origin};
pub use sparrow_request::request::{CancelFlag, Reply, Request};
pub use sparrow_request::rights::{Action, Caller};
use sparrow_request::{error, private_paths};
use sparrow_runtime::attempt;
pub use sparrow_runtime::time_slice;
use sparrow_runtime::work::{self, Work};
pub use sparrow_runtime::work::{Counted, HUGE, Probe};
use sparrow_search::SearchService;
pub use sparrow_search::expanded as expand_short_form;
pub use sparrow_search::{calibration, fusion};
use sparrow_snapshots::{SnapshotService, Snapshots};
use sparrow_tasks::Tasks;
use sparrow_write_ahead_log::DataDir;

use crate::executor::{Executor, Load};
pub use crate::operations::declared;
use crate::operations::{Entry, Parts};
pub use crate::options::EngineOptions;

/// An open data directory and everything behind the HTTP layer that serves it.
pub struct Engine {
    parts: Parts,
    waits: Waits,
    /// As [`EngineOptions::release_memory`].
    release_memory: Option<fn(bool)>,
    /// Makes numbers that stand for who sends requests.
    owners: RandomState,
}

/// Bytes that a request had at once from which on its thread gives freed memory back to the system when it ends (64 MiB).
const RELEASED_ABOVE: usize = 64 << 20;
/// Bytes that a request had at once from which on its thread gives freed memory back if the process holds much unused memory (1 MiB).
/// Each thread does so at most once a second, since memory of the encoder's runtime and of JavaScript looks unused too, and nothing
/// gives it back.
const RELEASED_WHEN_TIGHT: usize = 1 << 20;

/// Whether the current thread has looked for memory to give back more than a second ago, or never; it is asked when it is about to.
fn is_due() -> bool {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let now = Instant::now();
    let is_due = LAST.get().is_none_or(|last| now.duration_since(last) > Duration::from_secs(1));
    if is_due {
        LAST.set(Some(now));
    }
    is_due
}

impl Engine {
    /// Opens the data directory, recovers every index (last commit and replay of the log), starts the deployments
    /// that ran before, and resumes jobs that a crash interrupted.
    ///
    /// # Errors
    /// When the directory is in use by another process or cannot be read.
    pub fn open(options: EngineOptions) -> Result<Arc<Self>, EngineError> {
        // The caller waits for the engine, and has to be told that opening it failed.
        sparrow_request::caught(|| Self::open_all(options))
            .unwrap_or_else(|message| {
                Err(EngineError::internal(format!(
                    "opening the data directory ended in a failure of the server: {message}"
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
            parts: Parts {
                snapshots: Arc::new(SnapshotService { node: node.clone(), snapshots }),
                node,
                search,
                ledger: Ledger::default(),
                executor,
            },
            waits: Waits::default(),
            release_memory: options.release_memory,
            owners: RandomState::new(),
        }))
    }

    /// Flushes every index and stops the deployments. Operations that come later fail.
    pub fn close(&self) {
        self.parts.executor.close();
        self.parts.node.tasks.close();
        self.parts.node.indices.close();
        self.parts.node.models.close();
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
        let operation = operations::find(&request);
        // An unknown operation is refused there.
        let lane = operation.as_ref().map_or(Lane::Look, |known| known.declaration.lane_of(&request));
        if lane == Lane::Health {
            let flag = cancel.clone();
            return self.parts.executor.post(
                Lane::Health,
                Load::default(),
                &flag,
                Box::new(done),
                move |done| {
                    engine.waits.answer(&engine.parts.node, request, cancel, done);
                },
            );
        }
        let load = Load { owner: request.caller.family(), bytes: body.as_ref().len() };
        self.parts.executor.run(
            lane,
            load,
            &cancel.clone(),
            move || engine.carry_out(operation?, &request, body.as_ref(), &cancel),
            Box::new(done),
        );
    }

    /// Attempts to run a short read on the calling thread, for a caller that may be held up for a moment (two milliseconds at most,
    /// and what the next look at the time takes). `None` if the operation is to be [`Self::submit`]ted instead: it is
    /// of another kind, others are under way, or it turned out to take longer.
    pub fn attempt(self: &Arc<Self>, request: &Request, body: &[u8]) -> Option<Result<Reply, EngineError>> {
        let operation = operations::find(request).ok().filter(|known| known.is_short(request, body))?;
        let lane = operation.declaration.lane;
        self.parts.executor.attempt(lane, |stop| self.carry_out(operation, request, body, stop))
    }

    /// Runs an operation on the calling thread, with the identifiers of its request.
    fn carry_out(
        self: &Arc<Self>,
        operation: &Entry,
        request: &Request,
        body: &[u8],
        cancel: &CancelFlag,
    ) -> Result<Reply, EngineError> {
        // What a request left behind that panicked on this thread.
        sparrow_wire::deprecation::take();
        let _origin = origin::enter(request.origin());
        let _version = sparrow_wire::version::enter(request.version);
        let declaration = &operation.declaration;
        let _task = (!attempt::is_active() && declaration.is_listed).then(|| {
            let (index, opaque_id) = (request.part("index"), request.opaque_id.as_ref());
            // A write goes on to its end, so that its client hears what became of it.
            let cancel = declaration.only_reads(request).then(|| cancel.flag());
            self.parts.node.tasks.begin_request(declaration.action.name(), index, opaque_id, cancel)
        });
        let mut result = self.execute_as(operation, request, body, cancel);
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
        self.execute_as(operations::find(request)?, request, body, cancel)
    }

    fn execute_as(
        self: &Arc<Self>,
        operation: &Entry,
        request: &Request,
        body: &[u8],
        cancel: &CancelFlag,
    ) -> Result<Reply, EngineError> {
        if cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        let owner = request.caller.family().map_or(0, |family| self.owners.hash_one(family));
        let memory = Arc::clone(&self.parts.node.memory);
        let work = Work::new(Arc::clone(cancel.flag()), Arc::clone(&memory), "<http_request>").of(owner);
        let _body = work.hold_outside(body.len());
        let _entered = work::enter(Some(work.clone()));
        // What cannot fit is refused before it is read.
        work::room_for(operation.tree_bytes(body)?)?;
        let result = (operation.run)(&self.parts, request, body, cancel);
        // This thread may rest now, and what it freed would stay with it while other threads allocate anew.
        let had = work.peak();
        if let Some(release) = self.release_memory
            && !attempt::is_active()
            && (had > RELEASED_ABOVE || (had > RELEASED_WHEN_TIGHT && is_due() && memory.is_kept_unused()))
        {
            release(true);
        }
        match work.exceeded() {
            // What a read found may lack what it had no memory for. What was written is answered for.
            Some(limit) if result.is_err() || operation.declaration.only_reads(request) => Err(limit.into()),
            _ => result,
        }
    }

    /// Bytes that the process may still allocate (`indices.breaker.total.limit`); what others keep for requests is not taken off.
    pub fn room(&self) -> usize {
        self.parts.node.memory.room()
    }

    /// Says how many bytes of bodies others keep for requests now, also for those that have not come whole.
    pub fn keep_bodies(&self, bytes: usize) {
        self.parts.node.memory.keep_bodies(bytes);
    }

    /// Identity of this node, as task ids and `_shards` failures show it.
    pub fn node_id(&self) -> &str {
        self.parts.node.id()
    }
}
