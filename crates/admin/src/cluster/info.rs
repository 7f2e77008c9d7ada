//! Small requests about the cluster: pending tasks, remote clusters, and a part of `_cluster/stats` for the HTTP layer.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::json;

use sparrow_catalog::Node;
use sparrow_request::error::EngineError;
use sparrow_request::request::{CancelFlag, Reply, Request};

pub use sparrow_catalog::cluster_settings::CLUSTER_NAME;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("cluster_figures", Action::ClusterStats, Lane::Look, cluster_figures)
        .about("Sums over all indices, for `_cluster/stats`."),
    Operation::new("pending_tasks", Action::PendingTasks, Lane::Look, pending_tasks)
        .about("Lists the changes of metadata that wait; on one server there is never one.")
        .takes(&["local master_timeout"]),
    Operation::new("remote_info", Action::RemoteInfo, Lane::Look, remote_info)
        .about("Lists other clusters that are connected; there is never one."),
];

/// `GET /_cluster/pending_tasks`: always empty, as changes are carried out at once.
fn pending_tasks(_: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    request.params().bool("local", false)?;
    Ok(Reply::ok(&json!({"tasks": []})))
}

/// `GET /_remote/info`: always empty, as there are no remote clusters.
fn remote_info(_: &Node, _: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    Ok(Reply::ok(&json!({})))
}

/// Number of fields of a type, and of indices that have any. The number of scripts is always 0.
#[derive(Default, Serialize)]
struct FieldTypeFigures {
    name: String,
    count: usize,
    index_count: usize,
    script_count: usize,
}

/// A part of `_cluster/stats`, not a route of its own: figures about mappings, analyzers and shards.
fn cluster_figures(node: &Node, _: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let names = node.indices.names();
    let mut types: BTreeMap<String, FieldTypeFigures> = BTreeMap::new();
    let (mut fields, mut replicas) = (0, 0);
    for handle in names.indices.values() {
        replicas += handle.settings().replicas();
        let mapping = handle.mapping();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, field_type) in mapping.leaf_fields() {
            *counts.entry(field_type.name()).or_default() += 1;
        }
        fields += mapping.field_count();
        for (name, count) in counts {
            let figures = types.entry(name.to_owned()).or_default();
            name.clone_into(&mut figures.name);
            figures.count += count;
            figures.index_count += 1;
        }
    }
    let status = match (names.broken.len(), replicas) {
        (0, 0) => "green",
        (0, _) => "yellow",
        _ => "red",
    };
    Ok(Reply::ok(&json!({
        "node": node.id(),
        "status": status,
        "indices": names.indices.len() + names.broken.len(),
        "active": names.indices.len(),
        "fields": fields,
        "field_types": types.into_values().collect::<Vec<_>>(),
        "pipelines": node.pipelines.definitions("").len(),
        "processor_stats": node.pipelines.processor_stats(),
    })))
}
