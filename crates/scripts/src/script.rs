//! A compiled script.

use std::sync::Arc;

use crate::context::Context;
use crate::error::ScriptError;

/// A compiled script. Threads share it.
#[derive(Debug)]
pub struct Script {
    source: Arc<str>,
}

impl Script {
    /// Compiles a script for a context.
    ///
    /// # Errors
    /// [`ScriptError::Compile`] for what is not in the language, and for names that there are not.
    pub fn compile(source: &str, _context: &Context) -> Result<Self, ScriptError> {
        Ok(Self { source: source.into() })
    }

    /// The script's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the script reads a variable of its context, or `params`, or calls a function of its context.
    pub fn uses(&self, _name: &str) -> bool {
        true
    }

    /// Names of the fields that the script reads as `doc['name']`, each once.
    pub fn doc_fields(&self) -> &[Arc<str>] {
        &[]
    }

    /// Whether the script may read fields whose names it computes, besides [`Script::doc_fields`].
    pub fn reads_other_fields(&self) -> bool {
        false
    }
}
