//! A JSON reader that remembers where every token stands.
//!
//! Errors of the query language name line and column of the offending token, which a plain
//! `serde_json::Value` has forgotten. Columns count bytes from 1, as Elasticsearch's parser does, and
//! the wording of syntax errors is that parser's.

mod reader;

use std::fmt;

use serde_json::Value;

use crate::exception::Exception;

pub use self::reader::read;

/// Where a token starts; both numbers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// Line.
    pub line: u32,
    /// Column, in bytes.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value with its place in the request.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the value starts.
    pub at: Location,
    /// Where its last token starts: the closing bracket of an object or array, else `at`.
    pub end: Location,
    /// The value.
    pub json: Json,
}

/// A JSON value whose members keep their order and places.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    /// The number as it was written.
    Number(Box<str>),
    String(Box<str>),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A key of an object and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The key.
    pub name: Box<str>,
    /// Where the key starts.
    pub at: Location,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Name of the token that starts the value, as Elasticsearch's messages write it.
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

    /// Members of an object.
    pub fn as_object(&self) -> Option<&[Member]> {
        match &self.json {
            Json::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Elements of an array.
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

    /// The value without places. Numbers keep their precision as far as 64 bits go.
    pub fn to_value(&self) -> Value {
        match &self.json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_string()))
            }
            Json::String(text) => Value::String(text.to_string()),
            Json::Array(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Json::Object(members) => Value::Object(
                members.iter().map(|member| (member.name.to_string(), member.value.to_value())).collect(),
            ),
        }
    }
}

/// Bytes that are not one JSON value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[{at}] {detail}")]
pub struct JsonError {
    /// Where reading stopped.
    pub at: Location,
    /// What is wrong, in the words of Elasticsearch's parser, with the quoted source.
    pub detail: String,
    /// The text ends too early (Elasticsearch has a type of its own for that).
    pub end_of_file: bool,
}

impl JsonError {
    /// The exception that an answer shows: what the parser says, twice.
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
