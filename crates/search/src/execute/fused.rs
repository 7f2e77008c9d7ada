//! Several ranked lists fused into one, to any depth.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustc_hash::FxHashSet;
use sparrow_index::DocAddress;
use sparrow_index::query::sorted::{GroupId, SortValue};
use sparrow_index::query::{QueryError, TotalHits};
use sparrow_query::Query;
use sparrow_types::processors;

use super::calibrated::fuse_calibrated;
use super::plain::{boosted, by_score};
use super::{Hit, List, Outcome, Run, total, with_k};
use crate::body::SearchBody;
use crate::collapse::Collapse;
use crate::error::SearchError;
use crate::fusion::{Fused, Normalizer, Ranked, Ties, fuse};
use crate::helpers::share;
use crate::profile::timed;
use crate::rescore::Rescore;
use crate::retriever::{Form, Fusion, Knn, Retriever, Standard};
use crate::window::windows;

/// A list of the tree, best first.
#[derive(Debug, Default)]
pub struct Branch {
    /// Documents and their scores, no more than the list above reads.
    pub hits: Vec<(Key, f32)>,
    /// Number of documents that match, of a leaf.
    total: u64,
    /// Whether `total` is exact.
    exact: bool,
    /// The lists that it is fused from; none of a leaf.
    pub inputs: Vec<Branch>,
}

/// Documents from which on lists take longer than it takes to get help.
const WORTH_SHARING: u64 = 20_000;

/// A list, and the indices that failed while it was made.
struct TriedList {
    branch: Result<Branch, SearchError>,
    failures: Vec<Option<SearchError>>,
}

impl Run<'_> {
    pub(super) fn fused(&mut self, fusion: &Fusion) -> Result<Outcome, SearchError> {
        let body = self.body;
        let tracked = body.tracked_hits();
        let wanted = body.from.saturating_add(body.size);
        let branch = self.fuse(fusion, wanted, tracked)?;
        let mut hits = branch.hits.clone();
        // A list of `rank` has passed the filter already.
        let passed = match (&body.post_filter, fusion.form) {
            (Some(filter), Form::Retriever) => Some(self.passed(&filter.clone())),
            _ => None,
        };
        let passes = |key: &Key| passed.as_ref().is_none_or(|passed| key.is_in(passed));
        hits.retain(|(key, _)| passes(key));
        let least = fusion.min_score.or(fusion.rerank.as_ref().and_then(|rerank| rerank.min_score));
        let total = match least {
            Some(_) => total(hits.len() as u64, true, tracked),
            None => self.union_total(fusion, &branch, &passes, tracked),
        };
        let shows_rank = fusion.form == Form::Rank;
        let max_score = hits.first().map(|hit| hit.1).filter(|_| !shows_rank && body.size > 0);
        let mut groups = Vec::new();
        if let Some(collapse) = &body.collapse {
            let kept = self.collapsed(collapse, hits)?;
            groups = kept.iter().skip(body.from).take(body.size).map(|hit| hit.2.clone()).collect();
            hits = kept.into_iter().map(|(key, score, _)| (key, score)).collect();
        }
        let hits = hits
            .iter()
            .zip(1..)
            .filter(|((_, score), _)| body.min_score.is_none_or(|least| *score >= least))
            .skip(body.from)
            .take(body.size)
            .map(|((key, score), rank)| key.hit(*score, shows_rank.then_some(rank)))
            .collect();
        let branch = body.explain.then_some(branch);
        Ok(Outcome { hits, groups, total, max_score, branch, ..Outcome::default() })
    }

    /// The best `limit` hits of a retriever.
    fn branch(
        &mut self,
        retriever: &Retriever,
        limit: usize,
        tracked: TotalHits,
        form: Form,
    ) -> Result<Branch, SearchError> {
        match retriever {
            Retriever::Standard(Standard { query, min_score, search: Some(search), .. }) => {
                let mut body = (**search).clone();
                body.query = Some(query.clone());
                body.min_score = *min_score;
                body.size = limit;
                body.track_total_hits = Some(tracked);
                body.indices_boost.clone_from(&self.body.indices_boost);
                self.ordered(&body)
            }
            Retriever::Standard(Standard { query, min_score, .. }) => {
                let mut options = self.options(limit, tracked, *min_score);
                if form == Form::Retriever {
                    options.post_filter = None;
                }
                let (targets, body) = (self.targets, self.body);
                let list = self.list(&options, |number| Some(boosted(targets, body, number, query.clone())));
                Ok(Branch::leaf(list))
            }
            Retriever::Knn(Knn { search, min_score, .. }) => {
                let limit = search.k.min(limit);
                let mut options = self.options(limit, tracked, *min_score);
                if form == Form::Retriever {
                    options.post_filter = None;
                }
                let (targets, body) = (self.targets, self.body);
                let mut list = self.list(&options, |number| {
                    with_k(&search.query, search.k).map(|query| boosted(targets, body, number, query))
                });
                // An index counts its own neighbours; the list holds those of all.
                list.total = if list.hits.len() < limit { list.hits.len() } else { search.k } as u64;
                list.exact = true;
                Ok(Branch::leaf(list))
            }
            Retriever::Fused(fusion) => self.fuse(fusion, limit, tracked),
        }
    }

    /// A list in another order than by score.
    fn ordered(&mut self, body: &SearchBody) -> Result<Branch, SearchError> {
        let mut run = Run {
            targets: self.targets,
            failures: std::mem::take(&mut self.failures),
            cancel: self.cancel,
            body,
            profile: self.profile.take(),
            partial: self.partial,
        };
        let outcome = run.sorted();
        (self.failures, self.profile) = (run.failures, run.profile);
        let outcome = outcome?;
        let (total, exact) = outcome.total.unwrap_or((0, false));
        let hits = outcome.hits.iter().map(|hit| (Key::of(hit), hit.score)).collect();
        Ok(Branch { hits, total, exact, inputs: Vec::new() })
    }

    /// Scores the first hits of a list again.
    fn rescored(&self, passes: &[Rescore], branch: &mut Branch) -> Result<(), SearchError> {
        let mut hits: Vec<Hit> = branch.hits.iter().map(|(key, score)| key.hit(*score, None)).collect();
        for pass in passes {
            self.rescore(pass, &mut hits.iter_mut().collect::<Vec<_>>())?;
            hits.sort_by(by_score);
        }
        branch.hits = hits.iter().map(|hit| (Key::of(hit), hit.score)).collect();
        Ok(())
    }

    /// Keeps the first hit of each group, and says which group each is of.
    fn collapsed(
        &self,
        collapse: &Collapse,
        hits: Vec<(Key, f32)>,
    ) -> Result<Vec<(Key, f32, SortValue)>, SearchError> {
        let mut columns = Vec::with_capacity(self.targets.len());
        for target in self.targets {
            columns.push(collapse.column(target.snapshot.mapping(), &target.shard)?);
        }
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        for (key, score) in hits {
            let target = &self.targets[key.target];
            let values = target
                .snapshot
                .column_values(DocAddress::new(key.segment, key.doc), &columns[key.target])
                .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
            let group = values.into_iter().next().unwrap_or(SortValue::Null);
            if seen.insert(GroupId::of(&group)) {
                kept.push((key, score, group));
            }
        }
        Ok(kept)
    }

    /// The best hits of a fusion, at least `wanted` if there are so many within its window.
    fn fuse(&mut self, fusion: &Fusion, wanted: usize, tracked: TotalHits) -> Result<Branch, SearchError> {
        let windows = windows(fusion.window, wanted);
        let longest = windows.last().copied().unwrap_or_default();
        let mut inputs = Vec::with_capacity(fusion.inputs.len());
        let mut failures = Vec::new();
        let mut ready = self.at_once(fusion, longest, tracked).into_iter();
        for input in &fusion.inputs {
            let mut branch = match ready.next() {
                Some(list) => {
                    self.failures = list.failures;
                    list.branch?
                }
                None => self.branch(&input.retriever, longest, tracked, fusion.form)?,
            };
            if !input.rescore.is_empty() {
                self.rescored(&input.rescore, &mut branch)?;
            }
            inputs.push(branch);
            if fusion.form == Form::Retriever {
                // What failed here is no reason to leave an index out of the next list.
                let mut failed = self.failures.iter_mut().filter_map(Option::take);
                let Some(error) = failed.next() else { continue };
                failed.for_each(drop);
                if matches!(error, SearchError::Query { source: QueryError::Cancelled, .. }) {
                    if self.partial {
                        continue;
                    }
                    return Err(error);
                }
                // All lists are tried, so that all that fail are named.
                failures.push((input.retriever.kind(), error));
            }
        }
        if !failures.is_empty() {
            return Err(SearchError::Retrievers { kind: fusion.kind(), failures });
        }
        if let (Some(rerank), Some(list)) = (&fusion.rerank, inputs.first()) {
            let hits = self.reranked(rerank, list, &windows)?;
            return Ok(Branch { hits, total: 0, exact: true, inputs });
        }
        let mut hits: Vec<(Key, f32)> = Vec::new();
        timed(self.profile.as_mut().map(|profile| &mut profile.fuse), || {
            for window in windows {
                let fused = fuse_inputs(fusion, &inputs, window);
                extend(&mut hits, &fused, window);
            }
        });
        if let Some(least) = fusion.min_score {
            hits.retain(|hit| hit.1 >= least);
        }
        Ok(Branch { hits, total: 0, exact: true, inputs })
    }

    /// The lists of a fusion, if processors idle that can take some of them; else none, as each is to be made when it is its turn.
    fn at_once(&self, fusion: &Fusion, limit: usize, tracked: TotalHits) -> Vec<TriedList> {
        let helpers = processors::idle().min(fusion.inputs.len().saturating_sub(1));
        let documents: u64 = self.targets.iter().map(|target| target.snapshot.num_docs()).sum();
        // A profile says what each list took, and a list of `rank` leaves out indices that failed in one before.
        if helpers == 0
            || documents < WORTH_SHARING
            || self.profile.is_some()
            || fusion.form == Form::Rank
            || self.failures.iter().any(Option::is_some)
        {
            return Vec::new();
        }
        let next = AtomicUsize::new(0);
        let make = |is_helper: bool| {
            let mut tried = Vec::new();
            while !(is_helper && processors::are_overloaded()) {
                // From the last one on: that is where lists of neighbours are, which take longest.
                let Some(number) = fusion.inputs.len().checked_sub(1 + next.fetch_add(1, Relaxed)) else {
                    break;
                };
                let failures = self.targets.iter().map(|_| None).collect();
                let mut run = Run { failures, profile: None, ..*self };
                let branch = run.branch(&fusion.inputs[number].retriever, limit, tracked, fusion.form);
                tried.push((number, TriedList { branch, failures: run.failures }));
            }
            tried
        };
        let mut lists: Vec<_> = share(helpers, make).into_iter().flatten().collect();
        lists.sort_unstable_by_key(|(number, _)| *number);
        lists.into_iter().map(|(_, list)| list).collect()
    }

    /// Number of documents that any leaf finds, had the lists no window.
    fn union_total(
        &mut self,
        fusion: &Fusion,
        branch: &Branch,
        passes: &dyn Fn(&Key) -> bool,
        tracked: TotalHits,
    ) -> Option<(u64, bool)> {
        let limit = match tracked {
            TotalHits::Off => return None,
            TotalHits::Exact => u64::MAX,
            TotalHits::UpTo(limit) => limit,
        };
        let filtered = self.body.post_filter.is_some();
        let mut leaves = Vec::new();
        branch.leaves(&mut leaves);
        // A total beyond the limit is told as the limit, and as inexact.
        let is_beyond = |leaf: &Branch| leaf.total > limit || (leaf.total == limit && !leaf.exact);
        if !filtered && leaves.iter().any(|leaf| is_beyond(leaf)) {
            return Some((limit, false));
        }
        if leaves.iter().all(|leaf| leaf.exact && leaf.total == leaf.hits.len() as u64) {
            let union: FxHashSet<&Key> = leaves
                .iter()
                .flat_map(|leaf| &leaf.hits)
                .map(|hit| &hit.0)
                .filter(|key| passes(key))
                .collect();
            return total(union.len() as u64, true, tracked);
        }
        // Some list goes on behind its window, so that the lists overlap by an unknown number.
        let any: Query = fusion.any();
        let options = self.options(0, tracked, None);
        let list = self.list(&options, |_| Some(any.clone()));
        total(list.total, list.exact, tracked)
    }

    /// The documents that pass a filter, per index and segment.
    fn passed(&mut self, filter: &Query) -> Vec<Vec<Vec<u64>>> {
        let mut passed = Vec::with_capacity(self.targets.len());
        for (number, target) in self.targets.iter().enumerate() {
            let matching = match self.failures[number] {
                Some(_) => Ok(Vec::new()),
                None => target.snapshot.matching_until(filter, Some(self.cancel)),
            };
            passed.push(matching.unwrap_or_else(|source| {
                let shard = target.shard.clone();
                self.failures[number] = Some(SearchError::Query { shard, source });
                Vec::new()
            }));
        }
        passed
    }
}

impl Branch {
    fn leaf(list: List) -> Self {
        let hits = list.hits.iter().map(|hit| (Key::of(hit), hit.score)).collect();
        Self { hits, total: list.total, exact: list.exact, inputs: Vec::new() }
    }

    fn leaves<'a>(&'a self, into: &mut Vec<&'a Branch>) {
        match self.inputs.is_empty() {
            true => into.push(self),
            false => self.inputs.iter().for_each(|input| input.leaves(into)),
        }
    }
}

/// Fuses lists as far as a window goes.
fn fuse_inputs(fusion: &Fusion, inputs: &[Branch], window: usize) -> Vec<Fused<Key>> {
    if fusion.is_calibrated() {
        let hits: Vec<&[(Key, f32)]> =
            inputs.iter().map(|branch| &branch.hits[..branch.hits.len().min(window)]).collect();
        return fuse_calibrated(&fusion.inputs, &hits);
    }
    let lists: Vec<Ranked<'_, Key>> = fusion
        .inputs
        .iter()
        .zip(inputs)
        .map(|(input, branch)| Ranked {
            hits: &branch.hits[..branch.hits.len().min(window)],
            weight: input.weight,
            normalizer: input.normalizer,
        })
        .collect();
    // All that is below the mean of its lists scores 0: then the ranks still say what is better.
    let is_cut = lists.iter().any(|list| list.normalizer == Normalizer::ZScore);
    let ties = match fusion.form {
        Form::Retriever if !is_cut => Ties::Document,
        Form::Rank | Form::Retriever => Ties::Rank,
    };
    fuse(fusion.method, ties, &lists)
}

/// Adds what is not in the list yet, up to a length.
fn extend(hits: &mut Vec<(Key, f32)>, fused: &[Fused<Key>], length: usize) {
    if hits.is_empty() {
        hits.extend(fused.iter().take(length).map(|hit| (hit.doc, hit.score)));
        return;
    }
    let listed: FxHashSet<Key> = hits.iter().map(|hit| hit.0).collect();
    // Scores of a wider window may be higher than the last of the page before; they are shown as they follow.
    let mut least = hits.last().map_or(f32::MAX, |hit| hit.1);
    for hit in fused.iter().filter(|hit| !listed.contains(&hit.doc)) {
        if hits.len() >= length {
            break;
        }
        least = least.min(hit.score);
        hits.push((hit.doc, least));
    }
}

/// A document across the lists of one search, ordered as ties are broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    target: usize,
    seq_no: u64,
    segment: u32,
    doc: u32,
}

impl Key {
    /// Position of its index in the list of targets.
    pub fn target(self) -> usize {
        self.target
    }

    /// Where the document is.
    pub(super) fn addr(self) -> DocAddress {
        DocAddress::new(self.segment, self.doc)
    }

    pub fn of(hit: &Hit) -> Self {
        Self { target: hit.target, seq_no: hit.seq_no, segment: hit.addr.segment_ord, doc: hit.addr.doc_id }
    }

    fn hit(self, score: f32, rank: Option<u32>) -> Hit {
        Hit { target: self.target, addr: self.addr(), seq_no: self.seq_no, score, rank }
    }

    fn is_in(&self, sets: &[Vec<Vec<u64>>]) -> bool {
        let words = sets.get(self.target).and_then(|segments| segments.get(self.segment as usize));
        words
            .and_then(|words| words.get(self.doc as usize / 64))
            .is_some_and(|word| word >> (self.doc % 64) & 1 == 1)
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |key: &Self| (key.target, key.seq_no, key.segment, key.doc);
        order(self).cmp(&order(other))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
