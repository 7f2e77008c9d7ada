//! Runs a search over the indices it names: union of query and kNN, fusion, merging.

mod aggregated;
mod best_chunks;
mod calibrated;
mod diversified;
mod fused;
mod key;
mod plain;
mod reranked;
mod sorted;
mod union;

pub use self::diversified::chosen;
pub use self::fused::{Branch, Origin};
pub use self::key::Key;
pub use self::reranked::scores_of_texts;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use sparrow_aggregations::Collected;
use sparrow_query::{Query, QueryKind};
use sparrow_runtime::attempt;
use sparrow_tantivy_index::query::sorted::SortValue;
use sparrow_tantivy_index::query::{QueryError, SearchOptions, TopDocs, TotalHits, TotalRelation};

use super::error::SearchError;
use super::limits;
use super::profile::{Profile, QueryProfile};
use super::resolve::set_default_fields;
use super::target::{Hit, Target, stats_groups};
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::sort::Position;

/// What a search found.
#[derive(Default)]
pub struct Outcome {
    /// Hits of the requested page.
    pub hits: Vec<Hit>,
    /// Number of hits, and whether it is exact; `None` if they are not counted.
    pub total: Option<(u64, bool)>,
    /// Highest score of any hit; `None` if there is no hit or no score.
    pub max_score: Option<f32>,
    /// What each index collected for the aggregations, if any are asked for.
    pub aggregated: Option<Vec<Collected>>,
    /// The `sort` member of each hit; empty where hits show none.
    pub sort: Vec<Box<str>>,
    /// Collapse value of each hit, if hits are collapsed.
    pub groups: Vec<SortValue>,
    /// Position of the last hit of the page, behind which the next page begins.
    pub last: Option<Position>,
    /// Whether the search stopped at `terminate_after`; `None` if the request sets none.
    pub terminated_early: Option<bool>,
    /// One error for each index that could not be searched.
    pub failures: Vec<SearchError>,
    /// Whether the time limit was reached before everything had been searched.
    pub timed_out: bool,
    /// Timings of the search, if the request asks for a profile.
    pub profile: Option<Box<Profile>>,
    /// The lists that were fused, if the request wants its hits explained.
    pub branch: Option<Branch>,
}

/// The query that each index runs for one list, before any fusion: `query` joined with the nearest neighbours
/// that the index holds.
pub fn queries(targets: &[Target], body: &SearchBody, cancel: &Arc<AtomicBool>) -> Vec<Option<Query>> {
    let failures = targets.iter().map(|_| None).collect();
    let mut run = Run { targets, failures, cancel, body, profile: None, partial: false };
    run.union_per_target()
}

/// Runs a search whose texts are encoded already.
///
/// # Errors
/// When every index refuses the query, or the caller went away ([`QueryError::Cancelled`]). A search with a
/// time limit instead returns what it has found by then.
pub fn execute(
    targets: &[Target],
    body: &SearchBody,
    cancel: &Arc<AtomicBool>,
) -> Result<Outcome, SearchError> {
    limits::check(targets, body)?;
    let _running: Vec<_> = targets.iter().map(|target| target.counters.query.begin()).collect();
    let groups = stats_groups(targets, &body.stats);
    let _of_groups: Vec<_> = groups.iter().flatten().map(|group| group.query.begin()).collect();
    let profile = body.profile.then(|| Box::new(Profile::new(targets.iter().map(|target| &*target.shard))));
    let partial = body.timeout.is_some();
    let failures = targets.iter().map(|_| None).collect();
    let mut run = Run { targets, failures, cancel, body, profile, partial };
    let mut outcome = match &body.fusion {
        Some(fusion) => run.fused(fusion)?,
        None if body.is_sorted() => run.sorted()?,
        None => run.plain()?,
    };
    // A scroll aggregates with its first page only.
    if let (Some(aggregations), false, None) = (&body.aggs, targets.is_empty(), &body.position) {
        outcome.aggregated = Some(run.aggregated(aggregations));
    }
    let cancelled =
        |error: &SearchError| matches!(error, SearchError::Query { source: QueryError::Cancelled, .. });
    let failed = targets.iter().zip(&groups).zip(&run.failures).filter(|(_, failure)| failure.is_some());
    for ((target, groups), _) in failed {
        if !attempt::is_given_up() {
            target.counters.query_failure.fetch_add(1, Relaxed);
            groups.iter().for_each(|group| group.failed());
        }
    }
    let mut failures: Vec<SearchError> = run.failures.into_iter().flatten().collect();
    if partial && cancel.load(Relaxed) {
        // What was found so far is the answer.
        failures.retain(|error| !cancelled(error));
        outcome.timed_out = true;
        outcome.total = outcome.total.map(|(counted, _)| (counted, false));
    }
    if let Some(place) = failures.iter().position(cancelled) {
        return Err(failures.swap_remove(place));
    }
    if !failures.is_empty() && failures.len() == targets.len() {
        return Err(failures.swap_remove(0));
    }
    outcome.failures = failures;
    outcome.profile = run.profile;
    Ok(outcome)
}

/// A search in progress. An index that fails is left out of everything that follows.
struct Run<'a> {
    targets: &'a [Target],
    failures: Vec<Option<SearchError>>,
    cancel: &'a Arc<AtomicBool>,
    body: &'a SearchBody,
    profile: Option<Box<Profile>>,
    /// Whether hits found before the time limit are returned when it is reached.
    partial: bool,
}

/// Hits of one list over all indices, best first.
struct List {
    hits: Vec<Hit>,
    total: u64,
    exact: bool,
    max_score: Option<f32>,
}

impl Run<'_> {
    fn options(&self, size: usize, tracked: TotalHits, min_score: Option<f32>) -> SearchOptions {
        SearchOptions {
            size,
            min_score,
            track_total_hits: tracked,
            cancel: Some(Arc::clone(self.cancel)),
            partial: self.partial,
            post_filter: self.body.post_filter.clone(),
        }
    }

    /// Runs a query on every index and merges the hits: highest score first, then by index, then in the order
    /// the documents were written.
    fn list(&mut self, options: &SearchOptions, query: impl Fn(usize) -> Option<Query>) -> List {
        let mut list = List { hits: Vec::new(), total: 0, exact: true, max_score: None };
        for (number, target) in self.targets.iter().enumerate() {
            if self.failures[number].is_some() {
                continue;
            }
            let Some(mut query) = query(number) else { continue };
            if !target.default_fields.is_empty() {
                set_default_fields(&mut query, &target.default_fields);
            }
            let started = self.profile.as_ref().map(|_| Instant::now());
            let result = target.snapshot.search(&query, options);
            if let (Some(profile), Some(started)) = (&mut self.profile, started) {
                let executors = result.as_ref().map(|docs| docs.executors).unwrap_or_default();
                profile.shards[number].queries.push(QueryProfile::new(&query, started.elapsed(), executors));
            }
            match result {
                Ok(top) => list.extend(number, &top),
                Err(source) => {
                    let shard = target.shard.clone();
                    self.failures[number] = Some(SearchError::Query { shard, source });
                }
            }
        }
        if self.targets.len() > 1 {
            list.hits.sort_by(|a, b| {
                b.score.total_cmp(&a.score).then(a.target.cmp(&b.target)).then(a.seq_no.cmp(&b.seq_no))
            });
            list.hits.truncate(options.size);
        }
        list
    }
}

impl List {
    fn extend(&mut self, target: usize, top: &TopDocs) {
        self.hits.extend(top.hits.iter().map(|hit| Hit {
            target,
            addr: hit.addr,
            seq_no: hit.seq_no,
            score: hit.score,
            rank: None,
        }));
        self.total += top.total;
        self.exact &= top.relation == TotalRelation::Eq;
        self.max_score = match (self.max_score, top.max_score) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        };
    }
}

/// Copies a kNN clause for another number of neighbours; `None` if that is 0.
fn with_k(query: &Query, k: usize) -> Option<Query> {
    let mut query = query.clone();
    if let QueryKind::Knn(clause) = &mut query.kind {
        if k == 0 {
            return None;
        }
        clause.k = k;
        clause.num_candidates = clause.num_candidates.max(k);
    }
    Some(query)
}

/// The hit count as it is shown, capped at the request's `track_total_hits` limit, and whether it is exact.
fn total(counted: u64, exact: bool, tracked: TotalHits) -> Option<(u64, bool)> {
    match tracked {
        TotalHits::Off => None,
        TotalHits::UpTo(limit) if counted > limit => Some((limit, false)),
        TotalHits::Exact | TotalHits::UpTo(_) => Some((counted, exact)),
    }
}
