//! What belongs to no index: pipelines, templates, settings of the cluster, inference endpoints.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::manifest::GlobalState;
use crate::Engine;
use crate::error::EngineError;
use crate::inference::Endpoint;

impl GlobalState {
    /// As it is now.
    pub fn of(engine: &Engine) -> Self {
        let endpoints = engine.models.endpoints.all();
        let stored = endpoints.iter().filter(|endpoint| !endpoint.preconfigured);
        let inference: Map<String, Value> =
            stored.map(|endpoint| (endpoint.inference_id.clone(), json!(**endpoint))).collect();
        Self {
            pipelines: engine.pipelines.definitions(""),
            templates: engine.indices.templates.set().to_json(),
            settings: engine.cluster.persistent(),
            inference,
        }
    }

    /// Whether all of it can be used here.
    ///
    /// # Errors
    /// What is wrong with a part of it.
    pub fn check(&self) -> Result<(), EngineError> {
        sparrow_ingest::Pipelines::check_all(&self.pipelines)?;
        crate::indices::TemplateSet::parse(&self.templates)?;
        crate::cluster::ClusterSettings::check_persistent(&self.settings)?;
        self.endpoints().map(|_| ())
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>, EngineError> {
        let parse = |value: &Value| {
            serde_json::from_value(value.clone()).map_err(|error| {
                EngineError::internal(format!("an inference endpoint of the snapshot: {error}"))
            })
        };
        self.inference.values().map(parse).collect()
    }

    /// Puts it in force as Elasticsearch does: pipelines, index and component templates and persistent settings take the
    /// place of all that are there, legacy templates and endpoints of those of the same name. `done` says of each part that it
    /// is in force.
    ///
    /// # Errors
    /// When a part of it cannot be used here or written; parts before it are then in force.
    pub fn apply(&self, engine: &Arc<Engine>, done: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
        let templates = crate::indices::TemplateSet::parse(&self.templates)?;
        let endpoints = self.endpoints()?;
        engine.pipelines.replace_all(&self.pipelines)?;
        done("the pipelines");
        engine.indices.templates.change(|set| {
            set.index = templates.index;
            set.component = templates.component;
            set.legacy.extend(templates.legacy);
            Ok(())
        })?;
        done("the templates");
        engine.cluster.replace_persistent(&self.settings)?;
        crate::memory::apply(&engine.memory, &engine.cluster);
        done("the settings of the cluster");
        let _one = engine.models.endpoints.lock();
        for endpoint in endpoints {
            engine.models.endpoints.put(endpoint.clone())?;
            done(&format!("inference endpoint [{}]", endpoint.inference_id));
            // As at a start: one whose model is not here is kept, and says so when it is used.
            if endpoint.owns_deployment()
                && let Err(error) = engine.models.start_endpoint(&endpoint)
            {
                tracing::warn!(endpoint = endpoint.inference_id, %error, "a restored endpoint has no deployment");
            }
        }
        Ok(())
    }
}
