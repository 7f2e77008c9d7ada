//! What belongs to no index: pipelines, templates, settings of the cluster, inference endpoints.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::manifest::GlobalState;
use crate::Engine;
use crate::error::EngineError;

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

    /// Puts it in force as Elasticsearch does: pipelines, index and component templates and persistent settings take the
    /// place of all that are there, legacy templates and endpoints of those of the same name.
    ///
    /// # Errors
    /// When a part of it cannot be used here or written; parts before it are then in force.
    pub fn apply(&self, engine: &Arc<Engine>) -> Result<(), EngineError> {
        let templates = crate::indices::TemplateSet::parse(&self.templates)?;
        let endpoints: Vec<crate::inference::Endpoint> = self
            .inference
            .values()
            .map(|value| {
                serde_json::from_value(value.clone()).map_err(|error| {
                    EngineError::internal(format!("an inference endpoint of the snapshot: {error}"))
                })
            })
            .collect::<Result<_, _>>()?;
        engine.pipelines.replace_all(&self.pipelines)?;
        engine.indices.templates.change(|set| {
            set.index = templates.index;
            set.component = templates.component;
            set.legacy.extend(templates.legacy);
            Ok(())
        })?;
        engine.cluster.replace_persistent(&self.settings)?;
        let _one = engine.models.endpoints.lock();
        for endpoint in endpoints {
            engine.models.endpoints.put(endpoint)?;
        }
        Ok(())
    }
}
