//! Requests that create, upload and delete models.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use serde_json::{Map, Value};

use super::api::status;
use super::config::{self, parser_error};
use super::id::is_valid_id;
use super::registry::{Origin, RegisteredModel};
use super::store::{Contents, StoredModel};
use super::upload::{self, MOST_BYTES, MOST_PARTS};
use super::{ModelError, Models, view};
use crate::service::ModelService;
use sparrow_request::body::parse_object;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_wire::shape::{Shape, int, object, text};

pub(crate) const OPERATIONS: &[Operation<ModelService>] = &[
    Operation::new("put_trained_model", Action::PutTrainedModel, Lane::Write, put_trained_model)
        .about("Announces a model whose parts follow.")
        .holds("TrainedModelRequest", config::shape)
        .takes(&["defer_definition_decompression wait_for_completion"]),
    Operation::new("delete_trained_model", Action::DeleteTrainedModel, Lane::Write, delete_trained_model)
        .about("Deletes an uploaded model.")
        .takes(&["force timeout"]),
    Operation::new(
        "put_trained_model_definition_part",
        Action::PutTrainedModelPart,
        Lane::Write,
        put_definition_part,
    )
    .about("Uploads a part of a model.")
    .holds("DefinitionPartRequest", part_shape),
    Operation::new(
        "put_trained_model_vocabulary",
        Action::PutTrainedModelVocabulary,
        Lane::Write,
        put_vocabulary,
    )
    .about("Uploads the words of a model.")
    .holds("VocabularyRequest", upload::vocabulary_shape)
    .large(),
];

/// Most models that requests may make.
const MOST_MODELS: usize = 1000;

/// `PUT /_ml/trained_models/{model}`
fn put_trained_model(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("model");
    let models = &service.models;
    for name in ["defer_definition_decompression", "wait_for_completion"] {
        request.params().bool(name, false)?;
    }
    let body = required_object(body)?;
    let mut held = models.store.lock();
    if let Some(reply) = install(models, &mut held, id, &body)? {
        return Ok(reply);
    }
    if held.aliases.contains_key(id) {
        return Err(EngineError::illegal_argument(format!(
            "requested model_id [{id}] is the same as an existing model_alias. Model model_aliases and ids must be unique"
        )));
    }
    if models.resolve(id).is_some() {
        return Err(already_exists(id));
    }
    if models.endpoints.get(id).is_some() {
        return Err(status(
            400,
            format!(
                "Model IDs must be unique. Requested model ID [{id}] matches existing model IDs but must not."
            ),
        ));
    }
    if !is_valid_id(id) {
        return Err(EngineError::invalid(invalid_id("model_id", id)));
    }
    let given = config::parse(id, &body)?;
    if held.models.len() >= MOST_MODELS {
        return Err(EngineError::illegal_argument(format!("there are [{MOST_MODELS}] models already")));
    }
    if let Some(name) = &given.directory {
        let directory = under_folder(models.options.folder.as_deref(), name)?;
        let inspected = sparrow_encoder::Model::inspect(&directory).map_err(|error| {
            EngineError::illegal_argument(format!("the model directory [{name}] cannot be used: {error}"))
        })?;
        let made = config::task_of(inspected.kind);
        if let Some((task, _)) = given.config.task().filter(|(task, _)| *task != made) {
            return Err(EngineError::illegal_argument(format!(
                "the model directory [{name}] holds a model for [{made}], not for [{task}]"
            )));
        }
    }
    let stored = StoredModel {
        create_time: super::deployments::now_ms(),
        config: given.config,
        complete: given.directory.is_some(),
        directory: given.directory,
        definition: None,
        files: BTreeMap::new(),
    };
    if stored.directory.is_none() {
        // What a deletion that a crash interrupted has left.
        models.store.folder(id).remove()?;
    }
    let mut next = held.clone();
    next.models.insert(id.to_owned(), stored.clone());
    models.store.replace(&mut held, next)?;
    let model = Arc::new(models.store.register(id, &stored, models.options.folder.as_deref()));
    models.registry.put(Arc::clone(&model));
    Ok(Reply::ok(&view::config(&model, &[])))
}

/// Handles the short form `PUT {id} {"input": …}`, by which clients install a model that comes with the server. As the
/// model is already there, the first such request only records it as installed, and so does one after a deletion.
fn install(
    models: &Models,
    held: &mut parking_lot::MutexGuard<'_, Contents>,
    id: &str,
    body: &Map<String, Value>,
) -> Result<Option<Reply>, EngineError> {
    let mut next = held.clone();
    let model_id = match (models.registry.hidden(id), models.registry.find(id)) {
        (Some(hidden), _) => {
            next.hidden.remove(&hidden);
            hidden
        }
        (None, Some(model)) if model.origin == Origin::Embedded && config::is_built_in_form(body) => {
            if held.installed.contains(&model.id) {
                return Err(already_exists(id));
            }
            model.id.clone()
        }
        _ => return Ok(None),
    };
    if !config::is_built_in_form(body) {
        return Err(EngineError::illegal_argument(format!(
            "model [{model_id}] was deleted, and its files are still there: to have it again, send only [input]"
        )));
    }
    config::parse_input(body)?;
    next.installed.insert(model_id.clone());
    models.store.replace(held, next)?;
    models.registry.name(held.hidden.clone(), held.aliases.clone());
    let model = models.registry.find(&model_id).ok_or(ModelError::NotFound { id: model_id })?;
    Ok(Some(Reply::ok(&view::config(&model, &models.registry.given_aliases(&model.id)))))
}

fn part_shape() -> Shape {
    let members = [
        ("definition", text().about("in base64")),
        ("total_definition_length", int()),
        ("total_parts", int()),
    ];
    object(members).needs(&["definition", "total_definition_length", "total_parts"])
}

/// `PUT /_ml/trained_models/{model}/definition/{part}`
fn put_definition_part(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    const PARSER: &str = "put_trained_model_part_action";
    let id = request.part("model");
    let part = request.part("part");
    let number: i64 = part.parse().map_err(|_| {
        EngineError::illegal_argument(format!("Failed to parse int parameter [part] with value [{part}]"))
    })?;
    let body = required_object(body)?;
    if let Some(unknown) = part_shape().stranger(&body) {
        return Err(parser_error(format!("[{PARSER}] {unknown}")));
    }
    let integer = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(value) => {
            value.as_i64().ok_or_else(|| parser_error(format!("[{PARSER}] failed to parse field [{name}]")))
        }
    };
    let (length, parts) = (integer("total_definition_length")?, integer("total_parts")?);
    let Some(definition) = body.get("definition").and_then(Value::as_str) else {
        return Err(EngineError::illegal_argument("[definition] must not be null."));
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(definition).map_err(|error| {
        parser_error(format!("[{PARSER}] failed to parse field [definition]: it is not base64, {error}"))
    })?;
    let mut problems = Vec::new();
    let mut check = |holds: bool, problem: String| {
        if !holds {
            problems.push(problem);
        }
    };
    check(number >= 0, "[part] must be greater or equal to 0".into());
    check(parts > 0, "[total_parts] must be greater than 0".into());
    check(
        u64::try_from(parts).is_ok_and(|parts| parts <= MOST_PARTS) || parts <= 0,
        format!("[total_parts] must be less than or equal to {MOST_PARTS}"),
    );
    check(length > 0, "[total_definition_length] must be greater than 0".into());
    check(
        u64::try_from(length).is_ok_and(|length| length <= MOST_BYTES) || length <= 0,
        format!("[total_definition_length] must be less than or equal to {MOST_BYTES}"),
    );
    check(number < parts || parts <= 0, "[part] must be less than total_parts".into());
    check(!bytes.is_empty(), "[definition] must not be empty".into());
    if !problems.is_empty() {
        return Err(EngineError::Validation { problems });
    }
    let (Ok(number), Ok(length), Ok(parts)) =
        (u64::try_from(number), u64::try_from(length), u64::try_from(parts))
    else {
        return Err(EngineError::internal("a number was checked and is negative"));
    };

    let models = &service.models;
    let mut held = models.store.lock();
    let mut stored = uploaded(models, &held, id)?;
    if stored.complete {
        return Err(upload::already_stored(id, number));
    }
    match stored.definition {
        Some(announced) if announced != (length, parts) => {
            return Err(EngineError::illegal_argument(format!(
                "the definition of model [{id}] was announced with [total_definition_length] [{}] and [total_parts] [{}]",
                announced.0, announced.1
            )));
        }
        _ => {}
    }
    let folder = models.store.folder(id);
    folder.put_part(id, number, length, &bytes)?;
    if stored.definition.is_none() {
        stored.definition = Some((length, parts));
        let mut next = held.clone();
        next.models.insert(id.to_owned(), stored.clone());
        models.store.replace(&mut held, next)?;
    }
    complete(models, &mut held, id, &stored, Some(number))?;
    Ok(Reply::acknowledged())
}

/// `PUT /_ml/trained_models/{model}/vocabulary`
fn put_vocabulary(
    service: &ModelService,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("model");
    let body = required_object(body)?;
    let models = &service.models;
    let mut held = models.store.lock();
    let stored = uploaded(models, &held, id)?;
    let vocabulary = upload::parse_vocabulary(&stored.config, &body)?;
    let folder = models.store.folder(id);
    if folder.has_vocabulary() {
        return Err(EngineError::api(
            400,
            Exception::new(
                "resource_already_exists_exception",
                format!("Trained machine learning model vocabulary [{id}] already exists"),
            ),
        ));
    }
    folder.put_vocabulary(&vocabulary)?;
    complete(models, &mut held, id, &stored, None)?;
    Ok(Reply::acknowledged())
}

/// Creates the model if all parts of its upload have arrived. If no model can be made of them, the last part is removed
/// again.
fn complete(
    models: &Models,
    held: &mut parking_lot::MutexGuard<'_, Contents>,
    id: &str,
    stored: &StoredModel,
    part: Option<u64>,
) -> Result<(), EngineError> {
    let folder = models.store.folder(id);
    let Some((length, parts)) = stored.definition.filter(|(_, parts)| folder.is_whole(*parts)) else {
        return Ok(());
    };
    let packed = models.store.packed().file(id);
    if let Err(error) = folder.assemble(id, &stored.config, &packed, length, parts) {
        folder.take_back(part);
        return Err(error);
    }
    let done = StoredModel { complete: true, files: folder.sums(), ..stored.clone() };
    let mut next = held.clone();
    next.models.insert(id.to_owned(), done.clone());
    models.store.replace(held, next)?;
    folder.drop_parts();
    models.registry.put(Arc::new(models.store.register(id, &done, models.options.folder.as_deref())));
    Ok(())
}

/// `DELETE /_ml/trained_models/{model}`
fn delete_trained_model(
    service: &ModelService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let id = request.part("model");
    let force = request.params().bool("force", false)?;
    request.params().duration("timeout")?;
    let models = &service.models;
    let mut held = models.store.lock();
    // An alias that a request gave is no name to delete a model by.
    let model = models
        .registry
        .find(id)
        .filter(|model| model.id == id || model.aliases.contains(&id))
        .ok_or_else(|| ModelError::NotFound { id: id.to_owned() })?;
    let aliases = models.registry.given_aliases(&model.id);
    let deployed = models.deployments.of_model(&model.id);
    if !force {
        refuse_used(service, id, &model, &aliases)?;
        if !deployed.is_empty() {
            return Err(status(
                409,
                format!(
                    "Cannot delete model [{id}] as it is currently deployed; use force to delete the model"
                ),
            ));
        }
    }
    let mut next = held.clone();
    next.aliases.retain(|_, target| *target != model.id);
    let made_by_request = next.models.remove(&model.id).is_some() | next.unusable.remove(&model.id).is_some();
    if !made_by_request {
        next.hidden.insert(model.id.clone());
    }
    next.installed.remove(&model.id);
    models.store.replace(&mut held, next)?;
    if made_by_request {
        models.registry.remove(&model.id);
    }
    models.registry.name(held.hidden.clone(), held.aliases.clone());
    for running in deployed {
        models.deployments.stop(&running.settings().deployment_id);
    }
    models.deployments.forget_model(&model.id);
    models.store.packed().remove(&model.id);
    if model.origin == Origin::Uploaded {
        models.store.folder(&model.id).remove()?;
    }
    Ok(Reply::acknowledged())
}

fn refuse_used(
    service: &ModelService,
    id: &str,
    model: &RegisteredModel,
    aliases: &[String],
) -> Result<(), EngineError> {
    let used = |name: &str| !service.pipelines.using_model(&|used| used == name).is_empty();
    if used(&model.id) || used(id) {
        return Err(status(
            409,
            format!(
                "Cannot delete model [{id}] as it is still referenced by ingest processors; use force to delete the model"
            ),
        ));
    }
    let built_in = model.aliases.iter().copied();
    if let Some(alias) = aliases.iter().map(String::as_str).chain(built_in).find(|alias| used(alias)) {
        return Err(status(
            409,
            format!(
                "Cannot delete model [{id}] as it has a model_alias [{alias}] that is still referenced by ingest \
                 processors; use force to delete the model"
            ),
        ));
    }
    Ok(())
}

/// The stored form of a model whose files are uploaded.
///
/// # Errors
/// If there is no such model, or it is a model directory.
fn uploaded(models: &Models, held: &Contents, id: &str) -> Result<StoredModel, EngineError> {
    match held.models.get(id) {
        Some(stored) if stored.directory.is_none() => Ok(stored.clone()),
        None if models.registry.find(id).is_none() => Err(ModelError::NotFound { id: id.to_owned() }.into()),
        _ => Err(EngineError::illegal_argument(format!(
            "model [{id}] has its definition and vocabulary in a model directory; they cannot be uploaded"
        ))),
    }
}

/// The path of a model directory that a request names: an entry of the configured folder that does not lead out of it.
fn under_folder(folder: Option<&Path>, name: &str) -> Result<PathBuf, EngineError> {
    let refuse = |reason: String| EngineError::illegal_argument(reason);
    let Some(folder) = folder else {
        return Err(refuse(
            "[location.directory] needs a folder of model directories: start the server with [--models]"
                .into(),
        ));
    };
    let plain = !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= 255
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    if !plain {
        return Err(refuse(format!(
            "[location.directory] must be the plain name of a folder in the folder of models, but was [{name}]"
        )));
    }
    let missing =
        || EngineError::resource_not_found(format!("no model directory [{name}] in the folder of models"));
    let root = folder.canonicalize().map_err(|_| missing())?;
    // A link must not lead elsewhere.
    let directory = root.join(name).canonicalize().map_err(|_| missing())?;
    if directory.parent() != Some(root.as_path()) || !directory.is_dir() {
        return Err(missing());
    }
    Ok(directory)
}

fn required_object(body: &[u8]) -> Result<Map<String, Value>, EngineError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(EngineError::parse("request body is required"));
    }
    parse_object(body)
}

fn already_exists(id: &str) -> EngineError {
    EngineError::api(
        400,
        Exception::new(
            "resource_already_exists_exception",
            format!("Trained machine learning model [{id}] already exists"),
        ),
    )
}

fn invalid_id(name: &str, id: &str) -> String {
    if id.len() > 64 {
        return format!("Invalid {name}; '{id}' cannot contain more than 64 characters.");
    }
    format!(
        "Invalid {name}; '{id}' can contain lowercase alphanumeric (a-z and 0-9), hyphens or underscores; must start \
         and end with alphanumeric"
    )
}
