//! The operations on pipelines.

use serde_json::{Map, Value};
use sparrow_types::work;

use super::{error::ConfigError, error::PropertyProblem, processors, simulate};
use crate::Engine;
use crate::error::{EngineError, Exception};
use crate::request::{CancelFlag, Reply, Request};

/// Most documents of one simulation.
const MAX_SIMULATED: usize = 10_000;

/// `PUT /_ingest/pipeline/{pipeline}`
pub(crate) fn put_pipeline(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("pipeline");
    if id.is_empty() || id.contains(['*', ',', ' ']) {
        return Err(EngineError::illegal_argument(format!(
            "pipeline id [{id}] may not be empty or contain '*', ',' or ' '"
        )));
    }
    let definition = object(body)?;
    engine.pipelines.put(id, &definition, request.params().integer("if_version")?)?;
    Ok(Reply::acknowledged())
}

/// `GET /_ingest/pipeline[/{pipeline}]`
pub(crate) fn get_pipeline(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let mut found = engine.pipelines.definitions(request.part("pipeline"));
    if request.params().bool("summary", false)? {
        for definition in found.values_mut() {
            *definition = Value::Object(Map::new());
        }
    }
    let status = if found.is_empty() { 404 } else { 200 };
    Ok(Reply::json(status, &Value::Object(found)))
}

/// `DELETE /_ingest/pipeline/{pipeline}`
pub(crate) fn delete_pipeline(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("pipeline");
    if !engine.pipelines.delete(id)? && id != "*" {
        return Err(EngineError::resource_not_found(format!("pipeline [{id}] is missing")));
    }
    Ok(Reply::acknowledged())
}

/// `GET|POST /_ingest/pipeline[/{pipeline}]/_simulate`
pub(crate) fn simulate_pipeline(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let mut given = object(body)?;
    let verbose = request.params().bool("verbose", false)?;
    let id = request.part("pipeline");
    let pipeline = if id.is_empty() {
        let definition = match given.shift_remove("pipeline") {
            None | Some(Value::Null) => return Err(property("pipeline", PropertyProblem::Missing)),
            Some(Value::Object(definition)) => definition,
            Some(other) => {
                let found = super::document::java_type(&other);
                return Err(property("pipeline", PropertyProblem::WrongType { expected: "map", found }));
            }
        };
        std::sync::Arc::new(processors::build_pipeline("_simulate_pipeline", &definition)?)
    } else {
        engine
            .pipelines
            .get(id)
            .ok_or_else(|| EngineError::illegal_argument(format!("pipeline [{id}] does not exist")))?
    };
    let documents = match given.shift_remove("docs") {
        None | Some(Value::Null) => return Err(property("docs", PropertyProblem::Missing)),
        Some(Value::Array(documents)) => documents,
        Some(other) => {
            let found = super::document::java_type(&other);
            return Err(property("docs", PropertyProblem::WrongType { expected: "list", found }));
        }
    };
    if documents.is_empty() {
        return Err(EngineError::illegal_argument("must specify at least one document in [docs]"));
    }
    if documents.len() > MAX_SIMULATED {
        return Err(EngineError::illegal_argument(format!(
            "[docs] holds [{}] documents, at most [{MAX_SIMULATED}] can be simulated at once",
            documents.len()
        )));
    }
    if !id.is_empty() && given.contains_key("pipeline") {
        return Err(EngineError::illegal_argument(
            "[pipeline] is given in the body and in the path: leave out one of them",
        ));
    }
    if let Some(name) = given.keys().next() {
        return Err(EngineError::illegal_argument(format!(
            "unknown key [{name}] in the body of a simulation"
        )));
    }
    let documents = documents.into_iter().map(document).collect::<Result<Vec<_>, _>>()?;
    let simulated = simulate::run(&engine.pipelines, &engine.models, &pipeline, documents, verbose);
    // What came of it is what stopping made of it.
    work::check()?;
    Ok(Reply::ok(&simulated))
}

/// What a hit of a search has beside what a simulation reads: a hit can be simulated as it is.
const OF_HITS: [&str; 8] =
    ["_score", "_seq_no", "_primary_term", "_ignored", "found", "sort", "fields", "highlight"];

fn document(value: Value) -> Result<Map<String, Value>, EngineError> {
    let Value::Object(mut document) = value else {
        return Err(EngineError::illegal_argument(
            "malformed [docs] section, should include an inner object",
        ));
    };
    if document.shift_remove("_type").is_some() {
        sparrow_wire::deprecation::warn(
            "[types removal] specifying _type in pipeline simulation requests is deprecated",
        );
    }
    document.retain(|name, _| !OF_HITS.contains(&name.as_str()));
    for (name, value) in &mut document {
        match (name.as_str(), &*value) {
            ("_source", _) | ("_index" | "_id" | "_routing" | "_version_type", Value::String(_)) => {}
            ("_index" | "_id" | "_routing", Value::Number(_)) => *value = Value::String(value.to_string()),
            ("_version" | "_if_seq_no" | "_if_primary_term", Value::Number(number)) if number.is_i64() => {}
            ("_index" | "_id" | "_routing", other) => {
                let found = super::document::java_type(other);
                return Err(property(name, PropertyProblem::WrongType { expected: "string or int", found }));
            }
            ("_version_type" | "_version" | "_if_seq_no" | "_if_primary_term", other) => {
                let expected = if name == "_version_type" { "string" } else { "int or long" };
                let found = super::document::java_type(other);
                return Err(property(name, PropertyProblem::WrongType { expected, found }));
            }
            _ => {
                return Err(EngineError::illegal_argument(format!(
                    "unknown key [{name}] in a document of a simulation"
                )));
            }
        }
    }
    match document.get("_source") {
        None | Some(Value::Null) => Err(property("_source", PropertyProblem::Missing)),
        Some(Value::Object(_)) => Ok(document),
        Some(other) => {
            let found = super::document::java_type(other);
            Err(property("_source", PropertyProblem::WrongType { expected: "map", found }))
        }
    }
}

fn object(body: &[u8]) -> Result<Map<String, Value>, EngineError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(EngineError::parse("request body is required"));
    }
    match sparrow_wire::strict_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(EngineError::parse("request body must be an object")),
        Err(error) => Err(EngineError::api(
            400,
            Exception::new("parse_exception", "Failed to parse content to map").because(Exception::new(
                "x_content_parse_exception",
                format!("[{}:{}] {error}", error.line(), error.column()),
            )),
        )),
    }
}

fn property(name: &str, problem: PropertyProblem) -> EngineError {
    ConfigError::Property { kind: None, tag: None, property: name.to_owned(), problem }.into()
}
