//! Work that outlives its request: tasks that can be watched, cancelled, throttled and waited for, and the jobs that
//! run as tasks.

mod api;
mod by_query;
mod record;
mod task;
mod tasks;
mod throttle;

pub(crate) use self::api::{cancel_tasks, get_task, list_tasks, listed, rethrottle};
pub(crate) use self::by_query::{delete_by_query, reindex, resume, update_by_query};
pub(crate) use self::task::TaskContext;
pub(crate) use self::tasks::{TaskSpec, Tasks};

/// Name of the node in listings of tasks and deployments.
pub(crate) const NODE_NAME: &str = "sparrow";
/// What the node does, in the words of Elasticsearch.
pub(crate) const NODE_ROLES: [&str; 4] = ["data", "ingest", "master", "ml"];
