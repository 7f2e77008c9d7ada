//! Several ranked lists fused into one, to any depth.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustc_hash::FxHashSet;
use sparrow_index::DocAddress;
use sparrow_index::query::sorted::{GroupId, SortValue};
use sparrow_index::query::{QueryError, TotalHits};
use sparrow_query::{Query, QueryKind, VectorKind, walk};
use sparrow_types::processors;

use super::calibrated::fuse_calibrated;
use super::plain::{boosted, by_score};
use super::{Hit, List, Outcome, Run, total, with_k};
use crate::body::SearchBody;
use crate::collapse::Collapse;
use crate::error::SearchError;
use crate::fusion::{Fused, Normalizer, Ranked, Ties, fuse};
use sparrow_call::helpers::share;
use crate::profile::timed;
use crate::rescore::Rescore;
use crate::retriever::{Form, Fusion, Knn, Retriever, Standard};
use crate::window::windows;

/// A list of the tree, best first.
#[derive(Debug, Default)]
pub struct Branch {
    /// Documents and their scores, no more than the list above reads.
    pub hits: Vec<(Key, f32)>,
    /// Neighbours that the list above does not read; none of another list.
    pub(super) behind: Vec<Key>,
    /// Number of documents that match, of a leaf.
    pub(super) total: u64,
    /// Whether `total` is exact.
    pub(super) exact: bool,
    /// Whether no hit follows, however far the list is read.
    pub(super) ends: bool,
    /// Where the hits of a fused list come from, if the request wants them explained.
    pub origins: Vec<Origin>,
    /// The lists that it is fused from; none of a leaf.
    pub inputs: Vec<Branch>,
}

/// Where a hit of a fused list comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The document.
    pub doc: Key,
    /// How far the lists were read that it was fused from.
    pub window: usize,
    /// The document's fused score, from the lists as far as that window.
    pub score: f32,
    /// The score that it is shown with: not above the one before it.
    pub shown: f32,
}

/// A fused list, window by window.
#[derive(Default)]
struct Pages {
    /// Documents that have their place, those below the lowest score too.
    placed: Vec<Key>,
    hits: Vec<Origin>,
    /// Whether the last window holds documents that have no place in it.
    is_cut: bool,
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
            (Some(filter), Form::Retriever) => Some(self.passed(|_| Some(filter.clone()))),
            _ => None,
        };
        let passes = |key: &Key| passed.as_ref().is_none_or(|passed| key.is_in(passed));
        hits.retain(|(key, _)| passes(key));
        let total = match fusion.least() {
            Some(_) => total(hits.len() as u64, branch.ends, tracked),
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
                Ok(Branch::leaf(list, limit, is_open(query)))
            }
            Retriever::Knn(Knn { search, min_score, .. }) => {
                let mut options = self.options(search.k, tracked, *min_score);
                if form == Form::Retriever {
                    options.post_filter = None;
                }
                let (targets, body) = (self.targets, self.body);
                let mut list = self.list(&options, |number| {
                    with_k(&search.query, search.k).map(|query| boosted(targets, body, number, query))
                });
                let behind: Vec<Key> =
                    list.hits.split_off(list.hits.len().min(limit)).iter().map(Key::of).collect();
                // An index counts its own neighbours; the list holds those of all.
                list.total = list.hits.len() as u64;
                list.exact = true;
                let mut branch = Branch::leaf(list, limit, is_open(&search.query));
                branch.total += behind.len() as u64;
                branch.ends &= behind.is_empty();
                branch.behind = behind;
                Ok(branch)
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
        let hits: Vec<_> = outcome.hits.iter().map(|hit| (Key::of(hit), hit.score)).collect();
        let ends = hits.len() < body.size;
        Ok(Branch { hits, total, exact, ends, ..Branch::default() })
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
            return Ok(self.fused_branch(fusion, hits, false, inputs, longest));
        }
        // Beside `rank`, a lowest score is that of the search.
        let least = match fusion.form {
            Form::Rank => self.body.min_score,
            Form::Retriever => fusion.min_score,
        };
        let mut pages = Pages::default();
        timed(self.profile.as_mut().map(|profile| &mut profile.fuse), || {
            for window in windows {
                pages.add(&fuse_inputs(fusion, &inputs, window), window, least);
            }
        });
        Ok(self.fused_branch(fusion, pages.hits, pages.is_cut, inputs, longest))
    }

    fn fused_branch(
        &self,
        fusion: &Fusion,
        placed: Vec<Origin>,
        is_cut: bool,
        inputs: Vec<Branch>,
        longest: usize,
    ) -> Branch {
        let hits = placed.iter().map(|hit| (hit.doc, hit.shown)).collect();
        // A window that the request names is the end, and so is the longest.
        let is_last = longest >= fusion.window.most();
        let ends =
            is_last || (!is_cut && inputs.iter().all(|input| input.ends && input.hits.len() <= longest));
        let origins = if self.body.explain { placed } else { Vec::new() };
        Branch { hits, ends, origins, inputs, ..Branch::default() }
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

    /// The documents that pass a filter, per index and segment.
    pub(super) fn passed(&mut self, filter: impl Fn(usize) -> Option<Query>) -> Vec<Vec<Vec<u64>>> {
        let mut passed = Vec::with_capacity(self.targets.len());
        for (number, target) in self.targets.iter().enumerate() {
            let matching = match (&self.failures[number], filter(number)) {
                (Some(_), _) | (None, None) => Ok(Vec::new()),
                (None, Some(filter)) => target.snapshot.matching_until(&filter, Some(self.cancel)),
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
    /// A list that was read as far as `limit`. `is_open` says whether it may find more where it is read further.
    fn leaf(list: List, limit: usize, is_open: bool) -> Self {
        let hits: Vec<_> = list.hits.iter().map(|hit| (Key::of(hit), hit.score)).collect();
        let ends = hits.len() < limit || (!is_open && list.exact && list.total == hits.len() as u64);
        Self { hits, total: list.total, exact: list.exact, ends, ..Self::default() }
    }
}

impl Pages {
    /// Adds what is not in the list yet, up to a length. Hits below the lowest score are left out, by their score as it
    /// is in this window.
    fn add(&mut self, fused: &[Fused<Key>], length: usize, least: Option<f32>) {
        let placed: FxHashSet<Key> = self.placed.iter().copied().collect();
        // Scores of a wider window may be higher than the last of the page before; they are shown as they follow.
        let mut lowest = self.hits.last().map_or(f32::MAX, |hit| hit.shown);
        self.is_cut = false;
        for hit in fused.iter().filter(|hit| !placed.contains(&hit.doc)) {
            if self.placed.len() >= length {
                self.is_cut = true;
                break;
            }
            self.placed.push(hit.doc);
            if least.is_none_or(|least| hit.score >= least) {
                lowest = lowest.min(hit.score);
                self.hits.push(Origin { doc: hit.doc, window: length, score: hit.score, shown: lowest });
            }
        }
    }
}

/// Whether a clause of a query finds more neighbours the more hits are wanted.
pub(super) fn is_open(query: &Query) -> bool {
    let mut found = false;
    walk::visit(query, &mut |clause| {
        found |= match &clause.kind {
            QueryKind::Knn(clause) => clause.default_k.is_some(),
            QueryKind::Semantic(clause) => clause.part != Some(VectorKind::Sparse),
            _ => false,
        };
    });
    found
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

    pub(super) fn is_in(&self, sets: &[Vec<Vec<u64>>]) -> bool {
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
