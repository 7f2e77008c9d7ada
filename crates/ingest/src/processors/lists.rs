//! The processors `split`, `join`, `append` and `sort`, which build and change lists.

use std::cmp::Ordering;

use regex::Regex;
use serde_json::Value;

use super::null;
use crate::chain::Processor;
use crate::config::Config;
use crate::document::{Document, as_text, java_type};
use crate::effort::{room, split};
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, any, flag, ignore_missing, of_field, one, target, text};
use crate::template::{Escape, Template, ValueTemplate};

/// Splits a string at the matches of a regular expression.
#[derive(Debug)]
pub(crate) struct Split {
    field: String,
    target: String,
    separator: Regex,
    ignore_missing: bool,
    preserve_trailing: bool,
}

pub(super) fn split_shape() -> Shape {
    of_field([target(), ignore_missing(), ("separator", text()), ("preserve_trailing", flag())])
        .needs(&["field", "separator"])
}

impl Split {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let separator = config.text("separator")?;
        Ok(Self {
            target: config.target_field(&field)?,
            field,
            separator: config.expression("separator", &separator)?,
            ignore_missing: config.boolean("ignore_missing", false)?,
            preserve_trailing: config.boolean("preserve_trailing", false)?,
        })
    }
}

impl Processor for Split {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let Some(text) = document.get_text(&self.field, self.ignore_missing)? else {
            return null(&self.field, self.ignore_missing, "cannot split.");
        };
        let mut matching = document.matching;
        let mut parts = matching.until(|end| split(&self.separator, text, end))?;
        if !self.preserve_trailing {
            while parts.len() > 1 && parts.last().is_some_and(|part| part.is_empty()) {
                parts.pop();
            }
        }
        let parts = parts.into_iter().map(|part| Value::String(part.to_owned())).collect();
        document.matching = matching;
        document.set(&self.target, Value::Array(parts))
    }
}

/// Joins the elements of a list into one string.
#[derive(Debug)]
pub(crate) struct Join {
    field: String,
    target: String,
    separator: String,
}

pub(super) fn join_shape() -> Shape {
    of_field([target(), ("separator", text())]).needs(&["field", "separator"])
}

impl Join {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        Ok(Self { separator: config.text("separator")?, target: config.target_field(&field)?, field })
    }
}

impl Processor for Join {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let joined = match document.get_optional(&self.field, false)? {
            None => return null(&self.field, false, "cannot join."),
            Some(Value::Array(list)) => {
                let mut joined = String::new();
                for (number, value) in list.iter().enumerate() {
                    if number > 0 {
                        joined.push_str(&self.separator);
                    }
                    joined.push_str(&as_text(value));
                    room(joined.len(), 0)?;
                }
                joined
            }
            Some(other) => {
                return Err(ProcessorError::Cast {
                    path: self.field.clone(),
                    found: java_type(other),
                    expected: "java.util.List",
                });
            }
        };
        document.set(&self.target, Value::String(joined))
    }
}

/// Adds values to a list.
#[derive(Debug)]
pub(crate) struct Append {
    field: Template,
    value: ValueTemplate,
    allow_duplicates: bool,
    ignore_empty: bool,
    escape: Escape,
}

pub(super) fn append_shape() -> Shape {
    of_field([
        ("value", any()),
        ("allow_duplicates", flag().preset(true)),
        ("ignore_empty_values", flag()),
        ("media_type", text()),
    ])
    .needs(&["field", "value"])
}

impl Append {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        Ok(Self {
            field: config.template("field")?,
            value: config.value_template("value")?,
            allow_duplicates: config.boolean("allow_duplicates", true)?,
            ignore_empty: config.boolean("ignore_empty_values", false)?,
            escape: config.escape()?,
        })
    }
}

impl Processor for Append {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let mut values = match self.value.render(document, self.escape)? {
            Value::Array(list) => list,
            single => vec![single],
        };
        if self.ignore_empty {
            values.retain(|value| !value.is_null() && value.as_str() != Some(""));
            if values.is_empty() {
                return Ok(());
            }
        }
        let path = self.field.render(document, Escape::Plain)?;
        document.append(&path, values, self.allow_duplicates)
    }
}

/// Sorts the elements of a list.
#[derive(Debug)]
pub(crate) struct Sort {
    field: String,
    target: String,
    descending: bool,
}

pub(super) fn sort_shape() -> Shape {
    of_field([target(), ("order", one(&["asc", "desc"]))])
}

impl Sort {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let descending = match config.optional_text("order")?.as_deref() {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(other) => {
                return Err(config.unusable(
                    "order",
                    format!("Sort direction [{other}] not recognized. Valid values are: [asc, desc]"),
                ));
            }
        };
        Ok(Self { target: config.target_field(&field)?, field, descending })
    }
}

impl Processor for Sort {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let mut list = match document.get_optional(&self.field, false)? {
            None => return null(&self.field, false, "cannot sort."),
            Some(Value::Array(list)) => list.clone(),
            Some(other) => {
                return Err(ProcessorError::Cast {
                    path: self.field.clone(),
                    found: java_type(other),
                    expected: "java.util.List",
                });
            }
        };
        if let Some((left, right)) = list.first().and_then(|first| {
            let other = list.iter().find(|other| order(first, other).is_none())?;
            Some((java_type(first), java_type(other)))
        }) {
            return Err(ProcessorError::NotComparable { path: self.field.clone(), left, right });
        }
        list.sort_by(|a, b| {
            let ascending = order(a, b).unwrap_or(Ordering::Equal);
            if self.descending { ascending.reverse() } else { ascending }
        });
        document.set(&self.target, Value::Array(list))
    }
}

/// Compares two values of the same type; `None` if they cannot be compared.
fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => Some(a.as_f64()?.total_cmp(&b.as_f64()?)),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::processors::check;

    #[test]
    fn texts_are_split() {
        for (parameters, text, expected) in [
            (json!({"field": "a", "separator": ","}), "x,y,,", json!(["x", "y"])),
            (
                json!({"field": "a", "separator": ",", "preserve_trailing": true}),
                "x,y,,",
                json!(["x", "y", "", ""]),
            ),
            (json!({"field": "a", "separator": "\\s+"}), "x  y\tz", json!(["x", "y", "z"])),
            (json!({"field": "a", "separator": ","}), "", json!([""])),
        ] {
            assert_eq!(
                check(json!({"split": parameters}), json!({"a": text})).unwrap(),
                json!({"a": expected})
            );
        }
        assert_eq!(
            check(json!({"split": {"field": "a", "separator": ","}}), json!({"a": null})).unwrap_err(),
            "field [a] is null, cannot split."
        );
        assert_eq!(
            check(json!({"split": {"field": "a", "separator": ",", "ignore_missing": true}}), json!({}))
                .unwrap(),
            json!({})
        );
    }

    #[test]
    fn lists_are_joined() {
        assert_eq!(
            check(
                json!({"join": {"field": "a", "separator": "-", "target_field": "b"}}),
                json!({"a": ["x", 1, true]})
            )
            .unwrap(),
            json!({"a": ["x", 1, true], "b": "x-1-true"})
        );
        for (source, message) in [
            (json!({"a": "x"}), "field [a] of type [java.lang.String] cannot be cast to [java.util.List]"),
            (json!({"a": null}), "field [a] is null, cannot join."),
            (json!({}), "field [a] not present as part of path [a]"),
        ] {
            assert_eq!(
                check(json!({"join": {"field": "a", "separator": "-"}}), source).unwrap_err(),
                message
            );
        }
    }

    #[test]
    fn lists_are_sorted() {
        for (parameters, list, expected) in [
            (json!({"field": "a"}), json!(["foo", "bar", "baz"]), json!(["bar", "baz", "foo"])),
            (json!({"field": "a", "order": "desc"}), json!([1, 3.5, 2, -1]), json!([3.5, 2, 1, -1])),
            (json!({"field": "a"}), json!([true, false]), json!([false, true])),
            (json!({"field": "a"}), json!([]), json!([])),
        ] {
            assert_eq!(
                check(json!({"sort": parameters}), json!({"a": list})).unwrap(),
                json!({"a": expected})
            );
        }
        assert_eq!(
            check(json!({"sort": {"field": "a", "target_field": "b"}}), json!({"a": [2, 1]})).unwrap(),
            json!({"a": [2, 1], "b": [1, 2]})
        );
        for (parameters, source, message) in [
            (json!({"field": "a"}), json!({"a": null}), "field [a] is null, cannot sort."),
            (
                json!({"field": "a"}),
                json!({"a": 1}),
                "field [a] of type [java.lang.Integer] cannot be cast to [java.util.List]",
            ),
            (
                json!({"field": "a"}),
                json!({"a": ["x", 1]}),
                "field [a] has elements of type [java.lang.String] and of type [java.lang.Integer], cannot sort.",
            ),
            (
                json!({"field": "a", "order": "up"}),
                json!({}),
                "config: [order] Sort direction [up] not recognized. Valid values are: [asc, desc]",
            ),
        ] {
            assert_eq!(check(json!({"sort": parameters}), source).unwrap_err(), message);
        }
    }

    #[test]
    fn values_are_appended() {
        for (parameters, source, expected) in [
            (json!({"field": "a", "value": "x"}), json!({}), json!({"a": ["x"]})),
            (
                json!({"field": "a", "value": ["x", "{{b}}"]}),
                json!({"a": 1, "b": "q"}),
                json!({"a": [1, "x", "q"], "b": "q"}),
            ),
            (
                json!({"field": "a", "value": [1, 2], "allow_duplicates": false}),
                json!({"a": [1]}),
                json!({"a": [1, 2]}),
            ),
            (json!({"field": "a", "value": "{{no}}", "ignore_empty_values": true}), json!({}), json!({})),
            // What is there already changes nothing.
            (
                json!({"field": "a", "value": "x", "allow_duplicates": false}),
                json!({"a": "x"}),
                json!({"a": "x"}),
            ),
        ] {
            assert_eq!(check(json!({"append": parameters}), source).unwrap(), expected);
        }
    }
}
