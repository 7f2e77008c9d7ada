//! Definitions of aliases.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sparrow_wire::shape::{Shape, object, one, text};

use super::super::error::MappingError;
use super::super::java::java_string;
use super::super::types::FieldType;
use super::super::{LeafNode, LeafOptions};

pub(super) fn alias_shape() -> Shape {
    let path = text().about("the field that requests find under this name as well");
    object([("type", one(&["alias"])), ("path", path)])
        .needs(&["type", "path"])
        .about("A second name of a field, for requests alone.")
}

/// Reads the definition of an alias, which has a `path` and nothing else.
///
/// # Errors
/// When there is no path, or another parameter.
pub(super) fn alias(name: &str, map: &Map<String, Value>) -> Result<LeafNode, MappingError> {
    let path = map.get("path").filter(|path| !path.is_null()).map(java_string);
    let Some(path) = path else {
        return Err(MappingError::Malformed {
            reason: format!("The [path] property must be specified for field [{name}]."),
        });
    };
    let mut remaining = map.clone();
    remaining.retain(|key, _| key != "type" && key != "path");
    if !remaining.is_empty() {
        return Err(MappingError::UnsupportedParameters {
            scope: format!("Mapping definition for [{name}]"),
            remaining: super::remaining_text(&remaining),
        });
    }
    let params = Map::from_iter([("path".to_owned(), path.as_str().into())]);
    let field_type = FieldType::Alias { path: path.into() };
    Ok(LeafNode { field_type, options: LeafOptions::default(), params, fields: BTreeMap::new() })
}
