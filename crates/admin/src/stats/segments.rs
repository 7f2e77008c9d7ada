//! Requests that show the segments of indices, and how each index was recovered.

use serde_json::{Map, Value, json};

use sparrow_catalog::Node;
use sparrow_catalog::ResolveOptions;
use sparrow_request::HOST;
use sparrow_request::NODE_NAME;
use sparrow_request::answers::ShardCounts;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::INDICES;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("index_segments", Action::Segments, Lane::Look, index_segments)
        .about("The segments of indices.")
        .takes(&[INDICES, "verbose"]),
    Operation::new("recovery", Action::Recovery, Lane::Look, recovery)
        .about("How indices were recovered.")
        .takes(&[INDICES, "active_only detailed"]),
];

/// `GET [/{index}]/_segments`
fn index_segments(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    params.bool("verbose", false)?;
    let handles = node.indices.resolve(
        request.part("index"),
        ResolveOptions::default().with(&params)?,
        request.right(),
    )?;
    let mut indices = Map::new();
    let mut total = 0;
    for handle in &handles {
        let durable = handle.durable_segments.lock().clone();
        let Some(segments) = handle.unless_gone(request, handle.index().segment_stats())? else { continue };
        total += 1 + handle.settings().replicas();
        let committed = segments.iter().filter(|one| durable.contains(&one.id)).count();
        let shown: Map<String, Value> = segments
            .iter()
            .enumerate()
            .map(|(generation, one)| {
                let segment = json!({
                    "generation": generation,
                    "num_docs": one.docs,
                    "deleted_docs": one.deleted,
                    "size_in_bytes": one.bytes,
                    "committed": durable.contains(&one.id),
                    "search": true,
                    "version": LUCENE,
                    "compound": false,
                    "attributes": {"sparrow_segment": one.id},
                });
                (format!("_{generation}"), segment)
            })
            .collect();
        let shard = json!({
            "routing": {"state": "STARTED", "primary": true, "node": node.id()},
            "num_committed_segments": committed,
            "num_search_segments": segments.len(),
            "segments": shown,
        });
        indices.insert(handle.name.clone(), json!({"shards": {"0": [shard]}}));
    }
    Ok(Reply::ok(&json!({
        "_shards": ShardCounts::new(total, indices.len()),
        "indices": indices,
    })))
}

/// The version that segments are shown with: that of the Lucene whose behaviour they have.
pub const LUCENE: &str = "9.12.2";

/// A share as a percentage in the form of `_recovery`, such as `12.5%`; 100% of nothing.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "100.0%".to_owned() } else { format!("{:.1}%", part as f64 * 100.0 / whole as f64) }
}

/// `GET [/{index}]/_recovery`
fn recovery(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let detailed = params.bool("detailed", false)?;
    let active_only = params.bool("active_only", false)?;
    let options = ResolveOptions::open_and_closed().with(&params)?;
    let handles = node.indices.resolve(request.part("index"), options, request.right())?;
    let mut indices = Map::new();
    for handle in &handles {
        // An index that can be named is open, so its recovery is over.
        if active_only {
            continue;
        }
        let opened = &handle.opened;
        let took = opened.took.as_millis() as u64;
        // Closing an index opens its shard anew.
        let restored = opened.restored.as_ref().filter(|_| !handle.is_closed());
        let (files, bytes) =
            restored.map_or((opened.files, opened.bytes), |restored| (restored.files, restored.bytes));
        let (recovered_files, recovered_bytes) = if restored.is_some() { (files, bytes) } else { (0, 0) };
        let mut shown_files = json!({
            "total": files, "reused": files - recovered_files, "recovered": recovered_files,
            "percent": percent(files, files),
        });
        let source = restored.map_or_else(
            || json!({}),
            |restored| {
                json!({
                    "repository": restored.repository, "snapshot": restored.snapshot,
                    "version": sparrow_snapshots::INDEX_VERSION, "index": restored.index,
                    "restoreUUID": restored.restore_uuid,
                })
            },
        );
        if detailed {
            shown_files["details"] = json!([]);
        }
        let mut shard = json!({
            "id": 0,
            "type": handle.source_of_recovery(),
            "stage": "DONE",
            "primary": true,
            "start_time_in_millis": opened.millis,
            "stop_time_in_millis": opened.millis + took,
            "total_time_in_millis": took,
            "source": source,
            "target": {
                "id": node.id(), "host": HOST, "transport_address": format!("{HOST}:9300"), "ip": HOST,
                "name": NODE_NAME,
            },
            "index": {
                "size": {
                    "total_in_bytes": bytes,
                    "reused_in_bytes": bytes - recovered_bytes,
                    "recovered_in_bytes": recovered_bytes,
                    "recovered_from_snapshot_in_bytes": 0,
                    "percent": percent(bytes, bytes),
                },
                "files": shown_files,
                "total_time_in_millis": took,
                "source_throttle_time_in_millis": 0,
                "target_throttle_time_in_millis": 0,
            },
            "translog": {
                "recovered": opened.replayed,
                "total": opened.replayed,
                "percent": "100.0%",
                "total_on_start": opened.replayed,
                "total_time_in_millis": took,
            },
            "verify_index": {"check_index_time_in_millis": 0, "total_time_in_millis": 0},
        });
        if opened.replayed_in_part > 0 {
            // Not in Elasticsearch: documents of the log with fields that the mapping of today cannot take.
            shard["translog"]["recovered_in_part"] = opened.replayed_in_part.into();
        }
        indices.insert(handle.name.clone(), json!({"shards": [shard]}));
    }
    Ok(Reply::ok(&indices))
}
