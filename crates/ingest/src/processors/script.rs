//! `script`, and the condition `if` that every processor may have.
//!
//! Both see the document as `ctx`: its fields and, among them, its metadata, as in Elasticsearch.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value as Json};
use sparrow_scripts::{Context, Machine, Script, ScriptError, Value};
use sparrow_wire::strict_json::{MOST_LEVELS, levels};

use crate::chain::Processor;
use crate::config::Config;
use crate::document::Document;
use crate::effort::weight;
use crate::error::{ConfigError, ProcessorError};

const SCRIPT: Context = Context { name: "ingest", variables: &["ctx"], functions: &[] };
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

/// Changes the document by a script.
#[derive(Debug)]
pub(crate) struct ScriptProcessor(Compiled);

impl ScriptProcessor {
    pub fn from_config(config: &mut Config) -> Result<Self, ConfigError> {
        let names = ["source", "id", "lang", "params"];
        let given: Map<String, Json> =
            names.into_iter().filter_map(|name| Some((name.to_owned(), config.optional(name)?))).collect();
        Ok(Self(Compiled::new(config, "source", &Json::Object(given), &SCRIPT)?))
    }
}

impl Processor for ScriptProcessor {
    fn run(&self, document: &mut Document) -> Result<(), ProcessorError> {
        let (mut machine, ctx) = self.0.machine(document);
        self.0.run(&mut machine, document)?;
        let Json::Object(fields) = machine.to_json(&ctx)? else { return Ok(()) };
        document.replace(fields)
    }
}

/// A script, ready to run, with its constants.
#[derive(Debug)]
struct Compiled {
    script: Arc<Script>,
    params: Option<Arc<Map<String, Json>>>,
}

impl Compiled {
    fn new(config: &Config, property: &str, given: &Json, context: &Context) -> Result<Self, ConfigError> {
        let refused = |error: &ScriptError| config.script(property, error);
        let stated = sparrow_scripts::ScriptSource::parse(given).map_err(|error| refused(&error))?;
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
    fn machine(&self, document: &Document) -> (Machine, Value) {
        let mut machine = Machine::new(Arc::clone(&self.script), self.params.clone());
        let members = document.metadata.iter().chain(&document.source);
        let ctx = Value::map(
            members.map(|(name, value)| (name.as_str(), Value::from_json(value))).collect::<Vec<_>>(),
        );
        machine.set("ctx", ctx.clone());
        (machine, ctx)
    }

    fn run(&self, machine: &mut Machine, document: &mut Document) -> Result<Value, ProcessorError> {
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
    fn replace(&mut self, fields: Map<String, Json>) -> Result<(), ProcessorError> {
        const PATH: &str = "ctx";
        let before: usize = self.source.values().map(weight).sum();
        let (mut source, mut metadata) = (Map::with_capacity(fields.len()), Map::new());
        for (name, value) in fields {
            if levels(&value) + 1 > MOST_LEVELS {
                return Err(ProcessorError::TooDeep { path: name });
            }
            if crate::document::is_metadata(&name) {
                if self.metadata.get(&name) != Some(&value) {
                    crate::document::check_metadata(&name, &value)?;
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::processors::check;

    fn script(source: &str) -> serde_json::Value {
        json!({"script": {"source": source, "params": {"more": 2}}})
    }

    #[test]
    fn a_script_changes_fields() {
        let given = json!({"a": 1, "tags": ["x", "y"], "gone": true});
        let source = "ctx.a += params.more; ctx.words = ctx.tags.size(); ctx.remove('gone'); ctx.o = ['k': [1.5, null]];";
        let expected = json!({"a": 3, "tags": ["x", "y"], "words": 2, "o": {"k": [1.5, null]}});
        assert_eq!(check(script(source), given).unwrap(), expected);
    }

    #[test]
    fn what_a_script_does_not_compile_to_is_refused() {
        let refused = check(script("ctx.a = ;"), json!({})).unwrap_err();
        assert!(refused.starts_with("config: "), "{refused}");
        let refused = check(json!({"script": {"id": "s"}}), json!({})).unwrap_err();
        assert!(refused.contains("unable to find script [s]"), "{refused}");
        let refused = check(json!({"script": {}}), json!({})).unwrap_err();
        assert!(refused.contains("must specify either [source]"), "{refused}");
    }

    #[test]
    fn a_failure_says_where() {
        let failed = check(script("ctx.a.b.c = 1"), json!({"a": {}})).unwrap_err();
        assert!(failed.contains("cannot access method/field"), "{failed}");
    }

    #[test]
    fn metadata_keeps_its_rules() {
        let failed = check(script("ctx.remove('_index')"), json!({})).unwrap_err();
        assert!(failed.contains("_index cannot be removed"), "{failed}");
        assert!(check(script("ctx._id = [1]"), json!({})).is_err());
    }

    #[test]
    fn a_condition_decides_whether_a_processor_runs() {
        let set = |condition: &str| json!({"set": {"field": "b", "value": 1, "if": condition}});
        assert_eq!(check(set("ctx.a == 1"), json!({"a": 1})).unwrap(), json!({"a": 1, "b": 1}));
        assert_eq!(check(set("ctx.a == 1"), json!({"a": 2})).unwrap(), json!({"a": 2}));
        assert_eq!(check(set("ctx.no?.deeper != null"), json!({"a": 2})).unwrap(), json!({"a": 2}));
        assert!(check(set("ctx.a"), json!({"a": 2})).is_err());
    }
}
