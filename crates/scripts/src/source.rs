//! How a request states a script.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::error::ScriptError;

/// A script as a request states it: a text, or an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScriptSource {
    /// Text of the script; empty if it is a stored one.
    pub source: Arc<str>,
    /// Id of a stored script.
    pub id: Option<String>,
    /// Constants of the script.
    pub params: Option<Arc<Map<String, Json>>>,
}

impl ScriptSource {
    /// The script, if it is stated in the request.
    ///
    /// # Errors
    /// If it is a stored one.
    pub fn inline(self) -> Result<Self, ScriptError> {
        match self.id {
            None => Ok(self),
            Some(id) => Err(ScriptError::Stored { id }),
        }
    }

    /// Reads `"…"` or `{"source": "…", "lang": "painless", "params": {…}}` or `{"id": "…", "params": {…}}`.
    ///
    /// # Errors
    /// As Elasticsearch has them, for unknown members, values of other types, other languages, and a script with neither a text
    /// nor an id, or both.
    pub fn parse(json: &Json) -> Result<Self, ScriptError> {
        let object = match json {
            Json::String(source) => return Ok(Self { source: source.as_str().into(), ..Self::default() }),
            Json::Object(object) => object,
            other => return Err(ScriptError::ValueType { field: "script", found: token(other) }),
        };
        let (mut source, mut lang, mut read) = (None, None, Self::default());
        for (name, value) in object {
            let text = |field| match value {
                Json::String(text) => Ok(Some(text.as_str())),
                other => Err(ScriptError::ValueType { field, found: token(other) }),
            };
            match name.as_str() {
                "source" => source = text("source")?,
                "id" => read.id = text("id")?.map(str::to_owned),
                "lang" => lang = text("lang")?,
                "params" => match value {
                    Json::Object(params) => read.params = Some(Arc::new(params.clone())),
                    other => return Err(ScriptError::ValueType { field: "params", found: token(other) }),
                },
                // Only templates have options, and they are ignored for Painless that has none.
                "options" if value.as_object().is_some_and(Map::is_empty) => {}
                _ => return Err(ScriptError::UnknownField { field: name.clone() }),
            }
        }
        match (source, &read.id) {
            (Some(_), Some(_)) => Err(ScriptError::Inconsistent("must specify only one of [source] or [id]")),
            (None, None) => Err(ScriptError::Inconsistent(
                "must specify either [source] for an inline script or [id] for a stored script",
            )),
            (None, Some(_)) if lang.is_some() => {
                Err(ScriptError::Inconsistent("illegally specified [lang] for a stored script"))
            }
            _ => match lang {
                None | Some("painless") => {
                    read.source = source.unwrap_or_default().into();
                    Ok(read)
                }
                Some(lang) => Err(ScriptError::Language { lang: lang.to_owned() }),
            },
        }
    }
}

fn token(value: &Json) -> &'static str {
    match value {
        Json::Null => "VALUE_NULL",
        Json::Bool(_) => "VALUE_BOOLEAN",
        Json::Number(_) => "VALUE_NUMBER",
        Json::String(_) => "VALUE_STRING",
        Json::Array(_) => "START_ARRAY",
        Json::Object(_) => "START_OBJECT",
    }
}
