//! The components that the parts of an analyzer name: tokenizers, char filters and token filters, built in, defined by the settings of an
//! index, or written where they are used.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use super::chain::Analyzer;
use super::char_filters::CharFilter;
use super::error::AnalysisError;
use super::filters::{self, InRules};
use super::token::{Token, Tokens};
use super::tokenizers::Tokenizer;

/// Definitions of one kind by name.
pub(super) type Definitions = BTreeMap<String, Map<String, Value>>;

/// Components that the settings define, each built once: analyzers that name one share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Built {
    pub tokenizers: BTreeMap<String, Arc<dyn Tokenizer>>,
    pub char_filters: BTreeMap<String, Arc<dyn CharFilter>>,
    pub filters: BTreeMap<String, Arc<dyn filters::Filter>>,
    /// Synonym filters by their name and the names of the chain in front of them, by which their rules are analyzed.
    pub synonyms: BTreeMap<(String, Vec<String>), Arc<dyn filters::Filter>>,
}

/// The component that a part of an analyzer names, if it was built already.
pub(super) fn already<T: ?Sized>(built: &BTreeMap<String, Arc<T>>, part: &Value) -> Option<(String, Arc<T>)> {
    let (name, component) = built.get_key_value(part.as_str()?)?;
    Some((name.clone(), Arc::clone(component)))
}

/// What decides how a synonym filter reads its rules: its name and those of the chain before it; `None` where an inline definition
/// has a name that does not say what it is.
pub(super) fn synonym_key(part: &Value, before: &Analyzer) -> Option<(String, Vec<String>)> {
    let name = part.as_str()?;
    let chain = before.char_filters.iter().map(|(name, _)| name);
    let chain = chain.chain([&before.tokenizer.0]).chain(before.filters.iter().map(|(name, _)| name));
    // The tokenizer's place tells char filters and filters of one name apart.
    let mut names: Vec<String> = vec![before.char_filters.len().to_string()];
    names.extend(chain.cloned());
    names.iter().all(|name| !name.starts_with(ANONYMOUS)).then(|| (name.to_owned(), names))
}

pub(super) fn is_synonym(definition: Option<&Map<String, Value>>) -> bool {
    let kind = definition.and_then(|definition| definition.get("type")).and_then(Value::as_str);
    kind.is_some_and(|kind| kind.starts_with("synonym"))
}

/// Splits a list of component names; a single string may hold several, separated by commas.
pub(super) fn each_name(parts: &[&Value]) -> Vec<Value> {
    match parts {
        [Value::String(names)] => {
            names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Value::from).collect()
        }
        parts => parts.iter().map(|&part| part.clone()).collect(),
    }
}

pub(super) fn shown(part: &Value) -> String {
    match part {
        Value::String(name) => name.clone(),
        Value::Object(map) => map.get("type").and_then(Value::as_str).unwrap_or_default().to_owned(),
        other => other.to_string(),
    }
}

pub(super) fn unknown(part: &str, kind: &str, name: &str, value: &Value) -> AnalysisError {
    AnalysisError::illegal(if value.is_object() {
        format!("failed to find global {part} under [{kind}]")
    } else {
        format!("Unknown {part} type [{kind}] for [{name}]")
    })
}

/// What the name of an inline definition begins with.
const ANONYMOUS: &str = "__anonymous__";

/// A component definition: its name, type and parameters.
pub(super) type Located<'a> = (String, String, &'a Map<String, Value>);

/// The definition of an analysis component: the one that a name stands for, or the given inline definition. `None` if no component has
/// the name.
pub(super) fn locate<'a>(
    part: &'a Value,
    what: &'static str,
    defined: &'a Definitions,
    built_in: &[&str],
) -> Result<Option<Located<'a>>, AnalysisError> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    match part {
        Value::String(name) => match defined.get(name) {
            Some(map) => match map.get("type").and_then(Value::as_str) {
                Some(kind) => Ok(Some((name.clone(), kind.to_owned(), map))),
                // A definition that changes what is always there.
                None if built_in.contains(&name.as_str()) => Ok(Some((name.clone(), name.clone(), map))),
                None => Err(AnalysisError::illegal(format!(
                    "{what} [{name}] must have a type associated with it"
                ))),
            },
            None if built_in.contains(&name.as_str()) => Ok(Some((name.clone(), name.clone(), &NONE))),
            None => Ok(None),
        },
        Value::Object(map) => match map.get("type") {
            Some(Value::String(kind)) => Ok(Some((format!("{ANONYMOUS}{kind}"), kind.clone(), map))),
            _ => Err(AnalysisError::illegal(format!("Missing [type] setting for anonymous {what}: {part}"))),
        },
        other => Err(AnalysisError::illegal(format!("{what} must be a name or an object, found [{other}]"))),
    }
}

/// Analyzes one side of a synonym rule with the chain before the synonym filter, except for filters that rules are
/// not applied to.
pub(super) fn rule_tokens(before: &Analyzer, text: &str) -> Result<Vec<Token>, AnalysisError> {
    let (text, mut filters) = (
        before
            .char_filters
            .iter()
            .fold(text.to_owned(), |text, (_, filter)| filter.filter(&text, &|| false).text),
        Vec::new(),
    );
    for (name, filter) in &before.filters {
        match filter.in_rules() {
            InRules::Applies => filters.push(filter),
            InRules::Skipped => {}
            InRules::Refused => {
                return Err(AnalysisError::illegal(format!(
                    "Token filter [{name}] cannot be used to parse synonyms"
                )));
            }
        }
    }
    let mut tokens: Tokens<'_> = before.tokenizer.1.tokens(&text);
    for filter in filters {
        tokens = filter.apply(tokens);
    }
    Ok(tokens.collect())
}
