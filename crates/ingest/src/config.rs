//! Parsing the parameters of a processor: each is removed when it is read, and what remains is an error.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use sparrow_runtime::work;
use sparrow_scripts::ScriptError;

use super::document::java_type;
use super::error::{ConfigError, PropertyProblem};
use super::template::{Escape, Template, ValueTemplate};

/// Most bytes that a regular expression of a processor is compiled to: 1 MiB.
const EXPRESSION_BYTES: usize = 1 << 20;
/// Most bytes that each automaton of such an expression keeps between texts, for each thread that matches it: 256 KiB. Expressions with more
/// states are matched more slowly.
const EXPRESSION_CACHE_BYTES: usize = 256 << 10;

/// The parameters of one processor, or of a pipeline, that have not been read yet.
#[derive(Debug)]
pub(crate) struct Config {
    kind: Option<String>,
    tag: Option<String>,
    map: Map<String, Value>,
    /// The names of parameters that there are not.
    unknown: Vec<String>,
}

impl Config {
    /// The parameters of a processor of type `kind`, of which only those with `known` names can be read; reads its `tag`.
    ///
    /// # Errors
    /// If the tag is not a string.
    pub fn processor(kind: &str, known: &[&str], map: Map<String, Value>) -> Result<Self, ConfigError> {
        let mut config = Self::new(Some(kind.to_owned()), known, map);
        config.tag = config.optional_text("tag")?;
        Ok(config)
    }

    /// The parameters of a processor of type `kind`, or of a pipeline, of which only those with `known` names can be read.
    pub fn new(kind: Option<String>, known: &[&str], mut map: Map<String, Value>) -> Self {
        let unknown = map.keys().filter(|name| !known.contains(&name.as_str())).cloned().collect();
        map.retain(|name, _| known.contains(&name.as_str()));
        Self { kind, tag: None, map, unknown }
    }

    /// The tag of the processor.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Whether a parameter is present and has not been read.
    pub fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Takes a parameter of any type; null counts as absent.
    pub fn optional(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    /// Reads an optional string.
    ///
    /// # Errors
    /// If it is not a string.
    pub fn optional_text(&mut self, name: &str) -> Result<Option<String>, ConfigError> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, "string", &other)),
        }
    }

    /// Reads a required string.
    ///
    /// # Errors
    /// If it is absent or not a string.
    pub fn text(&mut self, name: &str) -> Result<String, ConfigError> {
        self.optional_text(name)?.ok_or_else(|| self.missing(name))
    }

    /// Reads a required string that is a template.
    ///
    /// # Errors
    /// If it is absent, not a string or not a template.
    pub fn template(&mut self, name: &str) -> Result<Template, ConfigError> {
        let text = self.text(name)?;
        Template::parse(&text).map_err(|reason| self.unusable(name, reason))
    }

    /// Reads the name of a field, which must not be empty.
    ///
    /// # Errors
    /// If it is absent, not a string or empty.
    pub fn field(&mut self, name: &str) -> Result<String, ConfigError> {
        let path = self.text(name)?;
        if path.is_empty() { Err(self.unusable(name, "path cannot be null nor empty")) } else { Ok(path) }
    }

    /// Reads `target_field`; `default` if it is absent.
    ///
    /// # Errors
    /// If it is not a string.
    pub fn target_field(&mut self, default: &str) -> Result<String, ConfigError> {
        Ok(self.optional_text("target_field")?.unwrap_or_else(|| default.to_owned()))
    }

    /// Reads a boolean, which may also be the string `true` or `false`.
    ///
    /// # Errors
    /// If it is something else.
    pub fn boolean(&mut self, name: &str, default: bool) -> Result<bool, ConfigError> {
        match self.optional(name) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(value),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(other) => Err(self.wrong_type(name, "boolean", &other)),
        }
    }

    /// Reads an optional object.
    ///
    /// # Errors
    /// If it is not an object.
    pub fn optional_object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, ConfigError> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(self.wrong_type(name, "map", &other)),
        }
    }

    /// Reads an optional list.
    ///
    /// # Errors
    /// If it is not a list.
    pub fn optional_list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ConfigError> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(self.wrong_type(name, "list", &other)),
        }
    }

    /// Reads an optional string or list of strings.
    ///
    /// # Errors
    /// If it is something else.
    pub fn optional_texts(&mut self, name: &str) -> Result<Option<Vec<String>>, ConfigError> {
        match self.optional(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(vec![text])),
            Some(Value::Array(list)) => list
                .into_iter()
                .map(|value| match value {
                    Value::String(text) => Ok(text),
                    other => Err(self.wrong_type(name, "string", &other)),
                })
                .collect::<Result<_, _>>()
                .map(Some),
            Some(other) => Err(self.wrong_type(name, "list", &other)),
        }
    }

    /// Takes a value whose strings may be templates.
    ///
    /// # Errors
    /// If it is absent or has a bad template.
    pub fn value_template(&mut self, name: &str) -> Result<ValueTemplate, ConfigError> {
        let value = self.optional(name).ok_or_else(|| self.missing(name))?;
        ValueTemplate::parse(&value).map_err(|reason| self.unusable(name, reason))
    }

    /// Takes `media_type`.
    ///
    /// # Errors
    /// If it is not a media type that templates support.
    pub fn escape(&mut self) -> Result<Escape, ConfigError> {
        match self.optional_text("media_type")? {
            None => Ok(Escape::default()),
            Some(name) => Escape::from_media_type(&name).ok_or_else(|| {
                self.unusable(
                    "media_type",
                    format!(
                        "property does not contain a supported media type [{name}]. Must be one of \
                         [application/json, text/plain, application/x-www-form-urlencoded]"
                    ),
                )
            }),
        }
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// If there are parameters that have not been read.
    pub fn finish(self) -> Result<(), ConfigError> {
        let parameters = self.left_over();
        if parameters.is_empty() {
            return Ok(());
        }
        Err(ConfigError::UnknownParameters { kind: self.kind.unwrap_or_default(), tag: self.tag, parameters })
    }

    /// Names of the parameters that have not been read.
    pub fn left_over(&self) -> Vec<String> {
        self.unknown.iter().chain(self.map.keys()).cloned().collect()
    }

    /// The error for an absent parameter.
    pub fn missing(&self, name: &str) -> ConfigError {
        self.problem(name, PropertyProblem::Missing)
    }

    /// The error for a value that the processor cannot use.
    pub fn unusable(&self, name: &str, reason: impl Into<String>) -> ConfigError {
        self.problem(name, PropertyProblem::Unusable(reason.into()))
    }

    /// Compiles a regular expression, which the pipeline keeps.
    ///
    /// # Errors
    /// For one that is malformed or takes more than [`EXPRESSION_BYTES`], and when the request must stop.
    pub fn expression(&self, name: &str, pattern: &str) -> Result<Regex, ConfigError> {
        work::check()?;
        RegexBuilder::new(pattern)
            .size_limit(EXPRESSION_BYTES)
            .dfa_size_limit(EXPRESSION_CACHE_BYTES)
            .build()
            .map_err(|error| self.unusable(name, format!("Invalid regex pattern. {error}")))
    }

    /// The error for a script that cannot be used.
    pub fn script(&self, name: &str, error: &ScriptError) -> ConfigError {
        ConfigError::Script {
            kind: self.kind.clone(),
            tag: self.tag.clone(),
            property: name.to_owned(),
            error: Box::new(error.clone()),
        }
    }

    /// The error for a value of a wrong type.
    pub fn wrong_type(&self, name: &str, expected: &'static str, value: &Value) -> ConfigError {
        self.problem(name, PropertyProblem::WrongType { expected, found: java_type(value) })
    }

    fn problem(&self, name: &str, problem: PropertyProblem) -> ConfigError {
        ConfigError::Property {
            kind: self.kind.clone(),
            tag: self.tag.clone(),
            property: name.to_owned(),
            problem,
        }
    }
}
