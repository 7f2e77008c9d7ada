//! A JSON parser that records the location of every token.
//!
//! Errors of the query language name line and column of the offending token, which a plain
//! `serde_json::Value` does not record. Columns count bytes from 1, as Elasticsearch's parser does, and the
//! wording of syntax errors is that parser's.

mod reader;
mod written;

use std::fmt;

use compact_str::CompactString;
use serde_json::Value;
use sparrow_runtime::work;

use crate::exception::Exception;

pub use self::reader::read;
pub use self::written::{TextsByAddress, WrittenNumbers, prints_the_same, write};

/// Location of a token in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Line number, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A JSON value with its location in the request.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the value starts.
    pub at: Location,
    /// Location of its last token: the closing bracket of an object or array, else `at`.
    pub end: Location,
    /// The value itself, without its location.
    pub json: Json,
}

/// A JSON value whose members keep their order and locations.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// A number as it was written.
    Number(CompactString),
    String(CompactString),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A member of an object: key and value.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Key of the member.
    pub name: CompactString,
    /// Location of the key.
    pub at: Location,
    /// Value of the member.
    pub value: Node,
}

impl Node {
    /// Name of the value's first token, as in Elasticsearch's messages.
    pub fn token(&self) -> &'static str {
        match &self.json {
            Json::Null => "VALUE_NULL",
            Json::Bool(_) => "VALUE_BOOLEAN",
            Json::Number(_) => "VALUE_NUMBER",
            Json::String(_) => "VALUE_STRING",
            Json::Array(_) => "START_ARRAY",
            Json::Object(_) => "START_OBJECT",
        }
    }

    /// Members, if the value is an object.
    pub fn as_object(&self) -> Option<&[Member]> {
        match &self.json {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Elements, if the value is an array.
    pub fn as_array(&self) -> Option<&[Node]> {
        match &self.json {
            Json::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Whether the value is neither an object nor an array.
    pub fn is_scalar(&self) -> bool {
        !matches!(self.json, Json::Array(_) | Json::Object(_))
    }

    /// The value without locations. Numbers keep their precision as far as 64 bits permit.
    pub fn to_value(&self) -> Value {
        match &self.json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()))
            }
            Json::String(text) => Value::String(text.to_string()),
            // A request that is over a limit is refused, so its values are not looked at any more.
            Json::Array(_) | Json::Object(_) if work::is_over_limit() => Value::Null,
            Json::Array(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Json::Object(members) => Value::Object(
                members.iter().map(|member| (member.name.to_string(), member.value.to_value())).collect(),
            ),
        }
    }
}

/// Error for bytes that are not exactly one JSON value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[{at}] {detail}")]
pub struct JsonError {
    /// Location where parsing stopped.
    pub at: Location,
    /// Message in the words of Elasticsearch's parser, with the quoted source.
    pub detail: String,
    /// Whether the text ends too early, for which Elasticsearch has a type of its own.
    pub end_of_file: bool,
}

impl JsonError {
    /// The exception that represents the error in a response, with the parser's message as its cause.
    pub fn exception(&self) -> Exception {
        let JsonError { at, detail, end_of_file } = self;
        if *end_of_file {
            Exception::new("x_content_e_o_f_exception", format!("[{at}] Unexpected end of file"))
                .because(Exception::new("json_e_o_f_exception", detail))
        } else {
            Exception::new("x_content_parse_exception", format!("[{at}] {detail}"))
                .because(Exception::new("json_parse_exception", detail))
        }
    }
}
