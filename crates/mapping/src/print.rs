//! Mappings as `GET _mapping` shows them: names sorted, defaults left out.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sparrow_runtime::work::Stopped;

use super::types::FieldType;
use super::{LeafNode, Mapping, Node, ObjectNode, dense};

/// Looks whether the printing has to stop.
type Check<'a> = &'a dyn Fn() -> Result<(), Stopped>;

/// Prints a mapping, asking `check` before each field.
///
/// # Errors
/// Those of `check`.
pub(super) fn print(mapping: &Mapping, check: Check<'_>) -> Result<Value, Stopped> {
    let mut out = Map::new();
    if let Some(dynamic) = mapping.root.dynamic {
        out.insert("dynamic".to_owned(), dynamic.name().into());
    }
    if let Some(meta) = &mapping.meta {
        out.insert("_meta".to_owned(), meta.clone());
    }
    let source = mapping.source_filter();
    let mut source_out = Map::new();
    if !source.enabled {
        source_out.insert("enabled".to_owned(), false.into());
    }
    for (key, patterns) in [("includes", &source.filter.includes), ("excludes", &source.filter.excludes)] {
        if !patterns.is_empty() {
            source_out.insert(key.to_owned(), json!(patterns));
        }
    }
    if !source_out.is_empty() {
        out.insert("_source".to_owned(), Value::Object(source_out));
    }
    if mapping.routing_required {
        out.insert("_routing".to_owned(), json!({"required": true}));
    }
    if let Some(formats) = &mapping.dynamic_dates {
        let names: Vec<&str> = formats.iter().map(|(name, _)| name.as_str()).collect();
        out.insert("dynamic_date_formats".to_owned(), json!(names));
    }
    if !mapping.dynamic_templates.is_empty() {
        let templates = mapping.dynamic_templates.iter().map(super::dynamic::DynamicTemplate::to_json);
        out.insert("dynamic_templates".to_owned(), templates.collect());
    }
    if !mapping.date_detection {
        out.insert("date_detection".to_owned(), false.into());
    }
    if mapping.numeric_detection {
        out.insert("numeric_detection".to_owned(), true.into());
    }
    if !mapping.root.properties.is_empty() {
        out.insert("properties".to_owned(), properties(&mapping.root.properties, check)?);
    }
    Ok(Value::Object(out))
}

fn properties(properties: &BTreeMap<String, Node>, check: Check<'_>) -> Result<Value, Stopped> {
    let mut out = Map::new();
    for (name, node) in properties {
        check()?;
        let value = match node {
            Node::Object(inner) => object(inner, check)?,
            Node::Leaf(inner) => leaf(inner),
        };
        out.insert(name.clone(), value);
    }
    Ok(Value::Object(out))
}

fn object(node: &ObjectNode, check: Check<'_>) -> Result<Value, Stopped> {
    let mut out = Map::new();
    if let Some(nested) = &node.nested {
        out.insert("type".to_owned(), "nested".into());
        let given =
            [("include_in_parent", nested.include_in_parent), ("include_in_root", nested.include_in_root)];
        out.extend(
            given.iter().filter(|(_, given)| *given).map(|(name, _)| ((*name).to_owned(), true.into())),
        );
    } else if node.properties.is_empty() {
        out.insert("type".to_owned(), "object".into());
    }
    if let Some(dynamic) = node.dynamic {
        out.insert("dynamic".to_owned(), dynamic.name().into());
    }
    if !node.enabled {
        out.insert("enabled".to_owned(), false.into());
    }
    if !node.properties.is_empty() {
        out.insert("properties".to_owned(), properties(&node.properties, check)?);
    }
    Ok(Value::Object(out))
}

fn leaf(node: &LeafNode) -> Value {
    let mut out = Map::new();
    out.insert("type".to_owned(), node.field_type.name().into());
    if let FieldType::DenseVector(field) = &node.field_type {
        dense::print(field, &mut out);
    }
    for (name, value) in &node.params {
        out.entry(name.clone()).or_insert_with(|| value.clone());
    }
    // The sub-fields for neighbouring words come from the type, and are no part of the mapping.
    let own = node.field_type.own_sub_fields();
    let fields = node.fields.iter().filter(|(name, _)| !own.iter().any(|(own, _)| own == *name));
    let fields: Map<String, Value> = fields.map(|(name, sub)| (name.clone(), leaf(sub))).collect();
    if !fields.is_empty() {
        out.insert("fields".to_owned(), Value::Object(fields));
    }
    Value::Object(out)
}
