//! Tables of repositories and of the snapshots in them.

use std::sync::Arc;

use crate::cat::table::{Cell, Column, Table, number, text};
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::CAT;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_snapshots::SnapshotService;

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] = &[
    Operation::new("cat_repositories", Action::GetRepository, Lane::Look, cat_repositories)
        .about("A table of snapshot repositories.")
        .takes(&[CAT])
        .text(),
    Operation::new("cat_snapshots", Action::GetSnapshot, Lane::Long, cat_snapshots)
        .about("A table of snapshots.")
        .takes(&[CAT, "ignore_unavailable"])
        .text(),
];

const REPOSITORIES: &[Column] = &[
    text("id", &["id", "repoId"], "unique repository id"),
    // A text, but it stands at the right.
    number("type", &["t", "type"], "repository type"),
];

/// `GET /_cat/repositories`
fn cat_repositories(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let mut table = Table::new(REPOSITORIES);
    for (name, kind) in service.snapshots.repositories() {
        table.row(vec![name.into(), kind.into()]);
    }
    table.reply(&request.params())
}

const SNAPSHOTS: &[Column] = &[
    text("id", &["id", "snapshot"], "unique snapshot"),
    text("repository", &["re", "repo"], "repository name"),
    number("status", &["s", "status"], "snapshot name"),
    number("start_epoch", &["ste", "startEpoch"], "start time in seconds since 1970-01-01 00:00:00"),
    text("start_time", &["sti", "startTime"], "start time in HH:MM:SS"),
    number("end_epoch", &["ete", "endEpoch"], "end time in seconds since 1970-01-01 00:00:00"),
    text("end_time", &["eti", "endTime"], "end time in HH:MM:SS"),
    number("duration", &["dur", "duration"], "duration"),
    number("indices", &["i", "indices"], "number of indices"),
    number("successful_shards", &["ss"], "number of successful shards"),
    number("failed_shards", &["fs"], "number of failed shards"),
    number("total_shards", &["ts"], "number of total shards"),
    text("reason", &["r", "reason"], "reason for failures").on_request(),
];

/// `GET /_cat/snapshots[/{repository}]`
fn cat_snapshots(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let ignore_unavailable = params.bool("ignore_unavailable", false)?;
    let mut table = Table::new(SNAPSHOTS);
    for row in sparrow_snapshots::rows(service, request.part("repository"), ignore_unavailable)? {
        table.row(vec![
            row.snapshot.into(),
            row.repository.into(),
            row.status.into(),
            (row.start / 1000).into(),
            crate::cat::time_of_day(row.start / 1000).into(),
            (row.end / 1000).into(),
            crate::cat::time_of_day(row.end / 1000).into(),
            Cell::Millis(row.end.saturating_sub(row.start)),
            row.indices.into(),
            (row.indices - row.failed).into(),
            row.failed.into(),
            row.indices.into(),
        ]);
    }
    table.reply(&params)
}
