//! Properties, elements, the fields of documents, and going through collections.

use std::rc::Rc;

use super::Run;
use super::numbers::coerce;
use crate::error::Fault;
use crate::types::Type;
use crate::value::Field;
use crate::value::Value;
use crate::value::collection::{Form, Key, List, Name, Table};
use crate::value::object::{Cursor, Kept, Object, Source};

impl Run<'_> {
    /// `value.name`.
    pub(crate) fn member(&mut self, value: &Value, name: &str) -> Result<Value, Fault> {
        match value {
            Value::Null => return Err(Fault::null(name)),
            // Java asks for a getter first, and `isEmpty` is the only one of a map.
            Value::Map(table) if name != "empty" => {
                return Ok(table.get(&Name(name)).unwrap_or_default());
            }
            Value::List(list) if name == "length" => return Ok(count(list.len())),
            Value::List(_) | Value::Doc(_) if name.starts_with(|first: char| first.is_ascii_digit()) => {
                let index = name.parse().map_err(|_| Fault::index(name, 0))?;
                return self.element(value, &Value::Int(index));
            }
            Value::Doc(field) => {
                if let Some(found) = self.host.method(field, name, &[])? {
                    return Ok(found);
                }
            }
            Value::Object(object) if matches!(**object, Object::Docs) => {
                let field = self.field_named(name);
                return self.doc(field);
            }
            _ => {}
        }
        let mut chars = name.chars();
        let capital: String = chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
        for getter in [format!("get{capital}"), format!("is{capital}")] {
            if let Some(found) = self.method(value, &getter, &[])? {
                return Ok(found);
            }
        }
        Err(Fault::illegal(format!("dynamic getter [{}, {name}] not found", value.class_name())))
    }

    /// `value[index]`.
    pub(crate) fn element(&mut self, value: &Value, index: &Value) -> Result<Value, Fault> {
        match value {
            Value::Map(table) => {
                if let Value::Text(name) = index {
                    return Ok(table.get(&Name(name)).unwrap_or_default());
                }
                let key = self.key(index)?;
                Ok(table.get(&key).unwrap_or_default())
            }
            Value::List(list) => {
                let at = position(index, list)?;
                Ok(list.get(at).unwrap_or_default())
            }
            Value::Doc(field) => {
                let count = self.count_of(field)?;
                let at = coerce(index.clone(), Type::INT, false)?.as_i64().unwrap_or_default();
                let index =
                    usize::try_from(if at < 0 { at + count as i64 } else { at }).unwrap_or(usize::MAX);
                match () {
                    () if count == 0 => Err(no_value()),
                    () if index >= count => Err(Fault::index(at, count)),
                    () => self.host.value(field, index),
                }
            }
            Value::Object(object) if matches!(**object, Object::Docs) => {
                let name = self.name_of(index)?;
                let field = self.field_named(&name);
                self.doc(field)
            }
            Value::Null => Err(Fault::null("[]")),
            other => Err(Fault::illegal(format!(
                "Attempting to address a non-array-like type [{}] as an array.",
                other.class_name()
            ))),
        }
    }

    pub(crate) fn set_member(&mut self, target: &Value, name: &str, value: Value) -> Result<(), Fault> {
        match target {
            Value::Map(table) => self.put(table, Key::from(name), value),
            Value::List(_) if name.parse::<i32>().is_ok() => {
                self.set_element(target, &Value::Int(name.parse().unwrap_or_default()), value)
            }
            Value::Null => Err(Fault::null(name)),
            other => {
                let mut chars = name.chars();
                let capital: String =
                    chars.next().into_iter().flat_map(char::to_uppercase).chain(chars).collect();
                match self.method(other, &format!("set{capital}"), &[value])? {
                    Some(_) => Ok(()),
                    None => {
                        let class = other.class_name();
                        Err(Fault::illegal(format!("dynamic setter [{class}, {name}] not found")))
                    }
                }
            }
        }
    }

    pub(crate) fn set_element(&mut self, target: &Value, index: &Value, value: Value) -> Result<(), Fault> {
        match target {
            Value::Map(table) => {
                let key = self.key(index)?;
                self.put(table, key, value)
            }
            Value::List(list) => {
                let at = position(index, list)?;
                self.set_at(list, at, value)?;
                Ok(())
            }
            Value::Null => Err(Fault::null("[]")),
            other => Err(Fault::illegal(format!(
                "Attempting to address a non-array-like type [{}] as an array.",
                other.class_name()
            ))),
        }
    }

    /// Replaces an element of a list, and gives the one before.
    pub(crate) fn set_at(&mut self, list: &Rc<List>, at: usize, value: Value) -> Result<Value, Fault> {
        let value = match list.form() {
            Form::Array(kind) => coerce(value, kind, false)?,
            _ => value,
        };
        self.put_into(&Value::List(Rc::clone(list)), &value);
        let length = list.len();
        let replaced = list.change(false, |items| Some(std::mem::replace(items.get_mut(at)?, value)))?;
        replaced.ok_or_else(|| Fault::index(at, length))
    }

    /// Adds an element to a list at a position, which is at most its length.
    pub(crate) fn insert(&mut self, list: &Rc<List>, at: usize, value: Value) -> Result<(), Fault> {
        let length = list.len();
        if at > length {
            return Err(Fault::index(at, length));
        }
        self.tick(1 + (length - at) / 64)?;
        self.put_into(&Value::List(Rc::clone(list)), &value);
        list.change(true, |items| items.insert(at, value))
    }

    /// Sets an entry of a map, or of a set.
    pub(crate) fn put(&mut self, table: &Rc<Table>, key: Key, value: Value) -> Result<(), Fault> {
        self.tick(1)?;
        let whole = Value::Map(Rc::clone(table));
        self.put_into(&whole, &value);
        self.put_into(&whole, &key.to_value());
        let place = match table.form() {
            Form::Sorted if !table.contains(&key) => Some(self.place_of(table, &key)?),
            _ => None,
        };
        table.change(|entries| match place {
            Some(at) => _ = entries.shift_insert(at, key, value),
            None => _ = entries.insert(key, value),
        })
    }

    /// Where a key belongs in a sorted table.
    pub(crate) fn place_of(&mut self, table: &Rc<Table>, key: &Key) -> Result<usize, Fault> {
        let (mut low, mut high) = (0, table.len());
        self.tick(1 + high / 64)?;
        let key = key.to_value();
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(other) = table.at(middle).map(|(key, _)| key.to_value()) else { break };
            if self.compare(&other, &key)?.is_lt() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Removes an entry, and gives its value.
    pub(crate) fn remove(&mut self, table: &Rc<Table>, key: &Key) -> Result<Option<Value>, Fault> {
        self.tick(1 + table.len() / 64)?;
        table.change(|entries| entries.shift_remove(key))
    }

    // Fields of documents.

    /// The field of this name.
    pub(crate) fn field_named(&self, name: &str) -> Rc<Field> {
        match self.state.fields.iter().find(|field| *field.name == *name) {
            Some(field) => Rc::clone(field),
            None => Rc::new(Field { name: name.into(), place: None }),
        }
    }

    pub(crate) fn name_of(&self, value: &Value) -> Result<String, Fault> {
        match value.as_str() {
            Some(name) => Ok(name.to_owned()),
            None => Err(Fault::cast(value.class_name(), "java.lang.String")),
        }
    }

    /// `doc['name']`.
    pub(crate) fn doc(&mut self, field: Rc<Field>) -> Result<Value, Fault> {
        match self.host.has_field(&field)? {
            true => Ok(Value::Doc(field)),
            false => Err(Fault::illegal(format!("No field found for [{}] in mapping", field.name))),
        }
    }

    pub(crate) fn count_of(&mut self, field: &Field) -> Result<usize, Fault> {
        if self.host.has_field(field)? { self.host.count(field) } else { Ok(0) }
    }

    /// `doc['name'].value`.
    pub(crate) fn first_of(&mut self, field: &Rc<Field>) -> Result<Value, Fault> {
        if !self.host.has_field(field)? {
            return Err(Fault::illegal(format!("No field found for [{}] in mapping", field.name)));
        }
        if self.host.count(field)? == 0 { Err(no_value()) } else { self.host.value(field, 0) }
    }

    /// A value of a field, or a default.
    pub(crate) fn field_or(&mut self, field: &Field, at: usize, default: Value) -> Result<Value, Fault> {
        if at < self.count_of(field)? { self.host.value(field, at) } else { Ok(default) }
    }

    // Going through collections.

    /// The elements of a collection at this moment.
    pub(crate) fn items(&mut self, value: &Value) -> Result<Vec<Value>, Fault> {
        let items = match value {
            Value::List(list) => list.to_vec(),
            Value::Set(table) => table.keys(),
            Value::Doc(field) => {
                let count = self.count_of(field)?;
                (0..count).map(|at| self.host.value(field, at)).collect::<Result<_, _>>()?
            }
            Value::Null => return Err(Fault::null("iterator")),
            Value::Object(object) => match &**object {
                Object::View(table, part) => {
                    let length = table.len();
                    (0..length).filter_map(|at| part.element(table, at)).collect()
                }
                Object::Field(field) => return self.items(&Value::Doc(Rc::clone(field))),
                Object::Stream(items, _) => items.take(),
                Object::Cursor(cursor) => {
                    let mut items = Vec::new();
                    while cursor.has_next() {
                        items.push(cursor.advance()?);
                    }
                    items
                }
                _ => return Err(not_iterable(value)),
            },
            _ => return Err(not_iterable(value)),
        };
        self.tick(items.len())?;
        self.room(items.len() * size_of::<Value>())?;
        Ok(items)
    }

    /// A position at the beginning of a collection.
    pub(crate) fn cursor(&mut self, value: &Value) -> Result<Cursor, Fault> {
        Ok(Cursor::new(match value {
            Value::List(list) => Source::List(Rc::clone(list)),
            Value::Set(table) => Source::Table(Rc::clone(table), crate::value::object::Part::Keys),
            Value::Object(object) => match &**object {
                Object::View(table, part) => Source::Table(Rc::clone(table), *part),
                _ => Source::Items(Kept::new(self.items(value)?)),
            },
            _ => Source::Items(Kept::new(self.items(value)?)),
        }))
    }
}

fn not_iterable(value: &Value) -> Fault {
    let class = value.class_name();
    Fault::illegal(format!("Cannot iterate over [{class}]"))
}

fn no_value() -> Fault {
    Fault::new(
        "illegal_state_exception",
        "A document doesn't have a value for a field! Use doc[<field>].size()==0 to check if a document is missing a field!",
    )
}

/// A length as an int.
pub(crate) fn count(length: usize) -> Value {
    Value::Int(i32::try_from(length).unwrap_or(i32::MAX))
}

/// The position that an index means; a negative one counts from the end.
fn position(index: &Value, list: &Rc<List>) -> Result<usize, Fault> {
    let length = list.len();
    let index = coerce(index.clone(), Type::INT, false)?.as_i64().unwrap_or_default();
    let at = if index < 0 { index + length as i64 } else { index };
    let is_array = matches!(list.form(), Form::Array(_));
    usize::try_from(at).ok().filter(|at| *at < length).ok_or_else(|| {
        let mut fault = Fault::index(at, length);
        if is_array {
            fault.0.kind = "array_index_out_of_bounds_exception";
        }
        fault
    })
}
