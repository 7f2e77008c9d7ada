//! One task: what it is, how far it is, and what came out of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use serde::Serialize;
use serde_json::{Value, json};

use crate::progress::Progress;
use crate::spec::TaskSpec;
use sparrow_call::error::EngineError;
use sparrow_call::waits::waiting;

/// How often whoever waits for a task looks whether anybody waits for it still.
const LOOK: Duration = Duration::from_millis(50);

/// A task that runs, or has just ended.
pub struct Task {
    pub number: u64,
    pub node: String,
    pub spec: TaskSpec,
    pub start_ms: u64,
    /// Time between the start and a restart of the server.
    before: Duration,
    started: Instant,
    cancelled: Arc<AtomicBool>,
    /// Whether a user asked for that: the end of the server stops a task, too, which then goes on after the next start.
    cancelled_by_user: AtomicBool,
    progress: Mutex<Option<Arc<dyn Progress>>>,
    outcome: Mutex<Option<Outcome>>,
    ended: Condvar,
}

/// What came out of a task.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The task as it was when it ended.
    pub task: Value,
    pub response: Option<Value>,
    /// The error as a body shows it.
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

    /// `node:number`
    pub fn id(&self) -> String {
        format!("{}:{}", self.node, self.number)
    }

    /// The id of the task that this one is a part of.
    pub fn parent_id(&self) -> Option<String> {
        self.spec.parent.map(|number| format!("{}:{number}", self.node))
    }

    /// Asks the task to stop. Its parts are tasks of their own: see `Tasks::cancel`.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
        if let Some(progress) = self.progress.lock().clone() {
            // A job that sleeps to keep its pace has nothing to wait for any more.
            progress.rethrottle(f64::INFINITY);
        }
    }

    /// Asks the task to stop, as a user does: it does not go on after the next start.
    pub(crate) fn cancel_for_good(&self) {
        self.cancelled_by_user.store(true, Ordering::Relaxed);
        self.cancel();
    }

    /// Whether a user asked the task to stop.
    pub(crate) fn is_cancelled_by_user(&self) -> bool {
        self.cancelled_by_user.load(Ordering::Relaxed)
    }

    /// The flag that is set when the task is to stop.
    pub(crate) fn cancel_flag(&self) -> &Arc<AtomicBool> {
        &self.cancelled
    }

    /// Lets the task tell about itself from here on as `progress` does.
    pub(crate) fn show(&self, progress: Arc<dyn Progress>) {
        *self.progress.lock() = Some(progress);
    }

    /// Whether the task is to stop.
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

/// A task as the API shows it, in the order of its members.
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

/// The headers of the request that began a task, as far as tasks keep them.
#[derive(Serialize)]
struct TaskHeaders<'t> {
    #[serde(rename = "X-Opaque-Id", skip_serializing_if = "Option::is_none")]
    opaque_id: Option<&'t str>,
}

/// Milliseconds since the epoch.
fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|duration| u64::try_from(duration.as_millis()).ok())
        .unwrap_or_default()
}
