//! Tasks as the data directory keeps them.
//!
//! `task-<number>` holds `{"state": "running", "task": …, "resume": …}` while the task runs, with `"cancelled_by_user": true` once that
//! is so, and `{"state": "completed", "task": …, "response" | "error": …}` afterwards.

use serde_json::{Map, Value, json};

use crate::spec::CANCELLED;
use crate::task::{Outcome, Task};

/// A task that runs.
pub(crate) fn running(task: &Task, resume: Option<Value>) -> Value {
    let mut record = Map::new();
    record.insert("state".into(), "running".into());
    record.insert("task".into(), task.view(true));
    if let Some(resume) = resume {
        record.insert("resume".into(), resume);
    }
    let mut record = Value::Object(record);
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
    let mut record = Map::new();
    record.insert("state".into(), "completed".into());
    record.insert("task".into(), outcome.task.clone());
    if let Some(response) = &outcome.response {
        record.insert("response".into(), response.clone());
    }
    if let Some(error) = &outcome.error {
        record.insert("error".into(), error.clone());
    }
    Value::Object(record)
}

/// A task that ran when the server ended and cannot go on.
pub(crate) fn interrupted(record: &Value) -> Value {
    json!({
        "state": "completed",
        "task": record.get("task").cloned().unwrap_or_default(),
        "error": {
            "type": "node_closed_exception",
            "reason": "the server was stopped while the task was running",
        },
    })
}

/// A record as `GET _tasks/{id}` shows it.
pub(crate) fn view(record: &Value) -> Value {
    let mut shown = Map::new();
    shown.insert(
        "completed".into(),
        (record.get("state").and_then(Value::as_str) == Some("completed")).into(),
    );
    for name in ["task", "response", "error"] {
        if let Some(value) = record.get(name) {
            shown.insert(name.into(), value.clone());
        }
    }
    Value::Object(shown)
}

/// Whether a record is of a task that has not ended.
pub(crate) fn is_running(record: &Value) -> bool {
    record.get("state").and_then(Value::as_str) == Some("running")
}
