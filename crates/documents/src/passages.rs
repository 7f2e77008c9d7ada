//! `make_passages`: the passages of documents that a cluster keeps, and the updates of such documents. `stored_passages` and
//! `write_passages`: those of documents that move between a cluster and this engine, which nothing encodes again.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sparrow_catalog::semantic::over_cluster::{self, Document, companions};
use sparrow_catalog::{Source, WriteOp};
use sparrow_mapping::Mapping;
use sparrow_request::body::parse_json;
use sparrow_request::error::EngineError;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search::SearchService;

use super::update::merge;

pub(crate) const OPERATIONS: &[Operation<SearchService>] = &[
    Operation::new("make_passages", Action::Infer, Lane::Write, make_passages)
        .large()
        .about("The passages of documents whose index is kept elsewhere.")
        .json()
        .stops()
        .unlisted(),
    Operation::new("stored_passages", Action::MultiGet, Lane::Read, stored_passages)
        .about("The passages of documents as they are stored, for an index that is kept elsewhere.")
        .json()
        .unlisted(),
    Operation::new("write_passages", Action::Bulk, Lane::Write, write_passages)
        .large()
        .about("Writes documents with passages that were made before.")
        .json()
        .unlisted(),
];

#[derive(Deserialize)]
struct Asked {
    /// The mapping of the index, as far as it concerns `semantic_text`, and what of its state a mapping does not show.
    mapping: Value,
    #[serde(default)]
    state: Value,
    /// Fields that are added to the mapping before the documents are read, as in `PUT _mapping`.
    update: Option<Value>,
    /// Whether texts wait for room in the queue of a model.
    #[serde(default)]
    paced: bool,
    /// Each is read on its own, so that one that cannot be read does not refuse the others.
    documents: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Given {
    source: Map<String, Value>,
    /// The payload that is stored with `source`.
    payload: Option<String>,
    /// Changes of `source`, for an update.
    doc: Option<Map<String, Value>>,
    /// Whether an update that changes nothing is left out.
    #[serde(default)]
    detect_noop: bool,
}

/// What becomes of one document, before its passages are made.
enum Begun {
    Noop,
    /// The changed source, if there were changes.
    Made(Option<Value>),
    Refused(EngineError),
}

/// The member of a document beside which passages are kept.
const COMPANION: &str = "_sparrow";

fn make_passages(
    service: &SearchService,
    _: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked: Asked = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let mapping = Mapping::stored(&asked.mapping).and_then(|mapping| mapping.with_slots(&asked.state))?;
    let mut wider = match &asked.update {
        Some(update) => mapping.merge_update(update)?,
        None => mapping.clone(),
    };
    let mut begun = Vec::with_capacity(asked.documents.len());
    let mut documents = Vec::with_capacity(asked.documents.len());
    for given in &asked.documents {
        begun.push(begin(given, &mut documents).unwrap_or_else(Begun::Refused));
    }
    let flag = cancel.flag().as_ref();
    let mut made = companions(&service.models, &mut wider, documents, asked.paced, Some(flag)).into_iter();
    let refused = |error: &EngineError| json!({"error": error.to_json(), "status": error.status()});
    let shown: Vec<Value> = begun
        .into_iter()
        .map(|begun| match begun {
            Begun::Noop => json!({"noop": true}),
            Begun::Refused(error) => refused(&error),
            Begun::Made(source) => match made.next() {
                Some(Ok(companion)) => json!({"source": source, "companion": companion}),
                Some(Err(error)) => refused(&error),
                None => refused(&EngineError::internal("a document has no passages")),
            },
        })
        .collect();
    let mut reply = json!({"documents": shown});
    if wider != mapping {
        reply["mapping"] = wider.to_json();
        reply["state"] = wider.slots_to_json();
    }
    Ok(Reply::ok(&reply))
}

#[derive(Deserialize)]
struct Wanted {
    documents: Vec<WantedDocument>,
}

/// A document by its id; its routing is for engines that need it.
#[derive(Deserialize)]
struct WantedDocument {
    id: String,
}

fn stored_passages(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let asked: Wanted = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let handle = service.indices.get(request.part("index"), request.right())?;
    let payload = |WantedDocument { id }: &WantedDocument| {
        let stored = handle.get(id)?;
        Ok(stored.and_then(|document| document.passages).map(|passages| over_cluster::text_of(&passages)))
    };
    let payloads = asked.documents.iter().map(payload).collect::<Result<Vec<_>, EngineError>>()?;
    Ok(Reply::ok(&json!({"payloads": payloads})))
}

#[derive(Deserialize)]
struct Moved {
    documents: Vec<MovedDocument>,
}

/// A document that was stored elsewhere, with the payload of its passages.
#[derive(Deserialize)]
struct MovedDocument {
    id: String,
    routing: Option<String>,
    source: Box<RawValue>,
    payload: Option<String>,
}

fn write_passages(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let moved: Moved = serde_json::from_slice(body).map_err(|error| unreadable(&error))?;
    let handle = service.indices.write_target(request.part("index"), request.right())?;
    let mut ops = Vec::with_capacity(moved.documents.len());
    for MovedDocument { id, routing, source, payload } in moved.documents {
        let raw = source.get().as_bytes().to_vec();
        let previous = payload.as_deref().map(over_cluster::payload).transpose()?;
        let previous = previous.map(|payload| (raw.clone(), payload));
        let mut op = WriteOp::index(Some(id), Source { raw, value: None });
        op.routing = routing;
        op.previous = previous;
        ops.push(op);
    }
    let written = handle.write(ops).into_iter().map(|result| match result {
        Ok(_) => json!({"status": 200}),
        Err(error) => json!({"status": error.status(), "error": error.to_json()}),
    });
    Ok(Reply::ok(&json!({"items": written.collect::<Vec<Value>>()})))
}

fn unreadable(error: &serde_json::Error) -> EngineError {
    EngineError::illegal_argument(format!("failed to parse: {error}"))
}

/// Whether a document has the member beside which passages are kept, or a path into it, which a cluster reads as the same.
fn names_companion(document: &Map<String, Value>) -> bool {
    document.keys().any(|name| name.split('.').next() == Some(COMPANION))
}

/// Applies the changes of an update, and adds the document to those that get passages.
fn begin(given: &RawValue, documents: &mut Vec<Document>) -> Result<Begun, EngineError> {
    let given = parse_json(given.get().as_bytes())?;
    let given: Given = serde_json::from_value(given).map_err(|error| unreadable(&error))?;
    let Given { mut source, payload, doc, detect_noop } = given;
    if [Some(&source), doc.as_ref()].into_iter().flatten().any(names_companion) {
        return Err(EngineError::illegal_argument(format!("[{COMPANION}] of a document belongs to Sparrow")));
    }
    let previous = match payload {
        Some(text) => {
            Some((Value::Object(source.clone()).to_string().into_bytes(), over_cluster::payload(&text)?))
        }
        None => None,
    };
    let changes = match &doc {
        Some(doc) if !merge(&mut source, doc) && detect_noop => return Ok(Begun::Noop),
        Some(_) => Some(Value::Object(source.clone())),
        None => None,
    };
    documents.push(Document { source: source.into(), previous });
    Ok(Begun::Made(changes))
}
