//! Parses and checks the bodies of `PUT _inference` and `_update`: service, task and settings.

use std::sync::Arc;

use serde_json::{Map, Value};
use sparrow_mapping::{Chunking, ChunkingError, HYBRID_TASK};

use super::endpoint::{Endpoint, RerankSettings, TaskType, are_threads, shown};
use super::problems::{Problems, java_map, status};
use crate::{AdaptiveAllocations, ModelError, Models, RegisteredModel};
use sparrow_request::error::{EngineError, Exception};
use sparrow_wire::shape::{Named, Shape, alike, int, named, object, one, text};
use sparrow_wire::suggest::there_are;

const SCOPE: &str = "service_settings";
/// Services that this server has.
const SERVICES: [&str; 2] = ["elasticsearch", "elser"];
const SIMILARITIES: [&str; 3] = ["cosine", "dot_product", "l2_norm"];
/// Tasks of Elasticsearch that this server does not have.
const FOREIGN_TASKS: [&str; 3] = ["completion", "chat_completion", "embedding"];
/// Models of the old `elser` service.
const ELSER_MODELS: [&str; 4] = [
    ".elser_model_2",
    ".elser_model_2_linux-x86_64",
    ".sparse_encoder_model_2",
    ".sparse_encoder_model_2_linux-x86_64",
];

/// What the body of a `PUT` holds.
pub fn shape() -> Shape {
    update_shape()
        .and([(SCOPE, settings_shape()), ("chunking_settings", named("ChunkingSettings"))])
        .needs(&["service", SCOPE])
}

fn settings_shape() -> Shape {
    object(alike("model_id deployment_id sparse_inference_id dense_inference_id", text()))
        .and([("num_threads", int().preset(1)), ("similarity", one(&SIMILARITIES))])
        .and([("dimensions", int()), ("element_type", one(&["float"]))])
        .and(allocations())
}

/// The settings of a deployment that may be changed.
fn allocations() -> [Named; 2] {
    [("num_allocations", int()), ("adaptive_allocations", AdaptiveAllocations::shape())]
}

/// What the body of an `_update` holds.
pub(super) fn update_shape() -> Shape {
    let tasks =
        [TaskType::SparseEmbedding, TaskType::TextEmbedding, TaskType::HybridEmbedding, TaskType::Rerank];
    object([("service", one(&SERVICES)), ("task_type", one(&tasks.map(TaskType::name)))])
        .and([(SCOPE, object(allocations())), ("task_settings", object(RerankSettings::members()))])
}

/// Parses the task type in a path; `None` for `any` or nothing.
///
/// # Errors
/// Status 400, with one message for an unknown task type and another for a known one that is not supported.
pub(super) fn task_type(name: &str) -> Result<Option<TaskType>, EngineError> {
    match name.to_ascii_lowercase().as_str() {
        "" | "any" | "_any" => Ok(None),
        "sparse_embedding" => Ok(Some(TaskType::SparseEmbedding)),
        "text_embedding" => Ok(Some(TaskType::TextEmbedding)),
        HYBRID_TASK => Ok(Some(TaskType::HybridEmbedding)),
        "rerank" => Ok(Some(TaskType::Rerank)),
        known if FOREIGN_TASKS.contains(&known) => {
            Err(status(400, format!("The [elasticsearch] service does not support task type [{known}]")))
        }
        _ => Err(status(400, format!("Unknown task_type [{name}]"))),
    }
}

/// Whether the task type in a path admits an endpoint with the task `actual`: both are equal, or the path names none. An unsupported task
/// admits none.
///
/// # Errors
/// Status 400 for a type that is unknown.
pub(super) fn allows(requested: &str, actual: TaskType) -> Result<bool, EngineError> {
    match task_type(requested) {
        Ok(requested) => Ok(requested.is_none_or(|task| task == actual)),
        Err(error) if error.reason().starts_with("Unknown") => Err(error),
        Err(_) => Ok(false),
    }
}

/// Parses the body of a `PUT` into an endpoint whose model exists.
///
/// # Errors
/// Status 400 that names what is wrong; 404 for a model or deployment that is not there.
pub(super) fn endpoint(
    models: &Models,
    inference_id: &str,
    path_task: &str,
    mut body: Map<String, Value>,
) -> Result<Endpoint, EngineError> {
    let task = resolve_task(path_task, &mut body)?;
    let service = service_name(&mut body)?;
    let mut settings = match body.shift_remove(SCOPE) {
        Some(Value::Object(settings)) => settings,
        None | Some(Value::Null) => {
            return Err(status(400, format!("Map must contain key [{SCOPE}]")));
        }
        Some(other) => return Err(not_an_object(SCOPE, &other)),
    };
    let mut task_settings = optional_object(&mut body, "task_settings")?;
    let cut = optional_object(&mut body, "chunking_settings")?;
    let is_cut = !cut.is_empty();
    let chunking = chunking(&cut)?;
    refuse_rest(&body, &service)?;
    if task == Some(TaskType::HybridEmbedding) {
        refuse_rest(&task_settings, &service)?;
        return super::hybrid::endpoint(models, inference_id, service, settings, &chunking);
    }

    let mut asked = ServiceSettings::read(&settings)?;
    if let Some(deployment) = &asked.deployment_id {
        let size = models.deployment_size(deployment).ok_or_else(|| no_deployment(deployment))?;
        asked.num_allocations = Some(size.allocations);
        asked.num_threads = Some(size.threads);
        asked.adaptive_allocations = size.adaptive;
    }
    let Some(num_threads) = asked.num_threads else {
        return Err(EngineError::internal("a required setting is missing"));
    };
    settings.retain(|name, _| !ServiceSettings::OF_EVERY_TASK.contains(&name.as_str()));
    let dense: Map<String, Value> = ServiceSettings::OF_DENSE_VECTORS
        .iter()
        .filter_map(|name| settings.shift_remove_entry(*name))
        .collect();
    refuse_rest(&settings, &service)?;

    let (model_id, model) = model_of(models, &service, asked.model_id, asked.deployment_id.as_deref())?;
    let info = model.info()?;
    let task_of_model = TaskType::of(info);
    check_task(&service, task, task_of_model, &model_id)?;
    let is_dense = task_of_model == TaskType::TextEmbedding;
    if !is_dense {
        refuse_rest(&dense, &service)?;
    }
    let reranks = task_of_model == TaskType::Rerank;
    let rerank = if reranks { Some(RerankSettings::take(&mut task_settings)?) } else { None };
    refuse_rest(&task_settings, &service)?;
    if reranks && is_cut {
        refuse_rest(&Map::from_iter([("chunking_settings".to_owned(), Value::Object(cut))]), &service)?;
    }
    if let Some(dimensions) = asked.dimensions.filter(|given| info.dims != Some(*given)) {
        return Err(status(
            400,
            format!(
                "[{SCOPE}] Invalid value [{dimensions}]. [dimensions] must be [{}], the length of the vectors of model [{model_id}]",
                info.dims.unwrap_or_default()
            ),
        ));
    }
    Ok(Endpoint {
        inference_id: inference_id.to_owned(),
        task_type: task_of_model,
        service,
        model_id,
        deployment_id: asked.deployment_id,
        num_allocations: asked.num_allocations,
        num_threads,
        adaptive_allocations: asked.adaptive_allocations,
        similarity: is_dense.then(|| asked.similarity.unwrap_or_else(|| "cosine".into())),
        dimensions: info.dims,
        chunking_settings: if reranks { Map::new() } else { shown(&chunking) },
        rerank,
        hybrid: None,
        preconfigured: false,
    })
}

/// Removes the name of the service from a body and checks that this server has it.
fn service_name(body: &mut Map<String, Value>) -> Result<String, EngineError> {
    let service = match body.shift_remove("service") {
        Some(Value::String(service)) => service,
        None | Some(Value::Null) => {
            return Err(status(400, "Inference endpoint configuration is missing the [service] setting"));
        }
        Some(other) => {
            return Err(status(
                400,
                format!(
                    "field [service] is not of the expected type. The value [{other}] cannot be converted to a [String]"
                ),
            ));
        }
    };
    if !SERVICES.contains(&service.as_str()) {
        return Err(status(400, format!("Unknown service [{service}]{}", there_are(&service, &SERVICES))));
    }
    if service == "elser" {
        sparrow_wire::deprecation::warn(
            "The [elser] service is deprecated and will be removed in a future release. Use the [elasticsearch] service \
             instead, with [model_id] set to [.elser_model_2] in the [service_settings]",
        );
    }
    Ok(service)
}

/// The members of `service_settings`.
struct ServiceSettings {
    deployment_id: Option<String>,
    num_allocations: Option<usize>,
    num_threads: Option<usize>,
    adaptive_allocations: Option<AdaptiveAllocations>,
    model_id: Option<String>,
    similarity: Option<String>,
    dimensions: Option<usize>,
}

impl ServiceSettings {
    const OF_EVERY_TASK: [&str; 5] =
        ["num_allocations", "num_threads", "adaptive_allocations", "model_id", "deployment_id"];
    const OF_DENSE_VECTORS: [&str; 3] = ["similarity", "dimensions", "element_type"];

    /// Reads the members and checks each by itself and with the others.
    ///
    /// # Errors
    /// One validation error with everything that is wrong.
    fn read(settings: &Map<String, Value>) -> Result<Self, EngineError> {
        let mut problems = Problems::default();
        let deployment_id = problems.text(settings, "deployment_id", SCOPE);
        let num_allocations = problems.positive(settings, "num_allocations", SCOPE);
        let num_threads = match &deployment_id {
            // An endpoint over a deployment that runs already has that one's allocations and threads, whatever the request says.
            Some(_) => problems.positive(settings, "num_threads", SCOPE),
            None => problems.required_positive(settings, "num_threads", SCOPE),
        };
        let adaptive_allocations = adaptive(settings, &mut problems);
        let model_id = problems.text(settings, "model_id", SCOPE);
        let similarity = problems.text(settings, "similarity", SCOPE);
        if let Some(similarity) = similarity.as_ref().filter(|name| !SIMILARITIES.contains(&name.as_str())) {
            problems.add(format!(
                "[{SCOPE}] Invalid value [{similarity}] received. [similarity] must be one of [cosine, dot_product, l2_norm]"
            ));
        }
        let dimensions = problems.positive(settings, "dimensions", SCOPE);
        if let Some(element) = problems.text(settings, "element_type", SCOPE).filter(|name| name != "float") {
            problems.add(format!(
                "[{SCOPE}] Invalid value [{element}] received. [element_type] must be one of [float]"
            ));
        }
        let given = |name: &str| settings.get(name).is_some_and(|value| !value.is_null());
        if deployment_id.is_none() && !given("num_allocations") && !given("adaptive_allocations") {
            problems.add(format!(
                "[{SCOPE}] does not contain one of the required settings [num_allocations, adaptive_allocations]"
            ));
        }
        if let Some(threads) = num_threads.filter(|threads| !are_threads(*threads)) {
            problems.add(format!(
                "[{SCOPE}] Invalid value [{threads}]. [num_threads] must be a power of 2 less than or equal to 32"
            ));
        }
        if num_allocations.is_some() && adaptive_allocations.is_some_and(|adaptive| adaptive.enabled) {
            problems.add("[number_of_allocations] cannot be set if adaptive allocations is enabled".into());
        }
        problems.done()?;
        Ok(Self {
            deployment_id,
            num_allocations,
            num_threads,
            adaptive_allocations,
            model_id,
            similarity,
            dimensions,
        })
    }
}

/// The model of an endpoint, with the name that the request has for it: the one it names, or that of its deployment.
fn model_of(
    models: &Models,
    service: &str,
    model_id: Option<String>,
    deployment_id: Option<&str>,
) -> Result<(String, Arc<RegisteredModel>), EngineError> {
    let model_id = match (model_id, deployment_id) {
        (Some(model), _) => model,
        (None, Some(deployment)) => deployment_model(models, deployment)?,
        (None, None) if service == "elser" => ELSER_MODELS[0].to_owned(),
        (None, None) => {
            return Err(EngineError::illegal_argument(
                "Error parsing service settings, model_id must be provided",
            ));
        }
    };
    if service == "elser" && !ELSER_MODELS.contains(&model_id.as_str()) {
        return Err(EngineError::illegal_argument(format!(
            "Unknown ELSER model ID [{model_id}]. Valid models are [{}]",
            ELSER_MODELS.join(", ")
        )));
    }
    let model = models.resolve(&model_id).ok_or_else(|| ModelError::NotFound { id: model_id.clone() })?;
    if let Some(deployment) = deployment_id {
        let deployed = deployment_model(models, deployment)?;
        if deployed != model.id {
            return Err(status(
                400,
                format!(
                    "Deployment [{deployment}] uses model [{deployed}] which does not match the model [{model_id}] in the \
                     request."
                ),
            ));
        }
    }
    Ok((model_id, model))
}

/// Checks that the service supports the task of the request and that the model can do it.
fn check_task(
    service: &str,
    asked: Option<TaskType>,
    of_model: TaskType,
    model_id: &str,
) -> Result<(), EngineError> {
    if let ("elser", Some(task @ (TaskType::TextEmbedding | TaskType::Rerank))) = (service, asked) {
        return Err(status(400, format!("The [elser] service does not support task type [{}]", task.name())));
    }
    match asked.filter(|task| *task != of_model) {
        Some(task) => Err(status(
            400,
            format!(
                "The task type [{}] of the inference endpoint does not match model [{model_id}], which makes [{}]",
                task.name(),
                of_model.name()
            ),
        )),
        None => Ok(()),
    }
}

/// The settings that an `_update` request changes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub num_allocations: Option<usize>,
    pub adaptive_allocations: Option<AdaptiveAllocations>,
    pub rerank: RerankSettings,
}

/// Reads the body of an `_update` of an endpoint.
///
/// # Errors
/// Status 400 that names what is wrong or cannot be changed.
pub(super) fn changes(endpoint: &Endpoint, mut body: Map<String, Value>) -> Result<Changes, EngineError> {
    if body.is_empty() {
        return Err(status(400, "Request body is empty"));
    }
    if let Some(service) = body.shift_remove("service")
        && service.as_str() != Some(endpoint.service.as_str())
    {
        return Err(status(400, "Service name cannot be updated"));
    }
    if let Some(task) = body.shift_remove("task_type")
        && task.as_str() != Some(endpoint.task_type.name())
    {
        return Err(status(400, "Task type must match the task type of the existing endpoint"));
    }
    let mut settings = optional_object(&mut body, SCOPE)?;
    let mut task_settings = optional_object(&mut body, "task_settings")?;
    let rerank = match endpoint.rerank {
        Some(_) => RerankSettings::take(&mut task_settings)?,
        None => RerankSettings::default(),
    };
    if let (Some(_), Some(name)) = (&endpoint.hybrid, settings.keys().next()) {
        return Err(status(
            400,
            format!(
                "Request contained fields which cannot be updated, remove these fields and try again [{name}]"
            ),
        ));
    }
    let mut problems = Problems::default();
    let read = Changes {
        num_allocations: problems.positive(&settings, "num_allocations", SCOPE),
        adaptive_allocations: adaptive(&settings, &mut problems),
        rerank,
    };
    problems.done()?;
    settings.retain(|name, _| !["num_allocations", "adaptive_allocations"].contains(&name.as_str()));
    let foreign: Vec<&str> =
        body.keys().chain(settings.keys()).chain(task_settings.keys()).map(String::as_str).collect();
    if !foreign.is_empty() {
        return Err(status(
            400,
            format!(
                "Request contained fields which cannot be updated, remove these fields and try again [{}]",
                foreign.join(", ")
            ),
        ));
    }
    Ok(read)
}

/// The type of the task, from the path and the body, which must not disagree.
fn resolve_task(path: &str, body: &mut Map<String, Value>) -> Result<Option<TaskType>, EngineError> {
    let in_body = match body.shift_remove("task_type") {
        None | Some(Value::Null) => return task_type(path),
        Some(Value::String(name)) => name,
        Some(other) => return Err(status(400, format!("Unknown task_type [{other}]"))),
    };
    if path.is_empty() || path == in_body {
        return task_type(&in_body);
    }
    task_type(path)?;
    task_type(&in_body)?;
    Err(status(
        400,
        format!(
            "Cannot resolve conflicting task_type parameter in the request URL [{path}] and the request body [{in_body}]"
        ),
    ))
}

fn adaptive(settings: &Map<String, Value>, problems: &mut Problems) -> Option<AdaptiveAllocations> {
    match settings.get("adaptive_allocations") {
        None | Some(Value::Null) => None,
        Some(value) => AdaptiveAllocations::parse(value).map_err(|problem| problems.add(problem)).ok(),
    }
}

fn chunking(given: &Map<String, Value>) -> Result<Chunking, EngineError> {
    match Chunking::parse(given) {
        Ok(read) => Ok(read.unwrap_or_default()),
        Err(ChunkingError::Strategy(reason)) => Err(EngineError::illegal_argument(reason)),
        Err(ChunkingError::Invalid(reason)) => {
            Err(EngineError::api(400, Exception::new("validation_exception", reason)))
        }
    }
}

fn deployment_model(models: &Models, deployment: &str) -> Result<String, EngineError> {
    models.deployed_model(deployment).ok_or_else(|| no_deployment(deployment))
}

fn no_deployment(id: &str) -> EngineError {
    EngineError::resource_not_found(format!("deployment with id [{id}] not found"))
}

fn optional_object(body: &mut Map<String, Value>, name: &str) -> Result<Map<String, Value>, EngineError> {
    match body.shift_remove(name) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(other) => Err(not_an_object(name, &other)),
    }
}

fn not_an_object(name: &str, value: &Value) -> EngineError {
    status(
        400,
        format!(
            "field [{name}] is not of the expected type. The value [{value}] cannot be converted to a [Map]"
        ),
    )
}

fn refuse_rest(unread: &Map<String, Value>, service: &str) -> Result<(), EngineError> {
    if unread.is_empty() {
        return Ok(());
    }
    Err(status(
        400,
        format!("Configuration contains settings [{}] unknown to the [{service}] service", java_map(unread)),
    ))
}
