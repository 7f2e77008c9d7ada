//! Jobs over the documents of a query: `_reindex` copies them to another index, `_update_by_query` writes them again
//! where they are, both through a pipeline if asked, and `_delete_by_query` deletes them.
//!
//! Documents are read in the order of their sequence numbers, so that a job can be resumed after a crash from a
//! position. Several chunks are processed at once: while one is being written, the next ones are read, parsed and
//! encoded on threads of their own; a job that is divided into slices has one thread for each slice instead. Encoding
//! waits for room in the model's queue, so it never fails because the queue is full.

mod counters;
mod dry_run;
pub mod model_change;
mod plan;
mod prepare;
mod run;
mod slice;
mod spec;

use std::sync::Arc;

use serde_json::{Value, json};

use self::counters::{JobCounters, Progressed, Slices};
use self::run::{Earlier, Run};
use self::spec::{Kind, Spec};
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{INDICES, URI_QUERY};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search::SearchService;
use sparrow_tasks::throttle::Throttle;
use sparrow_tasks::{CANCELLED, TaskSpec};

/// What `_update_by_query` and `_delete_by_query` take besides a query.
const BY_QUERY: &str = "conflicts max_docs size from sort terminate_after scroll scroll_size search_type search_timeout slices \
    requests_per_second refresh timeout wait_for_active_shards wait_for_completion routing preference request_cache stats version";

/// The operations of this crate.
pub const OPERATIONS: &[&[Operation<Arc<SearchService>>]] = &[JOBS, model_change::OPERATIONS];

const JOBS: &[Operation<Arc<SearchService>>] = &[
    Operation::new("reindex", Action::Reindex, Lane::Long, reindex)
        .about("Copies documents from index to index, through a pipeline if one is named.")
        .holds("ReindexRequest", spec::reindex_shape)
        .takes(&[
            "refresh requests_per_second scroll slices max_docs timeout wait_for_active_shards",
            "wait_for_completion require_alias dry_run ignore_unavailable allow_no_indices",
            "expand_wildcards",
        ])
        .unlisted(),
    Operation::new("update_by_query", Action::UpdateByQuery, Lane::Long, update_by_query)
        .about("Writes the documents of a query again, through a pipeline if one is named.")
        .holds("UpdateByQueryRequest", spec::update_shape)
        .takes(&[INDICES, URI_QUERY, BY_QUERY, "pipeline version_type"])
        .unlisted(),
    Operation::new("delete_by_query", Action::DeleteByQuery, Lane::Long, delete_by_query)
        .about("Deletes the documents of a query.")
        .holds("DeleteByQueryRequest", spec::delete_shape)
        .takes(&[INDICES, URI_QUERY, BY_QUERY])
        .unlisted(),
];

/// `POST /_reindex`
fn reindex(
    service: &Arc<SearchService>,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    if request.params().bool("dry_run", false)? {
        if !request.params().bool("wait_for_completion", true)? {
            return Err(EngineError::illegal_argument(
                "[dry_run] answers at once: it cannot be used with [wait_for_completion=false]",
            ));
        }
        let spec = Spec::parse(Kind::Reindex, request, body)?;
        return dry_run::run(service, spec, cancel);
    }
    start(service, Kind::Reindex, request, body, cancel)
}

/// `POST /{index}/_update_by_query`
fn update_by_query(
    service: &Arc<SearchService>,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    start(service, Kind::UpdateByQuery, request, body, cancel)
}

/// `POST /{index}/_delete_by_query`
fn delete_by_query(
    service: &Arc<SearchService>,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    start(service, Kind::DeleteByQuery, request, body, cancel)
}

fn start(
    service: &Arc<SearchService>,
    kind: Kind,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let wait = request.params().bool("wait_for_completion", true)?;
    let spec = Spec::parse(kind, request, body)?;
    spec.check_destination(service)?;
    let slices = undivided(&spec, Progressed::default());
    let mut task =
        TaskSpec::new(kind.action(), spec.description()).cancellable().of(request).progress(slices.clone());
    if !wait {
        task = task.persistent();
    }
    if !wait && spec.order.is_none() {
        task = task.resumable(run::checkpoint(&spec, &[], None, spec.requests_per_second));
    }
    let job_service = Arc::clone(service);
    let handle = service
        .tasks
        .spawn(task, move |context| Run::new(&job_service, context, spec, slices).run(Earlier::default()))?;
    if !wait {
        return Ok(Reply::ok(&json!({"task": handle.id()})));
    }
    let body = handle.wait(&|| cancel.is_cancelled())?;
    Ok(Reply::json(status(&body), &body))
}

fn undivided(spec: &Spec, progressed: Progressed) -> Arc<Slices> {
    Arc::new(Slices::new(Arc::new(JobCounters::new(
        progressed,
        Throttle::new(spec.requests_per_second),
        None,
    ))))
}

/// Resumes the jobs that were running when the server stopped; those that cannot be resumed are recorded as
/// interrupted.
pub fn resume(service: &Arc<SearchService>) {
    for (number, record) in service.tasks.unfinished() {
        let resumed = record
            .get("resume")
            .ok_or_else(|| EngineError::internal("the job cannot be resumed"))
            .and_then(|saved| match saved.get(model_change::RESUME) {
                Some(saved) => model_change::restart(service, number, saved, &record),
                None => restart(service, number, saved, &record),
            });
        if let Err(error) = resumed {
            tracing::warn!(number, %error, "a task that was running is not resumed");
            service.tasks.give_up(number, &record);
            if let Some(saved) = record["resume"].get(model_change::RESUME)
                && record[CANCELLED] == true
            {
                model_change::abandon(service, saved);
            }
        }
    }
    model_change::resume_others(service);
}

fn restart(
    service: &Arc<SearchService>,
    number: u64,
    saved: &Value,
    record: &Value,
) -> Result<(), EngineError> {
    let (spec, earlier) = run::from_checkpoint(saved)?;
    let slices = undivided(&spec, earlier.slices.first().cloned().unwrap_or_default());
    let task = TaskSpec::new(spec.kind().action(), spec.description())
        .cancellable()
        .persistent()
        .progress(slices.clone())
        .owned_by(spec.caller.holder())
        .recorded(record);
    let job_service = Arc::clone(service);
    tracing::info!(number, description = spec.description(), "a job goes on where it stopped");
    service
        .tasks
        .restart(number, task, move |context| Run::new(&job_service, context, spec, slices).run(earlier))?;
    Ok(())
}

/// HTTP status of the response of a job that the request waited for: the highest status of its failures.
fn status(body: &Value) -> u16 {
    body["failures"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|failure| failure["status"].as_u64().and_then(|status| u16::try_from(status).ok()))
        .max()
        .unwrap_or(200)
}
