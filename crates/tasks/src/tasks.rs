//! Registry of all tasks of the node: running ones and stored results.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use sparrow_write_ahead_log::DataDir;

use crate::context::TaskContext;
use crate::record;
use crate::requests::{RequestGuard, Requests};
use crate::spec::TaskSpec;
use crate::store::Store;
use crate::task::Task;
use sparrow_request::caught;
use sparrow_request::error::EngineError;
use sparrow_request::request::Request;
use sparrow_request::rights::Holder;

/// Most tasks that run at once, not counting child tasks.
const MOST_RUNNING: usize = 64;
/// Most requests that wait for tasks at once; each occupies a thread.
const MOST_WAITING: usize = 64;
/// Most child tasks that run at once.
const MOST_PARTS: usize = 2048;
/// Longest wait for tasks to stop when the server stops.
const CLOSE_PATIENCE: Duration = Duration::from_secs(20);

/// Registry of the node's running tasks and stored results.
pub struct Tasks {
    store: Arc<Store>,
    node: String,
    next: AtomicU64,
    running: Arc<Mutex<BTreeMap<u64, Arc<Task>>>>,
    requests: Requests,
    /// Owners of the requests that are waiting for tasks.
    waiting: Arc<Mutex<Vec<Option<Holder>>>>,
}

impl Tasks {
    /// Opens the store of results.
    ///
    /// # Errors
    /// If the data directory cannot be read.
    pub fn open(data: Arc<DataDir>) -> Result<Self, EngineError> {
        let node = data.node_id().to_owned();
        let store = Store::open(data)?;
        let next = store.last().map_or(1, |last| last + 1);
        Ok(Self {
            node,
            store: Arc::new(store),
            next: AtomicU64::new(next),
            running: Arc::default(),
            requests: Requests::default(),
            waiting: Arc::default(),
        })
    }

    /// Id of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Starts a job on a new thread.
    ///
    /// # Errors
    /// If too many tasks are running, or the record of a persistent task cannot be written.
    pub fn spawn(
        &self,
        spec: TaskSpec,
        job: impl FnOnce(&TaskContext) -> Result<Value, EngineError> + Send + 'static,
    ) -> Result<TaskHandle, EngineError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let task = self.register(number, spec, true)?;
        if task.spec.persistent
            && let Err(error) = self.store.write(number, || record::running(&task, task.spec.resume.clone()))
        {
            self.running.lock().remove(&number);
            return Err(error);
        }
        self.start(task, job)
    }

    /// Starts a job again, under its old number, that was running when the server ended.
    pub fn restart(
        &self,
        number: u64,
        spec: TaskSpec,
        job: impl FnOnce(&TaskContext) -> Result<Value, EngineError> + Send + 'static,
    ) -> Result<TaskHandle, EngineError> {
        let task = self.register(number, spec, false)?;
        self.start(task, job)
    }

    /// Registers an operation as a task while the guard lives; the operation runs on the caller's thread.
    pub fn enter(&self, spec: TaskSpec) -> Result<TaskGuard, EngineError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let task = self.register(number, spec, true)?;
        Ok(TaskGuard { task, running: Arc::clone(&self.running) })
    }

    /// Shows a request as a task until the returned guard is dropped. `index` is the index expression of its path; setting
    /// `cancel` stops it, if that is possible. Requests do not count with the tasks that may run at once.
    pub fn begin_request(
        &self,
        action: &'static str,
        index: &str,
        opaque_id: Option<&String>,
        cancel: Option<&Arc<AtomicBool>>,
    ) -> RequestGuard {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.requests.begin(number, action, index, opaque_id, cancel)
    }

    /// Registers a request that waits for tasks; the place is free again when the returned guard is dropped.
    ///
    /// # Errors
    /// When 64 requests already wait, or as many of the request's key as its share of these.
    pub fn waiting(&self, request: &Request) -> Result<Waiting, EngineError> {
        let owner = request.caller.holder();
        let mut waiting = self.waiting.lock();
        Holder::check_share(owner, waiting.iter().map(Option::as_ref), MOST_WAITING)
            .map_err(|capacity| EngineError::Rejected { queue: "tasks", capacity })?;
        waiting.push(owner.cloned());
        Ok(Waiting { all: Arc::clone(&self.waiting), owner: owner.cloned() })
    }

    /// Cancels tasks and their children on behalf of a user; they are not resumed after a restart or crash.
    pub fn cancel(&self, tasks: &[Arc<Task>]) {
        for task in tasks {
            task.cancel_for_good();
            self.cancel_parts(task.number);
        }
        // The disk may be slow, and a task that ended meanwhile has a record that says so.
        for task in tasks.iter().filter(|task| task.spec.persistent) {
            self.store.note_cancelled(task.number);
        }
    }

    /// Cancels the children of a task.
    pub fn cancel_parts(&self, number: u64) {
        for part in self.jobs() {
            if part.spec.parent == Some(number) {
                part.cancel();
            }
        }
    }

    /// Running tasks and requests, by ascending number.
    pub fn running(&self) -> Vec<Arc<Task>> {
        let mut all = self.jobs();
        all.extend(self.requests.tasks(&self.node));
        all.sort_by_key(|task| task.number);
        all
    }

    /// Running tasks without requests, by ascending number.
    fn jobs(&self) -> Vec<Arc<Task>> {
        self.running.lock().values().cloned().collect()
    }

    /// The running task or request with this number.
    pub fn find(&self, number: u64) -> Option<Arc<Task>> {
        let job = self.running.lock().get(&number).cloned();
        job.or_else(|| self.requests.find(number, &self.node))
    }

    /// Stored record of a task; `None` if none is stored.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn kept(&self, number: u64) -> Result<Option<Value>, EngineError> {
        if !self.store.has(number) {
            return Ok(None);
        }
        self.store.read(number)
    }

    /// Returns a function that retries the writes of records that failed. To be called from time to time; it
    /// does not hold a reference to the engine.
    pub fn settling(&self) -> impl Fn() + Send + use<> {
        let store = Arc::clone(&self.store);
        move || store.settle()
    }

    /// Records of tasks that were running when the server ended, with their numbers.
    pub fn unfinished(&self) -> Vec<(u64, Value)> {
        let numbers: Vec<u64> = self.store.numbers();
        let mut unfinished = Vec::new();
        for number in numbers {
            match self.store.read(number) {
                Ok(Some(record)) if record::is_running(&record) => unfinished.push((number, record)),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, number, "a task record cannot be read"),
            }
        }
        unfinished
    }

    /// Records that an interrupted task will not be resumed.
    pub fn give_up(&self, number: u64, record: &Value) {
        if let Err(error) = self.store.write(number, || record::interrupted(record)) {
            tracing::warn!(%error, number, "an interrupted task cannot be written down");
        }
    }

    /// Cancels all tasks, and waits for them at most 20 s. Persistent jobs can be resumed after the next
    /// start.
    pub fn close(&self) {
        self.store.close();
        let running = self.jobs();
        for task in &running {
            task.cancel();
        }
        let deadline = std::time::Instant::now() + CLOSE_PATIENCE;
        for task in running {
            if task.wait(Some(deadline.saturating_duration_since(std::time::Instant::now()))).is_none() {
                tracing::warn!(task = task.id(), "a task did not stop in time");
            }
        }
        self.store.settle();
    }

    /// `by_share`: whether a restricted key may have no more than its share.
    fn register(&self, number: u64, spec: TaskSpec, by_share: bool) -> Result<Arc<Task>, EngineError> {
        if self.store.is_closing() {
            return Err(EngineError::Cancelled);
        }
        let mut running = self.running.lock();
        let is_part = spec.parent.is_some();
        let most = if is_part { MOST_PARTS } else { MOST_RUNNING };
        let counts = |other: &&Arc<Task>| other.spec.parent.is_some() == is_part && !other.spec.is_listing();
        if !spec.is_listing() {
            let owner = spec.owner.as_ref().filter(|_| by_share);
            let held = running.values().filter(counts).map(|other| other.spec.owner.as_ref());
            Holder::check_share(owner, held, most)
                .map_err(|capacity| EngineError::Rejected { queue: "tasks", capacity })?;
        }
        let task = Arc::new(Task::new(number, &self.node, spec));
        running.insert(number, Arc::clone(&task));
        Ok(task)
    }

    fn start(
        &self,
        task: Arc<Task>,
        job: impl FnOnce(&TaskContext) -> Result<Value, EngineError> + Send + 'static,
    ) -> Result<TaskHandle, EngineError> {
        let slot = Arc::new(Mutex::new(None));
        let handle = TaskHandle { task: Arc::clone(&task), result: Arc::clone(&slot) };
        let (store, running) = (Arc::clone(&self.store), Arc::clone(&self.running));
        let number = task.number;
        let work = move || {
            let context = TaskContext { task: Arc::clone(&task), store: Arc::clone(&store) };
            let result = caught(|| job(&context)).unwrap_or_else(|message| {
                tracing::error!(task = task.id(), message, "a job panicked");
                Err(EngineError::internal("the job panicked"))
            });
            let resumes_later =
                store.is_closing() && matches!(result, Err(EngineError::Cancelled)) && task.spec.persistent;
            if let Err(error) = &result
                && !resumes_later
                && !task.spec.failure_is_told
            {
                tracing::info!(task = task.id(), action = task.spec.action, %error, "task failed");
            }
            let outcome = task.outcome_of(&result);
            // The record is there before anybody can see that the task no longer runs.
            if task.spec.persistent && !resumes_later {
                store.keep(number, record::completed(&outcome));
            }
            *slot.lock() = Some(result);
            task.end(outcome);
            running.lock().remove(&number);
            store.trim(&|number| running.lock().contains_key(&number));
        };
        match std::thread::Builder::new().name(format!("sparrow-task-{number}")).spawn(work) {
            Ok(_) => Ok(handle),
            Err(error) => {
                self.running.lock().remove(&number);
                Err(EngineError::internal(format!("a task thread cannot start: {error}")))
            }
        }
    }
}

/// Handle of a task that was started.
pub struct TaskHandle {
    task: Arc<Task>,
    result: Arc<Mutex<Option<Result<Value, EngineError>>>>,
}

impl TaskHandle {
    /// Id of the task, `node:number`.
    pub fn id(&self) -> String {
        self.task.id()
    }

    /// Waits for the result, unless `is_unwanted` returns true; the job itself continues then.
    ///
    /// # Errors
    /// The error of the job; [`EngineError::Cancelled`] soon after `is_unwanted` returns true.
    pub fn wait(self, is_unwanted: &dyn Fn() -> bool) -> Result<Value, EngineError> {
        if self.task.wait_unless(None, is_unwanted).is_none() {
            return Err(EngineError::Cancelled);
        }
        self.result
            .lock()
            .take()
            .unwrap_or_else(|| Err(EngineError::internal("a task ended without a result")))
    }
}

/// Guard of a request that waits for tasks; dropping it frees the place.
pub struct Waiting {
    all: Arc<Mutex<Vec<Option<Holder>>>>,
    owner: Option<Holder>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(place) = all.iter().position(|owner| *owner == self.owner) {
            all.swap_remove(place);
        }
    }
}

/// Guard of an operation that is registered as a task; dropping it ends the task.
pub struct TaskGuard {
    task: Arc<Task>,
    running: Arc<Mutex<BTreeMap<u64, Arc<Task>>>>,
}

impl TaskGuard {
    /// Handle through which the operation reads and updates its task.
    pub fn context(&self, tasks: &Tasks) -> TaskContext {
        TaskContext { task: Arc::clone(&self.task), store: Arc::clone(&tasks.store) }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        // A request that waits for the end of the task gets the result.
        self.task.end(self.task.outcome_of(&Ok(Value::Null)));
        self.running.lock().remove(&self.task.number);
    }
}

#[cfg(test)]
mod tests;
