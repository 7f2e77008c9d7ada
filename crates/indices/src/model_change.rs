//! What is kept of the change of the model of a `semantic_text` field.

use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use sparrow_call::error::{EngineError, Exception};

/// How far a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// Documents get vectors of the new model; searches read the old ones.
    Filling,
    /// All documents have both; searches read the old ones.
    Ready,
    /// All documents have both; searches read the new ones.
    Switched,
}

impl ChangeState {
    /// As answers say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filling => "filling",
            Self::Ready => "ready",
            Self::Switched => "switched",
        }
    }
}

/// A change of a model, as the metadata keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelChange {
    /// Path of the field.
    pub field: String,
    pub state: ChangeState,
    /// Whether searches go over to the new vectors as soon as all documents have them.
    pub automatic: bool,
    /// What the field is to have, as the request said it: a request that says the same goes on with this change.
    pub wanted: Value,
    /// How the answers of the two models are compared.
    pub compare: Value,
    /// What the comparison found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Value>,
    /// Why filling stopped, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The task that fills a second slot, and how many documents it has to and did.
#[derive(Debug, Default)]
pub struct Filling {
    pub task: parking_lot::Mutex<Option<String>>,
    pub total: AtomicU64,
    pub filled: AtomicU64,
}

/// Status 409.
pub fn conflict(reason: String) -> EngineError {
    EngineError::api(409, Exception::new("status_exception", reason))
}
