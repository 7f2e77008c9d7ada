//! `uri_parts`: a URI becomes an object of its parts.

use serde_json::{Map, Value};

use super::null;
use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, flag, ignore_missing, of_field, target};

/// Takes a URI apart.
#[derive(Debug)]
pub(crate) struct UriParts {
    field: String,
    target: String,
    remove: bool,
    keep_original: bool,
    ignore_missing: bool,
}

pub(super) fn uri_parts_shape() -> Shape {
    of_field([
        target(),
        ignore_missing(),
        ("keep_original", flag().preset(true)),
        ("remove_if_successful", flag()),
    ])
}

impl UriParts {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        Ok(Self {
            field: config.field("field")?,
            target: config.target_field("url")?,
            remove: config.boolean("remove_if_successful", false)?,
            keep_original: config.boolean("keep_original", true)?,
            ignore_missing: config.boolean("ignore_missing", false)?,
        })
    }
}

impl Processor for UriParts {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let Some(text) = document.get_text(&self.field, self.ignore_missing)? else {
            return null(&self.field, self.ignore_missing, "cannot process it.");
        };
        let mut parts = parts(text)
            .ok_or_else(|| ProcessorError::Form { reason: format!("unable to parse URI [{text}]") })?;
        if self.keep_original {
            parts.insert("original".into(), Value::String(text.to_owned()));
        }
        if self.remove && self.field != self.target {
            document.remove(&self.field)?;
        }
        document.set(&self.target, Value::Object(parts))
    }
}

/// Splits a URI into its parts, named as in the Elastic Common Schema; `None` if the text is not a URI.
fn parts(text: &str) -> Option<Map<String, Value>> {
    if text.is_empty()
        || text.contains(|c: char| c.is_control() || c.is_whitespace() || "<>\"{}|\\^`".contains(c))
    {
        return None;
    }
    let mut parts = Map::new();
    let mut put = |name: &str, value: &str| {
        parts.insert(name.to_owned(), Value::String(value.to_owned()));
    };
    let (rest, fragment) = match text.split_once('#') {
        Some((rest, fragment)) => (rest, Some(fragment)),
        None => (text, None),
    };
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
        Some((before, _)) if !before.contains('/') => return None,
        _ => (None, rest),
    };
    let mut port = None;
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (user, host) = match authority.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, authority),
            };
            let host = match host.rsplit_once(':') {
                // A colon within brackets is part of an IPv6 address.
                Some((host, digits)) if !digits.contains(']') => {
                    if !digits.is_empty() {
                        port = Some(digits.parse::<u16>().ok()?);
                    }
                    host
                }
                _ => host,
            };
            put("domain", host);
            if let Some(user) = user {
                put("user_info", &decoded(user)?);
                if let Some((name, password)) = user.split_once(':') {
                    put("username", &decoded(name)?);
                    put("password", &decoded(password)?);
                }
            }
            path
        }
    };
    put("path", &decoded(path)?);
    if let Some((_, extension)) = path.rsplit('/').next().and_then(|last| last.rsplit_once('.'))
        && path.contains('/')
    {
        put("extension", &decoded(extension)?);
    }
    for (name, value) in [("scheme", scheme), ("query", query), ("fragment", fragment)] {
        if let Some(value) = value {
            put(name, &decoded(value)?);
        }
    }
    if let Some(port) = port {
        parts.insert("port".into(), port.into());
    }
    Some(parts)
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Percent-decodes a text; `None` if a percent sign is not followed by two hexadecimal digits.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::processors::check;

    fn url(text: &str) -> Result<Value, String> {
        let processor = json!({"uri_parts": {"field": "u", "keep_original": false}});
        check(processor, json!({"u": text})).map(|source| source["url"].clone())
    }

    #[test]
    fn parts_are_named() {
        for (text, expected) in [
            (
                "https://user:pw@testing.google.com:8080/foo/bar.txt?foo1=bar1&foo2=bar2#anchorVal",
                json!({"scheme": "https", "domain": "testing.google.com", "fragment": "anchorVal",
                       "path": "/foo/bar.txt", "port": 8080, "username": "user", "password": "pw",
                       "user_info": "user:pw", "query": "foo1=bar1&foo2=bar2", "extension": "txt"}),
            ),
            ("http://[::1]/a%20b", json!({"scheme": "http", "domain": "[::1]", "path": "/a b"})),
            ("mailto:me@example.org", json!({"scheme": "mailto", "path": "me@example.org"})),
            ("/a.b/c", json!({"path": "/a.b/c"})),
            (
                "http://x?q#",
                json!({"scheme": "http", "domain": "x", "path": "", "query": "q", "fragment": ""}),
            ),
        ] {
            assert_eq!(url(text).unwrap(), expected, "{text}");
        }
        let processor =
            json!({"uri_parts": {"field": "u", "remove_if_successful": true, "target_field": "o"}});
        assert_eq!(
            check(processor, json!({"u": "/x"})).unwrap(),
            json!({"o": {"path": "/x", "original": "/x"}})
        );
    }

    #[test]
    fn what_is_no_uri_is_refused() {
        for text in ["", "not a uri", "http://x:99999/", "http://x/%zz", "1:2", "a\u{0}"] {
            assert_eq!(url(text).unwrap_err(), format!("unable to parse URI [{text}]"));
        }
    }
}
