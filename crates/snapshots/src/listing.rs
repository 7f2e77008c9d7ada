//! `GET /_snapshot/{repository}/{snapshots}`: lists snapshots.

use std::sync::Arc;

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::creation::Creation;
use super::failed::Failed;
use super::manifest::{INDEX_VERSION, INDEX_VERSION_ID, Info};
use super::{errors, features, names};
use crate::service::SnapshotService;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::params::Params;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Arc<SnapshotService>>] =
    &[Operation::new("get_snapshot", Action::GetSnapshot, Lane::Long, get_snapshot)
        .about("Snapshots.")
        .takes(&[
            "after from_sort_value ignore_unavailable include_repository index_details index_names",
            "master_timeout offset order size slm_policy_filter sort verbose",
        ])];

/// An entry of a listing: a snapshot that was created, is being created, or failed.
struct ListedSnapshot {
    repository: String,
    info: Info,
    in_progress: bool,
    /// Why the creation failed; `None` if it did not.
    failure: Option<String>,
}

/// A row of `_cat/snapshots`.
pub struct SnapshotRow {
    pub snapshot: String,
    pub repository: String,
    pub status: &'static str,
    /// Start time in milliseconds since the epoch; `end` likewise, or 0 while the snapshot is being created.
    pub start: u64,
    pub end: u64,
    pub indices: usize,
    pub failed: usize,
}

impl ListedSnapshot {
    fn made(repository: &str, info: Info) -> Self {
        Self { repository: repository.to_owned(), info, in_progress: false, failure: None }
    }

    fn running(creation: &Creation) -> Self {
        let info = Info {
            snapshot: creation.snapshot.clone(),
            uuid: creation.uuid.clone(),
            server: String::new(),
            include_global_state: creation.include_global_state,
            has_keys: false,
            metadata: creation.metadata.clone(),
            start: creation.start,
            end: 0,
            indices: creation.indices.iter().map(|name| (name.clone(), Default::default())).collect(),
            failures: Default::default(),
        };
        Self { repository: creation.repository.clone(), info, in_progress: true, failure: None }
    }

    fn failed(failed: &Failed) -> Self {
        Self {
            repository: failed.repository.clone(),
            info: failed.info(),
            in_progress: false,
            failure: Some(failed.reason().to_owned()),
        }
    }

    fn state(&self) -> &'static str {
        match self.failure {
            Some(_) => "FAILED",
            None if self.in_progress => "IN_PROGRESS",
            None => self.info.state(),
        }
    }

    fn took(&self) -> u64 {
        self.info.end.saturating_sub(self.info.start)
    }

    /// Sort key: a number or a string.
    fn key(&self, sort: Sort) -> Key {
        let info = &self.info;
        match sort {
            Sort::StartTime => Key::Number(info.start),
            Sort::Duration => Key::Number(self.took()),
            Sort::Name => Key::Text(info.snapshot.clone()),
            Sort::Repository => Key::Text(self.repository.clone()),
            Sort::IndexCount | Sort::ShardCount => Key::Number(info.names().len() as u64),
            Sort::FailedShardCount => Key::Number(info.failures.len() as u64),
        }
    }

    /// Position in a sorted list: the sort key, then the names of snapshot and repository.
    fn place(&self, sort: Sort) -> (Key, String, String) {
        (self.key(sort), self.info.snapshot.clone(), self.repository.clone())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(u64),
    Text(String),
}

impl Key {
    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Sort {
    StartTime,
    Duration,
    Name,
    Repository,
    IndexCount,
    ShardCount,
    FailedShardCount,
}

impl Sort {
    fn parse(text: Option<&str>) -> Result<Self, EngineError> {
        Ok(match text {
            None | Some("start_time") => Self::StartTime,
            Some("duration") => Self::Duration,
            Some("name") => Self::Name,
            Some("repository") => Self::Repository,
            Some("index_count") => Self::IndexCount,
            Some("shard_count") => Self::ShardCount,
            Some("failed_shard_count") => Self::FailedShardCount,
            Some(other) => {
                return Err(EngineError::illegal_argument(format!("unknown sort order [{other}]")));
            }
        })
    }

    fn is_text(self) -> bool {
        matches!(self, Self::Name | Self::Repository)
    }

    /// Parses a sort key of a request; `None` if it is malformed.
    fn read(self, text: &str) -> Option<Key> {
        match self.is_text() {
            true => Some(Key::Text(text.to_owned())),
            false => text.parse().ok().map(Key::Number),
        }
    }
}

/// Sort order and range of a listing.
struct Page {
    sort: Sort,
    descending: bool,
    size: Option<usize>,
    offset: usize,
    after: Option<(Key, String, String)>,
    from: Option<Key>,
}

impl Page {
    fn parse(params: &Params<'_>) -> Result<Self, EngineError> {
        let sort = Sort::parse(params.get("sort"))?;
        let descending = match params.get("order").map(str::to_ascii_lowercase).as_deref() {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(other) => {
                return Err(EngineError::illegal_argument(format!(
                    "No enum constant org.elasticsearch.search.sort.SortOrder.{}",
                    other.to_uppercase()
                )));
            }
        };
        let mut problems = Vec::new();
        let size = match params.integer("size")? {
            None | Some(-1) => None,
            Some(size) if size > 0 => Some(size as usize),
            Some(_) => {
                problems.push("size must be -1 for all or a positive number".to_owned());
                None
            }
        };
        let offset = match params.integer("offset")? {
            Some(offset) if offset < 0 => {
                problems.push("offset must be non-negative".to_owned());
                0
            }
            offset => offset.unwrap_or(0) as usize,
        };
        let bad = |name: &str, text: &str| {
            EngineError::illegal_argument(format!("invalid ?{name} parameter [{text}]"))
        };
        let after = match params.get("after").filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => {
                let place = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                // No name has a comma in it.
                let place = place.as_deref().and_then(|place| {
                    let mut parts = place.splitn(3, ',');
                    let (key, repository, snapshot) = (parts.next()?, parts.next()?, parts.next()?);
                    Some((sort.read(key)?, snapshot.to_owned(), repository.to_owned()))
                });
                Some(place.ok_or_else(|| bad("after", text))?)
            }
        };
        let from = match params.get("from_sort_value") {
            None => None,
            Some(text) => Some(sort.read(text).ok_or_else(|| bad("from_sort_value", text))?),
        };
        if after.is_some() && offset > 0 {
            problems.push("can't use after and offset simultaneously".to_owned());
        }
        if after.is_some() && from.is_some() {
            problems.push("can't use after and from_sort_value simultaneously".to_owned());
        }
        if !problems.is_empty() {
            return Err(EngineError::Validation { problems });
        }
        Ok(Self { sort, descending, size, offset, after, from })
    }

    fn order(&self, ordering: Ordering) -> Ordering {
        if self.descending { ordering.reverse() } else { ordering }
    }

    /// Cuts the requested page out of a listing. Returns the page, the `next` token if more entries follow,
    /// the total number of entries, and the number after the page.
    fn cut(&self, mut all: Vec<ListedSnapshot>) -> (Vec<ListedSnapshot>, Option<String>, usize, usize) {
        all.sort_by(|a, b| self.order(a.place(self.sort).cmp(&b.place(self.sort))));
        if let Some(from) = &self.from {
            all.retain(|it| self.order(it.key(self.sort).cmp(from)) != Ordering::Less);
        }
        let total = all.len();
        if let Some(after) = &self.after {
            all.retain(|it| self.order(it.place(self.sort).cmp(after)) == Ordering::Greater);
        }
        let mut shown: Vec<ListedSnapshot> = all.into_iter().skip(self.offset).collect();
        let remaining = shown.len().saturating_sub(self.size.unwrap_or(usize::MAX));
        shown.truncate(shown.len() - remaining);
        let next = shown.last().filter(|_| remaining > 0).map(|last| {
            let key = last.key(self.sort).text();
            STANDARD.encode(format!("{key},{},{}", last.repository, last.info.snapshot))
        });
        (shown, next, total, remaining)
    }
}

/// Snapshots that an expression matches in the given repositories.
fn find(
    service: &SnapshotService,
    repositories: &str,
    expression: &str,
    ignore_unavailable: bool,
) -> Result<Vec<ListedSnapshot>, EngineError> {
    let mut listed = Vec::new();
    for name in service.snapshots.select(repositories)? {
        // Before the list, so that one that ends in between is not missed.
        let creations = service.snapshots.running.creations(Some(&name));
        let current: Vec<&str> = expression.split(',').map(str::trim).collect();
        if current == ["_current"] {
            listed.extend(creations.iter().map(|creation| ListedSnapshot::running(creation)));
            continue;
        }
        let repository = service.snapshots.repository(&name)?;
        let listing = repository.layout.list()?;
        let failed = service.snapshots.failed.of(&name, &repository.path, &listing.infos);
        let mut all: Vec<ListedSnapshot> =
            listing.infos.into_iter().map(|info| ListedSnapshot::made(&name, info)).collect();
        // One whose last file is written goes on being made until it is counted and can be deleted.
        all.retain(|it| !creations.iter().any(|creation| creation.snapshot == it.info.snapshot));
        all.extend(creations.iter().map(|creation| ListedSnapshot::running(creation)));
        for failed in &failed {
            if !all.iter().any(|it| it.info.snapshot == failed.snapshot) {
                all.push(ListedSnapshot::failed(failed));
            }
        }
        let wants_current = current.contains(&"_current");
        let parts: Vec<&str> = current.into_iter().filter(|part| *part != "_current").collect();
        let snapshots: Vec<String> = all.iter().map(|it| it.info.snapshot.clone()).collect();
        let snapshots: Vec<&str> = snapshots.iter().map(String::as_str).collect();
        let mut missing = None;
        let kept: Vec<&str> = parts
            .iter()
            .copied()
            .filter(|part| {
                let plain =
                    !part.contains('*') && *part != "_all" && !part.is_empty() && !part.starts_with('-');
                let there = !plain || snapshots.contains(part);
                if !there && missing.is_none() {
                    missing = Some((*part).to_owned());
                }
                there
            })
            .collect();
        if let Some(unreadable) = listing.unreadable.first()
            && !ignore_unavailable
            && (missing.is_some()
                || parts.iter().any(|part| part.contains('*') || matches!(*part, "" | "_all")))
        {
            return Err(errors::repository(&name, &format!("a snapshot cannot be read: {unreadable}")));
        }
        match missing {
            Some(missing) if !ignore_unavailable => return Err(errors::missing_snapshot(&name, &missing)),
            Some(_) if kept.is_empty() => continue,
            _ => {}
        }
        let absent = |missing: &str| errors::missing_snapshot(&name, missing);
        let chosen = names::select(&kept.join(","), &snapshots, absent)?;
        listed.extend(
            all.into_iter().filter(|it| {
                chosen.contains(&it.info.snapshot.as_str()) || (wants_current && it.in_progress)
            }),
        );
    }
    Ok(listed)
}

/// `GET /_snapshot/{repository}/{snapshot}`: answers with the matching snapshots.
fn get_snapshot(
    service: &Arc<SnapshotService>,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    if params.get("slm_policy_filter").is_some() {
        return Err(EngineError::illegal_argument(
            "[slm_policy_filter] is not supported by this server: it has no snapshot lifecycle policies",
        ));
    }
    let verbose = params.bool("verbose", true)?;
    let ignore_unavailable = params.bool("ignore_unavailable", false)?;
    let shown = SnapshotView {
        verbose,
        repository: params.bool("include_repository", true)?,
        index_names: params.bool("index_names", true)?,
        index_details: params.bool("index_details", false)?,
    };
    let page = Page::parse(&params)?;
    let snapshots = find(service, request.part("repository"), request.part("snapshot"), ignore_unavailable)?;
    let (snapshots, next, total, remaining) = page.cut(snapshots);
    let mut body = Map::new();
    body.insert("snapshots".into(), snapshots.iter().map(|it| shown.view(it)).collect());
    body.extend(next.map(|next| ("next".to_owned(), next.into())));
    body.insert("total".into(), total.into());
    body.insert("remaining".into(), remaining.into());
    Ok(Reply::ok(&Value::Object(body)))
}

/// Rows of `_cat/snapshots`, ordered by start time.
pub fn rows(
    service: &SnapshotService,
    repositories: &str,
    ignore_unavailable: bool,
) -> Result<Vec<SnapshotRow>, EngineError> {
    let mut snapshots = find(service, repositories, "_all", ignore_unavailable)?;
    snapshots.sort_by_key(|it| it.place(Sort::StartTime));
    let row = |it: ListedSnapshot| SnapshotRow {
        status: it.state(),
        start: it.info.start,
        end: it.info.end,
        indices: it.info.names().len(),
        failed: it.info.failures.len(),
        snapshot: it.info.snapshot,
        repository: it.repository,
    };
    Ok(snapshots.into_iter().map(row).collect())
}

/// Which details of a snapshot are shown.
struct SnapshotView {
    verbose: bool,
    repository: bool,
    index_names: bool,
    index_details: bool,
}

/// A snapshot as JSON, as in the answer to its creation.
pub(super) fn view(repository: &str, info: &Info) -> Value {
    let all = SnapshotView { verbose: true, repository: true, index_names: true, index_details: false };
    all.view(&ListedSnapshot::made(repository, info.clone()))
}

impl SnapshotView {
    fn view(&self, it: &ListedSnapshot) -> Value {
        let info = &it.info;
        let mut out = Map::new();
        let mut put = |name: &str, value: Value| {
            out.insert(name.to_owned(), value);
        };
        put("snapshot", info.snapshot.as_str().into());
        put("uuid", info.uuid.as_str().into());
        if self.repository {
            put("repository", it.repository.as_str().into());
        }
        if self.verbose {
            put("version_id", INDEX_VERSION_ID.into());
            put("version", INDEX_VERSION.into());
        }
        if self.index_names {
            put("indices", json!(info.names()));
        }
        if self.index_details && self.verbose {
            let details = info.indices.iter().map(|(name, figures)| {
                let details = json!({
                    "shard_count": 1,
                    "size_in_bytes": figures.bytes,
                    "max_segments_per_shard": figures.segments,
                });
                (name.clone(), details)
            });
            put("index_details", Value::Object(details.collect()));
        }
        put("data_streams", json!([]));
        if self.verbose {
            put("include_global_state", info.include_global_state.into());
            if let Some(metadata) = &info.metadata {
                put("metadata", Value::Object(metadata.clone()));
            }
        }
        put("state", it.state().into());
        if let Some(reason) = &it.failure {
            put("reason", reason.as_str().into());
        }
        if self.verbose {
            put("start_time", date(info.start).into());
            put("start_time_in_millis", info.start.into());
            put("end_time", date(info.end).into());
            put("end_time_in_millis", info.end.into());
            put("duration_in_millis", it.took().into());
            let failures: Vec<Value> = info
                .failures
                .iter()
                .map(|(index, reason)| {
                    json!({"index": index, "index_uuid": index, "shard_id": 0, "reason": reason,
                        "status": "INTERNAL_SERVER_ERROR"})
                })
                .collect();
            put("failures", failures.into());
            let (total, failed) = match it.in_progress {
                true => (0, 0),
                false => (info.names().len(), info.failures.len()),
            };
            put("shards", json!({"total": total, "failed": failed, "successful": total - failed}));
            let features = match info.has_keys {
                true => json!([{"feature_name": features::SECURITY, "indices": []}]),
                false => json!([]),
            };
            put("feature_states", features);
        }
        Value::Object(out)
    }
}

/// Formats a time, in milliseconds since the epoch, as a date.
fn date(millis: u64) -> String {
    sparrow_mapping::date::format_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
