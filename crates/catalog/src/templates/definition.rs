//! The definitions of templates, as they are read from requests and shown again.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sparrow_mapping::Mapping;

use super::overlay::overlay;
use crate::Settings;
use crate::aliases::AliasSpec;
use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::shape::{self, Named, Shape, alike, flag, int, map, named, open, several, text};
use sparrow_write_ahead_log::stores::Unusable;

/// Settings, mappings and aliases for a new index.
#[derive(Debug, Clone, Default)]
pub struct Body {
    pub settings: Settings,
    /// The mapping in its normalized JSON form; none if it was not given.
    pub mappings: Option<Map<String, Value>>,
    pub aliases: BTreeMap<String, AliasSpec>,
    said_settings: bool,
    said_aliases: bool,
}

impl Body {
    /// What a request says of a new index.
    pub fn members() -> [Named; 3] {
        let aliases = ("aliases", map(named("Alias")));
        [("settings", named("Settings")), ("mappings", named("Mapping")), aliases]
    }

    /// An object of that.
    pub fn shape() -> Shape {
        shape::object(Self::members())
    }

    /// Sets `settings`, `mappings` or `aliases`; `false` for another key.
    ///
    /// # Errors
    /// When the value is invalid.
    pub fn set(&mut self, key: &str, value: &Value) -> Result<bool, EngineError> {
        match key {
            _ if value.is_null() && matches!(key, "settings" | "mappings" | "aliases") => {}
            "settings" => {
                self.settings = Settings::parse(value)?;
                self.said_settings = true;
            }
            "mappings" if value.as_object().is_some_and(|map| map.len() == 1 && map.contains_key("_doc")) => {
                return Err(EngineError::illegal_argument(
                    "The mapping definition cannot be nested under a type",
                ));
            }
            "mappings" => {
                // Read and printed, so that all of them write a field in one way and can be laid over each other.
                self.mappings = Mapping::parse_part(value)?.to_json().as_object().cloned();
            }
            "aliases" => {
                self.aliases = AliasSpec::parse_all(value)?;
                self.said_aliases = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// This overridden by `above`: setting by setting, field by field, alias by alias.
    pub fn overlaid(&self, above: &Self) -> Self {
        let mappings = match (&self.mappings, &above.mappings) {
            (None, other) | (other, None) => other.clone(),
            (Some(below), Some(above)) => Some(overlay(below, above)),
        };
        let mut aliases = self.aliases.clone();
        aliases.extend(above.aliases.clone());
        Self {
            settings: self.settings.overlaid(&above.settings),
            mappings,
            aliases,
            said_settings: self.said_settings || above.said_settings,
            said_aliases: self.said_aliases || above.said_aliases,
        }
    }

    /// Settings, mappings and aliases as JSON, without those that were not given.
    pub fn to_json(&self, flat: bool) -> Map<String, Value> {
        let mut out = Map::new();
        if self.said_settings {
            out.insert("settings".into(), self.settings.given(flat));
        }
        if let Some(mappings) = &self.mappings {
            out.insert("mappings".into(), Value::Object(mappings.clone()));
        }
        if self.said_aliases {
            out.insert("aliases".into(), self.aliases_json());
        }
        out
    }

    /// The `aliases` object, as the API shows it.
    pub fn aliases_json(&self) -> Value {
        Value::Object(self.aliases.iter().map(|(name, spec)| (name.clone(), spec.to_json())).collect())
    }
}

/// Version, metadata and deprecation of an index template or a component template.
#[derive(Debug, Clone, Default)]
pub struct About {
    pub version: Option<i64>,
    meta: Option<Value>,
    deprecated: Option<bool>,
}

impl About {
    fn members() -> [Named; 3] {
        [("version", int()), ("_meta", open()), ("deprecated", flag())]
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<bool, EngineError> {
        match key {
            "version" => self.version = integer(key, value)?,
            "_meta" if value.is_object() || value.is_null() => {
                self.meta = Some(value.clone()).filter(|value| !value.is_null());
            }
            "_meta" => return Err(EngineError::illegal_argument("[_meta] must be an object")),
            "deprecated" => self.deprecated = boolean(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn put(&self, out: &mut Map<String, Value>) {
        out.extend(self.version.map(|version| ("version".to_owned(), version.into())));
        out.extend(self.meta.clone().map(|meta| ("_meta".to_owned(), meta)));
        out.extend(self.deprecated.map(|deprecated| ("deprecated".to_owned(), deprecated.into())));
    }
}

/// A component template: settings, mappings and aliases that index templates can include.
#[derive(Debug, Clone, Default)]
pub struct Component {
    pub body: Body,
    pub about: About,
    /// The stored definition, if this version cannot use it.
    pub unusable: Option<Unusable>,
}

impl Component {
    /// A component template that this version cannot use, and that is kept as it is stored.
    pub(super) fn kept(definition: &Value, reason: String) -> Self {
        Self { unusable: Some(Unusable { definition: definition.clone(), reason }), ..Self::default() }
    }

    /// What the definition of a component template holds.
    pub fn shape() -> Shape {
        shape::object([("template", Body::shape())]).and(About::members()).needs(&["template"])
    }

    /// Reads the definition of a component template.
    ///
    /// # Errors
    /// When the definition is invalid or has an unknown key.
    pub fn parse(name: &str, value: &Value) -> Result<Self, EngineError> {
        check_name("component_template", name)?;
        let mut component = Self::default();
        let mut has_template = false;
        for (key, value) in object("component_template", value)? {
            match key.as_str() {
                "template" => {
                    component.body = body(value)?;
                    has_template = true;
                }
                _ if component.about.set(key, value)? => {}
                other => return Err(unknown("component_template", &Self::shape(), other)),
            }
        }
        if !has_template {
            return Err(EngineError::illegal_argument("Required [template]"));
        }
        Ok(component)
    }

    /// The definition as the API shows it.
    pub fn to_json(&self, flat: bool) -> Value {
        if let Some(kept) = &self.unusable {
            return kept.definition.clone();
        }
        let mut out = Map::new();
        out.insert("template".into(), Value::Object(self.body.to_json(flat)));
        self.about.put(&mut out);
        Value::Object(out)
    }
}

/// A composable index template: what new indices with matching names get.
#[derive(Debug, Clone, Default)]
pub struct IndexTemplate {
    pub patterns: Vec<String>,
    pub body: Body,
    has_body: bool,
    pub composed_of: Vec<String>,
    pub ignore_missing: Vec<String>,
    pub priority: Option<i64>,
    pub about: About,
    allow_auto_create: Option<bool>,
    /// The stored definition, if this version cannot use it.
    pub unusable: Option<Unusable>,
}

impl IndexTemplate {
    /// An index template that this version cannot use, and that is kept as it is stored. Only its patterns, components and priority
    /// count.
    pub(super) fn kept(definition: &Value, reason: String) -> Self {
        Self {
            patterns: texts("index_patterns", &definition["index_patterns"]).unwrap_or_default(),
            composed_of: texts("composed_of", &definition["composed_of"]).unwrap_or_default(),
            priority: definition["priority"].as_i64(),
            unusable: Some(Unusable { definition: definition.clone(), reason }),
            ..Self::default()
        }
    }

    /// What the definition of an index template holds.
    pub fn shape() -> Shape {
        let lists = "index_patterns composed_of ignore_missing_component_templates";
        shape::object(alike(lists, several(text())))
            .and([("template", Body::shape()), ("priority", int()), ("allow_auto_create", flag())])
            .and(About::members())
            .needs(&["index_patterns"])
    }

    /// Reads the definition of an index template.
    ///
    /// # Errors
    /// When the definition is invalid or has an unknown key.
    pub fn parse(name: &str, value: &Value) -> Result<Self, EngineError> {
        check_name("index_template", name)?;
        let mut template = Self::default();
        let mut problems = Vec::new();
        let mut has_patterns = false;
        for (key, value) in object("index_template", value)? {
            match key.as_str() {
                "index_patterns" => {
                    template.patterns = texts(key, value)?;
                    has_patterns = true;
                }
                "template" if value.is_null() => {}
                "template" => {
                    template.body = body(value)?;
                    template.has_body = true;
                }
                "composed_of" => template.composed_of = texts(key, value)?,
                "ignore_missing_component_templates" => template.ignore_missing = texts(key, value)?,
                "priority" => template.priority = integer(key, value)?,
                "allow_auto_create" => template.allow_auto_create = boolean(key, value)?,
                "data_stream" if value.is_null() => {}
                "data_stream" => {
                    return Err(EngineError::illegal_argument(
                        "[data_stream] cannot be used on this server: there are no data streams",
                    ));
                }
                _ if template.about.set(key, value)? => {}
                other => return Err(unknown("index_template", &Self::shape(), other)),
            }
        }
        if !has_patterns {
            return Err(EngineError::illegal_argument("Required [index_patterns]"));
        }
        if template.patterns.is_empty() {
            problems.push("index patterns are missing".to_owned());
        }
        if template.priority.is_some_and(|priority| priority < 0) {
            problems.push("index template priority must be >= 0".to_owned());
        }
        if !problems.is_empty() {
            return Err(EngineError::Validation { problems });
        }
        check_patterns("index_template", name, &template.patterns)?;
        Ok(template)
    }

    /// The definition as the API shows it.
    pub fn to_json(&self, flat: bool) -> Value {
        if let Some(kept) = &self.unusable {
            return kept.definition.clone();
        }
        let mut out = Map::new();
        out.insert("index_patterns".into(), json!(self.patterns));
        if self.has_body {
            out.insert("template".into(), Value::Object(self.body.to_json(flat)));
        }
        out.insert("composed_of".into(), json!(self.composed_of));
        out.extend(self.priority.map(|priority| ("priority".to_owned(), priority.into())));
        self.about.put(&mut out);
        out.extend(self.allow_auto_create.map(|allow| ("allow_auto_create".to_owned(), allow.into())));
        if !self.ignore_missing.is_empty() {
            out.insert("ignore_missing_component_templates".into(), json!(self.ignore_missing));
        }
        Value::Object(out)
    }
}

/// A legacy index template (`_template`).
#[derive(Debug, Clone, Default)]
pub struct Legacy {
    pub patterns: Vec<String>,
    pub order: i64,
    pub version: Option<i64>,
    pub body: Body,
    /// The stored definition, if this version cannot use it.
    pub unusable: Option<Unusable>,
}

impl Legacy {
    /// A legacy template that this version cannot use, and that is kept as it is stored. Only its patterns and order count.
    pub(super) fn kept(definition: &Value, reason: String) -> Self {
        Self {
            patterns: texts("index_patterns", &definition["index_patterns"]).unwrap_or_default(),
            order: definition["order"].as_i64().unwrap_or(0),
            unusable: Some(Unusable { definition: definition.clone(), reason }),
            ..Self::default()
        }
    }

    /// What the definition of a legacy template holds.
    pub fn shape() -> Shape {
        shape::object([("index_patterns", several(text())), ("order", int().preset(0)), ("version", int())])
            .and(Body::members())
            .needs(&["index_patterns"])
    }

    /// Reads the definition of a legacy template.
    ///
    /// # Errors
    /// When the definition is invalid or has an unknown key.
    pub fn parse(name: &str, value: &Value) -> Result<Self, EngineError> {
        check_name("index_template", name)?;
        let mut template = Self::default();
        for (key, value) in object("index_template", value)? {
            match key.as_str() {
                "index_patterns" => template.patterns = texts(key, value)?,
                "order" => template.order = integer(key, value)?.unwrap_or(0),
                "version" => template.version = integer(key, value)?,
                _ if template.body.set(key, value)? => {}
                other => {
                    let near = Self::shape().near(other);
                    return Err(EngineError::parse(format!("unknown key [{other}] in the template {near}")));
                }
            }
        }
        if template.patterns.is_empty() {
            return Err(EngineError::invalid("index patterns are missing"));
        }
        check_patterns("index_template", name, &template.patterns)?;
        Ok(template)
    }

    /// The definition as the API shows it.
    pub fn to_json(&self, flat: bool) -> Value {
        if let Some(kept) = &self.unusable {
            return kept.definition.clone();
        }
        let mut out = Map::new();
        out.insert("order".into(), self.order.into());
        out.extend(self.version.map(|version| ("version".to_owned(), version.into())));
        out.insert("index_patterns".into(), json!(self.patterns));
        out.insert("settings".into(), self.body.settings.given(flat));
        out.insert("mappings".into(), Value::Object(self.body.mappings.clone().unwrap_or_default()));
        out.insert("aliases".into(), self.body.aliases_json());
        Value::Object(out)
    }
}

fn body(value: &Value) -> Result<Body, EngineError> {
    let mut body = Body::default();
    for (key, value) in object("template", value)? {
        if !body.set(key, value)? {
            return Err(unknown("template", &Body::shape(), key));
        }
    }
    Ok(body)
}

fn object<'a>(what: &str, value: &'a Value) -> Result<&'a Map<String, Value>, EngineError> {
    value.as_object().ok_or_else(|| EngineError::parse(format!("[{what}] must be an object")))
}

fn unknown(what: &str, shape: &Shape, key: &str) -> EngineError {
    let reason = format!("[{what}] {}", shape.unknown(key));
    EngineError::api(400, Exception::new("x_content_parse_exception", reason))
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>, EngineError> {
    let wrong = || EngineError::illegal_argument(format!("[{key}] must be a string or an array of strings"));
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => Ok(text.split(',').map(|text| text.trim().to_owned()).collect()),
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        _ => Err(wrong()),
    }
}

fn integer(key: &str, value: &Value) -> Result<Option<i64>, EngineError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.parse::<i64>().is_ok() => Ok(text.parse().ok()),
        other => other.as_i64().map(Some).ok_or_else(|| {
            EngineError::illegal_argument(format!("Failed to parse value [{other}] for [{key}]"))
        }),
    }
}

fn boolean(key: &str, value: &Value) -> Result<Option<bool>, EngineError> {
    match value {
        Value::Null => Ok(None),
        other => other.as_bool().map(Some).ok_or_else(|| {
            EngineError::illegal_argument(format!(
                "Failed to parse value [{other}] as only [true] or [false] are allowed. [{key}]"
            ))
        }),
    }
}

fn check_name(what: &str, name: &str) -> Result<(), EngineError> {
    let problem = if name.contains(' ') {
        "name must not contain a space"
    } else if name.contains(',') {
        "name must not contain a ','"
    } else if name.contains('#') {
        "name must not contain a '#'"
    } else if name.contains('*') {
        "name must not contain a '*'"
    } else if name.starts_with('_') {
        "name must not start with '_'"
    } else if name.chars().any(char::is_uppercase) {
        "name must be lower cased"
    } else {
        return Ok(());
    };
    Err(invalid(what, name, &format!("Validation Failed: 1: {problem};")))
}

fn check_patterns(what: &str, name: &str, patterns: &[String]) -> Result<(), EngineError> {
    let problem = |pattern: &String| {
        let forbidden = |c: char| matches!(c, '\\' | '/' | '?' | '"' | '<' | '>' | '|' | ' ' | ',' | '#');
        if pattern.is_empty() {
            Some("index_patterns must not be empty".to_owned())
        } else if pattern.starts_with('_') {
            Some(format!("index_pattern [{pattern}] must not start with '_'"))
        } else if pattern.contains(forbidden) {
            Some(format!(
                "index_pattern [{pattern}] must not contain the following characters [ , \", *, \\, <, |, ,, >, /, ?]"
            ))
        } else {
            None
        }
    };
    match patterns.iter().find_map(problem) {
        Some(problem) => Err(invalid(what, name, &format!("Validation Failed: 1: {problem};"))),
        None => Ok(()),
    }
}

/// An `invalid_index_template_exception` with status 400.
pub fn invalid(what: &str, name: &str, cause: &str) -> EngineError {
    let reason = format!("{what} [{name}] invalid, cause [{cause}]");
    EngineError::api(400, Exception::new("invalid_index_template_exception", reason))
}
