//! Running a script.

mod access;
mod evaluate;
mod execute;
mod json;
pub(crate) mod numbers;
mod texts;

pub(crate) use self::access::count;

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value as Json};
use sparrow_runtime::work;

use crate::context::Host;
use crate::error::{Fault, Report, ScriptError};
use crate::regexes::Pattern;
use crate::script::Script;
use crate::tree::Code;
use crate::value::Field;
use crate::value::Value;
use crate::value::object::Object;
use crate::value::text::held;

/// Steps between two looks at the request and the memory.
const STEPS_AT_ONCE: u64 = 256;
/// Most bytes of the thread's stack that a run takes: a quarter of what Rust gives a thread.
const MOST_STACK: usize = 512 << 10;
/// Most variables in the frames of all functions that have been called and not left.
const MOST_SLOTS: usize = 100_000;
/// Most regular expressions that a script computes and that are kept.
const MOST_PATTERNS: usize = 32;

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

/// Runs one script, any number of times, on one thread. A run takes up to 512 KiB of the thread's stack.
///
/// A run's values stay as they are until the next run begins or the machine is dropped: then the collections that may refer to each
/// other in a circle are emptied, because nothing else would free them. What variables of the context lead to is kept until the
/// machine is dropped. Convert what you need with [`Machine::to_json`] before.
pub struct Machine {
    script: Arc<Script>,
    params: Option<Arc<Map<String, Json>>>,
    /// Constants beside those of the request.
    added: Vec<(Rc<str>, Value)>,
    /// Whether these are others than the last run had.
    is_added_new: bool,
    state: State,
}

/// What runs change.
pub(crate) struct State {
    globals: Vec<Value>,
    texts: Vec<Value>,
    patterns: Vec<Value>,
    fields: Vec<Rc<Field>>,
    /// Variables of the functions that have been called and not left.
    stack: Vec<Value>,
    /// Where those of the current function begin.
    base: usize,
    limits: Limits,
    steps: u64,
    /// Steps at which the request and the memory are looked at next.
    pause: u64,
    /// Bytes that this thread's values held when the run began.
    held: isize,
    /// Where the thread's stack was when the run began.
    ground: usize,
    /// Collections into which other collections were put.
    suspects: Vec<Value>,
    /// Regular expressions that the script computed.
    computed: Vec<(String, Pattern)>,
    /// Set when a constant of the request was changed.
    params_changed: Rc<Cell<bool>>,
}

/// One run.
pub(crate) struct Run<'s> {
    pub code: &'s Code,
    pub state: &'s mut State,
    pub host: &'s mut dyn Host,
}

impl Machine {
    /// A machine for a script with the constants of a request, within the default limits.
    pub fn new(script: Arc<Script>, params: Option<Arc<Map<String, Json>>>) -> Self {
        let code = script.code();
        let field =
            |(place, name): (usize, &Arc<str>)| Rc::new(Field { name: (&**name).into(), place: Some(place) });
        let mut state = State {
            globals: vec![Value::Null; code.used.len()],
            texts: code.texts.iter().map(|text| Value::text(&**text)).collect(),
            patterns: code.patterns.iter().map(|pattern| Object::Pattern(pattern.clone()).into()).collect(),
            fields: code.fields.iter().enumerate().map(field).collect(),
            stack: Vec::new(),
            base: 0,
            limits: Limits::default(),
            steps: 0,
            pause: 0,
            held: 0,
            ground: 0,
            suspects: Vec::new(),
            computed: Vec::new(),
            params_changed: Rc::new(Cell::new(true)),
        };
        if let Some(place) = script.variables().iter().position(|name| *name == "doc") {
            state.globals[place] = Object::Docs.into();
        }
        Self { script, params, added: Vec::new(), is_added_new: false, state }
    }

    /// Bounds the steps and the memory of each run otherwise than by default.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.state.limits = limits;
        self
    }

    /// The script that it runs.
    pub fn script(&self) -> &Arc<Script> {
        &self.script
    }

    /// Sets a variable of the context for the runs that follow. Nothing happens if the context does not have it.
    pub fn set(&mut self, name: &str, value: Value) {
        if let Some(place) = self.script.variables().iter().position(|known| *known == name) {
            self.state.globals[place] = value;
        }
    }

    /// Gives the script more constants for the runs that follow, in place of those given so before. They hide those of the request that
    /// have the same name.
    pub fn add_params(&mut self, added: Vec<(Rc<str>, Value)>) {
        // One that is no longer given would stay.
        if self.added.len() != added.len() || self.added.iter().zip(&added).any(|(old, new)| old.0 != new.0) {
            self.state.params_changed.set(true);
        }
        self.added = added;
        self.is_added_new = true;
    }

    /// Runs the script, and gives what it returns: null if it returns nothing.
    ///
    /// # Errors
    /// [`ScriptError::Runtime`], or [`ScriptError::Stopped`] if the thread's request must stop.
    pub fn run(&mut self, host: &mut dyn Host) -> Result<Value, ScriptError> {
        self.state.clear();
        // The script may have changed the constants: each run has those of the request.
        let is_added_new = std::mem::take(&mut self.is_added_new);
        if let Some(params) = self.state.globals.last_mut() {
            if self.state.params_changed.replace(false) {
                *params = Value::constants(self.params.as_deref(), &self.added, &self.state.params_changed);
            } else if is_added_new {
                params.overwrite(&self.added);
            }
        }
        let script = Arc::clone(&self.script);
        let code = script.code();
        self.state.begin();
        let mut run = Run { code, state: &mut self.state, host };
        let result = match code.bodies.last() {
            Some(body) => run.enter(body, Vec::new(), &[]),
            None => Ok(Value::Null),
        };
        result.map_err(|fault| failed(&script, fault))
    }

    /// The error of a run that returned something else than its caller can use.
    pub fn wrong_result(&self, wanted: &str) -> ScriptError {
        failed(&self.script, Fault::new("class_cast_exception", format!("the script must return {wanted}")))
    }

    /// Converts a value of the last run. Dates become texts, and sets lists.
    ///
    /// # Errors
    /// [`ScriptError::Runtime`] for a value that JSON does not have, a collection that contains itself, and more than the
    /// limits allow.
    pub fn to_json(&mut self, value: &Value) -> Result<Json, ScriptError> {
        let script = Arc::clone(&self.script);
        self.state.begin();
        let mut run = Run { code: script.code(), state: &mut self.state, host: &mut () };
        run.json(value, &mut Vec::new()).map_err(|fault| failed(&script, fault))
    }

    /// The text of a value as `toString` gives it.
    ///
    /// # Errors
    /// [`ScriptError::Runtime`] for more than the limits allow.
    pub fn to_text(&mut self, value: &Value) -> Result<String, ScriptError> {
        let script = Arc::clone(&self.script);
        self.state.begin();
        let mut run = Run { code: script.code(), state: &mut self.state, host: &mut () };
        run.shown(value).map_err(|fault| failed(&script, fault))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.state.globals.clear();
        self.state.clear();
    }
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Machine").field("script", &self.script.source()).finish_non_exhaustive()
    }
}

/// Reports a fault with its place in the script.
fn failed(script: &Script, fault: Fault) -> ScriptError {
    let thrown = *fault.0;
    if let Some(stopped) = thrown.stopped {
        return ScriptError::Stopped(stopped);
    }
    let source = script.source_text();
    let at = thrown.at.map_or(0, |at| at as usize);
    // Elasticsearch shows the statement.
    let statements = &script.code().statements;
    let next = statements.partition_point(|start| *start <= at);
    let start = next.checked_sub(1).map_or(0, |before| statements[before]);
    let end = statements.get(next).copied().unwrap_or(source.len());
    ScriptError::Runtime(Box::new(Report::new(source, thrown.kind, thrown.reason, at, (start, end), false)))
}

/// Where the thread's stack is.
#[inline]
fn stack_now() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

impl State {
    fn begin(&mut self) {
        self.steps = 0;
        self.pause = STEPS_AT_ONCE.min(self.limits.steps);
        self.held = held();
        self.ground = stack_now();
        self.base = 0;
        self.stack.clear();
    }

    /// Breaks the circles of the last runs, apart from what the variables of the context still lead to.
    fn clear(&mut self) {
        // What nothing else refers to is in no circle. The last first: what they lead to is often older.
        let suspects = std::mem::take(&mut self.suspects);
        self.suspects.extend(suspects.into_iter().rev().filter(|suspect| !suspect.is_alone()));
        if self.suspects.is_empty() {
            return;
        }
        let (mut reached, mut waiting) = (HashSet::new(), self.globals.clone());
        while let Some(value) = waiting.pop() {
            if value.refers() && reached.insert(value.address()) {
                waiting.extend(value.referred());
            }
        }
        let suspects = std::mem::take(&mut self.suspects);
        let (kept, lost) = suspects.into_iter().partition(|suspect| reached.contains(&suspect.address()));
        self.suspects = kept;
        for suspect in lost {
            match suspect {
                Value::List(list) => list.empty(),
                Value::Map(table) | Value::Set(table) => table.empty(),
                Value::Object(object) => {
                    if let Object::Entry { value, .. } = &*object {
                        value.replace(Value::Null);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'s> Run<'s> {
    /// Counts steps.
    #[inline]
    pub(crate) fn tick(&mut self, steps: usize) -> Result<(), Fault> {
        self.state.steps += steps as u64;
        if self.state.steps < self.state.pause { Ok(()) } else { self.look_up() }
    }

    /// Counts what it takes to look at a text or to copy it.
    pub(crate) fn tick_text(&mut self, bytes: usize) -> Result<(), Fault> {
        self.tick(1 + bytes / 256)
    }

    #[cold]
    fn look_up(&mut self) -> Result<(), Fault> {
        let State { steps, limits, .. } = &*self.state;
        if *steps > limits.steps {
            return Err(Fault::new(
                "painless_error",
                "The maximum number of statements that can be executed in a loop has been reached.",
            ));
        }
        work::check()?;
        self.room(0)?;
        self.state.pause = (self.state.steps + STEPS_AT_ONCE).min(self.state.limits.steps + 1);
        Ok(())
    }

    /// Fails if the values of this run would hold too much with so many bytes more.
    pub(crate) fn room(&self, bytes: usize) -> Result<(), Fault> {
        let used = usize::try_from(held().wrapping_sub(self.state.held)).unwrap_or_default();
        let limit = self.state.limits.memory;
        if used.saturating_add(bytes) > limit {
            return Err(Fault::new(
                "painless_error",
                format!("The strings and collections of the script would hold more than [{limit}] bytes."),
            ));
        }
        if bytes > 1 << 16 {
            work::room_for(bytes)?;
        }
        Ok(())
    }

    /// Fails if too much of the thread's stack is in use.
    #[inline]
    pub(crate) fn check_depth(&self) -> Result<(), Fault> {
        if self.state.ground.abs_diff(stack_now()) > MOST_STACK || self.state.stack.len() > MOST_SLOTS {
            return Err(Fault::bare("stack_overflow_error"));
        }
        Ok(())
    }

    /// A new string.
    pub(crate) fn text(&mut self, text: String) -> Result<Value, Fault> {
        self.tick_text(text.len())?;
        self.room(text.capacity())?;
        Ok(Value::text(text))
    }

    /// A new list.
    pub(crate) fn list(&mut self, items: Vec<Value>) -> Result<Value, Fault> {
        self.tick(items.len() / 8)?;
        self.room(items.capacity() * size_of::<Value>())?;
        Ok(Value::list(items))
    }

    /// Remembers that a value is put into a collection, so that circles can be broken.
    pub(crate) fn put_into(&mut self, into: &Value, value: &Value) {
        if !value.refers() {
            return;
        }
        let is_new = match into {
            Value::List(list) => list.suspect(),
            Value::Map(table) | Value::Set(table) => table.suspect(),
            _ => true,
        };
        if is_new {
            self.state.suspects.push(into.clone());
        }
    }

    /// A regular expression that the script computed.
    pub(crate) fn pattern(&mut self, source: &str, flags: &str) -> Result<Pattern, Fault> {
        let key = format!("{flags}/{source}");
        if let Some((_, pattern)) = self.state.computed.iter().find(|(known, _)| *known == key) {
            return Ok(pattern.clone());
        }
        self.tick(1000)?;
        let pattern = crate::regexes::compile(source, flags)
            .map_err(|reason| Fault::new("pattern_syntax_exception", format!("{reason}: [{source}]")))?;
        if self.state.computed.len() >= MOST_PATTERNS {
            self.state.computed.clear();
        }
        self.state.computed.push((key, pattern.clone()));
        Ok(pattern)
    }
}
