//! The search by bounds of single documents, for filters that few pass.
//!
//! Of a block of 8 documents mostly one is wanted. Its own bound is far below the block's: a level counts
//! only if the document has the term.
//!
//! 1. Window by window, the sparse terms are added to sums, of which only the wanted documents' are kept.
//!    Every wanted document gets an upper bound of its estimate: its sum, and of the dense terms that it
//!    has the levels of its block. On the way those that match are counted.
//! 2. The most promising documents ([`SEEDS`]) are scored, which gives nearly the final threshold.
//! 3. The documents whose bound reaches it are scored term by term, the highest terms first, and dropped
//!    as soon as sum and remaining bound fall below.
//!
//! Estimates and coarse units are those of the search by blocks (see `blocks`).

use super::TopKRequest;
use super::candidates::{Errors, TopKCandidates};
use super::plan::{Plan, coarse_unit};
use super::scratch::{DocumentScratch, Scratch};
use super::search::Search;
use super::single::{AddedTerm, Scored, add_term};
use crate::kernels::{self, BlockTerm, Scope, coarse};
use crate::layout::{BLOCK, CHUNK};

/// Number of documents that are scored first, to find a threshold.
const SEEDS: usize = 32;
/// Number of documents that are scored first when there is already a threshold.
const FEW_SEEDS: usize = 8;
/// Documents of a segment up to which block bounds consult the bitmaps of wanted documents; in larger ones
/// reading them costs more than it saves.
const MAX_BITMAPS: u64 = 1 << 18;
/// Number of documents that are scored together.
const PART: usize = 1024;
/// Documents per group whose highest bound is stored.
const GROUP: usize = 32;

/// Number of documents that pass the filter; `None` if there is no filter.
pub(super) fn passed(num_docs: u32, request: &TopKRequest<'_>) -> Option<u64> {
    let words = num_docs.div_ceil(64) as usize;
    request.filter.map(|filter| kernels::chosen().count(&filter[..words.min(filter.len())]))
}

impl<'a> Search<'_, 'a, '_> {
    /// Whether the filter leaves so few documents that bounding each of them pays.
    pub(super) fn is_strict(&self) -> bool {
        self.passed.is_some_and(|passed| passed * kernels::chosen().strict <= u64::from(self.num_docs))
    }

    /// Which documents the block bounds should cover.
    pub(super) fn scope(&self) -> Scope {
        let docs = u64::from(self.num_docs);
        match self.passed {
            Some(passed) if kernels::chosen().scopes() => {
                let levels = docs <= MAX_BITMAPS && passed * 10 <= docs * 8;
                if levels { Scope::Wanted } else { Scope::WantedSums }
            }
            None if self.request.live.is_some() && kernels::chosen().scopes() => Scope::WantedSums,
            _ => Scope::All,
        }
    }

    /// Collects the candidates and counts. Returns false, with nothing collected, when there is no
    /// threshold that excludes anything.
    pub(super) fn collect_by_documents(
        &mut self,
        candidates: &mut TopKCandidates<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        let mut document_scratch = std::mem::take(&mut scratch.documents);
        let collected = self.collect_documents(&mut document_scratch, candidates, scratch);
        scratch.documents = document_scratch;
        collected
    }

    fn collect_documents(
        &mut self,
        document_scratch: &mut DocumentScratch,
        candidates: &mut TopKCandidates<'_>,
        scratch: &mut Scratch,
    ) -> bool {
        let unit = coarse_unit(self.clauses.iter());
        let mut terms = Vec::with_capacity(self.dense.len());
        self.block_terms(unit, &mut terms);
        let plan = Plan::new(unit, 0..0, self.scope(), &terms);
        let matched = self.bound_documents(&plan, document_scratch, scratch);
        if self.request.is_cancelled() {
            return true;
        }
        if self.bounds.is_some() {
            self.leave_bounds(&plan, document_scratch, candidates.errors);
        }
        document_scratch.totals.resize(document_scratch.ids.len().next_multiple_of(GROUP), 0);
        document_scratch.highest.resize(document_scratch.totals.len() / GROUP, 0);
        kernels::chosen().highest(&document_scratch.totals, &mut document_scratch.highest);
        candidates.raise_to_score(self.request.floor());
        self.score_first(&plan, document_scratch, candidates);
        if candidates.need() <= 0 {
            candidates.forget_from(self.segment);
            return false;
        }
        if self.request.count_limit > 0 {
            self.matched = matched;
        }
        Self::select(&plan, document_scratch, candidates);
        let selected = std::mem::take(&mut document_scratch.selected);
        for part in selected.chunks(PART) {
            if self.request.is_cancelled() {
                break;
            }
            self.score(&plan, document_scratch, part, false, candidates);
        }
        document_scratch.selected = selected;
        candidates.share();
        true
    }

    /// Lists the wanted documents with their sums and bounds. Returns how many match.
    fn bound_documents(
        &self,
        plan: &Plan<'_, 'a>,
        document_scratch: &mut DocumentScratch,
        scratch: &mut Scratch,
    ) -> u64 {
        let DocumentScratch { ids, sums, totals, windows, .. } = document_scratch;
        let Scratch { sums: window_sums, allowed, .. } = scratch;
        ids.clear();
        sums.clear();
        totals.clear();
        windows.clear();
        let kernels = kernels::chosen();
        let words = (self.num_docs as usize).div_ceil(64);
        let window = self.window_size as usize;
        let mut matched = 0;
        for (number, start) in (0..words).step_by(window / 64).enumerate() {
            if self.request.is_cancelled() {
                return 0;
            }
            let groups = (window / 64).min(words - start);
            if !self.fill_allowed(start, groups, allowed) {
                continue;
            }
            let first = ids.len();
            kernels.list(allowed, ids);
            windows.push((start as u32 * 64, first as u32));
            self.fetch_first_sparse(number);
            window_sums.0[..window].fill(0);
            self.scatter_sparse(number, &mut window_sums.0);
            sums.extend(ids[first..].iter().map(|id| window_sums.0[usize::from(*id)]));
            totals.resize(ids.len(), 0);
            let mut at = first;
            for (chunk, words) in allowed.chunks(CHUNK as usize / 64).enumerate() {
                let end = at + kernels.count(words) as usize;
                if end > at {
                    let chunk = start / (CHUNK as usize / 64) + chunk;
                    matched += u64::from(kernels.bound_documents(
                        plan.dense,
                        chunk,
                        &ids[at..end],
                        &sums[at..end],
                        plan.inverse,
                        &mut totals[at..end],
                    ));
                }
                at = end;
            }
        }
        matched
    }

    /// Writes the highest document bound of every block to [`Search::bounds`], if requested.
    fn leave_bounds(&mut self, plan: &Plan<'_, 'a>, document_scratch: &DocumentScratch, errors: Errors) {
        let mut blocks = vec![0_u16; (self.num_docs as usize).div_ceil(BLOCK)];
        for (at, (first, start)) in document_scratch.windows.iter().enumerate() {
            let end = document_scratch
                .windows
                .get(at + 1)
                .map_or(document_scratch.ids.len(), |(_, start)| *start as usize);
            let range = *start as usize..end;
            for (id, total) in document_scratch.ids[range.clone()].iter().zip(&document_scratch.totals[range])
            {
                let block = &mut blocks[(*first as usize + usize::from(*id)) / BLOCK];
                *block = (*block).max(*total);
            }
        }
        if let Some(bounds) = self.bounds.as_deref_mut() {
            bounds.set(&blocks, plan.unit, errors.units, errors.above);
        }
    }

    /// Scores the documents with the highest bounds and adds them to the candidates, to find a threshold.
    fn score_first(
        &self,
        plan: &Plan<'_, 'a>,
        document_scratch: &mut DocumentScratch,
        candidates: &mut TopKCandidates<'_>,
    ) {
        // What other segments found is a threshold already.
        let seeds = if candidates.need() > 0 { FEW_SEEDS } else { SEEDS.max(self.request.k * 2) };
        let DocumentScratch { totals, highest, best, selected, .. } = document_scratch;
        best.clear();
        // The highest of so many groups are as many documents at least.
        best.extend_from_slice(if highest.len() >= seeds * 2 { highest } else { totals });
        let lowest = match best.len().checked_sub(seeds) {
            Some(place) => *best.select_nth_unstable(place).1,
            None => 1,
        };
        let Some(needed) = candidates.coarse(plan.unit) else { return };
        let floor = needed.max(lowest).max(1);
        selected.clear();
        kernels::chosen().select(totals, highest, floor, 0, selected);
        // Of many equals, some.
        selected.truncate(seeds * 4);
        let selected = std::mem::take(selected);
        self.score(plan, document_scratch, &selected, true, candidates);
        selected.iter().for_each(|at| document_scratch.totals[*at as usize] = 0);
        document_scratch.selected = selected;
    }

    /// Selects the documents whose bounds reach the required estimate.
    fn select(plan: &Plan<'_, 'a>, document_scratch: &mut DocumentScratch, candidates: &TopKCandidates<'_>) {
        document_scratch.selected.clear();
        if let Some(floor) = candidates.coarse(plan.unit) {
            kernels::chosen().select(
                &document_scratch.totals,
                &document_scratch.highest,
                floor,
                0,
                &mut document_scratch.selected,
            );
        }
    }

    /// Scores the documents at `places`, ascending, and adds those that can be among the best to the
    /// candidates. With `alone`, partial sums raise the required estimate meanwhile.
    fn score(
        &self,
        plan: &Plan<'_, 'a>,
        document_scratch: &mut DocumentScratch,
        places: &[u32],
        alone: bool,
        candidates: &mut TopKCandidates<'_>,
    ) {
        let DocumentScratch { ids, sums, totals, windows, best, scored, .. } = document_scratch;
        scored.clear();
        let mut window = 0;
        for place in places {
            while windows.get(window + 1).is_some_and(|(_, start)| start <= place) {
                window += 1;
            }
            let at = *place as usize;
            let remaining = totals[at].wrapping_sub(coarse(sums[at], plan.inverse));
            let doc = windows[window].0 + u32::from(ids[at]);
            scored.push(Scored::new(doc, sums[at], remaining));
            plan.dense.first().inspect(|term| term.bitmap.fetch(doc));
        }
        plan.dense.first().inspect(|term| term.bitmap.fetch_regions());
        for (i, term) in plan.dense.iter().enumerate() {
            if alone && i % 3 == 2 {
                best.clear();
                best.extend(scored.iter().map(|scored| scored.sum));
                if let Some(place) = best.len().checked_sub(self.request.k) {
                    let (_, kth, _) = best.select_nth_unstable(place);
                    candidates.raise_to(*kth);
                }
            }
            let need = candidates.needed();
            let next = plan.dense.get(i + 1).map(|next| &next.bitmap);
            let &BlockTerm { bitmap, impacts, factor, .. } = term;
            add_term(scored, AddedTerm { bitmap, impacts, factor }, next, |scored, has| {
                if has {
                    scored.rest = scored.rest.wrapping_sub(u16::from(term.bound_of(scored.doc)));
                }
                u32::from(scored.sum) + u32::from(scored.rest) * plan.unit >= need
            });
            if scored.is_empty() {
                return;
            }
        }
        for Scored { doc, sum, .. } in &*scored {
            if *sum > 0 && i64::from(*sum) >= candidates.need() {
                candidates.push(*sum, self.segment, *doc);
            }
        }
    }
}
