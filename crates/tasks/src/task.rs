//! A single task: description, progress and outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use serde::Serialize;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::spec::TaskSpec;
use sparrow_request::error::EngineError;
use sparrow_request::waits::waiting;

/// How often a thread that waits for a task checks whether its client still waits.
const LOOK: Duration = Duration::from_millis(50);

/// A task that is running or has just ended.
pub struct Task {
    pub number: u64,
    pub node: String,
    pub spec: TaskSpec,
    pub start_ms: u64,
    /// Time between the task's original start and its resumption after a restart of the server.
    before: Duration,
    started: Instant,
    cancelled: Arc<AtomicBool>,
    /// Whether a user cancelled the task. The end of the server cancels tasks, too, but persistent ones are
    /// resumed after the next start.
    cancelled_by_user: AtomicBool,
    progress: Mutex<Option<Arc<dyn Progress>>>,
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

/// Outcome of a task: its response or its error.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The task as the API showed it when it ended.
    pub task: Value,
    pub response: Option<Value>,
    /// The error in the form of a response body.
    pub error: Option<Value>,
}

impl Task {
    pub fn new(number: u64, node: &str, spec: TaskSpec) -> Self {
        let now = now_ms();
        Self {
            number,
            node: node.to_owned(),
            start_ms: spec.started_ms.unwrap_or(now),
            before: Duration::from_millis(spec.started_ms.map_or(0, |started| now.saturating_sub(started))),
            progress: Mutex::new(spec.progress.clone()),
            started: Instant::now(),
            cancelled: Arc::new(AtomicBool::new(spec.cancelled_by_user)),
            cancelled_by_user: AtomicBool::new(spec.cancelled_by_user),
            spec,
            outcome: Mutex::new(None),
            ended: Condvar::new(),
        }
    }

    /// A request that has been carried out since `started`, and stops when the flag is set.
    pub(crate) fn of_request(
        number: u64,
        node: &str,
        spec: TaskSpec,
        started: Instant,
        cancelled: Arc<AtomicBool>,
    ) -> Self {
        let task = Self::new(number, node, spec);
        let start_ms = task.start_ms.saturating_sub(started.elapsed().as_millis() as u64);
        Self { start_ms, started, cancelled, ..task }
    }

    /// Id of the task, `node:number`.
    pub fn id(&self) -> String {
        format!("{}:{}", self.node, self.number)
    }

    /// Id of the parent task, if there is one.
    pub fn parent_id(&self) -> Option<String> {
        self.spec.parent.map(|number| format!("{}:{number}", self.node))
    }

    /// Cancels the task, but not its children; for those see `Tasks::cancel`.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(progress) = self.progress.lock().clone() {
            // A job that sleeps to keep its pace has nothing to wait for any more.
            progress.rethrottle(f64::INFINITY);
        }
    }

    /// Cancels the task on behalf of a user: it is not resumed after the next start.
    pub(crate) fn cancel_for_good(&self) {
        self.cancelled_by_user.store(true, Ordering::Relaxed);
        self.cancel();
    }

    /// Whether a user cancelled the task.
    pub(crate) fn is_cancelled_by_user(&self) -> bool {
        self.cancelled_by_user.load(Ordering::Relaxed)
    }

    /// Flag that is set when the task is cancelled.
    pub(crate) fn cancel_flag(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    /// Replaces the progress report of the task.
    pub(crate) fn show(&self, progress: Arc<dyn Progress>) {
        *self.progress.lock() = Some(progress);
    }

    /// Whether the task is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Changes the rate limit; returns false if the task has none.
    pub fn rethrottle(&self, requests_per_second: f64) -> bool {
        let progress = self.progress.lock().clone();
        progress.is_some_and(|progress| progress.rethrottle(requests_per_second))
    }

    /// The task as the API shows it.
    pub fn view(&self, detailed: bool) -> Value {
        let progress = if detailed { self.progress.lock().clone() } else { None };
        json!(TaskView {
            node: &self.node,
            id: self.number,
            channel: "transport",
            action: &self.spec.action,
            status: progress.map(|progress| progress.status(self.is_cancelled())),
            description: detailed.then_some(self.spec.description.as_str()),
            start_time_in_millis: self.start_ms,
            running_time_in_nanos: u64::try_from((self.before + self.started.elapsed()).as_nanos())
                .unwrap_or(u64::MAX),
            cancellable: self.spec.cancellable,
            cancelled: self.spec.cancellable.then(|| self.is_cancelled()),
            parent_task_id: self.parent_id(),
            headers: TaskHeaders { opaque_id: self.spec.opaque_id.as_deref() },
        })
    }

    /// Outcome for a job's result.
    pub fn outcome_of(&self, result: &Result<Value, EngineError>) -> Outcome {
        Outcome {
            task: self.view(true),
            response: result.as_ref().ok().cloned(),
            error: result.as_ref().err().map(EngineError::to_json),
        }
    }

    /// Stores the outcome of the task and wakes those who wait for it.
    pub fn end(&self, outcome: Outcome) {
        *self.outcome.lock() = Some(outcome);
        self.ended.notify_all();
    }

    /// Waits for the end of the task; `None` if the timeout passes first.
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Outcome> {
        self.wait_unless(timeout, &|| false)
    }

    /// Same as [`Task::wait`], but also returns `None` soon after `is_unwanted` returns true.
    pub fn wait_unless(&self, timeout: Option<Duration>, is_unwanted: &dyn Fn() -> bool) -> Option<Outcome> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        waiting(|| {
            let mut outcome = self.outcome.lock();
            while outcome.is_none() && !is_unwanted() {
                let look = Instant::now() + LOOK;
                let until = deadline.map_or(look, |deadline| deadline.min(look));
                if self.ended.wait_until(&mut outcome, until).timed_out() && deadline == Some(until) {
                    break;
                }
            }
            outcome.clone()
        })
    }
}

/// JSON form of a task in the API; the order of the fields is that of the members.
#[derive(Serialize)]
struct TaskView<'t> {
    node: &'t str,
    id: u64,
    #[serde(rename = "type")]
    channel: &'static str,
    action: &'t str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'t str>,
    start_time_in_millis: u64,
    running_time_in_nanos: u64,
    cancellable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_task_id: Option<String>,
    headers: TaskHeaders<'t>,
}

/// Headers that a task keeps of the request that started it.
#[derive(Serialize)]
struct TaskHeaders<'t> {
    #[serde(rename = "X-Opaque-Id", skip_serializing_if = "Option::is_none")]
    opaque_id: Option<&'t str>,
}

/// Current time, in milliseconds since the epoch.
fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|duration| u64::try_from(duration.as_millis()).ok())
        .unwrap_or_default()
}
