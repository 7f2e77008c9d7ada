//! `_bulk`: many writes in one request.

use std::time::Instant;

use super::execute::{Execution, ItemResult};
use super::ndjson::{self, Defaults};
use super::reply::{append, write_failure};
use sparrow_request::error::EngineError;
use sparrow_request::operation::parameters::SOURCE;
use sparrow_request::operation::{Body, Lane, Operation};
use sparrow_request::request::{CancelFlag, Reply, Request};
use sparrow_request::rights::Action;
use sparrow_search::SearchService;

pub(crate) const OPERATIONS: &[Operation<SearchService>] =
    &[Operation::new("bulk", Action::Bulk, Lane::Write, bulk)
        .about(
            "Writes and deletes many documents: lines of actions, each with its document on the next line.",
        )
        .body(Body::Lines)
        .holds("BulkAction", ndjson::shape)
        .takes(&[
            SOURCE,
            "pipeline refresh routing timeout require_alias wait_for_active_shards",
            "list_executed_pipelines require_data_stream include_source_on_error",
        ])
        .stops()];

/// `POST|PUT [/{index}]/_bulk`
fn bulk(
    service: &SearchService,
    request: &Request,
    body: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let params = request.params();
    let defaults = Defaults {
        index: request.path.get("index").cloned(),
        routing: params.routing(),
        pipeline: params.get("pipeline").map(str::to_owned),
        require_alias: params.bool("require_alias", false)?,
        source: sparrow_search::source_of_params(params)?,
    };
    let refresh = params.refresh()?;
    let actions = ndjson::parse(body, &defaults)?;
    let mut execution = Execution::new(service, request, cancel);
    execution.list_executed = params.bool("list_executed_pipelines", false)?;
    let results = execution.run(&actions)?;
    let forced = execution.refresh(refresh)?;

    let errors = results.iter().any(|item| item.result.is_err());
    let shown: usize = results.iter().map(ItemResult::shown_bytes).sum();
    let mut out = Vec::with_capacity(64 + results.len() * 180 + shown);
    out.extend_from_slice(
        format!("{{\"errors\":{errors},\"took\":{}", start.elapsed().as_millis()).as_bytes(),
    );
    if let Some(millis) = execution.ingest_millis {
        out.extend_from_slice(format!(",\"ingest_took\":{millis}").as_bytes());
    }
    // Not a member that Elasticsearch has: there only when there is something to say.
    if execution.truncated_texts > 0 {
        out.extend_from_slice(format!(",\"truncated_texts\":{}", execution.truncated_texts).as_bytes());
    }
    out.extend_from_slice(b",\"items\":[");
    let mut refused = false;
    // Each result goes when it is written, as its source may be long.
    for (number, (item, action)) in results.into_iter().zip(&actions).enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(action.kind.name().as_bytes());
        out.extend_from_slice(b"\":");
        match &item.result {
            Ok(success) => {
                success.write(&item.index, forced, true, &mut out);
                if let Some(executed) = &item.executed {
                    append(&mut out, "executed_pipelines", executed);
                }
            }
            Err(error) => {
                refused |= error.is_forbidden();
                write_failure(&item.index, item.id.as_deref(), error, &mut out);
            }
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    Ok(Reply::bytes(200, out).with_refused_parts(refused))
}
