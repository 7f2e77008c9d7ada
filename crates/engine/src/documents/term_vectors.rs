//! `_termvectors` and `_mtermvectors`. No field stores term vectors here, so the list of a document that names
//! no fields is empty, as it is for such fields elsewhere; vectors made on the fly are refused by name.

use std::time::Instant;

use serde_json::{Value, json};

use crate::Engine;
use crate::body::parse_json;
use crate::error::EngineError;
use crate::indices::IndexHandle;
use crate::params::Params;
use crate::request::{CancelFlag, Reply, Request};

/// What may be said of a document and changes nothing where there are no vectors.
const SWITCHES: [&str; 5] = ["field_statistics", "term_statistics", "offsets", "positions", "payloads"];

/// `GET|POST /{index}/_termvectors/{id}`
pub(crate) fn term_vectors(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let params = request.params();
    check_params(params)?;
    if !body.iter().all(u8::is_ascii_whitespace) {
        check_document(&parse_json(body)?)?;
    }
    let handle = engine.indices.get(request.part("index"))?;
    Ok(Reply::ok(&vectors(&handle, request.part("id"), params.bool("realtime", true)?, start)?))
}

/// `GET|POST [/{index}]/_mtermvectors`
pub(crate) fn multi_term_vectors(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let params = request.params();
    check_params(params)?;
    let realtime = params.bool("realtime", true)?;
    let index = request.part("index");
    let mut wanted: Vec<(String, String)> = Vec::new();
    if let Some(ids) = params.get("ids") {
        wanted.extend(ids.split(',').map(|id| (index.to_owned(), id.to_owned())));
    }
    let asked = if body.iter().all(u8::is_ascii_whitespace) { json!({}) } else { parse_json(body)? };
    let Some(members) = asked.as_object() else {
        return Err(EngineError::parse("a request of term vectors must be an object"));
    };
    for (key, value) in members {
        match (key.as_str(), value) {
            ("ids", Value::Array(ids)) => {
                wanted
                    .extend(ids.iter().filter_map(Value::as_str).map(|id| (index.to_owned(), id.to_owned())));
            }
            ("docs", Value::Array(docs)) => {
                for doc in docs {
                    check_document(doc)?;
                    let index = doc["_index"].as_str().unwrap_or(index);
                    wanted.push((index.to_owned(), doc["_id"].as_str().unwrap_or_default().to_owned()));
                }
            }
            (key, _) => {
                return Err(EngineError::parse(format!(
                    "unexpected key [{key}] in the request of term vectors"
                )));
            }
        }
    }
    if wanted.is_empty() {
        return Err(EngineError::invalid("multi term vectors: no documents requested"));
    }
    let docs: Vec<Value> = wanted
        .iter()
        .map(|(index, id)| {
            let found = engine.indices.get(index).and_then(|handle| vectors(&handle, id, realtime, start));
            found.unwrap_or_else(|error| {
                let error = error.body();
                json!({"_index": index, "_id": id, "error": error["error"]})
            })
        })
        .collect();
    Ok(Reply::ok(&json!({"docs": docs})))
}

fn vectors(handle: &IndexHandle, id: &str, realtime: bool, start: Instant) -> Result<Value, EngineError> {
    let found = if realtime { handle.get(id)? } else { handle.get_searchable(id)? };
    let took = start.elapsed().as_millis() as u64;
    Ok(match found {
        Some(found) => json!({
            "_index": handle.name, "_id": id, "_version": found.version, "found": true, "took": took,
            "term_vectors": {},
        }),
        None => json!({"_index": handle.name, "_id": id, "_version": 0, "found": false, "took": took}),
    })
}

fn check_params(params: Params<'_>) -> Result<(), EngineError> {
    for name in SWITCHES {
        params.bool(name, true)?;
    }
    match params.get("fields") {
        None | Some("") => Ok(()),
        Some(_) => Err(refused("fields")),
    }
}

fn check_document(doc: &Value) -> Result<(), EngineError> {
    let Some(members) = doc.as_object() else {
        return Err(EngineError::parse("a request of term vectors must be an object"));
    };
    for (key, value) in members.iter().map(|(key, value)| (key.as_str(), value)) {
        if SWITCHES.contains(&key) && !value.is_boolean() {
            return Err(EngineError::illegal_argument(format!("[{key}] must be [true] or [false]")));
        }
        if !matches!(key, "_index" | "_id" | "routing" | "_routing" | "version" | "version_type")
            && !SWITCHES.contains(&key)
        {
            return Err(refused(key));
        }
    }
    Ok(())
}

fn refused(name: &str) -> EngineError {
    EngineError::illegal_argument(format!("[{name}] of term vectors is not supported by this server"))
}
