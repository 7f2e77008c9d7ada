//! The models of a node: opening and closing them, finding the one behind an id, and encoding with it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sparrow_encoder::{Attribution, Calibration, DeploymentStats, Encoded, ModelKind, Priority};
use sparrow_inference::{ModelError, Purpose};
use sparrow_query::VectorKind;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::waits::{give_up, waiting_unless_attempted};
use sparrow_write_ahead_log::DataDir;

use crate::ModelOptions;
use crate::adaptive::AdaptiveAllocations;
use crate::deployments::{DeploymentSettings, Deployments, Running};
use crate::endpoints::{Endpoint, Endpoints, not_one_vector};
use crate::monitor::Monitor;
use crate::packed::PackedFolder;
use crate::registry::{DENSE_MODEL, RegisteredModel, Registry};
use crate::store::Store;

/// The counts of one deployment's inference calls since it started.
pub struct DeploymentTotals {
    /// The deployment's id and its start time: one that is started again counts from zero.
    pub name: String,
    pub stats: DeploymentStats,
}

/// The size of a deployment: its allocations, threads per allocation, and adaptive setting.
#[derive(Debug, Clone, Copy)]
pub struct DeploymentSize {
    pub allocations: usize,
    pub threads: usize,
    pub adaptive: Option<AdaptiveAllocations>,
}

/// Which of the vectors are wanted that a model makes in one pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// Only the vector of the model itself.
    Own,
    /// For a head: its own vector, and that of the dense model that it continues.
    Both,
}

impl Kinds {
    /// The encoded texts with only the wanted vectors.
    pub(crate) fn of(self, encoded: Vec<Encoded>) -> Vec<Encoded> {
        match self {
            Self::Both => encoded,
            Self::Own => encoded.into_iter().map(Encoded::without_trunk).collect(),
        }
    }
}

/// Separator of the fingerprints in the fingerprint of a hybrid endpoint, and of ids in the name of two models that are computed in one pass.
pub(crate) const PARTS: &str = "+";

/// The models of a node, with their endpoints and deployments.
#[derive(Debug)]
pub struct Models {
    pub endpoints: Endpoints,
    pub(crate) registry: Registry,
    pub(crate) store: Store,
    pub(crate) deployments: Arc<Deployments>,
    monitor: Monitor,
    pub(crate) options: ModelOptions,
}

impl Models {
    /// Registers the model directories and starts the remembered deployments, or the default one on the first start.
    ///
    /// A deployment that cannot start is logged and stays remembered: documents can be searched by words without it.
    ///
    /// # Errors
    /// When what is stored of models, endpoints or deployments is damaged or cannot be read.
    pub fn open(data: Arc<DataDir>, mut options: ModelOptions) -> Result<Self, EngineError> {
        if options.threads == 0 {
            options.threads = std::thread::available_parallelism().map_or(1, usize::from);
        }
        let packed = PackedFolder::new(data.path());
        let registry = Registry::open(&options.directories, &packed);
        if let Some(library) = options.library.take() {
            sparrow_encoder::set_runtime(library);
        }
        let store = Store::open(Arc::clone(&data), &registry, options.folder.as_deref())?;
        packed.tidy(|id| registry.find(id).is_some_and(|model| model.id == id));
        let models = Self {
            store,
            endpoints: Endpoints::open(Arc::clone(&data), |model| registry.find(model).is_some())?,
            deployments: Arc::new(Deployments::new(data)),
            monitor: Monitor::default(),
            registry,
            options,
        };
        models.deployments.restart(&models.registry, &models.options)?;
        // Those that a crash kept from getting their deployment.
        for endpoint in models.endpoints.all() {
            let owns_deployment = !endpoint.preconfigured && endpoint.owns_deployment();
            if owns_deployment
                && models.deployments.get(&endpoint.inference_id).is_none()
                && let Err(error) = models.start_endpoint(&endpoint)
            {
                tracing::error!(endpoint = endpoint.inference_id, %error, "an inference endpoint did not start");
            }
        }
        models.watch();
        Ok(models)
    }

    /// The fingerprint of a model, endpoint or deployment, a hex digest: models whose vectors differ have different ones. A hybrid endpoint
    /// has those of both models, joined by `+`. `None` if the model does not exist or its files are unusable.
    pub fn model_fingerprint(&self, model_id: &str) -> Option<String> {
        if let Some(parts) = self.hybrid_parts(model_id) {
            let of_parts: Option<Vec<String>> =
                parts.ids().iter().map(|part| self.fingerprint_of_one(part)).collect();
            return of_parts.map(|parts| parts.join(PARTS));
        }
        self.fingerprint_of_one(model_id)
    }

    /// The fingerprint of an id with one model.
    fn fingerprint_of_one(&self, model_id: &str) -> Option<String> {
        self.behind(model_id)?.info().ok().map(|info| info.fingerprint.clone())
    }

    /// Whether a model's vectors can be compared with those of a fingerprint; `None` if the model does not exist. For a hybrid endpoint,
    /// each of its models must be comparable with its part of the fingerprint; a single model is comparable with a hybrid fingerprint if it
    /// is with any part of it.
    pub fn compares_with(&self, model_id: &str, fingerprint: &str) -> Option<bool> {
        let Some(parts) = self.hybrid_parts(model_id) else {
            let with_part = |part| self.one_compares_with(model_id, part);
            return fingerprint.split(PARTS).try_fold(false, |any, part| Some(any || with_part(part)?));
        };
        let ids = parts.ids();
        let stored: Vec<&str> = fingerprint.split(PARTS).collect();
        if stored.len() != ids.len() {
            return Some(false);
        }
        ids.iter().zip(stored).try_fold(true, |all, (part, stored)| {
            self.one_compares_with(part, stored).map(|compares| all && compares)
        })
    }

    fn one_compares_with(&self, model_id: &str, fingerprint: &str) -> Option<bool> {
        self.behind(model_id)?.info().ok().map(|info| info.compares_with(fingerprint))
    }

    /// The model of an id: its own, a deployment's or an inference endpoint's.
    pub(crate) fn behind(&self, model_id: &str) -> Option<Arc<RegisteredModel>> {
        self.resolve(model_id).or_else(|| {
            let endpoint = self.endpoints.get(model_id)?;
            self.resolve(endpoint.deployment()).or_else(|| self.resolve(&endpoint.model_id))
        })
    }

    /// The map from the scores of a kind of vectors to a probability of relevance; `None` if none was fitted for the model of the id.
    pub fn calibration(&self, model_id: &str, kind: VectorKind) -> Option<Calibration> {
        let parts = self.hybrid_parts(model_id);
        let id = parts.as_ref().map_or(model_id, |parts| parts.of(kind));
        self.behind(id)?.info().ok()?.calibration
    }

    /// The id of a registered model with a fingerprint, to show to people.
    pub fn name_of(&self, fingerprint: &str) -> Option<String> {
        self.registry.of_fingerprint(fingerprint)
    }

    /// Stops all deployments, which stay remembered.
    pub fn close(&self) {
        self.monitor.stop();
        self.deployments.close();
    }

    /// Starts the deployment of an endpoint, under its id.
    ///
    /// # Errors
    /// Status 404 if the model does not exist, 429 if it needs more threads than the machine can run, or an error of loading the model.
    pub fn start_endpoint(&self, endpoint: &Endpoint) -> Result<Arc<Running>, EngineError> {
        let model = self
            .registry
            .find(&endpoint.model_id)
            .ok_or_else(|| ModelError::NotFound { id: endpoint.model_id.clone() })?;
        let settings = self.endpoint_settings(endpoint, &model.id);
        self.check_capacity(settings.number_of_allocations.saturating_mul(settings.threads_per_allocation))?;
        let running = match self.deployments.start(&model, settings) {
            // Someone else was faster.
            Err(ModelError::AlreadyStarted { id }) => {
                self.deployments.get(&id).ok_or(ModelError::NotDeployed { id })?
            }
            other => other?,
        };
        self.watch();
        Ok(running)
    }

    /// Resizes the deployment of an endpoint to the endpoint's settings.
    ///
    /// # Errors
    /// 404 when it does not run, 429 for more than the machine can run.
    pub fn resize_endpoint(&self, endpoint: &Endpoint) -> Result<(), EngineError> {
        let id = endpoint.deployment();
        let settings = self.endpoint_settings(endpoint, &endpoint.model_id);
        self.check_capacity(settings.number_of_allocations.saturating_mul(settings.threads_per_allocation))?;
        let changed =
            self.deployments.update(id, settings.number_of_allocations, settings.adaptive_allocations)?;
        if changed.is_none() {
            return Err(EngineError::resource_not_found(format!(
                "deployment for model with id [{id}] not found"
            )));
        }
        self.watch();
        Ok(())
    }

    fn endpoint_settings(&self, endpoint: &Endpoint, model_id: &str) -> DeploymentSettings {
        let adaptive = endpoint.adaptive_allocations.filter(|adaptive| adaptive.enabled);
        let allocations = match adaptive {
            Some(adaptive) => adaptive.initial(self.cores()),
            None => endpoint.num_allocations.unwrap_or(1),
        };
        DeploymentSettings {
            deployment_id: endpoint.deployment().to_owned(),
            threads_per_allocation: endpoint.num_threads,
            adaptive_allocations: endpoint.adaptive_allocations,
            ..DeploymentSettings::new(model_id, allocations)
        }
    }

    /// Stops a deployment, if it runs.
    pub fn stop_deployment(&self, deployment_id: &str) {
        self.deployments.stop(deployment_id);
    }

    /// The model of a deployment that runs.
    pub fn deployed_model(&self, deployment_id: &str) -> Option<String> {
        self.deployments.get(deployment_id).map(|running| running.model.id.clone())
    }

    /// The size of a deployment that runs.
    pub fn deployment_size(&self, deployment_id: &str) -> Option<DeploymentSize> {
        let settings = self.deployments.get(deployment_id)?.settings();
        Some(DeploymentSize {
            allocations: settings.number_of_allocations.max(1),
            threads: settings.threads_per_allocation,
            adaptive: settings.adaptive_allocations,
        })
    }

    /// Refuses to run more than four threads for each core (at least 16 threads), which leaves room for experiments.
    pub(crate) fn check_capacity(&self, threads: usize) -> Result<(), EngineError> {
        let room = self.cores().max(4) * 4;
        if threads <= room {
            return Ok(());
        }
        Err(EngineError::api(
            429,
            Exception::new(
                "status_exception",
                "Could not start deployment because no ML nodes with sufficient capacity were found",
            )
            .because(Exception::new(
                "illegal_state_exception",
                format!("[{threads}] threads were asked for, at most [{room}] can run on this machine"),
            )),
        ))
    }

    /// Starts the thread that adapts allocations, if any deployment is adaptive.
    pub(crate) fn watch(&self) {
        if self.deployments.any_adaptive() {
            self.monitor.start(&self.deployments, &self.options);
        }
    }

    /// Encodes texts, with the model's prefixes, within a time limit.
    pub fn encode_within(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Encoded>, ModelError> {
        Ok(self.encode_with_model(model_id, texts, purpose, cancel, timeout)?.1)
    }

    /// As [`Self::encode_within`], with the model that has encoded the texts: an id may soon stand for another one.
    ///
    /// # Errors
    /// As [`Self::encode_within`].
    pub fn encode_with_model(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
        timeout: Option<Duration>,
    ) -> Result<(Arc<sparrow_encoder::Model>, Vec<Encoded>), ModelError> {
        let (running, kinds) = self.encoding(model_id)?;
        let deployment = &running.deployment;
        let prefixed = running.model.prefixed(texts, purpose == Purpose::Query);
        let prefixed: Option<Vec<&str>> =
            prefixed.as_ref().map(|texts| texts.iter().map(String::as_str).collect());
        let texts = prefixed.as_deref().unwrap_or(texts);
        waiting_unless_attempted(|| match purpose {
            Purpose::Query => deployment.encode_queries(texts, cancel, timeout),
            Purpose::Direct => deployment.encode(texts, Priority::Search, cancel, timeout),
            Purpose::Ingest => deployment.encode(texts, Priority::Ingest, cancel, timeout),
            Purpose::PacedIngest => deployment.encode_paced(texts, cancel),
        })
        .map(|encoded| (Arc::clone(deployment.model()), kinds.of(encoded)))
        .map_err(|error| ModelError::from_encoder(model_id, error))
    }

    /// Counters of the deployment for an id; none if it does not run.
    pub fn figures(&self, model_id: &str) -> Option<DeploymentStats> {
        Some(self.deployments.find(model_id, &self.registry)?.deployment.stats())
    }

    /// Counters of all running deployments.
    pub fn totals(&self) -> Vec<DeploymentTotals> {
        self.deployments
            .all()
            .iter()
            .map(|running| DeploymentTotals {
                name: format!("{}@{}", running.settings().deployment_id, running.start_time_ms),
                stats: running.deployment.stats(),
            })
            .collect()
    }

    /// Size of all running models in bytes, each counted once.
    pub fn loaded_bytes(&self) -> u64 {
        let running = self.deployments.all();
        let sizes: BTreeMap<&str, u64> = running
            .iter()
            .filter_map(|running| Some((running.model.id.as_str(), running.model.info().ok()?.size_bytes)))
            .collect();
        sizes.into_values().sum()
    }

    /// The words of a text from which the tokens of its sparse vector come; `None` if the model does not run, is not sparse, or fails.
    pub fn attribute(&self, model_id: &str, text: &str) -> Option<Vec<Attribution>> {
        if give_up() {
            return None;
        }
        let running = self.running(model_id).ok()?;
        running.deployment.attribute(text).ok().flatten()
    }

    /// Ids of the sparse models that run; only those of one fingerprint, if it is known.
    pub fn running_with_attribution(&self, fingerprint: Option<&str>) -> Vec<String> {
        self.deployments.sparse(fingerprint)
    }

    /// Cores that encoding may use.
    pub(crate) fn cores(&self) -> usize {
        self.options.threads.max(1)
    }

    /// The running deployment of an id, woken if it slept; started if it may start without a request.
    pub(crate) fn running(&self, id: &str) -> Result<Arc<Running>, ModelError> {
        let running = match self.deployments.find(id, &self.registry) {
            Some(running) => running,
            None => self.start_on_demand(id)?,
        };
        if running.deployment.allocations() == 0 {
            may_take_seconds()?;
            self.deployments.wake(&running)?;
        }
        Ok(running)
    }

    /// The running deployment of a model that makes vectors, by its id or by one of the names of [`Models::encoders`], and which of the
    /// vectors that it makes are wanted.
    pub(crate) fn encoding(&self, name: &str) -> Result<(Arc<Running>, Kinds), ModelError> {
        let parts = name.split_once(PARTS).filter(|(sparse, dense)| self.is_head_on(sparse, dense));
        let running = self.running(parts.map_or(name, |(sparse, _)| sparse))?;
        match running.deployment.model().info().kind {
            ModelKind::CrossEncoder => Err(ModelError::MakesScores { id: name.to_owned() }),
            _ => Ok((running, if parts.is_some() { Kinds::Both } else { Kinds::Own })),
        }
    }

    /// Finds or starts the deployment for an id that has none: that of an endpoint, or that of the embedded dense model.
    fn start_on_demand(&self, id: &str) -> Result<Arc<Running>, ModelError> {
        if let Some(endpoint) = self.endpoints.get(id) {
            if let Some(parts) = &endpoint.hybrid {
                return Err(not_one_vector(id, parts));
            }
            let other = if endpoint.preconfigured { &endpoint.model_id } else { endpoint.deployment() };
            if let Some(running) = self.deployments.find(other, &self.registry) {
                return Ok(running);
            }
            may_take_seconds()?;
            if endpoint.preconfigured {
                return self.start_endpoint(&endpoint).map_err(|error| ModelError::Unusable {
                    id: endpoint.model_id.clone(),
                    reason: error.reason(),
                });
            }
            if self.registry.find(&endpoint.model_id).is_none() {
                return Err(self.no_model(&endpoint.model_id));
            }
            return Err(ModelError::NotDeployed { id: other.to_owned() });
        }
        let Some(model) = self.registry.find(id) else {
            return Err(self.no_model(id));
        };
        may_take_seconds()?;
        model.info()?;
        if self.options.deploy_at_start
            && model.id == DENSE_MODEL
            && !self.deployments.was_stopped(DENSE_MODEL)
        {
            return self.deployments.start_automatically(&model, &self.options);
        }
        Err(ModelError::NotDeployed { id: id.to_owned() })
    }
}

/// Gives up an attempt to answer without another thread, before a model is read or started.
fn may_take_seconds() -> Result<(), ModelError> {
    if give_up() { Err(ModelError::Cancelled) } else { Ok(()) }
}
