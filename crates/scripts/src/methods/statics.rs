//! Static methods, constructors and constants.

use std::rc::Rc;

use super::streams::stream;
use super::{double, int, long, text};
use crate::error::Fault;
use crate::machine::numbers::{coerce, converted};
use crate::machine::{Run, count};
use crate::moment::{Class, Moment};
use crate::object::{Builder, Object, ZoneName};
use crate::tree::Kind;
use crate::types::{Type, exception};
use crate::value::{Entries, Form, Table, Value};

/// Static methods of the classes, with the numbers of arguments that they take; those of a class in several lines add up.
const STATICS: &[(&str, &str)] = &[
    (
        "Math StrictMath",
        "abs/1 acos/1 asin/1 atan/1 atan2/2 cbrt/1 ceil/1 cos/1 cosh/1 exp/1 expm1/1 floor/1 hypot/2 log/1 log10/1 log1p/1 max/2 \
         min/2 pow/2 rint/1 round/1 signum/1 sin/1 sinh/1 sqrt/1 tan/1 tanh/1 toDegrees/1 toRadians/1",
    ),
    ("Integer Long Short Byte Float Double Boolean Character", "valueOf/1 toString/1 compare/2 hashCode/1"),
    ("Integer Long", "valueOf/2 toString/2 signum/1 max/2 min/2 bitCount/1 toBinaryString/1 toHexString/1 toOctalString/1"),
    ("Integer", "parseInt/1 parseInt/2"),
    ("Long", "parseLong/1 parseLong/2 sum/2"),
    ("Short", "parseShort/1"),
    ("Byte", "parseByte/1"),
    ("Float", "parseFloat/1 isNaN/1 isInfinite/1 isFinite/1 max/2 min/2 sum/2"),
    ("Double", "parseDouble/1 isNaN/1 isInfinite/1 isFinite/1 max/2 min/2 sum/2"),
    ("Boolean", "parseBoolean/1 logicalAnd/2 logicalOr/2 logicalXor/2"),
    (
        "Character",
        "isDigit/1 isLetter/1 isLetterOrDigit/1 isUpperCase/1 isLowerCase/1 isWhitespace/1 isAlphabetic/1 isSpaceChar/1 toUpperCase/1 \
         toLowerCase/1 getNumericValue/1 digit/2",
    ),
    ("String", "valueOf/1 copyValueOf/1 join/2 join/3 join/4 join/5 join/6 format/1 format/2 format/3 format/4 format/5 format/6 format/7 format/8 format/9"),
    ("Objects", "equals/2 isNull/1 nonNull/1 requireNonNull/1 requireNonNull/2 requireNonNullElse/2 toString/1 toString/2 hashCode/1 hash/1 hash/2 hash/3"),
    (
        "Collections",
        "sort/1 sort/2 reverse/1 reverseOrder/0 reverseOrder/1 max/1 max/2 min/1 min/2 emptyList/0 emptyMap/0 emptySet/0 singletonList/1 \
         singleton/1 singletonMap/2 unmodifiableList/1 unmodifiableMap/1 unmodifiableSet/1 unmodifiableCollection/1 nCopies/2 frequency/2 \
         addAll/2 addAll/3 addAll/4 disjoint/2 swap/3 fill/2",
    ),
    ("Arrays", "asList/0 asList/1 asList/2 asList/3 asList/4 asList/5 asList/6 asList/7 asList/8 stream/1 sort/1 toString/1"),
    (
        "Collectors",
        "toList/0 toSet/0 toUnmodifiableList/0 toUnmodifiableSet/0 toCollection/1 joining/0 joining/1 joining/3 counting/0 summingInt/1 \
         summingLong/1 summingDouble/1 averagingInt/1 averagingLong/1 averagingDouble/1 mapping/2 filtering/2 minBy/1 maxBy/1 reducing/2 \
         toMap/2 toMap/3 toMap/4 groupingBy/1 groupingBy/2 groupingBy/3 partitioningBy/1 partitioningBy/2",
    ),
    (
        "Comparator",
        "naturalOrder/0 reverseOrder/0 comparing/1 comparing/2 comparingInt/1 comparingLong/1 comparingDouble/1 nullsFirst/1 nullsLast/1",
    ),
    ("Map.Entry", "comparingByKey/0 comparingByKey/1 comparingByValue/0 comparingByValue/1"),
    ("Stream IntStream LongStream DoubleStream", "of/1 of/2 of/3 of/4 of/5 of/6 empty/0 concat/2"),
    ("IntStream LongStream", "range/2 rangeClosed/2"),
    ("Function UnaryOperator", "identity/0"),
    ("Optional", "of/1 ofNullable/1 empty/0"),
    ("Pattern", "compile/1 compile/2 matches/2 quote/1"),
    ("Instant", "parse/1 ofEpochMilli/1 ofEpochSecond/1 ofEpochSecond/2 from/1"),
    ("ZonedDateTime", "parse/1 parse/2 ofInstant/2 of/8 of/3 from/1"),
    ("OffsetDateTime", "parse/1 parse/2 ofInstant/2"),
    ("LocalDate", "parse/1 parse/2 of/3 ofEpochDay/1 from/1"),
    ("LocalDateTime", "parse/1 parse/2 of/2 of/5 of/6 of/7 ofInstant/2 ofEpochSecond/3 from/1"),
    ("LocalTime", "parse/1 parse/2 of/2 of/3"),
    ("Duration", "between/2 ofDays/1 ofHours/1 ofMinutes/1 ofSeconds/1 ofMillis/1 ofNanos/1"),
    ("DateTimeFormatter", "ofPattern/1 ofPattern/2"),
    ("ZoneId ZoneOffset TimeZone", "of/1 getTimeZone/1 ofHours/1"),
    ("DayOfWeek Month", "of/1"),
    ("DayOfWeek Month ChronoUnit", "valueOf/1"),
    ("Date", "from/1"),
    ("Year", "isLeap/1"),
    ("Locale", "forLanguageTag/1"),
];

/// Constructors, with the numbers of arguments that they take.
const CONSTRUCTORS: &[(&str, &str)] = &[
    ("ArrayList LinkedList Vector ArrayDeque HashSet LinkedHashSet TreeSet HashMap LinkedHashMap TreeMap Hashtable", "0 1"),
    ("Stack Object", "0"),
    ("StringBuilder", "0 1"),
    ("String", "0"),
    ("Date", "1"),
    ("SimpleDateFormat", "1 2"),
];

/// Members of enumerations, in their order.
const MEMBERS: &[(&str, &str)] = &[
    ("DayOfWeek", "MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY"),
    ("Month", "JANUARY FEBRUARY MARCH APRIL MAY JUNE JULY AUGUST SEPTEMBER OCTOBER NOVEMBER DECEMBER"),
    ("ChronoUnit", "NANOS MICROS MILLIS SECONDS MINUTES HOURS HALF_DAYS DAYS WEEKS MONTHS YEARS DECADES"),
    ("ChronoField", "DAY_OF_WEEK DAY_OF_MONTH DAY_OF_YEAR MONTH_OF_YEAR YEAR HOUR_OF_DAY MINUTE_OF_HOUR SECOND_OF_MINUTE \
                     MILLI_OF_SECOND EPOCH_DAY INSTANT_SECONDS ALIGNED_WEEK_OF_YEAR"),
    ("Locale", "ROOT ENGLISH US UK"),
    ("TextStyle", "FULL SHORT"),
    ("RoundingMode", "UP DOWN CEILING FLOOR HALF_UP HALF_DOWN HALF_EVEN"),
    ("ZoneOffset", "UTC"),
    ("DateTimeFormatter", "ISO_DATE_TIME ISO_INSTANT ISO_ZONED_DATE_TIME ISO_OFFSET_DATE_TIME ISO_LOCAL_DATE ISO_DATE ISO_LOCAL_DATE_TIME \
                           ISO_LOCAL_TIME BASIC_ISO_DATE"),
];

fn of_class(table: &'static [(&str, &str)], class: &str) -> impl Iterator<Item = &'static str> {
    let lines = table.iter().filter(move |(classes, _)| classes.split(' ').any(|known| known == class));
    lines.flat_map(|(_, entries)| entries.split_whitespace())
}

/// Whether a class has a static method of this name with so many arguments.
pub(crate) fn has_static(class: &str, name: &str, arguments: usize) -> bool {
    of_class(STATICS, class).any(|known| {
        known.split_once('/').is_some_and(|(known, count)| known == name && count.parse() == Ok(arguments))
    })
}

/// Whether a class has a constructor with so many arguments.
pub(crate) fn has_constructor(class: &str, arguments: usize) -> bool {
    exception(class).is_some() && arguments < 2
        || of_class(CONSTRUCTORS, class).any(|known| known.parse() == Ok(arguments))
}

/// Members of an enumeration.
pub(super) fn members(class: &str) -> Vec<&'static str> {
    of_class(MEMBERS, class).collect()
}

/// Position of a member of an enumeration.
pub(crate) fn ordinal(class: &str, name: &str) -> usize {
    of_class(MEMBERS, class).position(|known| known == name).unwrap_or_default()
}

/// A constant of a class.
pub(crate) fn constant(class: &'static str, name: &str) -> Option<Kind> {
    Some(match (class, name) {
        ("Integer", "MAX_VALUE") => Kind::Int(i32::MAX),
        ("Integer", "MIN_VALUE") => Kind::Int(i32::MIN),
        ("Long", "MAX_VALUE") => Kind::Long(i64::MAX),
        ("Long", "MIN_VALUE") => Kind::Long(i64::MIN),
        ("Short", "MAX_VALUE") => Kind::Int(i32::from(i16::MAX)),
        ("Short", "MIN_VALUE") => Kind::Int(i32::from(i16::MIN)),
        ("Byte", "MAX_VALUE") => Kind::Int(i32::from(i8::MAX)),
        ("Byte", "MIN_VALUE") => Kind::Int(i32::from(i8::MIN)),
        ("Character", "MAX_VALUE") => Kind::Char(u16::MAX),
        ("Character", "MIN_VALUE") => Kind::Char(0),
        ("Double", "MAX_VALUE") => Kind::Double(f64::MAX),
        ("Double", "MIN_VALUE") => Kind::Double(f64::from_bits(1)),
        ("Double", "NaN") => Kind::Double(f64::NAN),
        ("Double", "POSITIVE_INFINITY") => Kind::Double(f64::INFINITY),
        ("Double", "NEGATIVE_INFINITY") => Kind::Double(f64::NEG_INFINITY),
        ("Float", "MAX_VALUE") => Kind::Float(f32::MAX),
        ("Float", "MIN_VALUE") => Kind::Float(f32::from_bits(1)),
        ("Float", "NaN") => Kind::Float(f32::NAN),
        ("Float", "POSITIVE_INFINITY") => Kind::Float(f32::INFINITY),
        ("Float", "NEGATIVE_INFINITY") => Kind::Float(f32::NEG_INFINITY),
        ("Math" | "StrictMath", "PI") => Kind::Double(std::f64::consts::PI),
        ("Math" | "StrictMath", "E") => Kind::Double(std::f64::consts::E),
        ("Boolean", "TRUE") => Kind::Bool(true),
        ("Boolean", "FALSE") => Kind::Bool(false),
        ("Pattern", "CASE_INSENSITIVE") => Kind::Int(2),
        ("Pattern", "MULTILINE") => Kind::Int(8),
        ("Pattern", "DOTALL") => Kind::Int(32),
        ("Pattern", "UNICODE_CASE") => Kind::Int(64),
        _ => Kind::Named(class, of_class(MEMBERS, class).find(|known| *known == name)?),
    })
}

impl Run<'_> {
    /// Calls a static method that [`has_static`].
    pub(crate) fn call_static(&mut self, class: &'static str, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        self.tick(1)?;
        let unknown = || Fault::no_method(class, name, arguments.len());
        match class {
            "Math" | "StrictMath" => math(name, arguments),
            "Integer" | "Long" | "Short" | "Byte" | "Float" | "Double" | "Boolean" => self.number_static(class, name, arguments),
            "Character" => character(name, arguments),
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
                        Value::List(list) if list.form() == Form::Array(Type { name: "char", dimensions: 0 }) => {
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
                let known = of_class(STATICS, class).filter_map(|known| known.split_once('/')).find(|known| known.0 == name);
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
                    ("range" | "rangeClosed", [from, to]) => self.range(from, to, name == "rangeClosed", kind.unwrap_or("int")),
                    ("concat", [a, b]) => {
                        let mut items = self.items(a)?;
                        items.extend(self.items(b)?);
                        Ok(stream(items, kind))
                    }
                    ("of", [array @ Value::List(list)]) if matches!(list.form(), Form::Array(_)) => Ok(stream(self.items(array)?, kind)),
                    (_, items) => Ok(stream(items.to_vec(), kind)),
                }
            }
            "Function" | "UnaryOperator" => {
                Ok(Object::Reference(Some("Objects"), crate::object::Kept::new(Vec::new()), "requireNonNullElse".into()).into())
            }
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
                ("matches", [pattern, over]) => self.call_method(over, name, std::slice::from_ref(pattern)),
                (_, [pattern, rest @ ..]) => {
                    let flags = rest.first().map_or(Ok(0), int)?;
                    let letters = [(2, 'i'), (8, 'm'), (32, 's'), (64, 'u')];
                    let flags: String =
                        letters.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| *letter).collect();
                    let pattern = self.pattern(&text(pattern)?, &flags)?;
                    Ok(Object::Pattern(pattern).into())
                }
                _ => Err(unknown()),
            },
            _ => self.date_static(class, name, arguments),
        }
    }

    fn number_static(&mut self, class: &'static str, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        let kind = Type { name: class, dimensions: 0 };
        match (name, arguments) {
            ("toString", [value]) => {
                let value = coerce(value.clone(), kind, false)?;
                let shown = self.shown(&value)?;
                self.text(shown)
            }
            ("toString", [value, radix]) => Ok(Value::text(in_radix(long(value)?, int(radix)?))),
            ("toBinaryString" | "toHexString" | "toOctalString", [value]) => {
                let bits = match value {
                    Value::Long(long) => long.cast_unsigned(),
                    other => u64::from(int(other)?.cast_unsigned()),
                };
                Ok(Value::text(match name {
                    "toBinaryString" => format!("{bits:b}"),
                    "toHexString" => format!("{bits:x}"),
                    _ => format!("{bits:o}"),
                }))
            }
            ("compare", [a, b]) => {
                let (a, b) = (coerce(a.clone(), kind, false)?, coerce(b.clone(), kind, false)?);
                Ok(Value::Int(self.compare(&a, &b)? as i32))
            }
            ("hashCode", [value]) => self.call_method(value, name, &[]),
            ("parseBoolean", [Value::Null]) => Ok(Value::Bool(false)),
            ("valueOf" | "parseBoolean", [Value::Text(text)]) if class == "Boolean" => {
                Ok(Value::Bool(text.eq_ignore_ascii_case("true")))
            }
            ("logicalAnd" | "logicalOr" | "logicalXor", [a, b]) => {
                let (a, b) = (self.as_truth(a)?, self.as_truth(b)?);
                Ok(Value::Bool(match name {
                    "logicalAnd" => a && b,
                    "logicalOr" => a || b,
                    _ => a ^ b,
                }))
            }
            ("isNaN", [value]) => Ok(Value::Bool(double(value)?.is_nan())),
            ("isInfinite", [value]) => Ok(Value::Bool(double(value)?.is_infinite())),
            ("isFinite", [value]) => Ok(Value::Bool(double(value)?.is_finite())),
            ("max" | "min" | "signum", _) => {
                let arguments: Result<Vec<Value>, Fault> =
                    arguments.iter().map(|value| coerce(value.clone(), kind, false)).collect();
                let arguments = arguments?;
                if let ([a, b], false) = (&arguments[..], class == "Float" || class == "Double") {
                    let order = self.compare(a, b)?;
                    return Ok(if if name == "max" { order.is_ge() } else { order.is_le() } { a.clone() } else { b.clone() });
                }
                let to = if name == "signum" { "int" } else { class };
                Ok(converted(&math(name, &arguments)?, to).unwrap_or_default())
            }
            ("sum", [a, b]) => {
                let (a, b) = (coerce(a.clone(), kind, false)?, coerce(b.clone(), kind, false)?);
                crate::machine::numbers::combine(crate::tree::Operator::Add, &a, &b)
            }
            ("bitCount", [value]) => Ok(count(match value {
                Value::Long(long) => long.count_ones(),
                other => int(other)?.count_ones(),
            } as usize)),
            // What is left reads a text, or takes a number.
            (_, [value @ (Value::Text(_) | Value::Null), radix @ ..]) => {
                let Value::Text(digits) = value else {
                    return Err(Fault::new("number_format_exception", "Cannot parse null string: null"));
                };
                let radix = radix.first().map_or(Ok(10), int)?;
                let refused = || {
                    let shown: String = digits.chars().take(100).collect();
                    Fault::new("number_format_exception", format!("For input string: \"{shown}\""))
                };
                let radix = u32::try_from(radix).ok().filter(|radix| (2..=36).contains(radix)).ok_or_else(refused)?;
                self.tick_text(digits.len())?;
                Ok(match class {
                    "Integer" => Value::Int(i32::from_str_radix(digits, radix).map_err(|_| refused())?),
                    "Long" => Value::Long(i64::from_str_radix(digits, radix).map_err(|_| refused())?),
                    "Short" => Value::Short(digits.parse().map_err(|_| refused())?),
                    "Byte" => Value::Byte(digits.parse().map_err(|_| refused())?),
                    _ => {
                        let trimmed = digits.trim().trim_end_matches(['d', 'D', 'f', 'F']);
                        // Rust reads a few more words than Java.
                        let words = trimmed.contains(|char: char| char.is_ascii_alphabetic() && !matches!(char, 'e' | 'E'));
                        let number: f64 = match trimmed {
                            "NaN" => f64::NAN,
                            "Infinity" | "+Infinity" => f64::INFINITY,
                            "-Infinity" => f64::NEG_INFINITY,
                            _ if words => return Err(refused()),
                            _ => trimmed.parse().map_err(|_| refused())?,
                        };
                        match class {
                            "Float" => Value::Float(trimmed.parse().unwrap_or(number as f32)),
                            _ => Value::Double(number),
                        }
                    }
                })
            }
            (_, [value]) => coerce(value.clone(), kind, false),
            _ => Err(Fault::no_method(class, name, arguments.len())),
        }
    }

    fn collections_static(&mut self, name: &str, arguments: &[Value]) -> Result<Value, Fault> {
        match (name, arguments) {
            ("sort", [list]) => self.call_method(list, name, &[Value::Null]),
            ("sort", [list, by]) => self.call_method(list, name, std::slice::from_ref(by)),
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
                    self.call_method(into, "add", std::slice::from_ref(item))?;
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
                    self.call_method(&map, "putAll", std::slice::from_ref(from))?;
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
                Ok(Moment::of(Class::Legacy, i128::from(millis) * 1_000_000, &crate::moment::utc())?.into())
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
                Object::Named("ZoneOffset", _) => Ok(crate::moment::utc()),
                _ => Err(Fault::cast(value.class_name(), "java.time.ZoneId")),
            },
            other => ZoneName::named(&text(other)?),
        }
    }
}

/// Functions of `Math`: all of them compute doubles, as in Painless.
#[expect(clippy::cast_possible_truncation, reason = "as Java does it")]
fn math(name: &str, arguments: &[Value]) -> Result<Value, Fault> {
    let unknown = || Fault::no_method("java.lang.Math", name, arguments.len());
    Ok(Value::Double(match arguments {
        [a, b] => {
            let (a, b) = (double(a)?, double(b)?);
            match name {
                "max" | "min" if a.is_nan() || b.is_nan() => f64::NAN,
                "max" => if a.total_cmp(&b).is_ge() { a } else { b },
                "min" => if a.total_cmp(&b).is_le() { a } else { b },
                "pow" => a.powf(b),
                "atan2" => a.atan2(b),
                "hypot" => a.hypot(b),
                _ => return Err(unknown()),
            }
        }
        [value] => {
            let x = double(value)?;
            match name {
                "abs" => x.abs(),
                "round" => return Ok(Value::Long((x + 0.5).floor() as i64)),
                "acos" => x.acos(),
                "asin" => x.asin(),
                "atan" => x.atan(),
                "cbrt" => x.cbrt(),
                "ceil" => x.ceil(),
                "cos" => x.cos(),
                "cosh" => x.cosh(),
                "exp" => x.exp(),
                "expm1" => x.exp_m1(),
                "floor" => x.floor(),
                "log" => x.ln(),
                "log10" => x.log10(),
                "log1p" => x.ln_1p(),
                "rint" => x.round_ties_even(),
                "signum" if x == 0.0 => x,
                "signum" => x.signum(),
                "sin" => x.sin(),
                "sinh" => x.sinh(),
                "sqrt" => x.sqrt(),
                "tan" => x.tan(),
                "tanh" => x.tanh(),
                "toDegrees" => x.to_degrees(),
                "toRadians" => x.to_radians(),
                _ => return Err(unknown()),
            }
        }
        _ => return Err(unknown()),
    }))
}

fn character(name: &str, arguments: &[Value]) -> Result<Value, Fault> {
    let unknown = || Fault::no_method("java.lang.Character", name, arguments.len());
    let char = |value: &Value| -> Result<char, Fault> {
        let point = match value {
            Value::Text(text) => text.chars().next().map(u32::from),
            other => u32::try_from(long(other)?).ok(),
        };
        Ok(point.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER))
    };
    let [first, rest @ ..] = arguments else { return Err(unknown()) };
    let own = char(first)?;
    // What changes a char gives one; of an int it gives an int.
    let like = |to: char| match first {
        Value::Int(_) => Value::Int(to as i32),
        _ => Value::Char(to.encode_utf16(&mut [0; 2])[0]),
    };
    Ok(match name {
        "isDigit" => Value::Bool(own.is_numeric() && own.to_digit(10).is_some()),
        "isLetter" | "isAlphabetic" => Value::Bool(own.is_alphabetic()),
        "isLetterOrDigit" => Value::Bool(own.is_alphanumeric()),
        "isUpperCase" => Value::Bool(own.is_uppercase()),
        "isLowerCase" => Value::Bool(own.is_lowercase()),
        "isWhitespace" | "isSpaceChar" => Value::Bool(own.is_whitespace()),
        "toUpperCase" => like(own.to_uppercase().next().unwrap_or(own)),
        "toLowerCase" => like(own.to_lowercase().next().unwrap_or(own)),
        "getNumericValue" => Value::Int(own.to_digit(36).map_or(-1, u32::cast_signed)),
        "digit" => {
            let radix = rest.first().map_or(Ok(10), int)?;
            let radix = u32::try_from(radix).ok().filter(|radix| (2..=36).contains(radix));
            Value::Int(radix.and_then(|radix| own.to_digit(radix)).map_or(-1, u32::cast_signed))
        }
        "valueOf" => coerce(first.clone(), Type { name: "char", dimensions: 0 }, true)?,
        "toString" => Value::text(own.to_string()),
        "hashCode" => Value::Int(own as i32),
        "compare" => Value::Int(own as i32 - rest.first().map_or(Ok(own), char)? as i32),
        _ => return Err(unknown()),
    })
}

fn in_radix(number: i64, radix: i32) -> String {
    let radix = u64::try_from(radix).ok().filter(|radix| (2..=36).contains(radix)).unwrap_or(10);
    let (mut rest, mut digits) = (number.unsigned_abs(), Vec::new());
    loop {
        digits.push(char::from_digit((rest % radix) as u32, 36).unwrap_or('0'));
        rest /= radix;
        if rest == 0 {
            break;
        }
    }
    let sign = if number < 0 { "-" } else { "" };
    sign.chars().chain(digits.into_iter().rev()).collect()
}
