//! The processor `csv`: splits a line of comma-separated values into fields.

use serde_json::Value;

use super::null;
use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, any, flag, ignore_missing, of_field, several, text};

/// Cuts a line into values.
#[derive(Debug)]
pub(crate) struct Csv {
    field: String,
    targets: Vec<String>,
    separator: char,
    quote: char,
    trim: bool,
    ignore_missing: bool,
    /// The value that is set for an empty one; `None` leaves the field unset.
    empty_value: Option<Value>,
}

pub(super) fn csv_shape() -> Shape {
    of_field([
        ignore_missing(),
        ("target_fields", several(text())),
        ("separator", text().preset(",")),
        ("quote", text().preset("\"")),
        ("trim", flag()),
        ("empty_value", any()),
    ])
    .needs(&["field", "target_fields"])
}

impl Csv {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let targets =
            config.optional_texts("target_fields")?.ok_or_else(|| config.missing("target_fields"))?;
        if targets.is_empty() {
            return Err(config.unusable("target_fields", "target fields list can't be empty"));
        }
        Ok(Self {
            field,
            targets,
            quote: character(config, "quote", '"', "quote has to be single character like \" or '")?,
            separator: character(
                config,
                "separator",
                ',',
                "separator has to be single character like , or ;",
            )?,
            trim: config.boolean("trim", false)?,
            ignore_missing: config.boolean("ignore_missing", false)?,
            empty_value: config.optional("empty_value"),
        })
    }

    /// The values of a line, at most as many as there are target fields.
    fn values(&self, line: &str) -> Result<Vec<String>, ProcessorError> {
        let mut values = Vec::new();
        let mut rest = Rest { chars: line.chars().peekable(), at: 0 };
        loop {
            let (value, more) = self.value(&mut rest)?;
            values.push(value);
            if !more || values.len() == self.targets.len() {
                return Ok(values);
            }
        }
    }

    /// The next value, and whether a separator follows it.
    fn value(&self, rest: &mut Rest<'_>) -> Result<(String, bool), ProcessorError> {
        if self.trim {
            rest.skip_blanks();
        }
        let mut value = String::new();
        if rest.chars.peek() != Some(&self.quote) {
            while let Some(next) = rest.next() {
                if next == self.separator {
                    return Ok((self.trimmed(value), true));
                }
                if next == self.quote || matches!(next, '\n' | '\r') {
                    return Err(form(format!("Illegal character inside unquoted field at {}", rest.at - 1)));
                }
                value.push(next);
            }
            return Ok((self.trimmed(value), false));
        }
        rest.next();
        loop {
            match rest.next() {
                Some(next) if next == self.quote && rest.chars.peek() == Some(&self.quote) => {
                    rest.next();
                    value.push(next);
                }
                Some(next) if next == self.quote => break,
                Some(next) => value.push(next),
                None => return Err(form("Unmatched quote".into())),
            }
        }
        if self.trim {
            rest.skip_blanks();
        }
        match rest.next() {
            None => Ok((value, false)),
            Some(next) if next == self.separator => Ok((value, true)),
            Some(next) => Err(form(format!("character '{next}' after quoted field at {}", rest.at - 1))),
        }
    }

    fn trimmed(&self, value: String) -> String {
        if self.trim { value.trim_matches(BLANKS).to_owned() } else { value }
    }
}

impl Processor for Csv {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let Some(line) = document.get_text(&self.field, self.ignore_missing)? else {
            return null(&self.field, self.ignore_missing, "cannot process it.");
        };
        for (target, value) in self.targets.iter().zip(self.values(line)?) {
            match (&self.empty_value, value.is_empty()) {
                (_, false) => document.set(target, Value::String(value))?,
                (Some(empty), true) => document.set(target, empty.clone())?,
                (None, true) => {}
            }
        }
        Ok(())
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

/// The part of a line that has not been read.
struct Rest<'l> {
    chars: std::iter::Peekable<std::str::Chars<'l>>,
    /// Characters that were read.
    at: usize,
}

impl Rest<'_> {
    fn next(&mut self) -> Option<char> {
        self.at += 1;
        self.chars.next()
    }

    fn skip_blanks(&mut self) {
        while self.chars.next_if(|next| BLANKS.contains(next)).is_some() {
            self.at += 1;
        }
    }
}

fn form(reason: String) -> ProcessorError {
    ProcessorError::Form { reason }
}

fn character(config: &mut Config, name: &str, default: char, rule: &str) -> Result<char, ConfigError> {
    let Some(text) = config.optional_text(name)? else { return Ok(default) };
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(one), None) => Ok(one),
        _ => Err(config.unusable(name, rule)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::processors::check;

    fn csv(parameters: Value, line: Value) -> Result<Value, String> {
        let mut parameters = parameters;
        parameters["field"] = json!("l");
        parameters["target_fields"] = json!(["a", "b", "c"]);
        check(json!({"csv": parameters}), json!({"l": line})).map(|mut source| {
            source.as_object_mut().unwrap().shift_remove("l");
            source
        })
    }

    #[test]
    fn values_become_fields() {
        for (parameters, line, expected) in [
            (json!({}), "x,y,z", json!({"a": "x", "b": "y", "c": "z"})),
            (json!({}), "x,y", json!({"a": "x", "b": "y"})),
            (json!({}), "x,y,z,\"", json!({"a": "x", "b": "y", "c": "z"})),
            (json!({}), "x,,z", json!({"a": "x", "c": "z"})),
            (json!({"empty_value": 0}), "x,\"\",", json!({"a": "x", "b": 0, "c": 0})),
            (json!({}), "\"x,\"\"1\"\"\",y", json!({"a": "x,\"1\"", "b": "y"})),
            (
                json!({"quote": "'", "separator": ";"}),
                "'b;b';d,d;'e''e'",
                json!({"a": "b;b", "b": "d,d", "c": "e'e"}),
            ),
            (
                json!({"trim": true, "quote": "'"}),
                "  aa, b b ,\t'c ' ",
                json!({"a": "aa", "b": "b b", "c": "c "}),
            ),
            (json!({}), " x , y", json!({"a": " x ", "b": " y"})),
            (json!({}), "", json!({})),
        ] {
            assert_eq!(csv(parameters, json!(line)).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn malformed_lines_are_refused() {
        for (line, message) in [
            (json!("x,\"y"), "Unmatched quote"),
            (json!("x\"y"), "Illegal character inside unquoted field at 1"),
            (json!("x\ny"), "Illegal character inside unquoted field at 1"),
            (json!("\"x\" ,y"), "character ' ' after quoted field at 3"),
            (Value::Null, "field [l] is null, cannot process it."),
            (json!(1), "field [l] of type [java.lang.Integer] cannot be cast to [java.lang.String]"),
        ] {
            assert_eq!(csv(json!({}), line).unwrap_err(), message);
        }
        assert_eq!(csv(json!({"ignore_missing": true}), Value::Null).unwrap(), json!({}));
        for (parameters, message) in [
            (json!({"quote": "ab"}), "config: [quote] quote has to be single character like \" or '"),
            (
                json!({"separator": ""}),
                "config: [separator] separator has to be single character like , or ;",
            ),
        ] {
            assert_eq!(csv(parameters, json!("")).unwrap_err(), message);
        }
        assert_eq!(
            check(json!({"csv": {"field": "l", "target_fields": []}}), json!({})).unwrap_err(),
            "config: [target_fields] target fields list can't be empty"
        );
    }
}
