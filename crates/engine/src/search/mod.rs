//! Search and count: request JSON in, response JSON out.
//!
//! `bytes → body → query tree → vectors for texts → hits per index → merged or fused list → bytes`. Parsing
//! ([`body`], [`dsl`], [`uri`]) knows no index; [`execute`] knows no JSON; [`response`] copies stored sources as
//! they are.

mod body;
mod deadline;
mod dsl;
mod error;
mod execute;
mod fusion;
mod java_float;
pub(crate) mod json;
mod rank;
mod resolve;
mod response;
mod sort;
mod source_filter;
mod suggest;
mod uri;

#[cfg(test)]
mod body_tests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde_json::Value;
use sparrow_index::Snapshot;
use sparrow_index::query::{Query, QueryError};

use self::body::SearchBody;
use self::deadline::Deadline;
use self::dsl::Context;
pub(crate) use self::error::{SearchError, Shard};
use self::execute::{Outcome, Target};
use self::response::ShownHit;
pub(crate) use self::source_filter::SourceSelection;
pub(crate) use self::uri::source as source_of_params;
use crate::Engine;
use crate::error::{EngineError, Exception};
use crate::indices::{IndexHandle, ResolveOptions};
use crate::models::TextEncoder;
use crate::request::{CancelFlag, Reply, Request};

/// `_search`.
pub(crate) fn search(
    engine: &Engine,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let start = Instant::now();
    let params = request.params();
    let (handles, filters) = resolve_indices(engine, request)?;
    let mut body = SearchBody::parse(bytes, uri::size(params)?)?;
    let shown = uri::apply(params, &mut body)?;
    body.validate()?;
    let deadline = Deadline::start(body.timeout, cancel);
    let timed_out = |error: &EngineError| deadline.is_over() && is_cancelled(error);

    let mut queries: Vec<&mut Query> = body.query.iter_mut().collect();
    queries.extend(&mut body.post_filter);
    queries.extend(&mut body.sub_searches);
    queries.extend(body.knn.iter_mut().map(|knn| &mut knn.query));
    let encoded = encode(engine, &handles, &mut queries, deadline.flag());
    let targets = targets(engine, &handles, &filters)?;
    let found =
        encoded.and_then(|()| execute::execute(&targets, &body, deadline.flag()).map_err(EngineError::from));
    let mut outcome = match found {
        Ok(outcome) => outcome,
        Err(error) if timed_out(&error) && shown.all_or_nothing => {
            return Err(EngineError::api(504, Exception::new("timeout_exception", "Time exceeded")));
        }
        Err(error) if timed_out(&error) => {
            Outcome { total: Some((0, true)), timed_out: true, ..Outcome::default() }
        }
        Err(error) if is_cancelled(&error) => return Err(EngineError::Cancelled),
        Err(error) => return Err(error),
    };
    if shown.all_or_nothing && !outcome.failures.is_empty() {
        return Err(outcome.failures.swap_remove(0).into());
    }
    let hits = read_hits(&targets, &body, &outcome)?;
    let bytes = response::write(&body, shown, targets.len(), &outcome, &hits, start.elapsed());
    Ok(Reply::bytes(200, bytes))
}

/// `_count`.
pub(crate) fn count(
    engine: &Engine,
    request: &Request,
    bytes: &[u8],
    cancel: &CancelFlag,
) -> Result<Reply, EngineError> {
    let params = request.params();
    let (handles, filters) = resolve_indices(engine, request)?;
    let mut query = body::parse_count(bytes)?;
    if let Some(text) = uri::query_string(params)? {
        query = Some(text);
    }
    let min_score = params.float("min_score")?;
    let mut body = SearchBody {
        query,
        size: 0,
        min_score: min_score.map(|score| score as f32),
        track_total_hits: Some(sparrow_index::query::TotalHits::Exact),
        ..SearchBody::default()
    };
    let mut queries: Vec<&mut Query> = body.query.iter_mut().collect();
    encode(engine, &handles, &mut queries, cancel.flag())?;
    let targets = targets(engine, &handles, &filters)?;
    let outcome = execute::execute(&targets, &body, cancel.flag())
        .map_err(EngineError::from)
        .map_err(|error| if is_cancelled(&error) { EngineError::Cancelled } else { error })?;
    let counted = outcome.total.map_or(0, |(count, _)| count);
    Ok(Reply::bytes(200, response::write_count(counted, targets.len(), &outcome.failures)))
}

/// Reads a query in its JSON form and encodes its texts: for jobs that select documents by query.
///
/// # Errors
/// As a search with this query.
pub(crate) fn prepare_query(
    engine: &Engine,
    handles: &[Arc<IndexHandle>],
    query: &Value,
    cancel: &CancelFlag,
) -> Result<Query, EngineError> {
    let mut query = parse_query(query)?;
    encode(engine, handles, &mut [&mut query], cancel.flag())?;
    Ok(query)
}

/// Reads a query in its JSON form, texts as they are. Places in errors count from the query's own start.
///
/// # Errors
/// When it is not a query.
pub(crate) fn parse_query(query: &Value) -> Result<Query, EngineError> {
    let bytes = query.to_string();
    let (node, _) = json::read(bytes.as_bytes()).map_err(SearchError::from)?;
    Ok(dsl::parse_query(&node, Context::new(body::DEFAULT_SIZE))?)
}

/// The error of a query that an index refuses, as a search would report it.
pub(crate) fn query_error(engine: &Engine, handle: &IndexHandle, source: QueryError) -> EngineError {
    SearchError::Query { shard: shard(engine, handle), source }.into()
}

fn is_cancelled(error: &EngineError) -> bool {
    error.es_type() == "task_cancelled_exception"
        || matches!(error, EngineError::Api(error) if error.root_causes.iter().any(|root| root.kind == "task_cancelled_exception"))
}

fn shard(engine: &Engine, handle: &IndexHandle) -> Box<Shard> {
    Box::new(Shard {
        index: handle.name.clone(),
        uuid: handle.uuid.clone(),
        node: engine.node_id().to_owned(),
    })
}

/// What the indices show, each through the filter of the alias that leads to it.
fn targets(
    engine: &Engine,
    handles: &[Arc<IndexHandle>],
    filters: &[Option<Value>],
) -> Result<Vec<Target>, EngineError> {
    let mut targets: Vec<Target> = handles.iter().map(|handle| target(engine, handle)).collect();
    for ((target, handle), filter) in targets.iter_mut().zip(handles).zip(filters) {
        target.snapshot = restrict(engine, handle, &target.snapshot, filter.as_ref())?;
    }
    Ok(targets)
}

/// What of an index is seen through the filter of an alias.
///
/// # Errors
/// When the filter does not fit the index any more.
pub(crate) fn restrict(
    engine: &Engine,
    handle: &IndexHandle,
    snapshot: &Arc<Snapshot>,
    filter: Option<&Value>,
) -> Result<Arc<Snapshot>, EngineError> {
    let Some(filter) = filter else { return Ok(Arc::clone(snapshot)) };
    let query = parse_query(filter)?;
    snapshot.restricted(&query).map(Arc::new).map_err(|source| query_error(engine, handle, source))
}

/// Refuses what cannot be the filter of an alias: what is not a query, or needs a model.
///
/// # Errors
/// What a search with this query would say.
pub(crate) fn check_alias_filter(filter: &Value) -> Result<(), EngineError> {
    let mut query = parse_query(filter)?;
    match resolve::model_uses(&[&mut query]).first() {
        None => Ok(()),
        Some(used) => {
            Err(EngineError::illegal_argument(format!("a filter cannot ask the model [{}]", used.model_id)))
        }
    }
}

fn target(engine: &Engine, handle: &IndexHandle) -> Target {
    let settings = handle.settings();
    let default_fields = match settings.default_field() {
        None | Some("*") => Vec::new(),
        Some(fields) => fields.split(',').map(|field| field.trim().to_owned()).collect(),
    };
    Target {
        shard: shard(engine, handle),
        snapshot: handle.snapshot(),
        max_result_window: settings.max_result_window(),
        default_fields,
    }
}

/// Turns the texts of queries into vectors, after checking that the fields hold vectors of the same models.
fn encode(
    engine: &Engine,
    handles: &[Arc<IndexHandle>],
    queries: &mut [&mut Query],
    cancel: &AtomicBool,
) -> Result<(), EngineError> {
    for used in resolve::model_uses(queries) {
        let Some(fingerprint) = engine.models.fingerprint(&used.model_id) else { continue };
        for handle in handles {
            match handle.field_model(&used.field) {
                Some(stored) if stored != fingerprint => {
                    return Err(SearchError::ModelMismatch {
                        shard: shard(engine, handle),
                        field: used.field,
                        model: used.model_id,
                        stored,
                    }
                    .into());
                }
                _ => {}
            }
        }
    }
    resolve::resolve(&engine.models, queries, cancel)
}

/// Reads the documents of the hits and finds out which named clauses match them.
fn read_hits<'a>(
    targets: &'a [Target],
    body: &SearchBody,
    outcome: &Outcome,
) -> Result<Vec<ShownHit<'a>>, EngineError> {
    let mut shown = Vec::with_capacity(outcome.hits.len());
    for hit in &outcome.hits {
        let target = &targets[hit.target];
        shown.push(ShownHit {
            hit: *hit,
            index: &target.shard.index,
            stored: target.snapshot.fetch(hit.addr)?,
            matched: Vec::new(),
        });
    }
    let mut named = Vec::new();
    let queries = body.query.iter().chain(&body.sub_searches).chain(&body.post_filter);
    for query in queries.chain(body.knn.iter().map(|knn| &knn.query)) {
        resolve::visit(query, &mut |clause| {
            named.extend(clause.name.as_deref().map(|name| (name, clause)));
        });
    }
    for (name, clause) in named {
        for (number, target) in targets.iter().enumerate() {
            if !shown.iter().any(|shown| shown.hit.target == number) {
                continue;
            }
            let sets = target
                .snapshot
                .matching(clause)
                .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
            for shown in shown.iter_mut().filter(|shown| shown.hit.target == number) {
                let addr = shown.hit.addr;
                let word = sets
                    .get(addr.segment_ord as usize)
                    .and_then(|words| words.get(addr.doc_id as usize / 64));
                let matches = word.is_some_and(|word| word >> (addr.doc_id % 64) & 1 == 1);
                if matches && !shown.matched.iter().any(|known| known == name) {
                    shown.matched.push(name.to_owned());
                }
            }
        }
    }
    Ok(shown)
}

/// The indices that a search reads.
fn resolve_indices(
    engine: &Engine,
    request: &Request,
) -> Result<(Vec<Arc<IndexHandle>>, Vec<Option<Value>>), EngineError> {
    let options = ResolveOptions::from_params(&request.params())?;
    let found = engine.indices.resolve_filtered(request.part("index"), &options)?;
    Ok(found.into_iter().map(|resolved| (resolved.handle, resolved.filter)).unzip())
}
