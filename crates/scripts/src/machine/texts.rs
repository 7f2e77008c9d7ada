//! Texts of values, whether values are equal, in what order they are, and keys.

use std::cmp::Ordering;
use std::fmt::Write;
use std::rc::Rc;
use std::slice::from_ref;

use super::{Run, numbers};
use crate::error::Fault;
use crate::value::Value;
use crate::value::collection::Key;
use crate::value::object::{Kept, Object};

/// Deepest nesting of collections that is looked at.
const MOST_LEVELS: usize = 100;

impl Run<'_> {
    /// The text of a value.
    pub(crate) fn shown(&mut self, value: &Value) -> Result<String, Fault> {
        let mut text = String::new();
        self.show(value, &mut text, 0)?;
        Ok(text)
    }

    /// Appends the text of a value.
    pub(crate) fn show(&mut self, value: &Value, out: &mut String, depth: usize) -> Result<(), Fault> {
        // Writing to a string cannot fail.
        match value {
            Value::Null => out.push_str("null"),
            Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Value::Char(unit) => out.push_str(&String::from_utf16_lossy(&[*unit])),
            Value::Int(int) => _ = write!(out, "{int}"),
            Value::Float(float) => out.push_str(&java_f32(*float)),
            Value::Double(double) => out.push_str(&java_f64(*double)),
            Value::Text(text) => {
                self.room(out.len() + text.len())?;
                self.tick_text(text.len())?;
                out.push_str(text);
            }
            Value::Byte(_) | Value::Short(_) | Value::Long(_) => {
                _ = write!(out, "{}", value.as_i64().unwrap_or_default());
            }
            Value::List(_) | Value::Set(_) | Value::Map(_) | Value::Doc(_) => {
                self.show_all(value, out, depth)?
            }
            Value::Object(object) => match &**object {
                Object::Named("ZoneOffset", _) => out.push('Z'),
                Object::Named(_, name) => out.push_str(name),
                Object::Builder(builder) => {
                    self.room(out.len() + builder.text().len())?;
                    self.tick_text(builder.text().len())?;
                    out.push_str(&builder.text());
                }
                Object::Pattern(pattern) => out.push_str(&pattern.source),
                Object::Moment(moment) => out.push_str(&moment.to_string()),
                Object::Span(nanos) => out.push_str(&crate::value::moment::span_text(*nanos)),
                Object::Entry { key, value, .. } => {
                    if depth > MOST_LEVELS {
                        return Err(Fault::bare("stack_overflow_error"));
                    }
                    let value = value.first().unwrap_or_default();
                    self.show(&key.to_value(), out, depth + 1)?;
                    out.push('=');
                    self.show(&value, out, depth + 1)?;
                }
                Object::View(..) => self.show_all(value, out, depth)?,
                Object::Optional(kept) => match kept.first() {
                    None => out.push_str("Optional.empty"),
                    Some(_) if depth > MOST_LEVELS => return Err(Fault::bare("stack_overflow_error")),
                    Some(inner) => {
                        out.push_str("Optional[");
                        self.show(&inner, out, depth + 1)?;
                        out.push(']');
                    }
                },
                Object::Exception(class, reason) => {
                    _ = write!(out, "java.lang.{class}");
                    if let Some(reason) = reason {
                        _ = write!(out, ": {reason}");
                    }
                }
                Object::Zone(zone) => out.push_str(&zone.name),
                Object::Format { source, .. } => out.push_str(source),
                _ => out.push_str(value.class_name()),
            },
        }
        Ok(())
    }

    /// Appends the text of a collection: `[a, b]` or `{a=b}`.
    fn show_all(&mut self, value: &Value, out: &mut String, depth: usize) -> Result<(), Fault> {
        if depth > MOST_LEVELS {
            return Err(Fault::bare("stack_overflow_error"));
        }
        let itself = |element: &Value| element.is_same(value);
        if let Value::Map(table) = value {
            out.push('{');
            for at in 0..table.len() {
                let Some((key, element)) = table.at(at) else { break };
                self.tick(1)?;
                self.room(out.len())?;
                out.push_str(if at == 0 { "" } else { ", " });
                self.show(&key.to_value(), out, depth + 1)?;
                out.push('=');
                match itself(&element) {
                    true => out.push_str("(this Map)"),
                    false => self.show(&element, out, depth + 1)?,
                }
            }
            out.push('}');
            return Ok(());
        }
        out.push('[');
        for (at, element) in self.items(value)?.iter().enumerate() {
            self.room(out.len())?;
            out.push_str(if at == 0 { "" } else { ", " });
            match itself(element) {
                true => out.push_str("(this Collection)"),
                false => self.show(element, out, depth + 1)?,
            }
        }
        out.push(']');
        Ok(())
    }

    /// `==`: numbers are compared whatever their types.
    pub(crate) fn equal(&mut self, a: &Value, b: &Value) -> Result<bool, Fault> {
        match numbers::equal(a, b) {
            Some(equal) => Ok(equal),
            None => self.equals(a, b, 0),
        }
    }

    /// `equals`, for which an int never equals a long.
    pub(crate) fn equals(&mut self, a: &Value, b: &Value, depth: usize) -> Result<bool, Fault> {
        if a.is_same(b) {
            return Ok(true);
        }
        Ok(match (a, b) {
            (Value::Text(a), Value::Text(b)) => {
                self.tick(a.len().min(b.len()) / 256)?;
                ***a == ***b
            }
            (Value::Doc(a), Value::Doc(b)) => Rc::ptr_eq(a, b),
            (Value::List(_) | Value::Doc(_), Value::List(_) | Value::Doc(_)) => {
                let (a, b) = (self.items(a)?, self.items(b)?);
                a.len() == b.len() && self.all_equal(a.iter().zip(&b), depth)?
            }
            (Value::Set(a), Value::Set(b)) => {
                self.tick(1 + a.len())?;
                a.len() == b.len() && a.pairs().iter().all(|(key, _)| b.contains(key))
            }
            (Value::Map(a), Value::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                let pairs: Vec<(Value, Option<Value>)> =
                    a.pairs().into_iter().map(|(key, value)| (value, b.get(&key))).collect();
                self.tick(1 + pairs.len())?;
                let pairs: Option<Vec<(Value, Value)>> =
                    pairs.into_iter().map(|(a, b)| Some((a, b?))).collect();
                match pairs {
                    Some(pairs) => self.all_equal(pairs.iter().map(|(a, b)| (a, b)), depth)?,
                    None => false,
                }
            }
            (Value::Object(x), Value::Object(y)) => match (&**x, &**y) {
                (Object::Moment(a), Object::Moment(b)) => a == b,
                (Object::Span(a), Object::Span(b)) => a == b,
                (Object::Named(a, b), Object::Named(c, d)) => a == c && b == d,
                (Object::Zone(a), Object::Zone(b)) => a == b,
                (Object::Entry { key: a, value: v, .. }, Object::Entry { key: b, value: w, .. }) => {
                    let (v, w) = (v.first().unwrap_or_default(), w.first().unwrap_or_default());
                    a == b && self.all_equal(std::iter::once((&v, &w)), depth)?
                }
                (Object::Optional(a), Object::Optional(b)) => match (a.first(), b.first()) {
                    (Some(a), Some(b)) => self.all_equal(std::iter::once((&a, &b)), depth)?,
                    (a, b) => a.is_none() && b.is_none(),
                },
                (Object::View(..), Object::View(..)) => {
                    let (a, b) = (self.items(a)?, self.items(b)?);
                    a.len() == b.len() && self.all_equal(a.iter().zip(&b), depth)?
                }
                _ => false,
            },
            _ if a.is_null() || b.is_null() => a.is_null() && b.is_null(),
            _ => {
                a.class_name() == b.class_name()
                    && Self::plain_key(a).is_some_and(|key| Some(key) == Self::plain_key(b))
            }
        })
    }

    fn all_equal<'v>(
        &mut self,
        pairs: impl Iterator<Item = (&'v Value, &'v Value)>,
        depth: usize,
    ) -> Result<bool, Fault> {
        if depth > MOST_LEVELS {
            return Err(Fault::bare("stack_overflow_error"));
        }
        for (a, b) in pairs {
            self.tick(1)?;
            if !self.equals(a, b, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn plain_key(value: &Value) -> Option<Key> {
        match value {
            Value::Bool(_) => Some(Key::Plain(value.clone())),
            _ => value.as_f64().map(|_| Key::Plain(value.clone())),
        }
    }

    /// A value as a key of a map or an element of a set.
    pub(crate) fn key(&mut self, value: &Value) -> Result<Key, Fault> {
        if let Value::Text(text) = value {
            self.tick(text.len() / 256)?;
            return Ok(Key::Text(Rc::clone(text)));
        }
        if value.is_null() {
            return Ok(Key::Plain(Value::Null));
        }
        if let Some(key) = Self::plain_key(value) {
            return Ok(key);
        }
        let mut text = String::new();
        self.canonical(value, &mut text, 0)?;
        crate::value::text::hold(text.capacity().cast_signed());
        Ok(Key::Deep(Rc::new((text, value.clone()))))
    }

    /// Appends a text that only equal values have.
    fn canonical(&mut self, value: &Value, out: &mut String, depth: usize) -> Result<(), Fault> {
        if depth > MOST_LEVELS {
            return Err(Fault::bare("stack_overflow_error"));
        }
        self.tick(1)?;
        self.room(out.len())?;
        match value {
            Value::Text(text) => {
                self.tick_text(text.len())?;
                _ = write!(out, "s{}:{}", text.len(), &***text);
            }
            Value::Map(table) => {
                let entries = table.pairs();
                let mut parts = Vec::with_capacity(entries.len());
                for (key, value) in entries {
                    let mut part = String::new();
                    self.canonical(&key.to_value(), &mut part, depth + 1)?;
                    self.canonical(&value, &mut part, depth + 1)?;
                    parts.push(part);
                }
                parts.sort_unstable();
                _ = write!(out, "m{}:{}", parts.len(), parts.concat());
            }
            Value::Set(table) => {
                let keys: Vec<Value> = table.keys();
                let mut parts = Vec::with_capacity(keys.len());
                for key in keys {
                    let mut part = String::new();
                    self.canonical(&key, &mut part, depth + 1)?;
                    parts.push(part);
                }
                parts.sort_unstable();
                _ = write!(out, "h{}:{}", parts.len(), parts.concat());
            }
            Value::List(_) | Value::Doc(_) => {
                let items = self.items(value)?;
                _ = write!(out, "l{}:", items.len());
                for item in items {
                    self.canonical(&item, out, depth + 1)?;
                }
            }
            other => {
                out.push_str(other.class_name());
                match other {
                    // Functions and the like equal only themselves.
                    Value::Object(object)
                        if !matches!(
                            **object,
                            Object::Moment(_)
                                | Object::Span(_)
                                | Object::Named(..)
                                | Object::Zone(_)
                                | Object::Entry { .. }
                        ) =>
                    {
                        _ = write!(out, "@{:p}", Rc::as_ptr(object));
                    }
                    _ => self.show(other, out, depth + 1)?,
                }
                out.push(';');
            }
        }
        Ok(())
    }

    /// The natural order of two values.
    pub(crate) fn compare(&mut self, a: &Value, b: &Value) -> Result<Ordering, Fault> {
        self.tick(1)?;
        Ok(match (a, b) {
            (Value::Text(a), Value::Text(b)) => {
                self.tick(a.len().min(b.len()) / 256)?;
                // Java compares UTF-16 units, which differs only behind the basic plane.
                match a.is_ascii() && b.is_ascii() {
                    true => a.as_bytes().cmp(b.as_bytes()),
                    false => a.encode_utf16().cmp(b.encode_utf16()),
                }
            }
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Object(x), Value::Object(y)) => match (&**x, &**y) {
                (Object::Moment(a), Object::Moment(b)) => a.order(b),
                (Object::Span(a), Object::Span(b)) => a.cmp(b),
                (Object::Named(class, a), Object::Named(_, b)) => {
                    let place = |name: &str| crate::tables::ordinal(class, name);
                    place(a).cmp(&place(b))
                }
                _ => return Err(Fault::cast(a.class_name(), "java.lang.Comparable")),
            },
            _ => match (a.as_f64(), b.as_f64()) {
                (Some(x), Some(y)) => match (a.as_i64(), b.as_i64()) {
                    (Some(x), Some(y)) => x.cmp(&y),
                    // As `Double.compare` has it: -0.0 is less than 0.0, and NaN the greatest.
                    _ if x.is_nan() || y.is_nan() => x.is_nan().cmp(&y.is_nan()),
                    _ => x.total_cmp(&y),
                },
                _ if a.is_null() || b.is_null() => return Err(Fault::null("compareTo")),
                _ => return Err(Fault::cast(b.class_name(), a.class_name())),
            },
        })
    }

    /// The order of two values by a comparator; null is the natural one.
    pub(crate) fn compare_by(&mut self, by: &Value, a: &Value, b: &Value) -> Result<Ordering, Fault> {
        let recipe = match by {
            Value::Null => return self.compare(a, b),
            Value::Object(object) => match &**object {
                Object::Recipe(name, arguments) => Some((*name, arguments)),
                _ => None,
            },
            _ => None,
        };
        let Some((name, arguments)) = recipe else {
            let order = self.invoke(by, &[a.clone(), b.clone()])?;
            return match order.as_i64() {
                Some(order) => Ok(order.cmp(&0)),
                None => Err(Fault::cast(order.class_name(), "int")),
            };
        };
        self.check_depth()?;
        self.tick(1)?;
        let first = arguments.first().unwrap_or_default();
        let second = arguments.get(1).unwrap_or_default();
        match name {
            "naturalOrder" => self.compare(a, b),
            "reverseOrder" | "reversed" => Ok(self.compare_by(&first, a, b)?.reverse()),
            "comparing" => {
                let (a, b) = (self.invoke(&first, from_ref(a))?, self.invoke(&first, from_ref(b))?);
                self.compare_by(&second, &a, &b)
            }
            "thenComparing" => match self.compare_by(&first, a, b)? {
                Ordering::Equal => self.compare_by(&second, a, b),
                order => Ok(order),
            },
            "nullsFirst" | "nullsLast" if a.is_null() || b.is_null() => {
                let order = b.is_null().cmp(&a.is_null());
                Ok(if name == "nullsFirst" { order } else { order.reverse() })
            }
            "nullsFirst" | "nullsLast" => self.compare_by(&first, a, b),
            "comparingByKey" | "comparingByValue" => {
                let method = if name == "comparingByKey" { "getKey" } else { "getValue" };
                let (a, b) = (self.call_method(a, method, &[])?, self.call_method(b, method, &[])?);
                self.compare_by(&first, &a, &b)
            }
            _ => Err(Fault::cast("java.util.stream.Collector", "java.util.Comparator")),
        }
    }

    /// Sorts values, as stable as Java.
    pub(crate) fn sort(&mut self, items: &mut Vec<Value>, by: &Value) -> Result<(), Fault> {
        // A merge sort of our own: the order of a script may fail, and may contradict itself.
        let length = items.len();
        let mut width = 1;
        while width < length {
            let mut merged = Vec::with_capacity(length);
            for start in (0..length).step_by(2 * width) {
                let (middle, end) = ((start + width).min(length), (start + 2 * width).min(length));
                let (mut left, mut right) = (start, middle);
                while left < middle || right < end {
                    let from_left = right == end
                        || left < middle
                            && self.compare_by(by, &items[left], &items[right])? != Ordering::Greater;
                    let next = if from_left { &mut left } else { &mut right };
                    merged.push(items[*next].clone());
                    *next += 1;
                }
            }
            *items = merged;
            width *= 2;
        }
        Ok(())
    }

    pub(crate) fn recipe(&self, name: &'static str, arguments: Vec<Value>) -> Value {
        Object::Recipe(name, Kept::new(arguments)).into()
    }
}

/// A double as Java writes it.
pub(crate) fn java_f64(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    scientific(&format!("{value:e}"))
}

/// A float as Java writes it.
pub(crate) fn java_f32(value: f32) -> String {
    if value.is_finite() { sparrow_wire::java_float::f32_text(value) } else { java_f64(f64::from(value)) }
}

fn scientific(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, exponent)) if digits.contains('.') => format!("{digits}E{exponent}"),
        Some((digits, exponent)) => format!("{digits}.0E{exponent}"),
        None => text.to_owned(),
    }
}
