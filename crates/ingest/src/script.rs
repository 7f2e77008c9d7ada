//! Scripts of pipelines: what the processor `script` runs, and the condition `if` that every processor may have.
//!
//! Both see the document as `ctx`: its fields and, among them, its metadata, as in Elasticsearch.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value as Json};
use sparrow_scripts::{Context, Machine, Script, ScriptError, ScriptSource, Value};
use sparrow_wire::strict_json::{MOST_LEVELS, levels};

use crate::config::Config;
use crate::document::{Document, check_metadata, is_metadata};
use crate::effort::weight;
use crate::error::{ConfigError, ProcessorError};

pub(crate) const SCRIPT: Context = Context { name: "ingest", variables: &["ctx"], functions: &[] };
const CONDITION: Context = Context { name: "processor_conditional", variables: &["ctx"], functions: &[] };

/// The condition under which a processor runs on a document.
#[derive(Debug)]
pub(crate) struct Condition(Compiled);

impl Condition {
    /// Reads `if`, which is a text or an object.
    ///
    /// # Errors
    /// If it is no script, or one that cannot be compiled.
    pub fn from_config(config: &mut Config) -> Result<Option<Self>, ConfigError> {
        let Some(given) = config.optional("if") else { return Ok(None) };
        Ok(Some(Self(Compiled::new(config, "if", &given, &CONDITION)?)))
    }

    /// Whether the processor is to run on a document.
    ///
    /// # Errors
    /// If the script fails.
    pub fn holds(&self, document: &mut Document) -> Result<bool, ProcessorError> {
        let (mut machine, _) = self.0.machine(document);
        let value = self.0.run(&mut machine, document)?;
        value.as_bool().ok_or_else(|| ProcessorError::Condition { script: self.source().to_owned() })
    }

    /// The text of the script.
    pub fn source(&self) -> &str {
        self.0.script.source()
    }
}

/// A script, ready to run, with its constants.
#[derive(Debug)]
pub(crate) struct Compiled {
    script: Arc<Script>,
    params: Option<Arc<Map<String, Json>>>,
}

impl Compiled {
    /// Compiles the script in a property of a processor.
    ///
    /// # Errors
    /// If it is no script, or one that cannot be compiled.
    pub fn new(
        config: &Config,
        property: &str,
        given: &Json,
        context: &Context,
    ) -> Result<Self, ConfigError> {
        let refused = |error: &ScriptError| config.script(property, error);
        let stated = ScriptSource::parse(given).map_err(|error| refused(&error))?;
        if let Some(id) = stated.id {
            return Err(config.unusable(
                property,
                format!("unable to find script [{id}]: state the script itself as [source], pipelines use no stored ones"),
            ));
        }
        let script = Script::compile(&stated.source, context).map_err(|error| refused(&error))?;
        Ok(Self { script: Arc::new(script), params: stated.params })
    }

    /// A machine for the script on a document, and what the script sees as `ctx`.
    pub fn machine(&self, document: &Document) -> (Machine, Value) {
        let mut machine = Machine::new(Arc::clone(&self.script), self.params.clone());
        let members = document.metadata.iter().chain(&document.source);
        let ctx = Value::map(
            members.map(|(name, value)| (name.as_str(), Value::from_json(value))).collect::<Vec<_>>(),
        );
        machine.set("ctx", ctx.clone());
        (machine, ctx)
    }

    /// Runs the script, within what is left of the document's time.
    ///
    /// # Errors
    /// If it fails, or if there is no time left.
    pub fn run(&self, machine: &mut Machine, document: &mut Document) -> Result<Value, ProcessorError> {
        document.matching.until(|end| {
            if Instant::now() > end.at {
                return Err(ProcessorError::ScriptTime { milliseconds: end.limit.as_millis() as u64 });
            }
            Ok(machine.run(&mut ())?)
        })
    }
}

impl From<ScriptError> for ProcessorError {
    fn from(error: ScriptError) -> Self {
        match error {
            ScriptError::Stopped(stopped) => stopped.into(),
            other => Self::Script(Box::new(other)),
        }
    }
}

impl Document {
    /// Takes what a script has made of the document's fields and metadata.
    ///
    /// # Errors
    /// If metadata is missing or has a value that it cannot have, or if the document has become too large or too deep.
    pub fn replace(&mut self, fields: Map<String, Json>) -> Result<(), ProcessorError> {
        const PATH: &str = "ctx";
        let before: usize = self.source.values().map(weight).sum();
        let (mut source, mut metadata) = (Map::with_capacity(fields.len()), Map::new());
        for (name, value) in fields {
            if levels(&value) + 1 > MOST_LEVELS {
                return Err(ProcessorError::TooDeep { path: name });
            }
            if is_metadata(&name) {
                if self.metadata.get(&name) != Some(&value) {
                    check_metadata(&name, &value)?;
                }
                metadata.insert(name, value);
            } else {
                source.insert(name, value);
            }
        }
        for name in ["_index", "_version"] {
            if self.metadata.contains_key(name) && !metadata.contains_key(name) {
                return Err(ProcessorError::Metadata { reason: format!("{name} cannot be removed") });
            }
        }
        let after: usize = source.values().map(weight).sum();
        self.grow(PATH, after as isize - before as isize)?;
        self.source = source;
        self.metadata = metadata;
        Ok(())
    }
}
