//! The operations on models and deployments.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::deployments::{DEFAULT_CACHE_BYTES, DEFAULT_QUEUE_CAPACITY, DeploymentSettings};
use super::error::ModelError;
use super::registry::RegisteredModel;
use super::{Purpose, view};
use crate::Engine;
use crate::error::{EngineError, Exception};
use crate::pipelines::vector_to_json;
use crate::request::{CancelFlag, Reply, Request};

/// Largest queue that can be asked for.
const MOST_QUEUE_CAPACITY: usize = 100_000;
/// Most texts of one `_infer`.
const MOST_TEXTS: usize = 1024;

/// `GET /_ml/trained_models[/{model}]`
pub(crate) fn get_trained_models(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let models = matching(engine, request)?;
    let count = models.len();
    let configs: Vec<Value> = page(request, models)?.iter().map(|model| view::config(model)).collect();
    Ok(Reply::ok(&json!({"count": count, "trained_model_configs": configs})))
}

/// `GET /_ml/trained_models[/{model}]/_stats`
pub(crate) fn trained_model_stats(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let node = engine.data.node_id();
    let mut shown = Vec::new();
    for model in matching(engine, request)? {
        let pipelines = pipelines_of(engine, &model).len();
        let running = engine.models.deployments.of_model(&model.id);
        if running.is_empty() {
            shown.push(view::stats(&model, None, pipelines, node));
        }
        shown.extend(running.iter().map(|running| view::stats(&model, Some(running), pipelines, node)));
    }
    let count = shown.len();
    Ok(Reply::ok(&json!({"count": count, "trained_model_stats": page(request, shown)?})))
}

/// `POST /_ml/trained_models/{model}/deployment/_start`
pub(crate) fn start_deployment(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let model = existing(engine, request.part("model"))?;
    model.info()?;
    let params = request.params();
    let body = optional_object(body)?;
    let mut problems = Vec::new();
    let mut positive = |name: &str, default: usize| -> Result<usize, EngineError> {
        let given = match body.get(name) {
            Some(value) => value.as_i64().or(Some(0)),
            None => params.integer(name)?,
        };
        Ok(match given {
            None => default,
            Some(number) => usize::try_from(number).ok().filter(|number| *number > 0).unwrap_or_else(|| {
                problems.push(format!("[{name}] must be a positive integer"));
                1
            }),
        })
    };
    let mut allocations = positive("number_of_allocations", 1)?;
    let threads = positive("threads_per_allocation", 1)?;
    let queue_capacity = positive("queue_capacity", DEFAULT_QUEUE_CAPACITY)?;
    if !threads.is_power_of_two() || threads > 32 {
        problems.push("[threads_per_allocation] must be a power of 2 less than or equal to 32".into());
    }
    if queue_capacity > MOST_QUEUE_CAPACITY {
        problems.push(format!("[queue_capacity] must be less than or equal to {MOST_QUEUE_CAPACITY}"));
    }
    if let Some(adaptive) = body.get("adaptive_allocations").and_then(Value::as_object)
        && adaptive.get("enabled").and_then(Value::as_bool) == Some(true)
    {
        if params.get("number_of_allocations").is_some() {
            problems.push("[number_of_allocations] cannot be set if adaptive allocations is enabled".into());
        }
        // Allocations do not come and go here: what may run at most runs always, within the machine.
        let most = adaptive.get("max_number_of_allocations").and_then(Value::as_u64).unwrap_or(u64::MAX);
        allocations = usize::try_from(most).unwrap_or(usize::MAX).clamp(1, engine.models.cores());
    }
    let priority = params.get("priority").unwrap_or("normal").to_ascii_lowercase();
    match priority.as_str() {
        "normal" => {}
        "low" => {
            for (name, value) in [("number_of_allocations", allocations), ("threads_per_allocation", threads)]
            {
                if value != 1 {
                    problems.push(format!("[{name}] must be 1 when [priority] is low"));
                }
            }
        }
        other => {
            return Err(EngineError::illegal_argument(format!(
                "No enum constant org.elasticsearch.xpack.core.ml.inference.assignment.Priority.{}",
                other.to_ascii_uppercase()
            )));
        }
    }
    if let Some(wait_for) = params.get("wait_for")
        && !["started", "starting", "fully_allocated"].contains(&wait_for)
    {
        return Err(EngineError::illegal_argument(format!(
            "unknown value [{wait_for}] for [wait_for], must be one of [started, starting, fully_allocated]"
        )));
    }
    params.duration("timeout")?;
    if !problems.is_empty() {
        return Err(EngineError::Validation { problems });
    }
    let deployment_id =
        params.get("deployment_id").map_or_else(|| model.id.clone(), |id| resolve_alias(engine, id));
    // What started by itself was sized for the machine: a request that names no number keeps that.
    let given = params.get("number_of_allocations").is_some() || body.contains_key("number_of_allocations");
    if !given
        && priority == "normal"
        && let Some(settings) =
            engine.models.deployments.get(&deployment_id).map(|running| running.settings())
        && settings.automatic
    {
        allocations = settings.number_of_allocations.max(allocations);
    }
    check_capacity(engine, allocations.saturating_mul(threads))?;
    let cache_bytes = match params.get("cache_size") {
        None => DEFAULT_CACHE_BYTES,
        Some(size) => parse_bytes(size)?,
    };
    let running = engine.models.deployments.start(
        &model,
        DeploymentSettings {
            deployment_id,
            model_id: model.id.clone(),
            number_of_allocations: allocations,
            threads_per_allocation: threads,
            queue_capacity,
            cache_bytes,
            priority,
            automatic: false,
        },
    )?;
    Ok(Reply::ok(&view::assignment(&running, engine.data.node_id())))
}

/// `POST /_ml/trained_models/{model}/deployment/_update`
pub(crate) fn update_deployment(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("model");
    let body = optional_object(body)?;
    if let Some(unknown) =
        body.keys().find(|name| !["number_of_allocations", "adaptive_allocations"].contains(&name.as_str()))
    {
        return Err(EngineError::illegal_argument(format!(
            "[update_trained_model_deployment_request] unknown field [{unknown}]"
        )));
    }
    let given = match body.get("number_of_allocations") {
        Some(value) => value.as_i64().or(Some(0)),
        None => request.params().integer("number_of_allocations")?,
    };
    let Some(running) = engine.models.deployments.find(id, &engine.models.registry) else {
        existing(engine, id)?;
        return Err(EngineError::resource_not_found(format!(
            "deployment for model with id [{id}] not found"
        )));
    };
    let settings = running.settings();
    let allocations = match given {
        None => settings.number_of_allocations,
        Some(number) => usize::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(|| EngineError::invalid("[number_of_allocations] must be a positive integer"))?,
    };
    if settings.priority == "low" && allocations != 1 {
        return Err(EngineError::invalid("[number_of_allocations] must be 1 when [priority] is low"));
    }
    check_capacity(engine, allocations.saturating_mul(settings.threads_per_allocation))?;
    match engine.models.deployments.update(&settings.deployment_id, allocations)? {
        Some(running) => Ok(Reply::ok(&view::assignment(&running, engine.data.node_id()))),
        None => {
            Err(EngineError::resource_not_found(format!("deployment for model with id [{id}] not found")))
        }
    }
}

/// `POST /_ml/trained_models/{model}/deployment/_stop`
pub(crate) fn stop_deployment(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let body = optional_object(body)?;
    let params = request.params();
    let force = params.bool("force", body.get("force").and_then(Value::as_bool).unwrap_or(false))?;
    let allow_no_match = params.bool("allow_no_match", true)?;
    let expression = request.part("model");
    let deployments = &engine.models.deployments;
    let running = match deployments.get(expression) {
        Some(running) => vec![running],
        None => {
            let models =
                engine.models.registry.matching(expression).map_err(|id| ModelError::NotFound { id })?;
            models.iter().flat_map(|model| deployments.of_model(&model.id)).collect()
        }
    };
    if running.is_empty() && !allow_no_match {
        return Err(ModelError::NotFound { id: expression.to_owned() }.into());
    }
    for running in &running {
        let id = running.settings().deployment_id;
        let pipelines = pipelines_of(engine, &running.model);
        // Another deployment of the model goes on serving its pipelines.
        if !force && !pipelines.is_empty() && deployments.of_model(&running.model.id).len() == 1 {
            return Err(ModelError::InUse { id, pipelines }.into());
        }
    }
    for running in &running {
        deployments.stop(&running.settings().deployment_id);
    }
    Ok(Reply::ok(&json!({"stopped": true})))
}

/// `POST /_ml/trained_models/{model}/_infer`
pub(crate) fn infer_trained_model(
    engine: &Engine,
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
    let results_field = results_field(&mut body)?;
    if let Some(unknown) = body.keys().next() {
        return Err(EngineError::illegal_argument(format!(
            "[infer_trained_model] unknown field [{unknown}]"
        )));
    }
    let texts = documents.iter().map(text_of).collect::<Result<Vec<_>, _>>()?;
    let timeout = request.params().duration("timeout")?.unwrap_or(Duration::from_secs(10));
    let encoded = engine.models.encode_within(
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
    Ok(Reply::ok(&json!({"inference_results": results})))
}

fn text_of(document: &Value) -> Result<&str, EngineError> {
    const FIELD: &str = "text_field";
    let status = |reason: String| EngineError::api(400, Exception::new("status_exception", reason));
    match document.get(FIELD) {
        Some(Value::String(text)) => Ok(text),
        None | Some(Value::Null) => {
            Err(status(format!("Input field [{FIELD}] does not exist in the source document")))
        }
        Some(other) => Err(status(format!("Input value [{other}] for field [{FIELD}] must be a string"))),
    }
}

fn results_field(body: &mut Map<String, Value>) -> Result<String, EngineError> {
    const DEFAULT: &str = "predicted_value";
    let config = match body.shift_remove("inference_config") {
        None | Some(Value::Null) => return Ok(DEFAULT.to_owned()),
        Some(Value::Object(config)) if config.len() == 1 => config,
        Some(_) => {
            return Err(EngineError::illegal_argument(
                "inference_config must be an object with one inference type mapped to an object.",
            ));
        }
    };
    for (kind, options) in config {
        if kind != "text_expansion" && kind != "text_embedding" {
            return Err(EngineError::illegal_argument(format!(
                "unrecognized inference configuration type [{kind}]. Supported types [text_expansion, text_embedding]"
            )));
        }
        if let Some(name) = options.get("results_field").and_then(Value::as_str) {
            return Ok(name.to_owned());
        }
    }
    Ok(DEFAULT.to_owned())
}

fn matching(engine: &Engine, request: &Request) -> Result<Vec<Arc<RegisteredModel>>, EngineError> {
    let expression = request.part("model");
    let models = engine.models.registry.matching(expression).map_err(|id| ModelError::NotFound { id })?;
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

fn existing(engine: &Engine, id: &str) -> Result<Arc<RegisteredModel>, ModelError> {
    engine.models.resolve(id).ok_or_else(|| ModelError::NotFound { id: id.to_owned() })
}

/// An alias of a model as a deployment id means the model's own id.
fn resolve_alias(engine: &Engine, id: &str) -> String {
    engine.models.registry.find(id).map_or_else(|| id.to_owned(), |model| model.id.clone())
}

fn pipelines_of(engine: &Engine, model: &RegisteredModel) -> Vec<String> {
    let deployments: Vec<String> = engine
        .models
        .deployments
        .of_model(&model.id)
        .iter()
        .map(|running| running.settings().deployment_id)
        .collect();
    engine.pipelines.using_model(&|id| {
        id == model.id || model.aliases.contains(&id) || deployments.iter().any(|deployment| deployment == id)
    })
}

/// Refuses what the machine cannot run: four threads for each core leave room for trying things out.
fn check_capacity(engine: &Engine, threads: usize) -> Result<(), EngineError> {
    let room = engine.models.cores().max(4) * 4;
    if threads <= room {
        return Ok(());
    }
    Err(EngineError::api(
        429,
        Exception::new(
            "status_exception",
            "Could not start deployment because no ML nodes with sufficient capacity were found",
        )
        .because(Exception::new(
            "illegal_state_exception",
            format!("[{threads}] threads were asked for, at most [{room}] can run on this machine"),
        )),
    ))
}

fn optional_object(body: &[u8]) -> Result<Map<String, Value>, EngineError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(body) {
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

/// `100b`, `16mb`, `1gb`; a bare `0` is fine too.
fn parse_bytes(text: &str) -> Result<usize, EngineError> {
    const UNITS: [(&str, usize); 9] = [
        ("kb", 1 << 10),
        ("mb", 1 << 20),
        ("gb", 1 << 30),
        ("tb", 1 << 40),
        ("k", 1 << 10),
        ("m", 1 << 20),
        ("g", 1 << 30),
        ("t", 1 << 40),
        ("b", 1),
    ];
    let lower = text.trim().to_ascii_lowercase();
    if lower == "0" {
        return Ok(0);
    }
    UNITS
        .iter()
        .find_map(|(unit, size)| lower.strip_suffix(unit)?.trim().parse::<usize>().ok()?.checked_mul(*size))
        .ok_or_else(|| {
            EngineError::parse(format!(
                "failed to parse setting [cache_size] with value [{text}] as a size in bytes: unit is missing or \
                 unrecognized"
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("0b", Some(0)),
            ("16mb", Some(16 << 20)),
            ("2g", Some(2 << 30)),
            ("12", None),
            ("x", None),
        ] {
            assert_eq!(parse_bytes(text).ok(), bytes, "{text}");
        }
    }
}
