//! Reading documents by id. Unlike searches, these reads see writes before a refresh.

use std::borrow::Cow;
use std::time::Instant;

use serde::Serialize;
use serde_json::{Map, Value};
use sparrow_mapping::{FieldType, Mapping};
use sparrow_runtime::work;

use super::action::VersionType;
use super::reply::write_json;
use sparrow_catalog::{IndexHandle, PRIMARY_TERM, StoredDocument};
use sparrow_mapping::SourceSelection;
use sparrow_request::body::parse_json;
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::SOURCE;
use sparrow_request::operation::{Lane, Operation};
use sparrow_request::params::Params;
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search::SearchService;
use sparrow_search::{source_of_params, stored_values};
use sparrow_wire::shape::{Shape, int, list, named, object, one, scalar, several, text};

/// How one document is read.
const READ: &str =
    "_source_exclude_vectors realtime refresh routing preference version version_type stored_fields";

pub(crate) const OPERATIONS: &[Operation<SearchService>] = &[
    Operation::new("get_doc", Action::Get, Lane::Read, get_doc)
        .about("A document, as it was written last.")
        .takes(&[SOURCE, READ])
        .short()
        .shed(),
    Operation::new("exists_doc", Action::Get, Lane::Read, exists_doc)
        .about("Is there such a document? 200 or 404.")
        .takes(&[SOURCE, READ])
        .short()
        .shed(),
    Operation::new("get_source", Action::Get, Lane::Read, get_source)
        .about("A document without anything around it.")
        .takes(&[SOURCE, READ])
        .short()
        .shed(),
    Operation::new("mget", Action::MultiGet, Lane::Read, mget)
        .about("Several documents.")
        .holds("MultiGetRequest", mget_shape)
        .takes(&[SOURCE, "realtime refresh routing preference stored_fields"])
        .stops()
        .shed(),
];

/// `GET /{index}/_doc/{id}`
fn get_doc(
    service: &SearchService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let (handle, document) = find(service, request)?;
    let view = View::of_params(&request.params())?;
    let mut out = Vec::new();
    write_document(&handle, request.part("id"), document.as_ref(), &view, &mut out)?;
    Ok(Reply::bytes(if document.is_some() { 200 } else { 404 }, out))
}

/// `HEAD /{index}/_doc/{id}` and `HEAD /{index}/_source/{id}`
fn exists_doc(
    service: &SearchService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let status = match find(service, request) {
        Ok((_, Some(_))) => 200,
        Ok((_, None)) => 404,
        // An answer without a body has only its status.
        Err(error) => error.status(),
    };
    Ok(Reply::bytes(status, Vec::new()))
}

/// `GET /{index}/_source/{id}`
fn get_source(
    service: &SearchService,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let (handle, document) = find(service, request)?;
    let id = request.part("id");
    let Some(document) = document else {
        let reason = format!("Document not found [{}]/[{id}]", handle.name);
        return Err(EngineError::resource_not_found(reason));
    };
    let mut out = Vec::new();
    if !View::of_params(&request.params())?.write_source(&handle, &document, &mut out) {
        return Err(EngineError::resource_not_found(format!("Source not found [{}]/[{id}]", handle.name)));
    }
    Ok(Reply::bytes(200, out))
}

/// `GET|POST [/{index}]/_mget`
fn mget(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let wanted = parse_mget(request, body)?;
    let mut out = b"{\"docs\":[".to_vec();
    let mut refused = false;
    for (number, want) in wanted.iter().enumerate() {
        work::check()?;
        if number > 0 {
            out.push(b',');
        }
        let start = out.len();
        let written = service.indices.get(&want.index, request.right()).and_then(|handle| {
            let routing = want.routing.clone().or_else(|| params.routing());
            service.indices.check_routing(&handle, &want.index, &want.id, routing)?;
            let document = read(&handle, &params, &want.id)?;
            check_version(&handle, &want.id, document.as_ref(), want.version)?;
            work::grow(&mut out, document.as_ref().map_or(0, |document| document.source.len()))?;
            write_document(&handle, &want.id, document.as_ref(), &want.view, &mut out)
        });
        match written {
            Ok(()) => {}
            Err(error) => {
                refused |= error.is_forbidden();
                out.truncate(start);
                let error = error.body().get("error").cloned().unwrap_or_default();
                write_json(&Unreadable { index: &want.index, id: &want.id, error }, &mut out);
            }
        }
    }
    out.extend_from_slice(b"]}");
    Ok(Reply::bytes(200, out).with_refused_parts(refused))
}

fn find(
    service: &SearchService,
    request: &Request,
) -> Result<(std::sync::Arc<IndexHandle>, Option<StoredDocument>), EngineError> {
    let params = request.params();
    let handle = service.indices.get(request.part("index"), request.right())?;
    let id = request.part("id");
    service.indices.check_routing(&handle, request.part("index"), id, params.routing())?;
    let document = read(&handle, &params, id)?;
    check_version(&handle, id, document.as_ref(), params.integer("version")?)?;
    Ok((handle, document))
}

/// Compares a document's version with the one requested.
///
/// # Errors
/// If the document has another version.
pub(super) fn check_version(
    handle: &IndexHandle,
    id: &str,
    document: Option<&StoredDocument>,
    wanted: Option<i64>,
) -> Result<(), EngineError> {
    match (document, wanted) {
        (Some(document), Some(version)) if document.version as i64 != version => {
            Err(EngineError::VersionConflict {
                index: handle.name.clone(),
                uuid: handle.uuid.clone(),
                id: id.to_owned(),
                problem: format!(
                    "current version [{}] is different than the one provided [{version}]",
                    document.version
                ),
            })
        }
        _ => Ok(()),
    }
}

fn read(handle: &IndexHandle, params: &Params<'_>, id: &str) -> Result<Option<StoredDocument>, EngineError> {
    if params.bool("refresh", false)? {
        handle.refresh()?;
    }
    let began = Instant::now();
    let document =
        if params.bool("realtime", true)? { handle.get(id)? } else { handle.get_searchable(id)? };
    handle.counters.got(document.is_some(), began.elapsed());
    Ok(document)
}

/// Which parts of a document are returned.
#[derive(Debug, Clone, Default)]
struct View {
    /// The requested parts of the source; `None` for all of it, or nothing if stored fields are requested.
    source: Option<SourceSelection>,
    /// Whether the source is returned without its vectors; by default as the index is set.
    excludes_vectors: Option<bool>,
    /// Patterns in the `stored_fields` parameter.
    stored: Vec<String>,
}

impl View {
    fn of_params(params: &Params<'_>) -> Result<Self, EngineError> {
        let stored = params.get("stored_fields").into_iter().flat_map(|list| list.split(','));
        Ok(Self {
            source: source_of_params(*params)?,
            excludes_vectors: params.get("_source_exclude_vectors").map(|given| matches!(given, "true" | "")),
            stored: stored.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        })
    }

    fn source(&self) -> Cow<'_, SourceSelection> {
        match &self.source {
            Some(selection) => Cow::Borrowed(selection),
            None if self.stored.is_empty() || self.stored.iter().any(|name| name == "_source") => {
                Cow::Owned(SourceSelection::Whole)
            }
            None => Cow::Owned(SourceSelection::Nothing),
        }
    }

    /// Appends the parts of the document's source that the request wants; returns `false`, and appends nothing, if it wants none.
    fn write_source(&self, handle: &IndexHandle, document: &StoredDocument, out: &mut Vec<u8>) -> bool {
        if !self.excludes_vectors.unwrap_or_else(|| handle.settings().excludes_vectors()) {
            return self.source().write(&document.source, out);
        }
        let rest = SourceSelection::without_vectors(handle.snapshot().mapping()).of(&document.source);
        self.source().write(&rest, out)
    }

    /// The values of the fields that the mapping stores.
    fn fields(
        &self,
        handle: &IndexHandle,
        document: &StoredDocument,
    ) -> Result<Map<String, Value>, EngineError> {
        if self.stored.is_empty() {
            return Ok(Map::new());
        }
        let mapping = handle.mapping();
        if let Some(object) = self.stored.iter().find(|name| is_object(&mapping, name)) {
            return Err(EngineError::illegal_argument(format!("field [{object}] isn't a leaf field")));
        }
        let source = serde_json::from_slice(&document.source).unwrap_or_default();
        Ok(stored_values(&mapping, &source, &self.stored))
    }
}

fn is_object(mapping: &Mapping, path: &str) -> bool {
    matches!(mapping.field(path), Some(FieldType::Object { .. }))
}

fn write_document(
    handle: &IndexHandle,
    id: &str,
    document: Option<&StoredDocument>,
    view: &View,
    out: &mut Vec<u8>,
) -> Result<(), EngineError> {
    let head = Head {
        index: &handle.name,
        id,
        version: document.map(|document| document.version),
        seq_no: document.map(|document| document.seq_no),
        primary_term: document.map(|_| PRIMARY_TERM),
        routing: document.and_then(|document| document.routing.as_deref()),
        found: document.is_some(),
    };
    write_json(&head, out);
    let Some(document) = document else { return Ok(()) };
    // The source goes in as it is stored, byte for byte: `}` of the head moves behind it.
    out.pop();
    let end = out.len();
    out.extend_from_slice(b",\"_source\":");
    if !view.write_source(handle, document, out) {
        out.truncate(end);
    }
    let fields = view.fields(handle, document)?;
    if !fields.is_empty() {
        out.extend_from_slice(b",\"fields\":");
        write_json(&fields, out);
    }
    out.push(b'}');
    Ok(())
}

/// A document requested by `_mget`.
#[derive(Debug)]
struct RequestedDocument {
    index: String,
    id: String,
    view: View,
    version: Option<i64>,
    /// Routing of this document, instead of that of the request.
    routing: Option<String>,
}

fn mget_shape() -> Shape {
    object([("docs", list(wanted_shape())), ("ids", list(scalar()))])
}

fn wanted_shape() -> Shape {
    object([("_index", text()), ("_id", scalar()), ("routing", text()), ("version", int())])
        .and([("_source", named("SourceSelection")), ("stored_fields", several(text()))])
        .and([("version_type", one(&VersionType::IN_BODIES))])
        .needs(&["_id"])
}

fn parse_mget(request: &Request, body: &[u8]) -> Result<Vec<RequestedDocument>, EngineError> {
    let Value::Object(object) = parse_json(body)? else {
        return Err(EngineError::parse(
            "unexpected token [START_ARRAY], expected [FIELD_NAME] or [START_ARRAY]",
        ));
    };
    let index = request.part("index");
    let default = View::of_params(&request.params())?;
    let mut wanted = Vec::new();
    for (key, value) in object {
        match (key.as_str(), value) {
            ("docs", Value::Array(docs)) => {
                for doc in docs {
                    wanted.push(parse_wanted(doc, index, &default)?);
                }
            }
            ("ids", Value::Array(ids)) => {
                for id in ids {
                    let id = text_of(&id).ok_or_else(|| {
                        EngineError::illegal_argument("ids array element should only contain ids")
                    })?;
                    wanted.push(RequestedDocument {
                        index: index.to_owned(),
                        id,
                        view: default.clone(),
                        version: None,
                        routing: None,
                    });
                }
            }
            ("docs" | "ids", _) => {
                return Err(EngineError::parse(format!("[{key}] must be an array")));
            }
            (other, value) => {
                let token = if value.is_array() { "START_ARRAY" } else { "VALUE_STRING" };
                return Err(EngineError::parse(format!(
                    "unknown key [{other}] for a {token}, expected [docs] or [ids]"
                )));
            }
        }
    }
    let mut problems = Vec::new();
    if wanted.is_empty() {
        problems.push("no documents to get".to_owned());
    }
    for (number, want) in wanted.iter().enumerate() {
        work::check()?;
        if want.index.is_empty() {
            problems.push(format!("index is missing for doc {number}"));
        }
        if want.id.is_empty() {
            problems.push(format!("id is missing for doc {number}"));
        }
    }
    if problems.is_empty() { Ok(wanted) } else { Err(EngineError::Validation { problems }) }
}

fn parse_wanted(doc: Value, index: &str, default: &View) -> Result<RequestedDocument, EngineError> {
    let Value::Object(doc) = doc else {
        return Err(EngineError::illegal_argument("docs array element should include an object"));
    };
    let mut wanted = RequestedDocument {
        index: index.to_owned(),
        id: String::new(),
        view: default.clone(),
        version: None,
        routing: None,
    };
    for (key, value) in doc {
        match (key.as_str(), text_of(&value)) {
            ("_index", Some(text)) => wanted.index = text,
            ("_id", Some(text)) => wanted.id = text,
            ("_source", _) => {
                let mut value = value;
                if let Some(given) = value.as_object_mut().and_then(|it| it.shift_remove("exclude_vectors")) {
                    let given = given.as_bool().ok_or_else(|| {
                        EngineError::illegal_argument(format!(
                            "Failed to parse value [{given}] as only [true] or [false] are allowed."
                        ))
                    })?;
                    wanted.view.excludes_vectors = Some(given);
                }
                wanted.view.source = Some(source_selection(&value)?);
            }
            ("stored_fields", _) => wanted.view.stored = names(&value)?,
            ("version", Some(text)) => {
                wanted.version = Some(text.parse().map_err(|_| {
                    EngineError::illegal_argument(format!("Failed to parse [version] value [{text}]"))
                })?);
            }
            // A read compares versions in the same way, whether the server or the client numbers them.
            ("version_type", Some(text)) if VersionType::IN_BODIES.contains(&text.as_str()) => {}
            ("version_type", Some(text)) => {
                return Err(EngineError::illegal_argument(format!("No version type match [{text}]")));
            }
            ("routing", routing @ Some(_)) => wanted.routing = routing,
            ("fields", _) => {
                return Err(EngineError::parse(
                    "Unsupported field [fields] used, expected [stored_fields] instead",
                ));
            }
            (other, _) => {
                return Err(EngineError::parse(format!(
                    "failed to parse multi get request. {}",
                    wanted_shape().unknown(other)
                )));
            }
        }
    }
    Ok(wanted)
}

/// Reads one name or a list of names.
fn names(value: &Value) -> Result<Vec<String>, EngineError> {
    let names = match value {
        Value::String(name) => Some(vec![name.clone()]),
        Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    names.ok_or_else(|| EngineError::parse(format!("unknown value [{value}] for [stored_fields]")))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads a `_source` member of a body: a boolean, a path, a list of paths, or an object with includes and excludes.
///
/// # Errors
/// If it is something else.
pub(super) fn source_selection(value: &Value) -> Result<SourceSelection, EngineError> {
    let malformed = || EngineError::parse(format!("unknown value [{value}] for [_source]"));
    let paths = |value: &Value| -> Option<Vec<String>> {
        match value {
            Value::String(path) => Some(vec![path.clone()]),
            Value::Array(paths) => paths.iter().map(|path| path.as_str().map(str::to_owned)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }
    };
    match value {
        Value::Bool(true) => Ok(SourceSelection::Whole),
        Value::Bool(false) => Ok(SourceSelection::Nothing),
        Value::Object(object) => {
            let (mut includes, mut excludes) = (Vec::new(), Vec::new());
            for (key, value) in object {
                let list = match key.as_str() {
                    "include" | "includes" => &mut includes,
                    "exclude" | "excludes" => &mut excludes,
                    _ => return Err(malformed()),
                };
                *list = paths(value).ok_or_else(malformed)?;
            }
            Ok(SourceSelection::fields(includes, excludes)?)
        }
        other => Ok(SourceSelection::fields(paths(other).ok_or_else(malformed)?, Vec::new())?),
    }
}

#[derive(Serialize)]
struct Head<'a> {
    #[serde(rename = "_index")]
    index: &'a str,
    #[serde(rename = "_id")]
    id: &'a str,
    #[serde(rename = "_version", skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(rename = "_seq_no", skip_serializing_if = "Option::is_none")]
    seq_no: Option<u64>,
    #[serde(rename = "_primary_term", skip_serializing_if = "Option::is_none")]
    primary_term: Option<u64>,
    #[serde(rename = "_routing", skip_serializing_if = "Option::is_none")]
    routing: Option<&'a str>,
    found: bool,
}

#[derive(Serialize)]
struct Unreadable<'a> {
    #[serde(rename = "_index")]
    index: &'a str,
    #[serde(rename = "_id")]
    id: &'a str,
    error: Value,
}
