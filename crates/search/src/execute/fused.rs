//! Several ranked lists fused into one, to any depth.

use std::collections::HashSet;

use rustc_hash::FxHashSet;
use sparrow_query::{Query, QueryKind, VectorKind, walk};
use sparrow_runtime::processors;
use sparrow_tantivy_index::query::sorted::{GroupId, SortValue};
use sparrow_tantivy_index::query::{QueryError, TotalHits};

use super::calibrated::fuse_calibrated;
use super::key::Key;
use super::plain::{boosted, by_score};
use super::{Hit, List, Outcome, Run, total, with_k};
use crate::collapse::column;
use crate::error::SearchError;
use crate::profile::timed;
use sparrow_request::helpers::share_parts;
use sparrow_search_body::body::SearchBody;
use sparrow_search_body::collapse::Collapse;
use sparrow_search_body::fusion::{Fused, Normalizer, Ranked, Ties, fuse};
use sparrow_search_body::rescore::Rescore;
use sparrow_search_body::retriever::{Form, Fusion, Knn, Retriever, Stage, Standard};
use sparrow_search_body::window::windows;

/// One ranked list in a tree of retrievers, best hit first.
#[derive(Debug, Default)]
pub struct Branch {
    /// Documents and their scores, no more of them than the list above reads.
    pub hits: Vec<(Key, f32)>,
    /// Nearest neighbours found but beyond what the list above reads; empty for lists that are not a
    /// neighbour search.
    pub(super) behind: Vec<Key>,
    /// Number of matching documents, for a leaf of the tree.
    pub(super) total: u64,
    /// Whether that number of matching documents is exact.
    pub(super) exact: bool,
    /// Whether the list is complete: reading it further would find no more hits.
    pub(super) ends: bool,
    /// How each hit of a fused list came about, if the request wants its hits explained.
    pub origins: Vec<Origin>,
    /// The lists that this one is fused from; empty for a leaf.
    pub inputs: Vec<Branch>,
}

/// How a hit of a fused list came about.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// The document of the hit.
    pub doc: Key,
    /// Window that the hit comes from: how many hits of each list were fused.
    pub window: usize,
    /// Fused score of the document within that window.
    pub score: f32,
    /// Score shown for the hit, lowered where needed so that it is not above that of the hit before it.
    pub shown: f32,
}

/// A fused list as it grows from window to window.
#[derive(Default)]
struct Pages {
    /// Documents that have been given a rank, including those left out for their low score.
    placed: Vec<Key>,
    hits: Vec<Origin>,
    /// Whether the last window holds documents that got no rank from it.
    is_cut: bool,
}

/// How far a fused list is read on, in hits, to make up for those that are left out of it. Few groups would else be looked for in all
/// that can be read. A list that a model reads the texts of is not read on: ten texts would become a thousand.
const READ_ON: usize = 1_000;

/// Number of documents in the indices from which it pays to make the lists of a fusion on several threads.
const WORTH_SHARING: u64 = 20_000;

/// A ranked list, and for each index the error that it failed with while the list was made.
struct TriedList {
    branch: Result<Branch, SearchError>,
    failures: Vec<Option<SearchError>>,
}

impl Run<'_> {
    pub(super) fn fused(&mut self, fusion: &Fusion) -> Result<Outcome, SearchError> {
        let body = self.body;
        let tracked = body.tracked_hits();
        let end = body.from.saturating_add(body.size);
        let mut wanted = end;
        let mut passed = None;
        // Hits that the filter leaves out, or that are of a group that is there already, are made up for by those behind them.
        let (branch, hits, kept) = loop {
            let branch = self.fuse(fusion, wanted, tracked)?;
            // A list of `rank` has passed the filter already.
            if let (Some(filter), Form::Retriever, None) = (&body.post_filter, fusion.form, &passed) {
                passed = Some(self.passed(|_| Some(filter.clone())));
            }
            let mut hits = branch.hits.clone();
            hits.retain(|(key, _)| passed.as_ref().is_none_or(|passed| key.is_in(passed)));
            let kept = body.collapse.as_ref().map(|collapse| self.collapsed(collapse, &hits)).transpose()?;
            let found = kept.as_ref().map_or(hits.len(), Vec::len);
            let goes_on =
                wanted < READ_ON && branch.hits.len() >= wanted && !branch.ends && !fusion.has_reranker();
            if found >= end || !goes_on || self.failures.iter().any(Option::is_some) {
                break (branch, hits, kept);
            }
            wanted = wanted.saturating_mul(10).min(READ_ON);
        };
        let passes = |key: &Key| passed.as_ref().is_none_or(|passed| key.is_in(passed));
        let total = match fusion.least() {
            Some(_) => total(hits.len() as u64, branch.ends, tracked),
            None => self.union_total(fusion, &branch, &passes, tracked),
        };
        let shows_rank = fusion.form == Form::Rank;
        let max_score = hits.first().map(|hit| hit.1).filter(|_| !shows_rank && body.size > 0);
        let mut groups = Vec::new();
        let hits = match kept {
            Some(kept) => {
                groups = kept.iter().skip(body.from).take(body.size).map(|hit| hit.2.clone()).collect();
                kept.into_iter().map(|(key, score, _)| (key, score)).collect()
            }
            None => hits,
        };
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

    /// Runs a retriever and returns its best `limit` hits.
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

    /// A leaf's hits in another order than by score.
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

    /// Rescores the first hits of a list with each of the `rescore` passes.
    fn rescored(&self, passes: &[Rescore], branch: &mut Branch) -> Result<(), SearchError> {
        let mut hits: Vec<Hit> = branch.hits.iter().map(|(key, score)| key.hit(*score, None)).collect();
        for pass in passes {
            self.rescore(pass, &mut hits.iter_mut().collect::<Vec<_>>())?;
            hits.sort_by(by_score);
        }
        branch.hits = hits.iter().map(|hit| (Key::of(hit), hit.score)).collect();
        Ok(())
    }

    /// Keeps the first hit of each collapse group, together with the group's value.
    fn collapsed(
        &self,
        collapse: &Collapse,
        hits: &[(Key, f32)],
    ) -> Result<Vec<(Key, f32, SortValue)>, SearchError> {
        let mut columns = Vec::with_capacity(self.targets.len());
        for target in self.targets {
            columns.push(column(collapse, target.snapshot.mapping(), &target.shard)?);
        }
        let mut seen = HashSet::new();
        let mut kept = Vec::new();
        for &(key, score) in hits {
            let target = &self.targets[key.target()];
            let values = target
                .snapshot
                .column_values(key.addr(), &columns[key.target()])
                .map_err(|source| SearchError::Query { shard: target.shard.clone(), source })?;
            let group = values.into_iter().next().unwrap_or(SortValue::Null);
            if seen.insert(GroupId::of(&group)) {
                kept.push((key, score, group));
            }
        }
        Ok(kept)
    }

    /// The best hits of a fusion, at least `wanted` of them if its largest window holds so many.
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
        let arranged = match (&fusion.stage, inputs.first()) {
            (Some(Stage::Rerank(rerank)), Some(list)) => Some(self.reranked(rerank, list, &windows)?),
            (Some(Stage::Diversify(diversify)), Some(list)) => {
                Some(self.diversified(diversify, list, longest)?)
            }
            _ => None,
        };
        if let Some(hits) = arranged {
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

    /// Makes the lists of a fusion in parallel if there are idle processors and enough documents; otherwise
    /// returns an empty list, and each is made in its turn.
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
        // From the last one on: that is where lists of neighbours are, which take longest.
        let backwards: Vec<_> = fusion.inputs.iter().rev().collect();
        let mut lists = share_parts(helpers, backwards.len(), |number| {
            let failures = self.targets.iter().map(|_| None).collect();
            let mut run = Run { failures, profile: None, ..*self };
            let branch = run.branch(&backwards[number].retriever, limit, tracked, fusion.form);
            TriedList { branch, failures: run.failures }
        });
        lists.reverse();
        lists
    }

    /// The documents that match a filter: for each index, a bitset for each of its segments.
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
    /// A leaf list that was read to at most `limit` hits. `is_open` says whether reading it further may find
    /// more.
    fn leaf(list: List, limit: usize, is_open: bool) -> Self {
        let hits: Vec<_> = list.hits.iter().map(|hit| (Key::of(hit), hit.score)).collect();
        let ends = hits.len() < limit || (!is_open && list.exact && list.total == hits.len() as u64);
        Self { hits, total: list.total, exact: list.exact, ends, ..Self::default() }
    }
}

impl Pages {
    /// Appends fused documents that are not in the list yet, up to a length of `length`. Documents that score
    /// below `least` in this window get a rank but are not hits.
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

/// Whether some clause of a query finds more nearest neighbours when more hits are wanted.
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

/// Fuses the first `window` hits of each list.
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
