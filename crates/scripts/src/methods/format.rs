//! `String.format`.

use super::{double, long};
use crate::error::Fault;
use crate::machine::Run;
use crate::value::Value;

/// Widest field, and most digits behind the point.
const MOST_WIDTH: usize = 10_000;
const MOST_DIGITS: usize = 300;

impl Run<'_> {
    /// A text with the arguments in the places of `%s`, `%d`, `%05.2f`, `%x` and the like.
    pub(super) fn formatted(&mut self, pattern: &str, arguments: &[Value]) -> Result<Value, Fault> {
        let mut out = String::new();
        let mut next = 0;
        let mut chars = pattern.chars().peekable();
        while let Some(char) = chars.next() {
            if char != '%' {
                out.push(char);
                continue;
            }
            let mut spec = String::new();
            let conversion = loop {
                match chars.next() {
                    Some(letter) if letter.is_ascii_alphabetic() || letter == '%' => break letter,
                    Some(other) if spec.len() < 20 => spec.push(other),
                    _ => return Err(Fault::new("unknown_format_conversion_exception", "Conversion = '%'")),
                }
            };
            let (place, spec) = match spec.split_once('$') {
                Some((place, rest)) => (place.parse::<usize>().ok(), rest.to_owned()),
                None => (None, spec),
            };
            let digits = |at: usize| {
                spec[at..]
                    .find(|char: char| !matches!(char, '-' | '0' | '+' | ',' | ' ' | '#' | '('))
                    .map_or(spec.len(), |end| at + end)
            };
            let flags = &spec[..digits(0)];
            let (width, precision) = match spec[flags.len()..].split_once('.') {
                Some((width, precision)) => (width, precision.parse::<usize>().ok()),
                None => (&spec[flags.len()..], None),
            };
            let width = width.parse::<usize>().unwrap_or_default();
            if width > MOST_WIDTH || precision.is_some_and(|precision| precision > MOST_DIGITS) {
                return Err(Fault::illegal(format!(
                    "a width is at most [{MOST_WIDTH}], and a precision [{MOST_DIGITS}]"
                )));
            }
            let has = |flag: char| flags.contains(flag);
            let missing = || {
                Fault::new(
                    "missing_format_argument_exception",
                    format!("Format specifier '%{spec}{conversion}'"),
                )
            };
            let mut argument = || {
                let at = place.map_or(next, |place| place.wrapping_sub(1));
                next += usize::from(place.is_none());
                arguments.get(at).cloned().ok_or_else(missing)
            };
            let refused = |value: &Value| {
                let class = value.class_name();
                Fault::new("illegal_format_conversion_exception", format!("{conversion} != {class}"))
            };
            let mut text = match conversion {
                'n' => "\n".to_owned(),
                '%' => "%".to_owned(),
                's' | 'S' => {
                    let shown = self.shown(&argument()?)?;
                    precision.map_or(shown.clone(), |most| shown.chars().take(most).collect())
                }
                'd' | 'f' | 'e' | 'x' | 'X' | 'o' | 'c' | 'b' => match (argument()?, conversion) {
                    (Value::Null, 'b') => "false".to_owned(),
                    (Value::Null, _) => "null".to_owned(),
                    (Value::Bool(truth), 'b') => truth.to_string(),
                    (_, 'b') => "true".to_owned(),
                    (value @ (Value::Char(_) | Value::Text(_)), 'c') => self.shown(&value)?,
                    (value, 'c') => char::from_u32(long(&value)? as u32)
                        .unwrap_or(char::REPLACEMENT_CHARACTER)
                        .to_string(),
                    (value, 'f' | 'e') if !matches!(value, Value::Double(_) | Value::Float(_)) => {
                        return Err(refused(&value));
                    }
                    (value, 'f') => {
                        let digits = precision.unwrap_or(6);
                        match double(&value)? {
                            number if number.is_finite() => half_up(number, digits),
                            _ => self.shown(&value)?,
                        }
                    }
                    (value, 'e') => {
                        let text = format!("{:.*e}", precision.unwrap_or(6), double(&value)?);
                        match text.split_once('e') {
                            Some((digits, exponent)) => {
                                let exponent: i32 = exponent.parse().unwrap_or_default();
                                let sign = if exponent < 0 { '-' } else { '+' };
                                format!("{digits}e{sign}{:02}", exponent.abs())
                            }
                            None => text,
                        }
                    }
                    (value, _) if value.as_i64().is_none() || matches!(value, Value::Char(_)) => {
                        return Err(refused(&value));
                    }
                    (value, 'd') => long(&value)?.to_string(),
                    (value, radix) => {
                        let bits = match value {
                            Value::Long(long) => long.cast_unsigned(),
                            other => u64::from((long(&other)? as i32).cast_unsigned()),
                        };
                        if radix == 'o' { format!("{bits:o}") } else { format!("{bits:x}") }
                    }
                },
                other => {
                    return Err(Fault::new(
                        "unknown_format_conversion_exception",
                        format!("Conversion = '{other}'"),
                    ));
                }
            };
            if conversion.is_ascii_uppercase() {
                text = text.to_uppercase();
            }
            if matches!(conversion, 'd' | 'f') {
                let negative = text.starts_with('-');
                if has(',') {
                    text = grouped(&text);
                }
                if !negative && has('+') {
                    text.insert(0, '+');
                }
            }
            let missing = width.saturating_sub(text.chars().count());
            if has('-') {
                text.push_str(&" ".repeat(missing));
            } else if has('0') && !matches!(conversion, 's' | 'S') {
                let at = usize::from(text.starts_with(['-', '+']));
                text.insert_str(at, &"0".repeat(missing));
            } else {
                text.insert_str(0, &" ".repeat(missing));
            }
            self.tick_text(text.len())?;
            self.room(out.len() + text.len())?;
            out.push_str(&text);
        }
        self.text(out)
    }
}

/// A number with so many digits behind the point. Java rounds the shortest decimal form half up.
fn half_up(number: f64, digits: usize) -> String {
    let shortest = format!("{number}");
    let fraction = shortest.split_once('.').map_or("", |(_, fraction)| fraction);
    if fraction.len() == digits + 1 && fraction.ends_with('5') {
        // A tie, as it is written: one digit more decides it upwards.
        let up = format!("{shortest}1").parse().unwrap_or(number);
        return format!("{up:.digits$}");
    }
    format!("{number:.digits$}")
}

/// A number with commas between the thousands.
fn grouped(text: &str) -> String {
    let (sign, rest) = if let Some(rest) = text.strip_prefix('-') { ("-", rest) } else { ("", text) };
    let (whole, fraction) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
    let mut out = sign.to_owned();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}
