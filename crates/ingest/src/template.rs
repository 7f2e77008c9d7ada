//! The subset of Mustache that ingest values use: `{{field}}` and `{{{field}}}`.

use serde_json::{Map, Value};

use super::document::Document;
use super::effort::room;
use super::error::ProcessorError;

/// How `{{field}}` escapes a value; `{{{field}}}` never escapes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Escape {
    /// As inside a JSON string; the default.
    #[default]
    Json,
    /// No escaping.
    Plain,
    /// Percent-encoded, as in a form or a URL.
    Url,
}

impl Escape {
    /// The escaping of a media type; none if it is not one that templates know.
    pub fn from_media_type(name: &str) -> Option<Self> {
        match name {
            "application/json" => Some(Self::Json),
            "text/plain" => Some(Self::Plain),
            "application/x-www-form-urlencoded" => Some(Self::Url),
            _ => None,
        }
    }
}

/// A text with placeholders for fields of a document.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Field { path: String, raw: bool },
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// The tag that is not closed, or that is one of Mustache's sections, partials or comments.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            if start > 0 {
                parts.push(Part::Text(rest[..start].to_owned()));
            }
            let raw = rest[start..].starts_with("{{{");
            let (open, close) = if raw { (3, "}}}") } else { (2, "}}") };
            let inner = &rest[start + open..];
            let Some(end) = inner.find(close) else {
                return Err(format!("template [{text}] has a tag that is not closed"));
            };
            let name = inner[..end].trim();
            let (name, raw) = match name.strip_prefix('&') {
                Some(name) => (name.trim(), true),
                None => (name, raw),
            };
            if name.is_empty() || name.starts_with(['#', '^', '/', '!', '>', '=']) {
                return Err(format!("template [{text}] uses [{name}], only fields are supported"));
            }
            parts.push(Part::Field { path: name.to_owned(), raw });
            rest = &inner[end + close.len()..];
        }
        if !rest.is_empty() || parts.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// Fills in the fields of a document; a missing field becomes an empty string.
    ///
    /// # Errors
    /// If the text would be too long.
    pub fn render(&self, document: &Document, escape: Escape) -> Result<String, ProcessorError> {
        let mut out = String::new();
        self.render_after(&mut 0, &mut out, document, escape)?;
        Ok(out)
    }

    /// Writes the text for a document; `made` counts the bytes of all texts of a value.
    fn render_after(
        &self,
        made: &mut usize,
        out: &mut String,
        document: &Document,
        escape: Escape,
    ) -> Result<(), ProcessorError> {
        let before = *made;
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Field { path, raw } => {
                    let value = match document.get(path) {
                        Ok(Value::Null) | Err(_) => continue,
                        Ok(value) => super::document::as_text(value),
                    };
                    room(*made, value.len())?;
                    push_escaped(out, &value, if *raw { Escape::Plain } else { escape });
                }
            }
            *made = before + out.len();
            room(*made, 0)?;
        }
        Ok(())
    }
}

/// A value whose strings may be templates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueTemplate {
    /// A value without templates.
    Fixed(Value),
    /// A string that is a template.
    Text(Template),
    /// A list with templates.
    List(Vec<ValueTemplate>),
    /// An object with templates in names or values.
    Object(Vec<(Template, ValueTemplate)>),
}

impl ValueTemplate {
    /// Parses the templates of a value.
    ///
    /// # Errors
    /// As [`Template::parse`].
    pub fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) if text.contains("{{") => Self::Text(Template::parse(text)?),
            Value::Array(list) => Self::List(list.iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(map) => Self::Object(
                map.iter()
                    .map(|(name, value)| Ok::<_, String>((Template::parse(name)?, Self::parse(value)?)))
                    .collect::<Result<_, _>>()?,
            ),
            other => Self::Fixed(other.clone()),
        })
    }

    /// The value for a document.
    ///
    /// # Errors
    /// If its texts would be too long.
    pub fn render(&self, document: &Document, escape: Escape) -> Result<Value, ProcessorError> {
        self.render_after(&mut 0, document, escape)
    }

    fn render_after(
        &self,
        made: &mut usize,
        document: &Document,
        escape: Escape,
    ) -> Result<Value, ProcessorError> {
        let text = |template: &Template, made: &mut usize| {
            let mut out = String::new();
            template.render_after(made, &mut out, document, escape).map(|()| out)
        };
        Ok(match self {
            Self::Fixed(value) => value.clone(),
            Self::Text(template) => Value::String(text(template, made)?),
            Self::List(list) => Value::Array(
                list.iter()
                    .map(|value| value.render_after(made, document, escape))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Object(entries) => Value::Object(
                entries
                    .iter()
                    .map(|(name, value)| Ok((text(name, made)?, value.render_after(made, document, escape)?)))
                    .collect::<Result<Map<_, _>, ProcessorError>>()?,
            ),
        })
    }
}

fn push_escaped(out: &mut String, value: &str, escape: Escape) {
    match escape {
        Escape::Plain => out.push_str(value),
        Escape::Json => {
            let quoted = Value::String(value.to_owned()).to_string();
            out.push_str(&quoted[1..quoted.len() - 1]);
        }
        Escape::Url => {
            for byte in value.bytes() {
                match byte {
                    b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => {
                        out.push(char::from(byte))
                    }
                    b' ' => out.push('+'),
                    other => out.push_str(&format!("%{other:02X}")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Escape, Template, ValueTemplate};
    use crate::document::Document;

    fn document() -> Document {
        let Value::Object(source) = json!({"name": "a \"b\"", "n": 3, "deep": {"er": "x y"}}) else {
            unreachable!()
        };
        Document { source, ..Document::default() }
    }

    #[test]
    fn fields_fill_places() {
        for (template, escape, expected) in [
            ("plain", Escape::Json, "plain"),
            ("{{n}}-{{{ deep.er }}}", Escape::Json, "3-x y"),
            ("{{name}}|{{{name}}}|{{&name}}", Escape::Json, "a \\\"b\\\"|a \"b\"|a \"b\""),
            ("{{name}}", Escape::Plain, "a \"b\""),
            ("{{deep.er}}", Escape::Url, "x+y"),
            ("[{{missing}}]", Escape::Json, "[]"),
        ] {
            assert_eq!(
                Template::parse(template).unwrap().render(&document(), escape).unwrap(),
                expected,
                "{template}"
            );
        }
    }

    #[test]
    fn sections_and_open_tags_are_refused() {
        for template in ["{{#list}}x{{/list}}", "{{open", "{{{open}}", "{{}}"] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }

    #[test]
    fn values_keep_their_types() {
        let value = ValueTemplate::parse(&json!({"k": ["{{n}}", 1, true]})).unwrap();
        assert_eq!(value.render(&document(), Escape::Json).unwrap(), json!({"k": ["3", 1, true]}));
    }
}
