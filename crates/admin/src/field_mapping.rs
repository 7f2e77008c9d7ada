//! `_mapping/field`: the definitions of single fields.

use serde_json::{Map, Value, json};

use sparrow_call::error::EngineError;
use sparrow_call::operation::parameters::{INDICES, SHOWN};
use sparrow_call::operation::{Lane, Operation};
use sparrow_call::request::{CancelFlag, Reply, Request};
use sparrow_call::rights::Action;
use sparrow_indices::Node;
use sparrow_indices::{IndexHandle, ResolveOptions};
use sparrow_wire::glob;

pub(crate) const OPERATIONS: &[Operation<Node>] =
    &[Operation::new("get_field_mapping", Action::GetFieldMapping, Lane::Look, get_field_mapping)
        .about("Some fields of indices.")
        .takes(&[INDICES, SHOWN, "features"])];

/// `GET [/{index}]/_mapping/field/{fields}`
fn get_field_mapping(
    node: &Node,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    if params.bool("include_defaults", false)? {
        return Err(EngineError::illegal_argument(
            "parameter [include_defaults] is not supported by this server",
        ));
    }
    let handles = node.indices.resolve(
        request.part("index"),
        ResolveOptions::from_params(&params)?,
        request.right(),
    )?;
    let mut out = Map::new();
    for handle in &handles {
        out.insert(handle.name.clone(), json!({"mappings": fields(handle, request.part("fields"))}));
    }
    Ok(Reply::ok(&Value::Object(out)))
}

fn fields(handle: &IndexHandle, wanted: &str) -> Map<String, Value> {
    let mapping = handle.mapping();
    let definition = mapping.to_json();
    let mut paths: Vec<&str> = mapping.named_fields().map(|(path, _)| path).collect();
    paths.sort_unstable();
    let mut out = Map::new();
    for path in paths {
        if !wanted.split(',').any(|wanted| glob::matches(wanted.trim(), path)) {
            continue;
        }
        let Some((name, field)) = find(&definition, path) else { continue };
        out.insert(path.to_owned(), json!({"full_name": path, "mapping": {name: field}}));
    }
    out
}

/// Finds a field in a mapping by its path, through an object's `properties` or a field's `fields`; its last name and
/// its definition.
fn find<'a>(definition: &'a Value, path: &'a str) -> Option<(&'a str, &'a Value)> {
    for section in ["properties", "fields"] {
        let Some(map) = definition.get(section).and_then(Value::as_object) else { continue };
        for (name, inner) in map {
            if name == path {
                return Some((name, inner));
            }
            let below = path.strip_prefix(name.as_str()).and_then(|below| below.strip_prefix('.'));
            if let Some(field) = below.and_then(|below| find(inner, below)) {
                return Some(field);
            }
        }
    }
    None
}
