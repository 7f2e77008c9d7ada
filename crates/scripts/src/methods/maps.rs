//! Methods of maps.

use std::rc::Rc;
use std::slice::from_ref;

use super::{Found, text};
use crate::error::Fault;
use crate::machine::{Run, count};
use crate::value::Value;
use crate::value::collection::{Form, Key, Table};
use crate::value::object::{Part, entry};

impl Run<'_> {
    pub(super) fn map_method(&mut self, table: &Rc<Table>, name: &str, arguments: &[Value]) -> Found {
        let own = || Value::Map(Rc::clone(table));
        let size = table.len();
        let result = match (name, arguments) {
            ("size", []) => count(size),
            ("isEmpty", []) => Value::Bool(size == 0),
            ("get", [key]) => self.element(&own(), key)?,
            ("getOrDefault", [key, default]) => {
                let key = self.key(key)?;
                table.get(&key).unwrap_or_else(|| default.clone())
            }
            ("containsKey", [key]) => {
                let key = self.key(key)?;
                Value::Bool(table.contains(&key))
            }
            ("containsValue", [value]) => {
                let values = self.view(table, Part::Values);
                self.call_method(&values, "contains", from_ref(value))?
            }
            ("put", [key, value]) => {
                let key = self.key(key)?;
                let before = table.get(&key).unwrap_or_default();
                self.put(table, key, value.clone())?;
                before
            }
            ("putIfAbsent", [key, value]) => {
                let key = self.key(key)?;
                let before = table.get(&key).unwrap_or_default();
                if before.is_null() {
                    self.put(table, key, value.clone())?;
                }
                before
            }
            ("putAll", [other]) => {
                let Value::Map(other) = other else {
                    return Err(Fault::cast(other.class_name(), "java.util.Map"));
                };
                for (key, value) in self.pairs(other)? {
                    self.put(table, key, value)?;
                }
                Value::Null
            }
            ("remove", [key]) => {
                let key = self.key(key)?;
                self.remove(table, &key)?.unwrap_or_default()
            }
            ("remove", [key, value]) => {
                let key = self.key(key)?;
                let found = table.get(&key);
                let matches = match found {
                    Some(found) => self.equals(&found, value, 0)?,
                    None => false,
                };
                if matches {
                    self.remove(table, &key)?;
                }
                Value::Bool(matches)
            }
            ("replace", [key, value]) => {
                let key = self.key(key)?;
                let before = table.get(&key);
                if before.is_some() {
                    self.put(table, key, value.clone())?;
                }
                before.unwrap_or_default()
            }
            ("computeIfAbsent" | "computeIfPresent" | "compute", [key, function]) => {
                let (name_of, key) = (key.clone(), self.key(key)?);
                let before = table.get(&key).unwrap_or_default();
                match name {
                    "computeIfAbsent" if !before.is_null() => return Ok(Some(before)),
                    "computeIfPresent" if before.is_null() => return Ok(Some(before)),
                    _ => {}
                }
                let arguments = if name == "computeIfAbsent" { vec![name_of] } else { vec![name_of, before] };
                let value = self.invoke(function, &arguments)?;
                self.put_or_remove(table, key, value, name == "computeIfAbsent")?
            }
            ("merge", [key, value, function]) => {
                let key = self.key(key)?;
                let before = table.get(&key).unwrap_or_default();
                let value = match before.is_null() {
                    true => value.clone(),
                    false => self.invoke(function, &[before, value.clone()])?,
                };
                self.put_or_remove(table, key, value, false)?
            }
            ("keySet" | "navigableKeySet", []) => self.view(table, Part::Keys),
            ("values", []) => self.view(table, Part::Values),
            ("entrySet", []) => self.view(table, Part::Entries),
            ("replaceAll", [function]) => {
                for (key, value) in self.pairs(table)? {
                    let value = self.invoke(function, &[key.to_value(), value])?;
                    self.put(table, key, value)?;
                }
                Value::Null
            }
            ("clear", []) => {
                let entries = table.change(std::mem::take)?;
                crate::value::free(entries.into_values());
                Value::Null
            }
            ("clone", []) => Value::Map(Rc::new(Table::new(table.copy(), table.form(), None))),
            ("getByPath", [path]) => self.by_path(&own(), &text(path)?, None)?,
            ("getByPath", [path, default]) => self.by_path(&own(), &text(path)?, Some(default))?,
            ("firstKey" | "lastKey" | "firstEntry" | "lastEntry", []) if table.form() == Form::Sorted => {
                let at = if name.starts_with("first") { 0 } else { size.saturating_sub(1) };
                let part = if name.ends_with("Key") { Part::Keys } else { Part::Entries };
                match part.element(table, at) {
                    None if part == Part::Keys => return Err(Fault::bare("no_such_element_exception")),
                    found => found.unwrap_or_default(),
                }
            }
            (
                "forEach" | "each" | "any" | "every" | "find" | "findAll" | "collect" | "count" | "groupBy"
                | "findResults",
                [function],
            ) => {
                return self.map_through(table, name, function);
            }
            _ => return Ok(None),
        };
        Ok(Some(result))
    }

    /// Methods that call a function with each key and value.
    fn map_through(&mut self, table: &Rc<Table>, name: &str, function: &Value) -> Found {
        let own = Value::Map(Rc::clone(table));
        let (found, mut list, mut number) = (Value::map([]), Vec::new(), 0);
        let Value::Map(into) = &found else { return Ok(None) };
        for (key, value) in self.pairs(table)? {
            let result = self.invoke(function, &[key.to_value(), value.clone()])?;
            match name {
                "forEach" | "each" => {}
                "collect" => list.push(result),
                "findResults" if result.is_null() => {}
                "findResults" => list.push(result),
                "groupBy" => {
                    let group = self.key(&result)?;
                    if !into.contains(&group) {
                        self.put(into, group.clone(), Value::map([]))?;
                    }
                    let group = into.get(&group);
                    if let Some(Value::Map(group)) = group {
                        self.put(&group, key, value)?;
                    }
                }
                _ => match (name, self.as_truth(&result)?) {
                    ("any", true) | ("every", false) => return Ok(Some(Value::Bool(name == "any"))),
                    ("find", true) => return Ok(Some(entry(Some(table), key, value))),
                    ("findAll", true) => self.put(into, key, value)?,
                    ("count", true) => number += 1,
                    _ => {}
                },
            }
        }
        Ok(Some(match name {
            "forEach" => Value::Null,
            "each" => own,
            "collect" | "findResults" => self.list(list)?,
            "any" | "every" => Value::Bool(name == "every"),
            "find" => Value::Null,
            "count" => Value::Int(number),
            _ => found,
        }))
    }

    fn put_or_remove(
        &mut self,
        table: &Rc<Table>,
        key: Key,
        value: Value,
        keep: bool,
    ) -> Result<Value, Fault> {
        match value.is_null() {
            true if keep => {}
            true => _ = self.remove(table, &key)?,
            false => self.put(table, key, value.clone())?,
        }
        Ok(value)
    }

    /// The entries of a map at this moment.
    pub(super) fn pairs(&mut self, table: &Rc<Table>) -> Result<Vec<(Key, Value)>, Fault> {
        self.tick(1 + table.len())?;
        Ok(table.pairs())
    }
}
