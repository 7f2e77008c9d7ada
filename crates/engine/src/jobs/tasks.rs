//! All tasks of the node: those that run, and the results that are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use sparrow_storage::DataDir;

use super::record;
use super::task::{Progress, Task, TaskContext};
use crate::error::EngineError;
use crate::executor::caught;

/// Most results that are kept; older ones go.
const KEPT_RESULTS: usize = 1000;
/// Most tasks that run at once, without those that are parts of others.
const MOST_RUNNING: usize = 64;
/// Most requests that wait for tasks at once: each has a thread, and others need some too.
const MOST_WAITING: usize = 64;
/// Most parts of tasks that run at once.
const MOST_PARTS: usize = 2048;
/// Longest wait for tasks to stop when the server stops.
const CLOSE_PATIENCE: Duration = Duration::from_secs(20);
const PREFIX: &str = "task-";
const LISTING: &str = "cluster:monitor/tasks/lists";

/// What a task is, before it starts.
#[derive(Debug, Clone)]
pub(crate) struct TaskSpec {
    pub(super) action: String,
    pub(super) description: String,
    pub(super) cancellable: bool,
    pub(super) persistent: bool,
    pub(super) opaque_id: Option<String>,
    pub(super) resume: Option<Value>,
    /// Number of the task that this one is a part of.
    pub(super) parent: Option<u64>,
    /// Start of a task that goes on after a restart, milliseconds since the epoch.
    pub(super) started_ms: Option<u64>,
    /// What the job tells about itself, if it is known before it runs.
    pub(super) progress: Option<Arc<dyn Progress>>,
}

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
            progress: None,
        }
    }

    /// A request that shows tasks, and shows itself among them.
    pub fn listing() -> Self {
        Self::new(LISTING, "")
    }

    pub(super) fn is_listing(&self) -> bool {
        self.action == LISTING
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

    /// When it started, before the server was restarted.
    #[must_use]
    pub fn started_at(mut self, millis: Option<u64>) -> Self {
        self.started_ms = millis;
        self
    }

    /// From where it goes on if the server ends before its first checkpoint.
    #[must_use]
    pub fn resumable(mut self, resume: Value) -> Self {
        self.resume = Some(resume);
        self
    }
}

/// Where results and checkpoints are kept.
pub(crate) struct Store {
    data: Arc<DataDir>,
    /// Numbers of the tasks that have a record.
    kept: Mutex<BTreeSet<u64>>,
    /// Results that the disk refused, until it takes them. What it has instead says that the task still runs.
    unwritten: Mutex<BTreeMap<u64, Value>>,
    closing: AtomicBool,
}

impl Store {
    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    pub(super) fn write(&self, number: u64, record: &Value) -> Result<(), EngineError> {
        self.data.write_json(&name(number), record)?;
        self.kept.lock().insert(number);
        Ok(())
    }

    /// Keeps a result: on the disk, or in memory as long as the disk does not take it.
    fn keep(&self, number: u64, record: Value) {
        if let Err(error) = self.write(number, &record) {
            tracing::error!(%error, number, "a task result cannot be written down; it is tried again");
            self.unwritten.lock().insert(number, record);
        }
    }

    /// Writes down the results that the disk refused before, if it takes them now.
    fn settle(&self) {
        let unwritten = self.unwritten.lock().clone();
        for (number, record) in unwritten {
            if self.write(number, &record).is_ok() {
                self.unwritten.lock().remove(&number);
            }
        }
    }

    pub(super) fn read(&self, number: u64) -> Result<Option<Value>, EngineError> {
        if let Some(record) = self.unwritten.lock().get(&number) {
            return Ok(Some(record.clone()));
        }
        Ok(self.data.read_json(&name(number))?)
    }

    /// Drops the oldest results beyond the bound; tasks that run keep their records.
    fn trim(&self, running: &dyn Fn(u64) -> bool) {
        let mut kept = self.kept.lock();
        let surplus = kept.len().saturating_sub(KEPT_RESULTS);
        let old: Vec<u64> = kept.iter().copied().filter(|number| !running(*number)).take(surplus).collect();
        for number in old {
            if let Err(error) = self.data.remove(&name(number)) {
                tracing::warn!(%error, number, "an old task result cannot be removed");
            }
            self.unwritten.lock().remove(&number);
            kept.remove(&number);
        }
    }
}

/// All tasks.
pub(crate) struct Tasks {
    store: Arc<Store>,
    node: String,
    next: AtomicU64,
    running: Arc<Mutex<BTreeMap<u64, Arc<Task>>>>,
    /// Requests that wait for tasks.
    waiting: Arc<AtomicUsize>,
}

impl Tasks {
    /// Reads which results are kept.
    ///
    /// # Errors
    /// If the data directory cannot be read.
    pub fn open(data: Arc<DataDir>) -> Result<Self, EngineError> {
        let kept: BTreeSet<u64> =
            data.list(PREFIX)?.iter().filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok()).collect();
        let next = kept.last().map_or(1, |last| last + 1);
        Ok(Self {
            node: data.node_id().to_owned(),
            store: Arc::new(Store {
                data,
                kept: Mutex::new(kept),
                unwritten: Mutex::default(),
                closing: AtomicBool::new(false),
            }),
            next: AtomicU64::new(next),
            running: Arc::default(),
            waiting: Arc::default(),
        })
    }

    /// Id of the node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Starts a job on a thread of its own.
    ///
    /// # Errors
    /// If too many tasks run, or a persistent task cannot be written down.
    pub fn spawn(
        &self,
        spec: TaskSpec,
        job: impl FnOnce(&TaskContext) -> Result<Value, EngineError> + Send + 'static,
    ) -> Result<TaskHandle, EngineError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let task = self.register(number, spec)?;
        if task.spec.persistent
            && let Err(error) = self.store.write(number, &record::running(&task, task.spec.resume.clone()))
        {
            self.running.lock().remove(&number);
            return Err(error);
        }
        self.start(task, job)
    }

    /// Starts a job again that ran when the server ended, under its old number.
    pub(super) fn restart(
        &self,
        number: u64,
        spec: TaskSpec,
        job: impl FnOnce(&TaskContext) -> Result<Value, EngineError> + Send + 'static,
    ) -> Result<TaskHandle, EngineError> {
        let task = self.register(number, spec)?;
        self.start(task, job)
    }

    /// Shows an operation as a task as long as the guard lives; it runs on its caller's thread.
    pub fn enter(&self, spec: TaskSpec) -> Result<TaskGuard, EngineError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let task = self.register(number, spec)?;
        Ok(TaskGuard { task, running: Arc::clone(&self.running) })
    }

    /// A place among the requests that wait for tasks, until it is dropped.
    ///
    /// # Errors
    /// When there is none.
    pub fn waiting(&self) -> Result<Waiting, EngineError> {
        let place = Waiting(Arc::clone(&self.waiting));
        if place.0.fetch_add(1, Ordering::Relaxed) < MOST_WAITING {
            return Ok(place);
        }
        Err(EngineError::Rejected { queue: "tasks", capacity: MOST_WAITING })
    }

    /// Asks a task and its parts to stop.
    pub fn cancel(&self, task: &Task) {
        task.cancel();
        self.cancel_parts(task.number);
    }

    /// Asks the parts of a task to stop.
    pub fn cancel_parts(&self, number: u64) {
        for part in self.running() {
            if part.spec.parent == Some(number) {
                part.cancel();
            }
        }
    }

    /// The tasks that run, by number.
    pub fn running(&self) -> Vec<Arc<Task>> {
        self.running.lock().values().cloned().collect()
    }

    /// A task that runs.
    pub fn find(&self, number: u64) -> Option<Arc<Task>> {
        self.running.lock().get(&number).cloned()
    }

    /// What is kept of a task.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn kept(&self, number: u64) -> Result<Option<Value>, EngineError> {
        if !self.store.kept.lock().contains(&number) {
            return Ok(None);
        }
        self.store.read(number)
    }

    /// Writes down the results that the disk refused, if it takes them now. To be called from time to time, by who does not hold the
    /// engine.
    pub fn settling(&self) -> impl Fn() + Send + use<> {
        let store = Arc::clone(&self.store);
        move || store.settle()
    }

    /// Records of tasks that ran when the server ended.
    pub(super) fn unfinished(&self) -> Vec<(u64, Value)> {
        let numbers: Vec<u64> = self.store.kept.lock().iter().copied().collect();
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

    /// Sets down that a task was interrupted for good.
    pub(super) fn give_up(&self, number: u64, record: &Value) {
        if let Err(error) = self.store.write(number, &record::interrupted(record)) {
            tracing::warn!(%error, number, "an interrupted task cannot be written down");
        }
    }

    /// Stops all tasks. Jobs that can be resumed go on after the next start.
    pub fn close(&self) {
        self.store.closing.store(true, Ordering::Relaxed);
        let running = self.running();
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

    fn register(&self, number: u64, spec: TaskSpec) -> Result<Arc<Task>, EngineError> {
        if self.store.is_closing() {
            return Err(EngineError::Cancelled);
        }
        let mut running = self.running.lock();
        let is_part = spec.parent.is_some();
        let capacity = if is_part { MOST_PARTS } else { MOST_RUNNING };
        let counts = |other: &&Arc<Task>| other.spec.parent.is_some() == is_part && !other.spec.is_listing();
        if !spec.is_listing() && running.values().filter(counts).count() >= capacity {
            return Err(EngineError::Rejected { queue: "tasks", capacity });
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

/// A task that was started.
pub(crate) struct TaskHandle {
    task: Arc<Task>,
    result: Arc<Mutex<Option<Result<Value, EngineError>>>>,
}

impl TaskHandle {
    /// `node:number`
    pub fn id(&self) -> String {
        self.task.id()
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// What the job failed with.
    pub fn wait(self) -> Result<Value, EngineError> {
        self.task.wait(None);
        self.result
            .lock()
            .take()
            .unwrap_or_else(|| Err(EngineError::internal("a task ended without a result")))
    }
}

/// A request that waits for tasks, counted while this lives.
pub(crate) struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Shows an operation as a task while it lives.
pub(crate) struct TaskGuard {
    task: Arc<Task>,
    running: Arc<Mutex<BTreeMap<u64, Arc<Task>>>>,
}

impl TaskGuard {
    /// What the work of the task needs.
    pub fn context(&self, tasks: &Tasks) -> TaskContext {
        TaskContext { task: Arc::clone(&self.task), store: Arc::clone(&tasks.store) }
    }
}

impl Drop for TaskGuard {
    fn drop(&mut self) {
        // Whoever waits for the end of the task gets it.
        self.task.end(self.task.outcome_of(&Ok(Value::Null)));
        self.running.lock().remove(&self.task.number);
    }
}

fn name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

#[cfg(test)]
mod tests;
