//! Java's arithmetic, comparison and conversion of numbers.

use crate::error::Fault;
use crate::tree::Operator;
use crate::types::{Sort, Type};
use crate::value::Value;
use crate::value::collection::Form;

/// Two numbers of the wider of their types.
enum Pair {
    Int(i32, i32),
    Long(i64, i64),
    Float(f32, f32),
    Double(f64, f64),
}

/// Rank of a number's type: int and what becomes one, long, float, double.
fn rank(value: &Value) -> Option<u8> {
    Some(match value {
        Value::Byte(_) | Value::Short(_) | Value::Char(_) | Value::Int(_) => 0,
        Value::Long(_) => 1,
        Value::Float(_) => 2,
        Value::Double(_) => 3,
        _ => return None,
    })
}

/// A number as an int, which wraps around.
#[expect(clippy::cast_possible_truncation, reason = "as Java does it")]
fn int(value: &Value) -> i32 {
    match value {
        Value::Double(double) => *double as i32,
        Value::Float(float) => *float as i32,
        other => other.as_i64().unwrap_or_default() as i32,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "as Java does it")]
fn long(value: &Value) -> i64 {
    match value {
        Value::Double(double) => *double as i64,
        Value::Float(float) => *float as i64,
        other => other.as_i64().unwrap_or_default(),
    }
}

fn double(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "as Java does it")]
fn float(value: &Value) -> f32 {
    match value {
        Value::Float(float) => *float,
        Value::Double(double) => *double as f32,
        other => other.as_i64().unwrap_or_default() as f32,
    }
}

impl Pair {
    fn of(a: &Value, b: &Value) -> Option<Self> {
        Some(match rank(a)?.max(rank(b)?) {
            0 => Self::Int(int(a), int(b)),
            1 => Self::Long(long(a), long(b)),
            2 => Self::Float(float(a), float(b)),
            _ => Self::Double(double(a), double(b)),
        })
    }
}

/// The result of an operator on numbers or booleans.
pub(crate) fn combine(operator: Operator, a: &Value, b: &Value) -> Result<Value, Fault> {
    use Operator as Op;
    let refused = || {
        if a.is_null() || b.is_null() {
            let side = if a.is_null() { "left" } else { "right" };
            return Fault::new(
                "null_pointer_exception",
                format!("Cannot invoke \"Object.getClass()\" because \"{side}\" is null"),
            );
        }
        let (sign, left, right) = (operator.sign(), a.class_name(), b.class_name());
        Fault::new(
            "class_cast_exception",
            format!("Cannot apply [{sign}] operation to types [{left}] and [{right}]."),
        )
    };
    if let (Value::Bool(a), Value::Bool(b)) = (a, b) {
        return Ok(Value::Bool(match operator {
            Op::And => a & b,
            Op::Or => a | b,
            Op::Xor => a ^ b,
            _ => return Err(refused()),
        }));
    }
    if matches!(operator, Op::Left | Op::Right | Op::UnsignedRight) {
        let (Some(0 | 1), Some(0 | 1)) = (rank(a), rank(b)) else { return Err(refused()) };
        let by = int(b).cast_unsigned();
        return Ok(if rank(a) == Some(0) {
            Value::Int(match operator {
                Op::Left => int(a).wrapping_shl(by),
                Op::Right => int(a).wrapping_shr(by),
                _ => int(a).cast_unsigned().wrapping_shr(by).cast_signed(),
            })
        } else {
            Value::Long(match operator {
                Op::Left => long(a).wrapping_shl(by),
                Op::Right => long(a).wrapping_shr(by),
                _ => long(a).cast_unsigned().wrapping_shr(by).cast_signed(),
            })
        });
    }
    let zero = || Fault::new("arithmetic_exception", "/ by zero");
    let pair = match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(Pair::Int(*a, *b)),
        (Value::Double(a), Value::Double(b)) => Some(Pair::Double(*a, *b)),
        _ => Pair::of(a, b),
    };
    Ok(match pair.ok_or_else(refused)? {
        Pair::Int(x, y) => match operator {
            Op::Add => Value::Int(x.wrapping_add(y)),
            Op::Subtract => Value::Int(x.wrapping_sub(y)),
            Op::Multiply => Value::Int(x.wrapping_mul(y)),
            Op::Divide | Op::Remainder if y == 0 => return Err(zero()),
            Op::Divide => Value::Int(x.wrapping_div(y)),
            Op::Remainder => Value::Int(x.wrapping_rem(y)),
            Op::And => Value::Int(x & y),
            Op::Or => Value::Int(x | y),
            Op::Xor => Value::Int(x ^ y),
            other => return compare(other, x.partial_cmp(&y)).ok_or_else(refused),
        },
        Pair::Long(x, y) => match operator {
            Op::Add => Value::Long(x.wrapping_add(y)),
            Op::Subtract => Value::Long(x.wrapping_sub(y)),
            Op::Multiply => Value::Long(x.wrapping_mul(y)),
            Op::Divide | Op::Remainder if y == 0 => return Err(zero()),
            Op::Divide => Value::Long(x.wrapping_div(y)),
            Op::Remainder => Value::Long(x.wrapping_rem(y)),
            Op::And => Value::Long(x & y),
            Op::Or => Value::Long(x | y),
            Op::Xor => Value::Long(x ^ y),
            other => return compare(other, x.partial_cmp(&y)).ok_or_else(refused),
        },
        Pair::Float(x, y) => match operator {
            Op::Add => Value::Float(x + y),
            Op::Subtract => Value::Float(x - y),
            Op::Multiply => Value::Float(x * y),
            Op::Divide => Value::Float(x / y),
            Op::Remainder => Value::Float(x % y),
            other => return compare(other, x.partial_cmp(&y)).ok_or_else(refused),
        },
        Pair::Double(x, y) => match operator {
            Op::Add => Value::Double(x + y),
            Op::Subtract => Value::Double(x - y),
            Op::Multiply => Value::Double(x * y),
            Op::Divide => Value::Double(x / y),
            Op::Remainder => Value::Double(x % y),
            other => return compare(other, x.partial_cmp(&y)).ok_or_else(refused),
        },
    })
}

/// The result of a comparison; none if the operator is no comparison of an order.
fn compare(operator: Operator, order: Option<std::cmp::Ordering>) -> Option<Value> {
    Some(Value::Bool(match operator {
        Operator::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Operator::AtMost => order.is_some_and(std::cmp::Ordering::is_le),
        Operator::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        Operator::AtLeast => order.is_some_and(std::cmp::Ordering::is_ge),
        _ => return None,
    }))
}

/// Whether two numbers are equal as `==` has it, whatever their types; none if one is no number.
pub(crate) fn equal(a: &Value, b: &Value) -> Option<bool> {
    Some(match Pair::of(a, b)? {
        Pair::Int(x, y) => x == y,
        Pair::Long(x, y) => x == y,
        #[expect(clippy::float_cmp, reason = "as Java does it")]
        Pair::Float(x, y) => x == y,
        #[expect(clippy::float_cmp, reason = "as Java does it")]
        Pair::Double(x, y) => x == y,
    })
}

/// `-x`, `+x` and `~x`.
pub(crate) fn unary(sign: char, value: &Value) -> Result<Value, Fault> {
    Ok(match (sign, rank(value)) {
        ('-', Some(0)) => Value::Int(int(value).wrapping_neg()),
        ('-', Some(1)) => Value::Long(long(value).wrapping_neg()),
        ('-', Some(2)) => Value::Float(-float(value)),
        ('-', Some(3)) => Value::Double(-double(value)),
        ('~', Some(0)) => Value::Int(!int(value)),
        ('+', Some(0)) => Value::Int(int(value)),
        ('~', Some(1)) => Value::Long(!long(value)),
        ('+', Some(_)) => value.clone(),
        _ if value.is_null() => return Err(Fault::null(&sign.to_string())),
        _ => {
            let class = value.class_name();
            return Err(Fault::new(
                "class_cast_exception",
                format!("Cannot apply [{sign}] operation to type [{class}]."),
            ));
        }
    })
}

/// A number in the type of a sort; none for other sorts and values. What it does not hold is cut off.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as Java does it")]
pub(crate) fn converted(value: &Value, to: Sort) -> Option<Value> {
    rank(value)?;
    Some(match to {
        Sort::Byte => Value::Byte(int(value) as i8),
        Sort::Short => Value::Short(int(value) as i16),
        Sort::Char => Value::Char(int(value) as u16),
        Sort::Int => Value::Int(int(value)),
        Sort::Long => Value::Long(long(value)),
        Sort::Float => Value::Float(float(value)),
        Sort::Double => Value::Double(double(value)),
        _ => return None,
    })
}

/// Converts a value to the type of a variable, a parameter, a result, or a cast, which may lose digits if it is explicit.
#[inline]
pub(crate) fn coerce(value: Value, to: Type, explicit: bool) -> Result<Value, Fault> {
    if to.dimensions == 0 && (to.sort == Sort::Def || to.sort == value.sort() && to.sort != Sort::Other) {
        return Ok(value);
    }
    changed(value, to, explicit)
}

/// Converts a value that is not of the type already.
fn changed(value: Value, to: Type, explicit: bool) -> Result<Value, Fault> {
    let is_primitive = to.name.starts_with(|first: char| first.is_ascii_lowercase());
    match (to.sort, &value) {
        _ if to.dimensions > 0 => {}
        (Sort::Void, _) => return Ok(Value::Null),
        (Sort::Char, Value::Text(text)) if text.length() == 1 => {
            return Ok(Value::Char(text.unit(0).unwrap_or_default()));
        }
        (wanted, number) if wanted <= Sort::Double && rank(number).is_some() => {
            let found = number.sort();
            // A constant of an int may be small enough for less.
            let is_small = match (number, wanted) {
                (Value::Int(int), Sort::Byte) => i8::try_from(*int).is_ok(),
                (Value::Int(int), Sort::Short) => i16::try_from(*int).is_ok(),
                (Value::Int(int), Sort::Char) => u16::try_from(*int).is_ok(),
                _ => false,
            };
            let fits = is_small || found <= wanted && wanted != Sort::Char;
            return match converted(number, wanted) {
                Some(number) if explicit || fits => Ok(number),
                _ => Err(not_implicit(number, &to.full_name())),
            };
        }
        (
            Sort::Boolean
            | Sort::Byte
            | Sort::Short
            | Sort::Char
            | Sort::Int
            | Sort::Long
            | Sort::Float
            | Sort::Double,
            other,
        ) => {
            return match other {
                Value::Null if is_primitive => Err(Fault::null(to.name)),
                Value::Null => Ok(Value::Null),
                other if explicit => Err(Fault::cast(other.class_name(), to.name)),
                other => Err(not_implicit(other, &to.full_name())),
            };
        }
        (Sort::Text, Value::Char(unit)) if explicit => {
            return Ok(Value::text(String::from_utf16_lossy(&[*unit])));
        }
        (Sort::Text, other) if to.name == "String" && !explicit && !other.is_null() => {
            return Err(not_implicit(other, "java.lang.String"));
        }
        _ => {}
    }
    match value {
        Value::Null => Ok(Value::Null),
        value if is_a(&value, to) => Ok(value),
        value => Err(Fault::cast(value.class_name(), &to.full_name())),
    }
}

/// A value that does not become one of another type by itself.
pub(crate) fn not_implicit(value: &Value, to: &str) -> Fault {
    let class = match value {
        Value::Bool(_) => "boolean",
        Value::Byte(_) => "byte",
        Value::Short(_) => "short",
        Value::Char(_) => "char",
        Value::Int(_) => "int",
        Value::Long(_) => "long",
        Value::Float(_) => "float",
        Value::Double(_) => "double",
        other => other.class_name(),
    };
    Fault::new("class_cast_exception", format!("cannot implicitly cast def [{class}] to {to}"))
}

/// Whether a value is an instance of a class.
pub(crate) fn is_a(value: &Value, of: Type) -> bool {
    use crate::value::object::{Object, Part};
    let name = of.name;
    let is_def = matches!(name, "Object" | "def");
    if let Value::List(list) = value
        && let Form::Array(element) = list.form()
    {
        return of.dimensions > 0 && (is_def || element.name == name) || of.dimensions == 0 && is_def;
    }
    if of.dimensions > 0 {
        return false;
    }
    match value {
        Value::Null => false,
        _ if is_def => true,
        Value::Bool(_) => matches!(name, "Boolean" | "boolean" | "Comparable"),
        Value::Char(_) => matches!(name, "Character" | "char" | "Comparable"),
        Value::Text(_) => matches!(name, "String" | "CharSequence" | "Comparable"),
        Value::List(_) => matches!(
            name,
            "List"
                | "ArrayList"
                | "Collection"
                | "Iterable"
                | "LinkedList"
                | "Deque"
                | "Queue"
                | "Vector"
                | "Stack"
                | "ArrayDeque"
        ),
        Value::Map(table) => {
            matches!(name, "Map" | "HashMap" | "LinkedHashMap" | "Hashtable")
                || table.form() == Form::Sorted && matches!(name, "TreeMap" | "SortedMap" | "NavigableMap")
        }
        Value::Set(table) => {
            matches!(name, "Set" | "HashSet" | "LinkedHashSet" | "Collection" | "Iterable")
                || table.form() == Form::Sorted && matches!(name, "TreeSet" | "SortedSet" | "NavigableSet")
        }
        Value::Doc(_) => matches!(name, "List" | "Collection" | "Iterable"),
        Value::Object(object) => match &**object {
            Object::View(_, part) => {
                matches!(name, "Collection" | "Iterable") || *part != Part::Values && name == "Set"
            }
            Object::Exception(class, _) => {
                crate::types::exception(class).is_some_and(|kind| crate::types::catches(name, kind))
            }
            Object::Builder(_) => matches!(name, "StringBuilder" | "CharSequence"),
            Object::Moment(_) | Object::Named(..)
                if matches!(name, "Temporal" | "TemporalAccessor" | "Comparable" | "TemporalUnit") =>
            {
                true
            }
            Object::Lambda(..) | Object::Reference(..) | Object::Recipe(..) => {
                name == "Comparator"
                    || name.ends_with("Function")
                    || name.ends_with("Operator")
                    || name.ends_with("Predicate")
                    || name.ends_with("Consumer")
                    || matches!(name, "Supplier" | "Collector")
            }
            Object::Zone(_) => matches!(name, "ZoneId" | "ZoneOffset"),
            Object::Cursor(_) => matches!(name, "Iterator" | "ListIterator"),
            _ => value.class_name().ends_with(&format!(".{name}")),
        },
        // Numbers.
        _ => {
            let class = value.class_name().rsplit('.').next().unwrap_or_default();
            matches!(name, "Number" | "Comparable")
                || class == name
                || class.to_lowercase() == name
                || class == "Integer" && name == "int"
        }
    }
}
