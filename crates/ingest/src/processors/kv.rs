//! `kv`: `a=1 b=2` becomes fields.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

use super::null;
use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::effort::split;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, flag, ignore_missing, of_field, several, target, text};
use crate::template::{Escape, Template};

/// Splits a text into keys and values, and sets the fields.
#[derive(Debug)]
pub(crate) struct KeyValue {
    field: Template,
    target: Option<Template>,
    field_split: Regex,
    value_split: Regex,
    include: Option<BTreeSet<String>>,
    exclude: BTreeSet<String>,
    prefix: String,
    trim_key: Option<Regex>,
    trim_value: Option<Regex>,
    strip_brackets: bool,
    ignore_missing: bool,
}

pub(super) fn kv_shape() -> Shape {
    of_field([
        target(),
        ignore_missing(),
        ("include_keys", several(text())),
        ("exclude_keys", several(text())),
        ("strip_brackets", flag()),
    ])
    .and(["field_split", "value_split", "prefix", "trim_key", "trim_value"].map(|name| (name, text())))
    .needs(&["field", "field_split", "value_split"])
}

impl KeyValue {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.template("field")?;
        let target = if config.has("target_field") { Some(config.template("target_field")?) } else { None };
        Ok(Self {
            field,
            target,
            field_split: regex(config, "field_split")?,
            value_split: regex(config, "value_split")?,
            include: config.optional_texts("include_keys")?.map(BTreeSet::from_iter),
            exclude: config.optional_texts("exclude_keys")?.unwrap_or_default().into_iter().collect(),
            prefix: config.optional_text("prefix")?.unwrap_or_default(),
            trim_key: trimmer(config, "trim_key")?,
            trim_value: trimmer(config, "trim_value")?,
            strip_brackets: config.boolean("strip_brackets", false)?,
            ignore_missing: config.boolean("ignore_missing", false)?,
        })
    }

    fn is_wanted(&self, key: &str) -> bool {
        self.include.as_ref().is_none_or(|include| include.contains(key)) && !self.exclude.contains(key)
    }
}

impl Processor for KeyValue {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let path = self.field.render(document, Escape::Plain)?;
        if path.is_empty() || !document.has(&path) {
            return if self.ignore_missing { Ok(()) } else { Err(ProcessorError::Missing { path }) };
        }
        let Some(text) = document.get_text(&path, self.ignore_missing)? else {
            return null(&path, self.ignore_missing, "cannot extract key-value pairs.");
        };
        let target = self.target.as_ref().map(|target| target.render(document, Escape::Plain)).transpose()?;
        let before = match target {
            Some(target) if !target.is_empty() => format!("{target}.{}", self.prefix),
            _ => self.prefix.clone(),
        };
        let mut matching = document.matching;
        let mut parts = matching.until(|end| split(&self.field_split, text, end))?;
        // As Java splits: what is empty at the end is no part, unless it is the only one.
        while parts.len() > 1 && parts.last().is_some_and(|part| part.is_empty()) {
            parts.pop();
        }
        let mut pairs = Vec::with_capacity(parts.len());
        for part in parts {
            let mut halves = self.value_split.splitn(part, 2);
            let (Some(key), Some(value)) = (halves.next(), halves.next()) else {
                let reason = format!("field [{path}] does not contain value_split [{}]", self.value_split);
                return Err(ProcessorError::Form { reason });
            };
            let key = trim(self.trim_key.as_ref(), key);
            if self.is_wanted(&key) {
                let value = if self.strip_brackets { without_brackets(value) } else { value };
                pairs.push((format!("{before}{key}"), trim(self.trim_value.as_ref(), value)));
            }
        }
        document.matching = matching;
        for (path, value) in pairs {
            if document.has(&path) {
                document.append(&path, vec![Value::String(value)], true)?;
            } else {
                document.set(&path, Value::String(value))?;
            }
        }
        Ok(())
    }
}

fn regex(config: &mut Config, name: &str) -> Result<Regex, ConfigError> {
    let text = config.text(name)?;
    config.expression(name, &text)
}

/// A regular expression that matches a run of certain characters at the start or end of a text; the parameter gives
/// them in the syntax of a character class. `None` if the parameter is absent.
fn trimmer(config: &mut Config, name: &str) -> Result<Option<Regex>, ConfigError> {
    let Some(characters) = config.optional_text(name)? else { return Ok(None) };
    config.expression(name, &format!("^[{characters}]+|[{characters}]+$")).map(Some)
}

fn trim(trimmer: Option<&Regex>, text: &str) -> String {
    trimmer.map_or_else(|| text.to_owned(), |regex| regex.replace_all(text, "").into_owned())
}

fn without_brackets(value: &str) -> &str {
    let value = value.strip_prefix(['(', '[', '<', '"', '\'']).unwrap_or(value);
    value.strip_suffix([']', ')', '>', '"', '\'']).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::processors::check;

    fn kv(parameters: Value, text: Value) -> Result<Value, String> {
        let mut all = json!({"field": "t", "field_split": " ", "value_split": "="});
        all.as_object_mut().unwrap().extend(parameters.as_object().unwrap().clone());
        check(json!({"kv": all}), json!({"t": text})).map(|mut source| {
            source.as_object_mut().unwrap().shift_remove("t");
            source
        })
    }

    #[test]
    fn pairs_become_fields() {
        for (parameters, text, expected) in [
            (json!({}), "a=1 b=x", json!({"a": "1", "b": "x"})),
            (json!({}), "a=1 a=2 a=3 ", json!({"a": ["1", "2", "3"]})),
            (json!({}), "a=1=2 b=", json!({"a": "1=2", "b": ""})),
            (json!({"target_field": "o", "prefix": "p_"}), "a=1", json!({"o": {"p_a": "1"}})),
            (json!({"include_keys": ["a", "b"], "exclude_keys": ["b"]}), "a=1 b=2 c=3", json!({"a": "1"})),
            (
                json!({"field_split": "&", "trim_key": "\\s", "trim_value": " ,"}),
                " a = 1, & b =2",
                json!({"a": "1", "b": "2"}),
            ),
            (
                json!({"strip_brackets": true}),
                "a=(1) b=\"x\" c=<[y]>",
                json!({"a": "1", "b": "x", "c": "[y]"}),
            ),
            (json!({"field_split": "[ ,]+"}), "a=1, b=2", json!({"a": "1", "b": "2"})),
        ] {
            assert_eq!(kv(parameters, json!(text)).unwrap(), expected, "{text}");
        }
        let by_template = json!({"field": "{{origin}}", "target_field": "{{target}}", "field_split": " ", "value_split": "="});
        let source = json!({"origin": "f", "f": "a=1", "target": "bar"});
        assert_eq!(check(json!({"kv": by_template}), source).unwrap()["bar"], json!({"a": "1"}));
    }

    #[test]
    fn what_has_no_pairs_is_refused() {
        for (parameters, text, message) in [
            (json!({}), json!("a=1 b"), "field [t] does not contain value_split [=]"),
            (json!({}), json!(""), "field [t] does not contain value_split [=]"),
            (json!({}), Value::Null, "field [t] is null, cannot extract key-value pairs."),
            (json!({"field": "no"}), json!("a=1"), "field [no] doesn't exist"),
            (json!({"field": "{{no}}"}), json!("a=1"), "field [] doesn't exist"),
            (
                json!({}),
                json!(1),
                "field [t] of type [java.lang.Integer] cannot be cast to [java.lang.String]",
            ),
        ] {
            assert_eq!(kv(parameters, text).unwrap_err(), message);
        }
        assert_eq!(kv(json!({"field": "no", "ignore_missing": true}), json!("a=1")).unwrap(), json!({}));
        for name in ["field_split", "value_split", "trim_key", "trim_value"] {
            let mut parameters = json!({});
            parameters[name] = json!("(");
            let error = kv(parameters, json!(""));
            // A bracket is a character where characters are listed.
            assert_eq!(error.unwrap_err().starts_with("config: "), !name.starts_with("trim"), "{name}");
        }
        assert!(kv(json!({"trim_key": "]["}), json!("")).unwrap_err().starts_with("config: [trim_key]"));
    }
}
