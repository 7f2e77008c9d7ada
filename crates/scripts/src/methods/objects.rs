//! Methods of objects: entries, iterators, functions, optional values, regular expressions, constants.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::slice::from_ref;

use super::{Found, int, long, text};
use crate::error::Fault;
use crate::machine::{Run, count};
use crate::regexes::Pattern;
use crate::value::Value;
use crate::value::object::{Matcher, Object, Part, Source};
use crate::value::text::Text;

/// A matcher of a pattern over a text, with a match.
pub(super) fn matcher(pattern: &Pattern, text: &Value, found: Option<&regex::Captures<'_>>) -> Value {
    let groups = found.map(spans);
    let next = groups.as_ref().and_then(|groups| groups[0]).map_or(0, |(_, end)| end);
    Object::Matcher(Matcher {
        pattern: pattern.clone(),
        text: text.clone(),
        next: Cell::new(next),
        groups: RefCell::new(groups),
    })
    .into()
}

fn spans(captures: &regex::Captures<'_>) -> crate::value::object::Groups {
    captures.iter().map(|group| group.map(|group| (group.start(), group.end()))).collect()
}

impl Run<'_> {
    pub(super) fn object_method(
        &mut self,
        own: &Value,
        object: &Rc<Object>,
        name: &str,
        arguments: &[Value],
    ) -> Found {
        Ok(match &**object {
            Object::Named(class, constant) => self.constant_method(class, constant, name, arguments)?,
            Object::Docs => match (name, arguments) {
                ("containsKey", [field]) => {
                    let name = self.name_of(field)?;
                    let field = self.field_named(&name);
                    Some(Value::Bool(self.host.has_field(&field)?))
                }
                ("get", [field]) => Some(self.element(own, field)?),
                _ => None,
            },
            Object::Field(field) => match (name, arguments) {
                ("getName", []) => Some(Value::text(&*field.name)),
                ("get" | "getValue", [default]) => Some(self.field_or(field, 0, default.clone())?),
                ("get" | "getValue", [at, default]) => {
                    let at = usize::try_from(int(at)?).unwrap_or(usize::MAX);
                    Some(self.field_or(field, at, default.clone())?)
                }
                ("size", []) => Some(count(self.count_of(field)?)),
                ("isEmpty", []) => Some(Value::Bool(self.count_of(field)? == 0)),
                ("getValues", []) => Some(Value::Doc(Rc::clone(field))),
                _ => self.collection_method(own, name, arguments)?,
            },
            Object::Builder(builder) => self.builder_method(own, builder, name, arguments)?,
            Object::Pattern(pattern) => match (name, arguments) {
                ("matcher", [over]) => {
                    let over = Value::Text(text(over)?);
                    Some(matcher(pattern, &over, None))
                }
                ("split", [over]) => Some(self.split(pattern, &text(over)?, 0)?),
                ("split", [over, limit]) => Some(self.split(pattern, &text(over)?, int(limit)?)?),
                ("pattern", []) => Some(Value::text(&*pattern.source)),
                ("test", [over]) => {
                    let over = text(over)?;
                    self.tick(1 + over.len() / 16)?;
                    Some(Value::Bool(pattern.regex.is_match(&over)))
                }
                ("asPredicate", []) => Some(self.predicate(own)),
                _ => None,
            },
            Object::Matcher(matcher) => self.matcher_method(matcher, name, arguments)?,
            Object::Moment(moment) => self.moment_method(moment, name, arguments)?,
            Object::Span(nanos) => self.span_method(*nanos, name, arguments)?,
            Object::Entry { of, key, value } => match (name, arguments) {
                ("getKey", []) => Some(key.to_value()),
                ("getValue", []) => Some(value.first().unwrap_or_default()),
                ("setValue", [new]) => {
                    if let Some(table) = of {
                        self.put(table, key.clone(), new.clone())?;
                    }
                    self.put_into(own, new);
                    Some(value.replace(new.clone()))
                }
                _ => None,
            },
            Object::Cursor(cursor) => match (name, arguments) {
                ("hasNext", []) => Some(Value::Bool(cursor.has_next())),
                ("next" | "nextInt" | "nextLong" | "nextDouble", []) => Some(cursor.advance()?),
                ("remove", []) => {
                    let at = cursor
                        .next
                        .get()
                        .checked_sub(1)
                        .ok_or_else(|| Fault::bare("illegal_state_exception"))?;
                    match &cursor.of {
                        Source::List(list) => {
                            self.tick(1 + list.len() / 64)?;
                            list.change(true, |items| (at < items.len()).then(|| items.remove(at)))?;
                        }
                        Source::Table(table, _) => {
                            self.tick(1 + table.len() / 64)?;
                            table.change(|entries| entries.shift_remove_index(at))?;
                        }
                        Source::Items(_) => return Err(Fault::bare("unsupported_operation_exception")),
                    }
                    cursor.next.set(at);
                    cursor.length.set(cursor.count());
                    Some(Value::Null)
                }
                ("forEachRemaining", [function]) => {
                    for item in self.items(own)? {
                        self.invoke(function, &[item])?;
                    }
                    Some(Value::Null)
                }
                _ => None,
            },
            Object::View(table, part) => match (name, arguments) {
                ("size", []) => Some(count(table.len())),
                ("isEmpty", []) => Some(Value::Bool(table.is_empty())),
                ("contains", [key]) if *part == Part::Keys => {
                    let key = self.key(key)?;
                    Some(Value::Bool(table.contains(&key)))
                }
                ("remove", [key]) if *part == Part::Keys => {
                    let key = self.key(key)?;
                    Some(Value::Bool(self.remove(table, &key)?.is_some()))
                }
                ("clear", []) => self.map_method(table, name, arguments)?,
                _ => self.collection_method(own, name, arguments)?,
            },
            Object::Stream(items, kind) => {
                let items = items.take();
                self.stream_method(items, *kind, name, arguments)?
            }
            Object::Lambda(..) | Object::Reference(..) => match name {
                "apply" | "test" | "accept" | "get" | "compare" | "applyAsInt" | "applyAsLong"
                | "applyAsDouble" | "getAsInt" | "getAsDouble" => Some(self.invoke(own, arguments)?),
                "reversed" | "thenComparing" => self.comparator_method(own, name, arguments)?,
                _ => None,
            },
            Object::Recipe(..) => self.comparator_method(own, name, arguments)?,
            Object::Optional(kept) => match (kept.first(), name, arguments) {
                (found, "isPresent", []) => Some(Value::Bool(found.is_some())),
                (found, "isEmpty", []) => Some(Value::Bool(found.is_none())),
                (Some(found), "get" | "getAsInt" | "getAsLong" | "getAsDouble" | "orElseThrow", []) => {
                    Some(found)
                }
                (None, "get" | "getAsInt" | "getAsLong" | "getAsDouble" | "orElseThrow", []) => {
                    return Err(Fault::new("no_such_element_exception", "No value present"));
                }
                (found, "orElse", [other]) => Some(found.unwrap_or_else(|| other.clone())),
                (Some(found), "orElseGet", [_]) => Some(found),
                (None, "orElseGet", [function]) => Some(self.invoke(function, &[])?),
                (Some(found), "ifPresent", [function]) => {
                    self.invoke(function, &[found])?;
                    Some(Value::Null)
                }
                (None, "ifPresent", [_]) => Some(Value::Null),
                (Some(found), "map", [function]) => {
                    let result = self.invoke(function, &[found])?;
                    Some(optional(if result.is_null() { None } else { Some(result) }))
                }
                (Some(found), "filter", [test]) => {
                    let holds = self.holds(test, from_ref(&found))?;
                    Some(optional(if holds { Some(found) } else { None }))
                }
                (None, "map" | "filter", [_]) => Some(own.clone()),
                _ => None,
            },
            Object::Exception(_, reason) => match (name, arguments) {
                ("getMessage" | "getLocalizedMessage", []) => {
                    Some(reason.as_deref().map_or(Value::Null, Value::text))
                }
                _ => None,
            },
            Object::Format { .. } => self.format_method(own, name, arguments)?,
            Object::Zone(zone) => match (name, arguments) {
                ("getId" | "toString", []) => Some(Value::text(&*zone.name)),
                _ => None,
            },
        })
    }

    fn comparator_method(&mut self, own: &Value, name: &str, arguments: &[Value]) -> Found {
        Ok(Some(match (name, arguments) {
            ("compare", [a, b]) => Value::Int(self.compare_by(own, a, b)? as i32),
            ("reversed", []) => self.recipe("reversed", vec![own.clone()]),
            ("thenComparing" | "thenComparingInt" | "thenComparingLong" | "thenComparingDouble", [by]) => {
                let by = match by {
                    Value::Object(object) if matches!(**object, Object::Recipe(..)) => by.clone(),
                    // A function of one argument gives what is compared, one of two compares by itself.
                    _ if self.parameters(by) == Some(2) => by.clone(),
                    _ => self.recipe("comparing", vec![by.clone()]),
                };
                self.recipe("thenComparing", vec![own.clone(), by])
            }
            ("thenComparing", [function, by]) => {
                let by = self.recipe("comparing", vec![function.clone(), by.clone()]);
                self.recipe("thenComparing", vec![own.clone(), by])
            }
            _ => return Ok(None),
        }))
    }

    /// How many parameters a lambda has.
    fn parameters(&self, function: &Value) -> Option<usize> {
        let Value::Object(object) = function else { return None };
        match &**object {
            Object::Lambda(body, _) => Some(self.code.bodies[*body].parameters.len()),
            _ => None,
        }
    }

    fn predicate(&self, pattern: &Value) -> Value {
        Object::Reference(None, crate::value::object::Kept::new(vec![pattern.clone()]), "test".into()).into()
    }

    fn matcher_method(&mut self, matcher: &Matcher, name: &str, arguments: &[Value]) -> Found {
        let over = text(&matcher.text)?;
        let regex = &matcher.pattern.regex;
        // A group by its number or its name; the whole match if there is no argument.
        let group = |arguments: &[Value]| -> Result<Option<(usize, usize)>, Fault> {
            let groups = matcher.groups.borrow();
            let groups =
                groups.as_ref().ok_or_else(|| Fault::new("illegal_state_exception", "No match found"))?;
            let place = match arguments {
                [] => Some(0),
                [Value::Text(name)] => regex.capture_names().position(|known| known == Some(name)),
                [number, ..] => usize::try_from(int(number)?).ok(),
            };
            let missing = || Fault::new("index_out_of_bounds_exception", "No group");
            place.and_then(|place| groups.get(place).copied()).ok_or_else(missing)
        };
        Ok(Some(match (name, arguments) {
            ("find" | "matches" | "lookingAt", []) => {
                self.tick(1 + over.len() / 16)?;
                let from = if name == "find" { matcher.next.get() } else { 0 };
                let found = match name {
                    "matches" => matcher.pattern.whole.captures(&over),
                    _ if from <= over.len() => regex.captures_at(&over, from),
                    _ => None,
                };
                let at_start =
                    |found: &regex::Captures<'_>| found.get(0).is_some_and(|found| found.start() == 0);
                let found = found.filter(|found| name != "lookingAt" || at_start(found));
                let holds = found.is_some();
                let groups = found.as_ref().map(spans);
                if let Some(Some((start, end))) = groups.as_ref().map(|groups| groups[0]) {
                    // An empty match must not be found again.
                    let next = if end > start {
                        end
                    } else {
                        end + over[end..].chars().next().map_or(1, char::len_utf8)
                    };
                    matcher.next.set(next);
                }
                *matcher.groups.borrow_mut() = groups;
                Value::Bool(holds)
            }
            ("group", [] | [_]) => match group(arguments)? {
                Some((start, end)) => self.text(over[start..end].to_owned())?,
                None => Value::Null,
            },
            ("namedGroup", [_]) => match group(arguments)? {
                Some((start, end)) => self.text(over[start..end].to_owned())?,
                None => Value::Null,
            },
            ("start", [] | [_]) => {
                group(arguments)?.map_or(Value::Int(-1), |(start, _)| count(over.position(start)))
            }
            ("end", [] | [_]) => {
                group(arguments)?.map_or(Value::Int(-1), |(_, end)| count(over.position(end)))
            }
            ("groupCount", []) => count(regex.captures_len() - 1),
            ("reset", []) => {
                matcher.next.set(0);
                matcher.groups.take();
                Value::Null
            }
            ("replaceAll" | "replaceFirst", [by]) => {
                self.replace_matches(&matcher.pattern, &over, by, name == "replaceAll")?
            }
            _ => return Ok(None),
        }))
    }

    fn constant_method(
        &mut self,
        class: &'static str,
        constant: &'static str,
        name: &str,
        arguments: &[Value],
    ) -> Found {
        let place = crate::tables::ordinal(class, constant);
        let as_count = |at: usize| i32::try_from(at).unwrap_or_default();
        Ok(Some(match (name, arguments) {
            ("name" | "toString", []) => Value::text(constant),
            ("ordinal", []) => Value::Int(as_count(place)),
            ("getValue", []) if matches!(class, "DayOfWeek" | "Month") => Value::Int(as_count(place) + 1),
            ("getDisplayName", [style, _]) if matches!(class, "DayOfWeek" | "Month") => {
                let full = format!("{}{}", &constant[..1], constant[1..].to_lowercase());
                let is_short =
                    matches!(style, Value::Object(style) if matches!(**style, Object::Named(_, "SHORT")));
                Value::text(if is_short { full[..3].to_owned() } else { full })
            }
            ("plus" | "minus", [by]) if matches!(class, "DayOfWeek" | "Month") => {
                let all = crate::tables::members(class);
                let by = if name == "plus" { long(by)? } else { -long(by)? };
                let at = (place as i64 + by % all.len() as i64).rem_euclid(all.len() as i64) as usize;
                Object::Named(class, all[at]).into()
            }
            ("between", [from, to]) if class == "ChronoUnit" => {
                Value::Long(super::dates::between(from, to, constant)?)
            }
            _ => return Ok(None),
        }))
    }
}

/// An `Optional`.
pub(super) fn optional(value: Option<Value>) -> Value {
    Object::Optional(crate::value::object::Kept::new(value.into_iter().collect())).into()
}

/// The units of a builder's text, for positions.
pub(super) fn units(text: &str) -> Rc<Text> {
    Text::new(text.to_owned())
}
