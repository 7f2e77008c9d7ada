//! `_snapshot/…/_status`: progress of running snapshots, and statistics of finished ones.

use std::sync::Arc;

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Map, Value, json};

use super::creation::Creation;
use super::errors;
use super::manifest::{Figures, Info};
use crate::service::SnapshotService;
use sparrow_catalog::now_millis;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] =
    &[Operation::new("snapshot_status", Action::SnapshotStatus, Lane::Long, snapshot_status)
        .about("How far snapshots are, and how large.")
        .takes(&["ignore_unavailable master_timeout"])];

/// `GET /_snapshot/_status` and `GET /_snapshot/{repository}/_status` for snapshots that are being created;
/// `GET /_snapshot/{repository}/{snapshots}/_status` for the named ones.
fn snapshot_status(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let ignore_unavailable = request.params().bool("ignore_unavailable", false)?;
    let running = &service.snapshots.running;
    let (repository, snapshots) = (request.part("repository"), request.part("snapshot"));
    let mut shown = Vec::new();
    if snapshots.is_empty() {
        let wanted = match repository {
            "" => None,
            name => Some(service.snapshots.repository(name)?.name),
        };
        shown.extend(running.creations(wanted.as_deref()).iter().map(|it| progress(it)));
        return Ok(Reply::ok(&json!({"snapshots": shown})));
    }
    let repository = service.snapshots.repository(repository)?;
    let creations = running.creations(Some(&repository.name));
    let listing = repository.layout.list()?;
    let failed = service.snapshots.failed.of(&repository.name, &repository.path, &listing.infos);
    for name in snapshots.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if let Some(info) = listing.infos.iter().find(|info| info.snapshot == name) {
            shown.push(made(&repository.name, info, info.state()));
        } else if let Some(creation) = creations.iter().find(|creation| creation.snapshot == name) {
            shown.push(progress(creation));
        } else if let Some(failed) = failed.iter().find(|failed| failed.snapshot == name) {
            shown.push(made(&repository.name, &failed.info(), "FAILED"));
        } else if !ignore_unavailable {
            return Err(errors::missing_snapshot(&repository.name, name));
        }
    }
    Ok(Reply::ok(&json!({"snapshots": shown})))
}

fn shards(done: usize, failed: usize, started: usize) -> Value {
    json!({
        "initializing": 0, "started": started, "finalizing": 0, "done": done, "failed": failed,
        "total": done + failed + started,
    })
}

fn stats(figures: &Figures) -> Value {
    json!({
        "incremental": {"file_count": figures.new_files, "size_in_bytes": figures.new_bytes},
        "total": {"file_count": figures.files, "size_in_bytes": figures.bytes},
        "start_time_in_millis": figures.start,
        "time_in_millis": figures.took,
    })
}

fn made(repository: &str, info: &Info, state: &str) -> Value {
    let mut sum =
        Figures { start: info.start, took: info.end.saturating_sub(info.start), ..Figures::default() };
    let mut indices = Map::new();
    for (name, figures) in &info.indices {
        sum.files += figures.files;
        sum.bytes += figures.bytes;
        sum.new_files += figures.new_files;
        sum.new_bytes += figures.new_bytes;
        let index = json!({
            "shards_stats": shards(1, 0, 0),
            "stats": stats(figures),
            "shards": {"0": {"stage": "DONE", "stats": stats(figures)}},
        });
        indices.insert(name.clone(), index);
    }
    for (name, reason) in &info.failures {
        let nothing = stats(&Figures::default());
        let index = json!({
            "shards_stats": shards(0, 1, 0),
            "stats": nothing,
            "shards": {"0": {"stage": "FAILURE", "reason": reason, "stats": nothing}},
        });
        indices.insert(name.clone(), index);
    }
    json!({
        "snapshot": info.snapshot,
        "repository": repository,
        "uuid": info.uuid,
        "state": state,
        "include_global_state": info.include_global_state,
        "shards_stats": shards(info.indices.len(), info.failures.len(), 0),
        "stats": stats(&sum),
        "indices": indices,
    })
}

fn progress(creation: &Creation) -> Value {
    let (files, bytes) = (creation.total_files.load(Relaxed), creation.total_bytes.load(Relaxed));
    let (done_files, done_bytes) = (creation.done_files.load(Relaxed), creation.done_bytes.load(Relaxed));
    let done = (creation.done_indices.load(Relaxed) as usize).min(creation.indices.len());
    json!({
        "snapshot": creation.snapshot,
        "repository": creation.repository,
        "uuid": creation.uuid,
        "state": if creation.aborted.load(Relaxed) { "ABORTED" } else { "STARTED" },
        "include_global_state": creation.include_global_state,
        "shards_stats": shards(done, 0, creation.indices.len() - done),
        "stats": {
            "incremental": {"file_count": files, "size_in_bytes": bytes},
            "processed": {"file_count": done_files, "size_in_bytes": done_bytes},
            "total": {"file_count": files, "size_in_bytes": bytes},
            "start_time_in_millis": creation.start,
            "time_in_millis": now_millis().saturating_sub(creation.start),
        },
        "indices": {},
    })
}
