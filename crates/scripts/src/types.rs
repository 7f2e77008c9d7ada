//! The classes that scripts can name.

/// Classes by their simple names, with their packages; `String` is in `java.lang`.
const CLASSES: &[(&str, &str)] = &[
    (
        "java.lang",
        "Object String CharSequence Boolean Byte Short Character Integer Long Float Double Number Math StrictMath \
                   StringBuilder Iterable Comparable",
    ),
    (
        "java.util",
        "List ArrayList LinkedList Collection Map HashMap LinkedHashMap TreeMap SortedMap NavigableMap Hashtable Set HashSet \
         LinkedHashSet TreeSet SortedSet NavigableSet Iterator ListIterator Collections Arrays Objects Optional Comparator Date \
         Locale Map.Entry Deque ArrayDeque Queue Vector Stack TimeZone",
    ),
    (
        "java.util.function",
        "Function BiFunction Predicate BiPredicate Supplier Consumer BiConsumer UnaryOperator BinaryOperator ToDoubleFunction \
         ToIntFunction ToLongFunction IntPredicate IntFunction",
    ),
    ("java.util.stream", "Stream IntStream LongStream DoubleStream Collectors Collector"),
    ("java.util.regex", "Pattern Matcher"),
    ("java.text", "SimpleDateFormat"),
    (
        "java.time",
        "Instant ZonedDateTime LocalDate LocalDateTime LocalTime OffsetDateTime Duration ZoneId ZoneOffset DayOfWeek Month Year",
    ),
    ("java.time.format", "DateTimeFormatter TextStyle"),
    ("java.time.temporal", "ChronoUnit ChronoField TemporalUnit Temporal TemporalAccessor"),
    ("java.math", "RoundingMode"),
];

/// Exceptions with their types in responses, and the more general ones that a `catch` may name. All of them are
/// `RuntimeException`s or `Exception`s.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("Exception", "exception", ""),
    ("RuntimeException", "runtime_exception", "Exception"),
    ("IllegalArgumentException", "illegal_argument_exception", "RuntimeException"),
    ("NumberFormatException", "number_format_exception", "IllegalArgumentException"),
    ("IllegalStateException", "illegal_state_exception", "RuntimeException"),
    ("NullPointerException", "null_pointer_exception", "RuntimeException"),
    ("ClassCastException", "class_cast_exception", "RuntimeException"),
    ("ArithmeticException", "arithmetic_exception", "RuntimeException"),
    ("IndexOutOfBoundsException", "index_out_of_bounds_exception", "RuntimeException"),
    ("ArrayIndexOutOfBoundsException", "array_index_out_of_bounds_exception", "IndexOutOfBoundsException"),
    ("StringIndexOutOfBoundsException", "string_index_out_of_bounds_exception", "IndexOutOfBoundsException"),
    ("UnsupportedOperationException", "unsupported_operation_exception", "RuntimeException"),
    ("ConcurrentModificationException", "concurrent_modification_exception", "RuntimeException"),
    ("NoSuchElementException", "no_such_element_exception", "RuntimeException"),
    ("DateTimeException", "date_time_exception", "RuntimeException"),
    ("DateTimeParseException", "date_time_parse_exception", "DateTimeException"),
    ("ParseException", "parse_exception", "Exception"),
];

/// A type that a declaration, a cast or `instanceof` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// Simple name of the class, or the primitive type.
    pub(crate) name: &'static str,
    /// Number of dimensions, if it is an array.
    pub(crate) dimensions: u8,
    /// What decides quickly how values are converted to it.
    pub(crate) sort: Sort,
}

/// The types of numbers, in the order in which each takes those before it, and the others that conversions know. A boxed type is
/// of the same sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sort {
    Byte,
    Short,
    Char,
    Int,
    Long,
    Float,
    Double,
    Boolean,
    Text,
    Def,
    Void,
    Other,
}

impl Sort {
    /// The sort of a type by its simple name.
    pub(crate) fn of(name: &str) -> Self {
        match name {
            "byte" | "Byte" => Self::Byte,
            "short" | "Short" => Self::Short,
            "char" | "Character" => Self::Char,
            "int" | "Integer" => Self::Int,
            "long" | "Long" => Self::Long,
            "float" | "Float" => Self::Float,
            "double" | "Double" => Self::Double,
            "boolean" | "Boolean" => Self::Boolean,
            "String" | "CharSequence" => Self::Text,
            "def" | "Object" => Self::Def,
            "void" => Self::Void,
            _ => Self::Other,
        }
    }
}

impl Type {
    /// The type of a name, `List` or `java.util.List`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        const PRIMITIVES: [&str; 10] =
            ["def", "void", "boolean", "byte", "short", "char", "int", "long", "float", "double"];
        let simple = match name.rsplit_once('.') {
            Some((package, simple))
                if package.starts_with("java.") && Self::package(simple) == Some(package) =>
            {
                simple
            }
            Some((package, _)) if package.starts_with("java.") => return None,
            _ => name,
        };
        let primitive = PRIMITIVES.iter().find(|primitive| **primitive == simple).copied();
        let class =
            || CLASSES.iter().flat_map(|(_, names)| names.split_whitespace()).find(|class| *class == simple);
        let exception =
            || EXCEPTIONS.iter().map(|exception| exception.0).find(|exception| *exception == simple);
        let name = primitive.or_else(class).or_else(exception)?;
        Some(Self::plain(name))
    }

    pub(crate) const DEF: Self = Self { name: "def", dimensions: 0, sort: Sort::Def };
    pub(crate) const INT: Self = Self { name: "int", dimensions: 0, sort: Sort::Int };

    /// A type of this simple name that is no array.
    pub(crate) fn plain(name: &'static str) -> Self {
        Self { name, dimensions: 0, sort: Sort::of(name) }
    }

    fn package(simple: &str) -> Option<&'static str> {
        let of = |names: &str| names.split_whitespace().any(|class| class == simple);
        CLASSES.iter().find(|(_, names)| of(names)).map(|(package, _)| *package)
    }

    /// Java's full name of the type.
    pub(crate) fn full_name(self) -> String {
        let name = match Self::package(self.name) {
            Some(package) => format!("{package}.{}", self.name),
            None if exception(self.name).is_some() => format!("java.lang.{}", self.name),
            None => self.name.to_owned(),
        };
        name + &"[]".repeat(self.dimensions.into())
    }
}

/// The type in responses of an exception's class.
pub(crate) fn exception(class: &str) -> Option<&'static str> {
    EXCEPTIONS.iter().find(|(name, ..)| *name == class).map(|(_, kind, _)| *kind)
}

/// Whether a `catch` of this class catches an exception of this type.
pub(crate) fn catches(class: &str, kind: &str) -> bool {
    let Some(&(mut name, _, mut parent)) = EXCEPTIONS.iter().find(|(_, known, _)| *known == kind) else {
        // Those of the host; errors, which are no exceptions, must not be caught.
        return kind.ends_with("_exception") && matches!(class, "Exception" | "RuntimeException");
    };
    while name != class {
        let Some(next) = EXCEPTIONS.iter().find(|(known, ..)| *known == parent) else { return false };
        (name, parent) = (next.0, next.2);
    }
    true
}

/// The class of an exception of this type, as far as scripts know it.
pub(crate) fn class_of(kind: &str) -> &'static str {
    EXCEPTIONS.iter().find(|(_, known, _)| *known == kind).map_or("RuntimeException", |(name, ..)| name)
}
