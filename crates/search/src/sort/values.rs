//! How sort values of fields are read from requests and shown in hits.

use serde_json::Value;
use sparrow_mapping::{DateFormat, date, ip};
use sparrow_tantivy_index::query::sorted::SortValue;

use crate::error::SearchError;
use sparrow_wire::Zone;
use sparrow_wire::java_float::write_f32;

/// Date format for fields and requests that name none.
pub const DEFAULT_FORMAT: &str = date::DEFAULT_FORMAT;

/// How the values of a sort key are parsed and shown.
#[derive(Debug, Clone, PartialEq)]
pub enum Shown {
    Text,
    /// IP addresses, stored as keywords.
    Ip,
    Long,
    Int,
    Unsigned,
    Double,
    Float,
    /// Booleans, shown as 0 and 1.
    Boolean,
    /// Dates, shown in milliseconds (or nanoseconds) since the epoch, or as text where the request asks for a
    /// format.
    Date {
        formats: Vec<DateFormat>,
        formatted: bool,
        nanos: bool,
    },
}

impl Shown {
    /// Reads a value of `search_after` or `missing`.
    ///
    /// # Errors
    /// When it is not a value of the key's type.
    pub fn read(&self, value: &Value) -> Result<SortValue, SearchError> {
        let text = match value {
            Value::Null => return Ok(SortValue::Null),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let number_format =
            || SearchError::Body(sparrow_wire::BodyError::NumberFormat { input: text.clone() });
        Ok(match self {
            Shown::Text => SortValue::Text(text.as_str().into()),
            Shown::Ip => match ip::parse(&text) {
                Some(address) => SortValue::Text(ip::keyword(address).into()),
                None => return Err(SearchError::illegal(ip::not_an_address(&text))),
            },
            Shown::Double | Shown::Float => SortValue::Double(match &*text {
                "Infinity" => f64::INFINITY,
                "-Infinity" => f64::NEG_INFINITY,
                _ => {
                    let value: f64 = text.trim().parse().map_err(|_| number_format())?;
                    // Compared with stored values of this precision.
                    if *self == Shown::Float { f64::from(value as f32) } else { value }
                }
            }),
            Shown::Unsigned => SortValue::Unsigned(match text.trim().parse::<u64>() {
                Ok(value) => value,
                Err(_) => {
                    whole(&text).and_then(|value| u64::try_from(value).ok()).ok_or_else(number_format)?
                }
            }),
            Shown::Boolean if matches!(&*text, "true" | "false") => {
                SortValue::Long(i64::from(text == "true"))
            }
            Shown::Long | Shown::Int | Shown::Boolean => {
                SortValue::Long(whole(&text).ok_or_else(number_format)?)
            }
            Shown::Date { formats, formatted, nanos } => {
                let by_format = || match nanos {
                    true => i64::try_from(date::parse_nanos(formats, &text, false)?).ok(),
                    false => date_from_text(formats, &text),
                };
                // A number is what hits show, unless they show dates by a format.
                let read = match value {
                    Value::Number(_) if !formatted => whole(&text),
                    _ => by_format(),
                };
                SortValue::Long(read.or_else(by_format).ok_or_else(|| {
                    let names: Vec<&str> = formats.iter().map(DateFormat::name).collect();
                    SearchError::illegal(format!(
                        "failed to parse date field [{text}] with format [{}]",
                        names.join("||")
                    ))
                })?)
            }
        })
    }

    /// The lowest or highest value of the type, by which a document without a value is sorted.
    pub fn extreme(&self, lowest: bool) -> SortValue {
        let pick = |low: i64, high: i64| SortValue::Long(if lowest { low } else { high });
        match self {
            Shown::Double | Shown::Float => {
                SortValue::Double(if lowest { f64::NEG_INFINITY } else { f64::INFINITY })
            }
            Shown::Unsigned => SortValue::Unsigned(if lowest { 0 } else { u64::MAX }),
            Shown::Int => pick(i64::from(i32::MIN), i64::from(i32::MAX)),
            Shown::Text | Shown::Ip => SortValue::Null,
            Shown::Long | Shown::Boolean | Shown::Date { .. } => pick(i64::MIN, i64::MAX),
        }
    }

    /// Appends a sort value to `out` as JSON.
    pub fn write(&self, value: &SortValue, out: &mut String) {
        match (self, value) {
            (_, SortValue::Null) => out.push_str("null"),
            (Shown::Ip, SortValue::Text(text)) => out.push_str(&Value::from(ip::shown(text)).to_string()),
            (_, SortValue::Text(text)) => out.push_str(&Value::from(&**text).to_string()),
            (_, SortValue::Unsigned(number)) => out.push_str(&number.to_string()),
            // The number that stands for a missing date is no date.
            (Shown::Date { formatted: true, .. }, SortValue::Long(i64::MIN | i64::MAX)) => {
                out.push_str("null")
            }
            (Shown::Date { formats, formatted: true, nanos }, SortValue::Long(number)) => {
                let shown = match nanos {
                    true => format_nanos(formats, *number),
                    false => format_date(formats, *number),
                };
                out.push_str(&Value::from(shown).to_string());
            }
            (_, SortValue::Long(number)) => out.push_str(&number.to_string()),
            (_, SortValue::Double(number)) if number.is_infinite() => {
                out.push_str(if *number > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
            }
            (Shown::Float, SortValue::Double(number)) => {
                let mut bytes = Vec::new();
                write_f32(&mut bytes, *number as f32);
                out.push_str(&String::from_utf8_lossy(&bytes));
            }
            (_, SortValue::Double(number)) => out.push_str(&Value::from(*number).to_string()),
        }
    }
}

/// Parses a whole number; a fraction is truncated, as a cast in Java does. `None` for other text and beyond
/// the range of `i64`.
fn whole(text: &str) -> Option<i64> {
    let text = text.trim();
    text.parse::<i64>().ok().or_else(|| {
        let value: f64 = text.parse().ok()?;
        (value.is_finite() && value.abs() < 9.3e18).then_some(value as i64)
    })
}

/// Reads a list of date formats (`a||b`).
///
/// # Errors
/// A message that says what is wrong with the formats.
pub fn parse_formats(formats: &str) -> Result<Vec<DateFormat>, String> {
    date::parse_formats(formats)
}

/// Reads a date written in any of `formats`; milliseconds since the epoch.
pub fn date_from_text(formats: &[DateFormat], text: &str) -> Option<i64> {
    date::parse_date(formats, text, false)
}

/// Writes a date in the first of `formats`.
pub fn format_date(formats: &[DateFormat], millis: i64) -> String {
    formats.first().unwrap_or(&DateFormat::StrictDateOptionalTime).write(millis, &Zone::UTC)
}

/// Writes nanoseconds since the epoch as a date in the first of `formats`.
pub fn format_nanos(formats: &[DateFormat], nanos: i64) -> String {
    formats.first().unwrap_or(&DateFormat::StrictDateOptionalTime).write_nanos(nanos, &Zone::UTC)
}
