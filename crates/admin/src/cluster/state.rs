//! `_cluster/state`: nodes, indices and their routing in the form that clients and tools expect.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::info::CLUSTER_NAME;
use crate::index;
use crate::stats::check_metrics;
use sparrow_catalog::Node;
use sparrow_catalog::{IndexHandle, ResolveOptions, blocks};
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Right};
use sparrow_request::{NODE_NAME, NODE_ROLES};
use sparrow_runtime::work::Stopped;
use sparrow_wire::object;

pub(crate) const OPERATIONS: &[Operation<Node>] =
    &[Operation::new("cluster_state", Action::ClusterState, Lane::Look, cluster_state)
        .about("All metadata.")
        .takes(&["allow_no_indices expand_wildcards flat_settings ignore_unavailable local master_timeout"])];

const METRICS: [&str; 8] =
    ["version", "master_node", "blocks", "nodes", "metadata", "routing_table", "routing_nodes", "customs"];

/// `GET /_cluster/state[/{metric}[/{index}]]`
fn cluster_state(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
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
    let handles = node.indices.resolve(request.part("index"), options, Right::unlimited())?;
    let id = node.id();
    let cluster = cluster_uuid(node);
    let mut body = Map::new();
    body.insert("cluster_name".into(), CLUSTER_NAME.into());
    body.insert("cluster_uuid".into(), cluster.as_str().into());
    if shows("version") {
        // Counts the changes that the names show: enough to tell two states apart within one process.
        body.insert("version".into(), node.indices.changes().into());
        body.insert("state_uuid".into(), format!("{id}-{}", node.indices.changes()).into());
    }
    let sections: [(&str, Section<'_>); 6] = [
        ("master_node", &|| Ok(id.into())),
        ("blocks", &|| Ok(blocks_of(&handles))),
        ("nodes", &|| Ok(json!({id: node_json(node)}))),
        ("metadata", &|| metadata(node, &handles, &cluster, flat)),
        ("routing_table", &|| Ok(routing_table(node, &handles))),
        ("routing_nodes", &|| Ok(routing_nodes(node, &handles))),
    ];
    for (metric, section) in sections.into_iter().filter(|(metric, _)| shows(metric)) {
        body.insert(metric.to_owned(), section()?);
    }
    Ok(Reply::ok(&body))
}

/// Makes a section of the state of the cluster.
type Section<'a> = &'a dyn Fn() -> Result<Value, Stopped>;

/// The UUID of the cluster that `GET /` shows. The HTTP layer stores it in the data directory.
pub fn cluster_uuid(node: &Node) -> String {
    let identity = sparrow_file_system::read(node.data.path().join("identity.json")).ok();
    let identity = identity.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    identity
        .and_then(|value| value["clusterUuid"].as_str().map(str::to_owned))
        .unwrap_or_else(|| node.id().to_owned())
}

fn node_json(node: &Node) -> Value {
    json!({
        "name": NODE_NAME,
        "ephemeral_id": node.id(),
        "transport_address": "127.0.0.1:9300",
        "external_id": NODE_NAME,
        "attributes": {},
        "roles": NODE_ROLES,
        "version": "8.19.21",
        "min_index_version": 7_000_099,
        "max_index_version": 8_537_000,
    })
}

fn blocks_of(handles: &[Arc<IndexHandle>]) -> Value {
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

fn metadata(node: &Node, handles: &[Arc<IndexHandle>], cluster: &str, flat: bool) -> Result<Value, Stopped> {
    let names = node.indices.names();
    let of_indices = names.aliases_by_index();
    let indices = handles
        .iter()
        .map(|handle| {
            let aliases = of_indices.get(handle.name.as_str()).into_iter().flatten();
            let aliases: Vec<&String> = aliases.map(|(alias, _)| *alias).collect();
            let mut shown = json!({
                "version": 1,
                "mapping_version": 1,
                "settings_version": 1,
                "aliases_version": 1,
                "routing_num_shards": 1,
                "state": if handle.is_closed() { "close" } else { "open" },
                "settings": index::settings_json(handle, flat),
                "mappings": null,
                "aliases": aliases,
                "primary_terms": {"0": 1},
                "in_sync_allocations": {"0": [handle.uuid]},
                "rollover_info": {},
                "system": false,
            });
            // What `json!` is given it copies.
            shown["mappings"] = object([("_doc", handle.mapping().shown()?)]);
            Ok((handle.name.clone(), shown))
        })
        .collect::<Result<Map<String, Value>, Stopped>>()?;
    let set = node.indices.templates.set();
    let legacy: Map<String, Value> =
        set.legacy.iter().map(|(name, it)| (name.clone(), it.to_json(flat))).collect();
    let composable: Map<String, Value> =
        set.index.iter().map(|(name, it)| (name.clone(), it.to_json(flat))).collect();
    let components: Map<String, Value> =
        set.component.iter().map(|(name, it)| (name.clone(), it.to_json(flat))).collect();
    let pipelines: Vec<Value> = node
        .pipelines
        .definitions("")
        .into_iter()
        .map(|(id, config)| json!({"id": id, "config": config}))
        .collect();
    let id = node.id();
    let mut shown = json!({
        "cluster_uuid": cluster,
        "cluster_uuid_committed": true,
        "cluster_coordination": {
            "term": 1, "last_committed_config": [id], "last_accepted_config": [id], "voting_config_exclusions": [],
        },
        "templates": legacy,
        "indices": null,
        "index_template": {"index_template": composable},
        "component_template": {"component_template": components},
        "ingest": {"pipeline": pipelines},
        "index-graveyard": {"tombstones": []},
        "settings": node.cluster.persistent_json(flat),
    });
    shown["indices"] = Value::Object(indices);
    Ok(shown)
}

fn routing_table(node: &Node, handles: &[Arc<IndexHandle>]) -> Value {
    let of =
        |handle: &Arc<IndexHandle>| (handle.name.clone(), json!({"shards": {"0": shards(node, handle)}}));
    json!({"indices": handles.iter().map(of).collect::<Map<_, _>>()})
}

fn routing_nodes(node: &Node, handles: &[Arc<IndexHandle>]) -> Value {
    let all = handles.iter().flat_map(|handle| shards(node, handle));
    let (assigned, unassigned): (Vec<Value>, Vec<Value>) = all.partition(|shard| shard["node"].is_string());
    json!({"unassigned": unassigned, "nodes": {node.id(): assigned}})
}

/// The shards of an index: its single primary, and the unassigned replicas, for which there is no other node.
fn shards(node: &Node, handle: &IndexHandle) -> Vec<Value> {
    let primary = handle.primary_shard(node.id());
    let replica = json!({
        "state": "UNASSIGNED", "primary": false, "node": null, "relocating_node": null, "shard": 0,
        "index": handle.name, "recovery_source": {"type": "PEER"},
        "unassigned_info": {"reason": "INDEX_CREATED", "delayed": false, "allocation_status": "no_attempt"},
        "relocation_failure_info": {"failed_attempts": 0},
    });
    std::iter::once(primary).chain(std::iter::repeat_n(replica, handle.settings().replicas())).collect()
}
