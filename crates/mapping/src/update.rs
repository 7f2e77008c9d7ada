//! Putting a mapping over an existing one: fields may be added, and only a few parameters changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use sparrow_runtime::work;

use super::error::MappingError;
use super::java::java_string;
use super::types::{FieldType, Nested};
use super::{LeafNode, Mapping, Node, ObjectNode, dense, join, parse, semantic};

/// Parameters that an update may change.
const UPDATABLE: [&str; 13] = [
    "ignore_above",
    "coerce",
    "ignore_malformed",
    "meta",
    "eager_global_ordinals",
    "search_analyzer",
    "search_quote_analyzer",
    "split_queries_on_whitespace",
    "copy_to",
    "fielddata_frequency_filter",
    "index_options",
    "dims",
    "max_input_length",
];

pub(super) fn merge_update(old: &Mapping, definition: &Value) -> Result<Mapping, MappingError> {
    let update = parse::parse(definition)?;
    let given = |key: &str| definition.get(key).is_some();
    let mut merged = old.clone();
    if given("dynamic") {
        merged.root.dynamic = update.root.dynamic;
    }
    if given("_meta") {
        merged.meta.clone_from(&update.meta);
    }
    if given("date_detection") {
        merged.date_detection = update.date_detection;
    }
    if given("dynamic_date_formats") {
        merged.dynamic_dates.clone_from(&update.dynamic_dates);
    }
    if given("dynamic_templates") {
        merged.dynamic_templates = update.dynamic_templates.clone();
    }
    if given("numeric_detection") {
        merged.numeric_detection = update.numeric_detection;
    }
    if given("_source") && update.source != old.source {
        let (parameter, from, to) = if update.source.enabled != old.source.enabled {
            ("enabled", old.source.enabled.to_string(), update.source.enabled.to_string())
        } else if update.source.filter.includes != old.source.filter.includes {
            let list = |mapping: &Mapping| format!("[{}]", mapping.source.filter.includes.join(", "));
            ("includes", list(old), list(&update))
        } else {
            let list = |mapping: &Mapping| format!("[{}]", mapping.source.filter.excludes.join(", "));
            ("excludes", list(old), list(&update))
        };
        return Err(MappingError::ParameterChange {
            path: "_source".to_owned(),
            parameter: parameter.to_owned(),
            from,
            to,
        });
    }
    if given("_routing") && update.routing_required != old.routing_required {
        // An index that was made without a mapping gets its first one here.
        if *old != Mapping::empty() {
            return Err(MappingError::ParameterChange {
                path: "_routing".to_owned(),
                parameter: "required".to_owned(),
                from: old.routing_required.to_string(),
                to: update.routing_required.to_string(),
            });
        }
        merged.routing_required = update.routing_required;
    }
    merge_properties(&mut merged.root.properties, update.root.properties, "")?;
    let merged = merged.rebuilt();
    merged.check_dependent()?;
    Ok(merged)
}

fn merge_properties(
    old: &mut BTreeMap<String, Node>,
    update: BTreeMap<String, Node>,
    prefix: &str,
) -> Result<(), MappingError> {
    for (name, node) in update {
        work::check()?;
        let path = join(prefix, &name);
        match (old.get_mut(&name), node) {
            (None, node) => {
                old.insert(name, node);
            }
            (Some(Node::Object(existing)), Node::Object(node)) => merge_object(existing, node, &path)?,
            (Some(Node::Leaf(existing)), Node::Leaf(node)) => merge_leaf(existing, *node, &path)?,
            (Some(Node::Leaf(_)), Node::Object(_)) => {
                return Err(MappingError::ObjectOverLeaf { path });
            }
            (Some(Node::Object(_)), Node::Leaf(_)) => {
                return Err(MappingError::LeafOverObject { path });
            }
        }
    }
    Ok(())
}

fn merge_object(old: &mut ObjectNode, update: ObjectNode, path: &str) -> Result<(), MappingError> {
    if old.enabled != update.enabled && !update.enabled {
        return Err(MappingError::BadValue {
            reason: format!("the [enabled] parameter can't be updated for the object mapping [{path}]"),
        });
    }
    update_nested(old.nested, update.nested, path)?;
    old.dynamic = update.dynamic.or(old.dynamic);
    merge_properties(&mut old.properties, update.properties, path)
}

/// Checks an update of an object: what its documents are is fixed once some are written.
///
/// # Errors
/// What would change, in Elasticsearch's words.
fn update_nested(old: Option<Nested>, update: Option<Nested>, path: &str) -> Result<(), MappingError> {
    let refused = match (old, update) {
        (None, None) => return Ok(()),
        (None, Some(_)) => format!("can't merge a non nested mapping [{path}] with a nested mapping"),
        (Some(_), None) => format!("can't merge a nested mapping [{path}] with a non nested mapping"),
        (Some(old), Some(update)) if old == update => return Ok(()),
        (Some(old), Some(update)) => {
            let parameter = match old.include_in_parent != update.include_in_parent {
                true => "include_in_parent",
                false => "include_in_root",
            };
            format!("the [{parameter}] parameter can't be updated on a nested object mapping")
        }
    };
    Err(MappingError::BadValue { reason: refused })
}

fn merge_leaf(old: &mut LeafNode, mut update: LeafNode, path: &str) -> Result<(), MappingError> {
    let (from, to) = (old.field_type.name(), update.field_type.name());
    if from != to && matches!(old.field_type, FieldType::Alias { .. }) {
        return Err(MappingError::BadMerge {
            reason: format!(
                "Cannot merge a field alias mapping [{path}] with a mapping that is not for a field alias."
            ),
        });
    }
    if from != to {
        return Err(MappingError::TypeChange {
            path: path.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        });
    }
    if let (FieldType::DenseVector(field), FieldType::DenseVector(wanted)) =
        (&old.field_type, &mut update.field_type)
    {
        dense::update(field, wanted).map_err(|refused| change(path, refused.0, &refused.1, &refused.2))?;
        wanted.check_dims()?;
    }
    semantic::update(old, &mut update, path)?;
    keep_fielddata(old, &mut update);
    let names: BTreeSet<&String> = old.params.keys().chain(update.params.keys()).collect();
    for name in names {
        let default = Value::String("default".to_owned());
        let (from, to) = (old.params.get(name), update.params.get(name));
        // What postings hold is fixed once they are written.
        let postings = name == "index_options" && matches!(old.field_type, FieldType::Text { .. });
        if semantic::may_change(old, name) || matches!(old.field_type, FieldType::Alias { .. }) {
            continue;
        }
        if from != to && (postings || !UPDATABLE.contains(&name.as_str())) {
            // Spelled out or not, the default is the default.
            let analyzer = |value: Option<&Value>| {
                value.and_then(Value::as_str).is_none_or(|text| text == "standard" || text == "default")
            };
            if name == "analyzer" && analyzer(from) && analyzer(to) {
                continue;
            }
            // The value that all documents have may be said later.
            if name == "value" && from.is_none() && matches!(old.field_type, FieldType::Keyword { .. }) {
                continue;
            }
            // The lengths are there and may be left unused; they cannot be made up.
            if name == "norms" && to == Some(&Value::Bool(false)) && from.is_none() {
                continue;
            }
            if name == "fielddata" {
                if to != Some(&Value::Bool(true)) {
                    continue;
                }
                return Err(MappingError::BadMerge {
                    reason: format!(
                        "[fielddata] of [{path}] cannot be switched on in an index that exists: its documents were written \
                         without it. Copy them with _reindex into an index whose mapping has it"
                    ),
                });
            }
            return Err(change(path, name, from.unwrap_or(&default), to.unwrap_or(&default)));
        }
    }
    for (name, sub) in update.fields {
        match old.fields.get_mut(&name) {
            Some(existing) => merge_leaf(existing, sub, &join(path, &name))?,
            None => {
                old.fields.insert(name, sub);
            }
        }
    }
    old.field_type = update.field_type;
    old.options = update.options;
    old.params = update.params;
    Ok(())
}

/// Keeps `fielddata` where an update does not say it: nothing could bring it back.
fn keep_fielddata(old: &LeafNode, update: &mut LeafNode) {
    let on = Value::Bool(true);
    if let FieldType::Text { options } = &mut update.field_type
        && old.params.get("fielddata") == Some(&on)
        && !update.params.contains_key("fielddata")
    {
        Arc::make_mut(options).fielddata = true;
        update.params.insert("fielddata".to_owned(), on);
    }
}

fn change(path: &str, parameter: &str, from: &Value, to: &Value) -> MappingError {
    MappingError::ParameterChange {
        path: path.to_owned(),
        parameter: parameter.to_owned(),
        from: java_string(from),
        to: java_string(to),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Mapping;

    #[test]
    fn fielddata_is_there_until_an_update_removes_it() {
        let text = |more: Value| {
            let mut field = json!({"type": "text"});
            field.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"properties": {"t": field, "around": {"type": "keyword", "fields": {"t": field}}}})
        };
        let has_it = |mapping: &Mapping| {
            let stored = Mapping::stored(&mapping.to_json()).unwrap();
            ["t", "around.t"].map(|path| {
                let is_on = mapping.field(path).unwrap().has_text_column();
                assert_eq!(stored.field(path).unwrap().has_text_column(), is_on);
                is_on
            })
        };
        let old = Mapping::parse(&text(json!({"fielddata": true}))).unwrap();
        let silent = old.merge_update(&text(json!({"meta": {"of": "x"}}))).unwrap();
        assert_eq!(has_it(&silent), [true, true]);
        assert_eq!(silent.parameter("t", "meta"), Some(&json!({"of": "x"})));
        let off = silent.merge_update(&text(json!({"fielddata": false}))).unwrap();
        assert_eq!(has_it(&off), [false, false]);
        let off = off.merge_update(&text(json!({}))).unwrap();
        assert_eq!(has_it(&off), [false, false]);
        let refused = off.merge_update(&text(json!({"fielddata": true}))).unwrap_err().to_string();
        assert!(
            refused.contains("[fielddata] of [around.t] cannot be switched on in an index that exists"),
            "{refused}"
        );
    }
}
