//! Requests of `_template`, the legacy kind of index templates.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::templates::api::{chosen, missing_template};
use sparrow_catalog::Node;
use sparrow_catalog::templates::{Legacy, alias_rights};
use sparrow_request::body::parse_json;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{SHOWN, TIMEOUTS};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("put_template", Action::PutTemplate, Lane::Write, put_template)
        .about("The older form of an index template.")
        .holds("OldTemplate", Legacy::shape)
        .takes(&["create cause master_timeout order"]),
    Operation::new("get_template", Action::GetTemplate, Lane::Look, get_template)
        .about("Templates of the older form.")
        .takes(&[SHOWN]),
    Operation::new("delete_template", Action::DeleteTemplate, Lane::Write, delete_template)
        .about("Deletes templates of the older form.")
        .takes(&[TIMEOUTS]),
];

/// `PUT|POST /_template/{name}`
fn put_template(node: &Node, request: &Request, body: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let params = request.params();
    let name = request.part("name");
    let create = params.bool("create", false)?;
    let mut value = parse_json(body)?;
    if let (Some(order), Some(members)) = (params.integer("order")?, value.as_object_mut()) {
        members.entry("order").or_insert_with(|| order.into());
    }
    let template = Legacy::parse(name, &value)?;
    alias_rights::check(&request.caller, &template.body, &template.patterns, &template.patterns)?;
    template.body.mapping()?.check_limits(&template.body.settings.limits())?;
    node.indices.templates.change(|set| {
        if create && set.legacy.contains_key(name) {
            return Err(EngineError::illegal_argument(format!("index_template [{name}] already exists")));
        }
        set.legacy.insert(name.to_owned(), Arc::new(template));
        Ok(())
    })?;
    Ok(Reply::acknowledged())
}

/// `GET|HEAD /_template[/{name}]`
fn get_template(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let flat = request.params().bool("flat_settings", false)?;
    let set = node.indices.templates.set();
    let names = request.part("name");
    let selected = chosen(if names.is_empty() { "*" } else { names }, &set.legacy).unwrap_or_default();
    let shown: Map<String, Value> = selected
        .into_iter()
        .filter_map(|name| {
            let shown = set.legacy.get(&name)?.to_json(flat);
            Some((name, shown))
        })
        .collect();
    let status = if shown.is_empty() && !names.is_empty() && !names.contains('*') { 404 } else { 200 };
    Ok(Reply::json(status, &Value::Object(shown)))
}

/// `DELETE /_template/{name}`
fn delete_template(node: &Node, request: &Request, _: &[u8], _: &CancelFlag) -> Result<Reply, EngineError> {
    let names = request.part("name");
    node.indices.templates.change(|set| {
        let deleted = chosen(names, &set.legacy).map_err(|missing| missing_template(&missing))?;
        if deleted.is_empty() && names != "*" {
            return Err(missing_template(&[names.to_owned()]));
        }
        for name in deleted {
            set.legacy.remove(&name);
        }
        Ok(())
    })?;
    Ok(Reply::acknowledged())
}
