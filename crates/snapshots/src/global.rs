//! What belongs to no index: pipelines, templates, settings of the cluster, inference endpoints.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::manifest::GlobalState;
use crate::service::SnapshotService;
use sparrow_call::error::EngineError;
use sparrow_models::endpoints::Endpoint;

impl GlobalState {
    /// As it is now.
    pub fn of(service: &SnapshotService) -> Self {
        let endpoints = service.models.endpoints.all();
        let stored = endpoints.iter().filter(|endpoint| !endpoint.preconfigured);
        let inference: Map<String, Value> =
            stored.map(|endpoint| (endpoint.inference_id.clone(), json!(**endpoint))).collect();
        Self {
            pipelines: service.pipelines.definitions(""),
            templates: service.indices.templates.set().to_json(),
            settings: service.cluster.persistent(),
            inference,
        }
    }

    /// Whether all of it can be used here.
    ///
    /// # Errors
    /// What is wrong with a part of it.
    pub fn check(&self) -> Result<(), EngineError> {
        sparrow_ingest::Pipelines::check_all(&self.pipelines)?;
        sparrow_indices::TemplateSet::parse(&self.templates)?;
        sparrow_indices::ClusterSettings::check_persistent(&self.settings)?;
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
    pub fn apply(
        &self,
        service: &Arc<SnapshotService>,
        done: &mut dyn FnMut(&str),
    ) -> Result<(), EngineError> {
        let templates = sparrow_indices::TemplateSet::parse(&self.templates)?;
        let endpoints = self.endpoints()?;
        service.pipelines.replace_all(&self.pipelines)?;
        done("the pipelines");
        service.indices.templates.change(|set| {
            set.index = templates.index;
            set.component = templates.component;
            set.legacy.extend(templates.legacy);
            Ok(())
        })?;
        done("the templates");
        service.cluster.replace_persistent(&self.settings)?;
        sparrow_indices::memory::apply(&service.memory, &service.cluster);
        done("the settings of the cluster");
        let _one = service.models.endpoints.lock();
        for endpoint in endpoints {
            service.models.endpoints.put(endpoint.clone())?;
            done(&format!("inference endpoint [{}]", endpoint.inference_id));
            // As at a start: one whose model is not here is kept, and says so when it is used.
            if endpoint.owns_deployment()
                && let Err(error) = service.models.start_endpoint(&endpoint)
            {
                tracing::warn!(endpoint = endpoint.inference_id, %error, "a restored endpoint has no deployment");
            }
        }
        Ok(())
    }
}
