//! Which static methods, constructors and constants there are.

use crate::tree::Kind;
use crate::types::exception;

/// Static methods of the classes, with the numbers of arguments that they take; those of a class in several lines add up.
const STATICS: &[(&str, &str)] = &[
    (
        "Math StrictMath",
        "abs/1 acos/1 asin/1 atan/1 atan2/2 cbrt/1 ceil/1 cos/1 cosh/1 exp/1 expm1/1 floor/1 hypot/2 log/1 log10/1 log1p/1 max/2 \
         min/2 pow/2 rint/1 round/1 signum/1 sin/1 sinh/1 sqrt/1 tan/1 tanh/1 toDegrees/1 toRadians/1",
    ),
    ("Integer Long Short Byte Float Double Boolean Character", "valueOf/1 toString/1 compare/2 hashCode/1"),
    (
        "Integer Long",
        "valueOf/2 toString/2 signum/1 max/2 min/2 bitCount/1 toBinaryString/1 toHexString/1 toOctalString/1",
    ),
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
    (
        "String",
        "valueOf/1 copyValueOf/1 join/2 join/3 join/4 join/5 join/6 format/1 format/2 format/3 format/4 format/5 format/6 format/7 format/8 format/9",
    ),
    (
        "Objects",
        "equals/2 isNull/1 nonNull/1 requireNonNull/1 requireNonNull/2 requireNonNullElse/2 toString/1 toString/2 hashCode/1 hash/1 hash/2 hash/3",
    ),
    (
        "Collections",
        "sort/1 sort/2 reverse/1 reverseOrder/0 reverseOrder/1 max/1 max/2 min/1 min/2 emptyList/0 emptyMap/0 emptySet/0 singletonList/1 \
         singleton/1 singletonMap/2 unmodifiableList/1 unmodifiableMap/1 unmodifiableSet/1 unmodifiableCollection/1 nCopies/2 frequency/2 \
         addAll/2 addAll/3 addAll/4 disjoint/2 swap/3 fill/2",
    ),
    (
        "Arrays",
        "asList/0 asList/1 asList/2 asList/3 asList/4 asList/5 asList/6 asList/7 asList/8 stream/1 sort/1 toString/1",
    ),
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
    (
        "ArrayList LinkedList Vector ArrayDeque HashSet LinkedHashSet TreeSet HashMap LinkedHashMap TreeMap Hashtable",
        "0 1",
    ),
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
    (
        "ChronoField",
        "DAY_OF_WEEK DAY_OF_MONTH DAY_OF_YEAR MONTH_OF_YEAR YEAR HOUR_OF_DAY MINUTE_OF_HOUR SECOND_OF_MINUTE \
                     MILLI_OF_SECOND EPOCH_DAY INSTANT_SECONDS ALIGNED_WEEK_OF_YEAR",
    ),
    ("Locale", "ROOT ENGLISH US UK"),
    ("TextStyle", "FULL SHORT"),
    ("RoundingMode", "UP DOWN CEILING FLOOR HALF_UP HALF_DOWN HALF_EVEN"),
    ("ZoneOffset", "UTC"),
    (
        "DateTimeFormatter",
        "ISO_DATE_TIME ISO_INSTANT ISO_ZONED_DATE_TIME ISO_OFFSET_DATE_TIME ISO_LOCAL_DATE ISO_DATE ISO_LOCAL_DATE_TIME \
                           ISO_LOCAL_TIME BASIC_ISO_DATE",
    ),
];

fn of_class(table: &'static [(&str, &str)], class: &str) -> impl Iterator<Item = &'static str> {
    let lines = table.iter().filter(move |(classes, _)| classes.split(' ').any(|known| known == class));
    lines.flat_map(|(_, entries)| entries.split_whitespace())
}

/// The static methods of a class.
pub(crate) fn statics(class: &str) -> impl Iterator<Item = &'static str> {
    of_class(STATICS, class)
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
pub(crate) fn members(class: &str) -> Vec<&'static str> {
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
