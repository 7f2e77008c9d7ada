//! `_snapshot/{repository}`: registers, shows, verifies, cleans up and unregisters repositories.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::running::wait_for_lock;
use super::settings::Registered;
use super::{errors, names};
use crate::service::SnapshotService;
use sparrow_request::NODE_NAME;
use sparrow_request::body::parse_json;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] = &[
    Operation::new("put_repository", Action::PutRepository, Lane::Long, put_repository)
        .about("Makes a snapshot repository.")
        .holds("Repository", Registered::shape)
        .takes(&["master_timeout timeout verify"]),
    Operation::new("get_repository", Action::GetRepository, Lane::Long, get_repository)
        .about("Snapshot repositories.")
        .takes(&["local master_timeout"]),
    Operation::new("delete_repository", Action::DeleteRepository, Lane::Long, delete_repository)
        .about("Forgets a snapshot repository; its files stay.")
        .takes(&["master_timeout timeout"]),
    Operation::new("verify_repository", Action::VerifyRepository, Lane::Long, verify_repository)
        .about("Can the repository be written?")
        .takes(&["master_timeout timeout"]),
    Operation::new("cleanup_repository", Action::CleanUpRepository, Lane::Long, cleanup_repository)
        .about("Deletes files of a repository that no snapshot needs.")
        .takes(&["master_timeout timeout"]),
];

/// Most repositories that can be registered.
const MOST: usize = 1000;

/// `PUT|POST /_snapshot/{repository}`: registers a repository, or changes its settings.
fn put_repository(
    service: &Arc<SnapshotService>,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let name = request.part("repository");
    names::check_repository(name)?;
    let verify = request.params().bool("verify", true)?;
    let Value::Object(body) = parse_json(body)? else {
        return Err(EngineError::parse("Failed to parse content to map"));
    };
    let snapshots = &service.snapshots;
    let mut repository = snapshots.open_repository(name, Registered::parse(name, &body)?)?;
    let _one = snapshots.changing.lock();
    snapshots.check_apart(&repository)?;
    let mut next = snapshots.registered().as_ref().clone();
    if next.len() >= MOST && !next.contains_key(name) {
        return Err(EngineError::illegal_argument(format!("there are [{MOST}] repositories already")));
    }
    if let Some(old) = next.get(name)
        && *old.settings.get("location").unwrap_or(&String::new()) != repository.settings.location()
        && let Ok(old) = snapshots.open_repository(name, old.clone())
        && let Some(by) = snapshots.running.use_of(&old.path)
    {
        return Err(errors::in_use(name, by));
    }
    repository.settings.uuid = if repository.settings.is_readonly() {
        repository.layout.identity()?
    } else {
        Some(repository.layout.create()?)
    };
    if verify && repository.settings.uuid.is_some() {
        repository.layout.verify(!repository.settings.is_readonly())?;
    }
    next.insert(name.to_owned(), repository.settings);
    snapshots.replace(next)?;
    Ok(Reply::acknowledged())
}

/// `GET /_snapshot[/{repository}]`: shows repositories and their settings.
fn get_repository(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let registered = service.snapshots.registered();
    let mut shown = Map::new();
    for name in service.snapshots.select(request.part("repository"))? {
        if let Some(repository) = registered.get(&name) {
            shown.insert(name, repository.view());
        }
    }
    Ok(Reply::ok(&Value::Object(shown)))
}

/// `DELETE /_snapshot/{repository}`: unregisters repositories; their files stay.
fn delete_repository(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let expression = request.part("repository");
    let snapshots = &service.snapshots;
    let _one = snapshots.changing.lock();
    let repositories = snapshots.select(expression)?;
    if repositories.is_empty() && !matches!(expression, "*" | "_all") {
        return Err(errors::missing_repository(expression));
    }
    let mut next = snapshots.registered().as_ref().clone();
    for name in repositories {
        if let Some(settings) = next.remove(&name)
            && let Ok(repository) = snapshots.open_repository(&name, settings)
            && let Some(by) = snapshots.running.use_of(&repository.path)
        {
            return Err(errors::in_use(&name, by));
        }
    }
    let kept: Vec<String> = next.keys().cloned().collect();
    snapshots.replace(next)?;
    snapshots.failed.keep(|name| kept.iter().any(|kept| kept == name));
    Ok(Reply::acknowledged())
}

/// `POST /_snapshot/{repository}/_verify`: checks that the repository can be accessed.
fn verify_repository(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let repository = service.snapshots.repository(request.part("repository"))?;
    repository.layout.verify(!repository.settings.is_readonly())?;
    // What a newer version wrote is refused here already.
    repository.layout.identity()?;
    Ok(Reply::ok(&json!({"nodes": {service.node.id(): {"name": NODE_NAME}}})))
}

/// `POST /_snapshot/{repository}/_cleanup`: removes blobs that no snapshot uses.
fn cleanup_repository(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let repository = service.snapshots.repository(request.part("repository"))?;
    repository.check_writable("cleanup")?;
    let lock = service.snapshots.running.folder_lock(&repository.path);
    let _guard = wait_for_lock(&lock, &|| cancel.is_cancelled())?;
    let held = repository.layout.begin()?;
    let swept = repository.layout.sweep(&held)?;
    repository.layout.end(&held)?;
    Ok(Reply::ok(&json!({"results": {"deleted_bytes": swept.bytes, "deleted_blobs": swept.blobs}})))
}
