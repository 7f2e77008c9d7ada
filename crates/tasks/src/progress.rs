//! What a job tells about itself while it runs.

use serde_json::Value;

/// What a job tells about itself while it runs.
pub trait Progress: Send + Sync + std::fmt::Debug {
    /// The `status` of the task.
    fn status(&self, cancelled: bool) -> Value;

    /// Changes the pace, in documents per second; says whether the job has one.
    fn rethrottle(&self, _requests_per_second: f64) -> bool {
        false
    }
}

/// A status that is replaced as a whole.
#[derive(Debug)]
pub(crate) struct FixedStatus(pub(crate) Value);

impl Progress for FixedStatus {
    fn status(&self, _cancelled: bool) -> Value {
        self.0.clone()
    }
}
