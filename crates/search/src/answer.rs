//! Runs a search, and writes its response.

use std::time::Instant;

use sparrow_catalog::counters::Timed;
use sparrow_catalog::slow_log::Phase;
use sparrow_request::error::{EngineError, Exception};
use sparrow_runtime::work;

use super::deadline::{Deadline, is_cancelled};
use super::encoding::ModelTimings;
use super::error::SearchError;
use super::execute::{self, Outcome};
use super::hits::{Read, Reader};
use super::response::{self, OpenIds};
use super::target::{self, Target};
use super::{suggestions, top_hits};
use crate::service::SearchService;
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::sort::Position;
use sparrow_search_body::uri::Presentation;

/// The response of a search.
pub struct Answered {
    /// The response body as JSON.
    pub bytes: Vec<u8>,
    /// Sort values of the last hit; none if there is no hit or hits are not sorted.
    pub last: Option<Position>,
}

/// Runs a search whose texts are encoded, and writes the response. `encoded` has the time that encoding took if the search is
/// profiled. `source` is the request's body, for the slow log.
#[allow(clippy::too_many_arguments)]
pub fn answer(
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
            aggregations
                .check_buckets(service.cluster.max_buckets())
                .map_err(|source| SearchError::Reduce { source })?;
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

/// The error of a search that shows everything or nothing, and had no time for everything.
fn time_exceeded() -> EngineError {
    EngineError::api(504, Exception::new("timeout_exception", "Time exceeded"))
}
