//! A single list that is sorted by something else than the score, or cut down: `sort`, `search_after`,
//! slices, collapsed hits, `terminate_after`.

use std::collections::HashSet;
use std::time::Instant;

use sparrow_tantivy_index::query::QueryError;
use sparrow_tantivy_index::query::sorted::{
    GroupId, SortKey, SortSource, SortValue, SortedHit, SortedSearch, compare,
};

use super::plain::by_score;
use super::{Hit, Outcome, Run, total};
use crate::collapse;
use crate::error::SearchError;
use crate::profile::QueryProfile;
use crate::resolve::set_default_fields;
use crate::slices;
use crate::sort::plan::{Plan, Start};
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::sort::{Position, SortField};

impl Run<'_> {
    pub(super) fn sorted(&mut self) -> Result<Outcome, SearchError> {
        let body = self.body;
        let fields = body.sort_keys();
        let scored = body.track_scores || fields.iter().any(|key| key.name == "_score");
        let window = body.rescore.iter().map(|rescore| rescore.window).max().unwrap_or(0);
        let wanted = (body.from + body.size).max(window);
        let mut options = self.options(wanted, body.tracked_hits(), body.min_score);
        let queries = self.union_per_target();
        let mut plans: Vec<Option<Plan>> = Vec::new();
        let mut sorted_hits: Vec<(usize, SortedHit)> = Vec::new();
        let mut outcome = Outcome::default();
        let (mut counted, mut early) = (0, false);
        let mut max_score: Option<f32> = None;
        for (number, query) in queries.into_iter().enumerate() {
            let (Some(mut query), None) = (query, &self.failures[number]) else {
                plans.push(None);
                continue;
            };
            let target = &self.targets[number];
            if !target.default_fields.is_empty() {
                set_default_fields(&mut query, &target.default_fields);
            }
            let bound = self.bind(&fields, number);
            let (plan, mut search) = match bound {
                Ok(bound) => bound,
                Err(error @ (SearchError::OfShard { .. } | SearchError::Query { .. })) => {
                    self.failures[number] = Some(error);
                    plans.push(None);
                    continue;
                }
                Err(error) => return Err(error),
            };
            search.scored = scored;
            options.post_filter.clone_from(&body.post_filter);
            let started = self.profile.as_ref().map(|_| Instant::now());
            let sorted = target.snapshot.search_sorted(&query, &search, &options);
            if let (Some(profile), Some(started)) = (&mut self.profile, started) {
                let executors = sorted.as_ref().map(|docs| docs.executors).unwrap_or_default();
                profile.shards[number].queries.push(QueryProfile::new(&query, started.elapsed(), executors));
            }
            match sorted {
                Ok(docs) => {
                    counted += docs.total;
                    early |= docs.terminated_early;
                    max_score = match (max_score, docs.max_score) {
                        (Some(a), Some(b)) => Some(a.max(b)),
                        (a, b) => a.or(b),
                    };
                    sorted_hits.extend(docs.hits.into_iter().map(|hit| (number, hit)));
                    plans.push(Some(plan));
                }
                Err(source) => {
                    plans.push(None);
                    let shard = target.shard.clone();
                    if matches!(source, QueryError::Cancelled) && !self.partial {
                        return Err(SearchError::Query { shard, source });
                    }
                    self.failures[number] = Some(SearchError::Query { shard, source });
                }
            }
        }
        if self.targets.len() > 1 {
            let keys = comparable(&fields, &plans)?;
            sorted_hits.sort_by(|(a_target, a), (b_target, b)| {
                compare(keys, &a.values, &b.values).then(a_target.cmp(b_target)).then(a.seq_no.cmp(&b.seq_no))
            });
            if body.collapse.is_some() {
                let mut seen = HashSet::new();
                sorted_hits.retain(|(_, hit)| seen.insert(GroupId::of(&hit.group)));
            }
        }
        let mut page: Vec<PageHit> = sorted_hits
            .into_iter()
            .map(|(target, sorted)| {
                let score = if scored { sorted.score } else { f32::NAN };
                let hit = Hit { target, addr: sorted.addr, seq_no: sorted.seq_no, score, rank: None };
                PageHit { hit, values: sorted.values, group: sorted.group }
            })
            .collect();
        for rescore in &body.rescore {
            let mut hits: Vec<&mut Hit> = page.iter_mut().map(|shown| &mut shown.hit).collect();
            self.rescore(rescore, &mut hits)?;
            page.sort_by(|a, b| by_score(&a.hit, &b.hit));
            max_score = page.first().map(|shown| shown.hit.score);
        }
        let shows_sort = body.shows_sort();
        for PageHit { hit, values, group } in page.into_iter().skip(body.from).take(body.size) {
            if let (true, Some(Some(plan))) = (shows_sort, plans.get(hit.target)) {
                outcome.sort.push(plan.write(&values, hit.target, hit.seq_no));
            }
            if body.collapse.is_some() {
                outcome.groups.push(group);
            }
            outcome.hits.push(hit);
            outcome.last =
                Some(Position { values: values.into_vec(), target: hit.target, seq_no: hit.seq_no });
        }
        outcome.total = total(counted, true, body.tracked_hits());
        // As a list by score: the highest of all, not of this page.
        let leads_by_score = fields.first().is_some_and(|key| key.name == "_score");
        outcome.max_score = max_score.filter(|_| (leads_by_score || body.track_scores) && body.size > 0);
        outcome.terminated_early = (body.terminate_after > 0).then_some(early);
        Ok(outcome)
    }

    /// Binds the search to one index: its sort plan, and the search that the index runs.
    fn bind(&self, fields: &[SortField], number: usize) -> Result<(Plan, SortedSearch), SearchError> {
        let target = &self.targets[number];
        let mapping = target.snapshot.mapping();
        let body = self.body;
        let plan = Plan::new(fields, mapping, target.snapshot.scope(), &target.shard)?;
        let after = start(body).map(|start| plan.start(&start, fields, number)).transpose()?;
        let slice =
            body.slice.as_ref().map(|slice| slices::bind(slice, mapping, &target.shard)).transpose()?;
        let collapse =
            body.collapse.as_ref().map(|by| collapse::column(by, mapping, &target.shard)).transpose()?;
        let keys = plan.keys.clone();
        let terminate_after = (body.terminate_after > 0).then_some(body.terminate_after);
        let search =
            SortedSearch { keys, after, slice, collapse, terminate_after, ..SortedSearch::default() };
        Ok((plan, search))
    }
}

/// A hit that may be on the page, with its sort values and collapse value.
struct PageHit {
    hit: Hit,
    values: Box<[SortValue]>,
    group: SortValue,
}

/// The sort keys by which hits of all indices are compared.
///
/// # Errors
/// When a field is text in one index and a number in another.
fn comparable<'a>(fields: &[SortField], plans: &'a [Option<Plan>]) -> Result<&'a [SortKey], SearchError> {
    let mut plans = plans.iter().flatten();
    let Some(first) = plans.next() else { return Ok(&[]) };
    for other in plans {
        for ((a, b), field) in first.keys.iter().zip(&other.keys).zip(fields) {
            let (a, b) = (type_name(a), type_name(b));
            if (a == "STRING") != (b == "STRING") {
                return Err(SearchError::illegal(format!(
                    "Can't sort on field [{}]; the field has incompatible sort types: [{a}] and [{b}] across \
                     shards!",
                    field.name
                )));
            }
        }
    }
    Ok(&first.keys)
}

fn type_name(key: &SortKey) -> &'static str {
    use sparrow_tantivy_index::query::sorted::ColumnKind;
    match &key.source {
        SortSource::Score => "FLOAT",
        SortSource::Script(_) | SortSource::Distance(..) => "DOUBLE",
        SortSource::SeqNo => "LONG",
        SortSource::Column(column) => match column.kind {
            ColumnKind::Keyword => "STRING",
            ColumnKind::Double => "DOUBLE",
            ColumnKind::Long | ColumnKind::Unsigned | ColumnKind::Nanos | ColumnKind::Millis => "LONG",
        },
    }
}

/// The position behind which the hits begin; `None` to begin at the first.
fn start(body: &SearchBody) -> Option<Start> {
    match (&body.position, &body.search_after) {
        (Some(position), _) => Some(Start::Position(position.clone())),
        (None, Some(values)) => Some(Start::Values(values.clone())),
        (None, None) => None,
    }
}
