//! Methods of strings.

use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest as _;

use super::{Found, int, length, text};
use crate::error::Fault;
use crate::machine::{Run, count};
use crate::regexes::Pattern;
use crate::types::Type;
use crate::value::Value;
use crate::value::collection::Form;
use crate::value::object::{Kept, Object};
use crate::value::text::Text;

impl Run<'_> {
    pub(super) fn string_method(&mut self, own: &Rc<Text>, name: &str, arguments: &[Value]) -> Found {
        // Looking for something and copying something costs as much as the text is long.
        match name {
            "length" | "charAt" | "isEmpty" => {}
            _ => self.tick_text(own.len())?,
        }
        let result = match (name, arguments) {
            ("length", []) => count(own.length()),
            ("isEmpty", []) => Value::Bool(own.is_empty()),
            ("isBlank", []) => Value::Bool(own.trim().is_empty()),
            ("charAt", [at]) => {
                let at = int(at)?;
                let unit = usize::try_from(at).ok().and_then(|at| own.unit(at));
                Value::Char(unit.ok_or_else(|| {
                    outside(format!("Index {at} out of bounds for length {}", own.length()))
                })?)
            }
            ("codePointAt", [at]) => {
                let at = int(at)?;
                let byte = usize::try_from(at).ok().filter(|at| *at < own.length()).map(|at| own.byte_at(at));
                let char = byte.and_then(|byte| own[byte..].chars().next());
                Value::Int(
                    char.ok_or_else(|| {
                        outside(format!("Index {at} out of bounds for length {}", own.length()))
                    })? as i32,
                )
            }
            ("substring", [from]) => self.part(own, int(from)?, own.length())?,
            ("substring" | "subSequence", [from, to]) => {
                let to = int(to)?;
                match usize::try_from(to) {
                    Ok(end) => self.part(own, int(from)?, end)?,
                    Err(_) => {
                        return Err(outside(format!(
                            "begin {}, end {to}, length {}",
                            int(from)?,
                            own.length()
                        )));
                    }
                }
            }
            ("indexOf", [what]) => position(own, own.find(&**needle(what)?)),
            ("indexOf", [what, from]) => {
                let from = own.byte_at(usize::try_from(int(from)?).unwrap_or_default());
                position(own, own[from..].find(&**needle(what)?).map(|at| at + from))
            }
            ("lastIndexOf", [what]) => position(own, own.rfind(&**needle(what)?)),
            ("lastIndexOf", [what, from]) => {
                let what = needle(what)?;
                match usize::try_from(int(from)?) {
                    Err(_) => Value::Int(-1),
                    Ok(from) => {
                        let end = (own.byte_at(from) + what.len()).min(own.len());
                        let end =
                            (end..=own.len()).find(|end| own.is_char_boundary(*end)).unwrap_or(own.len());
                        position(own, own[..end].rfind(&**what))
                    }
                }
            }
            ("contains", [what]) => Value::Bool(own.contains(&**text(what)?)),
            ("startsWith", [what]) => Value::Bool(own.starts_with(&**text(what)?)),
            ("startsWith", [what, from]) => {
                let from = usize::try_from(int(from)?).unwrap_or(usize::MAX);
                Value::Bool(from <= own.length() && own[own.byte_at(from)..].starts_with(&**text(what)?))
            }
            ("endsWith", [what]) => Value::Bool(own.ends_with(&**text(what)?)),
            ("equalsIgnoreCase", [Value::Null]) => Value::Bool(false),
            ("equalsIgnoreCase", [other]) => {
                let other = text(other)?;
                Value::Bool(own.eq_ignore_ascii_case(&other) || own.to_lowercase() == other.to_lowercase())
            }
            ("compareToIgnoreCase", [other]) => {
                let (a, b) = (own.to_lowercase(), text(other)?.to_lowercase());
                Value::Int(difference(&a, &b))
            }
            ("compareTo", [other]) => Value::Int(difference(own, &text(other)?)),
            ("concat", [other]) => {
                let other = text(other)?;
                self.room(own.len() + other.len())?;
                self.text([&**own, &**other].concat())?
            }
            ("repeat", [times]) => {
                let times = length(times)?;
                self.room(own.len().saturating_mul(times))?;
                self.text(own.repeat(times))?
            }
            ("replace", [what, by]) => self.replaced(own, &text(what)?, &text(by)?)?,
            ("toLowerCase", [] | [_]) => self.text(own.to_lowercase())?,
            ("toUpperCase", [] | [_]) => self.text(own.to_uppercase())?,
            ("trim", []) => self.text(own.trim_matches(|char| char <= ' ').to_owned())?,
            ("strip", []) => self.text(own.trim().to_owned())?,
            ("stripLeading", []) => self.text(own.trim_start().to_owned())?,
            ("stripTrailing", []) => self.text(own.trim_end().to_owned())?,
            ("intern" | "toString", []) => Value::Text(Rc::clone(own)),
            ("chars", []) => {
                self.room(own.len() * size_of::<Value>())?;
                self.tick(own.len() / 8)?;
                let units = own.encode_utf16().map(|unit| Value::Int(i32::from(unit))).collect();
                Object::Stream(Kept::new(units), Some("int")).into()
            }
            ("toCharArray", []) => {
                self.room(own.len() * size_of::<Value>())?;
                self.tick(own.len() / 8)?;
                let units = own.encode_utf16().map(Value::Char).collect();
                Value::Listed(units, Form::Array(Type::plain("char")))
            }
            ("splitOnToken", [token]) => self.split_on(own, &text(token)?, 0)?,
            ("splitOnToken", [token, limit]) => self.split_on(own, &text(token)?, int(limit)?)?,
            ("split", [pattern]) => {
                let pattern = self.pattern_of(pattern)?;
                self.split(&pattern, own, 0)?
            }
            ("split", [pattern, limit]) => {
                let pattern = self.pattern_of(pattern)?;
                self.split(&pattern, own, int(limit)?)?
            }
            ("matches", [pattern]) => {
                let pattern = self.pattern_of(pattern)?;
                self.tick(own.len() / 16)?;
                Value::Bool(pattern.whole.is_match(own))
            }
            ("replaceAll" | "replaceFirst", [pattern, by]) => {
                let pattern = self.pattern_of(pattern)?;
                self.replace_matches(&pattern, own, by, name == "replaceAll")?
            }
            ("encodeBase64", []) => self.text(STANDARD.encode(own.as_bytes()))?,
            ("decodeBase64", []) => {
                let bytes =
                    STANDARD.decode(own.as_bytes()).map_err(|error| Fault::illegal(error.to_string()))?;
                self.text(String::from_utf8_lossy(&bytes).into_owned())?
            }
            ("sha256", []) => {
                let digest = sha2::Sha256::digest(own.as_bytes());
                self.text(digest.iter().map(|byte| format!("{byte:02x}")).collect())?
            }
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    /// The part of a text between two positions.
    pub(super) fn part(&mut self, own: &Rc<Text>, from: i32, to: usize) -> Result<Value, Fault> {
        let length = own.length();
        match usize::try_from(from) {
            Ok(begin) if begin <= to && to <= length => self.text(own.part(begin, to)),
            _ => Err(outside(format!("begin {from}, end {to}, length {length}"))),
        }
    }

    fn replaced(&mut self, own: &str, what: &str, by: &str) -> Result<Value, Fault> {
        let times = own.matches(what).count();
        self.room((own.len() + times.saturating_mul(by.len())).saturating_sub(times * what.len()))?;
        self.text(own.replace(what, by))
    }

    fn split_on(&mut self, own: &str, token: &str, limit: i32) -> Result<Value, Fault> {
        if token.is_empty() {
            return self.strings(vec![own.to_owned()]);
        }
        let count = own.matches(token).count() + 1;
        self.room(own.len() + count.saturating_mul(100))?;
        self.tick(count)?;
        let parts: Vec<String> = match usize::try_from(limit) {
            Ok(limit) if limit > 0 => own.splitn(limit, token).map(str::to_owned).collect(),
            _ => own.split(token).map(str::to_owned).collect(),
        };
        // As Elasticsearch has it: what is empty at the end is kept, unlike `split`.
        self.strings(parts)
    }

    /// An array of strings.
    pub(super) fn strings(&mut self, parts: Vec<String>) -> Result<Value, Fault> {
        self.room(parts.iter().map(|part| part.len() + 100).sum())?;
        self.tick(parts.len())?;
        let parts = parts.into_iter().map(Value::text).collect();
        Ok(Value::Listed(parts, Form::Array(Type::plain("String"))))
    }

    /// The parts of a text between the matches of a pattern, as Java gives them.
    pub(super) fn split(&mut self, pattern: &Pattern, own: &str, limit: i32) -> Result<Value, Fault> {
        self.tick(1 + own.len() / 16)?;
        let most = usize::try_from(limit).unwrap_or_default();
        let (mut parts, mut from) = (Vec::new(), 0);
        for found in pattern.regex.find_iter(own) {
            if most > 0 && parts.len() + 1 == most {
                break;
            }
            if found.end() == 0 || found.is_empty() && found.start() == own.len() {
                continue;
            }
            // Each match may have looked at all of the rest.
            self.tick(1 + (own.len() - from) / 4096)?;
            self.room(parts.len() * 2 * size_of::<String>())?;
            parts.push(own[from..found.start()].to_owned());
            from = found.end();
        }
        if parts.is_empty() {
            return self.strings(vec![own.to_owned()]);
        }
        parts.push(own[from..].to_owned());
        if limit == 0 {
            while parts.last().is_some_and(String::is_empty) {
                parts.pop();
            }
        }
        self.strings(parts)
    }

    /// A pattern, or the text of one.
    pub(super) fn pattern_of(&mut self, value: &Value) -> Result<Pattern, Fault> {
        if let Value::Object(object) = value
            && let Object::Pattern(pattern) = &**object
        {
            return Ok(pattern.clone());
        }
        let source = text(value)?;
        self.pattern(&source, "")
    }

    /// Replaces the matches of a pattern by a text with `$1`, or by what a function makes of a matcher.
    pub(super) fn replace_matches(
        &mut self,
        pattern: &Pattern,
        own: &Rc<Text>,
        by: &Value,
        all: bool,
    ) -> Result<Value, Fault> {
        self.tick(1 + own.len() / 16)?;
        let mut out = String::new();
        let mut from = 0;
        for captures in pattern.regex.captures_iter(own) {
            let Some(whole) = captures.get(0) else { break };
            self.tick(1)?;
            self.room(out.len() + own.len())?;
            out.push_str(&own[from..whole.start()]);
            from = whole.end();
            match by {
                Value::Text(template) => {
                    let mut dollars = template.chars().peekable();
                    while let Some(char) = dollars.next() {
                        match char {
                            '\\' => out.extend(dollars.next()),
                            '$' => {
                                let group = dollars.next().and_then(|digit| digit.to_digit(10));
                                let group =
                                    group.ok_or_else(|| Fault::illegal("Illegal group reference"))? as usize;
                                if group >= captures.len() {
                                    return Err(Fault::index(format!("No group {group}"), captures.len()));
                                }
                                let group = captures.get(group).map_or("", |group| group.as_str());
                                self.tick_text(group.len())?;
                                self.room(out.len() + group.len())?;
                                out.push_str(group);
                            }
                            other => out.push(other),
                        }
                    }
                }
                function => {
                    let matcher =
                        super::objects::matcher(pattern, &Value::Text(Rc::clone(own)), Some(&captures));
                    let replacement = self.invoke(function, &[matcher])?;
                    self.show(&replacement, &mut out, 0)?;
                }
            }
            if !all {
                break;
            }
        }
        self.room(out.len() + own.len())?;
        out.push_str(&own[from..]);
        self.text(out)
    }
}

pub(super) fn outside(reason: String) -> Fault {
    Fault::new("string_index_out_of_bounds_exception", reason)
}

/// What `indexOf` looks for: a text, or the number of a character.
fn needle(value: &Value) -> Result<Rc<Text>, Fault> {
    match value {
        Value::Int(point) => {
            let char = u32::try_from(*point).ok().and_then(char::from_u32);
            Ok(Text::new(char.map(String::from).unwrap_or_else(|| "\u{fffd}".into())))
        }
        other => text(other),
    }
}

fn position(own: &Text, byte: Option<usize>) -> Value {
    byte.map_or(Value::Int(-1), |byte| count(own.position(byte)))
}

/// Java's `compareTo`: the difference of the first units that differ, or of the lengths.
fn difference(a: &str, b: &str) -> i32 {
    let (mut left, mut right) = (a.encode_utf16(), b.encode_utf16());
    loop {
        match (left.next(), right.next()) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return i32::from(a) - i32::from(b),
            (None, None) => return 0,
            (Some(_), None) => return i32::try_from(left.count() + 1).unwrap_or(i32::MAX),
            (None, Some(_)) => return -i32::try_from(right.count() + 1).unwrap_or(i32::MAX),
        }
    }
}
