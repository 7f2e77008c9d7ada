//! Errors in the JSON of a request, and their representation in the API.

use crate::exception::Exception;
use crate::json::{JsonError, Location, Member};
use crate::suggest::{did_you_mean, suggestions};

/// An invalid request body or parameter. All variants have the status 400.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The body is not JSON.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// There is no query (or retriever, see `what`) of this name.
    #[error("unknown {what} [{name}] at {at}")]
    UnknownName { what: &'static str, name: String, suggestions: Vec<&'static str>, at: Location },
    /// A part of the body has the wrong structure; `at` is the offending token.
    #[error("{reason} at {at}")]
    Parsing { reason: String, at: Location },
    /// An object contains an unknown key.
    #[error("[{parser}] unknown field [{field}] at {at}")]
    UnknownField { parser: &'static str, field: String, suggestions: Vec<&'static str>, at: Location },
    /// A value inside `field` of `parser` is invalid.
    #[error("[{parser}] failed to parse field [{field}] at {at}: {source}")]
    Field { parser: &'static str, field: String, at: Location, source: Box<BodyError> },
    /// A value has the wrong JSON type.
    #[error("[{parser}] {field} doesn't support values of type: {token} at {at}")]
    ValueType { parser: &'static str, field: String, token: &'static str, at: Location },
    /// A required key is missing.
    #[error("[{field}] is missing")]
    Required { field: &'static str },
    /// The keys of an object are present but inconsistent.
    #[error("[{parser}] cannot be built: {reason}")]
    Build { parser: &'static str, reason: String, at: Location },
    /// A value is out of range.
    #[error("{reason}")]
    IllegalArgument { reason: String },
    /// A value is not among those that a parameter accepts.
    #[error("{reason}")]
    Parse { reason: String },
    /// A string is not a number.
    #[error("not a number: {input:?}")]
    NumberFormat { input: String },
    /// A URL parameter is not a number.
    #[error("parameter {name} is not a number: {value:?}")]
    Parameter { name: &'static str, value: String, kind: &'static str },
    /// Parts of the request contradict each other.
    #[error("{}", messages.join("; "))]
    Validation { messages: Vec<String> },
    /// A script is malformed or cannot be compiled.
    #[error("{}", exception.reason)]
    Script { exception: Box<Exception> },
    /// An aggregation is used where it is not supported.
    #[error("{reason}")]
    AggregationExecution { reason: String },
    /// An aggregation contains something that it does not support.
    #[error("{reason}")]
    AggregationInitialization { reason: String },
}

impl BodyError {
    /// Creates a [`BodyError::Parsing`].
    pub fn parsing(at: Location, reason: impl Into<String>) -> Self {
        Self::Parsing { reason: reason.into(), at }
    }

    /// Creates a [`BodyError::IllegalArgument`].
    pub fn illegal(reason: impl Into<String>) -> Self {
        Self::IllegalArgument { reason: reason.into() }
    }

    /// Creates a [`BodyError::UnknownField`] for a key that `parser` does not read, with those of `known` that are spelled alike.
    pub fn unknown_field(parser: &'static str, member: &Member, known: &[&'static str]) -> Self {
        Self::UnknownField {
            parser,
            field: member.name.to_string(),
            suggestions: suggestions(&member.name, known),
            at: member.at,
        }
    }

    /// Wraps the error with the field of the enclosing object in which it occurred. Errors of values keep
    /// their own location; others get `at`.
    #[must_use]
    pub fn within(self, parser: &'static str, field: &str, at: Location) -> Self {
        let at = self.location().unwrap_or(at);
        BodyError::Field { parser, field: field.to_owned(), at, source: Box::new(self) }
    }

    fn location(&self) -> Option<Location> {
        match self {
            BodyError::UnknownName { at, .. }
            | BodyError::Parsing { at, .. }
            | BodyError::UnknownField { at, .. }
            | BodyError::Field { at, .. }
            | BodyError::ValueType { at, .. }
            | BodyError::Build { at, .. } => Some(*at),
            _ => None,
        }
    }

    /// The exception that represents the error in a response.
    pub fn exception(&self) -> Exception {
        match self {
            BodyError::Json(error) => error.exception(),
            BodyError::Script { exception } => Exception::clone(exception),
            BodyError::UnknownName { what, name, suggestions, at: place } => at(
                Exception::new(
                    "parsing_exception",
                    match *what {
                        "aggregation" => {
                            format!("Unknown aggregation type [{name}]{}", did_you_mean(suggestions))
                        }
                        what => format!("unknown {what} [{name}]{}", did_you_mean(suggestions)),
                    },
                ),
                *place,
            )
            .because(Exception::new(
                "named_object_not_found_exception",
                format!("[{place}] unknown field [{name}]"),
            )),
            BodyError::Parsing { reason, at: place } => {
                at(Exception::new("parsing_exception", reason), *place)
            }
            BodyError::UnknownField { parser, field, suggestions, at } => Exception::new(
                "x_content_parse_exception",
                format!("[{at}] [{parser}] unknown field [{field}]{}", did_you_mean(suggestions)),
            ),
            BodyError::Field { parser, field, at, source } => Exception::new(
                "x_content_parse_exception",
                format!("[{at}] [{parser}] failed to parse field [{field}]"),
            )
            .because(source.exception()),
            BodyError::ValueType { parser, field, token, at } => Exception::new(
                "x_content_parse_exception",
                format!("[{at}] [{parser}] {field} doesn't support values of type: {token}"),
            ),
            BodyError::Required { field } => {
                Exception::new("illegal_argument_exception", format!("Required [{field}]"))
            }
            BodyError::Build { parser, reason, at: place } => {
                let wrapper = format!("Failed to build [{parser}] after last required field arrived");
                at(Exception::new("parsing_exception", wrapper.as_str()), *place).because(
                    Exception::new("x_content_parse_exception", wrapper)
                        .because(Exception::new("illegal_argument_exception", reason)),
                )
            }
            BodyError::IllegalArgument { reason } => Exception::new("illegal_argument_exception", reason),
            BodyError::Parse { reason } => Exception::new("parse_exception", reason),
            BodyError::NumberFormat { input } => {
                Exception::new("number_format_exception", format!("For input string: \"{input}\""))
            }
            BodyError::Parameter { name, value, kind } => {
                let exception = Exception::new(
                    "illegal_argument_exception",
                    format!("Failed to parse {kind} parameter [{name}] with value [{value}]"),
                );
                match *kind {
                    "int" | "float" | "long" => exception.because(Exception::new(
                        "number_format_exception",
                        format!("For input string: \"{value}\""),
                    )),
                    _ => exception,
                }
            }
            BodyError::Validation { messages } => {
                let mut reason = "Validation Failed: ".to_owned();
                for (number, message) in messages.iter().enumerate() {
                    reason.push_str(&format!("{}: {message};", number + 1));
                }
                Exception::new("action_request_validation_exception", reason)
            }
            BodyError::AggregationExecution { reason } => {
                Exception::new("aggregation_execution_exception", reason)
            }
            BodyError::AggregationInitialization { reason } => {
                Exception::new("aggregation_initialization_exception", reason)
            }
        }
    }
}

fn at(exception: Exception, at: Location) -> Exception {
    exception.with("line", at.line).with("col", at.column)
}
