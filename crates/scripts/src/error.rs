//! Errors of scripts, as Elasticsearch shows them.

use std::sync::Arc;

use serde_json::json;
use sparrow_runtime::work::Stopped;
use sparrow_wire::Exception;

/// An error of a script, or of an object that states one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScriptError {
    /// The script is not in the language, or uses what is not there.
    #[error("compile error: {0}")]
    Compile(Box<Report>),
    /// The script failed on a document.
    #[error("runtime error: {0}")]
    Runtime(Box<Report>),
    /// The request must stop.
    #[error("the request was stopped")]
    Stopped(Stopped),
    /// The object that states a script has a member that there is not.
    #[error("[script] unknown field [{field}]")]
    UnknownField {
        /// Name of the member.
        field: String,
    },
    /// A member of the object that states a script has a value of another type.
    #[error("[script] {field} doesn't support values of type: {found}")]
    ValueType {
        /// Name of the member.
        field: &'static str,
        /// Type of the value, such as `VALUE_NUMBER`.
        found: &'static str,
    },
    /// The object that states a script contradicts itself, or lacks what it needs.
    #[error("{0}")]
    Inconsistent(&'static str),
    /// What a script left in `ctx` cannot be done.
    #[error("{reason}")]
    Context {
        /// What cannot be done, as a sentence.
        reason: String,
    },
    /// A stored script, which only search templates are.
    #[error(
        "unable to find script [{id}]: stored scripts are search templates here, state this one as [source]"
    )]
    Stored {
        /// The id in the request.
        id: String,
    },
    /// The script is in a language that there is not.
    #[error("script_lang not supported [{lang}]")]
    Language {
        /// Name of the language.
        lang: String,
    },
}

/// What went wrong in a script, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Type of the cause, such as `null_pointer_exception`.
    pub kind: &'static str,
    /// Reason of the cause; Java has exceptions without one.
    pub reason: Option<String>,
    /// Line of the place, from 1.
    pub line: usize,
    /// Column of the place, from 1, in characters.
    pub column: usize,
    /// The place, and the part of the script around it that is shown.
    pub position: Position,
    /// The part of the script around the place, and a line that points to it.
    pub script_stack: Vec<String>,
    /// The whole script.
    pub script: Arc<str>,
}

/// A place in a script, in UTF-16 units from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The place itself.
    pub offset: usize,
    /// Beginning of what is shown of the script.
    pub start: usize,
    /// End of what is shown of the script.
    pub end: usize,
}

impl std::fmt::Display for Report {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, line, column, .. } = self;
        let reason = self.reason.as_deref().unwrap_or(kind);
        write!(out, "{reason} at line [{line}], column [{column}]")
    }
}

impl Report {
    /// Reports something at a byte of the script; `around` are the bytes between which the script is shown, with
    /// `dots` for what is left out.
    pub(crate) fn new(
        script: &Arc<str>,
        kind: &'static str,
        reason: Option<String>,
        at: usize,
        around: (usize, usize),
        dots: bool,
    ) -> Self {
        let boundary = |at: usize| (0..=at.min(script.len())).rev().find(|at| script.is_char_boundary(*at));
        let [at, start, end] = [at, around.0, around.1].map(|at| boundary(at).unwrap_or_default());
        let (start, end) = (start.min(at), end.max(at));
        let before = &script[..at];
        let line_start = before.rfind('\n').map_or(0, |line| line + 1);
        let units = |text: &str| text.chars().map(char::len_utf16).sum::<usize>();
        let open = if dots && start > 0 { "... " } else { "" };
        let close = if dots && end < script.len() { " ..." } else { "" };
        let pointer = " ".repeat(open.len() + units(&script[start..at])) + "^---- HERE";
        Self {
            kind,
            reason,
            line: before.matches('\n').count() + 1,
            column: script[line_start..at].chars().count() + 1,
            position: Position {
                offset: units(before),
                start: units(&script[..start]),
                end: units(&script[..end]),
            },
            script_stack: vec![format!("{open}{}{close}", &script[start..end]), pointer],
            script: Arc::clone(script),
        }
    }

    fn exception(&self, reason: &'static str) -> Exception {
        let Position { offset, start, end } = self.position;
        let cause = Exception::new(self.kind, self.reason.as_deref().unwrap_or_default());
        Exception::new("script_exception", reason)
            .with("script_stack", self.script_stack.clone())
            .with("script", &*self.script)
            .with("lang", "painless")
            .with("position", json!({"offset": offset, "start": start, "end": end}))
            .because(cause)
    }
}

impl ScriptError {
    /// The error as a response shows it. A request that must stop has errors of its own: see [`ScriptError::Stopped`].
    pub fn exception(&self) -> Exception {
        match self {
            Self::Compile(report) => report.exception("compile error"),
            Self::Runtime(report) => report.exception("runtime error"),
            Self::UnknownField { .. } | Self::ValueType { .. } => {
                Exception::new("x_content_parse_exception", self.to_string())
            }
            Self::Stopped(_)
            | Self::Inconsistent(_)
            | Self::Language { .. }
            | Self::Context { .. }
            | Self::Stored { .. } => Exception::new("illegal_argument_exception", self.to_string()),
        }
    }
}

/// Why a step of a script failed, before it is known where.
#[derive(Debug, Clone)]
pub struct Fault(pub(crate) Box<Thrown>);

#[derive(Debug, Clone)]
pub(crate) struct Thrown {
    /// Type of the exception, such as `null_pointer_exception`.
    pub kind: &'static str,
    pub reason: Option<String>,
    /// Byte of the script at which it was thrown.
    pub at: Option<u32>,
    /// Set if the request must stop.
    pub stopped: Option<Stopped>,
}

impl Fault {
    /// An exception of this type, such as `illegal_argument_exception`.
    pub fn new(kind: &'static str, reason: impl Into<String>) -> Self {
        Self(Box::new(Thrown { kind, reason: Some(reason.into()), at: None, stopped: None }))
    }

    /// An exception of this type without a reason.
    pub(crate) fn bare(kind: &'static str) -> Self {
        Self(Box::new(Thrown { kind, reason: None, at: None, stopped: None }))
    }

    /// An `illegal_argument_exception`.
    pub fn illegal(reason: impl Into<String>) -> Self {
        Self::new("illegal_argument_exception", reason)
    }

    /// A method that the value's class does not have.
    pub(crate) fn no_method(class: &str, name: &str, arguments: usize) -> Self {
        Self::illegal(format!("dynamic method [{class}, {name}/{arguments}] not found"))
    }

    /// A value of another class than the one that is needed.
    pub(crate) fn cast(found: &str, wanted: &str) -> Self {
        Self::new("class_cast_exception", format!("Cannot cast {found} to {wanted}"))
    }

    /// An access to `null`.
    pub(crate) fn null(name: &str) -> Self {
        Self::new(
            "null_pointer_exception",
            format!("cannot access method/field [{name}] from a null def reference"),
        )
    }

    /// A position outside of a list, an array or a text.
    pub(crate) fn index(index: impl std::fmt::Display, length: usize) -> Self {
        Self::new("index_out_of_bounds_exception", format!("Index {index} out of bounds for length {length}"))
    }

    /// Says where it was thrown, unless that is known already.
    #[must_use]
    pub(crate) fn at(mut self, at: u32) -> Self {
        self.0.at.get_or_insert(at);
        self
    }
}

impl From<Stopped> for Fault {
    fn from(stopped: Stopped) -> Self {
        Self(Box::new(Thrown {
            kind: "task_cancelled_exception",
            reason: None,
            at: None,
            stopped: Some(stopped),
        }))
    }
}
