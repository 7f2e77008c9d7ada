//! Values of scripts.

pub(crate) mod collection;
pub(crate) mod moment;
pub(crate) mod object;
pub(crate) mod text;

use std::cell::{Cell, Ref, RefCell};
use std::fmt;
use std::rc::Rc;

use serde_json::{Map as JsonMap, Value as Json};

use crate::types::Sort;

use self::collection::{Form, Key, List, Name, Table};
use self::moment::Moment;
use self::object::Object;
use self::text::Text;

/// A value. Copies of a collection refer to the same.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Value {
    /// `null`.
    #[default]
    Null,
    /// A `boolean`.
    Bool(bool),
    /// A `byte`.
    Byte(i8),
    /// A `short`.
    Short(i16),
    /// A `char`: a UTF-16 unit.
    Char(u16),
    /// An `int`.
    Int(i32),
    /// A `long`.
    Long(i64),
    /// A `float`.
    Float(f32),
    /// A `double`.
    Double(f64),
    /// A `String`.
    Text(Rc<Text>),
    /// A `List`, or an array.
    List(Rc<List>),
    /// A `Map`, in the order of insertion unless it is sorted.
    Map(Rc<Table>),
    /// A `Set`: the keys of a table.
    Set(Rc<Table>),
    /// The values of a field, `doc['name']`.
    Doc(Rc<Field>),
    /// Anything else.
    Object(Rc<Object>),
}

/// A field that a script reads as `doc['name']`.
#[derive(Debug)]
pub struct Field {
    /// Name of the field in the script.
    pub name: Rc<str>,
    /// Position of the name in [`Script::doc_fields`](crate::Script::doc_fields); none if the name was computed.
    pub place: Option<usize>,
}

impl Value {
    /// The sort of a value.
    pub(crate) fn sort(&self) -> Sort {
        match self {
            Self::Bool(_) => Sort::Boolean,
            Self::Byte(_) => Sort::Byte,
            Self::Short(_) => Sort::Short,
            Self::Char(_) => Sort::Char,
            Self::Int(_) => Sort::Int,
            Self::Long(_) => Sort::Long,
            Self::Float(_) => Sort::Float,
            Self::Double(_) => Sort::Double,
            Self::Text(_) => Sort::Text,
            _ => Sort::Other,
        }
    }

    /// Converts a value of a document or a request. Numbers become the smallest of int, long and double that holds them.
    pub fn from_json(json: &Json) -> Self {
        Self::converted(json, None)
    }

    /// A map of the constants of a request and of others, which hide those of the same name: changing one of its collections sets the
    /// flag.
    pub(crate) fn constants(
        json: Option<&JsonMap<String, Json>>,
        others: &[(Rc<str>, Value)],
        changed: &Rc<Cell<bool>>,
    ) -> Self {
        Self::members(json, others, Some(changed))
    }

    /// Gives entries of a map other values; nobody is told of a change.
    pub(crate) fn overwrite(&self, entries: &[(Rc<str>, Value)]) {
        if let Self::Map(table) = self {
            for (name, value) in entries {
                table.overwrite(Key::from(&**name), value.clone());
            }
        }
    }

    fn members(
        json: Option<&JsonMap<String, Json>>,
        others: &[(Rc<str>, Value)],
        changed: Option<&Rc<Cell<bool>>>,
    ) -> Self {
        let others = others.iter().map(|(name, value)| (Key::from(&**name), value.clone()));
        let own = json
            .into_iter()
            .flatten()
            .map(|(name, value)| (Key::from(name.as_str()), Self::converted(value, changed)));
        Self::Map(Rc::new(Table::new(own.chain(others).collect(), Form::Growing, changed.cloned())))
    }

    fn converted(json: &Json, changed: Option<&Rc<Cell<bool>>>) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(truth) => Self::Bool(*truth),
            Json::Number(number) => match number.as_i64() {
                Some(long) => i32::try_from(long).map_or(Self::Long(long), Self::Int),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::text(text),
            Json::Array(items) => {
                let items = items.iter().map(|item| Self::converted(item, changed)).collect();
                Self::List(Rc::new(List::new(items, Form::Growing, changed.cloned())))
            }
            Json::Object(members) => Self::members(Some(members), &[], changed),
        }
    }

    /// The value as a number of double precision, if it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        Some(match self {
            Self::Double(double) => *double,
            Self::Float(float) => f64::from(*float),
            #[expect(clippy::cast_precision_loss, reason = "as Java does it")]
            other => other.as_i64()? as f64,
        })
    }

    /// The value as an integer, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        Some(match self {
            Self::Byte(byte) => i64::from(*byte),
            Self::Short(short) => i64::from(*short),
            Self::Char(unit) => i64::from(*unit),
            Self::Int(int) => i64::from(*int),
            Self::Long(long) => *long,
            _ => return None,
        })
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(truth) = self { Some(*truth) } else { None }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Milliseconds since 1970, if it is a date.
    pub fn as_millis(&self) -> Option<i64> {
        match self {
            Self::Object(object) => match &**object {
                Object::Moment(moment) => Some(moment.millis()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether both are the same collection or string, and not only equal: what was computed from one holds for the other.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Rc::ptr_eq(a, b),
            (Self::List(a), Self::List(b)) => Rc::ptr_eq(a, b),
            (Self::Map(a), Self::Map(b)) | (Self::Set(a), Self::Set(b)) => Rc::ptr_eq(a, b),
            (Self::Object(a), Self::Object(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// The elements of a list or an array.
    pub fn elements(&self) -> Option<Ref<'_, [Value]>> {
        if let Self::List(list) = self { Some(list.elements()) } else { None }
    }

    /// The value of a map's member, if it is a map that has it.
    pub fn member(&self, name: &str) -> Option<Value> {
        if let Self::Map(map) = self { map.get(&Name(name)) } else { None }
    }

    /// A string.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text.into()))
    }

    /// A list.
    pub fn list(items: Vec<Value>) -> Self {
        Self::Listed(items, Form::Growing)
    }

    #[expect(non_snake_case, reason = "reads as a variant")]
    pub(crate) fn Listed(items: Vec<Value>, form: Form) -> Self {
        Self::List(Rc::new(List::new(items, form, None)))
    }

    /// A map with names as keys.
    pub fn map<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let entries = members.into_iter().map(|(name, value)| (Key::from(name), value)).collect();
        Self::Map(Rc::new(Table::new(entries, Form::Growing, None)))
    }

    /// A `ZonedDateTime` in UTC, such as the values of date fields are, from nanoseconds since 1970.
    pub fn date(nanos: i128) -> Self {
        Moment::utc(nanos).map_or(Self::Null, Into::into)
    }

    /// Whether it refers to other values, so that there may be a circle.
    pub(crate) fn refers(&self) -> bool {
        match self {
            Self::List(_) | Self::Map(_) | Self::Set(_) => true,
            Self::Object(object) => {
                !matches!(**object, Object::Moment(_) | Object::Pattern(_) | Object::Named(..))
            }
            _ => false,
        }
    }
}

impl Value {
    /// Where the value is.
    pub(crate) fn address(&self) -> usize {
        match self {
            Self::List(list) => Rc::as_ptr(list).addr(),
            Self::Map(table) | Self::Set(table) => Rc::as_ptr(table).addr(),
            Self::Object(object) => Rc::as_ptr(object).addr(),
            _ => 0,
        }
    }

    /// Whether nothing else refers to it.
    pub(crate) fn is_alone(&self) -> bool {
        match self {
            Self::List(list) => Rc::strong_count(list) == 1,
            Self::Map(table) | Self::Set(table) => Rc::strong_count(table) == 1,
            Self::Object(object) => Rc::strong_count(object) == 1,
            _ => true,
        }
    }

    /// The values to which it refers.
    pub(crate) fn referred(&self) -> Vec<Value> {
        match self {
            Self::List(list) => list.to_vec(),
            Self::Map(table) | Self::Set(table) => {
                table.pairs().into_iter().flat_map(|(key, value)| [key.to_value(), value]).collect()
            }
            Self::Object(object) => object.referred(),
            _ => Vec::new(),
        }
    }
}

impl From<Moment> for Value {
    fn from(moment: Moment) -> Self {
        Self::Object(Rc::new(Object::Moment(moment)))
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(Rc::new(object))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Text(text) => write!(out, "{:?}", &***text),
            Self::Bool(truth) => write!(out, "{truth}"),
            other => match other.as_f64() {
                Some(number) => write!(out, "{}({number:?})", other.class_name()),
                // Its elements may lead back to it.
                None => out.write_str(other.class_name()),
            },
        }
    }
}

thread_local! {
    /// Whether values are being freed, and those that wait for it.
    static FREEING: Cell<bool> = const { Cell::new(false) };
    static FREED: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// Frees values one after the other: a million lists, each in the next, must not need as deep a stack.
pub(crate) fn free(values: impl Iterator<Item = Value>) {
    let referring = values.filter(Value::refers);
    if FREEING.replace(true) {
        let waiting: Vec<Value> = referring.collect();
        // Where the thread ends there is no list any more: then they are freed here.
        let _ = FREED.try_with(|freed| freed.borrow_mut().extend(waiting));
        return;
    }
    let mut waiting: Vec<Value> = referring.collect();
    while let Some(value) = waiting.pop() {
        drop(value);
        let _ = FREED.try_with(|freed| waiting.append(&mut freed.borrow_mut()));
    }
    FREEING.set(false);
}
