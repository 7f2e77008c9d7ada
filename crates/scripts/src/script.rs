//! A compiled script.

use std::sync::Arc;

use crate::context::{Context, Function};
use crate::error::{Report, ScriptError};
use crate::lexer::Refusal;
use crate::parser::parse;
use crate::tree::Code;

/// Longest script in characters.
const MOST_CHARACTERS: usize = 65_535;
/// Bytes of the script that an error shows around its place.
const SHOWN: usize = 25;

/// Bytes that are compiled from a byte of a script's text, and those of a regular expression with what it keeps between searches.
const TREE_BYTES: usize = 16;
const PATTERN_BYTES: usize = 256 << 10;

/// A compiled script. Threads share it.
#[derive(Debug)]
pub struct Script {
    source: Arc<str>,
    variables: &'static [&'static str],
    functions: &'static [Function],
    code: Code,
}

impl Script {
    /// Compiles a script for a context.
    ///
    /// # Errors
    /// [`ScriptError::Compile`] for what is not in the language, and for names that there are not.
    pub fn compile(source: &str, context: &Context) -> Result<Self, ScriptError> {
        let length = source.chars().count();
        let parsed = if length > MOST_CHARACTERS {
            Err(Refusal::new(
                0,
                format!(
                    "Scripts may be no longer than {MOST_CHARACTERS} characters. The passed in script is {length} characters. \
                     Consider using a plugin if a script longer than this length is a requirement."
                ),
            ))
        } else {
            parse(source, context)
        };
        let source: Arc<str> = source.into();
        match parsed {
            Ok(code) => Ok(Self { source, variables: context.variables, functions: context.functions, code }),
            Err(Refusal { at, reason }) => {
                let around = (at.saturating_sub(SHOWN), at + SHOWN);
                let kind = "illegal_argument_exception";
                Err(ScriptError::Compile(Box::new(Report::new(
                    &source,
                    kind,
                    Some(reason),
                    at,
                    around,
                    true,
                ))))
            }
        }
    }

    /// The script's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the script reads a variable of its context, or `params`, or calls a function of its context.
    pub fn uses(&self, name: &str) -> bool {
        let variables = self.variables.iter().chain(&["params"]);
        let functions = self.functions.iter().map(|function| &function.name);
        variables
            .zip(&self.code.used)
            .chain(functions.zip(&self.code.called))
            .any(|(known, used)| *known == name && *used)
    }

    /// Approximate size in memory, in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.source.len() * TREE_BYTES + self.code.patterns.len() * PATTERN_BYTES
    }

    /// Names of the fields that the script reads as `doc['name']`, each once.
    pub fn doc_fields(&self) -> &[Arc<str>] {
        &self.code.fields
    }

    /// Whether the script may read fields whose names it computes, besides [`Script::doc_fields`].
    pub fn reads_other_fields(&self) -> bool {
        self.code.reads_other_fields
    }

    pub(crate) fn code(&self) -> &Code {
        &self.code
    }

    pub(crate) fn source_text(&self) -> &Arc<str> {
        &self.source
    }

    pub(crate) fn variables(&self) -> &'static [&'static str] {
        self.variables
    }
}
