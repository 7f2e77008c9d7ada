//! The processor `json`: parses a string as JSON.

use serde_json::{Map, Value};

use crate::chain::Processor;
use crate::config::Config;
use crate::document::{Document, as_text};
use crate::effort::weight;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, flag, of_field, one, target};

/// Parses a text as JSON.
#[derive(Debug)]
pub(crate) struct Json {
    field: String,
    target: String,
    to_root: bool,
    merge: bool,
    strict: bool,
}

pub(super) fn json_shape() -> Shape {
    of_field([
        target(),
        ("add_to_root", flag()),
        ("add_to_root_conflict_strategy", one(&["replace", "merge"])),
        ("allow_duplicate_keys", flag()),
        ("strict_json_parsing", flag().preset(true)),
    ])
}

impl Json {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let to_root = config.boolean("add_to_root", false)?;
        let target = config.optional_text("target_field")?;
        if to_root && target.is_some() {
            return Err(
                config.unusable("target_field", "Cannot set a target field while also setting `add_to_root`")
            );
        }
        let merge = match config.optional_text("add_to_root_conflict_strategy")? {
            None => false,
            Some(_) if !to_root => {
                return Err(config.unusable(
                    "add_to_root_conflict_strategy",
                    "Cannot set `add_to_root_conflict_strategy` if `add_to_root` is false",
                ));
            }
            Some(strategy) => match strategy.to_ascii_lowercase().as_str() {
                "replace" => false,
                "merge" => true,
                _ => {
                    return Err(config.unusable(
                        "add_to_root_conflict_strategy",
                        format!("conflict strategy [{strategy}] not supported, cannot convert field."),
                    ));
                }
            },
        };
        // The last of several equal keys wins either way.
        config.boolean("allow_duplicate_keys", false)?;
        Ok(Self {
            target: target.unwrap_or_else(|| field.clone()),
            field,
            to_root,
            merge,
            strict: config.boolean("strict_json_parsing", true)?,
        })
    }

    fn parse(&self, value: &Value) -> Result<Value, ProcessorError> {
        let text = match value {
            Value::Null => return Ok(Value::Null),
            value => as_text(value),
        };
        let refuse = |error: serde_json::Error| ProcessorError::Json { reason: error.to_string() };
        if self.strict {
            return serde_json::from_str(&text).map_err(refuse);
        }
        // Without strictness the first value counts, and what follows it is left alone.
        match serde_json::Deserializer::from_str(&text).into_iter().next() {
            Some(parsed) => parsed.map_err(refuse),
            None => Ok(Value::Null),
        }
    }
}

impl Processor for Json {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let parsed = self.parse(document.get(&self.field)?)?;
        if !self.to_root {
            return document.set(&self.target, parsed);
        }
        let Value::Object(fields) = parsed else { return Err(ProcessorError::NotMapForRoot) };
        document.grow(&self.field, fields.values().map(weight).sum::<usize>() as isize)?;
        if self.merge {
            merge(&mut document.source, fields);
        } else {
            document.source.extend(fields);
        }
        Ok(())
    }
}

fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            (_, value) => {
                into.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::processors::check;

    #[test]
    fn text_becomes_a_value() {
        for (parameters, source, expected) in [
            (json!({"field": "a"}), json!({"a": "{\"x\": [1]}"}), json!({"a": {"x": [1]}})),
            (
                json!({"field": "a", "target_field": "b"}),
                json!({"a": "true"}),
                json!({"a": "true", "b": true}),
            ),
            (
                json!({"field": "a", "add_to_root": true}),
                json!({"a": "{\"b\": {\"x\": 1}}", "b": {"y": 2}}),
                json!({"a": "{\"b\": {\"x\": 1}}", "b": {"x": 1}}),
            ),
            (
                json!({"field": "a", "add_to_root": true, "add_to_root_conflict_strategy": "merge"}),
                json!({"a": "{\"b\": {\"x\": 1}}", "b": {"y": 2}}),
                json!({"a": "{\"b\": {\"x\": 1}}", "b": {"y": 2, "x": 1}}),
            ),
            (json!({"field": "a", "strict_json_parsing": false}), json!({"a": "1 two"}), json!({"a": 1})),
        ] {
            assert_eq!(check(json!({"json": parameters}), source).unwrap(), expected);
        }
    }

    #[test]
    fn other_text_is_refused() {
        assert!(
            check(json!({"json": {"field": "a"}}), json!({"a": "{"}))
                .unwrap_err()
                .contains("unable to parse JSON")
        );
        assert!(check(json!({"json": {"field": "a"}}), json!({"a": "1 two"})).is_err());
        assert_eq!(
            check(json!({"json": {"field": "a", "add_to_root": true}}), json!({"a": "[1]"})).unwrap_err(),
            "cannot add non-map fields to root of document"
        );
        assert!(
            check(json!({"json": {"field": "a", "add_to_root": true, "target_field": "b"}}), json!({}))
                .is_err()
        );
    }
}
