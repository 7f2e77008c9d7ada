//! Requests for term vectors, from query string parameters and body.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::action::VersionType;
use sparrow_request::error::EngineError;
use sparrow_request::params::Params;
use sparrow_runtime::work;
use sparrow_wire::glob;
use sparrow_wire::shape::{Shape, alike, int, list, map, named, object, one, open, switch, text};

/// What a request holds.
pub(super) fn shape() -> Shape {
    object(alike("_index _id routing", text()))
        .and(alike("field_statistics term_statistics offsets positions payloads", switch()))
        .and([("doc", open()), ("fields", list(text())), ("per_field_analyzer", map(text()))])
        .and([("version", int()), ("version_type", one(&VersionType::IN_BODIES)), ("filter", filter_shape())])
}

fn filter_shape() -> Shape {
    object(alike("max_num_terms min_term_freq max_term_freq min_doc_freq max_doc_freq", int()))
        .and(alike("min_word_length max_word_length", int()))
}

/// What a request for several documents holds.
pub(super) fn multi_shape() -> Shape {
    let one = || named("TermVectorsRequest");
    object([("docs", list(one())), ("ids", list(text())), ("parameters", one())])
}

/// A document whose term vectors are requested, and what to return of them.
#[derive(Debug, Clone, Default)]
pub(super) struct TermVectorsRequest {
    pub(super) index: Option<String>,
    pub(super) id: Option<String>,
    /// Routing of the document, which its index may require.
    pub(super) routing: Option<String>,
    /// A document supplied in the request instead of one in the index.
    pub(super) doc: Option<Value>,
    pub(super) version: Option<i64>,
    pub(super) realtime: bool,
    /// Names of fields, or patterns; `None` if not given.
    pub(super) fields: Option<Vec<String>>,
    pub(super) offsets: bool,
    pub(super) positions: bool,
    /// `None` if the request does not say; they are then shown wherever they can be.
    pub(super) field_statistics: Option<bool>,
    pub(super) term_statistics: bool,
    /// Analyzers instead of the fields' own.
    pub(super) analyzers: BTreeMap<String, String>,
    pub(super) filter: Option<Filter>,
}

/// Criteria for the terms that are returned.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub(super) max_num_terms: usize,
    min_term_freq: u64,
    max_term_freq: u64,
    pub(super) min_doc_freq: u64,
    pub(super) max_doc_freq: u64,
    min_word_length: u64,
    max_word_length: u64,
}

impl Filter {
    fn read(members: &Map<String, Value>) -> Result<Self, EngineError> {
        let mut filter = Self {
            max_num_terms: 25,
            min_term_freq: 1,
            max_term_freq: u64::MAX,
            min_doc_freq: 1,
            max_doc_freq: u64::MAX,
            min_word_length: 0,
            max_word_length: 0,
        };
        for (key, value) in members {
            let number = value.as_u64().ok_or_else(|| {
                EngineError::illegal_argument(format!("[{key}] must be a number that is not negative"))
            })?;
            match key.as_str() {
                "max_num_terms" => filter.max_num_terms = number.try_into().unwrap_or(usize::MAX),
                "min_term_freq" => filter.min_term_freq = number,
                "max_term_freq" => filter.max_term_freq = number,
                "min_doc_freq" => filter.min_doc_freq = number,
                "max_doc_freq" => filter.max_doc_freq = number,
                "min_word_length" => filter.min_word_length = number,
                "max_word_length" => filter.max_word_length = number,
                _ => {
                    return Err(EngineError::parse(format!(
                        "failed to parse term vectors request. the field [{key}] is not valid for term vector \
                         request filter"
                    )));
                }
            }
        }
        Ok(filter)
    }

    /// Whether the filter accepts a term that occurs `times` times in the document.
    pub(super) fn takes(&self, term: &str, times: u64) -> bool {
        let length = term.chars().count() as u64;
        times >= self.min_term_freq
            && times <= self.max_term_freq
            && length >= self.min_word_length
            && (self.max_word_length == 0 || length <= self.max_word_length)
    }
}

impl TermVectorsRequest {
    /// Reads the query string parameters.
    pub(super) fn of_params(params: &Params<'_>) -> Result<Self, EngineError> {
        params.bool("payloads", true)?;
        let fields = params.get("fields").filter(|list| !list.is_empty());
        Ok(Self {
            routing: params.routing(),
            version: params.integer("version")?,
            realtime: params.bool("realtime", true)?,
            fields: fields
                .map(|list| glob::distinct("fields", list.split(',').map(str::to_owned).collect()))
                .transpose()?,
            offsets: params.bool("offsets", true)?,
            positions: params.bool("positions", true)?,
            field_statistics: match params.get("field_statistics") {
                None => None,
                Some(_) => Some(params.bool("field_statistics", true)?),
            },
            term_statistics: params.bool("term_statistics", false)?,
            ..Self::default()
        })
    }

    /// Adds the options in an object of the body.
    pub(super) fn read(&mut self, object: &Value) -> Result<(), EngineError> {
        let Some(members) = object.as_object() else {
            return Err(EngineError::parse("failed to parse term vectors request. it must be an object"));
        };
        for (key, value) in members {
            let flag = || {
                value.as_bool().or_else(|| value.as_str()?.parse().ok()).ok_or_else(|| {
                    EngineError::illegal_argument(format!("[{key}] must be [true] or [false]"))
                })
            };
            match (key.as_str(), value) {
                ("fields", _) => self.fields = Some(glob::distinct(key, names(key, value)?)?),
                ("offsets", _) => self.offsets = flag()?,
                ("positions", _) => self.positions = flag()?,
                // There are none.
                ("payloads", _) => {
                    flag()?;
                }
                ("term_statistics", _) => self.term_statistics = flag()?,
                ("field_statistics", _) => self.field_statistics = Some(flag()?),
                ("per_field_analyzer", Value::Object(analyzers)) => {
                    for (field, analyzer) in analyzers {
                        let name = analyzer.as_str().ok_or_else(|| {
                            EngineError::parse(format!(
                                "expected the name of an analyzer for field [{field}]"
                            ))
                        })?;
                        self.analyzers.insert(field.clone(), name.to_owned());
                    }
                }
                ("filter", Value::Object(members)) => self.filter = Some(Filter::read(members)?),
                ("doc", Value::Object(_)) => self.doc = Some(value.clone()),
                ("_index", Value::String(index)) => self.index = Some(index.clone()),
                ("_id", Value::String(_) | Value::Number(_)) => self.id = Some(scalar(value)),
                ("routing", Value::String(_) | Value::Number(_)) => self.routing = Some(scalar(value)),
                ("version", Value::Number(number)) if number.is_i64() => {
                    self.version = number.as_i64();
                }
                ("version_type", Value::String(kind)) if VersionType::IN_BODIES.contains(&kind.as_str()) => {}
                (key, _) => {
                    return Err(EngineError::parse(format!(
                        "failed to parse term vectors request. {}",
                        shape().unknown(key)
                    )));
                }
            }
        }
        Ok(())
    }

    /// Adapts the request to an alias with a filter: statistics count documents that the filter hides.
    ///
    /// # Errors
    /// If the request asks for statistics, or selects terms by them.
    pub(super) fn without_statistics(&mut self, alias: &str) -> Result<(), EngineError> {
        let refused = [
            ("term_statistics", self.term_statistics),
            ("field_statistics", self.field_statistics == Some(true)),
            ("filter", self.filter.is_some()),
        ];
        if let Some((name, _)) = refused.iter().find(|(_, asked)| *asked) {
            return Err(EngineError::illegal_argument(format!(
                "[{name}] counts documents that the filter of alias [{alias}] hides: leave it out, or name the index"
            )));
        }
        self.field_statistics = Some(false);
        Ok(())
    }

    /// Checks that the request names exactly one document.
    ///
    /// # Errors
    /// If it names none, or two.
    pub(super) fn check(&self) -> Result<(), EngineError> {
        match (&self.id, &self.doc) {
            (Some(_), Some(_)) => Err(EngineError::parse(
                "failed to parse term vectors request. either [id] or [doc] can be specified, but not both!",
            )),
            (None, None) => Err(EngineError::invalid("id or doc is missing")),
            _ => Ok(()),
        }
    }
}

/// Reads the documents in the body of `_mtermvectors`.
pub(super) fn of_body(
    body: &Value,
    common: &TermVectorsRequest,
) -> Result<Vec<TermVectorsRequest>, EngineError> {
    let Some(members) = body.as_object() else {
        return Err(EngineError::parse("a request of term vectors must be an object"));
    };
    let mut template = common.clone();
    if let Some(parameters) = members.get("parameters") {
        template.read(parameters)?;
    }
    let mut wanted = Vec::new();
    for (key, value) in members {
        match (key.as_str(), value) {
            ("parameters", _) => {}
            ("ids", Value::Array(_)) => {
                for id in names(key, value)? {
                    // Each has the fields of all.
                    work::check()?;
                    wanted.push(TermVectorsRequest { id: Some(id), ..template.clone() });
                }
            }
            ("docs", Value::Array(docs)) => {
                for doc in docs {
                    work::check()?;
                    let mut asked = template.clone();
                    asked.read(doc)?;
                    wanted.push(asked);
                }
            }
            (key, _) => {
                return Err(EngineError::parse(format!(
                    "unexpected key [{key}] in the request of term vectors"
                )));
            }
        }
    }
    Ok(wanted)
}

fn scalar(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads a list of names.
fn names(key: &str, value: &Value) -> Result<Vec<String>, EngineError> {
    let items =
        value.as_array().filter(|items| items.iter().all(|item| item.is_string() || item.is_number()));
    match items {
        Some(items) => Ok(items.iter().map(scalar).collect()),
        None => Err(EngineError::parse(format!(
            "failed to parse term vectors request. field [{key}] must be an array"
        ))),
    }
}
