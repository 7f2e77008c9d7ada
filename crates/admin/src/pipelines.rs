//! Requests that store, show, delete and simulate ingest pipelines.

use serde_json::{Map, Value};
use sparrow_runtime::work;

use sparrow_catalog::Node;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::operation::parameters::TIMEOUTS;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::json::{self, WrittenNumbers};

pub(crate) const OPERATIONS: &[Operation<Node>] = &[
    Operation::new("put_pipeline", Action::PutPipeline, Lane::Write, put_pipeline)
        .about("Makes an ingest pipeline.")
        .holds("Pipeline", sparrow_ingest::definition_shape)
        .takes(&[TIMEOUTS, "if_version"]),
    Operation::new("get_pipeline", Action::GetPipeline, Lane::Look, get_pipeline)
        .about("Ingest pipelines.")
        .takes(&["master_timeout summary"]),
    Operation::new("delete_pipeline", Action::DeletePipeline, Lane::Write, delete_pipeline)
        .about("Deletes ingest pipelines.")
        .takes(&[TIMEOUTS]),
    Operation::new("simulate_pipeline", Action::SimulatePipeline, Lane::Trial, simulate_pipeline)
        .about("Shows what a pipeline makes of documents, and writes nothing.")
        .holds("SimulateRequest", sparrow_ingest::simulation_shape)
        .large()
        .takes(&["verbose"])
        .stops(),
];

/// `PUT /_ingest/pipeline/{pipeline}`
fn put_pipeline(
    node: &Node,
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
    node.pipelines.put(id, &definition, request.params().integer("if_version")?)?;
    Ok(Reply::acknowledged())
}

/// `GET /_ingest/pipeline[/{pipeline}]`
fn get_pipeline(
    node: &Node,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let mut definitions = node.pipelines.definitions(request.part("pipeline"));
    if request.params().bool("summary", false)? {
        for definition in definitions.values_mut() {
            *definition = Value::Object(Map::new());
        }
    }
    let status = if definitions.is_empty() { 404 } else { 200 };
    Ok(Reply::json(status, &Value::Object(definitions)))
}

/// `DELETE /_ingest/pipeline/{pipeline}`
fn delete_pipeline(
    node: &Node,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("pipeline");
    if !node.pipelines.delete(id)? && id != "*" {
        return Err(EngineError::resource_not_found(format!("pipeline [{id}] is missing")));
    }
    Ok(Reply::acknowledged())
}

/// `GET|POST /_ingest/pipeline[/{pipeline}]/_simulate`
fn simulate_pipeline(
    node: &Node,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let given = object(body)?;
    let verbose = request.params().bool("verbose", false)?;
    let simulated = node.pipelines.simulate(&*node.models, request.part("pipeline"), given, verbose)?;
    // What came of it is what stopping made of it.
    work::check()?;
    let Some(numbers) = WrittenNumbers::of(body) else { return Ok(Reply::ok(&simulated)) };
    let mut shown = Vec::new();
    json::write(&simulated, &[&numbers], &mut shown);
    Ok(Reply::bytes(200, shown))
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
