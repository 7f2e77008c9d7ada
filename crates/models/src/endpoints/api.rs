//! Requests that create, show, update and delete inference endpoints.

use std::sync::Arc;

use serde_json::{Value, json};

use super::endpoint::{Endpoint, TaskType};
use super::problems::status;
use super::settings;
use crate::id::is_valid_id;
use crate::service::ModelService;
use sparrow_mapping::SemanticText;
use sparrow_query::VectorKind;
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<ModelService>] = &[
    Operation::new("get_inference", Action::GetInference, Lane::Look, get_endpoint)
        .about("Inference endpoints.")
        .short(),
    Operation::new("update_inference", Action::UpdateInference, Lane::Write, update_endpoint)
        .about("Changes an inference endpoint.")
        .holds("UpdateInferenceRequest", settings::update_shape),
];

/// What operations on endpoints need to know of the indices of the node.
pub trait SemanticIndices {
    /// Names of the indices that have a `semantic_text` field for which `condition` holds.
    fn with_field(&self, condition: &dyn Fn(&SemanticText) -> bool) -> Vec<String>;
}

/// `PUT /_inference[/{task_type}]/{inference_id}`
pub fn put_endpoint(
    service: &ModelService,
    indices: &dyn SemanticIndices,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("inference_id");
    request.params().duration("timeout")?;
    let models = &service.models;
    let _changes = models.endpoints.lock();
    if let Some(existing) = models.endpoints.get(id) {
        if existing.preconfigured {
            return Err(status(
                400,
                format!(
                    "[{id}] is a reserved inference ID. Cannot create a new inference endpoint with a reserved ID."
                ),
            ));
        }
        return Err(already_exists(id));
    }
    if !is_valid_id(id) {
        return Err(EngineError::invalid(format!(
            "Invalid inference_id; '{id}' can contain lowercase alphanumeric (a-z and 0-9), hyphens or underscores; \
             must start and end with alphanumeric"
        )));
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(EngineError::parse("request body is required"));
    }
    let endpoint = settings::endpoint(models, id, request.part("task_type"), parse_object(body)?)?;
    if models.resolve(id).is_some() {
        return Err(status(
            400,
            format!(
                "Inference endpoint IDs must be unique. Requested inference endpoint ID [{id}] matches existing \
                 trained model ID(s) but must not."
            ),
        ));
    }
    let incompatible =
        Users::new(incompatible_indices(indices, &endpoint), |name| request.caller.knows(name));
    if !incompatible.is_empty() {
        return Err(status(
            400,
            format!(
                "Inference endpoint [{id}] could not be created because the inference_id is being used in mappings with \
                 incompatible settings for indices: [{}]. Please either use a different inference_id or update the index \
                 mappings to refer to a different inference_id.",
                incompatible.list()
            ),
        ));
    }
    let shown = endpoint.to_json();
    let own_deployment = endpoint.owns_deployment();
    // Stored first: after a crash before its deployment runs, the next start of the server starts it.
    models.endpoints.put(endpoint.clone())?;
    if own_deployment && let Err(error) = models.start_endpoint(&endpoint) {
        models.endpoints.remove(id)?;
        return Err(error);
    }
    Ok(Reply::ok(&shown))
}

/// `GET /_inference[/{task_type}][/{inference_id}|/_all]`
fn get_endpoint(
    service: &ModelService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let endpoints = &service.models.endpoints;
    let (id, task) = (request.part("inference_id"), request.part("task_type"));
    // `/_inference/{x}` is an endpoint's id, or the type of a task that has none after it.
    if id.is_empty() || id == "_all" || id == "*" {
        // Types that no endpoint can have here are no mistake to ask for.
        let wanted = match settings::task_type(task) {
            Ok(wanted) => Some(wanted),
            Err(error) if error.reason().starts_with("Unknown") => return Err(error),
            Err(_) => None,
        };
        let shown: Vec<Value> = endpoints
            .all()
            .iter()
            .filter(|endpoint| {
                wanted.is_some_and(|wanted| wanted.is_none_or(|task| task == endpoint.task_type))
            })
            .map(|endpoint| endpoint.to_json())
            .chain(endpoints.unusable().into_values().map(|kept| kept.definition))
            .collect();
        return Ok(Reply::ok(&json!({"endpoints": shown})));
    }
    if let Some(kept) = endpoints.unusable().remove(id) {
        return Ok(Reply::ok(&json!({"endpoints": [kept.definition]})));
    }
    let endpoint = existing(service, id)?;
    match_task(task, endpoint.task_type)?;
    Ok(Reply::ok(&json!({"endpoints": [endpoint.to_json()]})))
}

/// `DELETE /_inference[/{task_type}]/{inference_id}`
pub fn delete_endpoint(
    service: &ModelService,
    indices: &dyn SemanticIndices,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("inference_id");
    let dry_run = request.params().bool("dry_run", false)?;
    let force = request.params().bool("force", false)?;
    let _changes = service.models.endpoints.lock();
    if service.models.endpoints.unusable().contains_key(id) {
        if !dry_run {
            service.models.endpoints.remove(id)?;
            service.models.stop_deployment(id);
        }
        return Ok(Reply::ok(
            &json!({"acknowledged": !dry_run, "pipelines": [], "indexes": [], "error_message": ""}),
        ));
    }
    let endpoint = existing(service, id)?;
    match_task(request.part("task_type"), endpoint.task_type)?;
    let caller = &request.caller;
    let pipelines =
        Users::new(service.pipelines.using_model(&|model| model == id), |_| caller.knows_pipelines());
    let indexes = Users::new(indexes_using(indices, id), |name| caller.knows(name));
    let hybrids = hybrids_of(service, id);
    let mut problem = used_sentence(id, &pipelines, &indexes, &hybrids);
    if dry_run {
        let shown = json!({
            "acknowledged": false,
            "pipelines": pipelines.seen,
            "indexes": indexes.seen,
            "error_message": problem,
        });
        return Ok(Reply::ok(&shown));
    }
    if !force {
        if endpoint.preconfigured {
            return Err(status(
                400,
                format!(
                    "[{id}] is a reserved inference endpoint. Use the force=true query parameter to delete the \
                     inference endpoint."
                ),
            ));
        }
        if !problem.is_empty() {
            return Err(status(409, std::mem::take(&mut problem)));
        }
    }
    // Removed first: a crash in between leaves a deployment that answers nobody, and no endpoint without one.
    service.models.endpoints.remove(id)?;
    if endpoint.owns_deployment() {
        service.models.stop_deployment(id);
    }
    Ok(Reply::ok(&json!({"acknowledged": true, "pipelines": [], "indexes": [], "error_message": ""})))
}

/// `PUT /_inference[/{task_type}]/{inference_id}/_update`
fn update_endpoint(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("inference_id");
    let models = &service.models;
    let _changes = models.endpoints.lock();
    let Some(endpoint) = models.endpoints.get(id) else {
        return Err(EngineError::resource_not_found(format!(
            "The inference endpoint [{id}] does not exist and cannot be updated"
        )));
    };
    if endpoint.preconfigured {
        return Err(status(
            400,
            format!("[{id}] is a reserved inference endpoint. Cannot update a reserved inference endpoint."),
        ));
    }
    match_task(request.part("task_type"), endpoint.task_type)?;
    let changes = settings::changes(&endpoint, parse_object(body)?)?;
    let mut next = Endpoint::clone(&endpoint);
    next.rerank = endpoint.rerank.map(|settings| changes.rerank.or(settings));
    match (changes.num_allocations, changes.adaptive_allocations) {
        (None, None) => {
            let shown = next.to_json();
            if next.rerank != endpoint.rerank {
                models.endpoints.put(next)?;
            }
            return Ok(Reply::ok(&shown));
        }
        (Some(_), Some(adaptive)) if adaptive.enabled => {
            return Err(EngineError::invalid(
                "[number_of_allocations] cannot be set if adaptive allocations is enabled",
            ));
        }
        (Some(_), None) if endpoint.adaptive_allocations.is_some_and(|adaptive| adaptive.enabled) => {
            return Err(EngineError::invalid(
                "[number_of_allocations] cannot be set if adaptive allocations is enabled",
            ));
        }
        (number, adaptive) => {
            next.adaptive_allocations = adaptive.or(next.adaptive_allocations);
            let enabled = next.adaptive_allocations.is_some_and(|adaptive| adaptive.enabled);
            next.num_allocations = if enabled { None } else { number.or(next.num_allocations).or(Some(1)) };
        }
    }
    models.resize_endpoint(&next)?;
    let shown = next.to_json();
    models.endpoints.put(next)?;
    Ok(Reply::ok(&shown))
}

/// The endpoint with this id.
///
/// # Errors
/// Status 404 if no endpoint has the id, 500 if this version cannot read it.
pub(super) fn existing(service: &ModelService, id: &str) -> Result<Arc<Endpoint>, EngineError> {
    let endpoints = &service.models.endpoints;
    if let Some(kept) = endpoints.unusable().get(id) {
        return Err(super::not_loaded(id, kept));
    }
    endpoints.get(id).ok_or_else(|| service.models.no_endpoint(id))
}

fn match_task(requested: &str, actual: TaskType) -> Result<(), EngineError> {
    if settings::allows(requested, actual)? {
        return Ok(());
    }
    Err(status(
        400,
        format!(
            "Requested task type [{requested}] does not match the inference endpoint's task type [{}]",
            actual.name()
        ),
    ))
}

fn already_exists(id: &str) -> EngineError {
    EngineError::api(
        400,
        sparrow_request::error::Exception::new(
            "resource_already_exists_exception",
            format!("Inference endpoint [{id}] already exists"),
        ),
    )
}

/// Indices whose mappings name an endpoint.
fn indexes_using(indices: &dyn SemanticIndices, id: &str) -> Vec<String> {
    indices.with_field(&|field| field.inference_id == id || field.search_id() == id)
}

/// Names of the indices with vectors that an earlier endpoint of this id made and that this one cannot make: another
/// task, length or similarity.
fn incompatible_indices(indices: &dyn SemanticIndices, endpoint: &Endpoint) -> Vec<String> {
    indices.with_field(&|field| {
        field.inference_id == endpoint.inference_id
            && field.model.is_some_and(|model| {
                model.task() != endpoint.task_type.name()
                    || model.dims().is_some_and(|dims| {
                        endpoint.dimensions != Some(dims)
                            || endpoint.similarity.as_deref() != field.similarity()
                    })
            })
    })
}

/// Ids of the hybrid endpoints, created by requests, that use this endpoint.
fn hybrids_of(service: &ModelService, id: &str) -> Vec<String> {
    let of = |endpoint: &Endpoint| {
        endpoint.hybrid.as_ref().is_some_and(|parts| {
            [VectorKind::Sparse, VectorKind::Dense].iter().any(|kind| parts.of(*kind) == id)
        })
    };
    // One that is always there comes back by itself.
    let all = service.models.endpoints.all();
    let hybrids = all.iter().filter(|endpoint| !endpoint.preconfigured && of(endpoint));
    hybrids.map(|endpoint| endpoint.inference_id.clone()).collect()
}

/// What uses an endpoint. Who may delete that need not know all of it: the rest is counted.
struct Users {
    seen: Vec<String>,
    unseen: usize,
}

impl Users {
    fn new(mut names: Vec<String>, sees: impl Fn(&str) -> bool) -> Self {
        let all = names.len();
        names.retain(|name| sees(name));
        Self { unseen: all - names.len(), seen: names }
    }

    fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.unseen == 0
    }

    fn list(&self) -> String {
        let more = (self.unseen > 0).then(|| format!("{} that this API key may not see", self.unseen));
        self.seen.iter().cloned().chain(more).collect::<Vec<_>>().join(", ")
    }
}

fn used_sentence(id: &str, pipelines: &Users, indexes: &Users, hybrids: &[String]) -> String {
    let mut sentence = String::new();
    if !pipelines.is_empty() {
        sentence += &format!(
            "Inference endpoint {id} is referenced by pipelines: [{}]. Ensure that no pipelines are using this \
             inference endpoint, or use force to ignore this warning and delete the inference endpoint.",
            pipelines.list()
        );
    }
    if !indexes.is_empty() {
        sentence += &format!(
            " Inference endpoint {id} is being used in the mapping for indexes: [{}]. Ensure that no index mappings \
             are using this inference endpoint, or use force to ignore this warning and delete the inference endpoint.",
            indexes.list()
        );
    }
    if !hybrids.is_empty() {
        sentence += &format!(
            " Inference endpoint {id} encodes for the inference endpoints: [{}]. Ensure that no inference endpoints are using \
             this inference endpoint, or use force to ignore this warning and delete the inference endpoint.",
            hybrids.join(", ")
        );
    }
    sentence
}
