//! Which model a name stands for.

use std::sync::Arc;

use super::Models;
use super::registry::RegisteredModel;

impl Models {
    /// The model of a deployment, an id or an alias.
    pub fn resolve(&self, id: &str) -> Option<Arc<RegisteredModel>> {
        if let Some(running) = self.deployments.get(id) {
            return Some(Arc::clone(&running.model));
        }
        self.registry.find(id)
    }

    /// Id of the model that serves an inference endpoint, a deployment or a model id; `id` itself if no model is known for it.
    pub fn model_behind(&self, id: &str) -> String {
        let endpoint = self.endpoints.get(id);
        let deployed = endpoint.as_ref().map_or(id, |endpoint| match endpoint.preconfigured {
            true => &endpoint.model_id,
            false => endpoint.deployment(),
        });
        self.resolve(deployed).map_or_else(|| id.to_owned(), |model| model.id.clone())
    }
}
