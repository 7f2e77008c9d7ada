//! `set`, `remove`, `rename` and `dot_expander`: moving values between fields.

use serde_json::{Map, Value};

use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, any, flag, ignore_missing, object, of_field, several, target, text};
use crate::template::{Escape, Template, ValueTemplate};

/// Sets a field to a value, a template or the value of another field.
#[derive(Debug)]
pub(crate) struct Set {
    field: Template,
    from: From,
    overrides: bool,
    ignore_empty: bool,
    escape: Escape,
}

#[derive(Debug)]
enum From {
    Value(ValueTemplate),
    Copy(String),
}

pub(super) fn set_shape() -> Shape {
    of_field([
        ("value", any()),
        ("copy_from", text()),
        ("override", flag().preset(true)),
        ("ignore_empty_value", flag().preset(false)),
        ("media_type", text()),
    ])
}

impl Set {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.template("field")?;
        let copy_from = config.optional_text("copy_from")?;
        let escape = config.escape()?;
        let from = match copy_from {
            Some(_) if config.has("value") => {
                return Err(config
                    .unusable("copy_from", "cannot set both `copy_from` and `value` in the same processor"));
            }
            Some(path) => From::Copy(path),
            None => From::Value(config.value_template("value")?),
        };
        Ok(Self {
            field,
            from,
            overrides: config.boolean("override", true)?,
            ignore_empty: config.boolean("ignore_empty_value", false)?,
            escape,
        })
    }
}

impl Processor for Set {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let field = self.field.render(document, Escape::Plain)?;
        if !self.overrides && document.get_optional(&field, true)?.is_some() {
            return Ok(());
        }
        let value = match &self.from {
            From::Value(template) => template.render(document, self.escape)?,
            From::Copy(path) if self.ignore_empty => {
                document.get_optional(path, true)?.cloned().unwrap_or_default()
            }
            From::Copy(path) => document.get(path)?.clone(),
        };
        if self.ignore_empty && (value.is_null() || value.as_str() == Some("")) {
            return Ok(());
        }
        document.set(&field, value)
    }
}

/// Removes the named fields, or all others.
#[derive(Debug)]
pub(crate) struct Remove {
    fields: Vec<Template>,
    keep: Vec<Template>,
    ignore_missing: bool,
}

pub(super) fn remove_shape() -> Shape {
    object([("field", several(text())), ("keep", several(text())), ignore_missing()])
}

impl Remove {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let fields = config.optional_texts("field")?;
        let keep = config.optional_texts("keep")?;
        if fields.is_some() == keep.is_some() {
            return Err(config.unusable("keep", "or [field] must be specified"));
        }
        let parse = |name: &str, list: Option<Vec<String>>| {
            list.unwrap_or_default()
                .iter()
                .map(|text| Template::parse(text).map_err(|reason| config.unusable(name, reason)))
                .collect::<Result<Vec<_>, _>>()
        };
        let fields = parse("field", fields)?;
        let keep = parse("keep", keep)?;
        Ok(Self { fields, keep, ignore_missing: config.boolean("ignore_missing", false)? })
    }
}

impl Processor for Remove {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        for field in &self.fields {
            let path = field.render(document, Escape::Plain)?;
            if self.ignore_missing && (path.is_empty() || !document.has(&path)) {
                continue;
            }
            document.remove(&path)?;
        }
        if !self.keep.is_empty() {
            let mut kept = Document::default();
            for field in &self.keep {
                let path = field.render(document, Escape::Plain)?;
                if let Ok(value) = document.get(&path) {
                    let value = value.clone();
                    kept.set(&path, value)?;
                }
            }
            document.source = kept.source;
        }
        Ok(())
    }
}

/// Moves a value to another field.
#[derive(Debug)]
pub(crate) struct Rename {
    field: Template,
    target: Template,
    ignore_missing: bool,
    overrides: bool,
}

pub(super) fn rename_shape() -> Shape {
    of_field([target(), ignore_missing(), ("override", flag())]).needs(&["field", "target_field"])
}

impl Rename {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        Ok(Self {
            field: config.template("field")?,
            target: config.template("target_field")?,
            ignore_missing: config.boolean("ignore_missing", false)?,
            overrides: config.boolean("override", false)?,
        })
    }
}

impl Processor for Rename {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let path = self.field.render(document, Escape::Plain)?;
        if path.is_empty() || !document.has(&path) {
            return if self.ignore_missing { Ok(()) } else { Err(ProcessorError::Missing { path }) };
        }
        let target = self.target.render(document, Escape::Plain)?;
        if !self.overrides && document.has(&target) {
            return Err(ProcessorError::Exists { path: target });
        }
        // The new name is written before the old one goes, so that a name that cannot be written loses nothing.
        let value = document.get(&path)?.clone();
        if path == target {
            return Ok(());
        }
        if target.starts_with(&format!("{path}.")) {
            document.remove(&path)?;
            return document.set(&target, value);
        }
        document.set(&target, value)?;
        document.remove(&path).map(|_| ())
    }
}

/// Turns a field whose name has dots into objects, so that paths reach it.
#[derive(Debug)]
pub(crate) struct DotExpander {
    field: String,
    path: Option<String>,
    overrides: bool,
}

pub(super) fn dot_expander_shape() -> Shape {
    of_field([("path", text()), ("override", flag())])
}

impl DotExpander {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let dotted = field.split('.').count() > 1 && field.split('.').all(|part| !part.is_empty());
        if field != "*" && !dotted {
            return Err(config.unusable("field", "field does not contain a dot and is not a wildcard"));
        }
        Ok(Self { field, path: config.optional_text("path")?, overrides: config.boolean("override", false)? })
    }
}

impl Processor for DotExpander {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let parent = match &self.path {
            None => Some(&mut document.source),
            Some(path) => {
                document.get(path)?;
                document.get_mut(path).and_then(Value::as_object_mut)
            }
        };
        let Some(parent) = parent else { return Ok(()) };
        // All at once, as each that is taken out of an ordered map moves all others.
        let (dotted, plain): (Map<_, _>, Map<_, _>) =
            std::mem::take(parent).into_iter().partition(|(name, _)| {
                if self.field == "*" { name.contains('.') } else { *name == self.field }
            });
        *parent = plain;
        let mut members = dotted.into_iter();
        while let Some((name, value)) = members.next() {
            let full = self.path.as_ref().map_or_else(|| name.clone(), |path| format!("{path}.{name}"));
            let result = if document.has(&full) && !self.overrides {
                document.append(&full, vec![value], true)
            } else {
                document.set(&full, value)
            };
            if result.is_err() {
                let parent = match &self.path {
                    None => Some(&mut document.source),
                    Some(path) => document.get_mut(path).and_then(Value::as_object_mut),
                };
                if let Some(parent) = parent {
                    parent.extend(members);
                }
                return result;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::processors::check;

    #[test]
    fn set_writes_values_templates_and_copies() {
        for (parameters, source, expected) in [
            (json!({"field": "a.b", "value": 1}), json!({}), json!({"a": {"b": 1}})),
            (
                json!({"field": "a", "value": "{{x}}-{{y.z}}"}),
                json!({"x": 1, "y": {"z": "q"}}),
                json!({"x": 1, "y": {"z": "q"}, "a": "1-q"}),
            ),
            (
                json!({"field": "{{x}}", "value": [1, "{{{x}}}"]}),
                json!({"x": "n"}),
                json!({"x": "n", "n": [1, "n"]}),
            ),
            (
                json!({"field": "a", "copy_from": "x"}),
                json!({"x": {"k": [1]}}),
                json!({"x": {"k": [1]}, "a": {"k": [1]}}),
            ),
            (json!({"field": "a", "value": 2, "override": false}), json!({"a": 1}), json!({"a": 1})),
            (json!({"field": "a", "value": 2, "override": false}), json!({"a": null}), json!({"a": 2})),
            (json!({"field": "a", "value": "{{no}}", "ignore_empty_value": true}), json!({}), json!({})),
            (json!({"field": "a", "copy_from": "no", "ignore_empty_value": true}), json!({}), json!({})),
        ] {
            assert_eq!(check(json!({"set": parameters}), source).unwrap(), expected);
        }
        assert_eq!(
            check(json!({"set": {"field": "a", "copy_from": "no"}}), json!({})).unwrap_err(),
            "field [no] not present as part of path [no]"
        );
        assert!(
            check(json!({"set": {"field": "a", "copy_from": "b", "value": 1}}), json!({}))
                .unwrap_err()
                .contains("cannot set both")
        );
    }

    #[test]
    fn remove_takes_fields_away() {
        let source = json!({"a": 1, "b": {"c": 1, "d": 2}});
        for (parameters, expected) in [
            (json!({"field": "a"}), json!({"b": {"c": 1, "d": 2}})),
            (json!({"field": ["a", "b.c"]}), json!({"b": {"d": 2}})),
            (json!({"field": ["no", "a"], "ignore_missing": true}), json!({"b": {"c": 1, "d": 2}})),
            (json!({"keep": ["b.d"]}), json!({"b": {"d": 2}})),
        ] {
            assert_eq!(check(json!({"remove": parameters}), source.clone()).unwrap(), expected);
        }
        assert_eq!(
            check(json!({"remove": {"field": "no"}}), source.clone()).unwrap_err(),
            "field [no] not present as part of path [no]"
        );
        assert_eq!(
            check(json!({"remove": {}}), source).unwrap_err(),
            "config: [keep] or [field] must be specified"
        );
    }

    #[test]
    fn rename_moves_a_value() {
        for (parameters, source, expected) in [
            (json!({"field": "a", "target_field": "b.c"}), json!({"a": 1}), Ok(json!({"b": {"c": 1}}))),
            (json!({"field": "a", "target_field": "a.b"}), json!({"a": 1}), Ok(json!({"a": {"b": 1}}))),
            (
                json!({"field": "no", "target_field": "b", "ignore_missing": true}),
                json!({"a": 1}),
                Ok(json!({"a": 1})),
            ),
            (
                json!({"field": "a", "target_field": "b", "override": true}),
                json!({"a": 1, "b": 2}),
                Ok(json!({"b": 1})),
            ),
            (json!({"field": "no", "target_field": "b"}), json!({}), Err("field [no] doesn't exist")),
            (
                json!({"field": "a", "target_field": "b"}),
                json!({"a": 1, "b": 2}),
                Err("field [b] already exists"),
            ),
        ] {
            assert_eq!(check(json!({"rename": parameters}), source), expected.map_err(str::to_owned));
        }
    }

    #[test]
    fn dots_become_objects() {
        assert_eq!(
            check(json!({"dot_expander": {"field": "a.b"}}), json!({"a.b": 1, "a": {"c": 2}})).unwrap(),
            json!({"a": {"c": 2, "b": 1}})
        );
        assert_eq!(
            check(json!({"dot_expander": {"field": "*"}}), json!({"x.y": 1, "z": 2})).unwrap(),
            json!({"z": 2, "x": {"y": 1}})
        );
        assert!(check(json!({"dot_expander": {"field": "a"}}), json!({})).is_err());
    }
}
