//! The operations on tasks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::record;
use super::task::Task;
use super::tasks::TaskSpec;
use super::{NODE_NAME, NODE_ROLES};
use crate::Engine;
use crate::error::{ApiError, EngineError, Exception};
use crate::pattern;
use crate::request::{CancelFlag, Reply, Request};

/// How long a request for a task waits unless it says otherwise.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// `GET /_tasks/{task}`
pub(crate) fn get_task(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = TaskId::parse(request.part("task"))?;
    let wait = request.params().bool("wait_for_completion", false)?;
    let timeout = request.params().duration("timeout")?.unwrap_or(DEFAULT_WAIT);
    if id.node != engine.tasks.node() {
        return Err(id.of_another_node());
    }
    if let Some(task) = engine.tasks.find(id.number) {
        // A task that has just ended is still listed for a moment.
        let outcome = task.wait(Some(if wait { timeout } else { Duration::ZERO }));
        return match outcome {
            Some(outcome) => Ok(Reply::ok(&record::view(&record::completed(&outcome)))),
            None if wait => Err(EngineError::api(
                429,
                Exception::new(
                    "timeout_exception",
                    format!("Timed out waiting for completion of [{}]", task.id()),
                ),
            )),
            None => Ok(Reply::ok(&json!({"completed": false, "task": task.view(true)}))),
        };
    }
    match engine.tasks.kept(id.number)? {
        Some(record) => Ok(Reply::ok(&record::view(&record))),
        None => Err(EngineError::resource_not_found(id.not_running())),
    }
}

/// `GET /_tasks`
pub(crate) fn list_tasks(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let detailed = params.bool("detailed", false)?;
    let wait = params.bool("wait_for_completion", false)?;
    let timeout = params.duration("timeout")?.unwrap_or(DEFAULT_WAIT);
    let filter = Filter::new(request)?;
    let group = GroupBy::parse(params.get("group_by").unwrap_or("nodes"))?;
    let own = engine
        .tasks
        .enter(TaskSpec::new("cluster:monitor/tasks/lists", "").opaque_id(request.opaque_id.clone()))?;
    let mut tasks = filter.select(engine);
    if wait {
        let deadline = Instant::now() + timeout;
        for task in tasks.iter().filter(|task| task.number != own.number()) {
            if task.wait(Some(deadline.saturating_duration_since(Instant::now()))).is_none() {
                return Err(EngineError::api(
                    429,
                    Exception::new("timeout_exception", "Timed out waiting for completion of tasks"),
                ));
            }
        }
        tasks = filter.select(engine);
    }
    Ok(Reply::ok(&group.show(engine, &tasks, detailed)))
}

/// The tasks that a listing shows, itself among them.
///
/// # Errors
/// As [`list_tasks`].
pub(crate) fn listed(engine: &Engine, request: &Request) -> Result<Vec<Arc<Task>>, EngineError> {
    let filter = Filter::new(request)?;
    let _own = engine
        .tasks
        .enter(TaskSpec::new("cluster:monitor/tasks/lists", "").opaque_id(request.opaque_id.clone()))?;
    Ok(filter.select(engine))
}

/// `POST /_tasks[/{task}]/_cancel`
pub(crate) fn cancel_tasks(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let wait = params.bool("wait_for_completion", false)?;
    let group = GroupBy::parse(params.get("group_by").unwrap_or("nodes"))?;
    let tasks = match request.part("task") {
        "" => Filter::new(request)?.select(engine).into_iter().filter(|task| task.spec.cancellable).collect(),
        id => {
            let id = TaskId::parse(id)?;
            match find(engine, &id, "is not found") {
                Err(failure) => return Ok(Reply::ok(&failure)),
                Ok(task) if !task.spec.cancellable => {
                    return Err(EngineError::illegal_argument(format!(
                        "task [{}] doesn't support cancellation",
                        id.text()
                    )));
                }
                Ok(task) => vec![task],
            }
        }
    };
    for task in &tasks {
        task.cancel();
    }
    let shown = group.show(engine, &tasks, false);
    if wait {
        for task in &tasks {
            task.wait(None);
        }
    }
    Ok(Reply::ok(&shown))
}

/// `POST /_reindex/{task}/_rethrottle`
pub(crate) fn rethrottle(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = TaskId::parse(request.part("task"))?;
    let pace = super::reindex::requests_per_second(request)?
        .ok_or_else(|| EngineError::illegal_argument("requests_per_second is a required parameter"))?;
    let group = GroupBy::parse(request.params().get("group_by").unwrap_or("nodes"))?;
    let task = match find(engine, &id, "is missing") {
        Ok(task) => task,
        Err(failure) => return Ok(Reply::ok(&failure)),
    };
    if !task.rethrottle(pace) {
        return Err(EngineError::illegal_argument(format!(
            "task [{}] doesn't support this operation",
            id.text()
        )));
    }
    Ok(Reply::ok(&group.show(engine, &[task], true)))
}

/// A running task, or the body that says that there is none.
fn find(engine: &Engine, id: &TaskId, missing: &str) -> Result<Arc<Task>, Value> {
    let cause = if id.node == engine.tasks.node() {
        match engine.tasks.find(id.number) {
            Some(task) => return Ok(task),
            None => json!({
                "type": "resource_not_found_exception",
                "reason": format!("task [{}] {missing}", id.text()),
            }),
        }
    } else {
        json!({
            "type": "no_such_node_exception",
            "reason": format!("No such node [{}]", id.node),
            "node_id": id.node,
        })
    };
    Err(json!({
        "node_failures": [{
            "type": "failed_node_exception",
            "reason": format!("Failed node [{}]", id.node),
            "node_id": id.node,
            "caused_by": cause,
        }],
        "nodes": {},
    }))
}

struct TaskId<'a> {
    node: &'a str,
    number: u64,
}

impl<'a> TaskId<'a> {
    fn parse(text: &'a str) -> Result<Self, EngineError> {
        text.rsplit_once(':')
            .and_then(|(node, number)| Some(Self { node, number: number.parse().ok()? }))
            .filter(|id| !id.node.is_empty())
            .ok_or_else(|| EngineError::illegal_argument(format!("malformed task id {text}")))
    }

    fn text(&self) -> String {
        format!("{}:{}", self.node, self.number)
    }

    fn not_running(&self) -> String {
        format!("task [{}] isn't running and hasn't stored its results", self.text())
    }

    fn of_another_node(&self) -> EngineError {
        let cause = Exception::new("resource_not_found_exception", self.not_running());
        let reason = format!(
            "task [{}] belongs to the node [{}] which isn't part of the cluster and there is no record of the task",
            self.text(),
            self.node
        );
        EngineError::Api(Box::new(ApiError {
            status: 404,
            exception: Exception::new("resource_not_found_exception", reason).because(cause.clone()),
            root_causes: vec![cause],
        }))
    }
}

/// Which tasks a listing shows.
struct Filter<'a> {
    actions: Option<&'a str>,
    nodes: Option<&'a str>,
    parent: Option<&'a str>,
}

impl<'a> Filter<'a> {
    fn new(request: &'a Request) -> Result<Self, EngineError> {
        let params = request.params();
        let parent = params.get("parent_task_id").filter(|id| !id.is_empty());
        if let Some(parent) = parent {
            TaskId::parse(parent)?;
        }
        let given = |name: &str| params.get(name).filter(|text| !text.is_empty());
        Ok(Self { actions: given("actions"), nodes: given("nodes"), parent })
    }

    fn select(&self, engine: &Engine) -> Vec<Arc<Task>> {
        let node = engine.tasks.node();
        let here = self.nodes.is_none_or(|nodes| {
            nodes.split(',').any(|name| {
                ["_all", "_local", "_master", node].contains(&name) || pattern::matches(name, NODE_NAME)
            })
        });
        // No task of this server has a parent.
        if !here || self.parent.is_some() {
            return Vec::new();
        }
        let mut tasks = engine.tasks.running();
        tasks.retain(|task| {
            self.actions.is_none_or(|actions| {
                actions.split(',').any(|pattern| pattern::matches(pattern, &task.spec.action))
            })
        });
        tasks
    }
}

enum GroupBy {
    Nodes,
    Parents,
    None,
}

impl GroupBy {
    fn parse(name: &str) -> Result<Self, EngineError> {
        match name {
            "nodes" => Ok(Self::Nodes),
            "parents" => Ok(Self::Parents),
            "none" => Ok(Self::None),
            other => Err(EngineError::illegal_argument(format!(
                "[group_by] must be one of [nodes], [parents] or [none] but was [{other}]"
            ))),
        }
    }

    fn show(&self, engine: &Engine, tasks: &[Arc<Task>], detailed: bool) -> Value {
        if matches!(self, Self::None) {
            let tasks: Vec<Value> = tasks.iter().map(|task| task.view(detailed)).collect();
            return json!({"tasks": tasks});
        }
        let shown: Map<String, Value> = tasks.iter().map(|task| (task.id(), task.view(detailed))).collect();
        if matches!(self, Self::Parents) {
            return json!({"tasks": shown});
        }
        if shown.is_empty() {
            return json!({"nodes": {}});
        }
        let node = json!({
            "name": NODE_NAME,
            "transport_address": "127.0.0.1:9300",
            "host": "127.0.0.1",
            "ip": "127.0.0.1:9300",
            "roles": NODE_ROLES,
            "tasks": shown,
        });
        json!({"nodes": {engine.tasks.node(): node}})
    }
}
