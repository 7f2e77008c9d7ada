//! Methods of lists, sets and whatever has elements.

use std::rc::Rc;
use std::slice::from_ref;

use super::{Found, int, text};
use crate::error::Fault;
use crate::machine::{Run, count};
use crate::types::Type;
use crate::value::Field;
use crate::value::Value;
use crate::value::collection::{Form, Key, List, Table};
use crate::value::object::{Kept, Object, Part};

impl Run<'_> {
    pub(super) fn list_method(&mut self, list: &Rc<List>, name: &str, arguments: &[Value]) -> Found {
        let own = || Value::List(Rc::clone(list));
        let size = list.len();
        let last = size.checked_sub(1);
        let result = match (name, arguments) {
            ("size" | "getLength", []) => count(size),
            ("isEmpty", []) => Value::Bool(size == 0),
            ("get", [at]) => {
                let at = int(at)?;
                let element = usize::try_from(at).ok().and_then(|at| list.get(at));
                element.ok_or_else(|| Fault::index(at, size))?
            }
            ("add" | "addLast" | "offer" | "offerLast", [value]) => {
                self.insert(list, size, value.clone())?;
                Value::Bool(true)
            }
            ("push" | "addFirst" | "offerFirst", [value]) => {
                self.insert(list, 0, value.clone())?;
                Value::Bool(true)
            }
            ("add", [at, value]) => {
                let at = int(at)?;
                let place = usize::try_from(at).map_err(|_| Fault::index(at, size))?;
                self.insert(list, place, value.clone())?;
                Value::Null
            }
            ("addAll", [other]) => {
                let items = self.items(other)?;
                for item in &items {
                    self.insert(list, list.len(), item.clone())?;
                }
                Value::Bool(!items.is_empty())
            }
            ("addAll", [at, other]) => {
                let (at, items) = (int(at)?, self.items(other)?);
                let place = usize::try_from(at).map_err(|_| Fault::index(at, size))?;
                for (offset, item) in items.iter().enumerate() {
                    self.insert(list, place + offset, item.clone())?;
                }
                Value::Bool(!items.is_empty())
            }
            ("set", [at, value]) => {
                let at = int(at)?;
                let place = usize::try_from(at).map_err(|_| Fault::index(at, size))?;
                self.set_at(list, place, value.clone())?
            }
            ("remove", [at]) => {
                let at = int(at)?;
                let place =
                    usize::try_from(at).ok().filter(|at| *at < size).ok_or_else(|| Fault::index(at, size))?;
                self.tick(1 + (size - place) / 64)?;
                list.change(true, |items| items.remove(place))?
            }
            ("getFirst" | "element" | "peek" | "peekFirst", []) | ("getLast" | "peekLast", []) => {
                let at = if name.ends_with("Last") { last.unwrap_or_default() } else { 0 };
                match list.get(at) {
                    None if !name.starts_with("peek") => {
                        return Err(Fault::bare("no_such_element_exception"));
                    }
                    found => found.unwrap_or_default(),
                }
            }
            ("pop" | "poll" | "removeFirst" | "pollFirst" | "remove", [])
            | ("removeLast" | "pollLast", []) => {
                let at = if name.ends_with("Last") { last.unwrap_or_default() } else { 0 };
                self.tick(1 + size / 64)?;
                match list.change(true, |items| (at < items.len()).then(|| items.remove(at)))? {
                    None if !name.starts_with("poll") => {
                        return Err(Fault::bare("no_such_element_exception"));
                    }
                    found => found.unwrap_or_default(),
                }
            }
            ("indexOf", [what]) => self.index_of(&own(), what, false)?,
            ("lastIndexOf", [what]) => self.index_of(&own(), what, true)?,
            ("sort", [by]) => {
                let mut items = self.items(&own())?;
                self.sort(&mut items, by)?;
                list.change(false, |own| *own = items)?;
                Value::Null
            }
            ("replaceAll", [function]) => {
                for at in 0..size {
                    let Some(item) = list.get(at) else { break };
                    let item = self.invoke(function, &[item])?;
                    self.set_at(list, at, item)?;
                }
                Value::Null
            }
            ("subList", [from, to]) => {
                let (from, to) = (int(from)?, int(to)?);
                let bounds = (usize::try_from(from), usize::try_from(to));
                match bounds {
                    (Ok(from), Ok(to)) if from <= to && to <= size => {
                        let items = list.part(from, to);
                        self.list(items)?
                    }
                    _ => return Err(Fault::index(format!("{from} to {to}"), size)),
                }
            }
            ("clear", []) => {
                let items = list.change(true, std::mem::take)?;
                crate::value::free(items.into_iter());
                Value::Null
            }
            ("getByPath", [path]) => self.by_path(&own(), &text(path)?, None)?,
            ("getByPath", [path, default]) => self.by_path(&own(), &text(path)?, Some(default))?,
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    pub(super) fn set_method(&mut self, table: &Rc<Table>, name: &str, arguments: &[Value]) -> Found {
        let element = |at: Option<usize>| at.and_then(|at| table.at(at)).map(|(key, _)| key.to_value());
        let size = table.len();
        Ok(Some(match (name, arguments) {
            ("add", [value]) => {
                let key = self.key(value)?;
                let is_new = !table.contains(&key);
                if is_new {
                    self.put(table, key, Value::Null)?;
                }
                Value::Bool(is_new)
            }
            ("addAll", [other]) => {
                for item in self.items(other)? {
                    let key = self.key(&item)?;
                    if !table.contains(&key) {
                        self.put(table, key, Value::Null)?;
                    }
                }
                Value::Bool(table.len() > size)
            }
            ("remove", [value]) => {
                let key = self.key(value)?;
                Value::Bool(self.remove(table, &key)?.is_some())
            }
            ("contains", [value]) => {
                let key = self.key(value)?;
                Value::Bool(table.contains(&key))
            }
            ("first", []) if table.form() == Form::Sorted => {
                element(Some(0)).ok_or_else(|| Fault::bare("no_such_element_exception"))?
            }
            ("last", []) if table.form() == Form::Sorted => {
                element(size.checked_sub(1)).ok_or_else(|| Fault::bare("no_such_element_exception"))?
            }
            ("clear", []) => {
                let entries = table.change(std::mem::take)?;
                crate::value::free(entries.into_iter().map(|(key, _)| key.to_value()));
                Value::Null
            }
            _ => return Ok(None),
        }))
    }

    /// Methods of `doc['name']`.
    pub(super) fn doc_method(
        &mut self,
        field: &Rc<Field>,
        own: &Value,
        name: &str,
        arguments: &[Value],
    ) -> Found {
        Ok(Some(match (name, arguments) {
            ("size" | "getLength", []) => count(self.count_of(field)?),
            ("isEmpty", []) => Value::Bool(self.count_of(field)? == 0),
            ("getValue", []) => self.first_of(field)?,
            ("getValues", []) => Value::Doc(Rc::clone(field)),
            ("get", [at]) => self.element(own, at)?,
            _ => return self.collection_method(own, name, arguments),
        }))
    }

    /// Position of an element that equals a value.
    fn index_of(&mut self, own: &Value, what: &Value, last: bool) -> Result<Value, Fault> {
        let items = self.items(own)?;
        for step in 0..items.len() {
            let at = if last { items.len() - 1 - step } else { step };
            if self.equals(&items[at], what, 0)? {
                return Ok(count(at));
            }
        }
        Ok(Value::Int(-1))
    }

    /// Methods of everything that has elements, with those that Painless adds.
    pub(super) fn collection_method(&mut self, own: &Value, name: &str, arguments: &[Value]) -> Found {
        let result = match (name, arguments) {
            ("size", []) => count(self.items(own)?.len()),
            ("isEmpty", []) => Value::Bool(self.items(own)?.is_empty()),
            ("contains", [what]) => Value::Bool(!matches!(self.index_of(own, what, false)?, Value::Int(-1))),
            ("containsAll", [other]) => {
                for what in self.items(other)? {
                    if self.call_method(own, "contains", &[what])?.as_bool() == Some(false) {
                        return Ok(Some(Value::Bool(false)));
                    }
                }
                Value::Bool(true)
            }
            ("iterator" | "listIterator", []) => Object::Cursor(self.cursor(own)?).into(),
            ("stream", []) => Object::Stream(Kept::new(self.items(own)?), None).into(),
            ("toArray", [] | [_]) => {
                let items = self.items(own)?;
                Value::Listed(items, Form::Array(Type::DEF))
            }
            ("asList" | "asCollection", []) => own.clone(),
            ("clone", []) => match own {
                Value::Set(table) => Value::Set(Rc::new(Table::new(table.copy(), table.form(), None))),
                _ => {
                    let items = self.items(own)?;
                    self.list(items)?
                }
            },
            ("forEach" | "each", [function]) => {
                for item in self.items(own)? {
                    self.invoke(function, &[item])?;
                }
                if name == "each" { own.clone() } else { Value::Null }
            }
            ("eachWithIndex", [function]) => {
                for (at, item) in self.items(own)?.into_iter().enumerate() {
                    self.invoke(function, &[item, count(at)])?;
                }
                own.clone()
            }
            ("any" | "every" | "find", [test]) => {
                for item in self.items(own)? {
                    let holds = self.holds(test, from_ref(&item))?;
                    match name {
                        "any" if holds => return Ok(Some(Value::Bool(true))),
                        "every" if !holds => return Ok(Some(Value::Bool(false))),
                        "find" if holds => return Ok(Some(item)),
                        _ => {}
                    }
                }
                if name == "find" { Value::Null } else { Value::Bool(name == "every") }
            }
            ("findAll" | "split", [test]) => {
                let (mut yes, mut no) = (Vec::new(), Vec::new());
                for item in self.items(own)? {
                    if self.holds(test, from_ref(&item))? { yes.push(item) } else { no.push(item) }
                }
                let yes = self.list(yes)?;
                match name {
                    "findAll" => yes,
                    _ => Value::list(vec![yes, Value::list(no)]),
                }
            }
            ("collect" | "findResults", [function]) => {
                let mut results = Vec::new();
                for item in self.items(own)? {
                    let result = self.invoke(function, &[item])?;
                    if name == "collect" || !result.is_null() {
                        results.push(result);
                    }
                }
                self.list(results)?
            }
            ("collect", [into, function]) => {
                for item in self.items(own)? {
                    let result = self.invoke(function, &[item])?;
                    self.call_method(into, "add", &[result])?;
                }
                into.clone()
            }
            ("findResult", [function]) | ("findResult", [_, function]) => {
                for item in self.items(own)? {
                    let result = self.invoke(function, &[item])?;
                    if !result.is_null() {
                        return Ok(Some(result));
                    }
                }
                if arguments.len() == 2 { arguments[0].clone() } else { Value::Null }
            }
            ("groupBy", [function]) => {
                let groups = Value::map([]);
                let Value::Map(table) = &groups else { return Ok(None) };
                for item in self.items(own)? {
                    let key = self.invoke(function, from_ref(&item))?;
                    let key = self.key(&key)?;
                    let group = table.get(&key);
                    match group {
                        Some(group) => _ = self.call_method(&group, "add", &[item])?,
                        None => self.put(table, key, Value::list(vec![item]))?,
                    }
                }
                groups
            }
            ("join", [separator]) => {
                let items = self.items(own)?;
                self.joined(&items, &text(separator)?)?
            }
            ("sum", [] | [_]) => {
                let mut sum = 0.0;
                for item in self.items(own)? {
                    let number = match arguments.first() {
                        Some(function) => self.invoke(function, &[item])?,
                        None => item,
                    };
                    sum += super::double(&number)?;
                }
                Value::Double(sum)
            }
            ("removeIf" | "removeAll" | "retainAll", [by]) => {
                let mut keep = Vec::new();
                for item in self.items(own)? {
                    keep.push(match name {
                        "removeIf" => !self.holds(by, &[item])?,
                        _ => {
                            (self.call_method(by, "contains", &[item])?.as_bool() == Some(true))
                                == (name == "retainAll")
                        }
                    });
                }
                Value::Bool(self.keep(own, &keep)?)
            }
            ("remove", [what]) => {
                let mut keep = vec![true; self.items(own)?.len()];
                if let Value::Int(at @ 0..) = self.index_of(own, what, false)? {
                    keep[at as usize] = false;
                }
                Value::Bool(self.keep(own, &keep)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    /// Keeps some of the elements of a list, a set, or the map behind a view. Returns whether others were there.
    fn keep(&mut self, own: &Value, keep: &[bool]) -> Result<bool, Fault> {
        if keep.iter().all(|keep| *keep) {
            return Ok(false);
        }
        let mut kept = keep.iter().copied();
        let table = match own {
            Value::List(list) => {
                list.change(true, |items| items.retain(|_| kept.next().unwrap_or(true)))?;
                return Ok(true);
            }
            Value::Set(table) => Rc::clone(table),
            Value::Object(object) => match &**object {
                Object::View(table, _) => Rc::clone(table),
                _ => return Err(Fault::bare("unsupported_operation_exception")),
            },
            _ => return Err(Fault::bare("unsupported_operation_exception")),
        };
        table.change(|entries| entries.retain(|_, _| kept.next().unwrap_or(true)))?;
        Ok(true)
    }

    /// Whether a predicate holds.
    pub(crate) fn holds(&mut self, test: &Value, arguments: &[Value]) -> Result<bool, Fault> {
        let result = self.invoke(test, arguments)?;
        self.as_truth(&result)
    }

    /// The texts of values with a separator between them.
    pub(super) fn joined(&mut self, items: &[Value], separator: &str) -> Result<Value, Fault> {
        let mut out = String::new();
        for (at, item) in items.iter().enumerate() {
            self.tick(1)?;
            if at > 0 {
                self.room(out.len() + separator.len())?;
                self.tick_text(separator.len())?;
                out.push_str(separator);
            }
            self.show(item, &mut out, 0)?;
        }
        self.text(out)
    }

    /// The value at a path such as `a.b.0`.
    pub(super) fn by_path(
        &mut self,
        own: &Value,
        path: &str,
        default: Option<&Value>,
    ) -> Result<Value, Fault> {
        let mut value = own.clone();
        for part in path.split('.') {
            self.tick(1)?;
            let found = match &value {
                Value::Map(table) => table.get(&crate::value::collection::Name(part)),
                Value::List(list) => part.parse::<usize>().ok().and_then(|at| list.get(at)),
                _ => None,
            };
            value = match (found, default) {
                (Some(found), _) => found,
                (None, Some(default)) => return Ok(default.clone()),
                (None, None) => {
                    return Err(Fault::illegal(format!("Could not find value at path [{path}]")));
                }
            };
        }
        Ok(value)
    }

    /// The view of a map's part.
    pub(super) fn view(&self, table: &Rc<Table>, part: Part) -> Value {
        Object::View(Rc::clone(table), part).into()
    }

    /// A set of values.
    pub(super) fn set_of(&mut self, items: Vec<Value>, form: Form) -> Result<Value, Fault> {
        let table = Rc::new(Table::new(crate::value::collection::Entries::default(), form, None));
        for item in items {
            let key: Key = self.key(&item)?;
            if !table.contains(&key) {
                self.put(&table, key, Value::Null)?;
            }
        }
        Ok(Value::Set(table))
    }
}
