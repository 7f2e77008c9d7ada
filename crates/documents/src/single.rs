//! Writes of one document.

use super::action::{Action, ActionKind, Conditions};
use super::execute::{Execution, ItemResult};
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::SOURCE;
use sparrow_request::operation::{Body, Lane, Operation};
use sparrow_request::params::Params;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights;
use sparrow_search::SearchService;
use sparrow_wire::shape::{Shape, open};

/// How a whole document is written.
const WRITE: &str = "pipeline refresh routing op_type if_seq_no if_primary_term version version_type timeout \
    require_alias require_data_stream wait_for_active_shards include_source_on_error";

pub(crate) const OPERATIONS: &[Operation<SearchService>] = &[
    Operation::new("index_doc", rights::Action::Index, Lane::Write, index_doc)
        .about("Writes a document, in place of the one of its id.")
        .body(Body::Document)
        .holds("Document", document_shape)
        .takes(&[WRITE]),
    Operation::new("create_doc", rights::Action::Index, Lane::Write, create_doc)
        .about("Writes a document, unless its id is taken.")
        .body(Body::Document)
        .holds("Document", document_shape)
        .takes(&[WRITE]),
    Operation::new("delete_doc", rights::Action::Delete, Lane::Write, delete_doc)
        .about("Deletes a document.")
        .takes(&[
            "refresh routing if_seq_no if_primary_term version version_type timeout",
            "wait_for_active_shards",
        ]),
    Operation::new("update_doc", rights::Action::Update, Lane::Write, update_doc)
        .about("Changes members of a document.")
        .body(Body::Document)
        .holds("UpdateRequest", super::update::shape)
        .takes(&[
            SOURCE,
            "refresh routing if_seq_no if_primary_term retry_on_conflict timeout lang require_alias",
            "wait_for_active_shards include_source_on_error",
        ]),
];

fn document_shape() -> Shape {
    open().about("A document: any object.")
}

/// `PUT|POST /{index}/_doc[/{id}]`
fn index_doc(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let kind = match request.params().get("op_type").map(str::to_ascii_lowercase).as_deref() {
        // Without an id nothing can be there, and Elasticsearch says so too.
        None | Some("index") => ActionKind::Index,
        Some("create") => ActionKind::Create,
        Some(other) => {
            return Err(EngineError::illegal_argument(format!(
                "opType must be 'create' or 'index', found: [{other}]"
            )));
        }
    };
    write(service, request, kind, body, cancel)
}

/// `PUT|POST /{index}/_create/{id}`
fn create_doc(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    write(service, request, ActionKind::Create, body, cancel)
}

/// `DELETE /{index}/_doc/{id}`
fn delete_doc(
    service: &SearchService,
    request: &Request,
    _body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    write(service, request, ActionKind::Delete, &[], cancel)
}

/// `POST /{index}/_update/{id}`
fn update_doc(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    write(service, request, ActionKind::Update, body, cancel)
}

fn write(
    service: &SearchService,
    request: &Request,
    kind: ActionKind,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    if kind != ActionKind::Delete && body.iter().all(u8::is_ascii_whitespace) {
        return Err(EngineError::parse("request body is required"));
    }
    let action = action(&params, request, kind, body)?;
    let refresh = params.refresh()?;
    let problems = action.problems();
    if !problems.is_empty() {
        return Err(EngineError::Validation { problems });
    }
    let mut execution = Execution::new(service, request, cancel);
    let result = execution.run(std::slice::from_ref(&action))?.pop();
    let Some(ItemResult { index, result, .. }) = result else {
        return Err(EngineError::internal("a write had no result"));
    };
    let success = result?;
    let forced = if success.wrote() { execution.refresh(refresh)? } else { false };
    let mut out = Vec::with_capacity(200);
    success.write(&index, forced, false, &mut out);
    let created = (success.status == 201).then(|| {
        [index.to_string(), success.id.clone()].into_iter().chain(success.routing.clone()).collect()
    });
    Ok(Reply { created, ..Reply::bytes(success.status, out) })
}

fn action<'a>(
    params: &Params<'_>,
    request: &Request,
    kind: ActionKind,
    body: &'a [u8],
) -> Result<Action<'a>, EngineError> {
    let id = request.path.get("id").filter(|id| !id.is_empty()).cloned();
    let mut action = Action::new(kind, request.part("index"), id, body);
    action.routing = params.routing();
    action.pipeline = params.get("pipeline").map(str::to_owned);
    action.require_alias = params.bool("require_alias", false)?;
    action.conditions = Conditions::from_params(params)?;
    if kind == ActionKind::Update {
        let retries = params.integer("retry_on_conflict")?.unwrap_or(0);
        action.retry_on_conflict = usize::try_from(retries).unwrap_or(0);
        action.returned_source = sparrow_search::source_of_params(*params)?;
    }
    Ok(action)
}
