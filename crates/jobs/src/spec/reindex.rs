//! Requests of `_reindex`.

use serde_json::{Map, Value};

use super::parts::{
    DEFAULT_BATCH, batch, check_idle, check_rest, check_slices, common, conflicts, integer, malformed,
    max_docs, nested, object_member, order, script_shape, slice_shape, slices,
};
use super::{Destination, Kind, Operation, Routing, Spec, VersionType, remote, saved};
use sparrow_catalog::ResolveOptions;
use sparrow_mapping::SourceSelection;
use sparrow_request::body::place;
use sparrow_request::error::{EngineError, Exception};
use sparrow_request::request::Request;
use sparrow_scripts::{ChangeScript, Changes};
use sparrow_tasks::throttle::requests_per_second;
use sparrow_wire::deprecation;
use sparrow_wire::shape::{Shape, int, named, object, one, several, text};

/// What a request holds.
pub(crate) fn shape() -> Shape {
    object([("source", source_shape()), ("dest", destination_shape()), script_shape()])
        .and(common())
        .needs(&["source", "dest"])
}

fn source_shape() -> Shape {
    object([
        ("index", several(text())),
        ("query", named("Query")),
        ("size", int().about("documents of a batch").preset(DEFAULT_BATCH)),
        ("sort", named("Sort")),
        ("_source", named("SourceSelection")),
        slice_shape(),
    ])
    .needs(&["index"])
}

fn destination_shape() -> Shape {
    object([
        ("index", text()),
        ("pipeline", text().about("ingest pipeline that the documents run through")),
        ("op_type", one(&["index", "create"])),
        ("version_type", one(&["internal", "external", "external_gte", "external_gt"])),
        ("routing", text()),
    ])
    .needs(&["index"])
}

/// Reads a request.
///
/// # Errors
/// The error that Elasticsearch returns for it.
pub(super) fn parse(request: &Request, body: &[u8]) -> Result<Spec, EngineError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(EngineError::parse("request body is required"));
    }
    let value: Value = sparrow_wire::strict_json::from_slice(body).map_err(|error| {
        let place = format!("[{}:{}] {error}", error.line(), error.column());
        EngineError::api(400, Exception::new("x_content_parse_exception", place))
    })?;
    let Value::Object(mut given) = value else { return Err(malformed(body, "reindex", None)) };
    let params = request.params();
    let mut source = object_member(&mut given, "reindex", "source")?.unwrap_or_default();
    let destination = object_member(&mut given, "reindex", "dest")?.unwrap_or_default();
    let proceed = conflicts(given.shift_remove("conflicts"), request)?;
    let max_docs = max_docs(&mut given, request)?;
    let script = given.shift_remove("script").filter(|script| !script.is_null());
    let script = script.map(|script| ChangeScript::parse(&script, Changes::Reindex)).transpose()?;
    if let Some(unknown) = given.keys().next() {
        return Err(malformed(body, "reindex", Some((&shape(), unknown))));
    }

    if let Some(remote) = object_member(&mut source, "source", "remote")? {
        return Err(remote::refuse(remote));
    }
    let mut problems = Vec::new();
    let sources = indices(source.shift_remove("index"))?;
    let size = integer(&mut source, "size")?.unwrap_or_else(|| i64::try_from(DEFAULT_BATCH).unwrap_or(1));
    let batch = batch(size, max_docs)?;
    let selection = selection(source.shift_remove("_source"))?.unwrap_or_else(|| {
        problems.push("_source:false is not supported in this context".to_owned());
        SourceSelection::Whole
    });
    let query = match source.shift_remove("query") {
        None | Some(Value::Null) => None,
        Some(query) => Some(sparrow_query::dsl::parse_value(&query)?),
    };
    let order = order(source.shift_remove("sort"))?;
    if order.is_some() {
        deprecation::warn(
            "The sort option in reindex is deprecated. Instead consider using query filtering to find the desired \
             subset of data.",
        );
    }
    let part = match source.shift_remove("slice") {
        None | Some(Value::Null) => None,
        Some(slice) => Some(sparrow_search::parse_slice(&slice)?),
    };
    check_rest(&source, &source_shape(), body, Some("source"), &mut problems)
        .map_err(|(name, error)| nested("source", &place(body, name), error.exception()))?;
    let mut destination = read_destination(destination, selection, request, body)?;
    destination.script = script;

    if sources.is_empty() {
        problems.push("use _all if you really want to copy from all existing indexes".to_owned());
    }
    if destination.index.is_empty() {
        problems.push("index must be specified".to_owned());
    }
    let slices = slices(request)?;
    check_slices(slices, part, max_docs, &mut problems);
    check_idle(request)?;
    let spec = Spec {
        sources,
        resolve: ResolveOptions::from_params(&params)?,
        query,
        order,
        batch,
        max_docs,
        terminate_after: None,
        proceed,
        requests_per_second: requests_per_second(request)?.unwrap_or(f64::INFINITY),
        refresh: params.bool("refresh", false)?,
        slices,
        part,
        operation: Operation::Copy(Box::new(destination)),
        caller: request.caller.clone(),
        saved: saved(Kind::Reindex, request, body),
    };
    if problems.is_empty() { Ok(spec) } else { Err(EngineError::Validation { problems }) }
}

fn read_destination(
    mut given: Map<String, Value>,
    selection: SourceSelection,
    request: &Request,
    body: &[u8],
) -> Result<Destination, EngineError> {
    let index = optional_text(&mut given, "index")?.unwrap_or_default();
    let pipeline = optional_text(&mut given, "pipeline")?;
    let op_type = optional_text(&mut given, "op_type")?.map(|name| name.to_ascii_lowercase());
    let create = match op_type.as_deref() {
        None | Some("index") => false,
        Some("create") => true,
        Some(other) => {
            return Err(EngineError::illegal_argument(format!(
                "opType must be 'create' or 'index', found: [{other}]"
            )));
        }
    };
    let version_type = match optional_text(&mut given, "version_type")?.as_deref() {
        None | Some("internal") => VersionType::Internal,
        Some("external" | "external_gt") => VersionType::External,
        Some("external_gte") => VersionType::ExternalOrEqual,
        Some(other) => {
            return Err(EngineError::illegal_argument(format!("No version type match [{other}]")));
        }
    };
    let routing = match optional_text(&mut given, "routing")?.as_deref() {
        None | Some("keep") => Routing::Keep,
        Some("discard") => Routing::Discard,
        Some(other) => match other.strip_prefix('=') {
            Some(routing) => Routing::Set(routing.to_owned()),
            None => {
                return Err(EngineError::illegal_argument(format!("Unsupported routing command: [{other}]")));
            }
        },
    };
    if let Some(unknown) = given.keys().next() {
        let place = place(body, unknown);
        let reason = format!("{place} [dest] {}", destination_shape().unknown(unknown));
        let cause = Exception::new("x_content_parse_exception", reason);
        return Err(nested("dest", &place, cause));
    }
    let require_alias = request.params().bool("require_alias", false)?;
    Ok(Destination { index, require_alias, pipeline, script: None, create, version_type, routing, selection })
}

fn indices(given: Option<Value>) -> Result<Vec<String>, EngineError> {
    let wrong = || EngineError::illegal_argument("[source] [index] must be a string or a list of strings");
    let list = match given {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(names)) => names.split(',').map(|name| name.trim().to_owned()).collect(),
        Some(Value::Array(list)) => list
            .into_iter()
            .map(|name| match name {
                Value::String(name) => Ok(name),
                _ => Err(wrong()),
            })
            .collect::<Result<Vec<_>, _>>()?,
        Some(_) => return Err(wrong()),
    };
    Ok(list.into_iter().filter(|name| !name.is_empty()).collect())
}

/// The fields to copy; none for `_source: false`.
fn selection(given: Option<Value>) -> Result<Option<SourceSelection>, EngineError> {
    let wrong = || {
        EngineError::illegal_argument("[source] [_source] must be a string, a list of strings or an object")
    };
    let texts = |value: Option<Value>| -> Result<Vec<String>, EngineError> {
        match value {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(list)) => {
                list.into_iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    };
    match given {
        None | Some(Value::Null | Value::Bool(true)) => Ok(Some(SourceSelection::Whole)),
        Some(Value::Bool(false)) => Ok(None),
        Some(Value::Object(mut map)) => {
            let mut take =
                |one: &str, other: &str| texts(map.shift_remove(one).or_else(|| map.shift_remove(other)));
            let (includes, excludes) = (take("includes", "include")?, take("excludes", "exclude")?);
            if map.is_empty() { Ok(Some(SourceSelection::fields(includes, excludes)?)) } else { Err(wrong()) }
        }
        given => Ok(Some(SourceSelection::fields(texts(given)?, Vec::new())?)),
    }
}

fn optional_text(given: &mut Map<String, Value>, name: &str) -> Result<Option<String>, EngineError> {
    match given.shift_remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(EngineError::illegal_argument(format!("[dest] [{name}] must be a string but was [{other}]")))
        }
    }
}
