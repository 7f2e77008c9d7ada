//! Description of a task to be started.

use std::sync::Arc;

use serde_json::Value;

use crate::progress::Progress;
use sparrow_request::request::Request;
use sparrow_request::rights::Holder;

/// Action name of requests that list tasks.
const LISTING: &str = "cluster:monitor/tasks/lists";

/// Description of a task to be started.
#[derive(Debug, Clone)]
pub struct TaskSpec {
    pub action: String,
    pub description: String,
    pub cancellable: bool,
    pub persistent: bool,
    pub opaque_id: Option<String>,
    /// The restricted API key that started the task, which may have only a share of all tasks.
    pub owner: Option<Holder>,
    pub resume: Option<Value>,
    /// Number of the parent task, if there is one.
    pub parent: Option<u64>,
    /// Original start time of a task that is resumed after a restart, in milliseconds since the epoch.
    pub started_ms: Option<u64>,
    /// Whether a user cancelled the task before the server was restarted.
    pub cancelled_by_user: bool,
    /// Progress report of the job, if it exists before the job runs.
    pub progress: Option<Arc<dyn Progress>>,
    /// Whether the job or its caller logs failures, so that the task does not.
    pub failure_is_told: bool,
}

/// Member of a record that says that a user cancelled the task; not set when the server stops.
pub const CANCELLED: &str = "cancelled_by_user";

impl TaskSpec {
    /// A task that cannot be cancelled and whose result is not stored.
    pub fn new(action: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            action: action.into(),
            description: description.into(),
            cancellable: false,
            persistent: false,
            opaque_id: None,
            owner: None,
            resume: None,
            parent: None,
            started_ms: None,
            cancelled_by_user: false,
            progress: None,
            failure_is_told: false,
        }
    }

    /// A request that lists tasks, and is itself listed as one.
    pub fn listing() -> Self {
        Self::new(LISTING, "")
    }

    /// Whether the task is a request that lists tasks.
    pub fn is_listing(&self) -> bool {
        self.action == LISTING
    }

    /// Declares that the job, or the request that waits for it, logs failures.
    #[must_use]
    pub fn tells_failure(mut self) -> Self {
        self.failure_is_told = true;
        self
    }

    /// Makes the task cancellable.
    #[must_use]
    pub fn cancellable(mut self) -> Self {
        self.cancellable = true;
        self
    }

    /// Makes the result of the task be stored, so that it survives restarts.
    #[must_use]
    pub fn persistent(mut self) -> Self {
        self.persistent = true;
        self
    }

    /// Sets what a task has from the request that starts it: the `X-Opaque-Id` header and the owner.
    #[must_use]
    pub fn of(self, request: &Request) -> Self {
        self.opaque_id(request.opaque_id.clone()).owned_by(request.caller.holder())
    }

    /// Sets the restricted API key to which the task belongs, if it is one.
    #[must_use]
    pub fn owned_by(mut self, owner: Option<&Holder>) -> Self {
        self.owner = owner.cloned();
        self
    }

    /// Sets the `X-Opaque-Id` header of the request that starts the task.
    #[must_use]
    pub fn opaque_id(mut self, id: Option<String>) -> Self {
        self.opaque_id = id;
        self
    }

    /// Sets the progress report of the job.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Makes the task a child of another task.
    #[must_use]
    pub fn part_of(mut self, number: u64) -> Self {
        self.parent = Some(number);
        self
    }

    /// Continues a task from its record: takes over the `X-Opaque-Id`, the start time, and whether a user
    /// cancelled it.
    #[must_use]
    pub fn recorded(mut self, record: &Value) -> Self {
        let task = &record["task"];
        self.opaque_id = task["headers"]["X-Opaque-Id"].as_str().map(str::to_owned);
        self.started_ms = task["start_time_in_millis"].as_u64();
        self.cancelled_by_user = record[CANCELLED] == true;
        self
    }

    /// Sets the point from which the task is resumed if the server ends before the first checkpoint.
    #[must_use]
    pub fn resumable(mut self, resume: Value) -> Self {
        self.resume = Some(resume);
        self
    }
}
