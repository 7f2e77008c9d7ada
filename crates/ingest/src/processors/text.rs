//! Processors that change a text: `lowercase`, `uppercase`, `trim`, `html_strip`, `urldecode` and `gsub`. The `bytes`
//! processor is built from the same parts.

use std::fmt;

use serde_json::Value;

use crate::chain::Processor;
use crate::config::Config;
use crate::document::{Document, as_text, java_type};
use crate::effort::{End, replace_all, room, weight};
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, ignore_missing, of_field, target, text};

/// Computes a new value from a string; fails once the given moment has passed.
type Change = Box<dyn Fn(&str, End) -> Result<Value, ProcessorError> + Send + Sync>;

/// Changes a string, or each string of a list, and writes it to a field.
pub(crate) struct ChangeText {
    field: String,
    target: String,
    ignore_missing: bool,
    /// The end of the error message for a field that is null, after the comma.
    refusal: &'static str,
    change: Change,
}

impl fmt::Debug for ChangeText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ChangeText")
            .field("field", &self.field)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

/// What the parameters of a processor hold that changes a text in one way.
pub(super) fn simple_shape() -> Shape {
    of_field([target(), ignore_missing()])
}

pub(super) fn gsub_shape() -> Shape {
    simple_shape().and([("pattern", text()), ("replacement", text())]).needs(&[
        "field",
        "pattern",
        "replacement",
    ])
}

/// Reads the definition of a processor that has no parameters but `field`, `target_field` and `ignore_missing`, and
/// whose change never fails.
pub(crate) fn simple(
    config: &mut Config,
    change: impl Fn(&str) -> String + Send + Sync + 'static,
    refusal: &'static str,
) -> Result<ChangeText, ConfigError> {
    read(config, move |text, _| Ok(Value::String(change(text))), refusal)
}

/// Like [`simple`], for a change that can fail on some texts.
pub(super) fn read(
    config: &mut Config,
    change: impl Fn(&str, End) -> Result<Value, ProcessorError> + Send + Sync + 'static,
    refusal: &'static str,
) -> Result<ChangeText, ConfigError> {
    let field = config.field("field")?;
    Ok(ChangeText {
        target: config.target_field(&field)?,
        field,
        ignore_missing: config.boolean("ignore_missing", false)?,
        refusal,
        change: Box::new(change),
    })
}

/// `gsub`: replaces what a regular expression matches.
///
/// Expressions are those of the `regex` crate, which runs in linear time: look-around and back-references of Java's
/// expressions are refused when the pipeline is stored.
pub(crate) fn gsub(config: &mut Config) -> Result<ChangeText, ConfigError> {
    let pattern = config.text("pattern")?;
    let replacement = replacement_syntax(&config.text("replacement")?);
    let regex = config.expression("pattern", &pattern)?;
    read(
        config,
        move |text, end| replace_all(&regex, text, &replacement, end).map(Value::String),
        "cannot match pattern.",
    )
}

/// Percent-decodes a text; byte sequences that are not valid UTF-8 are replaced with U+FFFD.
pub(crate) fn url_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        match (bytes[at], hex.and_then(|pair| u8::from_str_radix(pair, 16).ok())) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Java's replacement syntax (`$1`, `${name}`, `\$`) in that of the `regex` crate, where `$1a` is a group named `1a`.
fn replacement_syntax(java: &str) -> String {
    let mut out = String::with_capacity(java.len());
    let mut chars = java.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next() {
                Some('$') => out.push_str("$$"),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            '$' if chars.peek().is_some_and(char::is_ascii_digit) => {
                out.push_str("${");
                // One digit: a second one would only count if so many groups exist, and then it can be named.
                out.extend(chars.next());
                out.push('}');
            }
            other => out.push(other),
        }
    }
    out
}

impl Processor for ChangeText {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let mut matching = document.matching;
        let mut made = 0;
        let mut change = |text: &str| {
            let value = matching.until(|end| (self.change)(text, end))?;
            made += weight(&value);
            room(made, 0)?;
            Ok(value)
        };
        let changed = match document.get_optional(&self.field, self.ignore_missing)? {
            None if self.ignore_missing => return Ok(()),
            None => {
                return Err(ProcessorError::Null {
                    path: self.field.clone(),
                    refusal: self.refusal.to_owned(),
                });
            }
            Some(Value::String(text)) => change(text)?,
            Some(Value::Array(list)) => Value::Array(
                list.iter()
                    .map(|value| match value {
                        Value::String(text) => change(text),
                        other => Err(ProcessorError::CastElement {
                            value: as_text(other),
                            found: java_type(other),
                            path: self.field.clone(),
                            expected: "java.lang.String",
                        }),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            Some(other) => {
                return Err(ProcessorError::Cast {
                    path: self.field.clone(),
                    found: java_type(other),
                    expected: "java.lang.String",
                });
            }
        };
        document.matching = matching;
        document.set(&self.target, changed)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::processors::check;

    #[test]
    fn texts_and_lists_of_texts_change() {
        for (processor, source, expected) in [
            (json!({"lowercase": {"field": "a"}}), json!({"a": "ÄB"}), json!({"a": "äb"})),
            (
                json!({"uppercase": {"field": "a", "target_field": "b"}}),
                json!({"a": "x"}),
                json!({"a": "x", "b": "X"}),
            ),
            (json!({"trim": {"field": "a"}}), json!({"a": ["  x ", "y\n"]}), json!({"a": ["x", "y"]})),
            (json!({"trim": {"field": "a", "ignore_missing": true}}), json!({"a": null}), json!({"a": null})),
            (json!({"trim": {"field": "no", "ignore_missing": true}}), json!({}), json!({})),
            (json!({"html_strip": {"field": "a"}}), json!({"a": "<b>x</b>"}), json!({"a": "x"})),
            (json!({"urldecode": {"field": "a"}}), json!({"a": "a%20b+c%C3%A9%"}), json!({"a": "a b cé%"})),
            (
                json!({"gsub": {"field": "a", "pattern": "(\\d+)\\.", "replacement": "$1x-"}}),
                json!({"a": "1.22.3"}),
                json!({"a": "1x-22x-3"}),
            ),
            (
                json!({"gsub": {"field": "a", "pattern": "x", "replacement": "\\$1"}}),
                json!({"a": "axb"}),
                json!({"a": "a$1b"}),
            ),
        ] {
            assert_eq!(check(processor, source).unwrap(), expected);
        }
    }

    #[test]
    fn other_values_are_refused() {
        for (processor, source, message) in [
            (json!({"trim": {"field": "a"}}), json!({"a": null}), "field [a] is null, cannot process it."),
            (json!({"trim": {"field": "a"}}), json!({}), "field [a] not present as part of path [a]"),
            (
                json!({"trim": {"field": "a"}}),
                json!({"a": 1}),
                "field [a] of type [java.lang.Integer] cannot be cast to [java.lang.String]",
            ),
            (
                json!({"trim": {"field": "a"}}),
                json!({"a": ["x", 5]}),
                "value [5] of type [java.lang.Integer] in list field [a] cannot be cast to [java.lang.String]",
            ),
            (
                json!({"gsub": {"field": "a", "pattern": "x", "replacement": ""}}),
                json!({"a": null}),
                "field [a] is null, cannot match pattern.",
            ),
        ] {
            assert_eq!(check(processor, source).unwrap_err(), message);
        }
        let error =
            check(json!({"gsub": {"field": "a", "pattern": "(", "replacement": ""}}), json!({})).unwrap_err();
        assert!(error.starts_with("config: [pattern] Invalid regex pattern."), "{error}");
    }
}
