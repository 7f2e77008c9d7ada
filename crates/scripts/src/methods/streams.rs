//! Streams and collectors. A stream here has all its elements at once.

use super::objects::optional;
use super::{Found, double, length, long, text};
use crate::error::Fault;
use crate::machine::{Run, count};
use crate::types::Type;
use crate::value::Value;
use crate::value::collection::Form;
use crate::value::object::{Kept, Object};
use crate::value::text::Text;
use std::slice::from_ref;

/// A stream of values, of numbers if a type is given.
pub(super) fn stream(items: Vec<Value>, kind: Option<&'static str>) -> Value {
    Object::Stream(Kept::new(items), kind).into()
}

impl Run<'_> {
    pub(super) fn stream_method(
        &mut self,
        items: Vec<Value>,
        kind: Option<&'static str>,
        name: &str,
        arguments: &[Value],
    ) -> Found {
        self.tick(1 + items.len())?;
        let result = match (name, arguments) {
            ("map" | "mapToInt" | "mapToLong" | "mapToDouble" | "mapToObj", [function]) => {
                let to = match name {
                    "mapToInt" => Some("int"),
                    "mapToLong" => Some("long"),
                    "mapToDouble" => Some("double"),
                    "mapToObj" => None,
                    _ => kind,
                };
                let mut mapped = Vec::with_capacity(items.len());
                for item in items {
                    let value = self.invoke(function, &[item])?;
                    mapped.push(match to {
                        Some(name) => crate::machine::numbers::coerce(value, Type::plain(name), true)?,
                        None => value,
                    });
                }
                stream(mapped, to)
            }
            ("filter", [test]) => {
                let mut kept = Vec::new();
                for item in items {
                    if self.holds(test, from_ref(&item))? {
                        kept.push(item);
                    }
                }
                stream(kept, kind)
            }
            ("flatMap", [function]) => {
                let mut all = Vec::new();
                for item in items {
                    let inner = self.invoke(function, &[item])?;
                    self.room(all.len() * size_of::<Value>())?;
                    all.extend(self.items(&inner)?);
                }
                stream(all, kind)
            }
            ("boxed" | "parallel" | "sequential" | "unordered", []) => {
                stream(items, if name == "boxed" { None } else { kind })
            }
            ("asDoubleStream" | "asLongStream", []) => {
                let to = if name == "asLongStream" { "long" } else { "double" };
                let sort = crate::types::Sort::of(to);
                let numbers = items.iter().filter_map(|item| crate::machine::numbers::converted(item, sort));
                stream(numbers.collect(), Some(to))
            }
            ("distinct", []) => {
                let set = self.set_of(items, Form::Growing)?;
                stream(self.items(&set)?, kind)
            }
            ("sorted", [] | [_]) => {
                let mut items = items;
                self.sort(&mut items, arguments.first().unwrap_or(&Value::Null))?;
                stream(items, kind)
            }
            ("limit", [most]) => {
                let most = usize::try_from(long(most)?)
                    .map_err(|_| Fault::illegal(format!("{}", long(most).unwrap_or_default())))?;
                stream(items.into_iter().take(most).collect(), kind)
            }
            ("skip", [first]) => {
                let first = usize::try_from(long(first)?)
                    .map_err(|_| Fault::illegal(format!("{}", long(first).unwrap_or_default())))?;
                stream(items.into_iter().skip(first).collect(), kind)
            }
            ("peek", [function]) => {
                for item in &items {
                    self.invoke(function, from_ref(item))?;
                }
                stream(items, kind)
            }
            ("forEach" | "forEachOrdered", [function]) => {
                for item in items {
                    self.invoke(function, &[item])?;
                }
                Value::Null
            }
            ("anyMatch" | "allMatch" | "noneMatch", [test]) => {
                let stop = name != "allMatch";
                for item in items {
                    if self.holds(test, &[item])? == stop {
                        return Ok(Some(Value::Bool(name == "anyMatch")));
                    }
                }
                Value::Bool(name != "anyMatch")
            }
            ("findFirst" | "findAny", []) => optional(items.into_iter().next()),
            ("count", []) => Value::Long(items.len() as i64),
            ("toArray", [] | [_]) => {
                let name = kind.unwrap_or("def");
                Value::Listed(items, Form::Array(Type::plain(name)))
            }
            ("toList", []) => Value::Listed(items, Form::Frozen),
            ("iterator", []) => {
                let list = self.list(items)?;
                Object::Cursor(self.cursor(&list)?).into()
            }
            ("min" | "max", [] | [_]) => {
                let by = arguments.first().unwrap_or(&Value::Null);
                optional(self.extreme(items, by, name == "max")?)
            }
            ("reduce", [function]) => {
                let mut items = items.into_iter();
                let Some(mut result) = items.next() else { return Ok(Some(optional(None))) };
                for item in items {
                    result = self.invoke(function, &[result, item])?;
                }
                optional(Some(result))
            }
            ("reduce", [start, function] | [start, function, _]) => {
                let mut result = start.clone();
                for item in items {
                    result = self.invoke(function, &[result, item])?;
                }
                result
            }
            ("sum", []) if kind.is_some() => sum(&items, kind)?,
            ("average", []) if kind.is_some() => optional(match items.len() {
                0 => None,
                length => Some(Value::Double(double(&sum(&items, Some("double"))?)? / length as f64)),
            }),
            ("collect", [collector]) => self.collected(items, collector, 0)?,
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    /// The least or the greatest of some values.
    pub(super) fn extreme(
        &mut self,
        items: Vec<Value>,
        by: &Value,
        greatest: bool,
    ) -> Result<Option<Value>, Fault> {
        let mut items = items.into_iter();
        let Some(mut best) = items.next() else { return Ok(None) };
        for item in items {
            let order = self.compare_by(by, &item, &best)?;
            if if greatest { order.is_gt() } else { order.is_lt() } {
                best = item;
            }
        }
        Ok(Some(best))
    }

    /// What a collector makes of values.
    fn collected(&mut self, items: Vec<Value>, collector: &Value, depth: usize) -> Result<Value, Fault> {
        let Value::Object(object) = collector else {
            return Err(Fault::cast(collector.class_name(), "java.util.stream.Collector"));
        };
        let (Object::Recipe(name, arguments), true) = (&**object, depth < 20) else {
            return Err(Fault::cast(collector.class_name(), "java.util.stream.Collector"));
        };
        self.tick(1 + items.len())?;
        let arguments = arguments.all();
        let argument = |at: usize| arguments.get(at).cloned().unwrap_or_default();
        let name = *name;
        match name {
            "toList" => self.list(items),
            "toUnmodifiableList" => Ok(Value::Listed(items, Form::Frozen)),
            "toSet" | "toUnmodifiableSet" => self.set_of(items, Form::Growing),
            "toCollection" => {
                let into = self.invoke(&argument(0), &[])?;
                for item in items {
                    self.call_method(&into, "add", &[item])?;
                }
                Ok(into)
            }
            "joining" => {
                let part = |at: usize| arguments.get(at).map_or(Ok(Text::new(String::new())), text);
                let (separator, before, after) = (part(0)?, part(1)?, part(2)?);
                let joined = self.joined(&items, &separator)?;
                match arguments.len() {
                    3 => self.text([&**before, joined.as_str().unwrap_or_default(), &**after].concat()),
                    _ => Ok(joined),
                }
            }
            "counting" => Ok(Value::Long(items.len() as i64)),
            "summingInt" | "summingLong" | "summingDouble" | "averagingInt" | "averagingLong"
            | "averagingDouble" => {
                let mut numbers = Vec::with_capacity(items.len());
                for item in items {
                    numbers.push(self.invoke(&argument(0), &[item])?);
                }
                match name {
                    "summingInt" => sum(&numbers, Some("int")),
                    "summingLong" => sum(&numbers, Some("long")),
                    "summingDouble" => sum(&numbers, Some("double")),
                    _ if numbers.is_empty() => Ok(Value::Double(0.0)),
                    _ => Ok(Value::Double(double(&sum(&numbers, Some("double"))?)? / numbers.len() as f64)),
                }
            }
            "mapping" | "filtering" => {
                let mut inner = Vec::with_capacity(items.len());
                for item in items {
                    if name == "mapping" {
                        inner.push(self.invoke(&argument(0), &[item])?);
                    } else if self.holds(&argument(0), from_ref(&item))? {
                        inner.push(item);
                    }
                }
                self.collected(inner, &argument(1), depth + 1)
            }
            "minBy" | "maxBy" => Ok(optional(self.extreme(items, &argument(0), name == "maxBy")?)),
            "reducing" => {
                let mut result = argument(0);
                for item in items {
                    result = self.invoke(&argument(1), &[result, item])?;
                }
                Ok(result)
            }
            "toMap" => {
                let result =
                    if arguments.len() == 4 { self.invoke(&argument(3), &[])? } else { Value::map([]) };
                let Value::Map(table) = &result else {
                    return Err(Fault::cast(result.class_name(), "java.util.Map"));
                };
                for item in items {
                    let key = self.invoke(&argument(0), from_ref(&item))?;
                    let mut value = self.invoke(&argument(1), &[item])?;
                    let shown = self.shown(&key)?;
                    let key = self.key(&key)?;
                    let before = table.get(&key);
                    if let Some(before) = before {
                        if arguments.len() < 3 {
                            return Err(Fault::new(
                                "illegal_state_exception",
                                format!("Duplicate key {shown}"),
                            ));
                        }
                        value = self.invoke(&argument(2), &[before, value])?;
                    }
                    self.put(table, key, value)?;
                }
                Ok(result)
            }
            "groupingBy" | "partitioningBy" => {
                let result =
                    if arguments.len() == 3 { self.invoke(&argument(1), &[])? } else { Value::map([]) };
                let Value::Map(table) = &result else {
                    return Err(Fault::cast(result.class_name(), "java.util.Map"));
                };
                if name == "partitioningBy" {
                    for truth in [false, true] {
                        let key = self.key(&Value::Bool(truth))?;
                        self.put(table, key, Value::list(Vec::new()))?;
                    }
                }
                for item in items {
                    let key = self.invoke(&argument(0), from_ref(&item))?;
                    let key = self.key(&key)?;
                    let group = table.get(&key);
                    match group {
                        Some(group) => _ = self.call_method(&group, "add", &[item])?,
                        None => self.put(table, key, Value::list(vec![item]))?,
                    }
                }
                if arguments.len() > 1 {
                    let by = argument(arguments.len() - 1);
                    for (key, group) in self.pairs(table)? {
                        let items = self.items(&group)?;
                        let value = self.collected(items, &by, depth + 1)?;
                        self.put(table, key, value)?;
                    }
                }
                Ok(result)
            }
            other => Err(Fault::illegal(format!("collector [{other}] is not supported"))),
        }
    }

    /// `IntStream.range` and the like.
    pub(super) fn range(
        &mut self,
        from: &Value,
        to: &Value,
        closed: bool,
        kind: &'static str,
    ) -> Result<Value, Fault> {
        let (from, to) = (long(from)?, long(to)?.saturating_add(i64::from(closed)));
        let size = usize::try_from(to.saturating_sub(from)).unwrap_or_default();
        self.room(size.saturating_mul(size_of::<Value>()))?;
        self.tick(size)?;
        let number = |at: i64| {
            if kind == "int" { count(usize::try_from(at).unwrap_or_default()) } else { Value::Long(at) }
        };
        let number = |at: i64| match i32::try_from(at) {
            Ok(int) if kind == "int" => Value::Int(int),
            _ => number(at),
        };
        Ok(stream((from..to).map(number).collect(), Some(kind)))
    }

    /// A list of the same value.
    pub(super) fn copies(&mut self, times: &Value, value: &Value) -> Result<Value, Fault> {
        let times = length(times)?;
        self.room(times.saturating_mul(size_of::<Value>()))?;
        self.tick(1 + times / 8)?;
        Ok(Value::Listed(vec![value.clone(); times], Form::Frozen))
    }
}

/// The sum of numbers in a type.
fn sum(items: &[Value], kind: Option<&str>) -> Result<Value, Fault> {
    let mut sum = match kind {
        Some("double") => Value::Double(0.0),
        Some("long") => Value::Long(0),
        _ => Value::Int(0),
    };
    for item in items {
        let item = match kind {
            Some("double") => Value::Double(double(item)?),
            _ => item.clone(),
        };
        sum = crate::machine::numbers::combine(crate::tree::Operator::Add, &sum, &item)?;
    }
    Ok(sum)
}
