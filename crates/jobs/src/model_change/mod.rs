//! Changes the model of a `semantic_text` field while its index is searched and written: `POST /{index}/_ext/model/_change` and the
//! requests that show, switch, roll back and drop.
//!
//! From the beginning of a change, every document that is written gets vectors of both models. A task writes the others again unchanged, so
//! that they get them too. It finds the documents that lack new vectors in the segments, so it needs no checkpoint. Searches use the old
//! vectors until all documents have both and then switch to the new ones at once. The old vectors are kept, and can be switched back to,
//! until they are dropped.

mod compare;
mod fill;
mod over_cluster;
mod request;
mod view;

use std::sync::Arc;

use serde_json::{Value, json};
use sparrow_catalog::blocks::Access;
use sparrow_catalog::model_change::{ChangeState, conflict};
use sparrow_catalog::model_steps::FillingGuard;
use sparrow_catalog::{IndexHandle, ResolveOptions};
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_search::SearchService;
use sparrow_tasks::throttle::requests_per_second;
use sparrow_tasks::{TaskHandle, TaskSpec};

pub(crate) use self::fill::RESUME;
use self::fill::{Fill, FillProgress};
use self::request::ChangeRequest;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Arc<SearchService>>] = &[
    Operation::new("change_model", Action::ChangeModel, Lane::Long, change)
        .about("Changes the model of a field while the index is searched and written.")
        .holds("ChangeModelRequest", request::shape)
        .takes(&["wait_for_completion requests_per_second"])
        .unlisted(),
    Operation::new("get_field_models", Action::GetFieldModels, Lane::Look, get)
        .about("Which models fill the fields of an index, and how far a change of one is.")
        .takes(&["allow_no_indices expand_wildcards ignore_unavailable"]),
    Operation::new("switch_model", Action::ChangeModel, Lane::Write, switch)
        .about("Lets searches read the vectors of the new model."),
    Operation::new("roll_back_model", Action::ChangeModel, Lane::Write, roll_back)
        .about("Lets searches read the vectors of the old model again."),
    Operation::new("drop_model", Action::ChangeModel, Lane::Write, drop_old)
        .about("Ends a change: vectors that searches do not read are dropped."),
    Operation::new("step_model_change", Action::Infer, Lane::Long, over_cluster::step)
        .about("A step of the change of a model in an index that is kept elsewhere.")
        .json()
        .stops()
        .unlisted(),
];

/// The action name of the task that carries out a change.
const ACTION: &str = "indices:admin/ext/model/change";

/// `POST /{index}/_ext/model/_change`
fn change(
    service: &Arc<SearchService>,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let wait = request.params().bool("wait_for_completion", true)?;
    let pace = requests_per_second(request)?.unwrap_or(f64::INFINITY);
    let handle = one_index(service, request)?;
    handle.check_access(Access::MetadataWrite)?;
    let mut wanted = ChangeRequest::parse(body)?;
    wanted.field = handle.mapping().concrete(&wanted.field).into_owned();
    let claimed = handle.claim_filling()?;
    match handle.model_change() {
        // What stopped goes on.
        Some(change) if change.state == ChangeState::Filling && wanted.is(&change) => {
            handle.note_filling(None)?;
        }
        _ => {
            let definition = wanted.definition(service, &handle.name, &handle.mapping(), cancel)?;
            handle.begin_model_change(wanted.begun(pace), &definition)?;
        }
    }
    let task = spawn(service, &handle, claimed, pace, Some(request))?;
    if !wait {
        return Ok(Reply::ok(&json!({"task": task.id()})));
    }
    Ok(Reply::ok(&task.wait(&|| cancel.is_cancelled())?))
}

/// `GET /{index}/_ext/model`
fn get(
    service: &Arc<SearchService>,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let options = ResolveOptions::from_params(&request.params())?;
    let handles = service.indices.resolve(request.part("index"), options, request.right())?;
    let indices = handles.iter().map(|handle| (handle.name.clone(), view::of_index(service, handle)));
    Ok(Reply::ok(&Value::Object(indices.collect())))
}

/// `POST /{index}/_ext/model/_switch`
fn switch(
    service: &Arc<SearchService>,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    exchange(service, request, true)
}

/// `POST /{index}/_ext/model/_rollback`
fn roll_back(
    service: &Arc<SearchService>,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    exchange(service, request, false)
}

fn exchange(service: &SearchService, request: &Request, forward: bool) -> Result<Reply, EngineError> {
    let handle = one_index(service, request)?;
    handle.check_access(Access::MetadataWrite)?;
    let change = handle.exchange_models(forward)?;
    Ok(Reply::ok(&json!({"acknowledged": true, "field": change.field, "state": change.state.name()})))
}

/// `POST /{index}/_ext/model/_drop`
fn drop_old(
    service: &Arc<SearchService>,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let handle = one_index(service, request)?;
    // No task begins meanwhile.
    let _claimed = handle.claim_filling().map_err(|error| {
        conflict(format!("{}; cancel the task, and the new vectors are dropped", error.reason()))
    })?;
    let change = handle.end_model_change()?;
    Ok(Reply::ok(&json!({"acknowledged": true, "field": change.field, "state": "dropped"})))
}

/// The index of a request that must name exactly one.
fn one_index(service: &SearchService, request: &Request) -> Result<Arc<IndexHandle>, EngineError> {
    let name = request.part("index");
    if name == "_all" || name.contains(['*', ',']) {
        return Err(EngineError::illegal_argument(format!(
            "models are changed one index at a time, but [{name}] may stand for several"
        )));
    }
    service.indices.get(name, request.right())
}

fn spawn(
    service: &Arc<SearchService>,
    handle: &Arc<IndexHandle>,
    claimed: FillingGuard,
    pace: f64,
    request: Option<&Request>,
) -> Result<TaskHandle, EngineError> {
    let (progress, mut task, fill) = prepared(service, handle, claimed, pace)?;
    if let Some(request) = request {
        task = task.of(request);
    }
    let task = task.resumable(fill.resume(pace));
    let task = service.tasks.spawn(task, move |context| fill.run(context))?;
    *progress.filling.task.lock() = Some(task.id());
    Ok(task)
}

/// Prepares the task that gives the documents of an index new vectors; it is not started yet.
fn prepared(
    service: &Arc<SearchService>,
    handle: &Arc<IndexHandle>,
    claimed: FillingGuard,
    pace: f64,
) -> Result<(Arc<FillProgress>, TaskSpec, Fill), EngineError> {
    let change = handle.model_change().ok_or_else(|| EngineError::internal("a change is gone"))?;
    let to = change.wanted["inference_id"].as_str().unwrap_or_default();
    let description = format!("change of the model of [{}][{}] to [{to}]", handle.name, change.field);
    let progress = Arc::new(FillProgress::new(claimed.filling.clone(), pace));
    let task =
        TaskSpec::new(ACTION, description).cancellable().persistent().progress(Arc::clone(&progress) as _);
    let fill = Fill {
        service: Arc::clone(service),
        handle: Arc::clone(handle),
        change,
        progress: Arc::clone(&progress),
        _claimed: claimed,
    };
    Ok((progress, task, fill))
}

/// Resumes a change whose task was running when the server stopped.
///
/// # Errors
/// If the index has been deleted, or has no change any more.
pub(crate) fn restart(
    service: &Arc<SearchService>,
    number: u64,
    saved: &Value,
    record: &Value,
) -> Result<(), EngineError> {
    let handle =
        &index_of(service, saved).ok_or_else(|| EngineError::internal("the index of the task is gone"))?;
    let pace = saved["requests_per_second"].as_f64().unwrap_or(f64::INFINITY);
    let (progress, task, fill) = prepared(service, handle, handle.claim_filling()?, pace)?;
    let task = task.recorded(record);
    tracing::info!(number, index = handle.name, "a change of a model goes on where it stopped");
    let task = service.tasks.restart(number, task, move |context| fill.run(context))?;
    *progress.filling.task.lock() = Some(task.id());
    Ok(())
}

/// The index of a saved task; `None` if it is gone or has no change any more.
fn index_of(service: &SearchService, saved: &Value) -> Option<Arc<IndexHandle>> {
    let uuid = saved["uuid"].as_str().unwrap_or_default();
    let names = service.indices.names();
    let has_change = |handle: &&Arc<IndexHandle>| handle.uuid == uuid && handle.model_change().is_some();
    names.indices.values().find(has_change).cloned()
}

/// Ends a change whose task was cancelled and cannot be started again.
pub(crate) fn abandon(service: &SearchService, saved: &Value) {
    let Some(handle) = index_of(service, saved) else { return };
    let is_filling = handle.model_change().is_some_and(|change| change.state == ChangeState::Filling);
    if is_filling && let Err(error) = handle.end_model_change() {
        tracing::warn!(index = handle.name, %error, "a cancelled change of a model is not over");
    }
}

/// Resumes changes that have no task, as the server stopped before the task was recorded.
pub(crate) fn resume_others(service: &Arc<SearchService>) {
    for handle in service.indices.names().indices.values().filter(|handle| is_open_end(handle)) {
        let Ok(claimed) = handle.claim_filling() else { continue };
        let asked = handle.model_change().and_then(|change| change.requests_per_second);
        if let Err(error) = spawn(service, handle, claimed, asked.unwrap_or(f64::INFINITY), None) {
            tracing::warn!(index = handle.name, %error, "a change of a model does not go on");
        }
    }
}

/// Whether documents of an index are being given new vectors and no failure has stopped that.
fn is_open_end(handle: &IndexHandle) -> bool {
    let metadata = handle.metadata.read();
    let change = metadata.model_change.as_ref();
    !metadata.closed
        && change.is_some_and(|change| change.state == ChangeState::Filling && change.failure.is_none())
}
