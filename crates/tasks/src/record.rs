//! Records of tasks in the data directory.
//!
//! `task-<number>` holds `{"state": "running", "task": …, "resume": …}` while the task runs, with `"cancelled_by_user": true` once that
//! is so, and `{"state": "completed", "task": …, "response" | "error": …}` afterwards.

use serde::Serialize;
use serde_json::{Value, json};

use crate::spec::CANCELLED;
use crate::task::{Outcome, Task};

/// A stored task, running or completed; members are written in this order.
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

/// Record of a running task.
pub(crate) fn running(task: &Task, resume: Option<Value>) -> Value {
    let mut record = json!(Record { resume, ..Record::of("running", task.view(true)) });
    if task.is_cancelled_by_user() {
        mark_cancelled(&mut record);
    }
    record
}

/// Marks a record as cancelled by a user.
pub(crate) fn mark_cancelled(record: &mut Value) {
    record[CANCELLED] = true.into();
}

/// Record of a task that has ended.
pub(crate) fn completed(outcome: &Outcome) -> Value {
    let Outcome { task, response, error } = outcome.clone();
    json!(Record { response, error, ..Record::of("completed", task) })
}

/// Turns the record of a task that was running when the server ended, and cannot be resumed, into one that
/// failed.
pub(crate) fn interrupted(record: &Value) -> Value {
    let error = json!({
        "type": "node_closed_exception",
        "reason": "the server was stopped while the task was running",
    });
    let task = record.get("task").cloned().unwrap_or_default();
    json!(Record { error: Some(error), ..Record::of("completed", task) })
}

/// The response of `GET _tasks/{id}` for a record.
pub(crate) fn view(record: &Value) -> Value {
    let mut shown = json!({"completed": record.get("state").and_then(Value::as_str) == Some("completed")});
    for name in ["task", "response", "error"] {
        if let Some(value) = record.get(name) {
            shown[name] = value.clone();
        }
    }
    shown
}

/// Whether the task of a record had not ended when it was written.
pub(crate) fn is_running(record: &Value) -> bool {
    record.get("state").and_then(Value::as_str) == Some("running")
}
