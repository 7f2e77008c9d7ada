//! Requests that show models and deployments, stop deployments, and encode with `_infer`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::ModelError;
use super::config::{TASKS, task_of};
use super::deployments::Running;
use super::registry::RegisteredModel;
use super::{Purpose, view};
use crate::service::ModelService;
use sparrow_inference::vector_to_json;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::{Action, Caller};
use sparrow_wire::shape::{Shape, alike, any, flag, map, object, one_member, open, several, text};

pub(crate) const OPERATIONS: &[Operation<ModelService>] = &[
    Operation::new("ml_info", Action::MlInfo, Lane::Look, ml_info).about("What models may use."),
    Operation::new("get_trained_models", Action::GetTrainedModels, Lane::Look, get_trained_models)
        .about("Models.")
        .takes(&["allow_no_match from size decompress_definition exclude_generated include tags"]),
    Operation::new("stop_deployment", Action::StopDeployment, Lane::Long, stop_deployment)
        .about("Stops the deployment of a model.")
        .holds("StopDeploymentRequest", stop_shape)
        .takes(&["allow_no_match force timeout finish_pending_work"]),
    Operation::new("trained_model_stats", Action::TrainedModelStats, Lane::Look, trained_model_stats)
        .about("What models do: texts, queues, times.")
        .takes(&["allow_no_match from size"]),
    Operation::new("infer_trained_model", Action::InferTrainedModel, Lane::Infer, infer_trained_model)
        .about("Runs a model on texts.")
        .holds("InferTrainedModelRequest", infer_shape)
        .short()
        .takes(&["timeout"])
        .stops(),
];

/// Most texts of one `_infer`.
pub const MOST_TEXTS: usize = 1024;

/// Values that the parameter `include` may have; only `definition_status` has a meaning here, and it is always shown.
const INCLUDES: [&str; 5] = [
    "definition",
    "definition_status",
    "feature_importance_baseline",
    "hyperparameters",
    "total_feature_importance",
];
/// Members of a configuration that `exclude_generated` leaves out, so that the rest can be sent in a `PUT`.
const GENERATED: [&str; 8] = [
    "model_id",
    "created_by",
    "version",
    "create_time",
    "model_size_bytes",
    "estimated_operations",
    "license_level",
    "fully_defined",
];

/// `GET /_ml/info`
fn ml_info(
    service: &ModelService,
    _request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let cores = service.models.cores();
    Ok(Reply::ok(&json!({
        // Of jobs that find anomalies, which are not there.
        "defaults": {"anomaly_detectors": {}, "datafeeds": {}},
        "upgrade_mode": false,
        "native_code": {"version": env!("CARGO_PKG_VERSION"), "build_hash": "unknown"},
        "limits": {"total_ml_processors": cores, "max_single_ml_node_processors": cores},
    })))
}

/// `GET /_ml/trained_models[/{model}]`
pub fn get_trained_models(
    service: &ModelService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    params.bool("decompress_definition", true)?;
    let exclude_generated = params.bool("exclude_generated", false)?;
    let mut models = matching(service, request)?;
    let includes: Vec<&str> =
        params.get("include").unwrap_or_default().split(',').filter(|name| !name.is_empty()).collect();
    if let Some(unknown) = includes.iter().find(|name| !INCLUDES.contains(name)) {
        return Err(status(
            400,
            format!("unknown [include] parameters [{unknown}]. Valid options are [{}]", INCLUDES.join(", ")),
        ));
    }
    if includes.contains(&"definition") {
        return Err(match &models[..] {
            [model] => status(
                400,
                format!("[{}] is type [pytorch] and does not support retrieving the definition", model.id),
            ),
            _ => status(400, "Getting model definition is not supported when getting more than one model"),
        });
    }
    let tags: Vec<&str> =
        params.get("tags").unwrap_or_default().split(',').filter(|tag| !tag.is_empty()).collect();
    models.retain(|model| tags.iter().all(|tag| model.config.tags.iter().any(|other| other == tag)));
    let count = models.len();
    let registry = &service.models.registry;
    let configs: Vec<Value> = page(request, models)?
        .iter()
        .map(|model| {
            let mut shown = view::config(model, &registry.given_aliases(&model.id));
            if exclude_generated && let Value::Object(shown) = &mut shown {
                shown.retain(|name, _| !GENERATED.contains(&name.as_str()));
            }
            shown
        })
        .collect();
    Ok(Reply::ok(&json!({"count": count, "trained_model_configs": configs})))
}

/// An error with Elasticsearch's plain type.
pub(super) fn status(status: u16, reason: impl Into<String>) -> EngineError {
    EngineError::api(status, Exception::new("status_exception", reason))
}

/// `GET /_ml/trained_models[/{model}]/_stats`
pub fn trained_model_stats(
    service: &ModelService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let node = service.data.node_id();
    let mut shown = Vec::new();
    for model in matching(service, request)? {
        let pipelines = pipelines_of(service, &model).len();
        let running = service.models.deployments.of_model(&model.id);
        if running.is_empty() {
            shown.push(view::stats(&model, None, pipelines, node));
        }
        shown.extend(running.iter().map(|running| view::stats(&model, Some(running), pipelines, node)));
    }
    let count = shown.len();
    Ok(Reply::ok(&json!({"count": count, "trained_model_stats": page(request, shown)?})))
}

fn stop_shape() -> Shape {
    object(alike("allow_no_match force finish_pending_work", flag()))
}

/// `POST /_ml/trained_models/{model}/deployment/_stop`
fn stop_deployment(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let body = optional_object(body)?;
    let params = request.params();
    for (name, value) in &body {
        let problem = match name.as_str() {
            "allow_no_match" | "force" | "finish_pending_work" if value.is_boolean() => continue,
            "allow_no_match" | "force" | "finish_pending_work" => format!("{name} must be [true] or [false]"),
            _ => stop_shape().unknown(name),
        };
        return Err(EngineError::api(
            400,
            Exception::new(
                "x_content_parse_exception",
                format!("[stop_trained_model_deployment_request] {problem}"),
            ),
        ));
    }
    let force = params.bool("force", body.get("force").and_then(Value::as_bool).unwrap_or(false))?;
    let allow_no_match = params.bool("allow_no_match", true)?;
    let expression = request.part("model");
    let deployments = &service.models.deployments;
    let running = match deployments.get(expression) {
        Some(running) => vec![running],
        None => {
            let models =
                service.models.registry.matching(expression).map_err(|id| ModelError::NotFound { id })?;
            models.iter().flat_map(|model| deployments.of_model(&model.id)).collect()
        }
    };
    if running.is_empty() && !allow_no_match {
        return Err(ModelError::NotFound { id: expression.to_owned() }.into());
    }
    if !force {
        for one in &running {
            check_unused(service, one, &running, &request.caller)?;
        }
    }
    for running in &running {
        deployments.stop(&running.settings().deployment_id);
    }
    Ok(Reply::ok(&json!({"stopped": true})))
}

/// Refuses to stop a deployment that something relies on: a pipeline, or an inference endpoint.
fn check_unused(
    service: &ModelService,
    one: &Running,
    stopping: &[Arc<Running>],
    caller: &Caller,
) -> Result<(), ModelError> {
    let (id, model) = (one.settings().deployment_id, &one.model);
    let deployments = service.models.deployments.of_model(&model.id);
    // Who names the model is served by any other deployment of it that goes on.
    let is_last = deployments.iter().all(|other| stopping.iter().any(|stopped| Arc::ptr_eq(stopped, other)));
    let of_model = |name: &str| is_last && (name == model.id || model.aliases.contains(&name));
    let mut pipelines = service.pipelines.using_model(&|name| name == id || of_model(name));
    if !pipelines.is_empty() {
        if !caller.knows_pipelines() {
            pipelines = vec![format!("{} that this API key may not see", pipelines.len())];
        }
        return Err(ModelError::InUse { id, pipelines });
    }
    let mut aliases = service.models.registry.given_aliases(&model.id).into_iter();
    let used = |alias: &String| is_last && !service.pipelines.using_model(&|name| name == alias).is_empty();
    if let Some(alias) = aliases.find(used) {
        return Err(ModelError::AliasInUse { id, alias });
    }
    let endpoints = service.models.endpoints.all();
    let mut owners = endpoints.iter().filter(|endpoint| endpoint.hybrid.is_none());
    match owners.find(|endpoint| endpoint.deployment() == id) {
        Some(endpoint) => Err(ModelError::OfEndpoint {
            id,
            endpoint: endpoint.inference_id.clone(),
            how: if endpoint.deployment_id.is_none() { "was created" } else { "is used" },
        }),
        None => Ok(()),
    }
}

fn infer_shape() -> Shape {
    let kind = |task| {
        let all = object([("results_field", text()), ("tokenization", open())]);
        match task {
            "text_similarity" => all.and([("text", text().about("the question"))]).needs(&["text"]),
            _ => all,
        }
    };
    let config = one_member(TASKS.map(|task| (task, kind(task))));
    object([("docs", several(map(any()))), ("inference_config", config)]).needs(&["docs"])
}

/// `POST /_ml/trained_models/{model}/_infer`
fn infer_trained_model(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("model");
    let mut body = optional_object(body)?;
    let documents = match body.shift_remove("docs") {
        Some(Value::Array(documents)) if !documents.is_empty() => documents,
        Some(Value::Object(document)) => vec![Value::Object(document)],
        Some(Value::Array(_)) | None | Some(Value::Null) => {
            return Err(EngineError::invalid("at least one document is required "));
        }
        Some(_) => return Err(EngineError::parse("[docs] must be a list of objects")),
    };
    if documents.len() > MOST_TEXTS {
        return Err(EngineError::illegal_argument(format!(
            "[docs] holds [{}] documents, at most [{MOST_TEXTS}] are encoded at once",
            documents.len()
        )));
    }
    let asked = body.shift_remove("inference_config");
    if let Some(other) = body.keys().next() {
        let unknown = infer_shape().unknown(other);
        return Err(EngineError::illegal_argument(format!("[infer_trained_model] {unknown}")));
    }
    let model = service.models.resolve(id).ok_or_else(|| service.models.no_model(id))?;
    let (results_field, question) = results_field(&model, asked)?;
    let field = model.config.input.as_str();
    let texts = documents.iter().map(|document| text_of(document, field)).collect::<Result<Vec<_>, _>>()?;
    let timeout = request.params().duration("timeout")?.unwrap_or(Duration::from_secs(10));
    if let Some(question) = question {
        let flag = cancel.flag();
        let scored = service.models.rerank(id, &question, &texts, Some(flag.as_ref()), Some(timeout))?;
        let results: Vec<Value> = scored
            .iter()
            .map(|scored| {
                let mut result = Map::new();
                result.insert(results_field.clone(), sparrow_inference::weight_to_json(scored.score));
                if scored.truncated_tokens > 0 {
                    result.insert("is_truncated".into(), true.into());
                }
                Value::Object(result)
            })
            .collect();
        let tokens = scored.iter().map(|scored| scored.token_count).sum();
        return Ok(Reply::ok(&json!({"inference_results": results})).with_tokens(tokens));
    }
    let encoded = service.models.encode_within(
        id,
        &texts,
        Purpose::Direct,
        Some(cancel.flag().as_ref()),
        Some(timeout),
    )?;
    let results: Vec<Value> = encoded
        .iter()
        .map(|encoded| {
            let mut result = Map::new();
            result.insert(results_field.clone(), vector_to_json(&encoded.output));
            if encoded.truncated_tokens > 0 {
                result.insert("is_truncated".into(), true.into());
            }
            Value::Object(result)
        })
        .collect();
    let tokens = encoded.iter().map(|encoded| encoded.token_count).sum();
    Ok(Reply::ok(&sparrow_wire::object([("inference_results", results.into())])).with_tokens(tokens))
}

fn text_of<'a>(document: &'a Value, field: &str) -> Result<&'a str, EngineError> {
    match document.get(field) {
        Some(Value::String(text)) => Ok(text),
        None | Some(Value::Null) => {
            Err(status(400, format!("Input field [{field}] does not exist in the source document")))
        }
        Some(other) => {
            Err(status(400, format!("Input value [{other}] for field [{field}] must be a string")))
        }
    }
}

/// The options of an `_infer` request: the name of the field that vectors are returned in, from the request, the model's configuration or
/// the default, and the question that a cross-encoder is asked. Checks everything else in `inference_config`: it must fit the model, and
/// tokenization cannot be changed.
fn results_field(
    model: &RegisteredModel,
    asked: Option<Value>,
) -> Result<(String, Option<String>), EngineError> {
    const DEFAULT: &str = "predicted_value";
    let said = model.config.inference_config.as_ref().and_then(|config| config.values().next());
    let default = || said.and_then(|options| options["results_field"].as_str()).unwrap_or(DEFAULT).to_owned();
    let (kind, options) = match asked {
        None | Some(Value::Null) => return Ok((default(), None)),
        Some(Value::Object(config)) if config.len() == 1 => match config.into_iter().next() {
            Some(entry) => entry,
            None => return Ok((default(), None)),
        },
        Some(_) => {
            return Err(EngineError::illegal_argument(
                "inference_config must be an object with one inference type mapped to an object.",
            ));
        }
    };
    if !TASKS.contains(&kind.as_str()) {
        return Err(EngineError::illegal_argument(format!(
            "unrecognized inference configuration type [{kind}]. Supported types [{}]",
            TASKS.join(", ")
        )));
    }
    if let Ok(info) = model.info() {
        let made = task_of(info.kind);
        if kind != made {
            return Err(status(
                403,
                format!(
                    "Trained model [{}] is configured for task [{made}] but called with task [{kind}]",
                    model.id
                ),
            ));
        }
    }
    let Value::Object(options) = options else {
        return Err(EngineError::illegal_argument(format!("[{kind}] must be an object")));
    };
    let (mut field, mut question) = (None, None);
    for (name, value) in options {
        match (name.as_str(), value) {
            (_, Value::Null) => {}
            ("results_field", Value::String(name)) => field = Some(name),
            ("text", Value::String(text)) if kind == "text_similarity" => question = Some(text),
            ("results_field", other) => {
                return Err(EngineError::illegal_argument(format!(
                    "[results_field] must be a string, but was [{other}]"
                )));
            }
            ("tokenization", value) => {
                sparrow_ingest::check_tokenization(&value).map_err(EngineError::illegal_argument)?;
            }
            _ => {
                return Err(super::config::parser_error(format!("[{kind}] unknown field [{name}]")));
            }
        }
    }
    if kind == "text_similarity" && question.is_none() {
        return Err(super::config::parser_error("[text_similarity] Required [text]".into()));
    }
    Ok((field.unwrap_or_else(default), question))
}

fn matching(service: &ModelService, request: &Request) -> Result<Vec<Arc<RegisteredModel>>, EngineError> {
    let expression = request.part("model");
    let models = service.models.registry.matching(expression).map_err(|id| ModelError::NotFound { id })?;
    if models.is_empty() && !expression.is_empty() && !request.params().bool("allow_no_match", true)? {
        return Err(ModelError::NotFound { id: expression.to_owned() }.into());
    }
    Ok(models)
}

fn page<T>(request: &Request, items: Vec<T>) -> Result<Vec<T>, EngineError> {
    let read = |name: &str, default: i64| -> Result<usize, EngineError> {
        let number = request.params().integer(name)?.unwrap_or(default);
        usize::try_from(number)
            .map_err(|_| EngineError::illegal_argument(format!("Parameter [{name}] cannot be < 0")))
    };
    let (from, size) = (read("from", 0)?, read("size", 100)?);
    Ok(items.into_iter().skip(from).take(size).collect())
}

pub(super) fn existing(service: &ModelService, id: &str) -> Result<Arc<RegisteredModel>, ModelError> {
    service.models.resolve(id).ok_or_else(|| ModelError::NotFound { id: id.to_owned() })
}

/// The id of the model that `id` is an alias of, or `id` itself.
pub(super) fn resolve_alias(service: &ModelService, id: &str) -> String {
    service.models.registry.find(id).map_or_else(|| id.to_owned(), |model| model.id.clone())
}

fn pipelines_of(service: &ModelService, model: &RegisteredModel) -> Vec<String> {
    let deployments: Vec<String> = service
        .models
        .deployments
        .of_model(&model.id)
        .iter()
        .map(|running| running.settings().deployment_id)
        .collect();
    service.pipelines.using_model(&|id| {
        id == model.id || model.aliases.contains(&id) || deployments.iter().any(|deployment| deployment == id)
    })
}

pub(super) fn optional_object(body: &[u8]) -> Result<Map<String, Value>, EngineError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match sparrow_wire::strict_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(EngineError::parse("request body must be an object")),
        Err(error) => Err(EngineError::api(
            400,
            Exception::new(
                "x_content_parse_exception",
                format!("[{}:{}] {error}", error.line(), error.column()),
            ),
        )),
    }
}
