//! `DELETE /_snapshot/{repository}/{snapshots}`: deletes snapshots, and aborts those that are being created.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::running::wait_for_lock;
use super::{Repository, Snapshots, errors, names};
use crate::service::SnapshotService;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_tasks::TaskSpec;

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] =
    &[Operation::new("delete_snapshot", Action::DeleteSnapshot, Lane::Long, delete_snapshot)
        .about("Deletes snapshots.")
        .takes(&["master_timeout wait_for_completion"])
        .unlisted()];

/// Deletes snapshots, and the blobs that only they use.
fn delete_snapshot(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let wait = request.params().bool("wait_for_completion", true)?;
    let repository = service.snapshots.repository(request.part("repository"))?;
    repository.check_writable("delete snapshot")?;
    let expression = request.part("snapshot").to_owned();
    let wanted = select(service, &repository, &expression)?;
    let spec = TaskSpec::new("cluster:admin/snapshot/delete", format!("[{}][{expression}]", repository.name))
        .of(request);
    let owner = service.clone();
    let task = service.tasks.spawn(spec, move |_| {
        delete(&owner, &repository, &wanted).inspect_err(|error| {
            tracing::warn!(repository = repository.name, %error, "snapshots were not deleted");
            owner.snapshots.counts.failed_deletion();
        })?;
        Ok(serde_json::json!({"acknowledged": true}))
    })?;
    if wait {
        task.wait(&|| cancel.is_cancelled())?;
    }
    Ok(Reply::acknowledged())
}

/// Names of the snapshots that an expression matches, including those that are being created or failed.
fn select(
    service: &SnapshotService,
    repository: &Repository,
    expression: &str,
) -> Result<Vec<String>, EngineError> {
    let listing = repository.layout.list()?;
    let creations = service.snapshots.running.creations_in(&repository.path);
    let mut snapshots: Vec<&str> = listing.infos.iter().map(|info| info.snapshot.as_str()).collect();
    snapshots.extend(creations.iter().map(|creation| creation.snapshot.as_str()));
    let failed = service.snapshots.failed.of(&repository.name, &repository.path, &listing.infos);
    snapshots.extend(failed.iter().map(|failed| failed.snapshot.as_str()));
    let missing = |name: &str| errors::missing_snapshot(&repository.name, name);
    let selected = names::select(expression, &snapshots, missing)?;
    Ok(selected.into_iter().map(str::to_owned).collect())
}

fn delete(service: &SnapshotService, repository: &Repository, wanted: &[String]) -> Result<(), EngineError> {
    let Snapshots { running, failed, .. } = &service.snapshots;
    // Names that may stand for no snapshot in the repository.
    let failures = failed.of(&repository.name, &repository.path, &[]);
    let mut unmade: Vec<String> = failures.into_iter().map(|failed| failed.snapshot).collect();
    for creation in running.creations_in(&repository.path) {
        if wanted.contains(&creation.snapshot) {
            creation.aborted.store(true, Relaxed);
            running.wait_for(&creation);
            unmade.push(creation.snapshot.clone());
        }
    }
    failed.delete(&repository.path, wanted);
    let lock = running.folder_lock(&repository.path);
    let _guard = wait_for_lock(&lock, &|| false)?;
    let listing = repository.layout.list()?;
    let infos: Vec<_> = listing.infos.iter().filter(|info| wanted.contains(&info.snapshot)).collect();
    let is_missing =
        |name: &&String| !unmade.contains(name) && infos.iter().all(|info| info.snapshot != **name);
    if wanted.iter().any(|name| is_missing(&name))
        && let Some(unreadable) = listing.unreadable.first()
    {
        // It was there a moment ago: it would be acknowledged and stay.
        return Err(errors::repository(
            &repository.name,
            &format!("a snapshot cannot be read: {unreadable}"),
        ));
    }
    if let Some(read) = infos.iter().find(|info| running.is_read(&repository.path, &info.uuid)) {
        return Err(errors::concurrent(
            &repository.name,
            &read.label(),
            "cannot delete snapshot during a restore in progress",
        ));
    }
    if infos.is_empty() {
        return Ok(());
    }
    let held = repository.layout.begin()?;
    for info in &infos {
        repository.layout.remove_snapshot(&held, &info.uuid)?;
    }
    match repository.layout.sweep(&held) {
        Ok(swept) => {
            tracing::info!(
                repository = repository.name,
                blobs = swept.blobs,
                bytes = swept.bytes,
                "snapshots deleted"
            );
            repository.layout.end(&held)
        }
        // They are gone; what they leave is removed when all others can be read again.
        Err(error) => {
            tracing::warn!(repository = repository.name, %error, "blobs of deleted snapshots are left behind");
            Ok(())
        }
    }
}
