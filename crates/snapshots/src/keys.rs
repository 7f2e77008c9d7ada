//! Returns the API keys of a snapshot before a restore.

use std::sync::Arc;

use serde_json::json;
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply, Request};

use super::restore::Source;
use super::restore_request::RestoreRequest;
use super::{errors, features};
use crate::service::SnapshotService;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] =
    &[Operation::new("snapshot_keys", Action::RestoreSnapshot, Lane::Long, snapshot_keys)
        .about("The keys that a snapshot holds.")
        .json()];

/// API keys that a restore with this request body would restore, as the text of their file: `{"keys": "…"}`,
/// or `{}` if the body does not ask for them. Fails where the restore itself would, so that no keys are
/// restored for a request that is refused at once.
fn snapshot_keys(
    service: &Arc<SnapshotService>,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let wanted = RestoreRequest::parse(&parse_object(body)?)?;
    if !wanted.include_keys {
        return Ok(Reply::ok(&json!({})));
    }
    features::check(request, "cluster:admin/snapshot/restore")?;
    let source = Source::find(service, request, &wanted)?;
    match &source.content.keys {
        Some(keys) => Ok(Reply::ok(&json!({"keys": keys}))),
        None => Err(errors::restore(
            &source.repository.name,
            &source.info.label(),
            &format!("the snapshot does not contain the feature state [{}]", features::SECURITY),
        )),
    }
}
