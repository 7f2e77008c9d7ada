//! Lists, maps and sets. They are shared and mutable, as in Java: `def x = ctx.a; x.add(1)` changes the document. They count what they
//! hold against the run's limit of memory, know whether they are constants of the request, and free what they hold without recursion.

use std::cell::{Cell, Ref, RefCell};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use indexmap::{Equivalent, IndexMap};

use crate::error::Fault;
use crate::value::text::{Text, hold};
use crate::value::{Value, free};

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

    /// The elements, which must not be changed meanwhile.
    pub(crate) fn elements(&self) -> Ref<'_, [Value]> {
        Ref::map(self.items.borrow(), Vec::as_slice)
    }

    pub(crate) fn to_vec(&self) -> Vec<Value> {
        self.items.borrow().clone()
    }

    /// Changes the elements; `grows` says whether their number may change.
    pub(crate) fn change<R>(
        &self,
        grows: bool,
        change: impl FnOnce(&mut Vec<Value>) -> R,
    ) -> Result<R, Fault> {
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

    /// Gives an entry another value, or adds it, and does not count as a change.
    pub(crate) fn overwrite(&self, key: Key, value: Value) {
        let mut entries = self.entries.borrow_mut();
        let before = Self::size(&entries);
        entries.insert(key, value);
        hold(Self::size(&entries) - before);
    }

    /// Whether this is the first time that the table is suspected to be part of a circle.
    pub(crate) fn suspect(&self) -> bool {
        !self.common.suspected.replace(true)
    }

    /// Removes everything.
    pub(crate) fn empty(&self) {
        let entries = self.entries.take();
        hold(Self::size(&Entries::default()) - Self::size(&entries));
        free(entries.into_iter().flat_map(|(key, value)| [key.to_value(), value]));
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
