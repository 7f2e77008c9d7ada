//! Parsing of JSON mapping definitions into field trees. An unknown key is an error that names the key.

mod alias;
mod leaf;
mod shape;
mod text;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sparrow_runtime::work;
use sparrow_wire::glob;
use sparrow_wire::shape::{Shape, list, map, named, object, one, open, several, switch, text};

use super::error::MappingError;
use super::java::java_string;
use super::parameters::{bad, boolean};
use super::types::{Dynamic, MOST_LEVELS, MOST_TOTAL_FIELDS, Nested};
use super::{DateFormats, Mapping, Node, ObjectNode, SourceConfig, date, dynamic};

pub use self::shape::schemas;

/// Parses the mapping of a request.
///
/// # Errors
/// The first parameter or value of the definition that a mapping may not have.
pub(super) fn parse(definition: &Value) -> Result<Mapping, MappingError> {
    let mapping = tree(definition)?;
    let patterns = &mapping.source.filter;
    glob::check_patterns("_source", patterns.includes.len() + patterns.excludes.len())
        .map_err(|error| bad(error.to_string()))?;
    // Before the paths of all are kept, whose names may have many parts.
    if count(&mapping.root) > MOST_TOTAL_FIELDS {
        return Err(MappingError::TotalFields { limit: MOST_TOTAL_FIELDS });
    }
    dynamic::check_templates(&mapping.dynamic_templates)?;
    let mapping = finished(mapping)?;
    check_formats(&mapping)?;
    mapping.check_null_values()?;
    Ok(mapping)
}

/// Number of fields, objects and multi-fields in an object.
fn count(object: &ObjectNode) -> usize {
    let inside = |node: &Node| match node {
        Node::Object(object) => count(object),
        Node::Leaf(leaf) => leaf.fields.len(),
    };
    object.properties.values().map(|node| 1 + inside(node)).sum()
}

/// Checks that the formats of dates can be used.
pub(super) fn check_formats(mapping: &Mapping) -> Result<(), MappingError> {
    mapping.date_formats().try_for_each(|formats| date::parse_formats(formats).map(drop).map_err(bad))
}

/// Parses a mapping that [`parse`] took once, perhaps in an earlier version, which knew other formats of dates and did not look at what
/// stands for a null.
///
/// # Errors
/// The first parameter or value of the definition that no mapping may have, apart from these.
pub(super) fn stored(definition: &Value) -> Result<Mapping, MappingError> {
    finished(tree(definition)?)
}

fn finished(mapping: Mapping) -> Result<Mapping, MappingError> {
    let mapping = mapping.rebuilt();
    mapping.check_nested()?;
    Ok(mapping)
}

/// What the mapping of an index holds.
pub fn mapping_shape() -> Shape {
    object([
        ("properties", named("Properties")),
        ("dynamic", named("Dynamic")),
        ("dynamic_templates", list(map(dynamic::template_shape()))),
        ("date_detection", switch()),
        ("numeric_detection", switch()),
        ("dynamic_date_formats", several(text())),
        ("date_formats", several(text())),
        (
            "_source",
            object([("enabled", switch()), ("includes", several(text())), ("excludes", several(text()))]),
        ),
        ("_routing", object([("required", switch())])),
        ("_meta", open().about("what you like")),
    ])
}

/// Reads a definition, without what is found out about all of its fields.
fn tree(definition: &Value) -> Result<Mapping, MappingError> {
    let map = definition.as_object().ok_or_else(|| MappingError::Malformed {
        reason: format!("Expected an object but got [{}]", java_string(definition)),
    })?;
    let mut mapping = Mapping::empty();
    let mut remaining = Map::new();
    for (key, value) in map {
        match key.as_str() {
            "properties" => {
                mapping.root.properties = properties(value, "properties", 1)?;
            }
            "dynamic" => mapping.root.dynamic = Some(dynamic_setting(value)?),
            "_source" => mapping.source = source_config(value)?,
            "_routing" => mapping.routing_required = routing_required(value)?,
            "_meta" if value.is_object() => mapping.meta = Some(value.clone()),
            "_meta" => {
                let reason = format!("Expected an object for [_meta] but got [{}]", java_string(value));
                return Err(MappingError::Malformed { reason });
            }
            "dynamic_templates" => mapping.dynamic_templates = dynamic::parse_templates(value)?,
            "dynamic_date_formats" | "date_formats" => {
                mapping.dynamic_dates = Some(date_formats(key, value)?)
            }
            "runtime" if value.as_object().is_some_and(Map::is_empty) => {}
            "runtime" => {
                return Err(MappingError::Malformed {
                    reason: "[runtime] is not supported by this server: there are no runtime fields"
                        .to_owned(),
                });
            }
            "date_detection" => mapping.date_detection = boolean(key, value)?,
            "numeric_detection" => mapping.numeric_detection = boolean(key, value)?,
            _ => {
                remaining.insert(key.clone(), value.clone());
            }
        }
    }
    if !remaining.is_empty() {
        return Err(MappingError::UnsupportedParameters {
            scope: "Root mapping definition".to_owned(),
            remaining: remaining_text(&remaining),
        });
    }
    Ok(mapping)
}

/// As Elasticsearch prints left-over parameters: ` [key : value]` each.
fn remaining_text(map: &Map<String, Value>) -> String {
    map.iter().map(|(key, value)| format!(" [{key} : {}]", java_string(value))).collect()
}

fn source_config(value: &Value) -> Result<SourceConfig, MappingError> {
    let mut config = SourceConfig::default();
    let map = value
        .as_object()
        .ok_or_else(|| MappingError::Malformed { reason: "Expected an object for [_source]".to_owned() })?;
    for (key, value) in map {
        match key.as_str() {
            "enabled" => config.enabled = boolean(key, value)?,
            "includes" => config.filter.includes = patterns(key, value)?,
            "excludes" => config.filter.excludes = patterns(key, value)?,
            _ => {
                return Err(MappingError::Malformed {
                    reason: format!("unknown parameter [{key}] on metadata field [_source]"),
                });
            }
        }
    }
    Ok(config)
}

fn routing_required(value: &Value) -> Result<bool, MappingError> {
    let map = value
        .as_object()
        .ok_or_else(|| MappingError::Malformed { reason: "Expected an object for [_routing]".to_owned() })?;
    if let Some(key) = map.keys().find(|key| *key != "required") {
        return Err(MappingError::Malformed {
            reason: format!("unknown parameter [{key}] on metadata field [_routing]"),
        });
    }
    map.get("required").map_or(Ok(false), |value| boolean("required", value))
}

fn patterns(key: &str, value: &Value) -> Result<Vec<String>, MappingError> {
    let list = match value {
        Value::Array(list) => list.iter().collect(),
        single => vec![single],
    };
    list.into_iter()
        .map(|item| {
            item.as_str().map(str::to_owned).ok_or_else(|| MappingError::Malformed {
                reason: format!("Expected strings for [{key}] but got [{}]", java_string(item)),
            })
        })
        .collect()
}

fn dynamic_setting(value: &Value) -> Result<Dynamic, MappingError> {
    match value {
        Value::Bool(true) => Ok(Dynamic::True),
        Value::Bool(false) => Ok(Dynamic::False),
        Value::String(text) => match text.to_lowercase().as_str() {
            "true" => Ok(Dynamic::True),
            "false" => Ok(Dynamic::False),
            "strict" => Ok(Dynamic::Strict),
            "runtime" | "strict_allow_templates" => Err(bad(format!(
                "[dynamic] value [{text}] is not supported by this server, use [true], [false] or [strict]"
            ))),
            _ => Err(bad(format!("Could not convert [dynamic] to boolean or known value: [{text}]"))),
        },
        other => Err(bad(format!("Could not convert [dynamic] to boolean: [{}]", java_string(other)))),
    }
}

/// Reads the date formats for unmapped fields: one, or a list; each may consist of alternatives.
fn date_formats(key: &str, value: &Value) -> Result<DateFormats, MappingError> {
    let names = match value {
        Value::String(one) => vec![one.clone()],
        list => patterns(key, list)?,
    };
    names
        .into_iter()
        .map(|name| match name.starts_with("epoch_") {
            // As in Elasticsearch, numbers are no dates by themselves.
            true => Err(MappingError::Malformed {
                reason: format!("Epoch [{name}] is not supported as dynamic date format"),
            }),
            false => Ok((name.clone(), date::stored_formats(&name))),
        })
        .collect()
}

/// Reads a `properties` object; names with dots create nested objects. `level` is the nesting depth, from 1, of the
/// object that has the properties.
fn properties(value: &Value, owner: &str, level: usize) -> Result<BTreeMap<String, Node>, MappingError> {
    let map = value.as_object().ok_or_else(|| MappingError::Malformed {
        reason: format!(
            "Expected map for property [properties] on field [{owner}] but got [{}]",
            java_string(value)
        ),
    })?;
    let mut out = BTreeMap::new();
    for (name, definition) in map {
        work::check()?;
        let parts: Vec<&str> = name.split('.').collect();
        if parts.iter().any(|part| part.trim().is_empty()) {
            return Err(bad(if name.is_empty() {
                "field name cannot be an empty string".to_owned()
            } else {
                format!("field name [{name}] cannot contain only whitespace or empty parts")
            }));
        }
        let Some((last, parents)) = parts.split_last() else { continue };
        // Before a tree is made of it: one of thousands of levels could not even be dropped.
        let level = level + parents.len();
        if level > MOST_LEVELS {
            let shown: String = name.chars().take(100).collect();
            return Err(MappingError::Limit {
                reason: format!(
                    "Limit of mapping depth [{MOST_LEVELS}] has been exceeded due to object field [{shown}]"
                ),
            });
        }
        let node = node_at(last, definition, level)?;
        insert(&mut out, parents, last, node)?;
    }
    Ok(out)
}

/// Inserts a field or object below `parents`, merging objects that several names share.
fn insert(
    properties: &mut BTreeMap<String, Node>,
    parents: &[&str],
    name: &str,
    node: Node,
) -> Result<(), MappingError> {
    if let Some((first, rest)) = parents.split_first() {
        let parent =
            properties.entry((*first).to_owned()).or_insert_with(|| Node::Object(ObjectNode::default()));
        return match parent {
            Node::Object(object) => insert(&mut object.properties, rest, name, node),
            Node::Leaf(_) => Err(MappingError::ObjectOverLeaf { path: (*first).to_owned() }),
        };
    }
    match (properties.remove(name), node) {
        (None, node) => {
            properties.insert(name.to_owned(), node);
        }
        (Some(Node::Object(mut old)), Node::Object(new)) => {
            for (inner, node) in new.properties {
                insert(&mut old.properties, &[], &inner, node)?;
            }
            old.dynamic = new.dynamic.or(old.dynamic);
            old.enabled &= new.enabled;
            old.nested = new.nested.or(old.nested);
            properties.insert(name.to_owned(), Node::Object(old));
        }
        (Some(_), _) => return Err(MappingError::ObjectOverLeaf { path: name.to_owned() }),
    }
    Ok(())
}

/// Reads the definition of one field.
pub(super) fn node(name: &str, definition: &Value) -> Result<Node, MappingError> {
    node_at(name, definition, 1)
}

/// Reads the definition of a field whose parent object is at nesting depth `level`.
fn node_at(name: &str, definition: &Value, level: usize) -> Result<Node, MappingError> {
    let map = definition.as_object().ok_or_else(|| MappingError::Malformed {
        reason: format!(
            "Expected map for property [fields] on field [{name}] but got a {}",
            java_class(definition)
        ),
    })?;
    let type_name = match map.get("type") {
        Some(Value::String(type_name)) => type_name.as_str(),
        Some(other) => {
            return Err(MappingError::UnknownType { field: name.to_owned(), type_name: java_string(other) });
        }
        None if map.contains_key("properties") => "object",
        None if map.len() == 1 && (map.contains_key("enabled") || map.contains_key("dynamic")) => "object",
        None => return Err(MappingError::NoType { field: name.to_owned() }),
    };
    if matches!(type_name, "object" | "nested") {
        return read_object(name, type_name, map, level + 1).map(Node::Object);
    }
    if type_name == "alias" {
        return alias::alias(name, map).map(Node::from);
    }
    leaf::leaf(name, type_name, map, true).map(Node::from)
}

fn java_class(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "java.lang.Boolean",
        Value::Number(_) => "java.lang.Integer",
        Value::String(_) => "java.lang.String",
        Value::Array(_) => "java.util.ArrayList",
        Value::Object(_) => "java.util.HashMap",
    }
}

fn object_shapes() -> [Shape; 2] {
    let of_type = |name| {
        object([
            ("type", one(&[name])),
            ("properties", named("Properties")),
            ("dynamic", named("Dynamic")),
            ("enabled", switch().preset(true)),
        ])
    };
    let included = ["include_in_parent", "include_in_root"].map(|name| (name, switch().preset(false)));
    [
        of_type("object").about("An object with fields of its own."),
        of_type("nested").and(included).needs(&["type"]).about("Objects that are searched one by one."),
    ]
}

fn read_object(
    name: &str,
    type_name: &str,
    map: &Map<String, Value>,
    level: usize,
) -> Result<ObjectNode, MappingError> {
    let mut node =
        ObjectNode { nested: (type_name == "nested").then(Nested::default), ..ObjectNode::default() };
    let mut remaining = Map::new();
    for (key, value) in map {
        match key.as_str() {
            "type" => {}
            "properties" => node.properties = properties(value, name, level)?,
            "dynamic" => node.dynamic = Some(dynamic_setting(value)?),
            "enabled" => node.enabled = boolean(key, value)?,
            "include_in_parent" if let Some(nested) = &mut node.nested => {
                nested.include_in_parent = boolean(key, value)?;
            }
            "include_in_root" if let Some(nested) = &mut node.nested => {
                nested.include_in_root = boolean(key, value)?;
            }
            _ => {
                remaining.insert(key.clone(), value.clone());
            }
        }
    }
    if !remaining.is_empty() {
        return Err(MappingError::UnsupportedParameters {
            scope: format!("Mapping definition for [{name}]"),
            remaining: remaining_text(&remaining),
        });
    }
    Ok(node)
}
