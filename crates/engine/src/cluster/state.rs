//! `_cluster/state`: what there is, as clients and tools read it.

use serde_json::{Map, Value, json};

use super::info::CLUSTER_NAME;
use crate::Engine;
use crate::error::EngineError;
use crate::indices::stats::check_metrics;
use crate::indices::{IndexHandle, ResolveOptions, admin, blocks};
use crate::jobs::{NODE_NAME, NODE_ROLES};
use crate::request::{CancelFlag, Reply, Request};
use crate::rights::Right;

const METRICS: [&str; 8] =
    ["version", "master_node", "blocks", "nodes", "metadata", "routing_table", "routing_nodes", "customs"];

/// `GET /_cluster/state[/{metric}[/{index}]]`
pub(crate) fn cluster_state(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let flat = params.bool("flat_settings", false)?;
    params.bool("local", false)?;
    let asked: Vec<&str> =
        request.part("metric").split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let some = !asked.contains(&"_all") && check_metrics(&asked, &METRICS, "/_cluster/state")?;
    let shows = |metric: &str| !some || asked.contains(&metric);
    let options = ResolveOptions::metadata().with(&params)?;
    // Without a name it is the state of all, closed ones and hidden ones too.
    let options = match request.part("index") {
        "" | "_all" if params.get("expand_wildcards").is_none() => ResolveOptions::everything(),
        _ => options,
    };
    let handles = engine.indices.resolve(request.part("index"), options, Right::unlimited())?;
    let node = engine.node_id();
    let cluster = cluster_uuid(engine);
    let mut body = Map::new();
    body.insert("cluster_name".into(), CLUSTER_NAME.into());
    body.insert("cluster_uuid".into(), cluster.as_str().into());
    if shows("version") {
        // Counts the changes that the names show: enough to tell two states apart within one process.
        body.insert("version".into(), engine.indices.changes().into());
        body.insert("state_uuid".into(), format!("{node}-{}", engine.indices.changes()).into());
    }
    if shows("master_node") {
        body.insert("master_node".into(), node.into());
    }
    if shows("blocks") {
        body.insert("blocks".into(), blocks_of(&handles));
    }
    if shows("nodes") {
        body.insert("nodes".into(), json!({node: node_json(engine)}));
    }
    if shows("metadata") {
        body.insert("metadata".into(), metadata(engine, &handles, &cluster, flat));
    }
    if shows("routing_table") {
        let indices: Map<String, Value> = handles
            .iter()
            .map(|handle| (handle.name.clone(), json!({"shards": {"0": shards(engine, handle)}})))
            .collect();
        body.insert("routing_table".into(), json!({"indices": indices}));
    }
    if shows("routing_nodes") {
        let all = handles.iter().flat_map(|handle| shards(engine, handle));
        let (assigned, unassigned): (Vec<Value>, Vec<Value>) =
            all.partition(|shard| shard["node"].is_string());
        body.insert("routing_nodes".into(), json!({"unassigned": unassigned, "nodes": {node: assigned}}));
    }
    Ok(Reply::ok(&Value::Object(body)))
}

/// The cluster's identity, as `GET /` shows it. The HTTP layer keeps it beside the data.
pub(crate) fn cluster_uuid(engine: &Engine) -> String {
    let known = sparrow_files::read(engine.data.path().join("identity.json")).ok();
    let known = known.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    known
        .and_then(|value| value["clusterUuid"].as_str().map(str::to_owned))
        .unwrap_or_else(|| engine.node_id().to_owned())
}

fn node_json(engine: &Engine) -> Value {
    json!({
        "name": NODE_NAME,
        "ephemeral_id": engine.node_id(),
        "transport_address": "127.0.0.1:9300",
        "external_id": NODE_NAME,
        "attributes": {},
        "roles": NODE_ROLES,
        "version": "8.19.21",
        "min_index_version": 7_000_099,
        "max_index_version": 8_537_000,
    })
}

fn blocks_of(handles: &[std::sync::Arc<IndexHandle>]) -> Value {
    let mut indices = Map::new();
    for handle in handles {
        let mut shown = blocks::shown(&handle.settings());
        if handle.is_closed() {
            shown.insert(
                "4".to_owned(),
                json!({"description": "index closed", "retryable": false, "levels": ["read", "write"]}),
            );
        }
        if !shown.is_empty() {
            indices.insert(handle.name.clone(), shown.into());
        }
    }
    if indices.is_empty() { json!({}) } else { json!({"indices": indices}) }
}

fn metadata(engine: &Engine, handles: &[std::sync::Arc<IndexHandle>], cluster: &str, flat: bool) -> Value {
    let names = engine.indices.names();
    let indices: Map<String, Value> = handles
        .iter()
        .map(|handle| {
            let aliases: Vec<String> = names.aliases_of(&handle.name).into_keys().collect();
            let shown = json!({
                "version": 1,
                "mapping_version": 1,
                "settings_version": 1,
                "aliases_version": 1,
                "routing_num_shards": 1,
                "state": if handle.is_closed() { "close" } else { "open" },
                "settings": admin::settings_json(handle, flat),
                "mappings": {"_doc": handle.mapping().to_json()},
                "aliases": aliases,
                "primary_terms": {"0": 1},
                "in_sync_allocations": {"0": [handle.uuid]},
                "rollover_info": {},
                "system": false,
            });
            (handle.name.clone(), shown)
        })
        .collect();
    let set = engine.indices.templates.set();
    let legacy: Map<String, Value> =
        set.legacy.iter().map(|(name, it)| (name.clone(), it.to_json(flat))).collect();
    let composable: Map<String, Value> =
        set.index.iter().map(|(name, it)| (name.clone(), it.to_json(flat))).collect();
    let components: Map<String, Value> =
        set.component.iter().map(|(name, it)| (name.clone(), it.to_json(flat))).collect();
    let pipelines: Vec<Value> = engine
        .pipelines
        .definitions("")
        .into_iter()
        .map(|(id, config)| json!({"id": id, "config": config}))
        .collect();
    let node = engine.node_id();
    json!({
        "cluster_uuid": cluster,
        "cluster_uuid_committed": true,
        "cluster_coordination": {
            "term": 1, "last_committed_config": [node], "last_accepted_config": [node], "voting_config_exclusions": [],
        },
        "templates": legacy,
        "indices": indices,
        "index_template": {"index_template": composable},
        "component_template": {"component_template": components},
        "ingest": {"pipeline": pipelines},
        "index-graveyard": {"tombstones": []},
        "settings": engine.cluster.persistent_json(flat),
    })
}

/// The shards of an index: its one primary, and the replicas that there is no other node for.
fn shards(engine: &Engine, handle: &IndexHandle) -> Vec<Value> {
    let primary = json!({
        "state": "STARTED", "primary": true, "node": engine.node_id(), "relocating_node": null, "shard": 0,
        "index": handle.name, "allocation_id": {"id": handle.uuid}, "relocation_failure_info": {"failed_attempts": 0},
    });
    let replica = json!({
        "state": "UNASSIGNED", "primary": false, "node": null, "relocating_node": null, "shard": 0,
        "index": handle.name, "recovery_source": {"type": "PEER"},
        "unassigned_info": {"reason": "INDEX_CREATED", "delayed": false, "allocation_status": "no_attempt"},
        "relocation_failure_info": {"failed_attempts": 0},
    });
    std::iter::once(primary).chain(std::iter::repeat_n(replica, handle.settings().replicas())).collect()
}
