//! Objects of the classes that are neither collections nor plain values.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use sparrow_wire::DatePattern;

use crate::regexes::Pattern;
use crate::value::Field;
use crate::value::Value;
use crate::value::collection::{Form, Key, Table};
use crate::value::free;
use crate::value::moment::{Moment, ZoneName};
use crate::value::text::hold;

/// An object.
pub enum Object {
    /// A constant of a class, such as `ChronoUnit.DAYS`: the class, and the constant.
    Named(&'static str, &'static str),
    /// The variable `doc`.
    Docs,
    /// `field('name')`.
    Field(Rc<Field>),
    /// A `StringBuilder`.
    Builder(Builder),
    /// A compiled regular expression.
    Pattern(Pattern),
    /// A regular expression over a text.
    Matcher(Matcher),
    /// A point in time, or a date without a time zone.
    Moment(Moment),
    /// A `Duration`, in nanoseconds.
    Span(i128),
    /// An entry of a map.
    Entry {
        /// The map that `setValue` changes.
        of: Option<Rc<Table>>,
        key: Key,
        value: Kept,
    },
    /// A position in a collection: an `Iterator`.
    Cursor(Cursor),
    /// What `keySet`, `values` and `entrySet` give.
    View(Rc<Table>, Part),
    /// The elements of a stream that was not yet used, and the type of numbers if it is one of numbers.
    Stream(Kept, Option<&'static str>),
    /// A lambda: its body, and the values that it captured.
    Lambda(usize, Kept),
    /// `Class::method`, or `value::method` with the value.
    Reference(Option<&'static str>, Kept, Arc<str>),
    /// A comparator or collector: the method that made it, with its arguments.
    Recipe(&'static str, Kept),
    /// An `Optional`.
    Optional(Kept),
    /// A caught or thrown exception: its class, its type, and its message.
    Exception(&'static str, Option<String>),
    /// A formatter of dates, with its time zone and whether it is a `SimpleDateFormat`.
    Format { pattern: DatePattern, source: String, zone: Option<ZoneName>, is_simple: bool },
    /// A time zone.
    Zone(ZoneName),
}

/// Part of the entries of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Keys,
    Values,
    Entries,
}

impl Part {
    /// The element of a view at a position of the table.
    pub(crate) fn element(self, table: &Rc<Table>, at: usize) -> Option<Value> {
        let (key, value) = table.at(at)?;
        Some(match self {
            Self::Keys => key.to_value(),
            Self::Values => value,
            Self::Entries => entry(Some(table), key, value),
        })
    }
}

/// An entry of a map.
pub(crate) fn entry(of: Option<&Rc<Table>>, key: Key, value: Value) -> Value {
    Object::Entry { of: of.cloned(), key, value: Kept::new(vec![value]) }.into()
}

/// Values that an object refers to.
pub struct Kept(RefCell<Vec<Value>>);

impl Kept {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        hold((values.capacity() * size_of::<Value>()).cast_signed());
        Self(RefCell::new(values))
    }

    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.borrow().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<Value> {
        self.0.borrow().get(at).cloned()
    }

    pub(crate) fn first(&self) -> Option<Value> {
        self.get(0)
    }

    /// Takes the values away.
    pub(crate) fn take(&self) -> Vec<Value> {
        let values = self.0.take();
        hold(-(values.capacity() * size_of::<Value>()).cast_signed());
        values
    }

    /// Replaces the only value, and gives the one before.
    pub(crate) fn replace(&self, value: Value) -> Value {
        match self.0.borrow_mut().first_mut() {
            Some(first) => std::mem::replace(first, value),
            None => Value::Null,
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        free(self.take().into_iter());
    }
}

/// A string that grows.
#[derive(Default)]
pub struct Builder(RefCell<String>);

impl Builder {
    pub(crate) fn new(text: &str) -> Self {
        let builder = Self::default();
        builder.change(|own| own.push_str(text));
        builder
    }

    pub(crate) fn text(&self) -> Ref<'_, String> {
        self.0.borrow()
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut String) -> R) -> R {
        let mut text = self.0.borrow_mut();
        let before = text.capacity();
        let result = change(&mut text);
        hold(text.capacity().cast_signed() - before.cast_signed());
        result
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        hold(-self.0.get_mut().capacity().cast_signed());
    }
}

/// A regular expression over a text, with the last match.
pub struct Matcher {
    pub(crate) pattern: Pattern,
    pub(crate) text: Value,
    /// Byte from which `find` goes on.
    pub(crate) next: Cell<usize>,
    /// Bytes of the last match and of its groups.
    pub(crate) groups: RefCell<Option<Groups>>,
}

/// Bytes between which the groups of a match are.
pub(crate) type Groups = Vec<Option<(usize, usize)>>;

/// A position in a collection that may change meanwhile.
pub struct Cursor {
    pub(crate) of: Source,
    pub(crate) next: Cell<usize>,
    /// Elements there are supposed to be.
    pub(crate) length: Cell<usize>,
}

/// What a cursor goes through.
pub enum Source {
    List(Rc<crate::value::collection::List>),
    Table(Rc<Table>, Part),
    Items(Kept),
}

impl Cursor {
    pub(crate) fn new(of: Source) -> Self {
        let cursor = Self { of, next: Cell::new(0), length: Cell::new(0) };
        cursor.length.set(cursor.count());
        cursor
    }

    /// How many elements there are.
    pub(crate) fn count(&self) -> usize {
        match &self.of {
            Source::List(list) => list.len(),
            Source::Table(table, _) => table.len(),
            Source::Items(items) => items.len(),
        }
    }

    /// Whether there is another element. As in Java, a collection that lost its last element has ended.
    pub(crate) fn has_next(&self) -> bool {
        self.next.get() != self.count()
    }

    /// The next element.
    pub(crate) fn advance(&self) -> Result<Value, crate::error::Fault> {
        let at = self.next.get();
        if self.count() != self.length.get() {
            return Err(crate::error::Fault::bare("concurrent_modification_exception"));
        }
        let element = match &self.of {
            Source::List(list) => list.get(at),
            Source::Table(table, part) => part.element(table, at),
            Source::Items(items) => items.get(at),
        };
        self.next.set(at + 1);
        element.ok_or_else(|| crate::error::Fault::bare("no_such_element_exception"))
    }
}

impl Value {
    /// Java's name of the value's class.
    pub fn class_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "java.lang.Boolean",
            Self::Byte(_) => "java.lang.Byte",
            Self::Short(_) => "java.lang.Short",
            Self::Char(_) => "java.lang.Character",
            Self::Int(_) => "java.lang.Integer",
            Self::Long(_) => "java.lang.Long",
            Self::Float(_) => "java.lang.Float",
            Self::Double(_) => "java.lang.Double",
            Self::Text(_) => "java.lang.String",
            Self::List(list) => match list.form() {
                Form::Growing | Form::Sorted => "java.util.ArrayList",
                Form::Fixed => "java.util.Arrays.ArrayList",
                Form::Frozen => "java.util.Collections.UnmodifiableList",
                Form::Array(_) => "java.lang.Object[]",
            },
            Self::Map(table) => match table.form() {
                Form::Sorted => "java.util.TreeMap",
                _ => "java.util.HashMap",
            },
            Self::Set(table) => match table.form() {
                Form::Sorted => "java.util.TreeSet",
                _ => "java.util.HashSet",
            },
            Self::Doc(_) => "org.elasticsearch.index.fielddata.ScriptDocValues",
            Self::Object(object) => object.class_name(),
        }
    }
}

impl Object {
    /// The values to which it refers.
    pub(crate) fn referred(&self) -> Vec<Value> {
        match self {
            Self::Entry { of, key, value } => {
                let map = of.iter().map(|map| Value::Map(Rc::clone(map)));
                map.chain(value.all()).chain([key.to_value()]).collect()
            }
            Self::Cursor(cursor) => match &cursor.of {
                Source::List(list) => vec![Value::List(Rc::clone(list))],
                Source::Table(table, _) => vec![Value::Map(Rc::clone(table))],
                Source::Items(items) => items.all(),
            },
            Self::View(table, _) => vec![Value::Map(Rc::clone(table))],
            Self::Stream(kept, _)
            | Self::Lambda(_, kept)
            | Self::Reference(_, kept, _)
            | Self::Recipe(_, kept)
            | Self::Optional(kept) => kept.all(),
            _ => Vec::new(),
        }
    }

    fn class_name(&self) -> &'static str {
        match self {
            Self::Named(class, _) => match *class {
                "DayOfWeek" => "java.time.DayOfWeek",
                "Month" => "java.time.Month",
                "ChronoUnit" => "java.time.temporal.ChronoUnit",
                other => other,
            },
            Self::Docs => "org.elasticsearch.search.lookup.LeafDocLookup",
            Self::Field(_) => "org.elasticsearch.script.field.Field",
            Self::Builder(_) => "java.lang.StringBuilder",
            Self::Pattern(_) => "java.util.regex.Pattern",
            Self::Matcher(_) => "java.util.regex.Matcher",
            Self::Moment(moment) => moment.class_name(),
            Self::Span(_) => "java.time.Duration",
            Self::Entry { .. } => "java.util.Map.Entry",
            Self::Cursor(_) => "java.util.Iterator",
            Self::View(_, Part::Values) => "java.util.Collection",
            Self::View(..) => "java.util.Set",
            Self::Stream(_, None) => "java.util.stream.Stream",
            Self::Stream(_, Some("int")) => "java.util.stream.IntStream",
            Self::Stream(_, Some("long")) => "java.util.stream.LongStream",
            Self::Stream(..) => "java.util.stream.DoubleStream",
            Self::Lambda(..) | Self::Reference(..) => "java.util.function.Function",
            Self::Recipe(
                "naturalOrder" | "reverseOrder" | "reversed" | "comparing" | "thenComparing" | "nullsFirst"
                | "nullsLast",
                _,
            ) => "java.util.Comparator",
            Self::Recipe(..) => "java.util.stream.Collector",
            Self::Optional(_) => "java.util.Optional",
            Self::Exception(..) => "java.lang.Exception",
            Self::Format { is_simple: true, .. } => "java.text.SimpleDateFormat",
            Self::Format { .. } => "java.time.format.DateTimeFormatter",
            Self::Zone(_) => "java.time.ZoneId",
        }
    }
}
