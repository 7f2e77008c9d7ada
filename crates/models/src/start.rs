//! Requests that start and update deployments; each setting can be a parameter or a member of the body.

use serde_json::{Map, Value};

use super::adaptive::AdaptiveAllocations;
use super::api::{existing, optional_object, resolve_alias};
use super::deployments::{DEFAULT_CACHE_BYTES, DEFAULT_QUEUE_CAPACITY, DeploymentSettings};
use super::view;
use crate::service::ModelService;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::params::{Params, parse_duration};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::shape::{Named, Shape, int, length, object, one, text, time};
use sparrow_wire::size::split_size;

pub(crate) const OPERATIONS: &[Operation<ModelService>] = &[
    Operation::new("start_deployment", Action::StartDeployment, Lane::Long, start_deployment)
        .about("Deploys a model.")
        .holds("StartDeploymentRequest", start_shape)
        .takes(&[
            "number_of_allocations threads_per_allocation queue_capacity cache_size priority",
            "deployment_id timeout wait_for",
        ]),
    Operation::new("update_deployment", Action::UpdateDeployment, Lane::Long, update_deployment)
        .about("Changes how many texts a model reads at once.")
        .holds("UpdateDeploymentRequest", update_shape)
        .takes(&["number_of_allocations timeout"]),
];

/// Highest value of `queue_capacity`.
const MOST_QUEUE_CAPACITY: usize = 100_000;
const WAIT_FOR: [&str; 3] = ["started", "starting", "fully_allocated"];

fn start_shape() -> Shape {
    object([
        ("threads_per_allocation", int().preset(1)),
        ("queue_capacity", int().preset(DEFAULT_QUEUE_CAPACITY)),
    ])
    .and([("cache_size", length()), ("priority", one(&["normal", "low"]).preset("normal"))])
    .and([("deployment_id", text()), ("timeout", time()), ("wait_for", one(&WAIT_FOR))])
    .and(allocations())
}

fn update_shape() -> Shape {
    object(allocations())
}

fn allocations() -> [Named; 2] {
    [("number_of_allocations", int()), ("adaptive_allocations", AdaptiveAllocations::shape())]
}

/// A start request: a member of the body overrides the parameter of the same name.
struct StartRequest<'a> {
    body: Map<String, Value>,
    params: Params<'a>,
}

impl StartRequest<'_> {
    /// A setting that is a string; a number is converted to one.
    fn text(&self, name: &str) -> Result<Option<String>, EngineError> {
        match self.body.get(name) {
            None | Some(Value::Null) => Ok(self.params.get(name).map(str::to_owned)),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(wrong_type(name, other)),
        }
    }

    /// A setting that is an integer, also as a string.
    fn integer(&self, name: &str) -> Result<Option<i64>, EngineError> {
        match self.body.get(name) {
            None | Some(Value::Null) => self.params.integer(name),
            Some(value) => match value {
                Value::Number(number) => number.as_i64().map(Some).ok_or_else(|| wrong_type(name, value)),
                Value::String(text) => text.parse().map(Some).map_err(|_| wrong_type(name, value)),
                other => Err(wrong_type(name, other)),
            },
        }
    }

    /// A setting that must be a positive integer; if it is not, the message is added to `problems`.
    fn positive(&self, name: &str, problems: &mut Vec<String>) -> Result<Option<usize>, EngineError> {
        Ok(self.integer(name)?.map(|number| {
            usize::try_from(number).ok().filter(|number| *number > 0).unwrap_or_else(|| {
                problems.push(format!("[{name}] must be a positive integer"));
                1
            })
        }))
    }
}

fn wrong_type(name: &str, value: &Value) -> EngineError {
    let reason = format!("[start_trained_model_deployment_request] failed to parse field [{name}]");
    EngineError::api(
        400,
        Exception::new("x_content_parse_exception", reason)
            .because(Exception::new("illegal_argument_exception", format!("[{name}] cannot be [{value}]"))),
    )
}

/// `POST /_ml/trained_models/{model}/deployment/_start`
fn start_deployment(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let models = &service.models;
    let model = existing(service, request.part("model"))?;
    let asked = StartRequest { body: optional_object(body)?, params: request.params() };
    if let Some(unknown) = start_shape().stranger(&asked.body) {
        return Err(EngineError::api(
            400,
            Exception::new(
                "x_content_parse_exception",
                format!("[start_trained_model_deployment_request] {unknown}"),
            ),
        ));
    }
    let mut problems = Vec::new();
    let allocations = asked.positive("number_of_allocations", &mut problems)?;
    let threads = asked.positive("threads_per_allocation", &mut problems)?.unwrap_or(1);
    let queue_capacity = asked.positive("queue_capacity", &mut problems)?.unwrap_or(DEFAULT_QUEUE_CAPACITY);
    if !threads.is_power_of_two() || threads > 32 {
        problems.push("[threads_per_allocation] must be a power of 2 less than or equal to 32".into());
    }
    if queue_capacity > MOST_QUEUE_CAPACITY {
        problems.push(format!("[queue_capacity] must be less than or equal to {MOST_QUEUE_CAPACITY}"));
    }
    let adaptive = AdaptiveAllocations::from_body(&asked.body)?;
    let enabled = adaptive.filter(|adaptive| adaptive.enabled);
    if enabled.is_some() && allocations.is_some() {
        problems.push("[number_of_allocations] cannot be set if adaptive allocations is enabled".into());
    }
    let priority = asked.text("priority")?.unwrap_or_else(|| "normal".into()).to_ascii_lowercase();
    match priority.as_str() {
        "normal" => {}
        "low" => {
            for (name, value) in
                [("number_of_allocations", allocations.unwrap_or(1)), ("threads_per_allocation", threads)]
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
    if let Some(wait_for) = asked.text("wait_for")?
        && !WAIT_FOR.contains(&wait_for.as_str())
    {
        return Err(EngineError::illegal_argument(format!(
            "unknown value [{wait_for}] for [wait_for], must be one of [started, starting, fully_allocated]"
        )));
    }
    if let Some(timeout) = asked.text("timeout")? {
        parse_duration("timeout", &timeout)?;
    }
    let cache_bytes = match asked.text("cache_size")? {
        None => DEFAULT_CACHE_BYTES,
        Some(size) => parse_bytes(&size)?,
    };
    if !problems.is_empty() {
        return Err(EngineError::Validation { problems });
    }
    let deployment_id =
        asked.text("deployment_id")?.map_or_else(|| model.id.clone(), |id| resolve_alias(service, &id));
    if models.endpoints.get(&deployment_id).is_some() {
        return Err(EngineError::api(
            400,
            Exception::new(
                "status_exception",
                format!(
                    "Model IDs must be unique. Requested model ID [{deployment_id}] matches existing model IDs but must not."
                ),
            ),
        ));
    }
    model.info()?;
    let mut number = match enabled {
        Some(adaptive) => adaptive.initial(models.cores()),
        None => allocations.unwrap_or(1),
    };
    // What started by itself was sized for the machine: a request that names no number keeps that.
    if allocations.is_none()
        && enabled.is_none()
        && priority == "normal"
        && let Some(settings) = models.deployments.get(&deployment_id).map(|running| running.settings())
        && settings.automatic
    {
        number = settings.number_of_allocations.max(number);
    }
    models.check_capacity(number.saturating_mul(threads))?;
    let running = models.deployments.start(
        &model,
        DeploymentSettings {
            deployment_id,
            threads_per_allocation: threads,
            queue_capacity,
            cache_bytes,
            priority,
            adaptive_allocations: adaptive,
            ..DeploymentSettings::new(&model.id, number)
        },
    )?;
    models.watch();
    Ok(Reply::ok(&view::assignment(&running, service.data.node_id())))
}

/// `POST /_ml/trained_models/{model}/deployment/_update`
fn update_deployment(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("model");
    let models = &service.models;
    let asked = StartRequest { body: optional_object(body)?, params: request.params() };
    if let Some(unknown) = update_shape().stranger(&asked.body) {
        return Err(EngineError::illegal_argument(format!(
            "[update_trained_model_deployment_request] {unknown}"
        )));
    }
    asked.params.duration("timeout")?;
    let mut problems = Vec::new();
    let given = asked.positive("number_of_allocations", &mut problems)?;
    let adaptive = AdaptiveAllocations::from_body(&asked.body)?;
    let missing =
        || EngineError::resource_not_found(format!("deployment for model with id [{id}] not found"));
    let Some(running) = models.deployments.find(id, &models.registry) else {
        existing(service, id)?;
        return Err(missing());
    };
    let settings = running.settings();
    let owner = models.endpoints.get(&settings.deployment_id);
    if let Some(endpoint) = owner.filter(|endpoint| endpoint.owns_deployment()) {
        return Err(super::api::status(
            409,
            format!(
                "Cannot update deployment [{}] as it was created by inference endpoint [{}]. This model deployment must \
                 be updated through the inference API.",
                settings.deployment_id, endpoint.inference_id
            ),
        ));
    }
    let next = adaptive.or(settings.adaptive_allocations);
    let enabled = next.filter(|adaptive| adaptive.enabled);
    if given.is_some() && enabled.is_some() {
        problems.push("[number_of_allocations] cannot be set if adaptive allocations is enabled".into());
    }
    let allocations = match (given, enabled) {
        (Some(number), _) => number,
        (None, Some(adaptive)) if adaptive_changes(next, settings.adaptive_allocations) => {
            let (min, max) = adaptive.bounds(models.cores());
            settings.number_of_allocations.clamp(min.max(1), max)
        }
        _ => settings.number_of_allocations.max(1),
    };
    if settings.priority == "low" && allocations != 1 {
        problems.push("[number_of_allocations] must be 1 when [priority] is low".into());
    }
    if !problems.is_empty() {
        return Err(EngineError::Validation { problems });
    }
    models.check_capacity(allocations.saturating_mul(settings.threads_per_allocation))?;
    let changed = models.deployments.update(&settings.deployment_id, allocations, next)?;
    models.watch();
    match changed {
        Some(running) => Ok(Reply::ok(&view::assignment(&running, service.data.node_id()))),
        None => Err(missing()),
    }
}

fn adaptive_changes(next: Option<AdaptiveAllocations>, before: Option<AdaptiveAllocations>) -> bool {
    next != before
}

/// Parses a size in bytes such as `100b`, `16mb` or `1gb`, or `0` without a unit.
fn parse_bytes(text: &str) -> Result<usize, EngineError> {
    let lower = text.trim().to_ascii_lowercase();
    if lower == "0" {
        return Ok(0);
    }
    split_size(&lower)
        .filter(|(.., power)| *power <= 40)
        .and_then(|(number, _, power)| number.parse::<usize>().ok()?.checked_mul(1 << power))
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
