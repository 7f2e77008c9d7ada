//! Search and count: request JSON in, response JSON out.
//!
//! `bytes → body → query tree → vectors for texts → hits per index → merged or fused list → bytes`. Parsing
//! ([`body`], [`dsl`], [`uri`]) knows no index; [`execute`] knows no JSON; [`response`] copies stored sources as
//! they are.

mod aggs;
mod apart;
mod apart_calibration;
mod attribution;
mod body;
mod calibrate;
pub mod calibration;
mod checks;
mod collapse;
mod contexts;
mod count;
mod deadline;
mod encoding;
mod error;
mod execute;
mod explain;
pub mod field_caps;
mod field_values;
mod fields;
pub mod fusion;
mod highlight;
mod hits;
pub mod knn_search;
mod limits;
mod lookup;
pub mod msearch;
mod nested_hits;
mod operations;
mod ordered;
mod paging;
pub mod point_in_time;
mod profile;
mod rank;
pub mod rank_eval;
mod rescore;
mod resolve;
mod response;
mod retriever;
mod script_fields;
pub mod scroll;
mod search;
mod semantic;
mod service;
mod sort;
mod suggestions;
mod target;
pub mod terms_enum;
mod top_hits;
mod uri;
pub mod validate;
mod window;

#[cfg(test)]
mod body_tests;

use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde_json::Value;
use sparrow_encoder::Timings;
use sparrow_index::Snapshot;
use sparrow_index::query::QueryError;
use sparrow_mapping::Mapping;
use sparrow_query::Query;
use sparrow_query::dsl::Context;
use sparrow_types::work;
use sparrow_wire::json::Member;

pub use self::apart::expanded;
use self::body::SearchBody;
pub use self::contexts::Contexts;
use self::deadline::Deadline;
use self::encoding::ModelTimings;
pub use self::error::{SearchError, Shard};
use self::execute::Outcome;
pub use self::fields::stored_values;
use self::hits::{Read, Reader};
pub use self::operations::OPERATIONS;
pub use self::ordered::{Order, query_of_index};
use self::response::OpenIds;
use self::sort::plan::Position;
use self::target::Target;
use self::uri::Presentation;
pub use self::uri::{query_string as query_of_params, source as source_of_params};
pub use crate::service::SearchService;
use sparrow_call::error::{EngineError, Exception};
use sparrow_call::request::{CancelFlag, Request};
use sparrow_call::rights::{Caller, Right};
use sparrow_indices::counters::{OpenContext, Timed};
use sparrow_indices::slow_log::{Phase, SlowSearches};
use sparrow_indices::{IndexHandle, ResolveOptions, Resolved, SearchLimits, Settings};
pub use sparrow_wire::suggest::{did_you_mean, suggestions};

/// Counts a scroll or a point in time as open in the statistics of its indices until the result is dropped.
pub fn open_context(targets: &[Target], scroll: bool) -> OpenContext {
    OpenContext::new(targets.iter().map(|target| Arc::clone(&target.counters)).collect(), scroll)
}

/// The response of a search.
pub struct Answered {
    /// The response body as JSON.
    bytes: Vec<u8>,
    /// Sort values of the last hit; none if there is no hit or hits are not sorted.
    last: Option<Position>,
}

/// Runs a search whose texts are encoded, and writes the response. `encoded` has the time that encoding took if the search is
/// profiled. `source` is the request's body, for the slow log.
#[allow(clippy::too_many_arguments)]
fn answer(
    service: &SearchService,
    targets: &[Target],
    body: &SearchBody,
    shown: Presentation,
    deadline: &Deadline,
    encoded: Result<ModelTimings, EngineError>,
    start: Instant,
    ids: OpenIds<'_>,
    source: &[u8],
) -> Result<Answered, EngineError> {
    let timed_out = |error: &EngineError| deadline.is_over() && is_cancelled(error);
    let groups = target::stats_groups(targets, &body.stats);
    let found = encoded.and_then(|timings| {
        if let Some(aggregations) = &body.aggs {
            aggregations.check_buckets(service.cluster.max_buckets())?;
        }
        if !service.cluster.allows_expensive_queries() {
            for target in targets {
                let mapping = target.snapshot.mapping();
                if let Some(reason) = sparrow_query::expensive::refusal(body.queries(), mapping) {
                    let shard = target.shard.clone();
                    return Err(SearchError::OfShard { shard, kind: "exception", reason }.into());
                }
            }
        }
        if suggestions::stands_alone(body) {
            let nothing = Outcome { total: Some((0, true)), ..Outcome::default() };
            return Ok((nothing, timings, Vec::new()));
        }
        let began = Instant::now();
        let outcome = execute::execute(targets, body, deadline.flag()).map_err(EngineError::from)?;
        let of_all = targets.iter().map(|target| &target.counters.query);
        let of_groups = groups.iter().flatten().map(|group| &group.query);
        let counted: Vec<_> = of_all.chain(of_groups).map(Timed::take_back_if_repeated).collect();
        note_slow(Phase::Query, targets, &outcome, began, source);
        Ok((outcome, timings, counted))
    });
    let (mut outcome, timings, _counted) = match found {
        // Only the clock leaves a part behind that is of use.
        Ok((outcome, ..)) if outcome.timed_out && !deadline.is_over() => return Err(EngineError::Cancelled),
        Ok(found) => found,
        Err(error) if timed_out(&error) => (
            Outcome { total: Some((0, false)), timed_out: true, ..Outcome::default() },
            Vec::new(),
            Vec::new(),
        ),
        Err(error) if is_cancelled(&error) => return Err(EngineError::Cancelled),
        Err(error) => return Err(error),
    };
    if shown.all_or_nothing && outcome.timed_out {
        return Err(time_exceeded());
    }
    if shown.all_or_nothing && !outcome.failures.is_empty() {
        return Err(outcome.failures.swap_remove(0).into());
    }
    let mut profile = outcome.profile.take();
    let fetching: Vec<_> = targets
        .iter()
        .enumerate()
        .filter(|(number, _)| outcome.hits.iter().any(|hit| hit.target == *number))
        .flat_map(|(number, target)| {
            let of_groups = groups[number].iter().map(|group| &group.fetch);
            std::iter::once(&target.counters.fetch).chain(of_groups)
        })
        .map(Timed::begin)
        .collect();
    let began = Instant::now();
    // As in Elasticsearch the limit is on the search itself: what it found in time is read and shown, whatever the clock says. Only
    // what takes long for each hit ends with it.
    let _until_cancelled = work::stopped_by(deadline.caller());
    let mut reader = Reader::new(service, shown, deadline.caller());
    // A scroll goes on behind the last hit that was found, so that none may be missing.
    if body.scroll.is_none() {
        reader = reader.until(deadline);
    }
    let Read { hits, timed_out: too_late } = reader.read(targets, body, &outcome, profile.as_deref_mut())?;
    if too_late && shown.all_or_nothing {
        return Err(time_exceeded());
    }
    outcome.timed_out |= too_late;
    drop(fetching);
    note_slow(Phase::Fetch, targets, &outcome, began, source);
    if let Some(profile) = &mut profile {
        // Those that are known under this name elsewhere, too.
        profile.models =
            timings.into_iter().map(|(id, times)| (service.models.model_behind(&id), times)).collect();
    }
    outcome.profile = profile;
    let aggregations = match (&body.aggs, outcome.aggregated.take()) {
        (Some(asked), Some(collected)) => {
            let (reduced, too_late) =
                top_hits::reduce(asked, service, collected, targets, body, shown, deadline)?;
            if too_late && shown.all_or_nothing {
                return Err(time_exceeded());
            }
            outcome.timed_out |= too_late;
            Some(reduced)
        }
        _ => None,
    };
    let mut bytes = response::write(body, shown, ids, targets.len(), &outcome, &hits, start.elapsed())?;
    if let Some(aggregations) = aggregations {
        response::append(&mut bytes, "aggregations", &aggregations)?;
    }
    if let Some(suggesters) = &body.suggest {
        match suggestions::append(&mut bytes, targets, body, suggesters, shown, &mut reader, deadline) {
            Ok(()) => {}
            // The hits are there: an answer that has them comes without suggestions.
            Err(error) if timed_out(&error) => {}
            Err(error) if is_cancelled(&error) => return Err(EngineError::Cancelled),
            Err(error) => return Err(error),
        }
    }
    Ok(Answered { bytes, last: outcome.last.take() })
}

/// Writes to the slow log if a phase took longer than the threshold of an index. The time is that of the whole search, as it is not
/// measured for each index.
fn note_slow(phase: Phase, targets: &[Target], outcome: &Outcome, began: Instant, source: &[u8]) {
    for target in targets {
        let Some(slow) = &target.slow else { continue };
        let hits = match outcome.total {
            Some((count, true)) => format!("{count} hits"),
            Some((count, false)) => format!("{count}+ hits"),
            None => "-1".to_owned(),
        };
        slow.note(phase, began.elapsed(), &target.shard.index, targets.len(), &hits, source);
    }
}

/// Encodes the texts of a query, for jobs that select documents by a query. `mappings` are those of the snapshots of the indices.
///
/// # Errors
/// As for a search with this query.
pub fn encode_query(
    service: &SearchService,
    handles: &[impl Borrow<IndexHandle>],
    mappings: &[Arc<Mapping>],
    query: &mut Query,
    caller: &Caller,
    cancel: &CancelFlag,
) -> Result<(), EngineError> {
    encode(service, handles, mappings, &mut [query], caller, cancel.flag(), None)
}

/// Reads the documents that queries refer to, and encodes the texts of queries, after checking that the fields hold vectors of the
/// same models. `mappings` has the mapping by which each index is searched: the model of a field may change at any moment.
fn encode(
    service: &SearchService,
    handles: &[impl Borrow<IndexHandle>],
    mappings: &[Arc<Mapping>],
    queries: &mut [&mut Query],
    caller: &Caller,
    cancel: &AtomicBool,
    mut timed: Option<&mut Vec<(String, Timings)>>,
) -> Result<(), EngineError> {
    let searched: Vec<&IndexHandle> = handles.iter().map(Borrow::borrow).collect();
    lookup::look_up(service, &searched, queries, caller)?;
    semantic::bind(service, mappings, queries, body::DEFAULT_SIZE, cancel, timed.as_deref_mut())?;
    resolve::name_parts(&service.models, queries);
    for (handle, mapping) in searched.iter().zip(mappings) {
        for used in resolve::own_models(queries, mapping) {
            if let Some(stored) = resolve::other_model(&service.models, mapping, &used) {
                let (shard, field, model) = (shard(service, handle), used.field, used.model_id);
                return Err(
                    SearchError::ModelMismatch { shard, field, model, stored, changeable: true }.into()
                );
            }
        }
    }
    for used in resolve::model_uses(queries) {
        for (handle, mapping) in searched.iter().zip(mappings) {
            match handle.field_model(&used.field) {
                Some(stored) if service.models.compares_with(&used.model_id, &stored) == Some(false) => {
                    return Err(SearchError::ModelMismatch {
                        shard: shard(service, handle),
                        field: used.field,
                        model: used.model_id,
                        stored: service.models.name_of(&stored).unwrap_or(stored),
                        changeable: false,
                    }
                    .into());
                }
                _ => {}
            }
            if let Some(stored) = resolve::other_model(&service.models, mapping, &used) {
                let (shard, field, model) = (shard(service, handle), used.field, used.model_id);
                return Err(
                    SearchError::ModelMismatch { shard, field, model, stored, changeable: true }.into()
                );
            }
        }
    }
    resolve::resolve(&*service.models, queries, cancel, timed)
}

/// Checks a section of the body of a search without running it.
///
/// # Errors
/// Those of a search whose body has only this section.
pub fn check_section(section: &Member) -> Result<(), EngineError> {
    let mut body = body::SearchBody { size: body::DEFAULT_SIZE, ..Default::default() };
    body.section(section, Context::new(body.size))?;
    Ok(body.validate()?)
}

/// Parses a `slice` section that divides documents by their ids; gives the number of the slice and the number of slices.
///
/// # Errors
/// As for a search with this slice; illegal argument for one that divides by a field.
pub fn parse_slice(slice: &Value) -> Result<(u32, u32), EngineError> {
    let bytes = slice.to_string();
    let (node, _) = sparrow_wire::json::read(bytes.as_bytes()).map_err(SearchError::from)?;
    let (part, parts) = paging::parse_slice(&node)?.by_id()?;
    let most = SearchLimits::default().slices_per_scroll;
    if parts as usize > most {
        return Err(EngineError::illegal_argument(format!(
            "The number of slices [{parts}] is too large. It must be less than [{most}]. This limit can be set by \
             changing the [index.max_slices_per_scroll] index level setting."
        )));
    }
    Ok((part, parts))
}

/// Parses a query in its JSON form, without encoding its texts. Positions in errors count from the query's own start.
///
/// # Errors
/// When it is not a valid query.
pub fn parse_query(query: &Value) -> Result<Query, EngineError> {
    Ok(sparrow_query::dsl::parse_value(query)?)
}

/// The error of a search whose query an index refuses.
pub fn query_error(service: &SearchService, handle: &IndexHandle, source: QueryError) -> EngineError {
    SearchError::Query { shard: shard(service, handle), source }.into()
}

/// The error of a search that shows everything or nothing, and had no time for everything.
fn time_exceeded() -> EngineError {
    EngineError::api(504, Exception::new("timeout_exception", "Time exceeded"))
}

fn is_cancelled(error: &EngineError) -> bool {
    error.es_type() == "task_cancelled_exception"
        || matches!(error, EngineError::Api(error) if error.root_causes.iter().any(|root| root.kind == "task_cancelled_exception"))
}

fn shard(service: &SearchService, handle: &IndexHandle) -> Box<Shard> {
    Box::new(Shard {
        index: handle.name.clone(),
        uuid: handle.uuid.clone(),
        node: service.node.id().to_owned(),
    })
}

/// The part of an index that is visible through the filter of an alias.
///
/// # Errors
/// When the filter does not fit the index any more.
pub fn restrict(
    service: &SearchService,
    handle: &IndexHandle,
    snapshot: &Arc<Snapshot>,
    filter: Option<&Value>,
) -> Result<Arc<Snapshot>, EngineError> {
    let Some(filter) = filter else { return Ok(Arc::clone(snapshot)) };
    // It was checked when it was stored, by a request that may have spoken another version than this one.
    let _usual = sparrow_wire::version::enter(None);
    let query = parse_query(filter)?;
    snapshot.restricted(&query).map(Arc::new).map_err(|source| query_error(service, handle, source))
}

/// Fields for query strings that name none; empty for all.
fn default_fields(settings: &Settings) -> Vec<String> {
    match settings.default_field() {
        None | Some("*") => Vec::new(),
        Some(fields) => fields.split(',').map(|field| field.trim().to_owned()).collect(),
    }
}

fn target(service: &SearchService, searched: &Searched) -> Target {
    let handle = &searched.handle;
    let settings = handle.settings();
    let default_fields = default_fields(&settings);
    Target {
        shard: shard(service, handle),
        snapshot: searched.restricted.clone().unwrap_or_else(|| handle.snapshot()),
        limits: settings.search_limits(),
        default_fields,
        excludes_vectors: settings.excludes_vectors(),
        counters: Arc::clone(&handle.counters),
        slow: SlowSearches::read(&settings),
    }
}

/// An index to search, with the part of it that is visible.
pub struct Searched {
    pub handle: Arc<IndexHandle>,
    /// The part that the filters of aliases leave visible; none if all of the index is.
    restricted: Option<Arc<Snapshot>>,
}

impl Borrow<IndexHandle> for Searched {
    fn borrow(&self) -> &IndexHandle {
        &self.handle
    }
}

/// Resolves the indices that a search request names.
fn resolve_indices(
    service: &SearchService,
    request: &Request,
    right: Right<'_>,
) -> Result<Vec<Searched>, EngineError> {
    let options = ResolveOptions::from_params(&request.params())?;
    let found = service.indices.resolve_filtered(request.part("index"), &options, right)?;
    let searched = |Resolved { handle, filter, .. }: Resolved| {
        let restricted = match filter {
            None => None,
            Some(filter) => Some(restrict(service, &handle, &handle.snapshot(), Some(&filter))?),
        };
        Ok(Searched { handle, restricted })
    };
    found.into_iter().map(searched).collect()
}
