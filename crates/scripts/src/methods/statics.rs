//! Static methods, constructors and constants.

use std::rc::Rc;
use std::slice::from_ref;

use super::streams::stream;
use super::{int, long, text};
use crate::error::Fault;
use crate::machine::{Run, count};
use crate::types::{Type, exception};
use crate::value::Value;
use crate::value::collection::{Entries, Form, Table};
use crate::value::moment::{Class, Moment, ZoneName};
use crate::value::object::{Builder, Object};

impl Run<'_> {
    /// Calls a static method that [`has_static`].
    pub(crate) fn call_static(
        &mut self,
        class: &'static str,
        name: &str,
        arguments: &[Value],
    ) -> Result<Value, Fault> {
        self.tick(1)?;
        let unknown = || Fault::no_method(class, name, arguments.len());
        match class {
            "Math" | "StrictMath" => super::numerals::math(name, arguments),
            "Integer" | "Long" | "Short" | "Byte" | "Float" | "Double" | "Boolean" => {
                self.number_static(class, name, arguments)
            }
            "Character" => super::numerals::character(name, arguments),
            "String" => match (name, arguments) {
                ("join", [separator, items]) if !matches!(items, Value::Text(_)) => {
                    let items = self.items(items)?;
                    self.joined(&items, &text(separator)?)
                }
                ("join", [separator, items @ ..]) => self.joined(items, &text(separator)?),
                // Before the pattern may be a language.
                ("format", [Value::Object(_), arguments @ ..] | arguments) => match arguments {
                    [pattern, array @ Value::List(list)] if matches!(list.form(), Form::Array(_)) => {
                        let items = self.items(array)?;
                        self.formatted(&text(pattern)?, &items)
                    }
                    [pattern, rest @ ..] => self.formatted(&text(pattern)?, rest),
                    [] => Err(unknown()),
                },
                (_, [value]) => {
                    let shown = match value {
                        Value::List(list) if list.form() == Form::Array(Type::plain("char")) => {
                            let items = self.items(value)?;
                            return self.joined(&items, "");
                        }
                        _ => self.shown(value)?,
                    };
                    self.text(shown)
                }
                _ => Err(unknown()),
            },
            "Objects" => match (name, arguments) {
                ("equals", [a, b]) => Ok(Value::Bool(self.equals(a, b, 0)?)),
                ("isNull", [value]) => Ok(Value::Bool(value.is_null())),
                ("nonNull", [value]) => Ok(Value::Bool(!value.is_null())),
                ("requireNonNull", [Value::Null]) => Err(Fault::bare("null_pointer_exception")),
                ("requireNonNull", [Value::Null, message]) => {
                    Err(Fault::new("null_pointer_exception", self.shown(message)?))
                }
                ("requireNonNullElse" | "toString", [Value::Null, other]) => Ok(other.clone()),
                ("requireNonNull" | "requireNonNullElse", [value, ..]) => Ok(value.clone()),
                ("toString", [value, ..]) => {
                    let shown = self.shown(value)?;
                    self.text(shown)
                }
                ("hashCode", [Value::Null]) => Ok(Value::Int(0)),
                ("hashCode", [value]) => self.call_method(value, name, &[]),
                ("hash", [array @ Value::List(list)]) if matches!(list.form(), Form::Array(_)) => {
                    self.call_method(array, "hashCode", &[])
                }
                ("hash", values) => self.call_method(&Value::list(values.to_vec()), "hashCode", &[]),
                _ => Err(unknown()),
            },
            "Collections" => self.collections_static(name, arguments),
            "Arrays" => match (name, arguments) {
                ("asList", [list @ Value::List(inner)]) if matches!(inner.form(), Form::Array(_)) => {
                    Ok(Value::Listed(self.items(list)?, Form::Fixed))
                }
                ("asList", items) => Ok(Value::Listed(items.to_vec(), Form::Fixed)),
                ("stream", [array]) => self.call_method(array, "stream", &[]),
                ("sort", [array]) => self.call_method(array, name, &[Value::Null]),
                ("toString", [array]) => self.call_method(array, name, &[]),
                _ => Err(unknown()),
            },
            "Collectors" => {
                let known = crate::tables::statics(class)
                    .filter_map(|known| known.split_once('/'))
                    .find(|known| known.0 == name);
                let name = known.map_or("", |known| known.0);
                Ok(self.recipe(name, arguments.to_vec()))
            }
            "Comparator" | "Map.Entry" => Ok(match (name, arguments) {
                ("naturalOrder", _) => self.recipe("naturalOrder", Vec::new()),
                ("reverseOrder", _) => self.recipe("reverseOrder", Vec::new()),
                ("nullsFirst", by) => self.recipe("nullsFirst", by.to_vec()),
                ("nullsLast", by) => self.recipe("nullsLast", by.to_vec()),
                ("comparingByKey", by) => self.recipe("comparingByKey", by.to_vec()),
                ("comparingByValue", by) => self.recipe("comparingByValue", by.to_vec()),
                (_, by) => self.recipe("comparing", by.to_vec()),
            }),
            "Stream" | "IntStream" | "LongStream" | "DoubleStream" => {
                let kind = match class {
                    "IntStream" => Some("int"),
                    "LongStream" => Some("long"),
                    "DoubleStream" => Some("double"),
                    _ => None,
                };
                match (name, arguments) {
                    ("range" | "rangeClosed", [from, to]) => {
                        self.range(from, to, name == "rangeClosed", kind.unwrap_or("int"))
                    }
                    ("concat", [a, b]) => {
                        let mut items = self.items(a)?;
                        items.extend(self.items(b)?);
                        Ok(stream(items, kind))
                    }
                    ("of", [array @ Value::List(list)]) if matches!(list.form(), Form::Array(_)) => {
                        Ok(stream(self.items(array)?, kind))
                    }
                    (_, items) => Ok(stream(items.to_vec(), kind)),
                }
            }
            "Function" | "UnaryOperator" => Ok(Object::Reference(
                Some("Objects"),
                crate::value::object::Kept::new(Vec::new()),
                "requireNonNullElse".into(),
            )
            .into()),
            "Optional" => match (name, arguments) {
                ("of", [Value::Null]) => Err(Fault::bare("null_pointer_exception")),
                (_, [value]) if !value.is_null() => Ok(super::objects::optional(Some(value.clone()))),
                _ => Ok(super::objects::optional(None)),
            },
            "Pattern" => match (name, arguments) {
                ("quote", [what]) => {
                    let quoted = regex::escape(&text(what)?);
                    self.text(quoted)
                }
                ("matches", [pattern, over]) => self.call_method(over, name, from_ref(pattern)),
                (_, [pattern, rest @ ..]) => {
                    let flags = rest.first().map_or(Ok(0), int)?;
                    let letters = [(2, 'i'), (8, 'm'), (32, 's'), (64, 'u')];
                    let flags: String = letters
                        .iter()
                        .filter(|(bit, _)| flags & bit != 0)
                        .map(|(_, letter)| *letter)
                        .collect();
                    let pattern = self.pattern(&text(pattern)?, &flags)?;
                    Ok(Object::Pattern(pattern).into())
                }
                _ => Err(unknown()),
            },
            _ => self.date_static(class, name, arguments),
        }
    }

    fn collections_static(&mut self, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        match (name, arguments) {
            ("sort", [list]) => self.call_method(list, name, &[Value::Null]),
            ("sort", [list, by]) => self.call_method(list, name, from_ref(by)),
            ("reverse", [list]) => {
                let mut items = self.items(list)?;
                items.reverse();
                self.refill(list, items)
            }
            ("swap", [list, a, b]) => {
                let (one, two) = (self.element(list, a)?, self.element(list, b)?);
                self.set_element(list, a, two)?;
                self.set_element(list, b, one)?;
                Ok(Value::Null)
            }
            ("fill", [list, value]) => {
                let items = vec![value.clone(); self.items(list)?.len()];
                self.refill(list, items)
            }
            ("reverseOrder", []) => Ok(self.recipe("reverseOrder", Vec::new())),
            ("reverseOrder", [by]) => Ok(self.recipe("reversed", vec![by.clone()])),
            ("max" | "min", [all, by @ ..]) => {
                let items = self.items(all)?;
                let best = self.extreme(items, by.first().unwrap_or(&Value::Null), name == "max")?;
                best.ok_or_else(|| Fault::bare("no_such_element_exception"))
            }
            ("emptyList", []) => Ok(Value::Listed(Vec::new(), Form::Frozen)),
            ("emptyMap", []) => Ok(Value::Map(Rc::new(Table::new(Entries::default(), Form::Frozen, None)))),
            ("emptySet", []) => Ok(Value::Set(Rc::new(Table::new(Entries::default(), Form::Frozen, None)))),
            ("singletonList", [value]) => Ok(Value::Listed(vec![value.clone()], Form::Frozen)),
            ("singleton", [value]) => self.set_of(vec![value.clone()], Form::Growing),
            ("singletonMap", [key, value]) => {
                let mut entries = Entries::default();
                entries.insert(self.key(key)?, value.clone());
                Ok(Value::Map(Rc::new(Table::new(entries, Form::Frozen, None))))
            }
            ("unmodifiableMap" | "unmodifiableSet", [Value::Map(table) | Value::Set(table)]) => {
                self.tick(table.len())?;
                let copy = Rc::new(Table::new(table.copy(), Form::Frozen, None));
                Ok(if name == "unmodifiableMap" { Value::Map(copy) } else { Value::Set(copy) })
            }
            ("unmodifiableList" | "unmodifiableCollection" | "unmodifiableSet", [list]) => {
                Ok(Value::Listed(self.items(list)?, Form::Frozen))
            }
            ("nCopies", [times, value]) => self.copies(times, value),
            ("frequency", [all, what]) => {
                let mut found = 0;
                for item in self.items(all)? {
                    found += usize::from(self.equals(&item, what, 0)?);
                }
                Ok(count(found))
            }
            ("addAll", [into, items @ ..]) => {
                for item in items {
                    self.call_method(into, "add", from_ref(item))?;
                }
                Ok(Value::Bool(!items.is_empty()))
            }
            ("disjoint", [a, b]) => {
                for item in self.items(a)? {
                    if self.call_method(b, "contains", &[item])?.as_bool() == Some(true) {
                        return Ok(Value::Bool(false));
                    }
                }
                Ok(Value::Bool(true))
            }
            _ => Err(Fault::no_method("java.util.Collections", name, arguments.len())),
        }
    }

    fn refill(&mut self, list: &Value, items: Vec<Value>) -> Result<Value, Fault> {
        for (at, item) in items.into_iter().enumerate() {
            self.set_element(list, &count(at), item)?;
        }
        Ok(Value::Null)
    }

    /// Makes an object of a class that [`has_constructor`].
    pub(crate) fn construct(&mut self, class: &'static str, arguments: &[Value]) -> Result<Value, Fault> {
        self.tick(1)?;
        if exception(class).is_some() {
            let reason = match arguments.first() {
                None | Some(Value::Null) => None,
                Some(reason) => Some(self.shown(reason)?),
            };
            return Ok(Object::Exception(class, reason).into());
        }
        // A number says how many elements there will be.
        let from = arguments.first().filter(|from| from.as_i64().is_none());
        match class {
            "ArrayList" | "LinkedList" | "Vector" | "Stack" | "ArrayDeque" => {
                let items = from.map_or(Ok(Vec::new()), |from| self.items(from))?;
                self.list(items)
            }
            "HashSet" | "LinkedHashSet" | "TreeSet" => {
                let items = from.map_or(Ok(Vec::new()), |from| self.items(from))?;
                self.set_of(items, if class == "TreeSet" { Form::Sorted } else { Form::Growing })
            }
            "HashMap" | "LinkedHashMap" | "TreeMap" | "Hashtable" => {
                let form = if class == "TreeMap" { Form::Sorted } else { Form::Growing };
                let table = Rc::new(Table::new(Entries::default(), form, None));
                let map = Value::Map(table);
                if let Some(from) = from {
                    self.call_method(&map, "putAll", from_ref(from))?;
                }
                Ok(map)
            }
            "StringBuilder" => {
                let text = from.map_or(Ok(String::new()), |from| self.shown(from))?;
                Ok(Object::Builder(Builder::new(&text)).into())
            }
            "String" => Ok(Value::text("")),
            "Object" => Ok(Object::Named("java.lang.Object", "java.lang.Object").into()),
            "Date" => {
                let millis = arguments.first().map_or(Ok(0), long)?;
                Ok(Moment::of(Class::Legacy, i128::from(millis) * 1_000_000, &crate::value::moment::utc())?
                    .into())
            }
            "SimpleDateFormat" => self.formatter(class, arguments),
            _ => Err(Fault::illegal(format!("constructor [{class}, <init>/{}] not found", arguments.len()))),
        }
    }

    /// A time zone, or the one of a name.
    pub(super) fn zone(&self, value: &Value) -> Result<ZoneName, Fault> {
        match value {
            Value::Object(object) => match &**object {
                Object::Zone(zone) => Ok(zone.clone()),
                Object::Named("ZoneOffset", _) => Ok(crate::value::moment::utc()),
                _ => Err(Fault::cast(value.class_name(), "java.time.ZoneId")),
            },
            other => ZoneName::named(&text(other)?),
        }
    }
}
