//! Static methods of numbers, of characters and of `Math`.

use super::{double, int, long};
use crate::error::Fault;
use crate::machine::numbers::{coerce, combine, converted};
use crate::machine::{Run, count};
use crate::tree::Operator;
use crate::types::{Sort, Type};
use crate::value::Value;

impl Run<'_> {
    pub(super) fn number_static(
        &mut self,
        class: &'static str,
        name: &str,
        arguments: &[Value],
    ) -> Result<Value, Fault> {
        let kind = Type::plain(class);
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
                    return Ok(if if name == "max" { order.is_ge() } else { order.is_le() } {
                        a.clone()
                    } else {
                        b.clone()
                    });
                }
                let to = if name == "signum" { Sort::Int } else { kind.sort };
                Ok(converted(&math(name, &arguments)?, to).unwrap_or_default())
            }
            ("sum", [a, b]) => {
                let (a, b) = (coerce(a.clone(), kind, false)?, coerce(b.clone(), kind, false)?);
                combine(Operator::Add, &a, &b)
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
                let radix =
                    u32::try_from(radix).ok().filter(|radix| (2..=36).contains(radix)).ok_or_else(refused)?;
                self.tick_text(digits.len())?;
                Ok(match class {
                    "Integer" => Value::Int(i32::from_str_radix(digits, radix).map_err(|_| refused())?),
                    "Long" => Value::Long(i64::from_str_radix(digits, radix).map_err(|_| refused())?),
                    "Short" => Value::Short(digits.parse().map_err(|_| refused())?),
                    "Byte" => Value::Byte(digits.parse().map_err(|_| refused())?),
                    _ => {
                        let trimmed = digits.trim().trim_end_matches(['d', 'D', 'f', 'F']);
                        // Rust reads a few more words than Java.
                        let words = trimmed
                            .contains(|char: char| char.is_ascii_alphabetic() && !matches!(char, 'e' | 'E'));
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
}

/// Functions of `Math`: all of them compute doubles, as in Painless.
#[expect(clippy::cast_possible_truncation, reason = "as Java does it")]
pub(super) fn math(name: &str, arguments: &[Value]) -> Result<Value, Fault> {
    let unknown = || Fault::no_method("java.lang.Math", name, arguments.len());
    Ok(Value::Double(match arguments {
        [a, b] => {
            let (a, b) = (double(a)?, double(b)?);
            match name {
                "max" | "min" if a.is_nan() || b.is_nan() => f64::NAN,
                "max" => {
                    if a.total_cmp(&b).is_ge() {
                        a
                    } else {
                        b
                    }
                }
                "min" => {
                    if a.total_cmp(&b).is_le() {
                        a
                    } else {
                        b
                    }
                }
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

pub(super) fn character(name: &str, arguments: &[Value]) -> Result<Value, Fault> {
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
        "isDigit" => Value::Bool(own.is_ascii_digit()),
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
        "valueOf" => coerce(first.clone(), Type::plain("char"), true)?,
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
