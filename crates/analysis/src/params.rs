//! Parameters of one definition (`{"type": "stop", "stopwords": [...]}`), read as leniently as settings: numbers and
//! booleans may be strings. Parameters that nothing reads are errors.

use std::cell::RefCell;

use serde_json::{Map, Value};

use super::error::AnalysisError;

/// Largest allowed `max_gram`, in characters.
const MAX_GRAM: i64 = 10_000;

/// The parameters of one component, and which of them have been read.
pub(super) struct Params<'a> {
    /// Kind of the component: `analyzer`, `tokenizer`, `filter`, `char_filter` or `normalizer`.
    pub part: &'static str,
    pub name: &'a str,
    map: &'a Map<String, Value>,
    used: RefCell<Vec<&'static str>>,
}

/// A scalar as text, the form in which settings are stored; `None` for null, lists and objects.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl<'a> Params<'a> {
    pub fn new(part: &'static str, name: &'a str, map: &'a Map<String, Value>) -> Self {
        Self { part, name, map, used: RefCell::new(vec!["type"]) }
    }

    fn get(&self, key: &'static str) -> Option<&'a Value> {
        self.used.borrow_mut().push(key);
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    fn bad(&self, key: &str, value: &Value) -> AnalysisError {
        let shown = text_of(value).unwrap_or_else(|| value.to_string());
        AnalysisError::illegal(format!(
            "Failed to parse value [{shown}] for setting [index.analysis.{}.{}.{key}]",
            self.part, self.name
        ))
    }

    pub fn text(&self, key: &'static str) -> Result<Option<String>, AnalysisError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value {
            // A list of one is as good as its element.
            Value::Array(items) if items.len() == 1 => text_of(&items[0]),
            other => text_of(other),
        }
        .map(Some)
        .ok_or_else(|| self.bad(key, value))
    }

    pub fn flag(&self, key: &'static str, default: bool) -> Result<bool, AnalysisError> {
        match self.text(key)?.as_deref() {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(AnalysisError::illegal(format!(
                "Failed to parse value [{other}] as only [true] or [false] are allowed."
            ))),
        }
    }

    pub fn number(&self, key: &'static str, default: i64) -> Result<i64, AnalysisError> {
        match self.text(key)? {
            None => Ok(default),
            Some(text) => text
                .trim()
                .parse::<i32>()
                .map(i64::from)
                .map_err(|_| self.bad(key, &Value::String(text.clone()))),
        }
    }

    /// Reads a list of strings; a single string is split at commas.
    pub fn list(&self, key: &'static str) -> Result<Option<Vec<String>>, AnalysisError> {
        match self.get(key) {
            Some(Value::String(text)) => Ok(Some(
                text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            )),
            _ => self.lines(key),
        }
    }

    /// Reads a list of strings whose elements may contain commas; a single scalar counts as a list of one.
    pub fn lines(&self, key: &'static str) -> Result<Option<Vec<String>>, AnalysisError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value {
            Value::Array(items) => items
                .iter()
                .map(|item| text_of(item).ok_or_else(|| self.bad(key, value)))
                .collect::<Result<_, _>>()
                .map(Some),
            other => text_of(other).map(|text| Some(vec![text])).ok_or_else(|| self.bad(key, value)),
        }
    }

    /// Refuses parameters that Elasticsearch has but that are not implemented here.
    pub fn refuse(&self, keys: &[&'static str]) -> Result<(), AnalysisError> {
        match keys.iter().find(|key| self.has(key)) {
            Some(key) => Err(AnalysisError::illegal(format!(
                "[{key}] is not supported on {} [{}]",
                self.part, self.name
            ))),
            None => Ok(()),
        }
    }

    /// Reads the components that a definition refers to, as written: each a name or an inline definition.
    pub fn parts(&self, key: &'static str) -> Vec<&'a Value> {
        match self.get(key) {
            None => Vec::new(),
            Some(Value::Array(items)) => items.iter().collect(),
            Some(single) => vec![single],
        }
    }

    /// Reads `min_gram` and `max_gram`, 1 and 2 by default. Unless `edge`, they may differ by at most `max_diff`.
    pub fn gram_bounds(&self, edge: bool, max_diff: i64) -> Result<(usize, usize), AnalysisError> {
        let (min, max) = (self.number("min_gram", 1)?, self.number("max_gram", 2)?);
        if !edge && max.saturating_sub(min) > max_diff {
            return Err(AnalysisError::illegal(format!(
                "The difference between max_gram and min_gram in NGram Tokenizer must be less than or equal to: \
                 [{max_diff}] but was [{}]. This limit can be set by changing the [index.max_ngram_diff] index \
                 level setting.",
                max.saturating_sub(min)
            )));
        }
        if min < 1 {
            return Err(AnalysisError::illegal("minGram must be greater than zero"));
        }
        if min > max {
            return Err(AnalysisError::illegal("minGram must not be greater than maxGram"));
        }
        if max > MAX_GRAM {
            return Err(AnalysisError::illegal(format!("maxGram must not be greater than {MAX_GRAM}")));
        }
        Ok((min as usize, max as usize))
    }

    /// Refuses parameters that nothing has read.
    pub fn finish(&self) -> Result<(), AnalysisError> {
        let used = self.used.borrow();
        match self.map.keys().find(|key| !used.contains(&key.as_str())) {
            Some(key) => Err(AnalysisError::illegal(format!(
                "unknown setting [index.analysis.{}.{}.{key}] please check that any required plugins are \
                 installed, or check the breaking changes documentation for removed settings",
                self.part, self.name
            ))),
            None => Ok(()),
        }
    }
}
