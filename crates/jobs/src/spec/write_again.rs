//! Requests of `_update_by_query` and `_delete_by_query`.

use serde_json::{Map, Value};

use super::parts::{
    DEFAULT_BATCH, batch, check_idle, check_rest, check_slices, common, conflicts, max_docs, order,
    script_shape, slice_shape, slices, unsupported,
};
use super::{Kind, Operation, Spec, saved};
use sparrow_catalog::ResolveOptions;
use sparrow_request::body::parse_object;
use sparrow_request::error::EngineError;
use sparrow_request::request::Request;
use sparrow_scripts::{ChangeScript, Changes};
use sparrow_search::Order;
use sparrow_tasks::throttle::requests_per_second;
use sparrow_wire::shape::{Shape, named, object};

/// What a request of `_delete_by_query` holds.
pub(crate) fn shape() -> Shape {
    object([
        ("query", named("Query")),
        ("sort", named("Sort")),
        ("_source", named("SourceSelection")),
        slice_shape(),
    ])
    .and(common())
}

/// What a request of `_update_by_query` holds.
pub(crate) fn update_shape() -> Shape {
    shape().and([script_shape()])
}

/// Reads a request.
///
/// # Errors
/// The error that Elasticsearch returns for it.
pub(super) fn parse(kind: Kind, request: &Request, body: &[u8]) -> Result<Spec, EngineError> {
    let params = request.params();
    let name = kind.name();
    let mut given: Map<String, Value> = parse_object(body)?;
    let proceed = conflicts(given.shift_remove("conflicts"), request)?;
    let max_docs = max_docs(&mut given, request)?;
    let script = match given.shift_remove("script").filter(|script| !script.is_null()) {
        Some(_) if kind == Kind::DeleteByQuery => {
            return Err(unsupported(name, "script", "documents are deleted, not changed"));
        }
        Some(script) => Some(ChangeScript::parse(&script, Changes::UpdateByQuery)?),
        None => None,
    };
    let in_body = order(given.shift_remove("sort"))?;
    let order = match params.get("sort") {
        Some(text) => Some(Order::from_text(text)?),
        None => in_body,
    };
    let in_body = match given.shift_remove("query") {
        None | Some(Value::Null) => None,
        Some(query) => Some(sparrow_query::dsl::parse_value(&query)?),
    };
    let query = sparrow_search::query_of_params(params)?.or(in_body);
    let part = match given.shift_remove("slice") {
        None | Some(Value::Null) => None,
        Some(slice) => Some(sparrow_search::parse_slice(&slice)?),
    };
    let mut problems = Vec::new();
    if params.get("from").is_some() {
        problems.push("from is not supported in this context".to_owned());
    }
    // Elasticsearch would write back what the selection leaves of each document.
    if kind == Kind::UpdateByQuery && given.get("_source").is_some_and(|selection| *selection != true) {
        problems.push("_source is not supported in this context".to_owned());
    }
    check_rest(&given, &update_shape(), body, None, &mut problems).map_err(|(_, error)| error)?;
    if kind == Kind::DeleteByQuery && query.is_none() {
        problems.push("query is missing".to_owned());
    }
    let index = request.part("index");
    let remote: Vec<&str> =
        index.split(',').filter(|name| name.contains(':') && !name.starts_with('<')).collect();
    if !remote.is_empty() {
        problems.push(format!(
            "Cross-cluster calls are not supported in this context but remote indices were requested: [{}]",
            remote.join(", ")
        ));
    }
    let slices = slices(request)?;
    check_slices(slices, part, max_docs, &mut problems);
    check_idle(request)?;
    match params.get("version_type") {
        None | Some("internal") => {}
        Some(other @ ("external" | "external_gt" | "external_gte")) => {
            return Err(unsupported(
                name,
                "version_type",
                &format!("[{other}] leaves nothing to write again"),
            ));
        }
        Some(other) => {
            return Err(EngineError::illegal_argument(format!("No version type match [{other}]")));
        }
    }
    let batch = batch(
        params.integer("scroll_size")?.unwrap_or_else(|| i64::try_from(DEFAULT_BATCH).unwrap_or(1)),
        max_docs,
    )?;
    let terminate_after = match params.integer("terminate_after")? {
        None | Some(0) => None,
        Some(number) => Some(
            usize::try_from(number)
                .map_err(|_| EngineError::illegal_argument("terminateAfter must be > 0"))?,
        ),
    };
    let operation = match kind {
        Kind::DeleteByQuery => Operation::Delete,
        Kind::UpdateByQuery | Kind::Reindex => {
            Operation::Update { pipeline: params.get("pipeline").map(str::to_owned), script }
        }
    };
    let spec = Spec {
        sources: vec![index.to_owned()],
        resolve: ResolveOptions::from_params(&params)?,
        query,
        order,
        batch,
        max_docs,
        terminate_after,
        proceed,
        requests_per_second: requests_per_second(request)?.unwrap_or(f64::INFINITY),
        refresh: params.bool("refresh", false)?,
        slices,
        part,
        operation,
        caller: request.caller.clone(),
        saved: saved(kind, request, body),
    };
    if problems.is_empty() { Ok(spec) } else { Err(EngineError::Validation { problems }) }
}
