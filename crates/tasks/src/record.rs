//! Tasks as the data directory keeps them.
//!
//! `task-<number>` holds `{"state": "running", "task": …, "resume": …}` while the task runs, with `"cancelled_by_user": true` once that
//! is so, and `{"state": "completed", "task": …, "response" | "error": …}` afterwards.

use serde::Serialize;
use serde_json::{Value, json};

use crate::spec::CANCELLED;
use crate::task::{Outcome, Task};

/// The stored form of a task that runs or has ended; members are written in this order.
#[derive(Serialize)]
struct Record {
    state: &'static str,
    task: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl Record {
    fn of(state: &'static str, task: Value) -> Self {
        Self { state, task, resume: None, response: None, error: None }
    }
}

/// A task that runs.
pub(crate) fn running(task: &Task, resume: Option<Value>) -> Value {
    let mut record = json!(Record { resume, ..Record::of("running", task.view(true)) });
    if task.is_cancelled_by_user() {
        mark_cancelled(&mut record);
    }
    record
}

/// Notes that a user asked a task to stop.
pub(crate) fn mark_cancelled(record: &mut Value) {
    record[CANCELLED] = true.into();
}

/// A task that ended.
pub(crate) fn completed(outcome: &Outcome) -> Value {
    let Outcome { task, response, error } = outcome.clone();
    json!(Record { response, error, ..Record::of("completed", task) })
}

/// A task that ran when the server ended and cannot go on.
pub(crate) fn interrupted(record: &Value) -> Value {
    let error = json!({
        "type": "node_closed_exception",
        "reason": "the server was stopped while the task was running",
    });
    let task = record.get("task").cloned().unwrap_or_default();
    json!(Record { error: Some(error), ..Record::of("completed", task) })
}

/// A record as `GET _tasks/{id}` shows it.
pub(crate) fn view(record: &Value) -> Value {
    let mut shown = json!({"completed": record.get("state").and_then(Value::as_str) == Some("completed")});
    for name in ["task", "response", "error"] {
        if let Some(value) = record.get(name) {
            shown[name] = value.clone();
        }
    }
    shown
}

/// Whether a record is of a task that has not ended.
pub(crate) fn is_running(record: &Value) -> bool {
    record.get("state").and_then(Value::as_str) == Some("running")
}
