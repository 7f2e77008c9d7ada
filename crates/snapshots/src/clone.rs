//! `PUT /_snapshot/{repository}/{snapshot}/_clone/{target}`: copies some indices of a snapshot into a new
//! snapshot.

use std::sync::Arc;

use serde_json::Map;

use super::manifest::Info;
use super::running::wait_for_lock;
use super::{errors, list_of, names};
use crate::service::SnapshotService;
use sparrow_catalog::{concrete_name, new_uuid, now_millis};
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::shape::{Shape, object, several, text};

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] =
    &[Operation::new("clone_snapshot", Action::CloneSnapshot, Lane::Long, clone_snapshot)
        .about("Copies some indices of a snapshot into another one.")
        .holds("CloneSnapshotRequest", shape)
        .takes(&["master_timeout timeout"])];

fn shape() -> Shape {
    object([("indices", several(text()))]).needs(&["indices"])
}

/// Creates the clone, which shares the blobs of the snapshot.
fn clone_snapshot(
    service: &Arc<SnapshotService>,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let name = request.part("repository");
    let target = concrete_name(request.part("target_snapshot"))?;
    names::check_snapshot(name, &target)?;
    let mut indices = None;
    for (key, value) in parse_object(body)? {
        match key.as_str() {
            "indices" => indices = Some(list_of("indices", &value)?),
            other => {
                return Err(EngineError::parse(format!("[clone_snapshot] {}", shape().unknown(other))));
            }
        }
    }
    let Some(indices) = indices else { return Err(EngineError::invalid("indices patterns are missing")) };
    let repository = service.snapshots.repository(name)?;
    repository.check_writable("clone snapshot")?;
    let lock = service.snapshots.running.folder_lock(&repository.path);
    let _guard = wait_for_lock(&lock, &|| cancel.is_cancelled())?;
    let listing = repository.layout.list()?;
    let taken = |name: &str| listing.infos.iter().any(|info| info.snapshot == name);
    let made =
        service.snapshots.running.creations_in(&repository.path).iter().any(|it| it.snapshot == target);
    if taken(&target) || made {
        return Err(errors::name_in_use(name, &target, "snapshot with the same name already exists"));
    }
    if listing.infos.len() >= repository.settings.most_snapshots() {
        return Err(super::create::too_many(&repository));
    }
    let source = request.part("snapshot");
    let source = listing
        .infos
        .iter()
        .find(|info| info.snapshot == source)
        .ok_or_else(|| errors::missing_snapshot(name, source))?;
    let mut content = repository.layout.content(&source.uuid)?;
    let indices_there: Vec<&str> = source.indices.keys().map(String::as_str).collect();
    let wanted: Vec<String> = names::select(&indices, &indices_there, errors::not_in_snapshot)?
        .into_iter()
        .map(str::to_owned)
        .collect();
    content.indices.retain(|index| wanted.contains(&index.name));
    let now = now_millis();
    let mut info = Info {
        snapshot: target,
        uuid: new_uuid(),
        server: env!("CARGO_PKG_VERSION").to_owned(),
        metadata: Some(Map::new()),
        start: now,
        end: now,
        failures: Default::default(),
        ..source.clone()
    };
    info.indices.retain(|index, _| wanted.contains(index));
    for figures in info.indices.values_mut() {
        (figures.new_files, figures.new_bytes, figures.start, figures.took) = (0, 0, now, 0);
    }
    let held = repository.layout.begin()?;
    let crashed = held.crashed;
    repository.layout.put_snapshot(&held, &info, &content)?;
    if !crashed {
        repository.layout.end(&held)?;
    }
    Ok(Reply::acknowledged())
}
