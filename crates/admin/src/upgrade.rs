//! `POST /_ext/migration/upgrade/{index}`, and the request that lists the indices that need an upgrade.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};
use sparrow_tantivy_index::RewriteProgress;

use sparrow_catalog::Node;
use sparrow_catalog::{IndexHandle, ResolveOptions};
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Right};
use sparrow_tasks::{TaskContext, TaskSpec};

pub(crate) const OPERATIONS: &[Operation<Arc<Node>>] = &[
    Operation::new("upgrade_index", Action::Upgrade, Lane::Long, upgrade_index)
        .about("Rewrites an index of an older format.")
        .takes(&["wait_for_completion"])
        .unlisted(),
    Operation::new("upgrade_assistance", Action::UpgradeInfo, Lane::Look, upgrade_assistance)
        .about("Which indices are of an older format.")
        .takes(&["allow_no_indices expand_wildcards ignore_unavailable"]),
];

const ACTION: &str = "cluster:admin/xpack/upgrade";

/// Upgrades one index in a task; the request waits for its end unless it says otherwise.
fn upgrade_index(
    node: &Arc<Node>,
    request: &Request,
    _body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let wait = request.params().bool("wait_for_completion", true)?;
    let name = request.part("index");
    if name == "_all" || name.contains(['*', ',']) {
        return Err(EngineError::illegal_argument(format!(
            "indices must be upgraded one at a time, but [{name}] may stand for several"
        )));
    }
    let handle = node.indices.get(name, Right::unlimited())?;
    let mut spec = TaskSpec::new(ACTION, "").cancellable().of(request);
    if !wait {
        spec = spec.persistent();
    }
    let owner = node.clone();
    let task = node.tasks.spawn(spec, move |context| run(&owner, &handle, context))?;
    if wait {
        return Ok(Reply::ok(&task.wait(&|| cancel.is_cancelled())?));
    }
    Ok(Reply::ok(&json!({"task": task.id()})))
}

fn run(node: &Node, handle: &IndexHandle, context: &TaskContext) -> Result<Value, EngineError> {
    let start = std::time::Instant::now();
    context.set_status(json!(Statistics::default()));
    let mut progress = |RewriteProgress { done, total }: RewriteProgress| {
        context.set_status(json!(Statistics { total, updated: done, ..Statistics::default() }));
    };
    let stats = node.indices.upgrade(handle, &mut progress, context.cancel_flag())?;
    // An index that is current has nothing to do, and says so with zeros.
    let (docs, batches) = stats.map_or((0, 0), |stats| (stats.docs, stats.segments));
    let statistics = Statistics { total: docs, updated: docs, batches, ..Statistics::default() };
    context.set_status(json!(statistics));
    let took = start.elapsed().as_millis() as u64;
    Ok(json!(Upgraded { took, timed_out: false, statistics, failures: [] }))
}

/// The counters of the response, in the form of a reindex; also the status of the task.
#[derive(Default, Serialize)]
struct Statistics {
    total: u64,
    updated: u64,
    created: u64,
    deleted: u64,
    /// Number of segments that were rewritten.
    batches: usize,
    version_conflicts: u64,
    noops: u64,
    retries: Retries,
    throttled_millis: u64,
}

#[derive(Default, Serialize)]
struct Retries {
    bulk: u64,
    search: u64,
}

/// The answer to a finished upgrade.
#[derive(Serialize)]
struct Upgraded {
    took: u64,
    timed_out: bool,
    #[serde(flatten)]
    statistics: Statistics,
    failures: [Value; 0],
}

/// Which indices need an upgrade; those that need nothing are absent.
fn upgrade_assistance(
    node: &Arc<Node>,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let options = ResolveOptions::from_params(&request.params())?;
    let handles = node.indices.resolve(request.part("index"), options, Right::unlimited())?;
    let indices: Map<String, Value> = handles
        .iter()
        .filter(|handle| handle.needs_upgrade())
        .map(|handle| (handle.name.clone(), json!({"action_required": "upgrade"})))
        .collect();
    Ok(Reply::ok(&json!({"indices": indices})))
}
