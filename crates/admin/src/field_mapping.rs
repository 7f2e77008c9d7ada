//! `_mapping/field`: the definitions of single fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use sparrow_catalog::Node;
use sparrow_catalog::ResolveOptions;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::{INDICES, SHOWN};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_runtime::work::{self, Stopped};
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
    let defaults = params.bool("include_defaults", false)?;
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
        find(&handle.mapping().shown()?, "", &Wanted { patterns: &wanted, defaults }, &mut fields)?;
        let fields: Map<String, Value> = fields.into_iter().collect();
        out.insert(handle.name.clone(), object([("mappings", fields.into())]));
    }
    Ok(Reply::ok(&Value::Object(out)))
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

/// Which fields a request wants, and whether with the defaults of their parameters.
struct Wanted<'a> {
    patterns: &'a [String],
    defaults: bool,
}

/// Finds the wanted fields of a definition, in its `properties` or its `fields`, and adds them by their paths. `around` is the path of
/// the definition, with a dot if it has one.
fn find(
    definition: &Value,
    around: &str,
    wanted: &Wanted<'_>,
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
            if is_field && wanted.patterns.iter().any(|pattern| glob::matches(pattern, &path)) {
                let mut field = field.clone();
                if wanted.defaults
                    && let Some(members) = field.as_object_mut()
                {
                    add_defaults(members);
                }
                let shown =
                    object([("full_name", path.as_str().into()), ("mapping", object([(name, field)]))]);
                out.insert(path, shown);
            }
        }
    }
    Ok(())
}
