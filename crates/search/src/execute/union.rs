//! Number of distinct documents that the lists of a fusion find.

use rustc_hash::FxHashSet;
use sparrow_query::{BoolQuery, BoostMode, FunctionScoreQuery, Query, QueryKind, ScoreMode};
use sparrow_tantivy_index::query::TotalHits;

use super::fused::{Branch, is_open};
use super::key::Key;
use super::plain::boosted;
use super::{Run, total, with_k};
use crate::resolve::set_default_fields;
use sparrow_search_body::retriever::{Form, Fusion, Retriever, filtered};
use sparrow_search_body::window::Window;

/// The lists of a fusion whose documents are counted.
#[derive(Default)]
struct Counted<'a> {
    /// Leaf lists, of which every match counts, regardless of windows.
    leaves: Vec<(&'a Retriever, &'a Branch)>,
    /// Fusions with a lowest score: only their hits are known to reach it, so only these count.
    cut: Vec<&'a Branch>,
    /// Whether some list would find more documents if it were read further.
    grows: bool,
}

impl<'a> Counted<'a> {
    fn add(&mut self, fusion: &'a Fusion, branch: &'a Branch) {
        for (input, list) in fusion.inputs.iter().zip(&branch.inputs) {
            match &input.retriever {
                Retriever::Fused(inner) if inner.least().is_some() => {
                    self.grows |= !list.ends;
                    self.cut.push(list);
                }
                Retriever::Fused(inner) => self.add(inner, list),
                leaf => {
                    let is_given = matches!(fusion.window, Window::Given(_));
                    self.grows |= !is_given && !list.ends && leaf.queries().into_iter().any(is_open);
                    self.leaves.push((leaf, list));
                }
            }
        }
    }

    /// The documents that are known individually because they are in one of the lists.
    fn known(&self) -> FxHashSet<Key> {
        let keys =
            |branch: &'a Branch| branch.hits.iter().map(|hit| hit.0).chain(branch.behind.iter().copied());
        let leaves = self.leaves.iter().map(|(_, branch)| *branch);
        leaves.chain(self.cut.iter().copied()).flat_map(keys).collect()
    }
}

impl Run<'_> {
    /// Number of documents that any list finds, regardless of windows, and whether it is exact; `None` if
    /// hits are not counted.
    pub(super) fn union_total(
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
        let mut counted = Counted::default();
        counted.add(fusion, branch);
        let is_exact = !counted.grows;
        // A total beyond the limit is told as the limit, and as inexact.
        let is_beyond = |leaf: &Branch| leaf.total > limit || (leaf.total == limit && !leaf.exact);
        if self.body.post_filter.is_none() && counted.leaves.iter().any(|(_, leaf)| is_beyond(leaf)) {
            return Some((limit, false));
        }
        let is_whole =
            |leaf: &Branch| leaf.exact && leaf.total == (leaf.hits.len() + leaf.behind.len()) as u64;
        if counted.leaves.iter().all(|(_, leaf)| is_whole(leaf)) {
            let found = counted.known().iter().filter(|key| passes(key)).count() as u64;
            let is_exact = is_exact || self.are_all(found, &counted, tracked);
            return total(found, is_exact, tracked);
        }
        // Some list goes on behind its window, so that the lists overlap by an unknown number.
        let queries: Vec<Option<Query>> =
            (0..self.targets.len()).map(|number| self.any_leaf(&counted, fusion.form, number)).collect();
        let options = self.options(0, tracked, None);
        let list = self.list(&options, |number| queries[number].clone());
        let mut found = list.total;
        if !counted.cut.is_empty() {
            let matched = self.passed(|number| queries[number].clone());
            let rest = counted.known().into_iter().filter(|key| passes(key) && !key.is_in(&matched));
            found += rest.count() as u64;
        }
        let is_exact = list.exact && (is_exact || self.are_all(found, &counted, tracked));
        total(found, is_exact, tracked)
    }

    /// Whether the documents that were `found` are all that the lists could find if they were read to their ends: those that pass the
    /// filters, where all lists have the same ones.
    fn are_all(&mut self, found: u64, counted: &Counted<'_>, tracked: TotalHits) -> bool {
        let mut filters = counted.leaves.iter().map(|(retriever, _)| retriever.filters());
        let Some(first) = filters.next().filter(|_| counted.cut.is_empty()) else { return false };
        if filters.any(|other| other != first) {
            return false;
        }
        let passing = filtered(None, first.to_vec());
        let options = self.options(0, tracked, None);
        let list = self.list(&options, |_| Some(passing.clone()));
        list.exact && list.total == found
    }

    /// The query with which an index finds the documents of all leaf lists; `None` if they find nothing in
    /// it.
    fn any_leaf(&self, counted: &Counted<'_>, form: Form, number: usize) -> Option<Query> {
        let of_leaf = |(retriever, branch): &(&Retriever, &Branch)| match retriever {
            Retriever::Standard(standard) => {
                let query = boosted(self.targets, self.body, number, standard.query.clone());
                Some(match standard.min_score {
                    Some(least) => at_least(query, least),
                    None => query,
                })
            }
            Retriever::Knn(knn) => {
                let keys = branch.hits.iter().map(|hit| &hit.0).chain(&branch.behind);
                // A lowest score leaves a list the nearest of its neighbours.
                let held = keys.filter(|key| key.target() == number).count();
                // The list of `rank` has passed the filter, and the query has not.
                let is_filtered = form == Form::Rank && self.body.post_filter.is_some();
                with_k(&knn.search.query, if is_filtered { knn.search.k } else { held })
            }
            Retriever::Fused(_) => None,
        };
        let should: Vec<Query> = counted.leaves.iter().filter_map(of_leaf).collect();
        if should.is_empty() {
            return None;
        }
        let mut any = QueryKind::Bool(BoolQuery { should, ..Default::default() }).into();
        let target = &self.targets[number];
        if !target.default_fields.is_empty() {
            set_default_fields(&mut any, &target.default_fields);
        }
        Some(any)
    }
}

/// The documents that a query gives a score of at least `least`.
pub(super) fn at_least(query: Query, least: f32) -> Query {
    QueryKind::FunctionScore(FunctionScoreQuery {
        query: Box::new(query),
        functions: Vec::new(),
        score_mode: ScoreMode::Multiply,
        boost_mode: BoostMode::Multiply,
        max_boost: f32::MAX,
        min_score: Some(least),
    })
    .into()
}
