//! The processor `convert`: changes the type of a value.

use std::net::IpAddr;

use serde_json::{Number, Value};

use crate::chain::Processor;
use crate::config::Config;
use crate::document::{Document, as_text};
use crate::error::{ConfigError, ProcessorError};
use crate::shape::{Shape, ignore_missing, of_field, one, target};

/// Converts a value, or each element of a list, to another type.
#[derive(Debug)]
pub(crate) struct Convert {
    field: String,
    target: String,
    to: Type,
    ignore_missing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Type {
    Integer,
    Long,
    Float,
    Double,
    Boolean,
    String,
    Ip,
    Auto,
}

const TYPES: [(&str, Type); 8] = [
    ("integer", Type::Integer),
    ("long", Type::Long),
    ("float", Type::Float),
    ("double", Type::Double),
    ("boolean", Type::Boolean),
    ("string", Type::String),
    ("ip", Type::Ip),
    ("auto", Type::Auto),
];

pub(super) fn convert_shape() -> Shape {
    of_field([target(), ignore_missing(), ("type", one(&TYPES.map(|(name, _)| name)))])
        .needs(&["field", "type"])
}

impl Convert {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let field = config.field("field")?;
        let name = config.text("type")?;
        let to = TYPES
            .iter()
            .find(|(type_name, _)| type_name.eq_ignore_ascii_case(&name))
            .map(|(_, to)| *to)
            .ok_or_else(|| {
                config.unusable("type", format!("type [{name}] not supported, cannot convert field."))
            })?;
        Ok(Self {
            target: config.target_field(&field)?,
            field,
            to,
            ignore_missing: config.boolean("ignore_missing", false)?,
        })
    }
}

impl Processor for Convert {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let converted = match document.get_optional(&self.field, self.ignore_missing)? {
            None if self.ignore_missing => return Ok(()),
            None => {
                let name = TYPES.iter().find(|(_, to)| *to == self.to).map_or("", |(name, _)| name);
                return Err(ProcessorError::Null {
                    path: self.field.clone(),
                    refusal: format!("cannot be converted to type [{name}]"),
                });
            }
            Some(Value::Array(list)) => {
                Value::Array(list.iter().map(|value| convert(value, self.to)).collect::<Result<_, _>>()?)
            }
            Some(value) => convert(value, self.to)?,
        };
        document.set(&self.target, converted)
    }
}

fn convert(value: &Value, to: Type) -> Result<Value, ProcessorError> {
    let text = as_text(value);
    let refuse = |target: &'static str| ProcessorError::Convert { value: text.clone(), target };
    Ok(match to {
        Type::Integer => integer(&text)
            .filter(|whole| i32::try_from(*whole).is_ok())
            .map(Value::from)
            .ok_or_else(|| refuse("integer"))?,
        Type::Long => integer(&text).map(Value::from).ok_or_else(|| refuse("long"))?,
        Type::Float => float(&text).ok_or_else(|| refuse("float"))?,
        Type::Double => double(&text).ok_or_else(|| refuse("double"))?,
        Type::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return Err(ProcessorError::NotBoolean { value: text }),
        },
        Type::String => Value::String(text),
        Type::Ip => {
            if text.parse::<IpAddr>().is_err() {
                return Err(ProcessorError::NotIp { value: text });
            }
            Value::String(text)
        }
        Type::Auto => {
            if !value.is_string() {
                return Ok(value.clone());
            }
            match text.to_ascii_lowercase().as_str() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ => integer(&text)
                    .map(Value::from)
                    .or_else(|| double(&text))
                    .unwrap_or_else(|| Value::String(text.clone())),
            }
        }
    })
}

/// Parses an integer, decimal or hexadecimal with `0x`.
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok().map(|whole| if negative { -whole } else { whole }),
        None => text.strip_prefix('+').unwrap_or(text).parse().ok(),
    }
}

/// Parses a finite number in single precision; the result has as few digits as identify it.
fn float(text: &str) -> Option<Value> {
    let number: f32 = text.trim().parse().ok()?;
    number.is_finite().then(|| sparrow_inference::weight_to_json(number))
}

fn double(text: &str) -> Option<Value> {
    let number: f64 = text.trim().parse().ok()?;
    Number::from_f64(number).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::processors::check;

    fn convert(to: &str, value: Value) -> Result<Value, String> {
        check(json!({"convert": {"field": "a", "type": to}}), json!({"a": value}))
            .map(|source| source["a"].clone())
    }

    #[test]
    fn values_change_type() {
        for (to, value, expected) in [
            ("integer", json!("12"), json!(12)),
            ("integer", json!("-0x1F"), json!(-31)),
            ("long", json!("9999999999"), json!(9_999_999_999_i64)),
            ("double", json!("1.5"), json!(1.5)),
            ("double", json!("1e3"), json!(1000.0)),
            ("float", json!("0.1"), json!(0.1)),
            ("boolean", json!("TRUE"), json!(true)),
            ("string", json!(5), json!("5")),
            ("ip", json!("127.0.0.1"), json!("127.0.0.1")),
            ("auto", json!("7"), json!(7)),
            ("auto", json!("7.5"), json!(7.5)),
            ("auto", json!("false"), json!(false)),
            ("auto", json!("x"), json!("x")),
            ("integer", json!(["1", "2"]), json!([1, 2])),
        ] {
            assert_eq!(convert(to, value).unwrap(), expected, "{to}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (to, value, message) in [
            ("integer", json!("abc"), "unable to convert [abc] to integer"),
            ("integer", json!("9999999999"), "unable to convert [9999999999] to integer"),
            ("integer", json!(1.5), "unable to convert [1.5] to integer"),
            ("double", json!("x"), "unable to convert [x] to double"),
            ("boolean", json!("yes"), "[yes] is not a boolean value, cannot convert to boolean"),
            ("ip", json!("x"), "'x' is not an IP string literal."),
            ("integer", Value::Null, "field [a] is null, cannot be converted to type [integer]"),
            ("nope", json!(1), "config: [type] type [nope] not supported, cannot convert field."),
        ] {
            assert_eq!(convert(to, value).unwrap_err(), message);
        }
    }
}
