//! Values of fields as their types read them from a source.

use serde_json::Value;
use sparrow_mapping::date::{parse_nanos, storable_nanos};
use sparrow_mapping::{FieldType, ip, is_above, range};

use super::sort::values::{date_from_text, format_date, format_nanos};

/// The formats in which dates are read, and those in which they are shown.
pub type Dates = (Vec<sparrow_mapping::DateFormat>, Vec<sparrow_mapping::DateFormat>);

/// A value as a field of this type reads it; `None` if the field ignores it.
pub fn typed(field_type: &FieldType, value: &Value, dates: Option<&Dates>) -> Option<Value> {
    let text = || match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    match field_type {
        FieldType::Text { .. } => text().map(Value::from),
        FieldType::Keyword { .. } if field_type.is_flattened() && value.is_object() => Some(value.clone()),
        FieldType::Keyword { ignore_above, .. } => {
            let text = text()?;
            (!is_above(*ignore_above, &text)).then(|| text.into())
        }
        FieldType::Ip => {
            text().and_then(|text| ip::parse(&text)).map(|address| ip::shown(&ip::keyword(address)).into())
        }
        FieldType::Boolean => match value {
            Value::Bool(_) => Some(value.clone()),
            Value::String(text) if text == "true" => Some(Value::Bool(true)),
            Value::String(text) if text == "false" || text.is_empty() => Some(Value::Bool(false)),
            _ => None,
        },
        FieldType::Date { .. } => {
            let (read, shown) = dates?;
            date_from_text(read, &text()?).map(|millis| format_date(shown, millis).into())
        }
        FieldType::DateNanos { .. } => {
            let (read, shown) = dates?;
            let nanos = parse_nanos(read, &text()?, false)?;
            // The index ignores what it cannot keep.
            Some(format_nanos(shown, storable_nanos(nanos).ok()?).into())
        }
        FieldType::UnsignedLong => {
            let text = text()?;
            text.parse::<u64>().ok().or_else(|| Some(text.parse::<f64>().ok()? as u64)).map(Value::from)
        }
        whole if whole.is_integer() => {
            let text = text()?;
            text.parse::<i64>().ok().or_else(|| Some(text.parse::<f64>().ok()? as i64)).map(Value::from)
        }
        float if float.is_float() => {
            let number: f64 = text()?.trim().parse().ok()?;
            let number = sparrow_mapping::normalize_float(float, number);
            Some(match float {
                FieldType::Float | FieldType::HalfFloat => short(number as f32),
                _ => number.into(),
            })
        }
        FieldType::Range(of) => range::shown(value, |end| typed(of, end, dates)),
        _ => Some(value.clone()),
    }
}

/// A single-precision number with its own shortest digits, not those of its conversion to double precision.
pub fn short(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}
