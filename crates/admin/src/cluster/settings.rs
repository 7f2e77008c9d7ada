//! Requests that show and change the settings of the cluster.

use serde_json::{Map, Value, json};

use sparrow_catalog::Node;
use sparrow_catalog::{cluster_settings::shown, memory};
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::shape::{Shape, object, open};

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("get_cluster_settings", Action::GetClusterSettings, Lane::Look, get_settings)
        .about("Settings that can be changed while it runs.")
        .takes(&["flat_settings include_defaults local master_timeout timeout"]),
    Operation::new("put_cluster_settings", Action::PutClusterSettings, Lane::Write, put_settings)
        .about("Changes settings while it runs.")
        .holds("ClusterSettingsRequest", shape)
        .takes(&["flat_settings master_timeout timeout"]),
];

/// `GET /_cluster/settings`
fn get_settings(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let flat = params.bool("flat_settings", false)?;
    params.bool("local", false)?;
    let defaults = params.bool("include_defaults", false)?;
    Ok(Reply::ok(&node.cluster.view(flat, defaults)))
}

fn shape() -> Shape {
    object([("persistent", open()), ("transient", open())])
}

/// `PUT /_cluster/settings`
fn put_settings(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let flat = request.params().bool("flat_settings", false)?;
    let given = parse_object(body)?;
    if let Some(unknown) = shape().stranger(&given) {
        return Err(EngineError::parse(format!("[cluster_update_settings_request] {unknown}")));
    }
    let nothing = json!({});
    for (key, value) in &given {
        if !value.is_object() {
            return Err(EngineError::parse(format!(
                "[cluster_update_settings_request] [{key}] must be an object"
            )));
        }
    }
    let of = |scope: &str| given.get(scope).unwrap_or(&nothing);
    let empty = |value: &Value| value.as_object().is_none_or(Map::is_empty);
    if empty(of("persistent")) && empty(of("transient")) {
        return Err(EngineError::invalid("no settings to update"));
    }
    let [persistent, transient] =
        node.cluster.update([("persistent", of("persistent")), ("transient", of("transient"))])?;
    memory::apply(&node.memory, &node.cluster);
    Ok(Reply::ok(&json!({
        "acknowledged": true, "persistent": shown(&persistent, flat), "transient": shown(&transient, flat),
    })))
}
