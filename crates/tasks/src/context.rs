//! Access of a running job to its own task.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::Value;
use sparrow_request::error::EngineError;

use crate::progress::FixedStatus;
use crate::record;
use crate::store::Store;
use crate::task::Task;

/// Handle through which a running job reads and updates its own task.
pub struct TaskContext {
    pub(crate) task: Arc<Task>,
    pub(crate) store: Arc<Store>,
}

impl TaskContext {
    /// Flag that is set when the job is cancelled; encoders and searches poll it.
    pub fn cancel_flag(&self) -> &Arc<AtomicBool> {
        self.task.cancel_flag()
    }

    /// Whether the job has to stop.
    pub fn is_cancelled(&self) -> bool {
        self.task.is_cancelled()
    }

    /// Whether the job must stop because the server stops; a persistent task then continues after the next
    /// start.
    pub fn is_closing(&self) -> bool {
        self.store.is_closing()
    }

    /// Number of the task.
    pub fn number(&self) -> u64 {
        self.task.number
    }

    /// `X-Opaque-Id` header of the request that started the task.
    pub fn opaque_id(&self) -> Option<String> {
        self.task.spec.opaque_id.clone()
    }

    /// Whether the task's result is stored and can be requested later.
    pub fn is_persistent(&self) -> bool {
        self.task.spec.persistent
    }

    /// Replaces the `status` of the task.
    pub fn set_status(&self, status: Value) {
        self.task.show(Arc::new(FixedStatus(status)));
    }

    /// Stores the point from which the job can be resumed after a crash.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn checkpoint(&self, resume: Value) -> Result<(), EngineError> {
        self.store.write(self.task.number, || record::running(&self.task, Some(resume)))
    }
}
