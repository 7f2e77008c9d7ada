//! `_mapping/field`: the definitions of single fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use sparrow_call::error::EngineError;
use sparrow_call::operation::parameters::{INDICES, SHOWN};
use sparrow_call::operation::{Lane, Operation};
use sparrow_call::request::{CancelFlag, Reply, Request};
use sparrow_call::rights::Action;
use sparrow_indices::Node;
use sparrow_indices::ResolveOptions;
use sparrow_types::work::{self, Stopped};
use sparrow_wire::{glob, object};

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
    let wanted = request.part("fields").split(',').map(|pattern| pattern.trim().to_owned()).collect();
    let wanted = glob::distinct("fields", wanted)?;
    let mut out = Map::new();
    for handle in &handles {
        let mut fields = BTreeMap::new();
        find(&handle.mapping().shown()?, "", &wanted, &mut fields)?;
        let fields: Map<String, Value> = fields.into_iter().collect();
        out.insert(handle.name.clone(), object([("mappings", fields.into())]));
    }
    Ok(Reply::ok(&Value::Object(out)))
}

/// Finds the wanted fields of a definition, in its `properties` or its `fields`, and adds them by their paths. `around` is the path of
/// the definition, with a dot if it has one.
fn find(
    definition: &Value,
    around: &str,
    wanted: &[String],
    out: &mut BTreeMap<String, Value>,
) -> Result<(), Stopped> {
    for section in ["properties", "fields"] {
        for (name, field) in definition.get(section).and_then(Value::as_object).into_iter().flatten() {
            work::check()?;
            let path = format!("{around}{name}");
            find(field, &format!("{path}."), wanted, out)?;
            // Objects are no fields.
            let is_field =
                field.get("type").is_some_and(|kind| !matches!(kind.as_str(), Some("object" | "nested")));
            if is_field && wanted.iter().any(|wanted| glob::matches(wanted, &path)) {
                let shown = object([
                    ("full_name", path.as_str().into()),
                    ("mapping", object([(name, field.clone())])),
                ]);
                out.insert(path, shown);
            }
        }
    }
    Ok(())
}
