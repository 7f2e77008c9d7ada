//! `dynamic_templates`: rules for the field that a document's unmapped field becomes.

use std::sync::Arc;

use regex::Regex;
use rustc_hash::FxHashSet;
use serde_json::{Map, Value, json};
use sparrow_runtime::work;

use super::error::MappingError;
use super::java::java_string;
use super::{Node, parse};
use sparrow_wire::glob;
use sparrow_wire::shape::{Shape, object, one, open, several, text};

/// Size limit of a compiled `match_pattern: regex` pattern, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// Most `dynamic_templates` of a mapping: each new field of a document is compared with them one by one.
const MOST_TEMPLATES: usize = 1_000;

/// Most patterns of all `dynamic_templates` of a mapping together: each new field of a document may be compared with each.
const MOST_TEMPLATE_PATTERNS: usize = 5_000;

/// Kind of JSON value with which a field first occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchType {
    Object,
    String,
    Long,
    Double,
    Boolean,
    Date,
    Binary,
}

impl MatchType {
    const ALL: [Self; 7] =
        [Self::Object, Self::String, Self::Long, Self::Double, Self::Boolean, Self::Date, Self::Binary];

    fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::String => "string",
            Self::Long => "long",
            Self::Double => "double",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Binary => "binary",
        }
    }

    /// The field type that `{dynamic_type}` stands for.
    fn field_type(self) -> &'static str {
        match self {
            Self::String => "text",
            Self::Double => "float",
            other => other.name(),
        }
    }
}

/// Patterns that field names or paths are matched with.
#[derive(Debug, Clone)]
enum NamePatterns {
    /// Wildcard patterns, in which `*` matches any characters.
    Simple(Vec<String>),
    Regex(Vec<Regex>),
}

impl NamePatterns {
    fn count(&self) -> usize {
        match self {
            Self::Simple(patterns) => patterns.len(),
            Self::Regex(patterns) => patterns.len(),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Simple(patterns) => patterns.iter().any(|pattern| glob::matches(pattern, name)),
            Self::Regex(patterns) => patterns.iter().any(|pattern| pattern.is_match(name)),
        }
    }
}

/// One entry of `dynamic_templates`.
#[derive(Debug, Clone)]
pub(crate) struct DynamicTemplate {
    name: String,
    matches: Option<NamePatterns>,
    unmatch: Option<NamePatterns>,
    path_match: Option<NamePatterns>,
    path_unmatch: Option<NamePatterns>,
    types: Option<Vec<MatchType>>,
    excluded_types: Vec<MatchType>,
    mapping: Map<String, Value>,
    /// The template as given in the mapping.
    definition: Value,
}

impl PartialEq for DynamicTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.definition == other.definition
    }
}

impl DynamicTemplate {
    /// The template as JSON, in the form of mappings.
    pub(super) fn to_json(&self) -> Value {
        json!({self.name.as_str(): self.definition})
    }

    fn applies(&self, name: &str, path: &str, kind: MatchType) -> bool {
        // Without any condition it is for those who name it.
        let conditions = [&self.matches, &self.path_match].into_iter().any(Option::is_some)
            || self.types.is_some()
            || !self.excluded_types.is_empty();
        let excluded =
            |names: &Option<NamePatterns>, text: &str| names.as_ref().is_some_and(|it| it.matches(text));
        conditions
            && self.path_match.as_ref().is_none_or(|it| it.matches(path))
            && !excluded(&self.path_unmatch, path)
            && self.matches.as_ref().is_none_or(|it| it.matches(name))
            && !excluded(&self.unmatch, name)
            && self.types.as_ref().is_none_or(|types| types.contains(&kind))
            && !self.excluded_types.contains(&kind)
    }

    /// The field that the template creates for `name`. `format` is the format in which a date was recognised, unless
    /// that is the default one.
    fn field(&self, name: &str, kind: MatchType, format: Option<&str>) -> Result<Node, MappingError> {
        let mut definition = filled(&self.mapping, name, kind.field_type());
        if !definition.contains_key("type") && !definition.contains_key("properties") {
            definition.insert("type".to_owned(), kind.field_type().into());
        }
        if let Some(format) = format
            && definition.get("type").and_then(Value::as_str) == Some("date")
        {
            definition.entry("format").or_insert_with(|| format.into());
        }
        parse::node(name, &Value::Object(definition))
    }

    /// The number of patterns in each of the template's lists, by its name.
    fn patterns(&self) -> [(&'static str, usize); 4] {
        [
            ("match", &self.matches),
            ("unmatch", &self.unmatch),
            ("path_match", &self.path_match),
            ("path_unmatch", &self.path_unmatch),
        ]
        .map(|(key, patterns)| (key, patterns.as_ref().map_or(0, NamePatterns::count)))
    }

    /// Checks that the template's lists of patterns are no longer than those of requests, and that its `mapping` yields a valid field
    /// definition for at least one kind of value.
    pub(super) fn check(&self) -> Result<(), MappingError> {
        work::check()?;
        for (key, count) in self.patterns() {
            glob::check_patterns(key, count).map_err(|error| bad(error.to_string()))?;
        }
        if contains(&Value::Object(self.mapping.clone()), "{name}") {
            return Ok(());
        }
        let tried = self.types.clone().unwrap_or_else(|| MatchType::ALL.to_vec());
        let mut last = None;
        for kind in &tried {
            let field = self.field(&format!("__dynamic__{}", self.name), *kind, None);
            let checked = field.and_then(|field| {
                let mut alone = crate::Mapping::empty();
                alone.root.properties.insert(self.name.clone(), field);
                parse::check_formats(&alone.rebuilt())
            });
            match checked {
                Ok(()) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        let Some(last) = last else { return Ok(()) };
        let names: Vec<&str> = tried.iter().map(|kind| kind.name()).collect();
        Err(MappingError::Nested {
            causes: vec![
                (
                    "illegal_argument_exception",
                    format!(
                        "dynamic template [{}] has invalid content [{}], attempted to validate it with the following \
                         match_mapping_type: [{}]",
                        self.name,
                        self.definition,
                        names.join(", ")
                    ),
                ),
                ("mapper_parsing_exception", last.to_string()),
            ],
        })
    }
}

/// The field created by the first template that applies, if any does.
pub(super) fn templated(
    templates: &[DynamicTemplate],
    name: &str,
    path: &str,
    kind: MatchType,
    format: Option<&str>,
) -> Result<Option<Node>, MappingError> {
    for template in templates {
        work::check()?;
        if template.applies(name, path, kind) {
            return template.field(name, kind, format).map(Some);
        }
    }
    Ok(None)
}

/// Checks the templates of a new mapping.
///
/// # Errors
/// When there are too many, or one of them cannot be used.
pub(super) fn check_templates(templates: &[DynamicTemplate]) -> Result<(), MappingError> {
    if templates.len() > MOST_TEMPLATES {
        return Err(bad(format!(
            "[dynamic_templates] has [{}] templates, at most [{MOST_TEMPLATES}] are possible on this server",
            templates.len()
        )));
    }
    let patterns: usize = templates.iter().flat_map(DynamicTemplate::patterns).map(|(_, count)| count).sum();
    if patterns > MOST_TEMPLATE_PATTERNS {
        return Err(bad(format!(
            "[dynamic_templates] has [{patterns}] patterns, at most [{MOST_TEMPLATE_PATTERNS}] are possible on this server"
        )));
    }
    templates.iter().try_for_each(DynamicTemplate::check)
}

/// Reads `dynamic_templates`.
pub(super) fn template_shape() -> Shape {
    object([
        ("match_pattern", one(&["simple", "regex"]).preset("simple")),
        ("match", several(text())),
        ("unmatch", several(text())),
        ("path_match", several(text())),
        ("path_unmatch", several(text())),
        ("match_mapping_type", several(text())),
        ("unmatch_mapping_type", several(text())),
        ("mapping", open()),
    ])
    .needs(&["mapping"])
}

pub(super) fn parse_templates(value: &Value) -> Result<Arc<[DynamicTemplate]>, MappingError> {
    let list = value
        .as_array()
        .ok_or_else(|| malformed("Dynamic template syntax error. An array of named objects is expected."))?;
    let mut templates: Vec<DynamicTemplate> = Vec::with_capacity(list.len());
    let mut names = FxHashSet::default();
    for one in list {
        work::check()?;
        let named = one.as_object().filter(|map| map.len() == 1).and_then(|map| map.iter().next());
        let Some((name, definition)) = named else {
            return Err(malformed("A dynamic template must be defined with a name"));
        };
        let template = parse_template(name, definition)?;
        if !names.insert(name.as_str()) {
            return Err(bad(format!("A dynamic template with name [{name}] already exists")));
        }
        templates.push(template);
    }
    Ok(templates.into())
}

fn parse_template(name: &str, definition: &Value) -> Result<DynamicTemplate, MappingError> {
    let Some(members) = definition.as_object() else {
        return Err(malformed(&format!("template [{name}] must be an object")));
    };
    let regex = match members.get("match_pattern").map(java_string).as_deref() {
        None | Some("simple") => false,
        Some("regex") => true,
        Some(other) => {
            return Err(bad(format!("No matching pattern matched on [{other}]")));
        }
    };
    let mut template = DynamicTemplate {
        name: name.to_owned(),
        matches: None,
        unmatch: None,
        path_match: None,
        path_unmatch: None,
        types: None,
        excluded_types: Vec::new(),
        mapping: Map::new(),
        definition: definition.clone(),
    };
    let mut mapped = false;
    for (key, value) in members {
        match key.as_str() {
            "match_pattern" => {}
            "match" => template.matches = Some(names(name, key, value, regex)?),
            "unmatch" => template.unmatch = Some(names(name, key, value, regex)?),
            "path_match" => template.path_match = Some(names(name, key, value, regex)?),
            "path_unmatch" => template.path_unmatch = Some(names(name, key, value, regex)?),
            "match_mapping_type" => template.types = types(name, key, value)?,
            "unmatch_mapping_type" => template.excluded_types = types(name, key, value)?.unwrap_or_default(),
            "mapping" => {
                let Some(mapping) = value.as_object() else {
                    return Err(malformed(&format!(
                        "[mapping] of dynamic template [{name}] must be an object"
                    )));
                };
                template.mapping = mapping.clone();
                mapped = true;
            }
            "runtime" => {
                return Err(malformed(&format!(
                    "[runtime] of dynamic template [{name}] is not supported by this server: there are no runtime fields"
                )));
            }
            other => return Err(bad(format!("Illegal dynamic template parameter: [{other}]"))),
        }
    }
    if !mapped {
        return Err(malformed(&format!("template [{name}] must have either mapping or runtime set")));
    }
    Ok(template)
}

/// Reads a list of strings; a single string counts as a list of one.
fn list(template: &str, key: &str, value: &Value) -> Result<Vec<String>, MappingError> {
    let texts: Option<Vec<String>> = match value {
        Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        Value::Object(_) => None,
        single => Some(vec![java_string(single)]),
    };
    texts.ok_or_else(|| bad(format!("[{key}] values must either be a string or list of strings but was [{}] in dynamic template [{template}]", java_string(value))))
}

fn names(template: &str, key: &str, value: &Value, regex: bool) -> Result<NamePatterns, MappingError> {
    let patterns = list(template, key, value)?;
    // Paths are matched simply, whatever is said of names, as in Elasticsearch.
    if !regex || key.starts_with("path") {
        return Ok(NamePatterns::Simple(patterns));
    }
    let compiled: Option<Vec<Regex>> = patterns
        .iter()
        .map(|pattern| {
            let whole = format!("^(?:{pattern})$");
            regex::RegexBuilder::new(&whole).size_limit(MAX_REGEX_BYTES).build().ok()
        })
        .collect();
    compiled.map(NamePatterns::Regex).ok_or_else(|| {
        bad(format!(
            "Pattern [{}] of type [regex] is invalid. Cannot create dynamic template [{template}].",
            patterns.join(", ")
        ))
    })
}

/// Reads `match_mapping_type` or `unmatch_mapping_type`; `None` for `*`, which means all types.
fn types(template: &str, key: &str, value: &Value) -> Result<Option<Vec<MatchType>>, MappingError> {
    let texts = list(template, key, value)?;
    if texts.iter().any(|text| text == "*") {
        return Ok(None);
    }
    let of = |text: &String| {
        MatchType::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            let all: Vec<&str> = MatchType::ALL.iter().map(|kind| kind.name()).collect();
            bad(format!("No field type matched on [{text}], possible values are [{}]", all.join(", ")))
        })
    };
    texts.iter().map(of).collect::<Result<_, _>>().map(Some)
}

/// The template's `mapping` with the placeholders `{name}` and `{dynamic_type}` filled in.
fn filled(mapping: &Map<String, Value>, name: &str, dynamic_type: &str) -> Map<String, Value> {
    let text = |text: &str| {
        text.replace("{name}", name)
            .replace("{dynamic_type}", dynamic_type)
            .replace("{dynamicType}", dynamic_type)
    };
    fn walk(value: &Value, text: &impl Fn(&str) -> String) -> Value {
        match value {
            Value::String(one) => text(one).into(),
            Value::Array(items) => items.iter().map(|item| walk(item, text)).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| (text(key), walk(value, text))).collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }
    mapping.iter().map(|(key, value)| (text(key), walk(value, &text))).collect()
}

fn contains(value: &Value, snippet: &str) -> bool {
    match value {
        Value::String(text) => text.contains(snippet),
        Value::Array(items) => items.iter().any(|item| contains(item, snippet)),
        Value::Object(map) => {
            map.iter().any(|(key, value)| key.contains(snippet) || contains(value, snippet))
        }
        _ => false,
    }
}

fn malformed(reason: &str) -> MappingError {
    MappingError::Malformed { reason: reason.to_owned() }
}

fn bad(reason: String) -> MappingError {
    MappingError::BadValue { reason }
}

#[cfg(test)]
mod tests {
    use super::super::{FieldType, Limits, Mapping};
    use super::*;

    fn mapping(definition: Value) -> Mapping {
        Mapping::parse(&definition).unwrap()
    }

    fn widened(mapping: &Mapping, document: Value) -> Mapping {
        mapping.parse_document("1", &document, &Limits::default()).unwrap().1.unwrap()
    }

    fn refused(templates: Value) -> String {
        Mapping::parse(&json!({"dynamic_templates": templates})).unwrap_err().to_string()
    }

    #[test]
    fn templates_give_types_by_name_path_and_kind() {
        let definition = json!({
            "dynamic_templates": [
                {"ids": {"match": ["*_id", "id"], "unmatch": "raw_*", "mapping": {"type": "keyword"}}},
                {"numbers": {"match_mapping_type": ["long", "double"], "mapping": {"type": "{dynamic_type}", "index": false}}},
                {"below": {"path_match": "meta.*", "path_unmatch": "*.text", "match_mapping_type": "string", "mapping": {"type": "keyword", "copy_to": "all_{name}"}}},
                {"patterns": {"match_pattern": "regex", "match": "t\\d+", "mapping": {"type": "text", "norms": false}}},
                {"objects": {"match": "weights", "match_mapping_type": "object", "mapping": {"type": "sparse_vector"}}},
                {"off": {"match": "blob", "match_mapping_type": "object", "mapping": {"type": "object", "enabled": false}}},
                {"strings": {"match_mapping_type": "string", "mapping": {"type": "keyword", "ignore_above": 10}}},
            ],
        });
        let before = mapping(definition.clone());
        assert_eq!(before.to_json(), definition);
        let after = widened(
            &before,
            json!({
                "user_id": "x", "raw_id": "y", "n": 1, "f": 1.5, "meta": {"a": "b", "text": "c"}, "t12": "words", "day": "2024-01-02",
                "weights": {"a": 1.0}, "blob": [{"x": 1}, {"y": 2}], "flag": true,
            }),
        );
        let kind = |path: &str| after.field(path).map(FieldType::name);
        for (path, expected) in [
            ("user_id", "keyword"),
            ("raw_id", "keyword"),
            ("n", "long"),
            ("f", "float"),
            ("meta.a", "keyword"),
            ("meta.text", "keyword"),
            ("t12", "text"),
            ("day", "date"),
            ("weights", "sparse_vector"),
            ("blob", "object"),
            ("flag", "boolean"),
            ("all_a", "keyword"),
        ] {
            assert_eq!(kind(path), Some(expected), "{path}");
        }
        assert_eq!(kind("blob.x").or(kind("blob.y")), None);
        assert_eq!(after.to_json()["properties"]["n"], json!({"type": "long", "index": false}));
        assert_eq!(after.to_json()["properties"]["raw_id"]["ignore_above"], json!(10));
    }

    #[test]
    fn malformed_templates_are_named() {
        for (templates, reason) in [
            (json!({"a": {}}), "Dynamic template syntax error. An array of named objects is expected."),
            (json!([{}]), "A dynamic template must be defined with a name"),
            (json!([{"a": {"match": "x"}}]), "template [a] must have either mapping or runtime set"),
            (json!([{"a": {"foo": 1, "mapping": {}}}]), "Illegal dynamic template parameter: [foo]"),
            (
                json!([{"a": {"match_mapping_type": "text", "mapping": {}}}]),
                "No field type matched on [text], possible values are [object, string, long, double, boolean, date, binary]",
            ),
            (
                json!([{"a": {"match": "(", "match_pattern": "regex", "mapping": {}}}]),
                "Pattern [(] of type [regex] is invalid. Cannot create dynamic template [a].",
            ),
        ] {
            assert_eq!(refused(templates), reason);
        }
        assert!(
            refused(
                json!([{"a": {"match": "x", "match_mapping_type": "string", "mapping": {"type": "strin"}}}])
            )
            .starts_with("dynamic template [a] has invalid content")
        );
        assert!(refused(json!([{"a": {"runtime": {}}}])).contains("no runtime fields"));
    }

    #[test]
    fn dates_are_recognised_by_the_formats_of_the_mapping() {
        let own = mapping(json!({"dynamic_date_formats": ["MM/dd/yyyy"]}));
        let after = widened(&own, json!({"d": "09/25/2015", "e": "2015-09-25"}));
        assert_eq!(after.to_json()["properties"]["d"], json!({"type": "date", "format": "MM/dd/yyyy"}));
        assert_eq!(after.field("e").map(FieldType::name), Some("text"));
        assert_eq!(after.to_json()["dynamic_date_formats"], json!(["MM/dd/yyyy"]));
        let off = mapping(json!({"date_detection": false}));
        assert_eq!(widened(&off, json!({"d": "2015-09-25"})).field("d").map(FieldType::name), Some("text"));
    }
}
