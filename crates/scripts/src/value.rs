//! Values of scripts.
//!
//! Collections are shared and mutable, as in Java: `def x = ctx.a; x.add(1)` changes the document. They count what they hold
//! against the run's limit of memory, know whether they are constants of the request, and free what they hold without recursion.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use indexmap::{Equivalent, IndexMap};
use serde_json::{Map as JsonMap, Value as Json};

use crate::context::Field;
use crate::error::Fault;
use crate::moment::Moment;
use crate::object::Object;

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

impl Value {
    /// Converts a value of a document or a request. Numbers become the smallest of int, long and double that holds them.
    pub fn from_json(json: &Json) -> Self {
        Self::converted(json, None)
    }

    /// A map of the constants of a request: changing one of its collections sets the flag.
    pub(crate) fn constants(json: &JsonMap<String, Json>, changed: &Rc<Cell<bool>>) -> Self {
        Self::members(json, Some(changed))
    }

    fn members(json: &JsonMap<String, Json>, changed: Option<&Rc<Cell<bool>>>) -> Self {
        let entries = json.iter().map(|(name, value)| (Key::from(name.as_str()), Self::converted(value, changed)));
        Self::Map(Rc::new(Table::new(entries.collect(), Form::Growing, changed.cloned())))
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
            Json::Object(members) => Self::members(members, changed),
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
        if let Self::List(list) = self { Some(Ref::map(list.items.borrow(), Vec::as_slice)) } else { None }
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
            Self::Object(object) => !matches!(**object, Object::Moment(_) | Object::Pattern(_) | Object::Named(..)),
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
                table.pairs().into_iter().flat_map(|(key, value)| [key.into_value(), value]).collect()
            }
            Self::Object(object) => object.referred(),
            _ => Vec::new(),
        }
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
    /// Bytes that texts and collections of this thread hold.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// Whether values are being freed, and those that wait for it.
    static FREEING: Cell<bool> = const { Cell::new(false) };
    static FREED: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that the texts and collections of this thread hold. Only differences mean something.
pub(crate) fn held() -> isize {
    HELD.get()
}

/// Counts bytes that a value holds from now on, or no longer if negative.
pub(crate) fn hold(bytes: isize) {
    HELD.set(HELD.get().wrapping_add(bytes));
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

/// A string. Java's positions count UTF-16 units, which are the bytes of a text in ASCII.
pub struct Text {
    text: String,
    is_ascii: bool,
    /// The units of a text with other characters, once a position in it was asked for.
    units: OnceCell<Box<[u16]>>,
}

impl Text {
    pub(crate) fn new(text: String) -> Rc<Self> {
        hold(text.capacity().cast_signed() + 64);
        Rc::new(Self { is_ascii: text.is_ascii(), text, units: OnceCell::new() })
    }

    fn units(&self) -> &[u16] {
        self.units.get_or_init(|| {
            let units: Box<[u16]> = self.text.encode_utf16().collect();
            hold(2 * units.len().cast_signed());
            units
        })
    }

    /// Length in UTF-16 units.
    pub(crate) fn length(&self) -> usize {
        if self.is_ascii { self.text.len() } else { self.units().len() }
    }

    /// The unit at a position.
    pub(crate) fn unit(&self, at: usize) -> Option<u16> {
        if self.is_ascii { self.text.as_bytes().get(at).map(|byte| u16::from(*byte)) } else { self.units().get(at).copied() }
    }

    /// The part between two positions, of which the first is not greater and the second at most the length.
    pub(crate) fn part(&self, from: usize, to: usize) -> String {
        match self.is_ascii {
            true => self.text.get(from..to).unwrap_or_default().to_owned(),
            false => String::from_utf16_lossy(self.units().get(from..to).unwrap_or_default()),
        }
    }

    /// The byte at which a position begins; the length in bytes for one behind the end.
    pub(crate) fn byte_at(&self, position: usize) -> usize {
        if self.is_ascii {
            return position.min(self.text.len());
        }
        let mut units = 0;
        for (byte, char) in self.text.char_indices() {
            if units >= position {
                return byte;
            }
            units += char.len_utf16();
        }
        self.text.len()
    }

    /// The position of a byte.
    pub(crate) fn position(&self, byte: usize) -> usize {
        if self.is_ascii { byte } else { self.text[..byte].chars().map(char::len_utf16).sum() }
    }
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let units = self.units.get().map_or(0, |units| 2 * units.len());
        hold(-(self.text.capacity() + 64 + units).cast_signed());
    }
}

/// What may be done to a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Anything.
    Growing,
    /// Anything; the keys are sorted.
    Sorted,
    /// Elements can be replaced: a list over an array.
    Fixed,
    /// The same, and it is an array of this type.
    Array(crate::types::Type),
    /// Nothing.
    Frozen,
}

/// What all collections have.
#[derive(Debug)]
struct Common {
    form: Form,
    /// Set when the collection changes, if it is a constant of the request.
    changed: Option<Rc<Cell<bool>>>,
    /// Whether the machine knows that the collection may be part of a circle.
    suspected: Cell<bool>,
}

impl Common {
    fn check(&self, grows: bool) -> Result<(), Fault> {
        match self.form {
            Form::Growing | Form::Sorted => {}
            Form::Fixed | Form::Array(_) if !grows => {}
            _ => return Err(Fault::bare("unsupported_operation_exception")),
        }
        if let Some(changed) = &self.changed {
            changed.set(true);
        }
        Ok(())
    }
}

/// A list or an array.
pub struct List {
    items: RefCell<Vec<Value>>,
    common: Common,
}

impl List {
    pub(crate) fn new(items: Vec<Value>, form: Form, changed: Option<Rc<Cell<bool>>>) -> Self {
        hold(Self::size(&items));
        Self { items: RefCell::new(items), common: Common { form, changed, suspected: Cell::new(false) } }
    }

    fn size(items: &Vec<Value>) -> isize {
        (items.capacity() * size_of::<Value>()).cast_signed() + 64
    }

    pub(crate) fn form(&self) -> Form {
        self.common.form
    }

    pub(crate) fn len(&self) -> usize {
        self.items.borrow().len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<Value> {
        self.items.borrow().get(at).cloned()
    }

    /// The elements between two positions that there are.
    pub(crate) fn part(&self, from: usize, to: usize) -> Vec<Value> {
        self.items.borrow().get(from..to).unwrap_or_default().to_vec()
    }

    pub(crate) fn to_vec(&self) -> Vec<Value> {
        self.items.borrow().clone()
    }

    /// Changes the elements; `grows` says whether their number may change.
    pub(crate) fn change<R>(&self, grows: bool, change: impl FnOnce(&mut Vec<Value>) -> R) -> Result<R, Fault> {
        self.common.check(grows)?;
        let mut items = self.items.borrow_mut();
        let before = Self::size(&items);
        let result = change(&mut items);
        hold(Self::size(&items) - before);
        Ok(result)
    }

    /// Whether this is the first time that the list is suspected to be part of a circle.
    pub(crate) fn suspect(&self) -> bool {
        !self.common.suspected.replace(true)
    }

    /// Removes everything.
    pub(crate) fn empty(&self) {
        let items = self.items.take();
        hold(Self::size(&Vec::new()) - Self::size(&items));
        free(items.into_iter());
    }
}

impl Drop for List {
    fn drop(&mut self) {
        self.empty();
        hold(-Self::size(&Vec::new()));
    }
}

/// The entries of a map or a set.
pub(crate) type Entries = IndexMap<Key, Value, foldhash::fast::RandomState>;

/// A map, or a set, which has only keys.
pub struct Table {
    entries: RefCell<Entries>,
    common: Common,
}

impl Table {
    pub(crate) fn new(entries: Entries, form: Form, changed: Option<Rc<Cell<bool>>>) -> Self {
        hold(Self::size(&entries));
        Self { entries: RefCell::new(entries), common: Common { form, changed, suspected: Cell::new(false) } }
    }

    fn size(entries: &Entries) -> isize {
        (entries.capacity() * 64).cast_signed() + 128
    }

    pub(crate) fn form(&self) -> Form {
        self.common.form
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub(crate) fn get<Q: Hash + Equivalent<Key> + ?Sized>(&self, key: &Q) -> Option<Value> {
        self.entries.borrow().get(key).cloned()
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        self.entries.borrow().contains_key(key)
    }

    /// The entry at a position.
    pub(crate) fn at(&self, at: usize) -> Option<(Key, Value)> {
        self.entries.borrow().get_index(at).map(|(key, value)| (key.clone(), value.clone()))
    }

    /// All entries at this moment.
    pub(crate) fn pairs(&self) -> Vec<(Key, Value)> {
        self.entries.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// All keys at this moment.
    pub(crate) fn keys(&self) -> Vec<Value> {
        self.entries.borrow().keys().map(Key::to_value).collect()
    }

    /// A copy of the entries.
    pub(crate) fn copy(&self) -> Entries {
        self.entries.borrow().clone()
    }

    /// Changes the entries.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Entries) -> R) -> Result<R, Fault> {
        self.common.check(true)?;
        let mut entries = self.entries.borrow_mut();
        let before = Self::size(&entries);
        let result = change(&mut entries);
        hold(Self::size(&entries) - before);
        Ok(result)
    }

    /// Whether this is the first time that the table is suspected to be part of a circle.
    pub(crate) fn suspect(&self) -> bool {
        !self.common.suspected.replace(true)
    }

    /// Removes everything.
    pub(crate) fn empty(&self) {
        let entries = self.entries.take();
        hold(Self::size(&Entries::default()) - Self::size(&entries));
        free(entries.into_iter().flat_map(|(key, value)| [key.into_value(), value]));
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.empty();
        hold(-Self::size(&Entries::default()));
    }
}

/// A value as a key: equal as Java's `equals` has it.
#[derive(Clone)]
pub enum Key {
    Text(Rc<Text>),
    /// Null, a boolean or a number.
    Plain(Value),
    /// Anything else, with a text that only equal values have. The value must not change, as in Java.
    Deep(Rc<(String, Value)>),
}

impl Key {
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::Text(Rc::clone(text)),
            Self::Plain(value) => value.clone(),
            Self::Deep(deep) => deep.1.clone(),
        }
    }

    fn into_value(self) -> Value {
        self.to_value()
    }

    /// What tells apart values that are no texts.
    fn bits(value: &Value) -> (u8, u64) {
        match value {
            Value::Bool(truth) => (1, u64::from(*truth)),
            Value::Byte(byte) => (2, i64::from(*byte).cast_unsigned()),
            Value::Short(short) => (3, i64::from(*short).cast_unsigned()),
            Value::Char(unit) => (4, u64::from(*unit)),
            Value::Int(int) => (5, i64::from(*int).cast_unsigned()),
            Value::Long(long) => (6, long.cast_unsigned()),
            Value::Float(float) => (7, u64::from(float.to_bits())),
            Value::Double(double) => (8, double.to_bits()),
            _ => (0, 0),
        }
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self::Text(Text::new(text.to_owned()))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => ***a == ***b,
            (Self::Plain(a), Self::Plain(b)) => Self::bits(a) == Self::bits(b),
            (Self::Deep(a), Self::Deep(b)) => a.0 == b.0,
            _ => false,
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Text(text) => (***text).hash(state),
            Self::Plain(value) => Self::bits(value).hash(state),
            Self::Deep(deep) => deep.0.hash(state),
        }
    }
}

/// A text to look up a [`Key`] with.
pub(crate) struct Name<'a>(pub &'a str);

impl Hash for Name<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<Key> for Name<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        matches!(key, Key::Text(text) if ***text == *self.0)
    }
}
