//! Creating, showing, changing and deleting indices.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sparrow_index::mapping::Mapping;

use super::{IndexHandle, ResolveOptions, Settings};
use crate::Engine;
use crate::body::parse_object;
use crate::error::EngineError;
use crate::request::{CancelFlag, Reply, Request};

/// The version that `GET /{index}` reports as the creator's.
const CREATED_VERSION: &str = "8537000";

/// `PUT /{index}`
pub(crate) fn create_index(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let name = request.part("index");
    super::names::check(name)?;
    let body = parse_object(body)?;
    for (key, value) in &body {
        match key.as_str() {
            "settings" | "mappings" => {}
            // An empty object asks for nothing.
            "aliases" if value.as_object().is_some_and(Map::is_empty) => {}
            "aliases" => return Err(EngineError::illegal_argument("[aliases] are not supported yet")),
            other => return Err(EngineError::parse(format!("unknown key [{other}] for create index"))),
        }
    }
    let settings = body.get("settings").map_or(Ok(Settings::default()), Settings::parse)?;
    let mapping = match body.get("mappings") {
        None | Some(Value::Null) => Mapping::empty(),
        Some(mappings) => Mapping::parse(mappings)?,
    };
    mapping.check_total_fields(settings.limits().total_fields)?;
    engine.indices.create(name, settings, mapping)?;
    Ok(Reply::ok(&json!({"acknowledged": true, "shards_acknowledged": true, "index": name})))
}

/// `GET /{index}`
pub(crate) fn get_index(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let flat = request.params().bool("flat_settings", false)?;
    for_each(engine, request, |handle| {
        json!({
            "aliases": {},
            "mappings": handle.mapping().to_json(),
            "settings": settings_json(handle, flat),
        })
    })
}

/// `HEAD /{index}`
pub(crate) fn exists_index(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let found = targets(engine, request).is_ok_and(|handles| !handles.is_empty());
    Ok(Reply::bytes(if found { 200 } else { 404 }, Vec::new()))
}

/// `DELETE /{index}`
pub(crate) fn delete_index(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let expression = request.part("index");
    if expression == "_all" || expression.contains('*') {
        return Err(EngineError::illegal_argument("Wildcard expressions or all indices are not allowed"));
    }
    for handle in targets(engine, request)? {
        engine.indices.delete(&handle.name)?;
    }
    Ok(Reply::acknowledged())
}

/// `GET /{index}/_mapping`
pub(crate) fn get_mapping(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    for_each(engine, request, |handle| json!({"mappings": handle.mapping().to_json()}))
}

/// `PUT /{index}/_mapping`
pub(crate) fn put_mapping(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let definition = parse_object(body)?;
    if definition.is_empty() {
        return Err(EngineError::invalid("mapping source is missing"));
    }
    let definition = Value::Object(definition);
    let handles = targets(engine, request)?;
    // All are checked before any is changed.
    for handle in &handles {
        widened(handle, &definition)?;
    }
    for handle in handles {
        let _writers = handle.write.lock();
        let mapping = widened(&handle, &definition)?;
        handle.widen_mapping(&mapping)?;
    }
    Ok(Reply::acknowledged())
}

fn widened(handle: &IndexHandle, definition: &Value) -> Result<Mapping, EngineError> {
    let mapping = handle.mapping().merge_update(definition)?;
    mapping.check_total_fields(handle.settings().limits().total_fields)?;
    mapping.check_analyzers(handle.snapshot().analysis())?;
    Ok(mapping)
}

/// `GET /{index}/_settings`
pub(crate) fn get_settings(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let flat = request.params().bool("flat_settings", false)?;
    for_each(engine, request, |handle| json!({"settings": settings_json(handle, flat)}))
}

/// `PUT /{index}/_settings`
pub(crate) fn put_settings(
    engine: &Engine,
    request: &Request,
    body: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    let mut changes = parse_object(body)?;
    // `{"settings": {…}}` is accepted as well.
    if let (1, Some(Value::Object(inner))) = (changes.len(), changes.get("settings")) {
        changes = inner.clone();
    }
    if changes.is_empty() {
        return Err(EngineError::invalid("no settings to update"));
    }
    let changes = Value::Object(changes);
    let handles = targets(engine, request)?;
    for handle in &handles {
        handle.settings().updated(&changes, &handle.name, &handle.uuid)?;
    }
    for handle in handles {
        let settings = handle.settings().updated(&changes, &handle.name, &handle.uuid)?;
        handle.replace_metadata(|metadata| metadata.settings = settings)?;
    }
    Ok(Reply::acknowledged())
}

/// `POST /{index}/_refresh`
pub(crate) fn refresh(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    on_each(engine, request, IndexHandle::refresh)
}

/// `POST /{index}/_flush`
pub(crate) fn flush(
    engine: &Engine,
    request: &Request,
    _: &[u8],
    _: &CancelFlag,
) -> Result<Reply, EngineError> {
    on_each(engine, request, IndexHandle::flush)
}

fn on_each(
    engine: &Engine,
    request: &Request,
    act: impl Fn(&IndexHandle) -> Result<(), EngineError>,
) -> Result<Reply, EngineError> {
    let handles = targets(engine, request)?;
    handles.iter().try_for_each(|handle| act(handle))?;
    Ok(Reply::ok(&json!({"_shards": write_shards(handles.len())})))
}

/// `_shards` of an operation that has no skipped ones.
pub(crate) fn write_shards(count: usize) -> Value {
    json!({"total": count, "successful": count, "failed": 0})
}

fn targets(engine: &Engine, request: &Request) -> Result<Vec<Arc<IndexHandle>>, EngineError> {
    let options = ResolveOptions::from_params(&request.params())?;
    engine.indices.resolve(request.part("index"), options)
}

fn for_each(
    engine: &Engine,
    request: &Request,
    show: impl Fn(&IndexHandle) -> Value,
) -> Result<Reply, EngineError> {
    let shown: Map<String, Value> =
        targets(engine, request)?.iter().map(|handle| (handle.name.clone(), show(handle))).collect();
    Ok(Reply::ok(&Value::Object(shown)))
}

fn settings_json(handle: &IndexHandle, flat: bool) -> Value {
    let metadata = handle.metadata.read().clone();
    let facts = [
        ("provided_name", metadata.name.clone()),
        ("creation_date", metadata.creation_millis.to_string()),
        ("uuid", metadata.uuid.clone()),
        ("version.created", CREATED_VERSION.to_owned()),
    ];
    if flat {
        metadata.settings.to_dotted(&facts)
    } else {
        json!({"index": metadata.settings.to_nested(&facts)})
    }
}
