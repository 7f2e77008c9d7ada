//! `dissect`: cuts a text at the delimiters of a pattern, such as `%{client} - [%{day}/%{+day}] %{?rest}`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::null;
use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, ignore_missing, of_field, text};

/// Most keys of a pattern.
const MAX_KEYS: usize = 1000;

/// Splits a text by a pattern and sets the fields of its keys.
#[derive(Debug)]
pub(crate) struct Dissect {
    field: String,
    pattern: Pattern,
    separator: String,
    ignore_missing: bool,
}

/// A parsed pattern: the text before the first key, and each key with the delimiter after it.
#[derive(Debug)]
struct Pattern {
    text: String,
    start: String,
    keys: Vec<(Key, String)>,
}

#[derive(Debug, Clone)]
struct Key {
    name: String,
    role: Role,
    /// Whether the delimiter after the key may be repeated (`->`).
    padded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The value of a field.
    Field,
    /// The text is appended to the value of the field (`+`), in the order of the numbers (`/2`) or of the occurrences.
    Append(u32),
    /// `*`: the name of a field.
    Name,
    /// `&`: the value of the field that `*` names.
    Value,
    /// The text is skipped (`?`, or no name).
    Skip,
}

pub(super) fn dissect_shape() -> Shape {
    of_field([ignore_missing(), ("pattern", text()), ("append_separator", text())])
        .needs(&["field", "pattern"])
}

impl Dissect {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let text = config.text("pattern")?;
        let pattern = Pattern::parse(&text).map_err(|reason| {
            config.unusable("pattern", format!("Unable to parse pattern: {text} Reason: {reason}"))
        })?;
        Ok(Self {
            field,
            pattern,
            separator: config.optional_text("append_separator")?.unwrap_or_default(),
            ignore_missing: config.boolean("ignore_missing", false)?,
        })
    }
}

impl Processor for Dissect {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let Some(text) = document.get_text(&self.field, self.ignore_missing)? else {
            return null(&self.field, self.ignore_missing, "cannot process it.");
        };
        let fields = self.pattern.fields(text, &self.separator).ok_or_else(|| ProcessorError::Form {
            reason: format!(
                "Unable to find match for dissect pattern: {} against source: {text}",
                self.pattern.text
            ),
        })?;
        for (path, value) in fields {
            document.set(&path, Value::String(value))?;
        }
        Ok(())
    }
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, String> {
        let none = || "Unable to find any keys or delimiters.".to_owned();
        let (start, mut rest) = text.split_once("%{").ok_or_else(none)?;
        let mut keys = Vec::new();
        loop {
            let (key, after) = rest.split_once('}').ok_or_else(none)?;
            let (delimiter, next) = match after.split_once("%{") {
                Some((delimiter, next)) => (delimiter, Some(next)),
                None => (after, None),
            };
            keys.push((Key::parse(key)?, delimiter.to_owned()));
            if keys.len() > MAX_KEYS {
                return Err(format!("it has more than [{MAX_KEYS}] keys"));
            }
            match next {
                Some(next) => rest = next,
                None => break,
            }
        }
        // The first part of a value may stand without its plus sign.
        let appended: BTreeSet<String> = keys
            .iter()
            .filter(|(key, _)| matches!(key.role, Role::Append(_)))
            .map(|(key, _)| key.name.clone())
            .collect();
        for (key, _) in &mut keys {
            if key.role == Role::Field && appended.contains(&key.name) {
                key.role = Role::Append(0);
            }
        }
        let of = |role: Role| -> Vec<&str> {
            let mut names: Vec<&str> =
                keys.iter().filter(|(key, _)| key.role == role).map(|(key, _)| key.name.as_str()).collect();
            names.sort_unstable();
            names
        };
        let (names, values) = (of(Role::Name), of(Role::Value));
        if names != values {
            let all: BTreeSet<&str> = names.into_iter().chain(values).collect();
            return Err(format!(
                "Found invalid key/reference associations: '{}' Please ensure each '*<key>' is matched with a \
                 matching '&<key>",
                all.into_iter().collect::<Vec<_>>().join(",")
            ));
        }
        Ok(Self { text: text.to_owned(), start: start.to_owned(), keys })
    }

    /// The paths and values that a text yields; `None` if it does not match the pattern.
    fn fields(&self, text: &str, separator: &str) -> Option<Vec<(String, String)>> {
        let mut rest = text.strip_prefix(self.start.as_str())?;
        let mut values: Vec<&str> = Vec::with_capacity(self.keys.len());
        while let Some((key, delimiter)) = self.keys.get(values.len()) {
            if delimiter.is_empty() {
                // Without a delimiter a key takes the rest, which leaves nothing for another one.
                values.push(rest);
                rest = "";
                continue;
            }
            let (value, after) = rest.split_once(delimiter.as_str())?;
            values.push(value);
            rest = after;
            // The same delimiter again means an empty value, or padding.
            while let Some(after) = rest.strip_prefix(delimiter.as_str()) {
                if !key.padded {
                    if values.len() == self.keys.len() {
                        break;
                    }
                    values.push("");
                }
                rest = after;
            }
        }
        Some(self.gather(&values, separator))
    }

    fn gather(&self, values: &[&str], separator: &str) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let mut appended: BTreeMap<&str, Vec<(u32, &str)>> = BTreeMap::new();
        let value_of = |role: Role, name: &str| {
            self.keys.iter().zip(values).find(|((key, _), _)| key.role == role && key.name == name)
        };
        for ((key, _), value) in self.keys.iter().zip(values) {
            match key.role {
                Role::Field => fields.push((key.name.clone(), (*value).to_owned())),
                Role::Append(place) => appended.entry(&key.name).or_default().push((place, *value)),
                Role::Name => {
                    if let Some((_, of)) = value_of(Role::Value, &key.name) {
                        fields.push(((*value).to_owned(), (*of).to_owned()));
                    }
                }
                Role::Value | Role::Skip => {}
            }
        }
        for (name, mut parts) in appended {
            parts.sort_by_key(|(place, _)| *place);
            let parts: Vec<&str> = parts.into_iter().map(|(_, part)| part).collect();
            fields.push((name.to_owned(), parts.join(separator)));
        }
        fields
    }
}

impl Key {
    fn parse(text: &str) -> Result<Self, String> {
        let refuse = |reason: &str| Err(format!("Unable to parse key: {text} Reason: {reason}"));
        let (inner, padded) = match text.strip_suffix("->") {
            Some(inner) => (inner, true),
            None => (text, false),
        };
        let first = inner.chars().next();
        let role = match first {
            None | Some('?') => Role::Skip,
            Some('+') => Role::Append(0),
            Some('*') => Role::Name,
            Some('&') => Role::Value,
            Some(_) => Role::Field,
        };
        let name = inner.strip_prefix(['?', '+', '*', '&']).unwrap_or(inner);
        if name.starts_with(['?', '+', '*', '&']) {
            return refuse("multiple modifiers are not allowed.");
        }
        let (name, role) = match (role, name.rsplit_once('/')) {
            (Role::Append(_), Some((name, place))) => match place.parse() {
                Ok(place) => (name, Role::Append(place)),
                Err(_) => return refuse("the place of an appended key has to be a number"),
            },
            _ => (name, role),
        };
        if name.is_empty() && role != Role::Skip {
            return refuse("The key name could not be determined");
        }
        Ok(Self { name: name.to_owned(), role, padded })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::Pattern;
    use crate::processors::check;

    fn dissect(pattern: &str, text: Value) -> Result<Value, String> {
        let parameters = json!({"field": "_m", "pattern": pattern, "append_separator": "-"});
        check(json!({"dissect": parameters}), json!({"_m": text})).map(|mut source| {
            source.as_object_mut().unwrap().shift_remove("_m");
            source
        })
    }

    #[test]
    fn keys_take_what_stands_between_delimiters() {
        for (pattern, text, expected) in [
            ("%{a} %{b} %{c}", "foo bar baz", json!({"a": "foo", "b": "bar", "c": "baz"})),
            ("[%{a}]%{b}", "[x]y z", json!({"a": "x", "b": "y z"})),
            ("%{a.b}:%{c}.", "1:2.", json!({"a": {"b": "1"}, "c": "2"})),
            ("%{a},%{b},%{c}", "x,,z", json!({"a": "x", "b": "", "c": "z"})),
            ("%{a->} %{b}", "x    y", json!({"a": "x", "b": "y"})),
            ("%{?skipped} %{} %{b}", "x y z", json!({"b": "z"})),
            ("%{n} %{+n} %{+n}", "x y z", json!({"n": "x-y-z"})),
            ("%{+n/2} %{+n/3} %{+n/1}", "x y z", json!({"n": "z-x-y"})),
            ("%{*k}=%{&k}", "key=value", json!({"key": "value"})),
            ("%{a}|%{b}", "ä|ö", json!({"a": "ä", "b": "ö"})),
            ("%{a}", "", json!({"a": ""})),
        ] {
            assert_eq!(dissect(pattern, json!(text)).unwrap(), expected, "{pattern}");
        }
    }

    #[test]
    fn other_texts_and_patterns_are_refused() {
        assert_eq!(
            dissect("%{a},%{b},%{c}", json!("foo bar baz")).unwrap_err(),
            "Unable to find match for dissect pattern: %{a},%{b},%{c} against source: foo bar baz"
        );
        assert!(dissect("x%{a}", json!("y")).is_err());
        assert_eq!(dissect("%{a}", Value::Null).unwrap_err(), "field [_m] is null, cannot process it.");
        for (pattern, reason) in [
            ("bad pattern", "Unable to find any keys or delimiters."),
            ("%{a", "Unable to find any keys or delimiters."),
            ("%{+}", "Unable to parse key: + Reason: The key name could not be determined"),
            ("%{+?a}", "Unable to parse key: +?a Reason: multiple modifiers are not allowed."),
            ("%{+a/x}", "Unable to parse key: +a/x Reason: the place of an appended key has to be a number"),
            (
                "%{*a} %{b}",
                "Found invalid key/reference associations: 'a' Please ensure each '*<key>' is matched with a matching '&<key>",
            ),
        ] {
            assert_eq!(
                dissect(pattern, json!("x")).unwrap_err(),
                format!("config: [pattern] Unable to parse pattern: {pattern} Reason: {reason}")
            );
        }
    }

    proptest! {
        /// A text that is built from a pattern and values is split into the same values.
        #[test]
        fn joined_values_come_apart(values in prop::collection::vec("[a-zé]{1,5}", 1..8)) {
            let pattern: Vec<String> = (0..values.len()).map(|at| format!("%{{k{at}}}")).collect();
            let parsed = Pattern::parse(&pattern.join("::")).unwrap();
            let fields = parsed.fields(&values.join("::"), "").unwrap();
            prop_assert_eq!(fields.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), values);
        }

        #[test]
        fn nothing_makes_it_fail_badly(pattern in "[%{}a+*&?/>, -]{0,20}", text in ".{0,20}") {
            if let Ok(parsed) = Pattern::parse(&pattern) {
                let _ = parsed.fields(&text, "");
            }
        }
    }
}
