//! HTTP operations on tasks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::record;
use crate::spec::TaskSpec;
use crate::task::Task;
use crate::tasks::Tasks;
use crate::throttle::requests_per_second;
use sparrow_request::error::{ApiError, EngineError, Exception};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_request::{NODE_NAME, NODE_ROLES};
use sparrow_wire::glob;

/// Which tasks are meant, and how they are shown.
const WHICH: &str = "actions nodes parent_task_id group_by detailed timeout wait_for_completion";

/// The operations of this crate.
pub const OPERATIONS: &[Operation<Tasks>] = &[
    Operation::new("get_task", Action::GetTask, Lane::Watch, get_task)
        .about("How far a task is; waits for its end if asked to.")
        .takes(&["wait_for_completion timeout detailed"])
        .unlisted()
        .may_wait(),
    Operation::new("list_tasks", Action::ListTasks, Lane::Watch, list_tasks)
        .about("What runs.")
        .takes(&[WHICH, "master_timeout"])
        .unlisted()
        .may_wait(),
    Operation::new("cancel_tasks", Action::CancelTasks, Lane::Watch, cancel_tasks)
        .about("Asks several tasks to stop.")
        .takes(&[WHICH])
        .stops()
        .unlisted()
        .may_wait(),
    Operation::new("cancel_task", Action::CancelTasks, Lane::Watch, cancel_tasks)
        .about("Asks a task to stop.")
        .takes(&[WHICH])
        .stops()
        .unlisted()
        .may_wait(),
    Operation::new("rethrottle", Action::Rethrottle, Lane::Write, rethrottle)
        .about("Lets a running job go faster or slower.")
        .takes(&["requests_per_second group_by"]),
];

/// Default timeout of a request that waits for a task.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// `GET /_tasks/{task}`: shows a task and, once it has ended, its stored result.
fn get_task(all: &Tasks, request: &Request, _body: &[u8], cancel: &CancelFlag) -> Result<Reply, EngineError> {
    let id = TaskId::parse(request.part("task"))?;
    let wait = request.params().bool("wait_for_completion", false)?;
    let timeout = request.params().duration("timeout")?;
    if id.node != all.node() {
        return Err(id.of_another_node());
    }
    match shown(all, request, &id, wait.then_some(timeout), cancel)? {
        Some(shown) => Ok(Reply::ok(&shown)),
        None => Err(EngineError::resource_not_found(id.not_running())),
    }
}

/// A task of this node and, once it has ended, its stored result; none if there is no such task. `wait` says whether to wait for its
/// end, and how long.
pub(crate) fn shown(
    all: &Tasks,
    request: &Request,
    id: &TaskId<'_>,
    wait: Option<Option<Duration>>,
    cancel: &CancelFlag,
) -> Result<Option<Value>, EngineError> {
    let Some(task) = all.find(id.number) else {
        return Ok(all.kept(id.number)?.map(|record| record::view(&record)));
    };
    let _place = wait.map(|_| all.waiting(request)).transpose()?;
    // A task that has just ended is still listed for a moment.
    let timeout = wait.map_or(Duration::ZERO, |timeout| timeout.unwrap_or(DEFAULT_WAIT));
    match task.wait_unless(Some(timeout), &|| cancel.is_cancelled()) {
        Some(outcome) => Ok(Some(record::view(&record::completed(&outcome)))),
        None if cancel.is_cancelled() => Err(EngineError::Cancelled),
        None if wait.is_some() => Err(EngineError::api(
            429,
            Exception::new(
                "timeout_exception",
                format!("Timed out waiting for completion of [{}]", task.id()),
            ),
        )),
        None => Ok(Some(json!({"completed": false, "task": task.view(true)}))),
    }
}

/// `GET /_tasks`: lists running tasks.
fn list_tasks(
    all: &Tasks,
    request: &Request,
    _body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let detailed = params.bool("detailed", false)?;
    let wait = params.bool("wait_for_completion", false)?;
    let timeout = params.duration("timeout")?.unwrap_or(DEFAULT_WAIT);
    let filter = Filter::new(request)?;
    let group = GroupBy::parse(params.get("group_by").unwrap_or("nodes"))?;
    let _own = all.enter(TaskSpec::listing().of(request))?;
    let mut tasks = filter.select(all);
    if wait {
        let _place = all.waiting(request)?;
        let deadline = Instant::now() + timeout;
        // Two listings that wait for each other would wait for ever.
        for task in tasks.iter().filter(|task| !task.spec.is_listing()) {
            let left = deadline.saturating_duration_since(Instant::now());
            if task.wait_unless(Some(left), &|| cancel.is_cancelled()).is_none() {
                if cancel.is_cancelled() {
                    return Err(EngineError::Cancelled);
                }
                // A failure of the node that was asked, not of the request.
                let cause = json!({
                    "type": "timeout_exception",
                    "reason": "Timed out waiting for completion of tasks",
                });
                let mut shown = group.show(all, &[], detailed);
                shown["node_failures"] = node_failures(all.node(), &cause);
                return Ok(Reply::ok(&shown));
            }
        }
        tasks = filter.select(all);
    }
    Ok(Reply::ok(&group.show(all, &tasks, detailed)))
}

/// Running tasks that match a listing request, including the listing itself.
///
/// # Errors
/// As [`list_tasks`].
pub fn listed(all: &Tasks, request: &Request) -> Result<Vec<Arc<Task>>, EngineError> {
    let filter = Filter::new(request)?;
    let _own = all.enter(TaskSpec::listing().opaque_id(request.opaque_id.clone()))?;
    Ok(filter.select(all))
}

/// `POST /_tasks[/{task}]/_cancel`: cancels the matching tasks.
fn cancel_tasks(
    all: &Tasks,
    request: &Request,
    _body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let wait = params.bool("wait_for_completion", false)?;
    let group = GroupBy::parse(params.get("group_by").unwrap_or("nodes"))?;
    let detailed = params.bool("detailed", false)?;
    params.duration("timeout")?;
    let filter = Filter::new(request)?;
    let tasks = match request.part("task") {
        "" => filter.select(all).into_iter().filter(|task| task.spec.cancellable).collect(),
        id => {
            let id = TaskId::parse(id)?;
            if filter.nodes.is_some() {
                return Err(EngineError::invalid("task id cannot be used with node ids"));
            }
            match find(all, &id, "is not found") {
                Err(failure) => return Ok(Reply::ok(&failure)),
                Ok(task) if !task.spec.cancellable => {
                    let reason = format!("task [{}] doesn't support cancellation", id.text());
                    return Ok(Reply::ok(&failed(&id, &illegal(reason))));
                }
                Ok(task) if !filter.matches(&task) => {
                    let reason = format!("task [{}] doesn't support this operation", id.text());
                    return Ok(Reply::ok(&failed(&id, &illegal(reason))));
                }
                Ok(task) => vec![task],
            }
        }
    };
    all.cancel(&tasks);
    let _place = wait.then(|| all.waiting(request)).transpose()?;
    let shown = group.show(all, &tasks, detailed);
    if wait {
        for task in &tasks {
            task.wait_unless(None, &|| cancel.is_cancelled());
        }
    }
    Ok(Reply::ok(&shown))
}

/// `POST /_reindex/{task}/_rethrottle`: changes the rate limit of a running task.
fn rethrottle(
    all: &Tasks,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = TaskId::parse(request.part("task"))?;
    let pace = requests_per_second(request)?
        .ok_or_else(|| EngineError::illegal_argument("requests_per_second is a required parameter"))?;
    let group = GroupBy::parse(request.params().get("group_by").unwrap_or("nodes"))?;
    let task = match find(all, &id, "is missing") {
        Ok(task) => task,
        Err(failure) => return Ok(Reply::ok(&failure)),
    };
    if !task.rethrottle(pace) {
        let reason = format!("task [{}] doesn't support this operation", id.text());
        return Ok(Reply::ok(&failed(&id, &illegal(reason))));
    }
    Ok(Reply::ok(&group.show(all, &[task], true)))
}

/// Looks up a running task; if it is not running, the error is the response body that says so.
fn find(all: &Tasks, id: &TaskId, missing: &str) -> Result<Arc<Task>, Value> {
    let cause = if id.node == all.node() {
        match all.find(id.number) {
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
    Err(failed(id, &cause))
}

/// Response body with the reason why an operation on a task failed.
fn failed(id: &TaskId, cause: &Value) -> Value {
    json!({"node_failures": node_failures(id.node, cause), "nodes": {}})
}

fn node_failures(node: &str, cause: &Value) -> Value {
    json!([{
        "type": "failed_node_exception",
        "reason": format!("Failed node [{node}]"),
        "node_id": node,
        "caused_by": cause,
    }])
}

fn illegal(reason: String) -> Value {
    json!({"type": "illegal_argument_exception", "reason": reason})
}

/// Names a task: its node, and its number there.
pub(crate) struct TaskId<'a> {
    pub node: &'a str,
    pub number: u64,
}

impl<'a> TaskId<'a> {
    pub fn parse(text: &'a str) -> Result<Self, EngineError> {
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

/// Filter of a task listing.
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

    fn select(&self, all: &Tasks) -> Vec<Arc<Task>> {
        let node = all.node();
        let here = self.nodes.is_none_or(|nodes| {
            nodes.split(',').any(|name| {
                ["_all", "_local", "_master", node].contains(&name) || glob::matches(name, NODE_NAME)
            })
        });
        if !here {
            return Vec::new();
        }
        let mut tasks = all.running();
        tasks.retain(|task| self.matches(task));
        tasks
    }

    /// Whether a task matches the requested actions and parent.
    fn matches(&self, task: &Task) -> bool {
        self.actions.is_none_or(|actions| {
            actions.split(',').any(|pattern| glob::matches(pattern.trim(), &task.spec.action))
        }) && self.parent.is_none_or(|parent| task.parent_id().as_deref() == Some(parent))
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

    fn show(&self, all: &Tasks, tasks: &[Arc<Task>], detailed: bool) -> Value {
        if matches!(self, Self::None) {
            let tasks: Vec<Value> = tasks.iter().map(|task| task.view(detailed)).collect();
            return json!({"tasks": tasks});
        }
        if matches!(self, Self::Parents) {
            return json!({"tasks": by_parents(tasks, detailed)});
        }
        let shown: Map<String, Value> = tasks.iter().map(|task| (task.id(), task.view(detailed))).collect();
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
        json!({"nodes": {all.node(): node}})
    }
}

/// Tasks by id, each with its children nested in it; a child whose parent is not listed appears at the top
/// level.
fn by_parents(tasks: &[Arc<Task>], detailed: bool) -> Map<String, Value> {
    let is_listed = |id: &str| tasks.iter().any(|task| task.id() == id);
    let mut shown = Map::new();
    for task in tasks {
        if task.parent_id().is_some_and(|parent| is_listed(&parent)) {
            continue;
        }
        let (id, mut view) = (task.id(), task.view(detailed));
        let parts: Vec<Value> = tasks
            .iter()
            .filter(|part| part.parent_id().as_deref() == Some(id.as_str()))
            .map(|part| part.view(detailed))
            .collect();
        if !parts.is_empty() {
            view["children"] = Value::Array(parts);
        }
        shown.insert(id, view);
    }
    shown
}
