//! Models and their deployments: which models there are, which of them run, and encoding with those that run.
//!
//! Deployments are remembered in the data directory and run again after a restart. On the first start the embedded
//! sparse model is deployed by itself, if the options say so; the embedded dense model starts with the first text that
//! needs it, as it is much larger and many installations never search by it.

mod api;
mod deployments;
mod error;
mod registry;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::Value;
use sparrow_encoder::{Attribution, DeploymentStats, Encoded, Priority, RuntimeOptions, Timings};
use sparrow_storage::DataDir;

pub(crate) use self::api::{
    get_trained_models, infer_trained_model, start_deployment, stop_deployment, trained_model_stats,
    update_deployment,
};
use self::deployments::{Deployments, Running};
pub use self::error::ModelError;
use self::registry::{DENSE_MODEL, RegisteredModel, Registry};

/// What the models need from the options of the engine.
#[derive(Debug, Clone)]
pub struct ModelOptions {
    /// The ONNX Runtime library.
    pub library: PathBuf,
    /// Model directories.
    pub directories: Vec<PathBuf>,
    /// Whether the embedded models are deployed without being asked for.
    pub deploy_at_start: bool,
    /// Cores that encoding may use; 0 for all of the machine.
    pub threads: usize,
}

/// Why a text is encoded: decides about its place in the queue, and what a full queue means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The text of a search. Goes first; fails if the queue is full.
    Query,
    /// A text whose caller waits, to be encoded as a document. Goes first; fails if the queue is full.
    Direct,
    /// A document that is written. Fails if the queue is full.
    Ingest,
    /// A document that a job writes: waits for room.
    PacedIngest,
}

/// Something that encodes texts; [`Models`], or a stand-in where a test is about something else.
pub trait TextEncoder: Sync {
    /// Encodes texts with a deployed model, in the order given.
    ///
    /// # Errors
    /// If the model does not exist or is not deployed, or the encoder fails.
    fn encode(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Encoded>, ModelError>;

    /// Encodes texts of searches and says where the time goes, as far as that is known.
    ///
    /// # Errors
    /// As [`TextEncoder::encode`].
    fn encode_timed(
        &self,
        model_id: &str,
        texts: &[&str],
        cancel: Option<&AtomicBool>,
    ) -> Result<(Vec<Encoded>, Timings), ModelError> {
        Ok((self.encode(model_id, texts, Purpose::Query, cancel)?, Timings::default()))
    }

    /// Hex digest that tells models with different vectors apart.
    fn fingerprint(&self, model_id: &str) -> Option<String>;
}

/// All models of the server.
#[derive(Debug)]
pub struct Models {
    registry: Registry,
    deployments: Deployments,
    options: ModelOptions,
}

impl Models {
    /// Looks into the model directories and starts what ran before, or the default deployment on the first start.
    ///
    /// A deployment that cannot start is logged and left out: documents can be searched by words without it.
    pub fn open(data: Arc<DataDir>, mut options: ModelOptions) -> Self {
        if options.threads == 0 {
            options.threads = std::thread::available_parallelism().map_or(1, usize::from);
        }
        let registry = Registry::open(&options.directories);
        if let Err(error) =
            sparrow_encoder::init_runtime(&RuntimeOptions { library: options.library.clone() })
        {
            tracing::error!(%error, "models cannot be deployed");
        }
        let models = Self { deployments: Deployments::new(data), registry, options };
        models.deployments.restart(&models.registry, &models.options);
        models
    }

    /// Hex digest that tells models with different vectors apart; none for a model that does not exist.
    pub fn model_fingerprint(&self, model_id: &str) -> Option<String> {
        self.resolve(model_id)?.info().ok().map(|info| info.fingerprint.clone())
    }

    /// Stops all deployments, which stay remembered.
    pub fn close(&self) {
        self.deployments.close();
    }

    /// Encodes with a time limit.
    pub(crate) fn encode_within(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
        timeout: Option<Duration>,
    ) -> Result<Vec<Encoded>, ModelError> {
        let running = self.running(model_id)?;
        let deployment = &running.deployment;
        match purpose {
            Purpose::Query => deployment.encode_queries(texts, cancel, timeout),
            Purpose::Direct => deployment.encode(texts, Priority::Search, cancel, timeout),
            Purpose::Ingest => deployment.encode(texts, Priority::Ingest, cancel, timeout),
            Purpose::PacedIngest => deployment.encode_paced(texts, cancel),
        }
        .map_err(|error| ModelError::from_encoder(model_id, error))
    }

    /// Counters of the deployment for an id; none if it does not run.
    pub(crate) fn figures(&self, model_id: &str) -> Option<DeploymentStats> {
        Some(self.deployments.find(model_id, &self.registry)?.deployment.stats())
    }

    /// The words of a text that the tokens of its sparse vector come from; `None` if the model does not run, cannot say
    /// it, or fails.
    pub(crate) fn attribute(&self, model_id: &str, text: &str) -> Option<Vec<Attribution>> {
        let running = self.deployments.find(model_id, &self.registry)?;
        running.deployment.attribute(text).ok().flatten()
    }

    /// Ids of the sparse models that run; only those of one fingerprint, if it is known.
    pub(crate) fn running_with_attribution(&self, fingerprint: Option<&str>) -> Vec<String> {
        self.deployments.sparse(fingerprint)
    }

    /// Cores that encoding may use.
    fn cores(&self) -> usize {
        self.options.threads.max(1)
    }

    /// The model of a deployment, an id or an alias.
    fn resolve(&self, id: &str) -> Option<Arc<RegisteredModel>> {
        if let Some(running) = self.deployments.get(id) {
            return Some(Arc::clone(&running.model));
        }
        self.registry.find(id).map(Arc::clone)
    }

    /// The running deployment for an id; starts the embedded dense model if that may start by itself.
    fn running(&self, id: &str) -> Result<Arc<Running>, ModelError> {
        if let Some(running) = self.deployments.find(id, &self.registry) {
            return Ok(running);
        }
        let Some(model) = self.registry.find(id) else {
            return Err(ModelError::NotFoundForInference { id: id.to_owned() });
        };
        model.info()?;
        if self.options.deploy_at_start
            && model.id == DENSE_MODEL
            && !self.deployments.was_stopped(DENSE_MODEL)
        {
            return self.deployments.start_automatically(model, &self.options);
        }
        Err(ModelError::NotDeployed { id: id.to_owned() })
    }
}

impl TextEncoder for Models {
    fn encode(
        &self,
        model_id: &str,
        texts: &[&str],
        purpose: Purpose,
        cancel: Option<&AtomicBool>,
    ) -> Result<Vec<Encoded>, ModelError> {
        self.encode_within(model_id, texts, purpose, cancel, None)
    }

    fn encode_timed(
        &self,
        model_id: &str,
        texts: &[&str],
        cancel: Option<&AtomicBool>,
    ) -> Result<(Vec<Encoded>, Timings), ModelError> {
        let running = self.running(model_id)?;
        running
            .deployment
            .encode_queries_timed(texts, cancel)
            .map_err(|error| ModelError::from_encoder(model_id, error))
    }

    fn fingerprint(&self, model_id: &str) -> Option<String> {
        self.model_fingerprint(model_id)
    }
}

/// A single-precision number with as few digits as tell it apart from its neighbours. (A plain conversion to double
/// would write 0.1 as 0.10000000149011612.)
pub(crate) fn weight_to_json(weight: f32) -> Value {
    let shortest = few_decimals(weight)
        .unwrap_or_else(|| weight.to_string().parse().unwrap_or_else(|_| f64::from(weight)));
    serde_json::Number::from_f64(shortest).map_or(Value::Null, Value::Number)
}

/// The shortest decimal of a weight of a usual size, found by rounding to ever more decimals: many times faster than
/// printing it and reading that. A number below 2^53 divided by a power of ten below 10^22 is the double nearest to
/// that decimal, which is what reading it would give.
fn few_decimals(weight: f32) -> Option<f64> {
    let exact = f64::from(weight);
    if !(1e-3..8.0).contains(&exact) {
        return None;
    }
    let mut scale = 1e4;
    // Fewer decimals than five are found among five just the same, as zeros at the end: below 8, numbers of single
    // precision are nearer to one another than those.
    for _ in 5..=11 {
        scale *= 10.0;
        let short = (exact * scale).round() / scale;
        #[expect(clippy::cast_possible_truncation, reason = "the round trip is what is asked")]
        if short as f32 == weight {
            return Some(short);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::weight_to_json;
    use proptest::prelude::*;

    #[test]
    fn weights_are_written_short() {
        for (weight, text) in [(0.1_f32, "0.1"), (1.0, "1.0"), (2.345_678_8, "2.3456788"), (1e-8, "1e-8")] {
            let value = weight_to_json(weight);
            assert_eq!(value.to_string(), text);
            #[expect(clippy::cast_possible_truncation, reason = "the round trip is what is tested")]
            let back = value.as_f64().unwrap() as f32;
            assert_eq!(back.to_bits(), weight.to_bits());
        }
    }

    proptest! {
        #[test]
        fn any_weight_is_the_decimal_that_printing_gives(bits in any::<u32>(), usual in 0.0_f32..8.0) {
            for weight in [f32::from_bits(bits), usual] {
                prop_assume!(weight.is_finite());
                let printed: f64 = weight.to_string().parse().unwrap();
                prop_assert_eq!(weight_to_json(weight).as_f64().unwrap().to_bits(), printed.to_bits());
            }
        }
    }
}
