//! The rank-safe search of format 3.
//!
//! Works window by window with 16-bit estimates. A query weight `x` of a term with the highest
//! weight `m` becomes a factor, so that a posting with impact `i` adds `i * factor >> 8` units to its
//! document's sum; the units are chosen so that no document's sum can exceed 16 bits. With `s`
//! units per score, and the errors of rounding impact, factor and product added up over the query
//! in [`Errors`](super::candidates::Errors), a document's estimate `e` and its score `S` satisfy
//!
//! ```text
//! s * S - above  <=  e  <=  s * S + below
//! ```
//!
//! So a document whose score reaches `t` has an estimate of at least `s * t - above`, and when k
//! documents have an estimate of at least `e`, a document below `e - below - above` scores less than
//! all of them. What remains is scored exactly, in query order. As long as those bounds are not
//! positive they exclude nothing, and every document that shares a term is a candidate, whatever its
//! estimate was rounded to.
//!
//! Dense terms with the lowest bounds, in sum at most [`DEFERRED_SHARE`] of what is needed, are not
//! added up but looked up for the documents that the others leave.

use super::candidates::TopKCandidates;
use super::exact::for_each_score;
use super::scratch::{Scratch, Sums, WindowState};
use super::search::{Clause, Search};
use super::single::{AddedTerm, Scored, add_term};
use crate::kernels::{self, Bitmap, DenseTerm, GROUP, lane};
use crate::record::Kind;

/// Highest sum of the deferred terms' bounds, as a share of the estimate needed. Measured: 0.11 to 0.2 are
/// equal; 0.27 makes queries near the 95th percentile 5% slower, 0.35 18%.
const DEFERRED_SHARE: f64 = 0.2;

/// Documents for which deferred terms are looked up together; small enough for the L1 cache.
const TOGETHER: usize = 1024;

/// Groups of 64 documents to which all dense terms are added before the next groups; their sums fit the L1
/// cache.
const GROUPS: usize = 256;

impl<'a, 'r> Search<'_, 'a, 'r> {
    /// Scans all windows.
    pub(super) fn scan(&mut self, candidates: &mut TopKCandidates<'_>, scratch: &mut Scratch) {
        let window = self.window_size as usize;
        let words = (self.num_docs as usize).div_ceil(64);
        for start in (0..words).step_by(window / 64) {
            let counting = self.matched < self.request.count_limit;
            if self.request.is_cancelled() || (self.request.k == 0 && !counting) {
                return;
            }
            self.window(start, (window / 64).min(words - start), counting, None, candidates, scratch);
        }
    }

    /// Scans some groups of documents of one window.
    pub(super) fn window(
        &mut self,
        start: usize,
        groups: usize,
        counting: bool,
        state: Option<WindowState<'_>>,
        candidates: &mut TopKCandidates<'_>,
        scratch: &mut Scratch,
    ) {
        let Scratch { sums, allowed, matches, scored, .. } = scratch;
        let any_allowed = match state {
            Some(state) => {
                allowed.clear();
                allowed.extend(state.wanted.iter().map(|bits| u64::from_le_bytes(*bits)));
                allowed.iter().any(|word| *word != 0)
            }
            None => self.fill_allowed(start, groups, allowed),
        };
        if !any_allowed {
            return;
        }
        matches.clear();
        matches.resize(groups, 0);
        candidates.raise_to_score(self.request.floor());
        let min_score = self.request.min_score.filter(|minimum| *minimum > 0.0);
        let judging = counting && min_score.is_some();
        let (kept, deferred) = if judging { (self.dense.len(), 0) } else { self.split(candidates.need()) };
        match state {
            Some(state) => kernels::chosen().to_lanes(state.sums, &mut sums.0[..groups * GROUP]),
            None => {
                sums.0[..groups * GROUP].fill(0);
                self.scatter(start, sums);
            }
        }
        let sums = &mut sums.0[..groups * GROUP];
        let floor = match min_score {
            Some(minimum) if judging => candidates.estimate_of(minimum),
            _ => candidates.need() - i64::from(deferred),
        };
        // All that share a term: to count them, or because no bound excludes any.
        let any = floor <= 0 && (self.request.k > 0 || judging);
        if any || (counting && !judging) {
            self.mark_matches(start, sums, matches);
            matches.iter_mut().zip(allowed.iter()).for_each(|(matches, allowed)| *matches &= allowed);
            if counting && !judging {
                self.matched += matches.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
            }
        }
        if self.request.k == 0 && !judging {
            return;
        }
        for first in (0..groups).step_by(GROUPS) {
            let some = first..groups.min(first + GROUPS);
            let sums = &mut sums[some.start * GROUP..some.end * GROUP];
            self.add_dense(start + first, kept, &allowed[some], sums);
        }
        if !any {
            kernels::chosen().at_least(sums, floor.min(65_535) as u16, matches);
            matches.iter_mut().zip(allowed.iter()).for_each(|(matches, allowed)| *matches &= allowed);
        }
        match min_score {
            Some(minimum) if judging => self.judge(start, sums, matches, minimum, candidates),
            _ => self.collect(start, sums, matches, (kept, deferred), scored, candidates),
        }
        candidates.share();
        candidates.tidy();
    }

    /// Writes the bits of live documents that pass the filter, `groups` words from `start` on; returns
    /// whether any is set.
    pub(super) fn fill_allowed(&self, start: usize, groups: usize, allowed: &mut Vec<u64>) -> bool {
        allowed.resize(groups, 0);
        self.request.write_allowed(self.num_docs as usize, start, allowed);
        allowed.iter().any(|word| *word != 0)
    }

    /// Number of dense terms to add up for all documents, and the sum of the bounds of those to defer.
    fn split(&self, need: i64) -> (usize, u32) {
        let limit = DEFERRED_SHARE * need as f64;
        let (mut kept, mut deferred) = (self.dense.len(), 0);
        while kept > 0 && f64::from(deferred + self.clauses[self.dense[kept - 1]].bound) <= limit {
            kept -= 1;
            deferred += self.clauses[self.dense[kept]].bound;
        }
        (kept, deferred)
    }

    /// Adds the terms that are not dense to the sums of a window.
    fn scatter(&self, start: usize, sums: &mut Sums) {
        let window = self.window_size;
        let first = start as u32 * 64;
        for i in self.others {
            let Clause { postings, factor, .. } = &self.clauses[*i];
            let mut add = |id: u16, impact: u8| {
                let sum = &mut sums.0[usize::from(lane(id))];
                // Rounded up, so that a posting always leaves a trace.
                *sum = sum.wrapping_add(((u32::from(impact) * u32::from(*factor) + 255) >> 8) as u16);
            };
            if postings.kind() == Kind::Sparse {
                let (ids, impacts) = postings.in_window((first / window) as usize);
                ids.iter().zip(impacts).for_each(|(id, impact)| add(u16::from_le_bytes(*id), *impact));
            } else {
                postings.for_range(first, first.saturating_add(window), |doc, position| {
                    add((doc - first) as u16, postings.impact_at(position));
                });
            }
        }
    }

    /// Sets the bit of every document that shares a term: from the scattered sums, then from the bitmaps.
    fn mark_matches(&self, start: usize, sums: &[u16], matches: &mut [u64]) {
        kernels::chosen().nonzero(sums, matches);
        self.dense.iter().for_each(|i| self.mark_dense(start, *i, matches));
    }

    fn add_dense(&self, start: usize, kept: usize, allowed: &[u64], sums: &mut [u16]) {
        let groups = sums.len() / GROUP;
        let terms: Vec<DenseTerm<'_>> = self.dense[..kept]
            .iter()
            .map(|i| {
                let clause = &self.clauses[*i];
                let postings = &clause.postings;
                let bitmap = postings.bitmap();
                let impacts =
                    postings.impacts_from(bitmap.rank(start as u32 * 64).min(postings.df()) as usize);
                let bitmap = bitmap.bits.get(start * 8..(start + groups) * 8).unwrap_or(&[]);
                DenseTerm { bitmap, impacts, factor: clause.factor }
            })
            .collect();
        kernels::chosen().add_dense(sums, allowed, &terms);
    }

    /// Adds the marked documents to the candidates, after looking up the deferred terms. `scored` is a
    /// buffer.
    fn collect(
        &self,
        start: usize,
        sums: &[u16],
        matches: &[u64],
        (kept, deferred): (usize, u32),
        scored: &mut Vec<Scored>,
        candidates: &mut TopKCandidates<'_>,
    ) {
        let deferred_terms = &self.dense[kept..];
        let first = deferred_terms.first().map(|i| self.clauses[*i].postings.bitmap());
        first.inspect(Bitmap::fetch_regions);
        scored.clear();
        for (group, (word, sums)) in matches.iter().zip(sums.chunks_exact(GROUP)).enumerate() {
            let mut bits = *word;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let estimate = sums[usize::from(lane(bit as u16))];
                if i64::from(u32::from(estimate) + deferred) < candidates.need() {
                    continue;
                }
                let doc = (start + group) as u32 * 64 + bit;
                let Some(first) = &first else {
                    candidates.push(estimate, self.segment, doc);
                    continue;
                };
                first.fetch(doc);
                scored.push(Scored::new(doc, estimate, 0));
                if scored.len() == TOGETHER {
                    self.look_up(deferred_terms, deferred, scored, candidates);
                }
            }
        }
        self.look_up(deferred_terms, deferred, scored, candidates);
    }

    /// Adds deferred terms, whose bounds sum up to `remaining`, to the documents, and moves those that can be
    /// among the best to the candidates. Empties `scored`.
    fn look_up(
        &self,
        terms: &[usize],
        mut remaining: u32,
        scored: &mut Vec<Scored>,
        candidates: &mut TopKCandidates<'_>,
    ) {
        let need = candidates.need();
        for (at, i) in terms.iter().enumerate() {
            let Clause { postings, factor, bound, .. } = &self.clauses[*i];
            remaining -= bound;
            let term = AddedTerm { bitmap: postings.bitmap(), impacts: postings.impacts(), factor: *factor };
            let next = terms.get(at + 1).map(|next| self.clauses[*next].postings.bitmap());
            add_term(scored, term, next.as_ref(), |scored, _| {
                i64::from(u32::from(scored.sum) + remaining) >= need
            });
            if scored.is_empty() {
                return;
            }
        }
        for Scored { doc, sum, .. } in scored.drain(..) {
            if i64::from(sum) >= candidates.need() {
                candidates.push(sum, self.segment, doc);
            }
        }
    }

    /// Counts the marked documents whose score reaches `minimum`, and adds them to the candidates.
    fn judge(
        &mut self,
        start: usize,
        sums: &[u16],
        matches: &[u64],
        minimum: f32,
        candidates: &mut TopKCandidates<'_>,
    ) {
        let sure = (f64::from(minimum) * candidates.errors.units + candidates.errors.below).ceil() as i64;
        let mut unsure = Vec::new();
        for (group, (word, sums)) in matches.iter().zip(sums.chunks_exact(GROUP)).enumerate() {
            let mut bits = *word;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                let estimate = sums[usize::from(lane(bit as u16))];
                let doc = (start + group) as u32 * 64 + bit;
                if i64::from(estimate) >= sure {
                    self.matched += 1;
                } else {
                    unsure.push(doc);
                }
                if self.request.k > 0 && i64::from(estimate) >= candidates.need() {
                    candidates.push(estimate, self.segment, doc);
                }
            }
        }
        let matched = &mut self.matched;
        for_each_score(self.clauses, &unsure, |_, score, _| *matched += u64::from(score >= minimum));
    }
}
