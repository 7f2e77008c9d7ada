//! What a job has of its own task.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use sparrow_call::error::EngineError;

use crate::progress::FixedStatus;
use crate::record;
use crate::store::Store;
use crate::task::Task;

/// What a job has of its own task.
pub struct TaskContext {
    pub(crate) task: Arc<Task>,
    pub(crate) store: Arc<Store>,
}

impl TaskContext {
    /// The flag that cancels the job; encoders and searches poll it.
    pub fn cancel_flag(&self) -> &Arc<AtomicBool> {
        self.task.cancel_flag()
    }

    /// Whether the job has to stop.
    pub fn is_cancelled(&self) -> bool {
        self.task.is_cancelled()
    }

    /// Whether it has to stop since the server stops, so that it will go on after the next start.
    pub fn is_closing(&self) -> bool {
        self.store.is_closing()
    }

    /// The number of the task.
    pub fn number(&self) -> u64 {
        self.task.number
    }

    /// The `X-Opaque-Id` of the request that started it.
    pub fn opaque_id(&self) -> Option<String> {
        self.task.spec.opaque_id.clone()
    }

    /// Whether the result is kept for later questions.
    pub fn is_persistent(&self) -> bool {
        self.task.spec.persistent
    }

    /// Replaces the status.
    pub fn set_status(&self, status: Value) {
        self.task.show(Arc::new(FixedStatus(status)));
    }

    /// Sets down from where the job can go on after a crash.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn checkpoint(&self, resume: Value) -> Result<(), EngineError> {
        self.store.write(self.task.number, || record::running(&self.task, Some(resume)))
    }
}
