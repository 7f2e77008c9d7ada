//! Progress reports of running jobs.

use serde_json::Value;

/// Progress report of a running job.
pub trait Progress: Send + Sync + std::fmt::Debug {
    /// The `status` member of the task.
    fn status(&self, cancelled: bool) -> Value;

    /// Changes the rate limit, in documents per second; returns false if the job has none.
    fn rethrottle(&self, _requests_per_second: f64) -> bool {
        false
    }
}

/// A constant status, which the job replaces as a whole.
#[derive(Debug)]
pub(crate) struct FixedStatus(pub(crate) Value);

impl Progress for FixedStatus {
    fn status(&self, _cancelled: bool) -> Value {
        self.0.clone()
    }
}
