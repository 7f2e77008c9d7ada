//! `_reindex`, its list: the tasks that copy documents, in a form of their own. Elasticsearch has it since 9.4.

use std::time::Duration;

use serde_json::{Map, Value, json};
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

use crate::api::{TaskId, shown};
use crate::record;
use crate::tasks::Tasks;

/// The operations on these tasks.
pub const OPERATIONS: &[Operation<Tasks>] = &[
    Operation::new("list_reindex", Action::ListTasks, Lane::Watch, list)
        .about("The reindexes that run.")
        .takes(&["detailed"])
        .unlisted(),
    Operation::new("get_reindex", Action::GetTask, Lane::Watch, get)
        .about("How far a reindex is; waits for its end if asked to.")
        .takes(&["wait_for_completion timeout"])
        .unlisted()
        .may_wait(),
    // It waits unless it is asked not to.
    Operation::new("cancel_reindex", Action::CancelTasks, Lane::Long, cancel)
        .about("Stops a reindex, and waits for its end unless asked not to.")
        .takes(&["wait_for_completion"])
        .stops()
        .unlisted(),
];

/// Action of the tasks that are meant.
const ACTION: &str = "indices:data/write/reindex";

/// `GET /_reindex`: those that run.
fn list(all: &Tasks, request: &Request, _body: &[u8], _cancel: &CancelFlag) -> Result<Reply, EngineError> {
    let detailed = request.params().bool("detailed", false)?;
    let mut running: Vec<Value> = Vec::new();
    // A part of a job that is divided is no job.
    for task in all.running().iter().filter(|task| task.spec.action == ACTION && task.parent_id().is_none()) {
        let mut about = described(&task.view(true));
        if !detailed {
            about.shift_remove("status");
        }
        running.push(Value::Object(about));
    }
    Ok(Reply::ok(&json!({"reindex": running})))
}

/// `GET /_reindex/{task}`: how far one is and, once it has ended, what came of it.
fn get(all: &Tasks, request: &Request, _body: &[u8], cancel: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let wait = params.bool("wait_for_completion", false)?;
    let timeout = params.duration("timeout")?;
    let text = request.part("task");
    let id = TaskId::parse(text)?;
    let task =
        if id.node == all.node() { shown(all, request, &id, wait.then_some(timeout), cancel)? } else { None };
    match task.as_ref().and_then(flat) {
        Some(flat) => Ok(Reply::ok(&flat)),
        None => Err(EngineError::resource_not_found(format!("Reindex operation [{text}] not found"))),
    }
}

/// `POST /_reindex/{task}/_cancel`: stops one, and shows what came of it unless the request does not wait.
fn cancel(all: &Tasks, request: &Request, _body: &[u8], cancel: &CancelFlag) -> Result<Reply, EngineError> {
    let wait = request.params().bool("wait_for_completion", true)?;
    let text = request.part("task");
    let id = TaskId::parse(text)?;
    let task = if id.node == all.node() { all.find(id.number) } else { None };
    let Some(task) = task.filter(|task| task.spec.action == ACTION && task.parent_id().is_none()) else {
        let reason = format!("reindex task [{text}] either not found or completed");
        return Err(EngineError::resource_not_found(reason));
    };
    all.cancel(std::slice::from_ref(&task));
    // It is stopped, whether there is a place to wait for that or not.
    let place = if wait { all.waiting(request).ok() } else { None };
    let wait = place.is_some();
    let outcome = wait.then(|| task.wait_unless(None::<Duration>, &|| cancel.is_cancelled())).flatten();
    match outcome.and_then(|outcome| flat(&record::view(&record::completed(&outcome)))) {
        Some(flat) => Ok(Reply::ok(&flat)),
        None if wait => Err(EngineError::Cancelled),
        None => Ok(Reply::ok(&json!({"acknowledged": true}))),
    }
}

/// The id, description, times and progress of a task, without the fields that only `_tasks` shows.
fn described(task: &Value) -> Map<String, Value> {
    let text = |name: &str| task[name].as_str().unwrap_or_default();
    let mut about = Map::new();
    about.insert("id".to_owned(), format!("{}:{}", text("node"), task["id"]).into());
    for name in ["description", "start_time_in_millis", "running_time_in_nanos", "cancelled", "status"] {
        if let Some(value) = task.get(name) {
            about.insert(name.to_owned(), value.clone());
        }
    }
    about
}

/// A task with its result, as [`record::view`] has it, in one object; none if it is of another kind.
fn flat(shown: &Value) -> Option<Value> {
    let task =
        shown.get("task").filter(|task| task["action"] == ACTION && task.get("parent_task_id").is_none())?;
    let mut members = Map::new();
    members.insert("completed".to_owned(), shown["completed"].clone());
    members.append(&mut described(task));
    for name in ["error", "response"] {
        if let Some(value) = shown.get(name) {
            members.insert(name.to_owned(), value.clone());
        }
    }
    Some(Value::Object(members))
}
