//! Reads by id. They see writes that no search sees yet.

use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

use super::reply::write_json;
use crate::Engine;
use crate::body::parse_json;
use crate::error::EngineError;
use crate::indices::{Found, IndexHandle, PRIMARY_TERM};
use crate::params::Params;
use crate::request::{CancelFlag, Reply, Request};
use crate::search::{SourceSelection, source_of_params};

/// `GET /{index}/_doc/{id}`
pub(crate) fn get_doc(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let (handle, found) = find(engine, request)?;
    let selection = source_of_params(request.params()).unwrap_or_default();
    let mut out = Vec::new();
    write_document(&handle.name, request.part("id"), found.as_ref(), &selection, &mut out);
    Ok(Reply::bytes(if found.is_some() { 200 } else { 404 }, out))
}

/// `HEAD /{index}/_doc/{id}` and `HEAD /{index}/_source/{id}`
pub(crate) fn exists_doc(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let status = match find(engine, request) {
        Ok((_, Some(_))) => 200,
        Ok((_, None)) => 404,
        // An answer without a body has only its status.
        Err(error) => error.status(),
    };
    Ok(Reply::bytes(status, Vec::new()))
}

/// `GET /{index}/_source/{id}`
pub(crate) fn get_source(
    engine: &Engine,
    request: &Request,
    _body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let (handle, found) = find(engine, request)?;
    let id = request.part("id");
    let Some(found) = found else {
        let reason = format!("Document not found [{}]/[{id}]", handle.name);
        return Err(EngineError::resource_not_found(reason));
    };
    let mut out = Vec::new();
    let selection = source_of_params(request.params()).unwrap_or_default();
    if !selection.write(&found.source, &mut out) {
        return Err(EngineError::resource_not_found(format!("Source not found [{}]/[{id}]", handle.name)));
    }
    Ok(Reply::bytes(200, out))
}

/// `GET|POST [/{index}]/_mget`
pub(crate) fn mget(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let wanted = parse_mget(request, body)?;
    let mut out = b"{\"docs\":[".to_vec();
    for (number, want) in wanted.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        let read = engine.indices.get(&want.index).and_then(|handle| {
            let found = read(&handle, &params, &want.id)?;
            Ok((handle, found))
        });
        match read {
            Ok((handle, found)) => {
                write_document(&handle.name, &want.id, found.as_ref(), &want.source, &mut out)
            }
            Err(error) => {
                let error = error.body().get("error").cloned().unwrap_or_default();
                write_json(&Unreadable { index: &want.index, id: &want.id, error }, &mut out);
            }
        }
    }
    out.extend_from_slice(b"]}");
    Ok(Reply::bytes(200, out))
}

fn find(
    engine: &Engine,
    request: &Request,
) -> Result<(std::sync::Arc<IndexHandle>, Option<Found>), EngineError> {
    let params = request.params();
    let handle = engine.indices.get(request.part("index"))?;
    let id = request.part("id");
    let found = read(&handle, &params, id)?;
    if let (Some(found), Some(version)) = (&found, params.integer("version")?)
        && found.version as i64 != version
    {
        return Err(EngineError::VersionConflict {
            index: handle.name.clone(),
            uuid: handle.uuid.clone(),
            id: id.to_owned(),
            problem: format!(
                "current version [{}] is different than the one provided [{version}]",
                found.version
            ),
        });
    }
    Ok((handle, found))
}

fn read(handle: &IndexHandle, params: &Params<'_>, id: &str) -> Result<Option<Found>, EngineError> {
    if params.bool("refresh", false)? {
        handle.refresh()?;
    }
    let began = Instant::now();
    let found = if params.bool("realtime", true)? { handle.get(id)? } else { handle.get_searchable(id)? };
    handle.counters.got(found.is_some(), began.elapsed());
    Ok(found)
}

fn write_document(
    index: &str,
    id: &str,
    found: Option<&Found>,
    selection: &SourceSelection,
    out: &mut Vec<u8>,
) {
    let head = Head {
        index,
        id,
        version: found.map(|found| found.version),
        seq_no: found.map(|found| found.seq_no),
        primary_term: found.map(|_| PRIMARY_TERM),
        found: found.is_some(),
    };
    write_json(&head, out);
    let Some(found) = found else { return };
    // The source goes in as it is stored, byte for byte: `}` of the head moves behind it.
    let end = out.len();
    out.pop();
    out.extend_from_slice(b",\"_source\":");
    if selection.write(&found.source, out) {
        out.push(b'}');
    } else {
        out.truncate(end - 1);
        out.push(b'}');
    }
}

/// A document that is wanted.
#[derive(Debug)]
struct Wanted {
    index: String,
    id: String,
    source: SourceSelection,
}

fn parse_mget(request: &Request, body: &[u8]) -> Result<Vec<Wanted>, EngineError> {
    let Value::Object(object) = parse_json(body)? else {
        return Err(EngineError::parse(
            "unexpected token [START_ARRAY], expected [FIELD_NAME] or [START_ARRAY]",
        ));
    };
    let index = request.part("index");
    let default = source_of_params(request.params()).unwrap_or_default();
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
                    wanted.push(Wanted { index: index.to_owned(), id, source: default.clone() });
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
        if want.index.is_empty() {
            problems.push(format!("index is missing for doc {number}"));
        }
        if want.id.is_empty() {
            problems.push(format!("id is missing for doc {number}"));
        }
    }
    if problems.is_empty() { Ok(wanted) } else { Err(EngineError::Validation { problems }) }
}

fn parse_wanted(doc: Value, index: &str, default: &SourceSelection) -> Result<Wanted, EngineError> {
    let Value::Object(doc) = doc else {
        return Err(EngineError::illegal_argument("docs array element should include an object"));
    };
    let mut wanted = Wanted { index: index.to_owned(), id: String::new(), source: default.clone() };
    for (key, value) in doc {
        match (key.as_str(), text_of(&value)) {
            ("_index", Some(text)) => wanted.index = text,
            ("_id", Some(text)) => wanted.id = text,
            ("_source", _) => wanted.source = source_selection(&value)?,
            // One index is one shard, and stored fields other than the source do not exist here.
            ("routing" | "_routing", Some(_)) => {}
            (other, _) => {
                return Err(EngineError::parse(format!(
                    "failed to parse multi get request. unknown field [{other}]"
                )));
            }
        }
    }
    Ok(wanted)
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads a `_source` parameter of a body: a switch, a path, a list, or includes and excludes.
///
/// # Errors
/// When it is something else.
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
            Ok(SourceSelection::fields(includes, excludes))
        }
        other => Ok(SourceSelection::fields(paths(other).ok_or_else(malformed)?, Vec::new())),
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
