//! One task: what it is, how far it is, and what came out of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde_json::{Map, Value, json};

use super::record;
use super::tasks::{Store, TaskSpec};
use crate::error::EngineError;

/// How often whoever waits for a task looks whether anybody waits for it still.
const LOOK: Duration = Duration::from_millis(50);

/// What a job tells about itself while it runs.
pub(crate) trait Progress: Send + Sync + std::fmt::Debug {
    /// The `status` of the task.
    fn status(&self, cancelled: bool) -> Value;

    /// Changes the pace, in documents per second; says whether the job has one.
    fn rethrottle(&self, _requests_per_second: f64) -> bool {
        false
    }
}

/// A status that is replaced as a whole.
#[derive(Debug)]
struct FixedStatus(Value);

impl Progress for FixedStatus {
    fn status(&self, _cancelled: bool) -> Value {
        self.0.clone()
    }
}

/// A task that runs, or has just ended.
pub(crate) struct Task {
    pub number: u64,
    pub node: String,
    pub spec: TaskSpec,
    pub start_ms: u64,
    /// Time between the start and a restart of the server.
    before: Duration,
    started: Instant,
    cancelled: Arc<AtomicBool>,
    progress: Mutex<Option<Arc<dyn Progress>>>,
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

/// What came out of a task.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The task as it was when it ended.
    pub task: Value,
    pub response: Option<Value>,
    /// The error as a body shows it.
    pub error: Option<Value>,
}

impl Task {
    pub fn new(number: u64, node: &str, spec: TaskSpec) -> Self {
        let now = record::now_ms();
        Self {
            number,
            node: node.to_owned(),
            start_ms: spec.started_ms.unwrap_or(now),
            before: Duration::from_millis(spec.started_ms.map_or(0, |started| now.saturating_sub(started))),
            progress: Mutex::new(spec.progress.clone()),
            spec,
            started: Instant::now(),
            cancelled: Arc::new(AtomicBool::new(false)),
            outcome: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    /// `node:number`
    pub fn id(&self) -> String {
        format!("{}:{}", self.node, self.number)
    }

    /// The id of the task that this one is a part of.
    pub fn parent_id(&self) -> Option<String> {
        self.spec.parent.map(|number| format!("{}:{number}", self.node))
    }

    /// Asks the task to stop. Its parts are tasks of their own: see [`super::Tasks::cancel`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(progress) = self.progress.lock().clone() {
            // A job that sleeps to keep its pace has nothing to wait for any more.
            progress.rethrottle(f64::INFINITY);
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Changes the pace; says whether the task has one.
    pub fn rethrottle(&self, requests_per_second: f64) -> bool {
        let progress = self.progress.lock().clone();
        progress.is_some_and(|progress| progress.rethrottle(requests_per_second))
    }

    /// The task as the API shows it.
    pub fn view(&self, detailed: bool) -> Value {
        let mut view = Map::new();
        view.insert("node".into(), self.node.clone().into());
        view.insert("id".into(), self.number.into());
        view.insert("type".into(), "transport".into());
        view.insert("action".into(), self.spec.action.clone().into());
        if detailed {
            if let Some(progress) = self.progress.lock().clone() {
                view.insert("status".into(), progress.status(self.is_cancelled()));
            }
            view.insert("description".into(), self.spec.description.clone().into());
        }
        view.insert("start_time_in_millis".into(), self.start_ms.into());
        let nanos = u64::try_from((self.before + self.started.elapsed()).as_nanos()).unwrap_or(u64::MAX);
        view.insert("running_time_in_nanos".into(), nanos.into());
        view.insert("cancellable".into(), self.spec.cancellable.into());
        if self.spec.cancellable {
            view.insert("cancelled".into(), self.is_cancelled().into());
        }
        if let Some(parent) = self.parent_id() {
            view.insert("parent_task_id".into(), parent.into());
        }
        let headers = match &self.spec.opaque_id {
            Some(id) => json!({"X-Opaque-Id": id}),
            None => json!({}),
        };
        view.insert("headers".into(), headers);
        Value::Object(view)
    }

    /// What a result means for those who ask for the task.
    pub fn outcome_of(&self, result: &Result<Value, EngineError>) -> Outcome {
        Outcome {
            task: self.view(true),
            response: result.as_ref().ok().cloned(),
            error: result.as_ref().err().map(EngineError::to_json),
        }
    }

    /// Sets down what came out of the task and wakes those who wait.
    pub fn end(&self, outcome: Outcome) {
        *self.outcome.lock() = Some(outcome);
        self.ended.notify_all();
    }

    /// Waits for the end; none if the time is over before.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Outcome> {
        self.wait_unless(timeout, &|| false)
    }

    /// As [`Task::wait`]; none also soon after `is_unwanted` says that nobody waits any longer.
    pub fn wait_unless(&self, timeout: Option<Duration>, is_unwanted: &dyn Fn() -> bool) -> Option<Outcome> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut outcome = self.outcome.lock();
        while outcome.is_none() && !is_unwanted() {
            let look = Instant::now() + LOOK;
            let until = deadline.map_or(look, |deadline| deadline.min(look));
            if self.ended.wait_until(&mut outcome, until).timed_out() && deadline == Some(until) {
                break;
            }
        }
        outcome.clone()
    }
}

/// What a job has of its own task.
pub(crate) struct TaskContext {
    pub(super) task: Arc<Task>,
    pub(super) store: Arc<Store>,
}

impl TaskContext {
    /// The flag that cancels the job; encoders and searches poll it.
    pub fn cancel_flag(&self) -> &Arc<AtomicBool> {
        &self.task.cancelled
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
        *self.task.progress.lock() = Some(Arc::new(FixedStatus(status)));
    }

    /// Sets down from where the job can go on after a crash.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn checkpoint(&self, resume: Value) -> Result<(), EngineError> {
        self.store.write(self.task.number, &record::running(&self.task, Some(resume)))
    }
}
