//! Errors about repositories and snapshots, in Elasticsearch's words.

use sparrow_request::error::{ApiError, EngineError, Exception};

fn api(status: u16, kind: &'static str, reason: String) -> EngineError {
    EngineError::api(status, Exception::new(kind, reason))
}

/// Error for a repository name that is not registered.
pub(super) fn missing_repository(name: &str) -> EngineError {
    api(404, "repository_missing_exception", format!("[{name}] missing"))
}

/// Error for a repository with a problem, `problem` in words.
pub(super) fn repository(name: &str, problem: &str) -> EngineError {
    api(500, "repository_exception", format!("[{name}] {problem}"))
}

/// Error for a repository that cannot be created as defined.
pub(super) fn not_created(name: &str, problem: &str) -> EngineError {
    let cause = Exception::new("repository_exception", format!("[{name}] {problem}"));
    let exception = Exception::new("repository_exception", format!("[{name}] failed to create repository"));
    EngineError::Api(Box::new(ApiError {
        status: 500,
        exception: exception.because(cause.clone()),
        root_causes: vec![cause],
    }))
}

/// Error for a repository that cannot be written to or read from.
pub(super) fn not_verified(name: &str, problem: &str) -> EngineError {
    api(500, "repository_verification_exception", format!("[{name}] {problem}"))
}

/// Error for changing a repository that is in use; `by` says by what.
pub(super) fn in_use(name: &str, by: &str) -> EngineError {
    let reason = format!(
        "[{name}] trying to modify or unregister repository that is currently used ({by} is in progress)"
    );
    api(409, "repository_conflict_exception", reason)
}

/// Error for a snapshot name that does not exist.
pub(super) fn missing_snapshot(repository: &str, snapshot: &str) -> EngineError {
    api(404, "snapshot_missing_exception", format!("[{repository}:{snapshot}] is missing"))
}

/// Error for a snapshot name that is taken; `how` says by what.
pub(super) fn name_in_use(repository: &str, snapshot: &str, how: &str) -> EngineError {
    let reason = format!("[{repository}:{snapshot}] Invalid snapshot name [{snapshot}], {how}");
    api(400, "snapshot_name_already_in_use_exception", reason)
}

/// Error for a snapshot name that is not allowed.
pub(super) fn invalid_name(repository: &str, snapshot: &str, problem: &str) -> EngineError {
    let reason = format!("[{repository}:{snapshot}] Invalid snapshot name [{snapshot}], {problem}");
    api(400, "invalid_snapshot_name_exception", reason)
}

/// Error for a snapshot that cannot be created. `label` is its name, or its name and uuid.
pub(super) fn snapshot(repository: &str, label: &str, problem: &str) -> EngineError {
    api(500, "snapshot_exception", format!("[{repository}:{label}] {problem}"))
}

/// Error for a snapshot that cannot be restored.
pub(super) fn restore(repository: &str, label: &str, problem: &str) -> EngineError {
    api(500, "snapshot_restore_exception", format!("[{repository}:{label}] {problem}"))
}

/// Error for a restore that failed after part of it was installed; `restored` lists that part in words.
pub(super) fn half_restored(
    repository: &str,
    label: &str,
    restored: &str,
    error: &EngineError,
) -> EngineError {
    let reason = format!(
        "[{repository}:{label}] the restore failed half way; restored before it failed: {restored}; failure: {}",
        error.reason()
    );
    let cause = error.exception();
    let exception = Exception::new("snapshot_restore_exception", reason).because(cause);
    EngineError::api(error.status(), exception)
}

/// Error for a snapshot on which another operation is running.
pub(super) fn concurrent(repository: &str, label: &str, problem: &str) -> EngineError {
    api(503, "concurrent_snapshot_execution_exception", format!("[{repository}:{label}] {problem}"))
}

/// Error for restoring an index that the snapshot does not contain.
pub(super) fn not_in_snapshot(index: &str) -> EngineError {
    EngineError::api(
        404,
        Exception::new("index_not_found_exception", format!("no such index [{index}]"))
            .with("index_uuid", "_na_")
            .with("index", index),
    )
}
