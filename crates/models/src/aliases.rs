//! Requests that set and delete aliases of models; an alias can be moved from one model to another.

use super::ModelError;
use super::api::status;
use super::id::is_valid_id;
use super::registry::RegisteredModel;
use crate::service::ModelService;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;

pub(crate) const OPERATIONS: &[Operation<ModelService>] = &[
    Operation::new("put_trained_model_alias", Action::PutTrainedModelAlias, Lane::Write, put_alias)
        .about("Gives a model another name.")
        .takes(&["reassign"]),
    Operation::new("delete_trained_model_alias", Action::DeleteTrainedModelAlias, Lane::Write, delete_alias)
        .about("Takes another name of a model away."),
];

/// Most aliases.
const MOST_ALIASES: usize = 10_000;

/// `PUT /_ml/trained_models/{model}/model_aliases/{alias}`
fn put_alias(
    service: &ModelService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let (id, alias) = (request.part("model"), request.part("model_alias"));
    let reassign = request.params().bool("reassign", false)?;
    let mut problems = Vec::new();
    if alias == id {
        problems.push(format!("model_alias [{alias}] cannot equal model_id [{id}]"));
    }
    let ends_in_letter = alias.ends_with(|c: char| c.is_ascii_lowercase());
    if !(is_valid_id(alias) && ends_in_letter) {
        problems.push(format!(
            "Invalid model_alias; '{alias}' can contain lowercase alphanumeric (a-z and 0-9), hyphens or underscores; \
             must start with alphanumeric and cannot end with numbers"
        ));
    }
    if !problems.is_empty() {
        return Err(EngineError::Validation { problems });
    }
    let models = &service.models;
    let mut held = models.store.lock();
    let old = held.aliases.get(alias).cloned();
    if let Some(old) = old.as_ref().filter(|_| !reassign) {
        return Err(status(
            400,
            format!(
                "cannot assign model_alias [{alias}] to model_id [{id}] as model_alias already refers to [{old}]. Set \
                 parameter [reassign] to [true] if model_alias should be reassigned."
            ),
        ));
    }
    if old.is_none() && (models.resolve(alias).is_some() || models.endpoints.get(alias).is_some()) {
        return Err(status(400, "model_alias cannot be the same as an existing trained model_id"));
    }
    let model = models.registry.find(id).ok_or_else(|| ModelError::NotFound { id: id.to_owned() })?;
    if let Some(old) = old.as_ref().and_then(|old| models.registry.find(old)) {
        let task = |model: &RegisteredModel| model.info().ok().map(|info| super::config::task_of(info.kind));
        if let (Some(new_task), Some(old_task)) = (task(&model), task(&old))
            && new_task != old_task
        {
            return Err(status(
                400,
                format!(
                    "cannot reassign model_alias [{alias}] to model [{}] with inference config type [{new_task}] from \
                     model [{}] with type [{old_task}]",
                    model.id, old.id
                ),
            ));
        }
        if !models.deployments.of_model(&old.id).is_empty()
            && models.deployments.of_model(&model.id).is_empty()
        {
            return Err(status(
                400,
                format!(
                    "cannot reassign model_alias [{alias}] to model [{}] from model [{}] as it is not yet deployed",
                    model.id, old.id
                ),
            ));
        }
    }
    if held.aliases.len() >= MOST_ALIASES {
        return Err(EngineError::illegal_argument(format!("there are [{MOST_ALIASES}] aliases already")));
    }
    let mut next = held.clone();
    next.aliases.insert(alias.to_owned(), model.id.clone());
    models.store.replace(&mut held, next)?;
    models.registry.name(held.hidden.clone(), held.aliases.clone());
    Ok(Reply::acknowledged())
}

/// `DELETE /_ml/trained_models/{model}/model_aliases/{alias}`
fn delete_alias(
    service: &ModelService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let (id, alias) = (request.part("model"), request.part("model_alias"));
    let models = &service.models;
    let mut held = models.store.lock();
    let Some(target) = held.aliases.get(alias) else {
        return Err(status(404, format!("model_alias [{alias}] could not be found.")));
    };
    if target != id {
        return Err(status(409, format!("model_alias [{alias}] does not refer to provided model_id [{id}]")));
    }
    if !service.pipelines.using_model(&|used| used == alias).is_empty() {
        return Err(status(
            409,
            format!("Cannot delete model_alias [{alias}] as it is still referenced by ingest processors"),
        ));
    }
    let mut next = held.clone();
    next.aliases.remove(alias);
    models.store.replace(&mut held, next)?;
    models.registry.name(held.hidden.clone(), held.aliases.clone());
    Ok(Reply::acknowledged())
}
