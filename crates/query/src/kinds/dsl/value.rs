//! Scalars as Elasticsearch reads them: numbers and booleans may also be written as strings.

use sparrow_wire::json::{Json, Node};
use sparrow_wire::{BodyError, MOST_REPEATED};

/// The text of a scalar; numbers and booleans as they were written.
pub fn text(node: &Node) -> Result<String, BodyError> {
    match &node.json {
        Json::String(text) => Ok(text.to_string()),
        Json::Number(text) => Ok(text.to_string()),
        Json::Bool(value) => Ok(value.to_string()),
        Json::Null | Json::Array(_) | Json::Object(_) => {
            Err(BodyError::illegal(format!("Can't get text on a {} at {}", node.token(), node.at)))
        }
    }
}

pub use sparrow_mapping::date::MOST_FORMAT;

/// Checks that a text has at most `most` characters; `what` names it in the error.
///
/// # Errors
/// If it has more.
pub fn check_length(what: &str, text: &str, most: usize) -> Result<(), BodyError> {
    // So many bytes have no more characters.
    if text.len() <= most || text.chars().take(most + 1).count() <= most {
        return Ok(());
    }
    let length = text.chars().count();
    Err(BodyError::illegal(format!(
        "{what} is too long: at most [{most}] characters are possible, found [{length}]"
    )))
}

/// The text of a scalar of up to [`MOST_REPEATED`] characters; `what` names it in the error.
pub fn repeated(node: &Node, what: &str) -> Result<String, BodyError> {
    let text = text(node)?;
    check_length(what, &text, MOST_REPEATED)?;
    Ok(text)
}

/// The `_name` of a query or retriever, `None` for null.
pub fn name(node: &Node) -> Result<Option<String>, BodyError> {
    match node.json {
        Json::Null => Ok(None),
        _ => repeated(node, "[_name]").map(Some),
    }
}

/// A format of dates or numbers, `None` for null.
pub fn format(node: &Node) -> Result<Option<String>, BodyError> {
    let format = optional_text(node)?;
    check_length("[format]", format.as_deref().unwrap_or_default(), MOST_FORMAT)?;
    Ok(format)
}

/// The text of a scalar, `None` for null.
pub fn optional_text(node: &Node) -> Result<Option<String>, BodyError> {
    match node.json {
        Json::Null => Ok(None),
        _ => text(node).map(Some),
    }
}

/// Reads a finite number, also from a string.
pub fn float(node: &Node) -> Result<f32, BodyError> {
    let value = match &node.json {
        Json::Number(text) => text.parse::<f32>().ok(),
        Json::String(text) => text.trim().parse::<f32>().ok(),
        _ => return Err(not_numeric(node)),
    };
    match value {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) | None => Err(BodyError::NumberFormat { input: text(node)? }),
    }
}

/// Reads a 32-bit integer, also from a string; the fraction of a number is cut off, as in Java.
pub fn int(node: &Node) -> Result<i32, BodyError> {
    let number_format = || -> BodyError {
        match text(node) {
            Ok(input) => BodyError::NumberFormat { input },
            Err(error) => error,
        }
    };
    match &node.json {
        Json::Number(text) => {
            let wide = text.parse::<i64>().ok().or_else(|| {
                let value = text.parse::<f64>().ok()?;
                (value.abs() < 9e15).then_some(value.trunc() as i64)
            });
            let wide = wide.ok_or_else(number_format)?;
            i32::try_from(wide)
                .map_err(|_| BodyError::illegal(format!("Numeric value ({text}) out of range of int")))
        }
        Json::String(text) => text.parse::<i32>().map_err(|_| number_format()),
        _ => Err(not_numeric(node)),
    }
}

/// Reads a non-negative 32-bit integer; `name` is for the error.
pub fn unsigned(node: &Node, name: &str) -> Result<usize, BodyError> {
    let value = int(node)?;
    usize::try_from(value)
        .map_err(|_| BodyError::illegal(format!("[{name}] parameter cannot be negative, found [{value}]")))
}

/// A boolean, also from a string.
pub fn boolean(node: &Node) -> Result<bool, BodyError> {
    match &node.json {
        Json::Bool(value) => Ok(*value),
        Json::String(text) if &**text == "true" => Ok(true),
        Json::String(text) if &**text == "false" || text.is_empty() => Ok(false),
        Json::String(text) => Err(BodyError::illegal(format!(
            "Failed to parse value [{text}] as only [true] or [false] are allowed."
        ))),
        _ => {
            Err(BodyError::parsing(node.at, format!("Expected [VALUE_BOOLEAN] but found [{}]", node.token())))
        }
    }
}

/// Reads a scalar, or an array of scalars, as a list of texts.
pub fn texts(node: &Node) -> Result<Vec<String>, BodyError> {
    match node.as_array() {
        Some(items) => items.iter().map(text).collect(),
        None => Ok(vec![text(node)?]),
    }
}

fn not_numeric(node: &Node) -> BodyError {
    BodyError::illegal(format!(
        "Current token ({}) not numeric, can not use numeric value accessors at {}",
        node.token(),
        node.at
    ))
}

/// A finite number of 64 bits, which may be written as a string.
pub fn double(node: &Node) -> Result<f64, BodyError> {
    let text = text(node)?;
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or(BodyError::NumberFormat { input: text })
}
