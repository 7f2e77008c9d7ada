//! Reads and restores what belongs to no index: pipelines, templates, cluster settings, inference endpoints.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::manifest::GlobalState;
use crate::service::SnapshotService;
use sparrow_models::endpoints::Endpoint;
use sparrow_request::error::EngineError;

impl GlobalState {
    /// The current global state of the node.
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

    /// Checks whether this server can use all parts of the state.
    ///
    /// # Errors
    /// Why a part cannot be used.
    pub fn check(&self) -> Result<(), EngineError> {
        sparrow_ingest::Pipelines::check_all(&self.pipelines)?;
        sparrow_catalog::TemplateSet::parse(&self.templates)?;
        sparrow_catalog::ClusterSettings::check_persistent(&self.settings)?;
        self.endpoints().map(|_| ())
    }

    fn endpoints(&self) -> Result<Vec<Endpoint>, EngineError> {
        self.inference.iter().map(|(id, definition)| Endpoint::of_snapshot(id, definition)).collect()
    }

    /// Restores the state as Elasticsearch does: pipelines, index and component templates and persistent
    /// settings replace all existing ones; legacy templates and endpoints replace those of the same name.
    /// `done` is called with the name of each part once it is in force.
    ///
    /// # Errors
    /// When a part cannot be used or written; the parts before it are then already in force.
    pub fn apply(
        &self,
        service: &Arc<SnapshotService>,
        done: &mut dyn FnMut(&str),
    ) -> Result<(), EngineError> {
        let templates = sparrow_catalog::TemplateSet::parse(&self.templates)?;
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
        sparrow_catalog::memory::apply(&service.memory, &service.cluster);
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
