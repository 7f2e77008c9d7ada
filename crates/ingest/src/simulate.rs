//! `_simulate`: shows what a pipeline would do to documents, for each processor if requested.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sparrow_inference::{Purpose, TextEncoder};
use sparrow_runtime::work;
use sparrow_wire::object;
use sparrow_wire::shape::{self, Shape, any, list, named, open, scalar, text};

use super::chain::{self, Item, ModelAccess, Pipeline, Runtime, State};
use super::document::{Document, java_type};
use super::effort::RunBudget;
use super::error::{ConfigError, PropertyProblem};
use super::{IngestError, IngestSummary, Pipelines, processors, timestamp};

/// Most documents of one simulation.
const MAX_SIMULATED: usize = 10_000;

/// What a simulation holds.
pub fn shape() -> Shape {
    shape::object([("docs", list(document_shape())), ("pipeline", named("Pipeline"))]).needs(&["docs"])
}

fn document_shape() -> Shape {
    let others = ["_type", "_version", "_version_type", "_if_seq_no", "_if_primary_term"];
    shape::object([("_index", text()), ("_id", scalar()), ("_routing", text()), ("_source", open())])
        .and(others.into_iter().chain(OF_HITS).map(|name| (name, any())))
        .needs(&["_source"])
}

impl Pipelines {
    /// Shows what a pipeline would do to the documents of `body` (`docs`, and `pipeline` with a definition if `id` is empty), for each
    /// processor if `verbose`.
    ///
    /// # Errors
    /// If the body or the definition in it is malformed, or there is no such pipeline; an error of a single document is part of the
    /// response.
    pub fn simulate(
        &self,
        encoder: &dyn TextEncoder,
        id: &str,
        body: Map<String, Value>,
        verbose: bool,
    ) -> Result<Value, IngestError> {
        let mut given = body;
        let pipeline = if id.is_empty() {
            let definition = match given.shift_remove("pipeline") {
                None | Some(Value::Null) => return Err(property("pipeline", PropertyProblem::Missing)),
                Some(Value::Object(definition)) => definition,
                Some(other) => {
                    let found = java_type(&other);
                    return Err(property("pipeline", PropertyProblem::WrongType { expected: "map", found }));
                }
            };
            Arc::new(processors::build_pipeline("_simulate_pipeline", &definition)?)
        } else {
            self.get(id)
                .ok_or_else(|| IngestError::illegal_argument(format!("pipeline [{id}] does not exist")))?
        };
        let documents = match given.shift_remove("docs") {
            None | Some(Value::Null) => return Err(property("docs", PropertyProblem::Missing)),
            Some(Value::Array(documents)) => documents,
            Some(other) => {
                let found = java_type(&other);
                return Err(property("docs", PropertyProblem::WrongType { expected: "list", found }));
            }
        };
        if documents.is_empty() {
            return Err(IngestError::illegal_argument("must specify at least one document in [docs]"));
        }
        if documents.len() > MAX_SIMULATED {
            return Err(IngestError::illegal_argument(format!(
                "[docs] holds [{}] documents, at most [{MAX_SIMULATED}] can be simulated at once",
                documents.len()
            )));
        }
        if !id.is_empty() && given.contains_key("pipeline") {
            return Err(IngestError::illegal_argument(
                "[pipeline] is given in the body and in the path: leave out one of them",
            ));
        }
        if let Some(name) = given.keys().next() {
            let near = shape().near(name);
            return Err(IngestError::illegal_argument(format!(
                "unknown key [{name}] in the body of a simulation{near}"
            )));
        }
        let documents = documents.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(run(self, encoder, &pipeline, documents, verbose))
    }
}

/// Members of a search hit that are ignored, so that hits can be simulated as they are.
const OF_HITS: [&str; 8] =
    ["_score", "_seq_no", "_primary_term", "_ignored", "found", "sort", "fields", "highlight"];

fn read(value: Value) -> Result<Map<String, Value>, IngestError> {
    let Value::Object(mut document) = value else {
        return Err(IngestError::illegal_argument(
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
                let found = java_type(other);
                return Err(property(name, PropertyProblem::WrongType { expected: "string or int", found }));
            }
            ("_version_type" | "_version" | "_if_seq_no" | "_if_primary_term", other) => {
                let expected = if name == "_version_type" { "string" } else { "int or long" };
                let found = java_type(other);
                return Err(property(name, PropertyProblem::WrongType { expected, found }));
            }
            _ => {
                let near = document_shape().near(name);
                return Err(IngestError::illegal_argument(format!(
                    "unknown key [{name}] in a document of a simulation{near}"
                )));
            }
        }
    }
    match document.get("_source") {
        None | Some(Value::Null) => Err(property("_source", PropertyProblem::Missing)),
        Some(Value::Object(_)) => Ok(document),
        Some(other) => {
            let found = java_type(other);
            Err(property("_source", PropertyProblem::WrongType { expected: "map", found }))
        }
    }
}

fn property(name: &str, problem: PropertyProblem) -> IngestError {
    ConfigError::Property { kind: None, tag: None, property: name.to_owned(), problem }.into()
}

/// Runs documents (objects with `_source` and possibly `_index` and `_id`) and returns the response with their results.
pub(super) fn run(
    pipelines: &Pipelines,
    encoder: &dyn TextEncoder,
    pipeline: &Pipeline,
    documents: Vec<Map<String, Value>>,
    verbose: bool,
) -> Value {
    let now = timestamp();
    let all = pipelines.all();
    let budget = RunBudget::new(documents.len());
    let models = ModelAccess { encoder, purpose: Purpose::Direct, cancel: None };
    let runtime = Runtime { pipelines: &all, models, budget };
    let mut items: Vec<Item> =
        documents.into_iter().map(|given| Item::new(document(given, &now), verbose)).collect();
    let who: Vec<usize> = (0..items.len()).collect();
    chain::run_pipeline(&runtime, pipeline, &mut items, &who, &mut IngestSummary::default());
    let shown: Vec<Value> = items
        .into_iter()
        // The caller looks whether the request had to stop.
        .take_while(|_| work::check().is_ok())
        .map(|item| match (item.trace, item.state) {
            (Some(trace), _) => object([("processor_results", trace.into())]),
            (None, State::Live | State::Terminated) => object([("doc", item.document.to_simulated(false))]),
            (None, State::Dropped) => Value::Null,
            (None, State::Failed(failure)) => json!({"error": failure.error.to_body()}),
        })
        .collect();
    object([("docs", shown.into())])
}

fn document(mut given: Map<String, Value>, now: &str) -> Document {
    let source = match given.shift_remove("_source") {
        Some(Value::Object(source)) => source,
        _ => Map::new(),
    };
    let mut document = Document { source, ..Document::default() };
    for (name, default) in [("_index", "_index"), ("_id", "_id")] {
        let value = given.shift_remove(name).unwrap_or_else(|| Value::String(default.into()));
        document.metadata.insert(name.into(), value);
    }
    // What Elasticsearch shows for a document that was never stored.
    let version = given.shift_remove("_version").unwrap_or_else(|| Value::from(-3));
    document.metadata.insert("_version".into(), Value::String(version.to_string()));
    document.metadata.extend(given);
    document.ingest.insert("timestamp".into(), Value::String(now.to_owned()));
    document
}
