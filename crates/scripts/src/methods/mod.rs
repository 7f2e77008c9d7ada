//! The methods of Java's classes that scripts may call.

mod builders;
mod collections;
mod dates;
mod format;
mod maps;
mod numerals;
mod objects;
mod statics;
mod streams;
mod strings;

use std::rc::Rc;

use crate::error::Fault;
use crate::machine::Run;
use crate::machine::numbers::{coerce, converted};
use crate::types::{Sort, Type};
use crate::value::Value;
use crate::value::object::Object;
use crate::value::text::Text;

/// The result of a method; none if the class does not have it.
pub(crate) type Found = Result<Option<Value>, Fault>;

impl Run<'_> {
    /// Calls a method of a value.
    pub(crate) fn call_method(
        &mut self,
        value: &Value,
        name: &str,
        arguments: &[Value],
    ) -> Result<Value, Fault> {
        self.tick(1)?;
        if value.is_null() {
            return Err(Fault::null(name));
        }
        match self.method(value, name, arguments)? {
            Some(result) => Ok(result),
            None => Err(Fault::no_method(value.class_name(), name, arguments.len())),
        }
    }

    /// Calls a method of a value, if its class has it.
    pub(crate) fn method(&mut self, value: &Value, name: &str, arguments: &[Value]) -> Found {
        let found = match value {
            Value::Null => None,
            Value::Text(text) => self.string_method(text, name, arguments)?,
            Value::Map(table) => self.map_method(table, name, arguments)?,
            Value::List(list) => match self.list_method(list, name, arguments)? {
                None => self.collection_method(value, name, arguments)?,
                found => found,
            },
            Value::Set(table) => match self.set_method(table, name, arguments)? {
                None => self.collection_method(value, name, arguments)?,
                found => found,
            },
            Value::Doc(field) => match self.host.method(field, name, arguments)? {
                None => self.doc_method(field, value, name, arguments)?,
                found => found,
            },
            Value::Object(object) => self.object_method(value, object, name, arguments)?,
            plain => number_method(plain, name, arguments)?,
        };
        if found.is_some() {
            return Ok(found);
        }
        Ok(Some(match (name, arguments) {
            ("toString", []) => {
                let text = self.shown(value)?;
                self.text(text)?
            }
            ("equals", [other]) => Value::Bool(self.equals(value, other, 0)?),
            ("compareTo", [other]) => Value::Int(self.compare(value, other)? as i32),
            ("hashCode", []) => Value::Int(self.hash(value, 0)?),
            _ => return Ok(None),
        }))
    }

    /// Java's `hashCode`.
    fn hash(&mut self, value: &Value, depth: usize) -> Result<i32, Fault> {
        let fold = |bits: u64| ((bits >> 32) as u32 ^ bits as u32).cast_signed();
        Ok(match value {
            Value::Null => 0,
            Value::Bool(truth) => {
                if *truth {
                    1231
                } else {
                    1237
                }
            }
            Value::Long(long) => fold(long.cast_unsigned()),
            Value::Double(double) => fold(double.to_bits()),
            Value::Float(float) => float.to_bits().cast_signed(),
            Value::Text(text) => {
                self.tick_text(text.len())?;
                text.encode_utf16()
                    .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)))
            }
            Value::List(_) if depth < 100 => {
                let items = self.items(value)?;
                let mut hash = 1_i32;
                for item in items {
                    hash = hash.wrapping_mul(31).wrapping_add(self.hash(&item, depth + 1)?);
                }
                hash
            }
            Value::Map(table) if depth < 100 => {
                let mut hash = 0_i32;
                self.tick(table.len())?;
                for (key, value) in table.pairs() {
                    let key = self.hash(&key.to_value(), depth + 1)?;
                    hash = hash.wrapping_add(key ^ self.hash(&value, depth + 1)?);
                }
                hash
            }
            other => match other.as_i64() {
                Some(number) => int(&Value::Long(number))?,
                None => return Err(Fault::no_method(other.class_name(), "hashCode", 0)),
            },
        })
    }
}

/// An argument as an int, as far as Java converts it by itself.
pub(crate) fn int(value: &Value) -> Result<i32, Fault> {
    match coerce(value.clone(), Type::INT, false) {
        Ok(Value::Int(int)) => Ok(int),
        Ok(_) => Err(Fault::null("int")),
        Err(fault) => match value {
            Value::Long(long) => i32::try_from(*long).map_err(|_| fault),
            _ => Err(fault),
        },
    }
}

/// An argument as a position or a length.
pub(crate) fn length(value: &Value) -> Result<usize, Fault> {
    let int = int(value)?;
    usize::try_from(int).map_err(|_| Fault::illegal(format!("[{int}] is negative")))
}

pub(crate) fn long(value: &Value) -> Result<i64, Fault> {
    match value.as_i64() {
        Some(long) => Ok(long),
        None if value.is_null() => Err(Fault::null("long")),
        None => Err(Fault::cast(value.class_name(), "long")),
    }
}

pub(crate) fn double(value: &Value) -> Result<f64, Fault> {
    match value.as_f64() {
        Some(double) => Ok(double),
        None if value.is_null() => Err(Fault::null("double")),
        None => Err(Fault::cast(value.class_name(), "double")),
    }
}

/// An argument as a text; a char is one.
pub(crate) fn text(value: &Value) -> Result<Rc<Text>, Fault> {
    match value {
        Value::Text(text) => Ok(Rc::clone(text)),
        Value::Char(unit) => Ok(Text::new(String::from_utf16_lossy(&[*unit]))),
        Value::Null => Err(Fault::null("String")),
        Value::Object(object) => match &**object {
            Object::Builder(builder) => Ok(Text::new(builder.text().clone())),
            _ => Err(Fault::cast(value.class_name(), "java.lang.String")),
        },
        _ => Err(Fault::cast(value.class_name(), "java.lang.String")),
    }
}

fn number_method(value: &Value, name: &str, arguments: &[Value]) -> Found {
    Ok(match (name, arguments) {
        ("booleanValue", []) if value.as_bool().is_some() => Some(value.clone()),
        ("isNaN" | "isInfinite", []) => match value {
            Value::Double(_) | Value::Float(_) => {
                let double = double(value)?;
                Some(Value::Bool(if name == "isNaN" { double.is_nan() } else { double.is_infinite() }))
            }
            _ => None,
        },
        (name, []) => name.strip_suffix("Value").and_then(|kind| converted(value, Sort::of(kind))),
        _ => None,
    })
}
