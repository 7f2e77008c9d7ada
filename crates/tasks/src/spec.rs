//! What a task is, before it starts.

use std::sync::Arc;

use serde_json::Value;

use crate::progress::Progress;

/// The action of requests that show tasks.
const LISTING: &str = "cluster:monitor/tasks/lists";

/// What a task is, before it starts.
#[derive(Debug, Clone)]
pub struct TaskSpec {
    pub action: String,
    pub description: String,
    pub cancellable: bool,
    pub persistent: bool,
    pub opaque_id: Option<String>,
    pub resume: Option<Value>,
    /// Number of the task that this one is a part of.
    pub parent: Option<u64>,
    /// Start of a task that goes on after a restart, milliseconds since the epoch.
    pub started_ms: Option<u64>,
    /// Whether a user asked it to stop before the server was restarted.
    pub cancelled_by_user: bool,
    /// What the job tells about itself, if it is known before it runs.
    pub progress: Option<Arc<dyn Progress>>,
    /// Whether somebody else logs why the job failed.
    pub failure_is_told: bool,
}

/// The member of a record which says that a user asked the task to stop; the end of the server is not told there.
pub const CANCELLED: &str = "cancelled_by_user";

impl TaskSpec {
    /// A task that can neither be cancelled nor asked for later.
    pub fn new(action: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            action: action.into(),
            description: description.into(),
            cancellable: false,
            persistent: false,
            opaque_id: None,
            resume: None,
            parent: None,
            started_ms: None,
            cancelled_by_user: false,
            progress: None,
            failure_is_told: false,
        }
    }

    /// A request that shows tasks, and shows itself among them.
    pub fn listing() -> Self {
        Self::new(LISTING, "")
    }

    /// Whether it is a request that shows tasks.
    pub fn is_listing(&self) -> bool {
        self.action == LISTING
    }

    /// The job or the request that waits for it logs why it failed.
    #[must_use]
    pub fn tells_failure(mut self) -> Self {
        self.failure_is_told = true;
        self
    }

    /// It can be cancelled.
    #[must_use]
    pub fn cancellable(mut self) -> Self {
        self.cancellable = true;
        self
    }

    /// Keeps the result of the task, also across restarts.
    #[must_use]
    pub fn persistent(mut self) -> Self {
        self.persistent = true;
        self
    }

    /// The `X-Opaque-Id` of the request that started it.
    #[must_use]
    pub fn opaque_id(mut self, id: Option<String>) -> Self {
        self.opaque_id = id;
        self
    }

    /// Lets a job answer for its own status.
    #[must_use]
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// It is a part of another task.
    #[must_use]
    pub fn part_of(mut self, number: u64) -> Self {
        self.parent = Some(number);
        self
    }

    /// It goes on where `record` says that it was when the server ended: for whom it runs, when it started, and whether a user asked it
    /// to stop.
    #[must_use]
    pub fn recorded(mut self, record: &Value) -> Self {
        let task = &record["task"];
        self.opaque_id = task["headers"]["X-Opaque-Id"].as_str().map(str::to_owned);
        self.started_ms = task["start_time_in_millis"].as_u64();
        self.cancelled_by_user = record[CANCELLED] == true;
        self
    }

    /// From where it goes on if the server ends before its first checkpoint.
    #[must_use]
    pub fn resumable(mut self, resume: Value) -> Self {
        self.resume = Some(resume);
        self
    }
}
