//! The stored state of a change of the model of a `semantic_text` field.

use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use sparrow_request::error::{EngineError, Exception};

/// The state of a change of a field's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeState {
    /// Documents get vectors of the new model; searches read the old ones.
    Filling,
    /// All documents have vectors of both models; searches use the old ones.
    Ready,
    /// All documents have vectors of both models; searches use the new ones.
    Switched,
}

impl ChangeState {
    /// Name of the state in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filling => "filling",
            Self::Ready => "ready",
            Self::Switched => "switched",
        }
    }
}

/// A change of a field's model, as the metadata stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelChange {
    /// Path of the field whose model changes.
    pub field: String,
    pub state: ChangeState,
    /// Whether searches go over to the new vectors as soon as all documents have them.
    pub automatic: bool,
    /// The new field settings as the request gave them: a request with the same settings continues this change.
    pub wanted: Value,
    /// The request's description of how to compare the results of the two models; null once they were compared.
    pub compare: Value,
    /// The result of the comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Value>,
    /// Documents per second that the request allows; none for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<f64>,
    /// Why giving documents the new vectors stopped, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The task that gives documents vectors of a second model, and how many documents it has to process and has processed.
#[derive(Debug, Default)]
pub struct Filling {
    pub task: parking_lot::Mutex<Option<String>>,
    pub total: AtomicU64,
    pub filled: AtomicU64,
}

impl Filling {
    /// The error for a request that needs the index while the task runs.
    pub(super) fn conflict(&self, index: &str) -> EngineError {
        let by = match &*self.task.lock() {
            Some(task) => format!(" by task [{task}]"),
            // It begins just now.
            None => String::new(),
        };
        conflict(format!("a model of index [{index}] is being changed{by}"))
    }
}

/// An error with status 409 and this reason.
pub fn conflict(reason: String) -> EngineError {
    EngineError::api(409, Exception::new("status_exception", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_named_once_it_has_a_name() {
        let filling = Filling::default();
        assert_eq!(filling.conflict("i").reason(), "a model of index [i] is being changed");
        *filling.task.lock() = Some("n:1".to_owned());
        assert_eq!(filling.conflict("i").reason(), "a model of index [i] is being changed by task [n:1]");
    }

    #[test]
    fn the_pace_that_was_asked_for_is_kept() {
        let stored = serde_json::json!({"field": "f", "state": "filling", "automatic": true, "wanted": {}, "compare": {}});
        let mut change: ModelChange = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(serde_json::to_value(&change).unwrap(), stored);
        change.requests_per_second = Some(2.5);
        let read = serde_json::from_value(serde_json::to_value(&change).unwrap()).unwrap();
        assert_eq!(change, read);
    }
}
