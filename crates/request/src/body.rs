//! Parsing of JSON bodies, with the error messages of Elasticsearch's parser.

use serde_json::{Map, Value};
pub use sparrow_mapping::json_token as token;

use crate::error::{EngineError, Exception};
use sparrow_runtime::work;
use sparrow_wire::json::{Location, read};
use sparrow_wire::strict_json;

/// Reads a JSON body.
///
/// # Errors
/// What the parser says, with line and column; `request body is required` for an empty one.
pub fn parse_json(body: &[u8]) -> Result<Value, EngineError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(EngineError::parse("request body is required"));
    }
    // serde_json is the fast way; its errors have other words, so a bad body is read a second time.
    strict_json::from_slice(body).map_err(|error| match read(body) {
        _ if work::is_over_limit() => over_limit(),
        // What only that reader takes has no place here either: a number out of all bounds, half of a character.
        Ok(_) => EngineError::parse(error.to_string()),
        Err(error) => EngineError::api(400, error.exception()),
    })
}

/// Reads a body that is an object or absent.
///
/// # Errors
/// As [`parse_json`]; another value than an object is refused.
pub fn parse_object(body: &[u8]) -> Result<Map<String, Value>, EngineError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match parse_json(body)? {
        Value::Object(object) => Ok(object),
        _ => Err(EngineError::parse("Failed to parse content to map")),
    }
}

/// Why a body of lines is refused whose last one does not end: that of a `bulk` or an `msearch`.
pub fn unterminated(request: &str, body: &[u8]) -> String {
    // So they are written in Elasticsearch.
    let newline = if request == "msearch" { "\n" } else { "\\n" };
    let hint = match body.contains(&b'\n') {
        true => "",
        false => {
            ": the body has no line break. curl removes those of a file with [-d], and keeps them with [--data-binary]"
        }
    };
    format!("The {request} request must be terminated by a newline [{newline}]{hint}")
}

/// Why a body was not read to its end.
fn over_limit() -> EngineError {
    work::exceeded().map_or(EngineError::Cancelled, EngineError::from)
}

/// Bytes that a value of a document takes beside its text.
const VALUE_BYTES: usize = 48;

/// Estimate of the number of values in a JSON text, by its commas and brackets.
pub fn values(text: &[u8]) -> usize {
    // Sums of bytes, which cannot overflow in so few, are added up by vector instructions.
    let of_few = |few: &[u8]| few.iter().map(|byte| u8::from(matches!(byte, b',' | b'[' | b'{'))).sum::<u8>();
    text.chunks(usize::from(u8::MAX)).map(|few| usize::from(of_few(few))).sum()
}

/// Number of values in a JSON text, by the commas and brackets outside of its strings.
pub fn values_beside_strings(text: &[u8]) -> usize {
    let (mut values, mut at) = (0, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b',' | b'[' | b'{' => values += 1,
            b'"' => {
                at += 1;
                while text.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
    }
    values
}

/// Estimate of the memory that a document takes as a tree beside its text, in bytes.
pub fn tree_bytes(source: &[u8]) -> usize {
    VALUE_BYTES * values(source)
}

/// Reads a stored document, if the current thread's request has the memory for it.
///
/// # Errors
/// When the request must stop; 500 for a document that is not JSON.
pub fn stored_tree(source: &[u8]) -> Result<Value, EngineError> {
    work::room_for(source.len() + tree_bytes(source))?;
    serde_json::from_slice(source)
        .map_err(|error| EngineError::internal(format!("stored document is not JSON: {error}")))
}

/// Reads the JSON of a document.
///
/// # Errors
/// `document_parsing_exception` for what is not a JSON object.
pub fn parse_source(source: &[u8]) -> Result<Value, EngineError> {
    if source.iter().all(u8::is_ascii_whitespace) {
        return Err(EngineError::parse("request body is required"));
    }
    let refuse = |cause: Exception, at: Location| {
        let reason = format!("[{at}] failed to parse: {}", cause.reason);
        Err(EngineError::api(400, Exception::new("document_parsing_exception", reason).because(cause)))
    };
    match strict_json::from_slice(source) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => refuse(
            Exception::new(
                "not_x_content_exception",
                "Compressor detection can only be called on some xcontent bytes or compressed xcontent bytes",
            ),
            Location { line: 1, column: 1 },
        ),
        Err(_) if work::is_over_limit() => Err(over_limit()),
        Err(strict) => match read(source) {
            // What only this reader takes cannot be kept: a number out of all bounds, half of a character.
            Ok((_, None)) => {
                let at = Location { line: strict.line() as u32, column: strict.column() as u32 };
                let text = strict.to_string();
                let detail = text.split(" at line ").next().unwrap_or(&text);
                refuse(Exception::new("x_content_parse_exception", format!("[{at}] {detail}")), at)
            }
            Ok((_, Some(_))) => refuse(
                Exception::new(
                    "illegal_argument_exception",
                    "Malformed content, found extra data after parsing: END_OBJECT",
                ),
                last_token(source, source.len()),
            ),
            Err(error) => {
                let end = offset_of(source, error.at);
                refuse(error.exception(), last_token(source, end))
            }
        },
    }
}

/// Position of a key in a JSON text as `[line:column]`; see [`position`].
pub fn place(text: &[u8], key: &str) -> String {
    let (line, column) = position(text, key);
    format!("[{line}:{column}]")
}

/// Line and column, both from 1, of the first occurrence of a key's text in a JSON text; `(1, 1)` if it does not occur.
pub fn position(text: &[u8], key: &str) -> (usize, usize) {
    let quoted = Value::String(key.to_owned()).to_string();
    let at = text.windows(quoted.len()).position(|window| window == quoted.as_bytes()).unwrap_or(0);
    let line = text[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = at - text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1) + 1;
    (line, column)
}

fn offset_of(text: &[u8], at: Location) -> usize {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.by_ref().take(at.line as usize - 1).map(<[u8]>::len).sum();
    (before + at.column as usize - 1).min(text.len())
}

/// Location of the last token that starts before `end`: where Elasticsearch's parser would report the failure.
fn last_token(text: &[u8], end: usize) -> Location {
    let (mut last, mut position) = (0, 0);
    while position < end {
        let start = position;
        match text[position] {
            b'"' => {
                position += 1;
                while position < end && text[position] != b'"' {
                    position += if text[position] == b'\\' { 2 } else { 1 };
                }
                position += 1;
            }
            b' ' | b'\t' | b'\r' | b'\n' | b':' | b',' => {
                position += 1;
                continue;
            }
            b'{' | b'}' | b'[' | b']' => position += 1,
            _ => {
                while position < end && !b" \t\r\n:,{}[]\"".contains(&text[position]) {
                    position += 1;
                }
            }
        }
        last = start;
    }
    let before = &text[..last];
    let line = before.iter().filter(|byte| **byte == b'\n').count();
    let column = last - before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    Location { line: line as u32 + 1, column: column as u32 + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_do_not_parse_say_where() {
        for (source, start) in [
            (r#"{"title": "x", "#, "[1:11] failed to parse: [1:16] Unexpected end-of-input"),
            (r#"{"a":"#, "[1:2] failed to parse: [1:6] Unexpected end of file"),
        ] {
            let error = parse_source(source.as_bytes()).unwrap_err();
            assert_eq!(error.es_type(), "document_parsing_exception");
            assert!(error.reason().starts_with(start), "{}", error.reason());
        }
        assert_eq!(parse_source(b" ").unwrap_err().reason(), "request body is required");
        assert!(parse_source(b"[1]").is_err());
        assert!(parse_source(b"{} {}").is_err());
    }
}
