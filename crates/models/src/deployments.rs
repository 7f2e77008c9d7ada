//! The deployments of a node: starting, changing and stopping them, and remembering them across restarts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sparrow_encoder::{Deployment, DeploymentOptions};
use sparrow_write_ahead_log::DataDir;

use super::ModelError;
use super::ModelOptions;
use super::adaptive::{AdaptiveAllocations, Observation, Scaler};
use super::registry::{RegisteredModel, Registry};
use sparrow_request::error::EngineError;
use sparrow_write_ahead_log::stores;

/// Name of the store in the data directory.
const STORE: &str = "deployments";
/// Most texts that may wait for a deployment, unless a request sets another number.
pub(super) const DEFAULT_QUEUE_CAPACITY: usize = 1024;
/// Bytes of the vector cache of a deployment that was started without a request.
pub(super) const DEFAULT_CACHE_BYTES: usize = 16 << 20;
/// Most allocations of a deployment that was started without a request.
const MOST_AUTOMATIC_ALLOCATIONS: usize = 8;

/// The settings that a deployment was started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeploymentSettings {
    pub deployment_id: String,
    pub model_id: String,
    pub number_of_allocations: usize,
    pub threads_per_allocation: usize,
    pub queue_capacity: usize,
    pub cache_bytes: usize,
    pub priority: String,
    /// Whether it was started without a request; the first explicit start then takes it over.
    #[serde(default)]
    pub automatic: bool,
    /// The bounds within which the number of allocations follows the load; `None` for a fixed number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adaptive_allocations: Option<AdaptiveAllocations>,
}

impl DeploymentSettings {
    /// A deployment of the usual size, under the id of its model.
    pub fn new(model_id: &str, allocations: usize) -> Self {
        Self {
            deployment_id: model_id.to_owned(),
            model_id: model_id.to_owned(),
            number_of_allocations: allocations,
            threads_per_allocation: 1,
            queue_capacity: DEFAULT_QUEUE_CAPACITY,
            cache_bytes: DEFAULT_CACHE_BYTES,
            priority: "normal".into(),
            automatic: false,
            adaptive_allocations: None,
        }
    }

    /// The setting, if it is enabled.
    pub fn adaptive(&self) -> Option<AdaptiveAllocations> {
        self.adaptive_allocations.filter(|adaptive| adaptive.enabled)
    }
}

/// A running deployment.
#[derive(Debug)]
pub struct Running {
    pub model: Arc<RegisteredModel>,
    pub deployment: Deployment,
    pub start_time_ms: u64,
    started: Instant,
    settings: Mutex<DeploymentSettings>,
    scaler: Mutex<Scaler>,
}

impl Running {
    /// The settings of the deployment, as they are now.
    pub fn settings(&self) -> DeploymentSettings {
        self.settings.lock().clone()
    }

    /// The state of the deployment that the policy of adaptive allocations takes.
    fn observe(&self) -> Observation {
        let figures = self.deployment.stats();
        Observation {
            now: self.started.elapsed(),
            busy: Duration::from_secs_f64(
                (figures.average_inference_time_ms * figures.inference_count as f64 / 1000.0).max(0.0),
            ),
            texts: figures.inference_count,
            pending: figures.pending,
            allocations: figures.allocations,
        }
    }
}

/// The contents of the store.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Remembered {
    /// The deployments as JSON of [`DeploymentSettings`], including those that this version cannot read.
    deployments: Vec<Value>,
    /// Models that were stopped by request: they do not start by themselves.
    #[serde(default)]
    stopped: BTreeSet<String>,
}

/// All deployments of the node.
#[derive(Debug)]
pub(super) struct Deployments {
    data: Arc<DataDir>,
    running: RwLock<BTreeMap<String, Arc<Running>>>,
    stopped: RwLock<BTreeSet<String>>,
    /// Deployments that were remembered and did not start again: their model is missing, memory is short, or a later version wrote them.
    /// They stay remembered until one of the same id starts or is stopped, or their model is deleted.
    waiting: RwLock<BTreeMap<String, Value>>,
    /// Held while deployments start, change or stop, which takes time; encoding never waits for it.
    changes: Mutex<()>,
}

impl Deployments {
    pub fn new(data: Arc<DataDir>) -> Self {
        Self {
            data,
            running: RwLock::default(),
            stopped: RwLock::default(),
            waiting: RwLock::default(),
            changes: Mutex::new(()),
        }
    }

    /// Starts the remembered deployments, or the default deployment on the very first start.
    ///
    /// # Errors
    /// If the store is damaged or cannot be read; a deployment that does not start is no error.
    pub fn restart(&self, registry: &Registry, options: &ModelOptions) -> Result<(), EngineError> {
        let Some(stored) = self.data.read_json(STORE)? else {
            if options.deploy_at_start
                && let Some(model) = registry.default_model()
                && let Err(error) = self.start_automatically(&model, options)
            {
                tracing::error!(%error, "the default deployment did not start");
            }
            return Ok(());
        };
        let remembered: Remembered = serde_json::from_value(stored)
            .map_err(|error| stores::damaged(&self.data, STORE, error.to_string()))?;
        *self.stopped.write() = remembered.stopped;
        for (number, value) in remembered.deployments.into_iter().enumerate() {
            let id = value["deployment_id"].as_str().map_or_else(|| format!("#{number}"), str::to_owned);
            let started = DeploymentSettings::deserialize(&value)
                .map_err(|error| error.to_string())
                .and_then(|settings| {
                    let model = registry
                        .find(&settings.model_id)
                        .ok_or_else(|| format!("its model [{}] is no longer there", settings.model_id))?;
                    self.run(&model, settings).map_err(|error| error.to_string())
                });
            if let Err(reason) = started {
                tracing::error!(deployment = id, reason, "a deployment did not start again");
                self.waiting.write().insert(id, value);
            }
        }
        Ok(())
    }

    /// Forgets those deployments of a model that did not start again.
    pub fn forget_model(&self, model_id: &str) {
        let _changes = self.changes.lock();
        let before = self.waiting.read().len();
        self.waiting.write().retain(|_, settings| settings["model_id"] != model_id);
        if self.waiting.read().len() < before {
            self.remember();
        }
    }

    /// The deployment of exactly this id.
    pub fn get(&self, deployment_id: &str) -> Option<Arc<Running>> {
        self.running.read().get(deployment_id).cloned()
    }

    /// The deployment of this id, or one of the model of this id or alias.
    pub fn find(&self, id: &str, registry: &Registry) -> Option<Arc<Running>> {
        let running = self.running.read();
        if let Some(deployment) = running.get(id) {
            return Some(Arc::clone(deployment));
        }
        let model = registry.find(id)?;
        running.values().find(|running| running.model.id == model.id).cloned()
    }

    /// All deployments of a model.
    pub fn of_model(&self, model_id: &str) -> Vec<Arc<Running>> {
        self.running.read().values().filter(|running| running.model.id == model_id).cloned().collect()
    }

    /// Ids of the models with sparse vectors that run; only those of one fingerprint, if one is given.
    pub fn sparse(&self, fingerprint: Option<&str>) -> Vec<String> {
        let running = self.running.read();
        let mut ids: Vec<String> = running
            .values()
            .filter(|running| {
                let info = running.deployment.model().info();
                info.kind.is_sparse() && fingerprint.is_none_or(|wanted| wanted == info.fingerprint)
            })
            .map(|running| running.model.id.clone())
            .collect();
        ids.dedup();
        ids
    }

    /// Whether a model was stopped by request, so that it does not start by itself.
    pub fn was_stopped(&self, model_id: &str) -> bool {
        self.stopped.read().contains(model_id)
    }

    /// Starts a deployment on request. One that was started without a request is changed to the new settings.
    pub fn start(
        &self,
        model: &Arc<RegisteredModel>,
        settings: DeploymentSettings,
    ) -> Result<Arc<Running>, ModelError> {
        let _changes = self.changes.lock();
        if let Some(running) = self.get(&settings.deployment_id) {
            if !running.settings().automatic {
                return Err(ModelError::AlreadyStarted { id: settings.deployment_id });
            }
            let now = running.settings();
            if now.threads_per_allocation == settings.threads_per_allocation
                && now.queue_capacity == settings.queue_capacity
                && now.cache_bytes == settings.cache_bytes
            {
                running
                    .deployment
                    .set_allocations(settings.number_of_allocations)
                    .map_err(|error| ModelError::from_encoder(&model.id, error))?;
                *running.settings.lock() = settings;
                self.remember();
                return Ok(running);
            }
            self.running.write().remove(&settings.deployment_id);
            running.deployment.stop();
        }
        let running = self.run(model, settings)?;
        self.stopped.write().remove(&model.id);
        self.remember();
        Ok(running)
    }

    /// Starts a deployment without a request, sized for the machine; returns the running one if there is one.
    pub fn start_automatically(
        &self,
        model: &Arc<RegisteredModel>,
        options: &ModelOptions,
    ) -> Result<Arc<Running>, ModelError> {
        let _changes = self.changes.lock();
        if let Some(running) = self.get(&model.id) {
            return Ok(running);
        }
        let running = self.run(
            model,
            DeploymentSettings {
                automatic: true,
                ..DeploymentSettings::new(&model.id, options.threads.clamp(1, MOST_AUTOMATIC_ALLOCATIONS))
            },
        )?;
        self.remember();
        Ok(running)
    }

    /// Sets the number of allocations and whether they follow the load. If they do, `allocations` is only the number to begin with.
    pub fn update(
        &self,
        deployment_id: &str,
        allocations: usize,
        adaptive: Option<AdaptiveAllocations>,
    ) -> Result<Option<Arc<Running>>, ModelError> {
        let _changes = self.changes.lock();
        let Some(running) = self.get(deployment_id) else { return Ok(None) };
        running
            .deployment
            .set_allocations(allocations)
            .map_err(|error| ModelError::from_encoder(deployment_id, error))?;
        {
            let mut settings = running.settings.lock();
            settings.number_of_allocations = allocations;
            settings.adaptive_allocations = adaptive;
            settings.automatic = false;
        }
        *running.scaler.lock() = Scaler::default();
        self.remember();
        Ok(Some(running))
    }

    /// Starts a worker of a deployment that sleeps.
    pub fn wake(&self, running: &Running) -> Result<(), ModelError> {
        let _changes = self.changes.lock();
        // It may have been stopped meanwhile, or someone else woke it.
        let id = running.settings.lock().deployment_id.clone();
        let is_current = self.get(&id).is_some_and(|current| std::ptr::eq(&raw const *current, running));
        if is_current && running.deployment.allocations() == 0 {
            self.resize(running, 1)?;
        }
        Ok(())
    }

    /// Gives adaptive deployments the number of allocations that their load requires. Unless `full`, only sleeping deployments with waiting
    /// texts are changed.
    pub fn adapt(&self, options: &ModelOptions, full: bool) {
        let adaptive: Vec<Arc<Running>> = self.running.read().values().cloned().collect();
        for running in adaptive {
            let Some(setting) = running.settings.lock().adaptive() else { continue };
            let sleeps = running.deployment.allocations() == 0;
            if !full && !sleeps {
                continue;
            }
            let _changes = self.changes.lock();
            let seen = running.observe();
            if !full && seen.pending == 0 {
                continue;
            }
            let target =
                running.scaler.lock().decide(seen, setting.bounds(options.threads), &options.adaptive);
            if target != seen.allocations
                && let Err(error) = self.resize(&running, target)
            {
                tracing::error!(%error, "the allocations of a deployment could not be changed");
            }
        }
    }

    /// Whether any deployment follows its load.
    pub fn any_adaptive(&self) -> bool {
        self.running.read().values().any(|running| running.settings.lock().adaptive().is_some())
    }

    /// Changes the number of workers of an adaptive deployment. The number is not stored: a restart begins anew.
    fn resize(&self, running: &Running, allocations: usize) -> Result<(), ModelError> {
        let before = running.deployment.allocations();
        let changed = if allocations == 0 {
            running.deployment.park()
        } else {
            running.deployment.set_allocations(allocations)
        };
        let mut settings = running.settings.lock();
        changed.map_err(|error| ModelError::from_encoder(&settings.deployment_id, error))?;
        settings.number_of_allocations = allocations;
        tracing::info!(
            deployment = settings.deployment_id,
            from = before,
            to = allocations,
            "allocations adapted"
        );
        Ok(())
    }

    /// All running deployments.
    pub fn all(&self) -> Vec<Arc<Running>> {
        self.running.read().values().cloned().collect()
    }

    /// Stops a deployment; its waiting texts fail.
    ///
    /// A model whose own deployment is stopped does not start by itself any more.
    pub fn stop(&self, deployment_id: &str) {
        let _changes = self.changes.lock();
        let waited = self.waiting.write().remove(deployment_id).is_some();
        let Some(running) = self.running.write().remove(deployment_id) else {
            if waited {
                self.remember();
            }
            return;
        };
        if running.settings().deployment_id == running.model.id {
            self.stopped.write().insert(running.model.id.clone());
        }
        self.remember();
        running.deployment.stop();
    }

    /// Stops all deployments; they stay remembered.
    pub fn close(&self) {
        let _changes = self.changes.lock();
        let running = std::mem::take(&mut *self.running.write());
        for running in running.into_values() {
            running.deployment.stop();
        }
    }

    fn run(
        &self,
        model: &Arc<RegisteredModel>,
        settings: DeploymentSettings,
    ) -> Result<Arc<Running>, ModelError> {
        let started = Instant::now();
        let deployment = Deployment::start(
            model.load()?,
            DeploymentOptions {
                allocations: settings.number_of_allocations.max(1),
                threads_per_allocation: settings.threads_per_allocation,
                queue_capacity: settings.queue_capacity,
                cache_bytes: settings.cache_bytes,
            },
        )
        .map_err(|error| ModelError::from_encoder(&model.id, error))?;
        model.measure(&deployment);
        // The texts by which a model is measured came from no request, so they do not belong in its statistics.
        deployment.forget_figures();
        tracing::info!(
            deployment = settings.deployment_id,
            allocations = settings.number_of_allocations,
            milliseconds = started.elapsed().as_millis(),
            "model deployed"
        );
        let running = Arc::new(Running {
            model: Arc::clone(model),
            deployment,
            start_time_ms: now_ms(),
            started: Instant::now(),
            settings: Mutex::new(DeploymentSettings {
                number_of_allocations: settings.number_of_allocations.max(1),
                ..settings.clone()
            }),
            scaler: Mutex::default(),
        });
        self.running.write().insert(settings.deployment_id, Arc::clone(&running));
        Ok(running)
    }

    /// Writes the running deployments to the store. A failure is only logged, as the deployments run all the same.
    fn remember(&self) {
        let running = self.running.read();
        self.waiting.write().retain(|id, _| !running.contains_key(id));
        let waiting = self.waiting.read();
        let remembered = Remembered {
            deployments: running
                .values()
                .map(|running| json!(running.settings()))
                .chain(waiting.values().cloned())
                .collect(),
            stopped: self.stopped.read().clone(),
        };
        let written = serde_json::to_value(&remembered)
            .map_err(|error| error.to_string())
            .and_then(|value| self.data.write_json(STORE, &value).map_err(|error| error.to_string()));
        if let Err(error) = written {
            tracing::error!(%error, "deployments cannot be remembered");
        }
    }
}

pub(super) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|duration| u64::try_from(duration.as_millis()).ok())
        .unwrap_or_default()
}
