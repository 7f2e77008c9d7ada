//! Inference endpoints: named combinations of a model, a task, a deployment and chunking settings.
//!
//! Endpoints are stored in the data directory. An endpoint that a request created has a deployment of its own, with its
//! id, unless it names another; built-in endpoints are deployed when they are first used. Wherever a model id is
//! accepted, so is the id of an endpoint.

mod api;
mod endpoint;
mod hybrid;
mod infer;
mod problems;
mod rerank;
mod search_texts;
mod settings;
mod target;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sparrow_request::error::{EngineError, Exception};
use sparrow_write_ahead_log::stores::{self, Unusable};
use sparrow_write_ahead_log::{DataDir, StorageError};

pub(crate) use self::api::OPERATIONS;
pub use self::api::{SemanticIndices, delete_endpoint, put_endpoint};
pub use self::endpoint::{Endpoint, HybridParts, TaskType, not_one_vector};
use self::endpoint::{PRECONFIGURED, always_there, required_model};
pub(crate) use self::infer::OPERATIONS as ENCODING;
pub(crate) use self::search_texts::OPERATIONS as SEARCH_TEXTS;
pub use self::settings::shape;
pub use self::target::InferenceTarget;

/// Name of the store in the data directory.
const STORE: &str = "inference";

/// The error of an endpoint that is stored and that this version cannot read.
fn not_loaded(id: &str, kept: &Unusable) -> EngineError {
    let reason = format!("inference endpoint [{id}] could not be loaded, caused by [{}]", kept.reason);
    EngineError::api(500, Exception::new("illegal_state_exception", reason))
}

/// The inference endpoints of a node.
#[derive(Debug)]
pub struct Endpoints {
    data: Arc<DataDir>,
    current: RwLock<BTreeMap<String, Arc<Endpoint>>>,
    /// Endpoints that this version cannot read: kept as they are stored until they are replaced or deleted.
    unusable: RwLock<BTreeMap<String, Unusable>>,
    /// Lock that is held while an endpoint and its deployment are created, changed or deleted.
    changes: Mutex<()>,
    /// Ids of the built-in endpoints whose models are installed.
    built_in: Vec<&'static str>,
}

impl Endpoints {
    /// Reads the endpoints of the data directory. One that this version cannot read is kept, with the reason. Built-in endpoints join them,
    /// unless they require a model that is not installed.
    ///
    /// # Errors
    /// When the store is damaged or cannot be read.
    pub fn open(data: Arc<DataDir>, is_installed: impl Fn(&str) -> bool) -> Result<Self, EngineError> {
        let mut current = BTreeMap::new();
        let mut unusable = BTreeMap::new();
        for (id, definition) in stores::read_members(&data, STORE)? {
            match Endpoint::deserialize(&definition) {
                Ok(endpoint) => {
                    current.insert(id, Arc::new(endpoint));
                }
                Err(error) => {
                    tracing::error!(endpoint = id, %error, "a stored inference endpoint cannot be used");
                    unusable.insert(id, Unusable { definition, reason: error.to_string() });
                }
            }
        }
        let built_in: Vec<&str> =
            PRECONFIGURED.into_iter().filter(|id| required_model(id).is_none_or(&is_installed)).collect();
        for id in &built_in {
            current.entry((*id).to_owned()).or_insert_with(|| Arc::new(always_there(id)));
        }
        Ok(Self {
            data,
            current: RwLock::new(current),
            unusable: RwLock::new(unusable),
            changes: Mutex::new(()),
            built_in,
        })
    }

    /// The endpoints that this version cannot read, by id.
    pub fn unusable(&self) -> BTreeMap<String, Unusable> {
        self.unusable.read().clone()
    }

    /// The endpoint of this id.
    pub fn get(&self, id: &str) -> Option<Arc<Endpoint>> {
        self.current.read().get(id).cloned()
    }

    /// All endpoints, by id.
    pub fn all(&self) -> Vec<Arc<Endpoint>> {
        self.current.read().values().cloned().collect()
    }

    /// Locks the endpoints against changes by others.
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.changes.lock()
    }

    /// Stores an endpoint durably. The caller must hold [`Endpoints::lock`].
    ///
    /// # Errors
    /// When the store cannot be written; nothing has changed then.
    pub fn put(&self, endpoint: Endpoint) -> Result<(), StorageError> {
        let mut next = self.current.read().clone();
        let id = endpoint.inference_id.clone();
        next.insert(id.clone(), Arc::new(endpoint));
        self.replace(&id, next)
    }

    /// Deletes an endpoint durably. The caller must hold [`Endpoints::lock`]. A built-in endpoint is reset to its
    /// original settings.
    ///
    /// # Errors
    /// When the store cannot be written; nothing has changed then.
    pub fn remove(&self, id: &str) -> Result<(), StorageError> {
        let mut next = self.current.read().clone();
        next.remove(id);
        for name in self.built_in.iter().filter(|name| **name == id) {
            next.insert(id.to_owned(), Arc::new(always_there(name)));
        }
        self.replace(id, next)
    }

    /// Replaces all endpoints and writes them. `named` is the id of the changed endpoint, whose unreadable stored form,
    /// if any, is dropped.
    fn replace(&self, named: &str, next: BTreeMap<String, Arc<Endpoint>>) -> Result<(), StorageError> {
        let mut unusable = self.unusable();
        unusable.remove(named);
        let stored: Map<String, Value> = next
            .iter()
            .filter(|(_, endpoint)| !endpoint.preconfigured)
            .map(|(id, endpoint)| (id.clone(), json!(**endpoint)))
            .chain(unusable.iter().map(|(id, kept)| (id.clone(), kept.definition.clone())))
            .collect();
        self.data.write_json(STORE, &Value::Object(stored))?;
        *self.current.write() = next;
        *self.unusable.write() = unusable;
        Ok(())
    }
}
