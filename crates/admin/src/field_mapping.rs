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
    let defaults = params.bool("include_defaults", false)?;
    let handles = node.indices.resolve(
        request.part("index"),
        ResolveOptions::from_params(&params)?,
        request.right(),
    )?;
    let mut out = Map::new();
    for handle in &handles {
        out.insert(
            handle.name.clone(),
            json!({"mappings": fields(handle, request.part("fields"), defaults)}),
        );
    }
    Ok(Reply::ok(&Value::Object(out)))
}

fn fields(handle: &IndexHandle, wanted: &str, defaults: bool) -> Map<String, Value> {
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
        let mut field = field.clone();
        if defaults && let Some(members) = field.as_object_mut() {
            add_defaults(members);
        }
        out.insert(path.to_owned(), json!({"full_name": path, "mapping": {name: field}}));
    }
    out
}

/// Adds the defaults of the parameters that a definition of a common type does not give.
fn add_defaults(field: &mut Map<String, Value>) {
    let own = match field.get("type").and_then(Value::as_str).unwrap_or_default() {
        "text" => {
            json!({"index": true, "store": false, "index_options": "positions", "norms": true, "term_vector": "no",
            "analyzer": "default", "fielddata": false, "eager_global_ordinals": false, "index_phrases": false})
        }
        "keyword" => {
            json!({"index_options": "docs", "norms": false, "null_value": null, "ignore_above": i32::MAX,
            "eager_global_ordinals": false, "split_queries_on_whitespace": false})
        }
        "long" | "integer" | "short" | "byte" | "double" | "float" | "half_float" | "unsigned_long" => {
            json!({"null_value": null, "ignore_malformed": false, "coerce": true})
        }
        "date" | "date_nanos" => json!({"format": "strict_date_optional_time||epoch_millis", "locale": "en",
            "null_value": null, "ignore_malformed": false}),
        "ip" => json!({"null_value": null, "ignore_malformed": false}),
        "boolean" => json!({"null_value": null}),
        _ => return,
    };
    let Value::Object(own) = own else { return };
    let has_column = !own.contains_key("analyzer");
    for (name, value) in [("index", true), ("doc_values", true), ("store", false)] {
        if has_column {
            field.entry(name).or_insert(value.into());
        }
    }
    for (name, value) in own {
        field.entry(name).or_insert(value);
    }
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
